"""What Kafka 3.9 does with a node's log directories when it starts.  Pure.

`faults` is the one rule of what Kafka does not start on, or what it takes in silence: the checks `B-DIR-` tell them
before a migration, and `decide_start` predicts a start from them, in the order in which Kafka looks.  Source:
`MetaPropertiesEnsemble.verify`, `KafkaServer.startup`, `KafkaRaftServer.initializeLogDirs`,
`LogManager.createAndValidateLogDirs`, `lockLogDirs` and `loadLogs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from migrate.model.broker_modes import Mode
from migrate.model.disk_trouble import CURRENT, strange_folders
from migrate.model.ids import DirectoryId
from migrate.model.views import Directory, MetaBroken, MetaMissing, MetaProperties
from migrate.model.words import plural


# -- the rule ------------------------------------------------------------------------------------------------------
class Kind(Enum):
    """What a directory has against a start."""

    MISSING = auto()  # no meta.properties: a new disk to the ZooKeeper modes, the end of a KRaft start
    UNREADABLE = auto()  # the directory counts as failed
    VERSION_1 = auto()  # ends a start in plain ZooKeeper mode (KAFKA-20762)
    OTHER_CLUSTER = auto()
    OTHER_NODE = auto()
    RESERVED = auto()  # a directory.id that Kafka keeps for itself
    NO_ID = auto()  # ends a KRaft start
    METADATA_LOG = auto()  # outside of the metadata directory: ends a KRaft start
    FOLDERS = auto()  # folders of no replica: end every start, once logs are loaded


@dataclass(frozen=True, slots=True)
class Fault:
    """`words` continue the name of meta.properties, or, of METADATA_LOG and FOLDERS, stand alone."""

    kind: Kind
    words: str


def faults(directory: Directory, node_id: int, cluster_id: str | None, metadata_dir: str | None) -> Iterator[Fault]:
    """What Kafka finds in one directory, in the order of its looks; None for what is not known to compare with."""
    match directory.meta:
        case MetaMissing():
            yield Fault(Kind.MISSING, "is not there")
        case MetaBroken(reason=reason):
            yield Fault(Kind.UNREADABLE, f"cannot be trusted: {reason}")
        case MetaProperties() as meta:
            yield from _faults_of_file(meta, node_id, cluster_id)
    if directory.holds_metadata_log and metadata_dir not in (None, directory.path):
        yield Fault(Kind.METADATA_LOG, f"__cluster_metadata-0 is here, it belongs in {metadata_dir}")
    if strange := strange_folders(directory):
        yield Fault(Kind.FOLDERS, ", ".join(strange))


def _faults_of_file(meta: MetaProperties, node_id: int, cluster_id: str | None) -> Iterator[Fault]:
    if meta.version != 0:
        yield Fault(Kind.VERSION_1, f"has version {meta.version}")
    if meta.cluster_id is not None and cluster_id is not None and meta.cluster_id != cluster_id:
        yield Fault(Kind.OTHER_CLUSTER, f"has cluster.id {meta.cluster_id}, the cluster is {cluster_id}")
    if meta.node_id is not None and meta.node_id != node_id:
        yield Fault(Kind.OTHER_NODE, f"has node id {meta.node_id}, the broker is {node_id}")
    if meta.directory_id is not None and meta.directory_id.reserved:
        yield Fault(Kind.RESERVED, f"has directory.id {meta.directory_id}, which Kafka reserves")
    lacking = [name for name, value in (("node id", meta.node_id), ("cluster.id", meta.cluster_id)) if value is None]
    if lacking:
        yield Fault(Kind.NO_ID, f"has no {' and no '.join(lacking)}")


def shared_ids(named: Iterable[tuple[str, DirectoryId | None]]) -> dict[DirectoryId, list[str]]:
    """The directory.ids that several places have, with those places in their order."""
    found: dict[DirectoryId, list[str]] = {}
    for place, directory_id in named:
        if directory_id is not None:
            found.setdefault(directory_id, []).append(place)
    return {directory_id: places for directory_id, places in found.items() if len(places) > 1}


# -- a start on this host ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Place:
    """A directory as a start would find it.

    Of `directory`, `meta` is read by Kafka's own rules, and `problem` says why it is no readable folder.  `doubt` says
    why a file that Kafka accepts is not to be trusted.  `missing`: it does not exist; `writable`: Kafka could write
    into it (create it, where it is missing).  `canonical` is the path without links.
    """

    directory: Directory
    canonical: str
    doubt: str = ""
    missing: bool = False
    writable: bool = True
    blocks: str = ""  # reading would never end: a FIFO in the place of meta.properties
    locked_by: str = ""  # the process that holds Kafka's .lock

    @property
    def file(self) -> str:
        return f"{self.directory.path.rstrip('/') or '/'}/meta.properties"

    @property
    def replicas(self) -> int:
        """Current folders: deleted, stray and future copies hold no data that would be lost."""
        return self.directory.replicas.kind.count(CURRENT)


@dataclass(frozen=True, slots=True)
class Asked:
    """The start to predict.  `log_dirs` and `metadata_dir` are spelled as in the configuration."""

    mode: Mode
    cluster_id: str
    node_id: int
    log_dirs: tuple[str, ...]
    metadata_dir: str

    @property
    def ensemble(self) -> tuple[str, ...]:
        """The directories whose meta.properties is read, in Kafka's order."""
        apart = () if self.mode is Mode.ZOOKEEPER else (self.metadata_dir,)
        return tuple(sorted({*self.log_dirs, *apart}))

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.log_dirs, *self.ensemble)))


