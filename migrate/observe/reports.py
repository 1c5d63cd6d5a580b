"""Why a KRaft broker does not report its directories: the end of its log, its queue over JMX, and a second look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from migrate.java import jmx
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import ServiceControl
from migrate.model.waiting import Report
from migrate.observe.clues import end_of_log


def queued(inventory: Inventory, node: NodeId) -> int | Unknown:
    """QueuedReplicaToDirAssignments of that broker; Unknown, never 0, where JMX is not offered."""
    for broker in inventory.brokers:
        if broker.id == node:
            if broker.jmx is None:
                return Unknown("the inventory gives no jmx address for it")
            return jmx.number(broker.jmx, jmx.QUEUED)
    return Unknown("it is not in the inventory")


def reports(
    inventory: Inventory,
    services: ServiceControl,
    later: Mapping[NodeId, int | Unknown],
    choose: Callable[[Sequence[str]], tuple[str, ...]],
) -> dict[NodeId, Report]:
    """A report for each broker in `later`, which holds what a second look still missed.  Never raises for the world."""
    return {
        node: Report(queued(inventory, node), left, end_of_log(services, node, choose)) for node, left in later.items()
    }
