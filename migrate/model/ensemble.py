"""ZooKeeper's servers, each seen by itself: who is connected to it, and whether it will stay stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.model.outcome import Unknown

STAYS_DOWN: Final = ("masked", "disabled")  # answers of `systemctl is-enabled` with which no boot starts a unit
NO_BOOT: Final = "no unit"  # a lab's process: nothing starts it but the lab


@dataclass(frozen=True, slots=True)
class ServerUnit:
    """What a server's host says of it; `word` is the answer of `systemctl is-enabled`."""

    name: str  # `zookeeper.service on zk1`
    runs: bool
    word: str

    @property
    def stays_down(self) -> bool:
        return not self.runs and self.word in (*STAYS_DOWN, NO_BOOT)


@dataclass(frozen=True, slots=True)
class EnsembleServer:
    """A server as it answers at its client port; `clients` are connections beside those of this look."""

    address: str
    listens: bool | Unknown  # False: its host refuses the connection
    role: str = ""  # leader, follower, observer, standalone; "" while it serves nobody
    clients: int | Unknown = 0
    hosts: tuple[str, ...] = ()  # of the clients, where the server tells them
    data: tuple[str, ...] = ()  # its directories, where the server tells them
    unit: ServerUnit | Unknown | None = None  # None: the inventory names none, or people work the hosts

    @property
    def retired(self) -> bool:
        """Is it stopped, and starts with no boot, as far as a unit is known?"""
        down = self.unit is None or (isinstance(self.unit, ServerUnit) and self.unit.stays_down)
        return self.listens is False and down


@dataclass(frozen=True, slots=True)
class Ensemble:
    """The servers in the order in which they are stopped; `strangers` are paths of znodes that are not Kafka's."""

    servers: tuple[EnsembleServer, ...]
    strangers: tuple[str, ...] | Unknown

    @property
    def serves(self) -> bool:
        return any(server.role for server in self.servers)

    def server(self, address: str) -> EnsembleServer | Unknown:
        found = (server for server in self.servers if server.address == address)
        return next(found, Unknown(f"{address} is no server of the inventory's"))
