"""Probe a node whose host we may not touch: connect to its address, and ask the other brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final, Protocol

from migrate.kafka import live
from migrate.kafka.live import Wants
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown

ANSWERS: Final = "answers"
REFUSES: Final = "refuses"
SECONDS: Final = 2.0


class Witness(Protocol):
    """Looks from here."""

    def connects(self, node: NodeId) -> str:
        """ANSWERS, REFUSES, or what else became of it: a time-out says nothing of the process."""

    def named_by(self, node: NodeId) -> str:
        """Nothing where others answer and none of them names it, else who does, or that nobody answers."""


class NetworkWitness:
    """By TCP and Kafka's own Metadata answers."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.fenced: Callable[[NodeId], bool | Unknown] | None = (
            None  # by the metadata's committed end, where it is read
        )

    def connects(self, node: NodeId) -> str:
        """Does something listen at the node's address?"""
        host, _, port = self._inventory.node(node).address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS):
                return ANSWERS
        except ConnectionRefusedError:
            return REFUSES
        except OSError as error:
            return f"cannot be reached: {error}"

    def named_by(self, node: NodeId) -> str:
        """A broker that is gone is in no other one's Metadata answer, or its registration is fenced.

        In dual write brokers of ZooKeeper mode go on naming one that the controller has fenced (seen on 3.9.2).
        """
        found = live.look(self._inventory, wants=Wants(controllers=False, brokers=False, log_dirs=False))
        others = {other: answer for other, answer in found.metadata.items() if other != node}
        said = {other: answer for other, answer in others.items() if not isinstance(answer, Unknown)}
        if not said:
            return "no other broker answers, so nobody says whether it is registered"
        naming = sorted(int(other) for other, answer in said.items() if int(node) in map(int, answer.brokers))
        if not naming or (self.fenced is not None and self.fenced(node) is True):
            return ""
        return f"brokers {naming} still name it, and no metadata says that its registration is fenced"