@dataclass(frozen=True, slots=True)
class Start:
    """`failed` are directories that Kafka would count as failed, whether it starts or not."""

    starts: bool
    reason: str
    failed: tuple[str, ...]
    warnings: tuple[str, ...]


class _RefusedError(Exception):
    """Kafka would not start (never leaves this module)."""


RIGHT_DISK: Final = "Install the right disk; do not edit ids over data that was not checked"
RESTORE: Final = "Restore the file with the directory.id that the broker's registration or the last proof names"
REPAIR: Final = "Repair the disk, or its permissions"
WRONG_DIRECTORY: Final = "every replica in it then has the wrong directory in the metadata"
REMEDIES: Final = {
    Kind.VERSION_1: "A broker in plain ZooKeeper mode starts on version 0 only (KAFKA-20762). Write it again with "
    "version=0, broker.id for node.id, and the same cluster.id and directory.id",
    Kind.OTHER_CLUSTER: RIGHT_DISK,
    Kind.OTHER_NODE: RIGHT_DISK,
    Kind.RESERVED: "Put the true id back (the broker's registration names it), or remove the line: a new one is made "
    "at the start",
    Kind.METADATA_LOG: "Move it aside while the broker is stopped (it fetches what it needs), or set metadata.log.dir "
    "to its directory",
    Kind.FOLDERS: "Move them out of the log directory; remove an empty lost+found with `rm -df`",
}


@dataclass(slots=True)
class _Ensemble:
    """What Kafka's loader sorts the directories into, and what fails on the way."""

    asked: Asked
    places: Mapping[str, Place]
    failed: set[str] = field(default_factory=set)

    def good(self) -> dict[str, MetaProperties]:
        """Directories with a readable file, in Kafka's order (`logDirProps`)."""
        found = ((path, self.places[path].directory.meta) for path in self.asked.ensemble if path not in self.failed)
        return {path: meta for path, meta in found if isinstance(meta, MetaProperties)}

    def empty(self) -> list[str]:
        """Directories without a file (`emptyLogDirs`)."""
        return [path for path in self.asked.ensemble if isinstance(self.places[path].directory.meta, MetaMissing)]

    def refuse(self, path: str, *kinds: Kind, cluster_id: str | None = None) -> None:
        """Raise for the first fault of these kinds in that directory."""
        place, asked = self.places[path], self.asked
        for fault in faults(place.directory, asked.node_id, cluster_id, asked.metadata_dir):
            if fault.kind in kinds:
                raise _RefusedError(f"{_about(place, fault)}. {_remedy(fault.kind, asked, place)}")


def decide_start(asked: Asked, places: Mapping[str, Place]) -> Start:
    """Predict the start; `places` has every directory of `asked.all`."""
    found = _Ensemble(asked, places)
    found.failed |= {path for path in asked.ensemble if isinstance(places[path].directory.meta, MetaBroken)}
    try:
        for blocked in filter(None, (places[path].blocks for path in asked.ensemble)):
            raise _RefusedError(blocked)  # noqa: TRY301 - as every refusal
        if asked.mode is Mode.KRAFT:
            _kraft(found)
        else:
            _zookeeper(found)
        _log_manager(found)
    except _RefusedError as refused:
        starts, reason = False, str(refused)
    else:
        lost = f", {len(found.failed)} of them failed" if found.failed else ""
        reason = f"Kafka would start with {plural(len(asked.log_dirs), 'directory', 'directories')}{lost}"
        starts = True
    failed = tuple(path for path in asked.all if path in found.failed)
    return Start(starts, reason, failed, tuple(_warnings(found)))


