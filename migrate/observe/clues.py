"""Looks beyond a World where something waits: who answers at an address, the end of a log, a queue over JMX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.properties import log_line
from migrate.java import jmx
from migrate.kafka import connection as ask_node
from migrate.kafka.connection import Connection, Limits
from migrate.model.findings import Clues, Report, Wanted
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, ServiceControl
from migrate.model.views import NodeAnswer

LIMITS: Final = Limits(connect_seconds=0.5, answer_seconds=0.5)
THREADS: Final = 12


def answer_at(address: str) -> NodeAnswer | Unknown:
    """What answers there.  Never a credential: nobody has proven that the address is a node of this cluster."""
    try:
        with Connection(address, Access(), LIMITS) as connection:
            return ask_node.answer(connection)
    except MigrateError as error:
        return Unknown(str(error))


def gather(wanted: Wanted, services: ServiceControl, choose: Callable[[Sequence[str]], tuple[str, ...]]) -> Clues:
    """What was asked for; `choose` picks the lines of a log that are kept.  Never raises for what the world does."""
    if not wanted.addresses and not wanted.logs:
        return Clues()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="clue") as pool:
        answers = {address: pool.submit(answer_at, address) for address in wanted.addresses}
        logs = {node: end_of_log(services, node, choose) for node in wanted.logs}
        return Clues({address: future.result() for address, future in answers.items()}, logs)


def end_of_log(
    services: ServiceControl, node: NodeId, choose: Callable[[Sequence[str]], tuple[str, ...]]
) -> tuple[str, ...] | Unknown:
    """The lines that `choose` picks of the end of a node's log; Unknown where it cannot be read."""
    try:
        return tuple(map(log_line, choose(services.last_words(node, LOG_LINES))))
    except (MigrateError, OSError) as error:
        return Unknown(str(error))


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
