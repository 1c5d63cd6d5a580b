"""The ledger, one row per replica, and two verdicts per broker: may it restart into KRaft, and can it unfence?  Pure.

The ledger is recomputed from the views each time, never carried forward.  `decide` is the one rule.  Two joins bring
the views together for it: `migrate.model.facts` in plain Python, and `migrate.diff.ledger` in Spark, which sends this
module's functions to its executors; a property test holds the two equal.  Meaning of the states: KIP-858 as Apache
Kafka 3.9 ships it.

Both verdicts gate the second roll.  Kafka 3.9 as shipped holds neither back: a broker unfences without waiting for its
assignments (`BrokerHeartbeatManager`), and a replica whose directory is MIGRATING or UNASSIGNED is not failed over
when its disk dies (`DirectoryId.isOnline`).  What is unknown is a no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import DirectoryPolicy
from migrate.model.views import BrokerDisks, KraftView, MetaBroken, Registration
from migrate.model.words import counted, plural


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


NO_ID: Final = "zookeeper: the topic has no topic_id"
UNREADABLE: Final = "disks: a partition.metadata cannot be read"


def facts_of(
    topic: str,
    topic_id: str,
    partition: int,
    broker: int,
    in_zookeeper: bool,  # the lists of replicas: does ZooKeeper's name the broker
    directory: str | None,  # the metadata's, "" where that names none; None: the broker is not in its list
    copies: Iterable[Sequence[str]],  # (topic id, directory id) of current folders in healthy directories, in order
    future: bool,
    unreadable: bool,
    registered: Collection[str] | None,
    blind: str,  # the view that is missing for all of this broker's rows
    metadata_speaks: bool,
    finalized: bool,
) -> ReplicaFacts:
    """The facts of one replica, of what the joined views have for it (pure)."""
    return ReplicaFacts(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        broker=broker,
        on_disk=tuple(here for found, here in copies if found and found == topic_id),
        future=future,
        registered=None if registered is None else frozenset(registered),
        in_metadata=(directory or "") if metadata_speaks else None,
        unknown=blind or ("" if topic_id else NO_ID) or (UNREADABLE if unreadable else ""),
        listed=(finalized or in_zookeeper) and (not metadata_speaks or directory is not None),
    )


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
    """All rows, and where they stand."""

    rows: tuple[LedgerRow, ...]
    offset: int  # of the metadata image; -1: before the copy
    engine: str  # "pure" or "spark"
    unknown: tuple[str, ...] = ()  # views that every row needs and nobody saw, with reasons: rows may be missing then

    def counts(self) -> dict[str, int]:
        return count_states(self.rows)

    def of(self, broker: int) -> tuple[LedgerRow, ...]:
        return tuple(row for row in self.rows if row.broker == broker)


def count_states(rows: Iterable[LedgerRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in rows:
        found[entry.state.value] = found.get(entry.state.value, 0) + 1
    return {state.value: found[state.value] for state in ReplicaState if state.value in found}


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """A ledger in numbers: `counts` have all replicas, `rows` those that are not VERIFIED, or the first of them."""

    offset: int
    counts: Mapping[NodeId, Mapping[ReplicaState, int]]
    rows: tuple[LedgerRow, ...]
    unknown: tuple[str, ...] = ()

    @property
    def states(self) -> dict[str, int]:
        """Replicas by state, of all brokers."""
        return self._states(self.counts.values())

    def of(self, broker: NodeId) -> dict[str, int]:
        """Replicas by state, of that broker."""
        return self._states([self.counts[broker]])

    @staticmethod
    def _states(counts: Collection[Mapping[ReplicaState, int]]) -> dict[str, int]:
        numbers = {state.value: sum(states.get(state, 0) for states in counts) for state in ReplicaState}
        return {state: number for state, number in numbers.items() if number}

    @property
    def replicas(self) -> int:
        return sum(self.states.values())

    @property
    def unproven(self) -> int:
        """How many replicas are not VERIFIED."""
        return self.replicas - self.states.get(ReplicaState.VERIFIED.value, 0)


DisksByBroker = Mapping[NodeId, BrokerDisks | Unknown]

# States in which a replica has no single current copy in a registered directory.
WITHOUT_ONE_COPY: Final = (
    ReplicaState.UNKNOWN,
    ReplicaState.TWO_COPIES,
    ReplicaState.NOT_ON_DISK,
    ReplicaState.NOT_REGISTERED,
)


@dataclass(frozen=True, slots=True)
class Yes:
    """The broker may; `evidence` says what was seen."""

    evidence: str = ""


@dataclass(frozen=True, slots=True)
class No:
    """The broker may not, because of `reasons`; `rows` are the replicas that say no."""

    reasons: tuple[str, ...]
    rows: tuple[LedgerRow, ...] = field(default=())


Verdict = Yes | No


def may_restart(
    broker: NodeId,
    policy: DirectoryPolicy,
    ledger: Ledger | Unknown,
    disks: DisksByBroker | Unknown,
    kraft: KraftView | Unknown,
) -> Verdict:
    """May the broker restart into KRaft?

    Every directory healthy and registered, one current copy of each replica; with policy `drive` every row VERIFIED
    too.  A replica that the metadata does not give to this broker is a no: a KRaft broker renames such a folder
    `-stray` as it loads it (`LogManager`, `isStrayKraftReplica`).
    """
    seen = _see(broker, ledger, disks, kraft)
    if isinstance(seen, No):
        return seen
    reasons = [*_broken(seen.disks), *_not_registered(seen.disks, seen.registration)]
    copies = [entry for entry in seen.rows if entry.state in WITHOUT_ONE_COPY]
    foreign = [entry for entry in seen.rows if entry.state not in WITHOUT_ONE_COPY and not entry.in_metadata]
    unproven = [entry for entry in seen.rows if entry.state is not ReplicaState.VERIFIED]
    if copies:
        reasons.append(f"replicas without one current copy in a registered directory: {_states(copies)}")
    if foreign:
        reasons.append(f"{plural(len(foreign), 'replica')} that the metadata does not give to broker {broker}")
    if policy is DirectoryPolicy.DRIVE and unproven:
        reasons.append(f"policy drive wants every replica VERIFIED: {_states(unproven)}")
    rows = unproven if policy is DirectoryPolicy.DRIVE else [*copies, *foreign]
    return _verdict(reasons, rows, seen)


def can_unfence(
    broker: NodeId, ledger: Ledger | Unknown, disks: DisksByBroker | Unknown, kraft: KraftView | Unknown
) -> Verdict:
    """Can the broker unfence: registered directories = directories on disk, as sets, and every row VERIFIED?"""
    seen = _see(broker, ledger, disks, kraft)
    if isinstance(seen, No):
        return seen
    reasons = [*_broken(seen.disks), *_not_registered(seen.disks, seen.registration)]
    gone = seen.registration.log_dirs - {directory.id for directory in seen.disks.directories}
    reasons.extend(f"directory {directory} is registered and on no disk" for directory in sorted(gone))
    unproven = [entry for entry in seen.rows if entry.state is not ReplicaState.VERIFIED]
    if unproven:
        reasons.append(f"replicas that are not VERIFIED: {_states(unproven)}")
    return _verdict(reasons, unproven, seen)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Everything that a verdict needs, and nothing of it unknown."""

    rows: tuple[LedgerRow, ...]
    disks: BrokerDisks
    registration: Registration


