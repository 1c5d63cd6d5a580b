"""What Kafka 3.9 does with a node's directories at a start: does it start, which directories count as failed.

Pure: from what was found in each directory (`migrate.hosts.start_look`) to a verdict.  Source:
`MetaPropertiesEnsemble.verify`, `KafkaServer.startup`, `KafkaRaftServer.initializeLogDirs`,
`LogManager.createAndValidateLogDirs` and `lockLogDirs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from migrate.model.broker_modes import Mode
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties
from migrate.model.words import plural


@dataclass(frozen=True, slots=True)
class Place:
    """A directory as a start would find it.

    `meta` is by Kafka's own rules, `doubt` says why we would not trust a file that Kafka takes.  `unusable` says why
    it is no readable folder, "" for a good one; `missing` that nothing is there, `writable` that Kafka could write into
    it (make it, where it is missing).  `canonical` is the path without links.  `replicas` are folders of replicas.
    """

    path: str
    meta: MetaProperties | MetaMissing | MetaBroken
    canonical: str
    doubt: str = ""
    missing: bool = False
    unusable: str = ""
    writable: bool = True
    metadata_log: bool = False
    replicas: int = 0
    blocks: str = ""  # reading would never end: a FIFO in the place of meta.properties
    notes: tuple[str, ...] = ()


WRONG_DIRECTORY: Final = "every replica in it then has the wrong directory in the metadata"
RIGHT_DISK: Final = "Put the right disk in its place; do not edit ids over data that nobody has looked at"


def meta(path: str) -> str:
    """The file in that directory."""
    return f"{path.rstrip('/') or '/'}/meta.properties"


def by_hand(version: int, cluster_id: str, node_id: int) -> str:
    """The lines of a file written by hand."""
    key = "node.id" if version else "broker.id"
    return f"version={version}, {key}={node_id}, cluster.id={cluster_id}"


def starts_message(directories: int, failed: int) -> str:
    """The good answer."""
    lost = f", {failed} of them failed" if failed else ""
    return f"Kafka would start with {plural(directories, 'directory', 'directories')}{lost}"


# -- why it would not start --------------------------------------------------------------------------------------
def none_readable(paths: Iterable[str]) -> str:
    """No file at all."""
    return (
        f"no meta.properties can be read in {', '.join(paths)}. Are the disks mounted? Restore the files; on new disks "
        "format them with kafka-storage.sh"
    )


def version_1(path: str) -> str:
    """KAFKA-20762."""
    return (
        f"{meta(path)} has version 1, and a broker in plain ZooKeeper mode starts on version 0 only (KAFKA-20762). "
        "Write it again with version=0, broker.id for node.id, and the same cluster.id and directory.id"
    )


def other_cluster(path: str, found: str, expected: str) -> str:
    """Another cluster's disk, or two clusters' disks in one node."""
    return f"{meta(path)} has cluster.id {found}, expected is {expected}. {RIGHT_DISK}"


def other_node(path: str, found: int, expected: int) -> str:
    """Another node's disk."""
    return f"{meta(path)} has node id {found}, expected is {expected}. {RIGHT_DISK}"


def reserved(path: str, directory_id: str) -> str:
    """An id that Kafka keeps for itself."""
    return (
        f"{meta(path)} has directory.id {directory_id}, which Kafka keeps for itself. Put the true id back (the "
        "broker's registration names it), or take the line out: a new one is made at the start"
    )


def same_id(path: str, first: str, directory_id: str, *, same_place: bool) -> str:
    """A copy, or one directory under two names."""
    if same_place:
        return (
            f"{meta(path)} and {meta(first)} are one file: the directory is named twice. Spell it in one way in "
            "log.dirs and metadata.log.dir"
        )
    return (
        f"{meta(path)} has directory.id {directory_id}, which {first} has too: one is a copy. Find out which, and take "
        "directory.id out of the copy's file: a new one is made at the start"
    )


def metadata_failed(path: str, why: str) -> str:
    """Nothing starts without the metadata directory."""
    return f"{meta(path)}: {why}, and it is the metadata directory. Restore the file, or mend the disk"


def misplaced(path: str, wanted: str) -> str:
    """KafkaRaftServer: unexpected metadata location."""
    return (
        f"{path}/__cluster_metadata-0 lies outside of the metadata directory {wanted}. Move it aside while the broker "
        "is stopped (it fetches what it needs), or set metadata.log.dir to where it lies"
    )


