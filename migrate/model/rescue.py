"""What a dead directory leaves hanging, and which directory id frees it: pure, from one look at the cluster.

A replica that the metadata calls MIGRATING or UNASSIGNED, or places in a directory that it is not in, is not failed
over when its disk dies: the controller finds the partitions of an offline directory by that directory's id alone
(`ReplicationControlManager.handleDirectoriesOffline`; `DirectoryId.isOnline` says true of the reserved ids).  Assigning
the true, dead id afterwards fails them over at once.  The id is never guessed: it is proven by what can still be read
of the disk, by the ledger of a run's journal, or by the registration where only one id of it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.ids import MIGRATING, UNASSIGNED, DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory, KraftView, LogDirAnswer, Registration
from migrate.model.world import World

# what a replica is until its broker reports, or `directories assign` does: no wrong values while its disk lives
NOT_YET_REPORTED: Final = ("", str(MIGRATING), str(UNASSIGNED))
Proofs = Mapping[tuple[int, str], tuple[str, str]]  # (broker, path) -> (directory id, where that is written)


class RescueKind(StrEnum):
    DEAD = "its directory is dead"  # the partition hangs until the dead directory's id is in the metadata
    WRONG = "the metadata names another directory"  # its disk is well; a ZooKeeper-mode broker never corrects it


@dataclass(frozen=True, slots=True)
class DeadDirectory:
    """A directory that its broker says is offline; `id` is its true id, or Unknown with what speaks against any."""

    broker: int
    path: str
    id: DirectoryId | Unknown
    proofs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stranded:
    """A replica whose directory in the metadata is not the one it lies in.

    `send` is the id to be sent, or Unknown.  `leads`, `in_isr`: as the metadata has it; `alone`: no other replica.
    """

    topic: str
    topic_id: str
    partition: int
    broker: int
    kind: RescueKind
    in_metadata: str
    send: DirectoryId | Unknown
    leads: bool
    in_isr: bool
    alone: bool

    @property
    def replica(self) -> tuple[str, int]:
        """As AssignReplicasToDirs names it."""
        return self.topic_id, self.partition

    @property
    def hangs(self) -> bool:
        """Does it hold its partition up: it leads from a dead disk, or sits in the ISR and will never catch up?"""
        return self.kind is RescueKind.DEAD and (self.leads or self.in_isr)


@dataclass(frozen=True, slots=True)
class Leaderless:
    """A partition without leader although a replica of its ISR is online again: ElectLeaders PREFERRED brings it."""

    topic: str
    partition: int
    broker: int


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to rescue, at one metadata offset."""

    offset: int
    dead: tuple[DeadDirectory, ...]
    stranded: tuple[Stranded, ...]
    leaderless: tuple[Leaderless, ...]
    unseen: tuple[str, ...] = ()  # what could not be seen, a line per broker whose replicas are not known

    def to_send(self, broker: int) -> dict[str, tuple[tuple[str, int], ...]]:
        """Directory id -> replicas of that broker, what is proven alone."""
        found: dict[str, dict[tuple[str, int], None]] = {}
        for row in self.stranded:
            if row.broker == broker and not isinstance(row.send, Unknown):
                found.setdefault(str(row.send), {})[row.replica] = None
        return {directory: tuple(rows) for directory, rows in sorted(found.items())}

    @property
    def brokers(self) -> tuple[int, ...]:
        """Those for which something can be sent."""
        return tuple(sorted({row.broker for row in self.stranded if not isinstance(row.send, Unknown)}))


def find(world: World, proofs: Proofs) -> Found | Unknown:
    """All that is stranded, from one look: the metadata, each broker's disks and its DescribeLogDirs answer."""
    if isinstance(world.kraft, Unknown):
        return Unknown(f"the metadata cannot be read: {world.kraft.reason}")
    if not world.kraft.committed:
        return Unknown("the metadata's tail is not proven to be committed")
    if isinstance(world.disks, Unknown):
        return Unknown(f"the disks cannot be seen: {world.disks.reason}")
    if isinstance(world.live, Unknown):
        return Unknown(f"the brokers were not asked: {world.live.reason}")
    dead: list[DeadDirectory] = []
    stranded: list[Stranded] = []
    unseen: list[str] = []
    for node, registration in sorted(world.kraft.brokers.items()):
        if registration.fenced:
            continue  # its replicas lead nothing and are in no ISR: nothing hangs on it
        disks = world.disks.get(node, Unknown("its disks were not looked at"))
        said = world.live.log_dirs.get(node, Unknown("it was not asked"))
        if isinstance(disks, Unknown) or isinstance(said, Unknown):
            reason = disks if isinstance(disks, Unknown) else said
            assert isinstance(reason, Unknown)
            unseen.append(f"broker {int(node)}: {reason.reason}")
            continue
        here = _dead(registration, disks, said, proofs)
        dead += here
        stranded += _stranded(world.kraft, registration, disks, here)
    return Found(world.kraft.offset, tuple(dead), tuple(stranded), tuple(leaderless(world.kraft)), tuple(unseen))


# -- directories -------------------------------------------------------------------------------------------------
def _dead(
    registration: Registration, disks: BrokerDisks, said: tuple[LogDirAnswer, ...], proofs: Proofs
) -> list[DeadDirectory]:
    """The directories that the broker itself calls offline; it may well write to others that we find unwell."""
    offline = {answer.path for answer in said if answer.error}
    lost = [directory for directory in disks.directories if directory.path in offline]
    return identify(registration, disks, lost, proofs)


