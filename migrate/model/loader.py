"""What Kafka's loader does with the replica folders of a broker, foretold from a listing and the metadata (pure).

A KRaft broker decides at its start, folder by folder (`LogManager.loadLog`, `isStrayKraftReplica`,
`recoverAbandonedFutureLogs`; KAFKA-15605, 16082, 16814).  A broker in migration mode decides when the first full
LeaderAndIsr request of a KRaft controller arrives (`LogManager.findStrayReplicas`, `ReplicaManager.updateStrayLogs`).
Folders that are simply loaded make no object: they come by the hundred thousand.

A move between directories (AlterReplicaLogDirs) is a future copy in one that follows the current one in another; the
broker swaps them when it has caught up.  A KRaft broker that starts in between makes the future copy the current one
where the metadata names its directory, whole or not (KAFKA-16082, `LogManager.recoverAbandonedFutureLogs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.model.columns import UNREADABLE_TOPIC_ID, PartitionColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory
from migrate.model.words import plural

CURRENT, FUTURE, DELETED, STRAY = "current", "future", "deleted", "stray"
_Logs = dict[tuple[str, int], list[tuple[Directory, int]]]  # (topic, partition) -> places
_StrayRule = Callable[[Directory, int], str]  # why the folder at that place is stray, "" for not


class Loading(StrEnum):
    KRAFT_START = "KRaft start"
    FULL_REQUEST = "full LeaderAndIsr request"  # of a KRaft controller, to a broker in migration mode


class Fate(StrEnum):
    """What becomes of a folder that is not just loaded."""

    STRAY = "renamed -stray"
    PROMOTED = "promoted"  # a future copy becomes the current one, unfinished or not
    REPLACED = "deleted for the future copy"
    FUTURE = "kept as a future copy"
    DELETED = "deleted"  # it was marked -delete before
    SET_ASIDE = "left aside"  # it was marked -stray before
    DUPLICATE = "stops the broker"  # one partition in two folders that want one name
    UNREADABLE = "fails its directory"  # partition.metadata cannot be read: the directory fails, or the whole start
    UNTOUCHED = "not loaded"  # its directory is broken


@dataclass(frozen=True, slots=True)
class FolderFate:
    """One folder and what becomes of it; `size` in bytes of its segments, `why` for people."""

    directory: str
    folder: str
    topic: str
    partition: int
    topic_id: str
    size: int
    fate: Fate
    why: str

    @property
    def path(self) -> str:
        return f"{self.directory.rstrip('/')}/{self.folder}"


@dataclass(frozen=True, slots=True)
class Assigned:
    """What the metadata, or ZooKeeper, assigns to one broker."""

    directories: dict[tuple[str, int], str]  # (topic id, partition) -> the metadata's directory, "" for none
    names: dict[tuple[str, int], str]  # (topic, partition) -> topic id, "" where ZooKeeper has none


@dataclass(frozen=True, slots=True)
class Foretold:
    """The fates of one broker's folders, all but those that are loaded as they are.

    `refuses` says why the broker would not start, or the request would fail; "" for no reason.  Where it does not
    start, the other fates may or may not have come true before: Kafka loads in several threads.
    """

    fates: tuple[FolderFate, ...]
    loaded: int
    refuses: str = ""

    def of(self, *wanted: Fate) -> tuple[FolderFate, ...]:
        return tuple(entry for entry in self.fates if entry.fate in wanted)

    @property
    def strays(self) -> tuple[FolderFate, ...]:
        return self.of(Fate.STRAY)

    @property
    def stray_bytes(self) -> int:
        return sum(entry.size for entry in self.strays)


def all_assigned(partitions: PartitionColumns) -> dict[int, Assigned]:
    """What is assigned to each broker that has a replica, in one pass over a view of the metadata or of ZooKeeper."""
    found: dict[int, Assigned] = {}
    for index, replicas in enumerate(partitions.replicas):
        for place in range(len(replicas) - 1, -1, -1):  # of a broker that is named twice the first place counts
            into, topic_id = found.setdefault(replicas[place], Assigned({}, {})), partitions.topic_id[index]
            into.names[partitions.topic[index], partitions.partition[index]] = topic_id
            if topic_id:
                into.directories[topic_id, partitions.partition[index]] = partitions.directory_of(index, place)
    return found


def foretell(disks: BrokerDisks, assigned: Assigned, loading: Loading = Loading.KRAFT_START) -> Foretold:
    foreteller = _Foreteller(disks, assigned)
    return foreteller.kraft_start() if loading is Loading.KRAFT_START else foreteller.full_request()


class _Foreteller:
    def __init__(self, disks: BrokerDisks, assigned: Assigned) -> None:
        self._disks = disks
        self._assigned = assigned
        self._fates: list[FolderFate] = []
        self._loaded = 0
        self._refuses = ""

    # -- the two deciders ----------------------------------------------------------------------------------------
    def kraft_start(self) -> Foretold:
        """By topic id: stray, current or future; then abandoned future copies are promoted."""
        current, future = self._logs(self._stray_at_start)
        self._promote(current, future)
        return self._told(current, future)

    def full_request(self) -> Foretold:
        """By name: a partition that is not in the request, or with another topic id, and its future copy with it."""
        current, future = self._logs(lambda _directory, _index: "")
        strays: dict[tuple[str, int], str] = {}
        for key, places in (*current.items(), *future.items()):
            for directory, index in places:
                if why := self._stray_by_name(key, directory.replicas.topic_id[index]):
                    strays.setdefault(key, why)
        twice = {key for logs in (current, future) for key, places in logs.items() if len(places) > 1}
        if not self._refuses and not twice:  # else nothing gets as far as that
            for key, why in strays.items():
                for directory, index in (*current.pop(key, []), *future.pop(key, [])):
                    self._add(directory, index, Fate.STRAY, why)
        return self._told(current, future)

    # -- loading -------------------------------------------------------------------------------------------------
    def _logs(self, stray: _StrayRule) -> tuple[_Logs, _Logs]:
        """Current and future logs by (topic, partition); all others have their fate already."""
        found: dict[str, _Logs] = {CURRENT: {}, FUTURE: {}}
        for directory in self._disks.directories:
            rows = directory.replicas
            for index, kind in enumerate(rows.kind):
                if directory.problem:
                    self._add(directory, index, Fate.UNTOUCHED, f"the directory {directory.problem}")
                elif rows.topic_id[index] == UNREADABLE_TOPIC_ID:
                    self._add(directory, index, Fate.UNREADABLE, "its partition.metadata cannot be read")
                    self._refuse(f"{directory.path}/{rows.folder[index]}/partition.metadata cannot be read")
                elif kind == DELETED:
                    self._add(directory, index, Fate.DELETED, "it was marked for deletion")
                elif kind == STRAY:
                    self._add(directory, index, Fate.SET_ASIDE, "it was set aside before")
                elif why := stray(directory, index):
                    self._add(directory, index, Fate.STRAY, why)
                else:
                    key = (rows.topic[index], rows.partition[index])
                    found[kind].setdefault(key, []).append((directory, index))
        return found[CURRENT], found[FUTURE]

    def _stray_at_start(self, directory: Directory, index: int) -> str:
        rows = directory.replicas
        topic_id = rows.topic_id[index]
        if not topic_id:
            return "it has no partition.metadata"
        if (topic_id, rows.partition[index]) in self._assigned.directories:
            return ""
        return self._unassigned((rows.topic[index], rows.partition[index]), topic_id)

    def _stray_by_name(self, key: tuple[str, int], topic_id: str) -> str:
        if not topic_id:
            self._refuse(f"{key[0]}-{key[1]} has no topic id: a broker in migration mode throws on it")
            return ""
        return "" if self._assigned.names.get(key) == topic_id else self._unassigned(key, topic_id)

    def _unassigned(self, key: tuple[str, int], topic_id: str) -> str:
        known = self._assigned.names.get(key)
        if known is None:
            return "it is not assigned to this broker"
        return f"its topic id is {topic_id}, the topic's is {known or 'not known'}"

    def _promote(self, current: _Logs, future: _Logs) -> None:
        """A future copy in the directory that the metadata names becomes the current one (KAFKA-16082)."""
        for key in list(future):
            (directory, index), *others = future[key]
            topic_id = directory.replicas.topic_id[index]
            named = self._assigned.directories.get((topic_id, key[1]), "")
            if others or len(current.get(key, ())) > 1 or not directory.id or named != directory.id:
                continue
            del future[key]
            if any(place.path == directory.path for place, _ in current.get(key, ())):
                self._refuse(f"{directory.path} holds {key[0]}-{key[1]} and a future copy of it")
                self._add(directory, index, Fate.DUPLICATE, "its place is taken by the current copy")
                continue
            why = "the metadata names its directory, and Kafka does not check whether it is complete"
            self._add(directory, index, Fate.PROMOTED, why)
            for place in current.pop(key, []):
                if place[0].replicas.topic_id[place[1]] == topic_id:
                    self._add(*place, Fate.REPLACED, f"the future copy in {directory.path} takes its place")

    # -- telling -------------------------------------------------------------------------------------------------
    def _told(self, current: _Logs, future: _Logs) -> Foretold:
        for logs, kind in ((current, ""), (future, "future ")):
            for (topic, partition), places in logs.items():
                if len(places) == 1:
                    if kind:
                        self._add(*places[0], Fate.FUTURE, "a move between directories is not done")
                    self._loaded += not kind
                    continue
                where = " and ".join(directory.path for directory, _ in places)
                self._refuse(f"{kind}copies of {topic}-{partition} are in {where}")
                for place in places:
                    self._add(*place, Fate.DUPLICATE, f"{kind}copies are in {where}")
        return Foretold(tuple(sorted(self._fates, key=lambda entry: entry.path)), self._loaded, self._refuses)

    def _refuse(self, why: str) -> None:
        self._refuses = self._refuses or why

    def _add(self, directory: Directory, index: int, fate: Fate, why: str) -> None:
        rows = directory.replicas
        replica = (rows.folder[index], rows.topic[index], rows.partition[index], rows.topic_id[index], rows.size[index])
        self._fates.append(FolderFate(directory.path, *replica, fate, why))


def foretell_all(
    disks: Mapping[int, BrokerDisks], partitions: PartitionColumns, loading: Loading = Loading.KRAFT_START
) -> Iterator[tuple[int, Foretold]]:
    assigned = all_assigned(partitions)
    for broker, found in disks.items():
        yield int(broker), foretell(found, assigned.get(int(broker), Assigned({}, {})), loading)


SHOWN = 3


@dataclass(frozen=True, slots=True)
class Move:
    """One future copy: `done` of `total` bytes; `source` is "" and `total` -1 where no healthy directory has a copy."""

    broker: int
    topic: str
    partition: int
    source: str
    target: str
    folder: str
    done: int
    total: int

    def __str__(self) -> str:
        size = f"{self.done} bytes" if self.total < 0 else f"{self.done} of {self.total} bytes"
        return (
            f"{self.topic}-{self.partition} on broker {self.broker} from {self.source or 'nowhere'} to {self.target} "
            f"({size})"
        )


def moves_of(disks: BrokerDisks) -> Iterator[Move]:
    current: dict[tuple[str, int], tuple[str, int]] = {}
    future: list[tuple[tuple[str, int], str, str, int]] = []
    for directory in disks.directories:
        rows = directory.replicas
        for topic, partition, kind, folder, size in zip(
            rows.topic, rows.partition, rows.kind, rows.folder, rows.size, strict=True
        ):
            if kind == FUTURE:
                future.append(((topic, partition), directory.path, folder, size))
            elif kind == CURRENT and not directory.problem:
                current[topic, partition] = (directory.path, size)
    for (topic, partition), target, folder, done in future:
        source, total = current.get((topic, partition), ("", -1))
        yield Move(int(disks.broker), topic, partition, source, target, folder, done, total)


def moves(disks: Mapping[NodeId, BrokerDisks | Unknown] | Unknown) -> tuple[Move, ...] | Unknown:
    """All moves; Unknown where one broker's disks are."""
    if isinstance(disks, Unknown):
        return disks
    found: list[Move] = []
    for node, seen in disks.items():
        if isinstance(seen, Unknown):
            return Unknown(f"whether replicas move between directories of broker {int(node)} is unknown: {seen.reason}")
        found += moves_of(seen)
    return tuple(found)


def told(found: Sequence[Move]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{plural(len(found), 'move')} between directories: {'; '.join(map(str, found[:SHOWN]))}{more}"
