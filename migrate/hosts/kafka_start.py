"""Predict a start of Kafka 3.9: does it start with a node's directories, and which of them count as failed?

`decide_start` is pure: from what was found in each directory to a prediction.  Source:
`MetaPropertiesEnsemble.verify`, `KafkaServer.startup`, `KafkaRaftServer.initializeLogDirs`,
`LogManager.createAndValidateLogDirs` and `lockLogDirs`.

`look_for_start` inspects directories of this host, read-only.  Other than everywhere else, a link is followed where
Kafka follows it: a verdict on a start must see the same file.  What our user may not read, and Kafka's own user may, is
an error, and never an answer.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import NotVisible
from migrate.hosts import meta_properties
from migrate.model import limits
from migrate.model.broker_modes import Mode
from migrate.model.ids import METADATA_TOPIC
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties
from migrate.model.words import plural


@dataclass(frozen=True, slots=True)
class Place:
    """A directory as a start would find it.

    `meta` is read by Kafka's own rules, `doubt` says why a file that Kafka accepts is not to be trusted.  `unusable`
    says why it is no readable folder, "" for a good one; `missing`: it does not exist; `writable`: Kafka could write
    into it (create it, where it is missing).  `canonical` is the path without links.  `replicas` counts folders.
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
RIGHT_DISK: Final = "Install the right disk; do not edit ids over data that was not checked"


RESTORE: Final = "Restore the file with the directory.id that the broker's registration or the last proof names"


def _file(path: str) -> str:
    return f"{path.rstrip('/') or '/'}/meta.properties"


def _replicas(place: Place) -> str:
    return f"{plural(place.replicas, 'replica')} {'is' if place.replicas == 1 else 'are'} in it"


V0, V1 = 0, 1


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


@dataclass(frozen=True, slots=True)
class Start:
    """`failed` are directories that Kafka would count as failed, whether it starts or not."""

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
    """Predict the start; `places` has every directory of `asked.ensemble` and `asked.log_dirs`."""
    found = _Ensemble(asked, places)
    found.failed |= {path for path in asked.ensemble if isinstance(places[path].meta, MetaBroken)}
    try:
        _servers(found)
    except _RefusedError as refused:
        starts, reason = False, str(refused)
    else:
        lost = f", {len(found.failed)} of them failed" if found.failed else ""
        reason = f"Kafka would start with {plural(len(asked.log_dirs), 'directory', 'directories')}{lost}"
        starts = True
    failed = tuple(path for path in dict.fromkeys((*asked.log_dirs, *asked.ensemble)) if path in found.failed)
    return Start(starts, reason, failed, tuple(_warnings(found)))


def _servers(found: _Ensemble) -> None:
    for blocked in filter(None, (found.places[path].blocks for path in found.asked.ensemble)):
        raise _RefusedError(blocked)
    if found.asked.mode is Mode.KRAFT:
        _kraft(found)
    else:
        _zookeeper(found)
    _log_manager(found)


# -- the two servers -----------------------------------------------------------------------------------------------
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
    _verify(found, None)
    _metadata_directory(found)
    for path in found.good():
        if path != asked.metadata_dir and found.places[path].metadata_log:
            raise _RefusedError(
                f"{path}/__cluster_metadata-0 is outside of the metadata directory {asked.metadata_dir}. Move it aside "
                "while the broker is stopped (it fetches what it needs), or set metadata.log.dir to its directory"
            )
    for path in found.empty():
        raise _RefusedError(_not_formatted(asked, found.places[path]))
    for path, meta in found.good().items():
        if meta.node_id is None or meta.cluster_id is None:
            key = "node id" if meta.node_id is None else "cluster.id"
            lines = f"version=0, broker.id={asked.node_id}, cluster.id={asked.cluster_id}"
            raise _RefusedError(f"{_file(path)} has no {key}. Complete it: {lines}; keep its directory.id")
        if meta.directory_id is None and not found.places[path].writable:
            why = f"{_file(path)} has no directory.id, and {path} cannot be written"
            raise _RefusedError(f"{why}. Repair the disk, or its permissions")
    if not found.places[asked.metadata_dir].writable:
        why = f"{asked.metadata_dir} is the metadata directory and cannot be written"
        raise _RefusedError(f"{why}. Repair the disk, or its permissions")