def identify(
    registration: Registration, disks: BrokerDisks, lost: Sequence[Directory], proofs: Proofs
) -> list[DeadDirectory]:
    """The ids of the broker's `lost` directories, with what proves them."""
    whole = {directory.id for directory in disks.directories if directory not in lost}
    registered = registration.at_start | registration.log_dirs
    gone = registered - {identity for identity in whole if identity is not None}
    found = []
    for directory in lost:
        sources: dict[str, str] = {}
        if directory.id is not None:
            sources["meta.properties on the disk"] = str(directory.id)
        if (kept := proofs.get((int(registration.id), directory.path))) is not None:
            sources[kept[1]] = kept[0]
        if len(lost) == len(gone) == 1:
            sources[f"the registration at offset {registration.epoch}"] = str(next(iter(gone)))
        # what the broker registered with is the truth: a disk may have been replaced under it, a journal may be old
        now = {source: identity for source, identity in sources.items() if identity in registered}
        others = {str(one) for one in whole if one}
        found.append(_proven(int(registration.id), directory.path, now or sources, others))
    return found


def _proven(broker: int, path: str, sources: Mapping[str, str], others: set[str]) -> DeadDirectory:
    """The one id that all sources name."""
    ids = set(sources.values())
    told = tuple(f"{identity} by {source}" for source, identity in sources.items())
    if not ids:
        reason = "no journal, no registration and nothing on the disk says which id it had"
        return DeadDirectory(broker, path, Unknown(reason))
    if len(ids) > 1:
        return DeadDirectory(broker, path, Unknown(f"its id is contradictory: {'; '.join(told)}"), told)
    (only,) = ids
    if only in others:
        return DeadDirectory(broker, path, Unknown(f"{only} is the id of another directory of the broker"), told)
    if DirectoryId(only).reserved:
        return DeadDirectory(broker, path, Unknown(f"{only} is a reserved id"), told)
    return DeadDirectory(broker, path, DirectoryId(only), told)


# -- replicas ----------------------------------------------------------------------------------------------------
def _stranded(
    kraft: KraftView, registration: Registration, disks: BrokerDisks, dead: list[DeadDirectory]
) -> Iterator[Stranded]:
    broker = int(registration.id)
    places = _places(disks)
    by_path = {entry.path: entry for entry in dead}
    rows = kraft.partitions
    for index in rows.rows_of(broker):
        named = rows.directory_of(index, rows.replicas[index].index(broker))
        key = (rows.topic[index], rows.topic_id[index], rows.partition[index])
        told = _true_directory(places.get(key, ()), by_path, disks, registration)
        if told is None or str(told[1]) == named:
            continue
        kind, identity = told
        if kind is RescueKind.WRONG and named in NOT_YET_REPORTED:
            continue
        yield Stranded(
            *key,
            broker,
            kind,
            named,
            identity,
            leads=rows.leader[index] == broker,
            in_isr=broker in rows.isr[index],
            alone=len(rows.replicas[index]) == 1,
        )


def _places(disks: BrokerDisks) -> dict[tuple[str, str, int], tuple[Directory, ...]]:
    """(topic, topic id, partition) -> directories with a current copy, also broken ones as far as they can be read."""
    found: dict[tuple[str, str, int], tuple[Directory, ...]] = {}
    for directory in disks.directories:
        replicas = directory.replicas
        for topic, partition, topic_id, kind in zip(
            replicas.topic, replicas.partition, replicas.topic_id, replicas.kind, strict=True
        ):
            if kind == "current":
                key = (topic, topic_id, partition)
                found[key] = (*found.get(key, ()), directory)
    return found


def _true_directory(
    here: tuple[Directory, ...], dead: Mapping[str, DeadDirectory], disks: BrokerDisks, registration: Registration
) -> tuple[RescueKind, DirectoryId | Unknown] | None:
    """Where a replica is, and why that is to be sent; None where nothing is to be said of it.

    A copy in a directory that lives wins: there the broker itself uses it.  Otherwise it is in a dead one: in the one
    that can still be read, or in the only one there is.
    """
    alive = [directory for directory in here if directory.path not in dead]
    if len(alive) == 1 and alive[0].id is not None and alive[0].id in registration.log_dirs and alive[0].healthy:
        return RescueKind.WRONG, alive[0].id
    if alive or not dead:
        return None
    if any(directory.unproven or directory.problem for directory in disks.directories if directory.path not in dead):
        return RescueKind.DEAD, Unknown("another directory of the broker cannot be read: the replica may be there")
    if len(seen := {directory.path for directory in here}) == 1:
        return RescueKind.DEAD, dead[seen.pop()].id
    unreadable = {directory.path for directory in disks.directories if directory.problem}
    blind = [entry for path, entry in dead.items() if path in unreadable]
    if len(blind) == 1:
        return RescueKind.DEAD, blind[0].id
    return RescueKind.DEAD, Unknown(f"{len(dead)} directories are dead, and nothing says which one it was in")


# -- elections ---------------------------------------------------------------------------------------------------
def leaderless(kraft: KraftView) -> Iterator[Leaderless]:
    """Partitions without leader with a replica in the ISR that the controller could elect: unfenced, directory online.

    Assigning the right directory does not bring such a leader back; ElectLeaders PREFERRED does, for the first of the
    replica list alone, and the leader balance of every five minutes.
    """
    rows = kraft.partitions
    for index, leader in enumerate(rows.leader):
        if leader >= 0 or not rows.replicas[index]:
            continue
        preferred = rows.replicas[index][0]
        registration = kraft.brokers.get(NodeId(preferred))
        directory = rows.directory_of(index, 0)
        if registration is None or registration.fenced or preferred not in rows.isr[index]:
            continue
        if directory in registration.log_dirs:
            yield Leaderless(rows.topic[index], rows.partition[index], preferred)