def _see(
    broker: NodeId, ledger: Ledger | Unknown, disks: DisksByBroker | Unknown, kraft: KraftView | Unknown
) -> _Seen | No:
    """The broker's part of each view, or why there can be no verdict but no."""
    reasons = list(_blind(ledger, kraft))
    found = disks if isinstance(disks, Unknown) else disks.get(broker, Unknown("it was not looked at"))
    if isinstance(found, Unknown):
        reasons.append(f"the disks of broker {broker} are unknown: {found.reason}")
    registration = None if isinstance(kraft, Unknown) else kraft.brokers.get(broker)
    if registration is None and not isinstance(kraft, Unknown):
        reasons.append(f"broker {broker} has no registration in the metadata")
    rows = () if isinstance(ledger, Unknown) else ledger.of(broker)
    if reasons:
        unsound = tuple(entry for entry in rows if entry.state is not ReplicaState.VERIFIED)
        return No(tuple(reasons), unsound)
    assert not isinstance(found, Unknown)
    assert registration is not None
    return _Seen(rows, found, registration)


def _blind(ledger: Ledger | Unknown, kraft: KraftView | Unknown) -> Iterator[str]:
    """What makes ledger and metadata no ground for a verdict."""
    if isinstance(ledger, Unknown):
        yield f"the ledger is unknown: {ledger.reason}"
    else:
        yield from (f"the ledger was made without a view: {reason}" for reason in ledger.unknown)
    if isinstance(kraft, Unknown):
        yield f"the metadata is unknown: {kraft.reason}"
        return
    if isinstance(kraft.high_watermark, Unknown):
        yield f"it is unknown whether the metadata is committed: {kraft.high_watermark.reason}"
    elif not kraft.committed:
        yield f"the metadata is at offset {kraft.offset}, committed is what is below {kraft.high_watermark}"
    if not isinstance(ledger, Unknown) and not ledger.unknown and ledger.offset != kraft.offset:
        yield f"the ledger is at offset {ledger.offset}, the metadata at {kraft.offset}"


def _broken(disks: BrokerDisks) -> Iterator[str]:
    """Directories that a broker could not use, or could not tell apart."""
    if not disks.directories:
        yield f"broker {disks.broker} shows no log directory"
    for directory in disks.directories:
        if directory.problem:
            yield f"directory {directory.path} is broken: {directory.problem}"
        elif directory.unproven:
            yield f"directory {directory.path} is not known to be healthy: {directory.unproven}"
        elif isinstance(directory.meta, MetaBroken):
            yield f"directory {directory.path} has a broken meta.properties: {directory.meta.reason}"
    ids = Counter(directory.id for directory in disks.directories if directory.id is not None)
    yield from (f"directory id {found} is in {times} directories" for found, times in ids.items() if times > 1)


def _not_registered(disks: BrokerDisks, registration: Registration) -> Iterator[str]:
    for directory in disks.directories:
        if directory.id is None:
            yield f"directory {directory.path} has no directory.id"
        elif directory.id not in registration.log_dirs:
            yield f"directory {directory.path} ({directory.id}) is not among the broker's registered directories"


def _states(rows: list[LedgerRow]) -> str:
    return counted(count_states(rows))


def _verdict(reasons: list[str], rows: list[LedgerRow], seen: _Seen) -> Verdict:
    if reasons:
        return No(tuple(reasons), tuple(rows))
    return Yes(
        f"{plural(len(seen.disks.directories), 'directory', 'directories')}, {plural(len(seen.rows), 'replica')}: "
        f"{_states(list(seen.rows))}"
    )