def not_formatted(path: str, cluster_id: str, node_id: int, replicas: int) -> str:
    """An empty disk under a KRaft node."""
    if replicas:
        lines = by_hand(0, cluster_id, node_id)
        mend = (
            f"{plural(replicas, 'replica')} there keep their place: write the file with {lines} and the directory.id "
            "that the broker's registration names"
        )
    else:
        command = f"kafka-storage.sh format --ignore-formatted --cluster-id={cluster_id}"
        mend = f"Is the disk mounted? On a new one: {command}"
    return f"{meta(path)} is not there. {mend}"


def lacks(path: str, key: str, cluster_id: str, node_id: int) -> str:
    """A version 0 file that is not complete."""
    return f"{meta(path)} has no {key}. Complete it: {by_hand(0, cluster_id, node_id)}; keep its directory.id"


def no_room_for_id(path: str) -> str:
    """The file must be written, and cannot be."""
    return f"{meta(path)} has no directory.id, and {path} cannot be written. Mend the disk, or its rights"


def metadata_not_writable(path: str) -> str:
    """Raft cannot write its log."""
    return f"{path} is the metadata directory and cannot be written. Mend the disk, or its rights"


def two_names(path: str, other: str) -> str:
    """LogManager: duplicate log directory."""
    return f"{path} and {other} are one directory. Name it once in log.dirs"


def all_failed(paths: Sequence[str]) -> str:
    """LogManager: none of the directories can be used."""
    return f"no log directory can be used: {', '.join(paths)}. Mend the disks, or their rights"


def halts(path: str) -> str:
    """KafkaServer in migration mode."""
    return (
        f"{path} cannot be written, and in migration mode one failing directory halts the broker. Mend the disk first"
    )


# -- what Kafka takes in silence ---------------------------------------------------------------------------------
def made_anew(place: Place, mode: Mode) -> str:
    """A file that is not there, in ZooKeeper or migration mode."""
    what = "the directory is not there: Kafka makes an empty one" if place.missing else "Kafka makes a new file"
    id_ = " with a new directory.id" if mode is Mode.MIGRATION else ""
    if place.replicas:
        return f"{meta(place.path)} is not there: {what}{id_}; {_lies(place)}, {WRONG_DIRECTORY}. {_restore()}"
    return f"{meta(place.path)} is not there: {what}{id_}. Is the disk mounted?"


def doubted(place: Place, mode: Mode) -> str:
    """A file that Kafka takes and we do not trust."""
    happens = " Kafka takes it as it is." if mode is Mode.ZOOKEEPER else ""
    return f"{meta(place.path)} cannot be trusted: {place.doubt}.{happens} {_restore()}"


def new_id(place: Place) -> str:
    """No directory.id: one is made."""
    if not place.replicas:
        return f"{meta(place.path)} has no directory.id: Kafka makes a new one"
    return (
        f"{meta(place.path)} has no directory.id: Kafka makes a new one; {_lies(place)}. Where the metadata knows this "
        f"directory already, {WRONG_DIRECTORY}. {_restore()}"
    )


def refused_later(path: str, found: str, expected: str) -> str:
    """A KRaft node knows its cluster from its own files alone."""
    return (
        f"{meta(path)} has cluster.id {found}, expected is {expected}: the process starts, and the controllers refuse "
        f"it. {RIGHT_DISK}"
    )


def no_rollback(path: str) -> str:
    """Version 1 on the way back."""
    return f"{meta(path)} has version 1: a way back to plain ZooKeeper mode ends at it (KAFKA-20762)"


def metadata_log(path: str, mode: Mode, metadata_dir: str) -> list[str]:
    """A local copy of the metadata log, where it is not used or about to be in the way."""
    if path != metadata_dir:
        later = " and lets no KRaft node start" if mode is not Mode.KRAFT else ""
        return [f"{path}/__cluster_metadata-0 lies outside of the metadata directory {metadata_dir}{later}"]
    return [f"{path}/__cluster_metadata-0 is deleted and made again at the start"] if mode is Mode.MIGRATION else []