def _not_formatted(asked: Asked, place: Place) -> str:
    if place.replicas:
        remedy = (
            f"{plural(place.replicas, 'replica')} there keep their place: write the file with version=0, "
            f"broker.id={asked.node_id}, cluster.id={asked.cluster_id} and the directory.id that the broker's "
            "registration names"
        )
    else:
        command = f"kafka-storage.sh format --ignore-formatted --cluster-id={asked.cluster_id}"
        remedy = f"Is the disk mounted? On a new one: {command}"
    return f"{_file(place.path)} is not there. {remedy}"


def _verify(found: _Ensemble, cluster_id: str | None) -> None:
    """MetaPropertiesEnsemble.verify: the first directory, by name, that does not fit ends the start."""
    asked, seen = found.asked, dict[str, str]()
    for path, meta in found.good().items():
        if asked.mode is Mode.ZOOKEEPER and meta.version != V0:
            raise _RefusedError(
                f"{_file(path)} has version 1, and a broker in plain ZooKeeper mode starts on version 0 only "
                "(KAFKA-20762). Write it again with version=0, broker.id for node.id, and the same cluster.id and "
                "directory.id"
            )
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id is not None and meta.cluster_id != cluster_id:
            why = f"{_file(path)} has cluster.id {meta.cluster_id}, expected is {cluster_id or ''}"
            raise _RefusedError(f"{why}. {RIGHT_DISK}")
        if meta.node_id is not None and meta.node_id != asked.node_id:
            why = f"{_file(path)} has node id {meta.node_id}, expected is {asked.node_id}"
            raise _RefusedError(f"{why}. {RIGHT_DISK}")
        if meta.directory_id is not None:
            if meta.directory_id.reserved:
                raise _RefusedError(
                    f"{_file(path)} has directory.id {meta.directory_id}, which Kafka reserves. Put the true id back "
                    "(the broker's registration names it), or remove the line: a new one is made at the start"
                )
            if meta.directory_id in seen:
                raise _RefusedError(
                    _same_id(found.places[path], found.places[seen[meta.directory_id]], meta.directory_id)
                )
            seen[meta.directory_id] = path


def _same_id(place: Place, first: Place, directory_id: str) -> str:
    if place.canonical == first.canonical:
        return (
            f"{_file(place.path)} and {_file(first.path)} are one file: the directory is named twice. Spell it in one "
            "way in log.dirs and metadata.log.dir"
        )
    return (
        f"{_file(place.path)} has directory.id {directory_id}, which {first.path} has too: one is a copy. Find out "
        "which, and remove directory.id from the copy's file: a new one is made at the start"
    )


def _metadata_directory(found: _Ensemble) -> None:
    asked = found.asked
    if asked.mode is not Mode.ZOOKEEPER and asked.metadata_dir in found.failed:
        meta = found.places[asked.metadata_dir].meta
        why = meta.reason if isinstance(meta, MetaBroken) else "it cannot be written"
        why = f"{_file(asked.metadata_dir)}: {why}, and it is the metadata directory"
        raise _RefusedError(f"{why}. Restore the file, or repair the disk")


def _log_manager(found: _Ensemble) -> None:
    """Folders that cannot be used fail; one place under two names, or nothing left, ends the start."""
    asked, live = found.asked, dict[str, str]()
    for path in asked.log_dirs:
        place = found.places[path]
        if path in found.failed or place.unusable or (place.missing and not place.writable):
            found.failed.add(path)
            continue
        if place.canonical in live:
            raise _RefusedError(f"{path} and {live[place.canonical]} are one directory. Name it once in log.dirs")
        live[place.canonical] = path
    unlocked = {path for path in live.values() if not found.places[path].writable}
    found.failed |= unlocked
    if unlocked >= set(live.values()):
        paths = ", ".join(asked.log_dirs)
        raise _RefusedError(f"no log directory can be used: {paths}. Repair the disks, or their permissions")
    if unlocked and asked.mode is Mode.MIGRATION:
        why = f"{min(unlocked)} cannot be written, and in migration mode one failing directory halts the broker"
        raise _RefusedError(f"{why}. Repair the disk first")


