"""KRaft brokers that do not report their directories: rows that stay MIGRATING or UNASSIGNED after a restart.

A broker's first request after its KRaft start is refused with STALE_BROKER_EPOCH, because the image that it takes the
epoch from still holds its ZooKeeper life (seen, every time); it sends again 0.2 s later.  So nothing is called a stall
that a second look finds further on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from migrate.checks.registry import shown
from migrate.checks.stuck.seen import explanation
from migrate.model.findings import Clues, Explanation, Report
from migrate.model.ids import NodeId
from migrate.model.ledger import LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView
from migrate.model.words import plural
from migrate.model.world import World

CODE: Final = "S-STUCK-70"
UNREPORTED: Final = (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED)
SENT: Final = re.compile(r"maybeSendAssignments: sending (\d+) assignments")
FAILED: Final = re.compile(r"handleResponse: (\d+) assignments failed; global error: (?:[\w-]+ error: )?(\w+)")
TIME: Final = re.compile(r"^\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
STALE: Final = "STALE_BROKER_EPOCH"
KEPT: Final = 40


def telling(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines of a broker's log about its own AssignReplicasToDirs, oldest first."""
    found = [shown(line.strip()) for line in lines if SENT.search(line) or FAILED.search(line)]
    return tuple(found[-KEPT:])


def unreported(world: World, kraft: KraftView) -> dict[int, list[LedgerRow]]:
    """Broker in KRaft mode -> rows that it should have reported: it registered the directory on disk."""
    if isinstance(world.ledger, Unknown):
        return {}
    found: dict[int, list[LedgerRow]] = {}
    for row in world.ledger.rows:
        entry = kraft.brokers.get(NodeId(row.broker))
        if entry is not None and not entry.migrating and row.state in UNREPORTED and row.on_disk in entry.log_dirs:
            found.setdefault(row.broker, []).append(row)
    return found


def not_reported(world: World, clues: Clues, kraft: KraftView) -> Iterator[Explanation]:
    """Brokers that stand still; one that a second look finds further on only needs its time."""
    for broker, rows in sorted(unreported(world, kraft).items()):
        report = clues.reports.get(NodeId(broker))
        if report is not None and not isinstance(report.later, Unknown) and report.later < len(rows):
            continue
        row, owner = rows[0], f"broker {broker}"
        first = f"{row.topic}-{row.partition} ({row.state.value})"
        waits = f"{owner} to report the directories of {plural(len(rows), 'replica')}, {first} among them"
        why = Unknown("its log and its queue were not looked at") if report is None else cause(report)
        shown_of = () if report is None else evidence(broker, report)
        step = f"see that {owner} reaches the active controller; `directories assign {broker} --yes` sends the same. "
        step += "Until then do not restart another broker: "
        step += "a disk that dies now takes these replicas down without a failover"
        yield explanation(CODE, waits, why, *shown_of, owner=owner, nodes=[broker], next_step=step)


def cause(report: Report) -> str | Unknown:
    """By the queue where it is offered, and by the last lines of its log."""
    if report.queued == 0:
        return "its queue is empty: it considers them reported; a restart of the broker queues them again"
    if isinstance(report.log, Unknown):
        return Unknown(f"its log cannot be read: {report.log.reason}")
    failures = Counter(match[2] for line in report.log if (match := FAILED.search(line)))
    counts = ", ".join(f"{times} times {error}" for error, times in sorted(failures.items()))
    if not report.log:
        return "it has sent no request: there is none in the end of its log"
    last = report.log[-1]
    since = f" at {match[1]}" if (match := TIME.match(last)) else ""
    if (sent := SENT.search(last)) is not None:
        refused = f", after {counts}" if counts else ""
        return f"it sent {sent[1]}{since} and has no answer{refused}: its way to the active controller holds it up"
    found = FAILED.search(last)
    error = "an error" if found is None else found[2]
    if error == STALE:
        return f"the controllers refuse its epoch again and again ({counts}, the last{since}): it must restart"
    return f"the controllers answer with {error} ({counts}, the last{since})"


def evidence(broker: int, report: Report) -> tuple[str, ...]:
    """The queue, and the log's last lines about it."""
    queue = report.queued
    said = f"unknown: {queue.reason}" if isinstance(queue, Unknown) else str(queue)
    lines: Sequence[str] = () if isinstance(report.log, Unknown) else report.log[-3:]
    return (
        f"QueuedReplicaToDirAssignments of broker {broker} is {said}",
        *(f"log of node {broker}: {line}" for line in lines),
    )