def _zookeeper(found: _Ensemble) -> None:
    """KafkaServer.startup: files are verified, completed where something lacks, and verified again."""
    asked, complete = found.asked, set[str]()
    _verify(found, asked.cluster_id)
    for path, meta in found.good().items():
        lacks_id = meta.directory_id is None and asked.mode is Mode.MIGRATION
        if meta.cluster_id is not None and meta.node_id is not None and not lacks_id:
            complete.add(path)
    rewritten = {*found.empty(), *found.good()} - complete
    found.failed |= {path for path in rewritten if not found.places[path].writable}
    _metadata_directory(found)


def _kraft(found: _Ensemble) -> None:
    """KafkaRaftServer.initializeLogDirs: every readable directory must be formatted."""
    asked = found.asked
    if not found.good():
        raise _RefusedError(
            f"no meta.properties can be read in {', '.join(asked.ensemble)}. Are the disks mounted? Restore the files; "
            "on new disks format them with kafka-storage.sh"
        )
    # the first file with a cluster.id decides which cluster it is
    _verify(found, next((meta.cluster_id for meta in found.good().values() if meta.cluster_id is not None), None))
    _metadata_directory(found)
    for path in found.good():
        found.refuse(path, Kind.METADATA_LOG)
    for path in found.empty():
        found.refuse(path, Kind.MISSING)
    for path, meta in found.good().items():
        found.refuse(path, Kind.NO_ID)
        if meta.directory_id is None and not found.places[path].writable:
            raise _RefusedError(
                f"{found.places[path].file} has no directory.id, and {path} cannot be written. {REPAIR}"
            )
    if not found.places[asked.metadata_dir].writable:
        raise _RefusedError(f"{asked.metadata_dir} is the metadata directory and cannot be written. {REPAIR}")


def _verify(found: _Ensemble, cluster_id: str | None) -> None:
    """MetaPropertiesEnsemble.verify: the first directory, by name, that does not fit ends the start."""
    version = (Kind.VERSION_1,) if found.asked.mode is Mode.ZOOKEEPER else ()
    good = found.good()
    shared = shared_ids((path, meta.directory_id) for path, meta in good.items())
    first = {path: places[0] for places in shared.values() for path in places[1:]}
    for path in good:
        found.refuse(path, *version, Kind.OTHER_CLUSTER, Kind.OTHER_NODE, Kind.RESERVED, cluster_id=cluster_id)
        if path in first:
            raise _RefusedError(_same_id(found.places[path], found.places[first[path]]))


def _same_id(place: Place, first: Place) -> str:
    if place.canonical == first.canonical:
        return (
            f"{place.file} and {first.file} are one file: the directory is named twice. Spell it in one way in "
            "log.dirs and metadata.log.dir"
        )
    return (
        f"{place.file} has directory.id {place.directory.id}, which {first.directory.path} has too: one is a copy. "
        "Find out which, and remove directory.id from the copy's file: a new one is made at the start"
    )


def _about(place: Place, fault: Fault) -> str:
    if fault.kind is Kind.METADATA_LOG:
        return f"{place.directory.path}: {fault.words}"
    if fault.kind is Kind.FOLDERS:
        return f"{place.directory.path} holds what is no replica: {fault.words}"
    return f"{place.file} {fault.words}"


def _remedy(kind: Kind, asked: Asked, place: Place) -> str:
    if kind is Kind.NO_ID:
        lines = f"version=0, broker.id={asked.node_id}, cluster.id={asked.cluster_id}"
        return f"Complete it: {lines}; keep its directory.id"
    if kind is not Kind.MISSING:
        return REMEDIES[kind]
    if place.replicas:
        return (
            f"{plural(place.replicas, 'replica')} there keep their place: write the file with version=0, "
            f"broker.id={asked.node_id}, cluster.id={asked.cluster_id} and the directory.id that the broker's "
            "registration names"
        )
    return (
        f"Is the disk mounted? On a new one: kafka-storage.sh format --ignore-formatted --cluster-id={asked.cluster_id}"
    )


def _metadata_directory(found: _Ensemble) -> None:
    asked = found.asked
    if asked.mode is not Mode.ZOOKEEPER and asked.metadata_dir in found.failed:
        place = found.places[asked.metadata_dir]
        why = _unreadable(place) or f"{place.file}: it cannot be written"
        raise _RefusedError(f"{why}, and it is the metadata directory. Restore the file, or repair the disk")


