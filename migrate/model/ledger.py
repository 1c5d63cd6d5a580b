"""The ledger: one row a replica, recomputed from the views each time, never carried forward.

`decide` is the rule in plain Python (the reference); `migrate.diff.ledger` computes the same table in Spark, and a
property test holds the two equal.  Meaning of the states: KIP-858 as Apache Kafka 3.9 ships it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED


class ReplicaState(StrEnum):
    """State of one replica; the first that matches, in this order, wins."""

    UNKNOWN = "UNKNOWN"
    TWO_COPIES = "TWO COPIES"
    NOT_ON_DISK = "NOT ON DISK"
    NOT_REGISTERED = "NOT REGISTERED"
    MOVING = "MOVING"
    MIGRATING = "MIGRATING"
    UNASSIGNED = "UNASSIGNED"
    LOST = "LOST"
    MISMATCH = "MISMATCH"
    VERIFIED = "VERIFIED"


RESERVED_STATES: Mapping[str, ReplicaState] = {
    str(MIGRATING): ReplicaState.MIGRATING,
    str(UNASSIGNED): ReplicaState.UNASSIGNED,
    str(LOST): ReplicaState.LOST,
}


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """What the views say of one replica.

    `on_disk` are the directory ids of healthy directories with a current copy ("" for a directory without id).
    `registered` is None while the broker has no registration with log directories; `in_metadata` is None before the
    copy.  `unknown` names the view that is missing, "" for none.  `listed` is False where the two replica lists
    (ZooKeeper's or, after finalize, the metadata's own) do not both name this broker.
    """

    topic: str
    topic_id: str
    partition: int
    broker: int
    on_disk: tuple[str, ...]
    future: bool
    registered: frozenset[str] | None
    in_metadata: str | None
    unknown: str = ""
    listed: bool = True


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One replica and its state; `on_disk` and `in_metadata` are directory ids, "" for none."""

    topic: str
    topic_id: str
    partition: int
    broker: int
    state: ReplicaState
    on_disk: str
    in_metadata: str
    why: str = ""


def decide(facts: ReplicaFacts) -> ReplicaState:
    """The state of one replica: first match wins (pure)."""
    if facts.unknown:
        return ReplicaState.UNKNOWN
    if len(facts.on_disk) > 1:
        return ReplicaState.TWO_COPIES
    if not facts.on_disk:
        return ReplicaState.NOT_ON_DISK
    (here,) = facts.on_disk
    if facts.registered is not None and here not in facts.registered:
        return ReplicaState.NOT_REGISTERED
    if facts.future:
        return ReplicaState.MOVING
    if facts.in_metadata is None:
        return ReplicaState.MIGRATING
    reserved = RESERVED_STATES.get(facts.in_metadata)
    if reserved is not None:
        return reserved
    if facts.in_metadata != here or facts.registered is None or not facts.listed:
        return ReplicaState.MISMATCH
    return ReplicaState.VERIFIED


def row(facts: ReplicaFacts) -> LedgerRow:
    """The ledger's row for these facts."""
    return LedgerRow(
        topic=facts.topic,
        topic_id=facts.topic_id,
        partition=facts.partition,
        broker=facts.broker,
        state=decide(facts),
        on_disk=",".join(facts.on_disk),
        in_metadata=facts.in_metadata or "",
        why=facts.unknown,
    )


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rows, and where they stand: `offset` of the metadata image (-1: before the copy).

    `unknown` names the views, with reasons, that every row needs and that were not seen: rows may be missing then, so
    that no rows is no proof.
    """

    rows: tuple[LedgerRow, ...]
    offset: int
    engine: str  # "pure" or "spark"
    unknown: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Rows by state."""
        return count_states(self.rows)

    def of(self, broker: int) -> tuple[LedgerRow, ...]:
        """The rows of one broker."""
        return tuple(row for row in self.rows if row.broker == broker)


def count_states(rows: Iterable[LedgerRow]) -> dict[str, int]:
    """Rows by state, in the order of the states."""
    found: dict[str, int] = {}
    for entry in rows:
        found[entry.state.value] = found.get(entry.state.value, 0) + 1
    return {state.value: found[state.value] for state in ReplicaState if state.value in found}
