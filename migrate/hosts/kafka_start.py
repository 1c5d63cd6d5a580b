"""What Kafka 3.9 does with a node's directories at a start: does it start, which directories count as failed.

Pure: from what was found in each directory (`migrate.hosts.start_look`) to a verdict.  Source:
`MetaPropertiesEnsemble.verify`, `KafkaServer.startup`, `KafkaRaftServer.initializeLogDirs`,
`LogManager.createAndValidateLogDirs` and `lockLogDirs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.hosts import start_words as words
from migrate.hosts.start_place import Mode, Place
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties

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
        starts, reason = True, words.starts(len(asked.log_dirs), len(found.failed))
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
        raise _RefusedError(words.none_readable(asked.ensemble))
    _verify(found, None)
    _metadata_directory(found)
    for path in found.good():
        if path != asked.metadata_dir and found.places[path].metadata_log:
            raise _RefusedError(words.misplaced(path, asked.metadata_dir))
    for path in found.empty():
        raise _RefusedError(words.not_formatted(path, asked.cluster_id, asked.node_id, found.places[path].replicas))
    for path, meta in found.good().items():
        if meta.node_id is None or meta.cluster_id is None:
            key = "node id" if meta.node_id is None else "cluster.id"
            raise _RefusedError(words.lacks(path, key, asked.cluster_id, asked.node_id))
        if meta.directory_id is None and not found.places[path].writable:
            raise _RefusedError(words.no_room_for_id(path))
    if not found.places[asked.metadata_dir].writable:
        raise _RefusedError(words.metadata_not_writable(asked.metadata_dir))


def _verify(found: _Ensemble, cluster_id: str | None) -> None:
    """MetaPropertiesEnsemble.verify: the first directory, by name, that does not fit ends the start."""
    asked, seen = found.asked, dict[str, str]()
    for path, meta in found.good().items():
        if asked.mode is Mode.ZOOKEEPER and meta.version != V0:
            raise _RefusedError(words.version_1(path))
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id is not None and meta.cluster_id != cluster_id:
            raise _RefusedError(words.other_cluster(path, meta.cluster_id, cluster_id or ""))
        if meta.node_id is not None and meta.node_id != asked.node_id:
            raise _RefusedError(words.other_node(path, meta.node_id, asked.node_id))
        if meta.directory_id is not None:
            if meta.directory_id.reserved:
                raise _RefusedError(words.reserved(path, meta.directory_id))
            if meta.directory_id in seen:
                same = found.places[path].canonical == found.places[seen[meta.directory_id]].canonical
                raise _RefusedError(words.same_id(path, seen[meta.directory_id], meta.directory_id, same_place=same))
            seen[meta.directory_id] = path


def _metadata_directory(found: _Ensemble) -> None:
    asked = found.asked
    if asked.mode is not Mode.ZOOKEEPER and asked.metadata_dir in found.failed:
        meta = found.places[asked.metadata_dir].meta
        why = meta.reason if isinstance(meta, MetaBroken) else "it cannot be written"
        raise _RefusedError(words.metadata_failed(asked.metadata_dir, why))


def _log_manager(found: _Ensemble) -> None:
    """Folders that cannot be used fail; one place under two names, or nothing left, ends the start."""
    asked, live = found.asked, dict[str, str]()
    for path in asked.log_dirs:
        place = found.places[path]
        if path in found.failed or place.unusable or (place.missing and not place.writable):
            found.failed.add(path)
            continue
        if place.canonical in live:
            raise _RefusedError(words.two_names(path, live[place.canonical]))
        live[place.canonical] = path
    unlocked = {path for path in live.values() if not found.places[path].writable}
    found.failed |= unlocked
    if unlocked >= set(live.values()):
        raise _RefusedError(words.all_failed(asked.log_dirs))
    if unlocked and asked.mode is Mode.MIGRATION:
        raise _RefusedError(words.halts(min(unlocked)))


# -- what Kafka does not say -----------------------------------------------------------------------------------------
_NEW_ID: Final = (Mode.MIGRATION, Mode.KRAFT)


def _warnings(found: _Ensemble) -> list[str]:
    told: list[str] = []
    for path in dict.fromkeys((*found.asked.log_dirs, *found.asked.ensemble)):
        place = found.places[path]
        told += [f"{path}: {note}" for note in place.notes]
        told += _of_meta(found, place)
        if place.metadata_log:
            told += words.metadata_log(path, found.asked.mode, found.asked.metadata_dir)
        if path in found.failed:
            told.append(words.failed(place, found.asked.mode))
    return told


def _of_meta(found: _Ensemble, place: Place) -> list[str]:
    asked, meta = found.asked, place.meta
    if place.path not in asked.ensemble or isinstance(meta, MetaBroken):
        return []
    if isinstance(meta, MetaMissing):
        return [] if asked.mode is Mode.KRAFT else [words.made_anew(place, asked.mode)]
    told = []
    if place.doubt:
        told.append(words.doubted(place, asked.mode))
    if meta.directory_id is None and asked.mode in _NEW_ID:
        told.append(words.new_id(place))
    if asked.mode is Mode.KRAFT and meta.cluster_id is not None and meta.cluster_id != asked.cluster_id:
        told.append(words.refused_later(place.path, meta.cluster_id, asked.cluster_id))
    if asked.mode is not Mode.ZOOKEEPER and meta.version == V1:
        told.append(words.no_way_back(place.path))
    return told
