"""ElectLeaders PREFERRED: to the active controller, or to the broker that is ZooKeeper's controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate.errors import NotController
from migrate.kafka.assignments import Replica
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, Limits
from migrate.kafka.controller import ActiveController, elect
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Elections:
    """Sends one request to whoever controls the cluster; implements `migrate.run.leaders.Elector`."""

    inventory: Inventory
    limits: Limits = DEFAULT_LIMITS

    def by_quorum(self, partitions: Mapping[str, Sequence[int]]) -> Mapping[Replica, int]:
        """See `ActiveController.elect_leaders`."""
        return ActiveController(self.inventory, self.limits).elect_leaders(partitions)

    def by_broker(self, broker: int, partitions: Mapping[str, Sequence[int]]) -> Mapping[Replica, int]:
        """The same, asked of the broker that owns /controller; any other answers NOT_CONTROLLER.

        Raises:
            NotController, ConnectionClosed, AnswerTimeout: Retryable.
            AccessRefused: ALTER on Cluster is missing.
        """
        try:
            node = next(entry for entry in self.inventory.brokers if entry.id == NodeId(broker))
        except StopIteration:
            raise NotController(
                f"broker {broker}, which owns /controller, is not in the inventory", where=self.inventory.path
            ) from None
        with Connection(node.address, self.inventory.broker_access, self.limits) as connection:
            return elect(connection, partitions)