# -- what Kafka does not report ----------------------------------------------------------------------------------
def _warnings(found: _Ensemble) -> Iterator[str]:
    mode, metadata_dir = found.asked.mode, found.asked.metadata_dir
    for path in dict.fromkeys((*found.asked.log_dirs, *found.asked.ensemble)):
        place = found.places[path]
        yield from (f"{path}: {note}" for note in place.notes)
        yield from _warn_of_file(found.asked, place)
        if place.metadata_log and path != metadata_dir:
            later = " and lets no KRaft node start" if mode is not Mode.KRAFT else ""
            yield f"{path}/__cluster_metadata-0 is outside of the metadata directory {metadata_dir}{later}"
        elif place.metadata_log and mode is Mode.MIGRATION:
            yield f"{path}/__cluster_metadata-0 is deleted and made again at the start"
        if path in found.failed:
            yield _failed(place, mode)


def _warn_of_file(asked: Asked, place: Place) -> Iterator[str]:
    """What a start does with meta.properties without a message in the log."""
    meta, file = place.meta, _file(place.path)
    if place.path not in asked.ensemble or isinstance(meta, MetaBroken):
        return
    if isinstance(meta, MetaMissing):
        if asked.mode is not Mode.KRAFT:
            what = "the directory is not there: Kafka makes an empty one" if place.missing else "Kafka makes a new file"
            id_ = " with a new directory.id" if asked.mode is Mode.MIGRATION else ""
            after = (
                f"; {_replicas(place)}, {WRONG_DIRECTORY}. {RESTORE}" if place.replicas else ". Is the disk mounted?"
            )
            yield f"{file} is not there: {what}{id_}{after}"
        return
    if place.doubt:
        happens = " Kafka takes it as it is." if asked.mode is Mode.ZOOKEEPER else ""
        yield f"{file} cannot be trusted: {place.doubt}.{happens} {RESTORE}"
    if meta.directory_id is None and asked.mode is not Mode.ZOOKEEPER:
        known = f"; {_replicas(place)}. Where the metadata knows this directory already, {WRONG_DIRECTORY}. {RESTORE}"
        yield f"{file} has no directory.id: Kafka makes a new one{known if place.replicas else ''}"
    if asked.mode is Mode.KRAFT and meta.cluster_id is not None and meta.cluster_id != asked.cluster_id:
        yield (
            f"{file} has cluster.id {meta.cluster_id}, expected is {asked.cluster_id}: the process starts, and the "
            f"controllers refuse it. {RIGHT_DISK}"
        )
    if asked.mode is not Mode.ZOOKEEPER and meta.version == V1:
        yield f"{file} has version 1: a rollback to plain ZooKeeper mode stops at it (KAFKA-20762)"


def _failed(place: Place, mode: Mode) -> str:
    why = place.unusable or (f"{_file(place.path)}: {place.meta.reason}" if isinstance(place.meta, MetaBroken) else "")
    why = why or ("it is not there and cannot be made" if place.missing else "it cannot be written")
    cost = "its replicas are offline"
    if mode is Mode.MIGRATION:
        cost = "its replicas stay MIGRATING in the metadata, and are not failed over"
    return f"{place.path} counts as failed: {why}; {cost}. Restore the file, or repair the disk"


METADATA_FOLDER: Final = f"{METADATA_TOPIC}-0"
LOCK: Final = ".lock"
_LIMIT: Final = limits.most("meta-properties")
_DENIED: Final = (errno.EACCES, errno.EPERM)
_FLOCK: Final = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


@dataclass(frozen=True, slots=True)
class _File:
    meta: MetaProperties | MetaMissing | MetaBroken
    doubt: str = ""
    blocks: str = ""
    owner: int | None = None
    link: str = ""


def look_for_start(asked: Asked) -> dict[str, Place]:
    """Inspect every directory of that start, by its path as given.

    Raises:
        NotVisible: our user may not look where Kafka's may.
    """
    return {path: inspect_place(path) for path in dict.fromkeys((*asked.log_dirs, *asked.ensemble))}


