"""Inspect directories of this host as a start of Kafka would find them, for `kafka_start`.  Read-only.

Other than everywhere else, a link is followed where Kafka follows it: a verdict on a start must see the same file.
What our user may not read, and Kafka's own user may, is an error, and never an answer.
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
from migrate.hosts.kafka_start import Asked, Place
from migrate.model import limits
from migrate.model.ids import METADATA_TOPIC
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties

METADATA_FOLDER: Final = f"{METADATA_TOPIC}-0"
LOCK: Final = ".lock"
_LIMIT: Final = limits.most("meta-properties")
_DENIED: Final = (errno.EACCES, errno.EPERM)
_FLOCK: Final = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid


@dataclass(frozen=True, slots=True)
class _File:
    """The content of a meta.properties."""

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
    """Inspect one directory.

    Raises:
        NotVisible: our user may not look into it.
    """
    found = _meta(path)
    missing, unusable = _state(path)
    names = [] if missing or unusable else _names(path)
    return Place(
        path=path,
        meta=found.meta,
        canonical=os.path.realpath(path),
        doubt=found.doubt,
        missing=missing,
        unusable=unusable,
        writable=_writable(path) if missing else os.access(path, os.W_OK | os.X_OK),
        metadata_log=Path(path, METADATA_FOLDER).exists(),
        replicas=sum(_is_replica(path, name) for name in names),
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
        raw = _read(name)
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


def _read(name: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read(_LIMIT + 1)
    if len(raw) > _LIMIT:
        raise NotVisible(f"it has more than {_LIMIT} bytes: that is no meta.properties", where=name)
    return raw


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


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - names are all that is asked
    except OSError as error:
        _refuse_if_rights(error, path)
        return []


def _is_replica(path: str, name: str) -> bool:
    """Is it a current copy?  Deleted, stray and future ones hold no data that would be lost."""
    found = meta_properties.decode_folder(name)
    return (
        found is not None
        and found.kind == meta_properties.CURRENT
        and name != METADATA_FOLDER
        and Path(path, name).is_dir()
    )


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
