"""ZooKeeper's servers, each seen by itself, and what else is stored there: who still uses it."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.outcome import Unknown
from migrate.model.words import plural


@dataclass(frozen=True, slots=True)
class EnsembleServer:
    """A server as it answers at its client port; `clients` are connections beside those of this look."""

    address: str
    listens: bool | Unknown  # False: its host refuses the connection
    role: str = ""  # leader, follower, observer, standalone; "" while it serves nobody
    clients: int | Unknown = 0
    hosts: tuple[str, ...] = ()  # of the clients, where the server tells them

    @property
    def line(self) -> str:
        """`zk1:2181: follower, 2 clients, from 10.0.0.7`."""
        if isinstance(self.listens, Unknown):
            return self.listens.reason
        if not self.listens:
            return f"{self.address}: stopped"
        clients = (
            f"clients unknown: {self.clients.reason}"
            if isinstance(self.clients, Unknown)
            else plural(self.clients, "client")
        )
        hosts = f", from {', '.join(self.hosts)}" if self.hosts else ""
        return f"{self.address}: {self.role or 'without a quorum'}, {clients}{hosts}"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """`strangers` are paths of znodes that are not Kafka's; `unasked` are members that no known address leads to.

    Both are Unknown, too, where no server serves.
    """

    servers: tuple[EnsembleServer, ...]
    strangers: tuple[str, ...] | Unknown
    unasked: tuple[str, ...] | Unknown = ()

    @property
    def stopped(self) -> bool:
        """Does the host of every server that was asked refuse connections?"""
        return all(server.listens is False for server in self.servers)
