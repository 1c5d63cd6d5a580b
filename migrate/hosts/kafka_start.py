"""Look at directories of this host as a start of Kafka would find them, read-only.

`migrate.model.kafka_start` decides what Kafka does with them.  Other than everywhere else, a link is followed where
Kafka follows it: a verdict on a start must see the same file.  What our user may not read, and Kafka's own user may, is
an error, and never an answer.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import NotVisible
from migrate.hosts import meta_properties
from migrate.hosts.collect_disks import NOT_REPLICAS
from migrate.hosts.collected import METADATA_FOLDER
from migrate.model import limits
from migrate.model.columns import ReplicaColumns
from migrate.model.disk_trouble import NO_REPLICA
from migrate.model.kafka_start import Asked, Place
from migrate.model.views import Directory, MetaBroken, MetaMissing, MetaProperties

LOCK: Final = ".lock"
_LIMIT: Final = limits.most("meta-properties")
_DENIED: Final = (errno.EACCES, errno.EPERM)
_FLOCK: Final = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


@dataclass(frozen=True, slots=True)
class _File:
    meta: MetaProperties | MetaMissing | MetaBroken
    doubt: str = ""
    blocks: str = ""


def look_for_start(asked: Asked) -> dict[str, Place]:
    """Inspect every directory of that start, by its path as given.

    Raises:
        NotVisible: our user may not look where Kafka's may.
    """
    return {path: inspect_place(path) for path in asked.all}


def inspect_place(path: str) -> Place:
    """Inspect one directory.  Raises NotVisible: our user may not look into it."""
    found = _meta(path)
    missing, unusable = _state(path)
    replicas, strange = ReplicaColumns(), list[str]()
    if not missing and not unusable:
        try:
            folders = [name for name in sorted(os.listdir(path)) if Path(path, name).is_dir()]  # noqa: PTH208
        except OSError as error:
            _refuse_if_rights(error, path)
            folders = []
        _sort(folders, replicas, strange)
    directory = Directory(path, unusable, found.meta, replicas, Path(path, METADATA_FOLDER).exists(), tuple(strange))
    return Place(
        directory,
        canonical=os.path.realpath(path),
        doubt=found.doubt,
        missing=missing,
        writable=_writable(path) if missing else os.access(path, os.W_OK | os.X_OK),
        blocks=found.blocks,
        locked_by=_lock_holder(path),
    )


def _sort(folders: Iterable[str], replicas: ReplicaColumns, strange: list[str]) -> None:
    """Sort the names of folders into replicas and what Kafka refuses to start on, as LogManager.loadLogs does."""
    for name in folders:
        folder = meta_properties.decode_folder(name)
        if name == METADATA_FOLDER or name in NOT_REPLICAS:
            continue
        if folder is None:
            strange.append(f"{NO_REPLICA}{name}")
            continue
        replicas.topic.append(folder.topic)
        replicas.partition.append(folder.partition)
        replicas.topic_id.append("")
        replicas.kind.append(folder.kind)
        replicas.folder.append(name)
        replicas.size.append(0)


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
    return _File(meta, doubt)


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
