"""What is seen over the network of a node that only people may touch."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from migrate.kafka import live
from migrate.kafka.live import Wants
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown

ANSWERS: Final = "answers"
REFUSES: Final = "refuses"
SECONDS: Final = 2.0


class Witness:
    """By TCP and Kafka's own Metadata answers."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        # by the metadata's committed end, where it is read
        self.fenced: Callable[[NodeId], bool | Unknown] | None = None

    def connects(self, node: NodeId) -> str:
        """ANSWERS, REFUSES, or another result: a time-out says nothing about the process."""
        host, _, port = self._inventory.node(node).address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS):
                return ANSWERS
        except ConnectionRefusedError:
            return REFUSES
        except OSError as error:
            return f"cannot be reached: {error}"

    def named_by(self, node: NodeId) -> str:
        """Return who names the node, or that nobody answers; "" where it is gone.

        A broker that is gone is in no other one's Metadata answer, or its registration is fenced: in dual write brokers
        of ZooKeeper mode go on naming one that the controller has fenced (seen on 3.9.2).
        """
        found = live.look(self._inventory, wants=Wants(controllers=False, brokers=False, log_dirs=False))
        others = {other: answer for other, answer in found.metadata.items() if other != node}
        said = {other: answer for other, answer in others.items() if not isinstance(answer, Unknown)}
        if not said:
            return "no other broker answers, so it is unknown whether it is registered"
        naming = sorted(int(other) for other, answer in said.items() if int(node) in map(int, answer.brokers))
        if not naming or (self.fenced is not None and self.fenced(node) is True):
            return ""
        return f"brokers {naming} still name it, and no metadata says that its registration is fenced"
