"""`directories verify`: the ledger, replica by replica."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, observing, output_option
from migrate.cli.screen import say, say_page
from migrate.errors import NotVisible
from migrate.model.words import counted, plural

if TYPE_CHECKING:
    from migrate.model.ledger import Ledger, LedgerRow
    from migrate.model.world import World
    from migrate.observe.world import ClusterObserver

SHOWN: Final = 50
AGAIN_SECONDS: Final = 1.0


def _spelled(identity: str) -> str:
    """A directory's id; the three that are none, by the names that Kafka's DirectoryId gives them."""
    from migrate.model import ids

    names = {ids.MIGRATING: "MIGRATING", ids.UNASSIGNED: "UNASSIGNED", ids.LOST: "LOST"}
    return {str(key): name for key, name in names.items()}.get(identity, identity or "nothing")


def grouped(rows: Sequence[LedgerRow], world: World) -> Iterator[tuple[str, LedgerRow]]:
    """The rows, those with the same thing to do together, which stands with the last of them; "" with the others."""
    from migrate.model.mends import mend_of

    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        mend = mend_of(row, world)
        groups.setdefault("" if mend is None else mend.words, []).append(row)
    for words, found in groups.items():
        for row in found:
            yield words if row is found[-1] else "", row


@click.command()
@cluster_options
@evidence_options
@output_option
def verify(playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence, output: str) -> int:
    """The ledger, replica by replica: metadata, registration and disk at one committed offset, and DescribeLogDirs.

    Each replica that is not VERIFIED stands with its state, and with what to do; a full ISR says nothing about it.
    A difference that is gone in a second look was motion and is not told.

    Exit code 0: every replica is VERIFIED, and every broker tells of its directories what lies on its disks; 2: not.
    """
    from migrate.model.ledger import ReplicaState
    from migrate.model.outcome import Unknown

    found, loaded = load_target(playbook, inventory, evidence)
    with observing(found, loaded, evidence=evidence) as observer:
        world, told = settled(observer, live=evidence.live)
    ledger = world.ledger
    if isinstance(ledger, Unknown):
        raise NotVisible(f"the ledger is unknown: {ledger.reason}", where=found.name)
    wrong = [row for row in ledger.rows if row.state is not ReplicaState.VERIFIED]
    if output == "json":
        say_page(json.dumps(as_values(ledger, world, told)))
    else:
        for line in as_lines(ledger, world, wrong, told):
            say(line)
    return EXIT_CHANGES if wrong or told or not ledger.rows else EXIT_OK


def settled(observer: ClusterObserver, *, live: bool) -> tuple[World, tuple[str, ...]]:
    """A look, and what brokers tell otherwise than their disks; where they do, what a second look tells again.

    What is being created or deleted is counted by one side first.
    """
    from migrate.model.mends import told_otherwise
    from migrate.model.world import Need
    from migrate.run.clock import SystemClock

    needs = frozenset({Need.LEDGER, Need.LIVE})
    world = observer.observe(needs, {})
    told = tuple(told_otherwise(world))
    if not told or not live:
        return world, told
    SystemClock().sleep(AGAIN_SECONDS)
    again = observer.observe(needs, {})
    return again, tuple(line for line in told_otherwise(again) if line in told)


def as_values(ledger: Ledger, world: World, told: Sequence[str]) -> dict[str, Any]:
    """The answer as plain values (schema version 1)."""
    from migrate.model.mends import mend_of

    rows = [
        {
            "topic": row.topic,
            "topic_id": row.topic_id,
            "partition": row.partition,
            "broker": row.broker,
            "state": str(row.state),
            "on_disk": row.on_disk,
            "in_metadata": row.in_metadata,
            "why": row.why,
            "mend": "" if (mend := mend_of(row, world)) is None else mend.words,
            "send": "" if mend is None else mend.send,
        }
        for row in ledger.rows
    ]
    return {"schema": 1, "offset": ledger.offset, "counts": ledger.counts(), "replicas": rows, "brokers": told}


def as_lines(ledger: Ledger, world: World, wrong: Sequence[LedgerRow], told: Sequence[str]) -> Iterator[str]:
    """The answer for a person: each replica that is not VERIFIED, what to do, and the sum."""
    for words, row in grouped(wrong[:SHOWN], world):
        why = f" ({row.why})" if row.why else ""
        yield (
            f"{row.state}  {row.topic}-{row.partition} on broker {row.broker}: on disk {row.on_disk or 'nowhere'}, "
            f"in the metadata {_spelled(row.in_metadata)}{why}"
        )
        if words:
            yield f"    {words}"
    if len(wrong) > SHOWN:
        yield f"... and {len(wrong) - SHOWN} more (--output json has them all)"
    yield from told
    replicas = plural(len(ledger.rows), "replica")
    yield f"{replicas} at metadata offset {ledger.offset}: {counted(ledger.counts())}"