def _log_manager(found: _Ensemble) -> None:
    """Folders that cannot be used fail; one place under two names, nothing left, or a strange folder ends the start."""
    asked, live = found.asked, dict[str, str]()
    for path in asked.log_dirs:
        place = found.places[path]
        if path in found.failed or place.directory.problem or (place.missing and not place.writable):
            found.failed.add(path)
            continue
        if place.canonical in live:
            raise _RefusedError(f"{path} and {live[place.canonical]} are one directory. Name it once in log.dirs")
        live[place.canonical] = path
    unlocked = {path for path in live.values() if not found.places[path].writable}
    found.failed |= unlocked
    if unlocked >= set(live.values()):
        raise _RefusedError(f"no log directory can be used: {', '.join(asked.log_dirs)}. {REPAIR}")
    if unlocked and asked.mode is Mode.MIGRATION:
        why = f"{min(unlocked)} cannot be written, and in migration mode one failing directory halts the broker"
        raise _RefusedError(f"{why}. Repair the disk first")
    for path in live.values():
        if path not in unlocked:
            found.refuse(path, Kind.FOLDERS)


# -- what Kafka does not report ------------------------------------------------------------------------------------
NO_KRAFT: Final = "no KRaft node starts with it"
NO_ROLLBACK: Final = "a rollback to plain ZooKeeper mode stops at it (KAFKA-20762)"
IN_SILENCE: Final = {
    (Kind.METADATA_LOG, Mode.ZOOKEEPER): NO_KRAFT,
    (Kind.METADATA_LOG, Mode.MIGRATION): NO_KRAFT,
    (Kind.VERSION_1, Mode.MIGRATION): NO_ROLLBACK,
    (Kind.VERSION_1, Mode.KRAFT): NO_ROLLBACK,
    (Kind.OTHER_CLUSTER, Mode.KRAFT): f"the process starts, and the controllers refuse it. {RIGHT_DISK}",
}


def _warnings(found: _Ensemble) -> Iterator[str]:
    asked = found.asked
    for path in asked.all:
        place = found.places[path]
        if place.locked_by:
            yield f"{path}: a living process ({place.locked_by}) has it locked: no second Kafka starts on it meanwhile"
        for fault in faults(place.directory, asked.node_id, asked.cluster_id, asked.metadata_dir):
            if what := IN_SILENCE.get((fault.kind, asked.mode)):
                yield f"{_about(place, fault)}: {what}"
        yield from _lost_ids(asked.mode, place)
        if path in found.failed:
            why = place.directory.problem or _unreadable(place)
            why = why or ("it is not there and cannot be made" if place.missing else "it cannot be written")
            cost = "its replicas are offline"
            if asked.mode is Mode.MIGRATION:
                cost = "its replicas stay MIGRATING in the metadata, and are not failed over"
            yield f"{path} counts as failed: {why}; {cost}. Restore the file, or repair the disk"


def _lost_ids(mode: Mode, place: Place) -> Iterator[str]:
    """Where a start writes a file, or an id, that the metadata does not know."""
    meta = place.directory.meta
    in_it = f"{plural(place.replicas, 'replica')} {'is' if place.replicas == 1 else 'are'} in it"
    if isinstance(meta, MetaMissing) and mode is not Mode.KRAFT:
        what = "the directory is not there: Kafka makes an empty one" if place.missing else "Kafka makes a new file"
        new_id = " with a new directory.id" if mode is Mode.MIGRATION else ""
        after = f"; {in_it}, {WRONG_DIRECTORY}. {RESTORE}" if place.replicas else ". Is the disk mounted?"
        yield f"{place.file} is not there: {what}{new_id}{after}"
    if place.doubt:
        yield f"{place.file} cannot be trusted: {place.doubt}. {RESTORE}"
    if isinstance(meta, MetaProperties) and meta.directory_id is None and mode is not Mode.ZOOKEEPER:
        known = f"; {in_it}. Where the metadata knows this directory already, {WRONG_DIRECTORY}. {RESTORE}"
        yield f"{place.file} has no directory.id: Kafka makes a new one{known if place.replicas else ''}"


def _unreadable(place: Place) -> str:
    meta = place.directory.meta
    return f"{place.file}: {meta.reason}" if isinstance(meta, MetaBroken) else ""
