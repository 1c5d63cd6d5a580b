"""Two verdicts a broker: may it restart into KRaft, and can it unfence (in KIP-858's meaning)?

Both gate the second roll.  Kafka 3.9 as shipped holds neither back: a broker unfences without waiting for its
assignments (`BrokerHeartbeatManager`), and a replica whose directory is MIGRATING or UNASSIGNED is not failed over
when its disk dies (`DirectoryId.isOnline`).  Pure; what is unknown is a no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState, count_states
from migrate.model.outcome import Unknown
from migrate.model.stage import DirectoryPolicy
from migrate.model.views import BrokerDisks, KraftView, MetaBroken, Registration
from migrate.model.words import counted, plural

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
    broker: NodeId,
    ledger: Ledger | Unknown,
    disks: DisksByBroker | Unknown,
    kraft: KraftView | Unknown,
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
        yield f"the metadata stands at offset {kraft.offset}, committed is what lies below {kraft.high_watermark}"
    if not isinstance(ledger, Unknown) and not ledger.unknown and ledger.offset != kraft.offset:
        yield f"the ledger stands at offset {ledger.offset}, the metadata at {kraft.offset}"


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
    yield from (f"directory id {found} stands in {times} directories" for found, times in ids.items() if times > 1)


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