def inspect_place(path: str) -> Place:
    """Inspect one directory.  Raises NotVisible: our user may not look into it."""
    found = _meta(path)
    missing, unusable = _state(path)
    names = list[str]()
    if not missing and not unusable:
        try:
            names = os.listdir(path)  # noqa: PTH208 - names are all that is asked
        except OSError as error:
            _refuse_if_rights(error, path)
    folders = ((name, meta_properties.decode_folder(name)) for name in names if name != METADATA_FOLDER)
    # deleted, stray and future copies hold no data that would be lost
    current = [name for name, folder in folders if folder is not None and folder.kind == meta_properties.CURRENT]
    return Place(
        path=path,
        meta=found.meta,
        canonical=os.path.realpath(path),
        doubt=found.doubt,
        missing=missing,
        unusable=unusable,
        writable=_writable(path) if missing else os.access(path, os.W_OK | os.X_OK),
        metadata_log=Path(path, METADATA_FOLDER).exists(),
        replicas=sum(Path(path, name).is_dir() for name in current),
        blocks=found.blocks,
        notes=tuple(_notes(path, found)),
    )


def _meta(path: str) -> _File:
    name = os.path.join(path, meta_properties.META_PROPERTIES)  # noqa: PTH118 - Kafka's own spelling, "" and all
    try:
        here = Path(name).stat()
        if stat.S_ISDIR(here.st_mode):
            return _File(MetaBroken("it is a folder"))
        if not stat.S_ISREG(here.st_mode):
            return _File(MetaMissing(), blocks=f"{name} is no regular file: Kafka would wait for it. Take it away")
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            raw = file.read(_LIMIT + 1)
        if len(raw) > _LIMIT:
            raise NotVisible(f"it has more than {_LIMIT} bytes: that is no meta.properties", where=name)
    except FileNotFoundError:
        return _File(MetaMissing())
    except OSError as error:
        _refuse_if_rights(error, path)
        return _File(MetaBroken(f"it cannot be read: {error.strerror or error}"))
    meta = meta_properties.decode(raw, strict=False)
    doubted = meta_properties.decode(raw)
    doubt = doubted.reason if isinstance(meta, MetaProperties) and isinstance(doubted, MetaBroken) else ""
    link = os.path.realpath(name) if Path(name).is_symlink() else ""
    return _File(meta, doubt, owner=here.st_uid, link=link)


def _refuse_if_rights(error: OSError, path: str) -> None:
    """A denial concerns this user, not Kafka's, unless the folder belongs to this user."""
    if error.errno not in _DENIED:
        return
    try:
        own = Path(path).stat().st_uid == os.geteuid()
    except OSError:
        own = False
    if not own:
        raise NotVisible(
            f"this user may not look into it ({error.strerror})", where=path, next_step="run it as Kafka's own user"
        ) from error


def _state(path: str) -> tuple[bool, str]:
    """Is it missing, and why is it no readable folder?"""
    try:
        here = Path(path).stat()
    except FileNotFoundError:
        return True, ""
    except OSError as error:
        _refuse_if_rights(error, path)
        return False, f"it cannot be reached: {error.strerror or error}"
    if not stat.S_ISDIR(here.st_mode):
        return False, "it is no folder"
    if not os.access(path, os.R_OK):
        _refuse_if_rights(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), path)
        return False, "it cannot be read: Permission denied"
    return False, ""


def _writable(path: str) -> bool:
    """Could Kafka create that folder?  The nearest existing parent decides."""
    above = Path(os.path.abspath(path)).parent  # noqa: PTH100 - as Java's getAbsolutePath: links stay
    while not above.exists() and above != above.parent:
        above = above.parent
    broken_link = Path(path).is_symlink()  # mkdirs does not make what a link points to
    return not broken_link and above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def _notes(path: str, found: _File) -> Iterable[str]:
    if found.link:
        yield f"meta.properties is a link to {found.link}; Kafka replaces the link when it writes the file"
    if Path(path).is_symlink():
        yield f"it is a link to {os.path.realpath(path)}"
    if not os.path.isabs(path):  # noqa: PTH117 - a string
        yield "it is no absolute path: which folder it names depends on where Kafka is started"
    if found.owner is not None and found.owner != Path(path).stat().st_uid:
        yield f"meta.properties belongs to another user (uid {found.owner}) than the directory"
    if holder := _lock_holder(path):
        yield f"a living process ({holder}) has it locked: no second Kafka starts on it meanwhile"


def _lock_holder(path: str) -> str:
    """The pid that holds Kafka's .lock; the lock is not taken."""
    try:
        descriptor = os.open(os.path.join(path, LOCK), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)  # noqa: PTH118
    except OSError:
        return ""
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return "" if kind == fcntl.F_UNLCK else f"pid {pid}"
