"""Looks beyond a World where something waits: who answers at an address, what the end of a log says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from migrate.errors import MigrateError
from migrate.kafka import connection as ask_node
from migrate.kafka.connection import Connection, Limits
from migrate.model.ids import NodeId
from migrate.model.inventory import Access
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, ServiceControl
from migrate.model.views import NodeAnswer
from migrate.model.waiting import Clues, Wanted

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
        return choose(services.last_words(node, LOG_LINES))
    except (MigrateError, OSError) as error:
        return Unknown(str(error))