def failed_message(place: Place, mode: Mode) -> str:
    """What a failed directory costs."""
    why = place.unusable or (f"{meta(place.path)}: {place.meta.reason}" if isinstance(place.meta, MetaBroken) else "")
    why = why or ("it is not there and cannot be made" if place.missing else "it cannot be written")
    cost = {
        Mode.ZOOKEEPER: "its replicas are offline",
        Mode.MIGRATION: "its replicas stay MIGRATING in the metadata, and are not failed over",
        Mode.KRAFT: "its replicas are offline",
    }[mode]
    return f"{place.path} counts as failed: {why}; {cost}. Restore the file, or mend the disk"


def _lies(place: Place) -> str:
    return f"{plural(place.replicas, 'replica')} {'lies' if place.replicas == 1 else 'lie'} in it"


def _restore() -> str:
    return "Restore the file with the directory.id that the broker's registration or the last proof names"


V0, V1 = 0, 1


@dataclass(frozen=True, slots=True)
class Asked:
    """The start that is asked about.  `log_dirs` and `metadata_dir` are spelled as in the configuration."""

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


@dataclass(frozen=True, slots=True)
class Start:
    """The verdict.  `failed` are directories that Kafka would count as failed, whether it starts or not."""

    starts: bool
    reason: str
    failed: tuple[str, ...]
    warnings: tuple[str, ...]


class _RefusedError(Exception):
    """Kafka would not start (never leaves this module)."""


@dataclass(slots=True)
class _Ensemble:
    """What Kafka's loader sorts the directories into, and what fails on the way."""

    asked: Asked
    places: Mapping[str, Place]
    failed: set[str] = field(default_factory=set)

    def good(self) -> dict[str, MetaProperties]:
        """Directories with a readable file, in Kafka's order (`logDirProps`)."""
        found = ((path, self.places[path].meta) for path in self.asked.ensemble if path not in self.failed)
        return {path: meta for path, meta in found if isinstance(meta, MetaProperties)}

    def empty(self) -> list[str]:
        """Directories without a file (`emptyLogDirs`)."""
        return [path for path in self.asked.ensemble if isinstance(self.places[path].meta, MetaMissing)]


def decide_start(asked: Asked, places: Mapping[str, Place]) -> Start:
    """The verdict; `places` has every directory of `asked.ensemble` and `asked.log_dirs`."""
    found = _Ensemble(asked, places)
    found.failed |= {path for path in asked.ensemble if isinstance(places[path].meta, MetaBroken)}
    try:
        _blocked(found)
        if asked.mode is Mode.KRAFT:
            _kraft(found)
        else:
            _zookeeper(found)
        _log_manager(found)
    except _RefusedError as refused:
        starts, reason = False, str(refused)
    else:
        starts, reason = True, starts_message(len(asked.log_dirs), len(found.failed))
    failed = tuple(path for path in dict.fromkeys((*asked.log_dirs, *asked.ensemble)) if path in found.failed)
    return Start(starts, reason, failed, tuple(_warnings(found)))


def _blocked(found: _Ensemble) -> None:
    for path in found.asked.ensemble:
        if found.places[path].blocks:
            raise _RefusedError(found.places[path].blocks)


# -- the two servers -----------------------------------------------------------------------------------------------
def _zookeeper(found: _Ensemble) -> None:
    """KafkaServer.startup: files are verified, completed where something lacks, and verified again."""
    asked = found.asked
    _verify(found, asked.cluster_id)
    for path in (*found.empty(), *found.good()):
        if not found.places[path].writable and _is_rewritten(found, path):
            found.failed.add(path)
    _metadata_directory(found)


def _is_rewritten(found: _Ensemble, path: str) -> bool:
    meta = found.places[path].meta
    if not isinstance(meta, MetaProperties):
        return True
    lacks_id = meta.directory_id is None and found.asked.mode is Mode.MIGRATION
    return meta.cluster_id is None or meta.node_id is None or lacks_id


def _kraft(found: _Ensemble) -> None:
    """KafkaRaftServer.initializeLogDirs: every readable directory must be formatted."""
    asked = found.asked
    if not found.good():
        raise _RefusedError(none_readable(asked.ensemble))
    _verify(found, None)
    _metadata_directory(found)
    for path in found.good():
        if path != asked.metadata_dir and found.places[path].metadata_log:
            raise _RefusedError(misplaced(path, asked.metadata_dir))
    for path in found.empty():
        raise _RefusedError(not_formatted(path, asked.cluster_id, asked.node_id, found.places[path].replicas))
    for path, meta in found.good().items():
        if meta.node_id is None or meta.cluster_id is None:
            key = "node id" if meta.node_id is None else "cluster.id"
            raise _RefusedError(lacks(path, key, asked.cluster_id, asked.node_id))
        if meta.directory_id is None and not found.places[path].writable:
            raise _RefusedError(no_room_for_id(path))
    if not found.places[asked.metadata_dir].writable:
        raise _RefusedError(metadata_not_writable(asked.metadata_dir))


def _verify(found: _Ensemble, cluster_id: str | None) -> None:
    """MetaPropertiesEnsemble.verify: the first directory, by name, that does not fit ends the start."""
    asked, seen = found.asked, dict[str, str]()
    for path, meta in found.good().items():
        if asked.mode is Mode.ZOOKEEPER and meta.version != V0:
            raise _RefusedError(version_1(path))
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id is not None and meta.cluster_id != cluster_id:
            raise _RefusedError(other_cluster(path, meta.cluster_id, cluster_id or ""))
        if meta.node_id is not None and meta.node_id != asked.node_id:
            raise _RefusedError(other_node(path, meta.node_id, asked.node_id))
        if meta.directory_id is not None:
            if meta.directory_id.reserved:
                raise _RefusedError(reserved(path, meta.directory_id))
            if meta.directory_id in seen:
                same = found.places[path].canonical == found.places[seen[meta.directory_id]].canonical
                raise _RefusedError(same_id(path, seen[meta.directory_id], meta.directory_id, same_place=same))
            seen[meta.directory_id] = path


def _metadata_directory(found: _Ensemble) -> None:
    asked = found.asked
    if asked.mode is not Mode.ZOOKEEPER and asked.metadata_dir in found.failed:
        meta = found.places[asked.metadata_dir].meta
        why = meta.reason if isinstance(meta, MetaBroken) else "it cannot be written"
        raise _RefusedError(metadata_failed(asked.metadata_dir, why))


def _log_manager(found: _Ensemble) -> None:
    """Folders that cannot be used fail; one place under two names, or nothing left, ends the start."""
    asked, live = found.asked, dict[str, str]()
    for path in asked.log_dirs:
        place = found.places[path]
        if path in found.failed or place.unusable or (place.missing and not place.writable):
            found.failed.add(path)
            continue
        if place.canonical in live:
            raise _RefusedError(two_names(path, live[place.canonical]))
        live[place.canonical] = path
    unlocked = {path for path in live.values() if not found.places[path].writable}
    found.failed |= unlocked
    if unlocked >= set(live.values()):
        raise _RefusedError(all_failed(asked.log_dirs))
    if unlocked and asked.mode is Mode.MIGRATION:
        raise _RefusedError(halts(min(unlocked)))


# -- what Kafka does not say -----------------------------------------------------------------------------------------
_NEW_ID: Final = (Mode.MIGRATION, Mode.KRAFT)


def _warnings(found: _Ensemble) -> list[str]:
    told: list[str] = []
    for path in dict.fromkeys((*found.asked.log_dirs, *found.asked.ensemble)):
        place = found.places[path]
        told += [f"{path}: {note}" for note in place.notes]
        told += _of_meta(found, place)
        if place.metadata_log:
            told += metadata_log(path, found.asked.mode, found.asked.metadata_dir)
        if path in found.failed:
            told.append(failed_message(place, found.asked.mode))
    return told


def _of_meta(found: _Ensemble, place: Place) -> list[str]:
    asked, meta = found.asked, place.meta
    if place.path not in asked.ensemble or isinstance(meta, MetaBroken):
        return []
    if isinstance(meta, MetaMissing):
        return [] if asked.mode is Mode.KRAFT else [made_anew(place, asked.mode)]
    told = []
    if place.doubt:
        told.append(doubted(place, asked.mode))
    if meta.directory_id is None and asked.mode in _NEW_ID:
        told.append(new_id(place))
    if asked.mode is Mode.KRAFT and meta.cluster_id is not None and meta.cluster_id != asked.cluster_id:
        told.append(refused_later(place.path, meta.cluster_id, asked.cluster_id))
    if asked.mode is not Mode.ZOOKEEPER and meta.version == V1:
        told.append(no_rollback(place.path))
    return told
