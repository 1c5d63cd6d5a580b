"""Log directories of brokers on this host: are they healthy, what do they say they are, which replicas lie in them.

Nothing outside a log directory is ever opened: links inside it are told, not followed.  The only trace of a look is
a file of a few bytes, written, fsynced and removed again, which is the one honest test of a disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.hosts import folders, meta_properties
from migrate.hosts.collect_disks import unmounted
from migrate.hosts.files import open_folder, read_no_follow
from migrate.hosts.mounts import Mounts
from migrate.model.columns import UNREADABLE_TOPIC_ID, ReplicaColumns
from migrate.model.disk_trouble import FULL, NO_REPLICA, NOT_MOUNTED
from migrate.model.ids import METADATA_TOPIC, NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import NOT_THERE, BrokerDisks, Directory, MetaBroken, MetaMissing, MetaProperties

PROBE_PREFIX: Final = ".kraft-migrate-probe-"
PROBE_SECONDS: Final = 10.0  # a disk that takes longer to store one block is no disk to migrate on
PROBE_EVERY: Final = 5.0  # seconds that a stored block counts: waits look several times a second, brokers write too
METADATA_FOLDER: Final = f"{METADATA_TOPIC}-0"
REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"  # tiered storage: Kafka skips it too (LogManager)
PARTITION_METADATA: Final = "partition.metadata"
SEGMENT: Final = ".log"
MAX_ODDITIES: Final = 20
_SMALL_FILE: Final = 64 * 1024
_VOLATILE: Final = ("tmpfs", "ramfs")
ROOM_BYTES: Final = 2**20  # below it a segment's next batches end in ENOSPC
ROOM_FILES: Final = 16  # a new segment takes four


class _NotOursError(Exception):
    """We may not look there; that says nothing of the disk where no directory of the broker is our user's own.

    `problem` is what it says where one is: the broker may not either.
    """

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"{path}: this user may not look into it ({error.strerror})")
        self.problem = f"cannot be written: {error.strerror}"


class LocalDisks:
    """`model.ports.Disks` for brokers on this host.

    Everything is looked at each time, but for one thing: a directory that has just stored a block is not asked to store
    another within PROBE_EVERY seconds, unless it does not answer.  One that did not store one is asked each time.
    """

    def __init__(
        self, probe_seconds: float = PROBE_SECONDS, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._probe_seconds = probe_seconds
        self._monotonic = monotonic
        self._stored: dict[str, float] = {}  # path -> when it last stored a block

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        """Every directory, healthy or not; Unknown when we lack the rights that the broker has."""
        mounts = Mounts.read()
        known = {os.path.normpath(path) for path in log_dirs}
        apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
        paths = dict.fromkeys((*log_dirs, *([apart] if apart else [])))
        now = self._monotonic()
        looks = {path: _Look(path, mounts, probe=not self._stored_lately(path, now)) for path in paths}
        deadline = time.monotonic() + self._probe_seconds
        denied: dict[str, _NotOursError] = {}
        found: dict[str, Directory] = {}
        for path, look in looks.items():
            try:
                found[path] = look.directory(deadline)
                if look.silent:
                    look = looks[path] = _Look(path, mounts, probe=True)  # noqa: PLW2901 - in its place
                    found[path] = look.directory(time.monotonic() + self._probe_seconds)
            except _NotOursError as error:
                denied[path] = error
                found[path] = Directory(path, error.problem, MetaMissing(), ReplicaColumns(), False)
        if denied and not any(_ours(path) for path in paths):
            return Unknown(str(next(iter(denied.values()))))
        self._remember(looks, found, now)
        return BrokerDisks(broker, tuple(found[path] for path in log_dirs), found[apart] if apart else None)

    def _stored_lately(self, path: str, now: float) -> bool:
        last = self._stored.get(path)
        return last is not None and now - last < PROBE_EVERY

    def _remember(self, looks: Mapping[str, _Look], found: Mapping[str, Directory], now: float) -> None:
        for path, look in looks.items():
            if found[path].problem:
                self._stored.pop(path, None)
            elif look.probe:
                self._stored[path] = now


class _Look:
    """One directory, looked at in a thread of its own: a dead disk or mount answers never and cannot be interrupted.

    All directories of a broker are looked at at once.  `silent`: it was not probed, and did not answer in time.
    """

    def __init__(self, path: str, mounts: Mounts, *, probe: bool) -> None:
        self._path = path
        self.probe = probe
        self.silent = False
        self._tried = threading.Event()
        self._found: Future[Directory] = Future()
        threading.Thread(target=self._work, args=(mounts,), name=f"look at {path}", daemon=True).start()

    def _work(self, mounts: Mounts) -> None:
        try:
            self._found.set_result(look_at(self._path, mounts, self._tried.set, probe=self.probe))
        except BaseException as error:  # noqa: BLE001 - handed to who waits
            self._found.set_exception(error)
        finally:
            self._tried.set()

    def directory(self, deadline: float) -> Directory:
        """What was found; by the deadline (monotonic) the disk must have stored a block, reading may take longer."""
        if self._tried.wait(max(deadline - time.monotonic(), 0.001)):
            return self._found.result()
        self.silent = not self.probe
        return Directory(self._path, "did not store one block in time", MetaMissing(), ReplicaColumns(), False)


@dataclass(slots=True)
class _Scan:
    """What is being gathered of one directory."""

    replicas: ReplicaColumns = field(default_factory=ReplicaColumns)
    metadata_log_bytes: int = -1
    oddities: list[str] = field(default_factory=list)


def look_at(path: str, mounts: Mounts, tried: Callable[[], None] = lambda: None, *, probe: bool = True) -> Directory:
    """One log directory; `tried` is called as soon as it is known whether the disk stores a block.

    Without `probe` it is not asked to: then `tried` is not called.
    """
    scan = _Scan()
    meta: MetaProperties | MetaMissing | MetaBroken = MetaMissing()
    mount = mounts.of(path)
    absent = unmounted(os.path.realpath(path), mount.point)
    problem = not_mounted(*absent) if absent else _unusable(path)
    free_bytes, free_files = _room(path)
    if not problem:
        if probe:
            problem = _stores(path)
            tried()
        try:
            with open_folder(path) as folder:
                meta = _meta(folder, path)
                _scan(folder, path, scan)
                problem = problem or _gone(folder, path)
        except OSError as error:
            _refuse_if_rights(error, path)
            problem = problem or f"cannot be read: {error.strerror or error}"
        problem = problem or no_room(free_bytes, free_files)
    link = os.path.realpath(path) if Path(path).is_symlink() else None
    oddities_of_place(link, mount.filesystem, scan.oddities)
    return Directory(
        path=path,
        problem=problem,
        meta=meta,
        replicas=scan.replicas,
        holds_metadata_log=scan.metadata_log_bytes >= 0,
        oddities=capped(scan.oddities),
        mount=mount.point,
        filesystem=mount.filesystem,
        free_bytes=free_bytes,
        metadata_log_bytes=scan.metadata_log_bytes,
    )


# -- health ------------------------------------------------------------------------------------------------------
def _unusable(path: str) -> str:
    if not Path(path).is_absolute():
        return "is no absolute path: which folder it names depends on where Kafka was started"
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return NOT_THERE
    except OSError as error:
        _refuse_if_rights(error, path)
        return f"cannot be reached: {error.strerror or error}"
    return "" if stat.S_ISDIR(found.st_mode) else "is no folder"


def _gone(folder: int, path: str) -> str:
    """Does the path still lead to the folder that was listed?  A dying disk, or a person, may have taken it away."""
    listed = os.fstat(folder)
    try:
        here = Path(path).stat()
    except OSError as error:
        return f"went away while it was looked at: {error.strerror or error}"
    same = (here.st_dev, here.st_ino) == (listed.st_dev, listed.st_ino)
    return "" if same else "was replaced while it was looked at"


def _refuse_if_rights(error: OSError, path: str) -> None:
    """A denial tells of us, not of the disk, unless the folder is our own user's."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return
    if not _ours(path):
        raise _NotOursError(path, error) from error


def _ours(path: str) -> bool:
    """Does it belong to this user?"""
    with contextlib.suppress(OSError):
        return Path(path).stat().st_uid == os.geteuid()
    return False


def _stores(path: str) -> str:
    try:
        store_block(path)
    except OSError as error:
        _refuse_if_rights(error, path)
        return f"cannot be written: {error.strerror or error}"
    return ""


def store_block(path: str) -> None:
    """Write, fsync and remove a tiny file; OSError says what the disk will not do."""
    name = PROBE_PREFIX + secrets.token_hex(6)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open_folder(path) as folder:
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            os.write(descriptor, b"probe\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            os.unlink(name, dir_fd=folder)


# -- content -----------------------------------------------------------------------------------------------------
def _meta(folder: int, path: str) -> MetaProperties | MetaMissing | MetaBroken:
    try:
        raw = read_no_follow(meta_properties.META_PROPERTIES, folder=folder, limit=_SMALL_FILE)
    except FileNotFoundError:
        return MetaMissing()
    except OSError as error:
        _refuse_if_rights(error, path)
        return MetaBroken(f"cannot be read: {error.strerror or error}")
    return meta_properties.decode(raw)


def _scan(folder: int, path: str, scan: _Scan) -> None:
    owner = os.fstat(folder).st_uid
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_symlink():
            scan.oddities.append(f"link, not followed: {entry.name}")
        elif entry.is_dir(follow_symlinks=False) and entry.name != REMOTE_INDEX_CACHE:
            _scan_replica(folder, entry.name, path, owner, scan)


def _scan_replica(parent: int, name: str, path: str, owner: int, scan: _Scan) -> None:
    replica = folders.decode_folder(name)
    if replica is None:
        scan.oddities.append(f"{NO_REPLICA}{name}")
        return
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return  # renamed or deleted since the listing: a living broker does that
    try:
        if os.fstat(folder).st_uid != owner:
            scan.oddities.append(f"another owner than the log directory's: {name}")
        size, links = _segments(folder)
        if name == METADATA_FOLDER:
            scan.metadata_log_bytes = size
            return
        scan.oddities += [f"link, not followed: {name}/{link}" for link in links]
        topic_id = _topic_id(folder, f"{path}/{name}")
    finally:
        os.close(folder)
    columns = scan.replicas
    columns.topic.append(replica.topic)
    columns.partition.append(replica.partition)
    columns.topic_id.append(topic_id)
    columns.kind.append(replica.kind)
    columns.folder.append(name)
    columns.size.append(size)


def _segments(folder: int) -> tuple[int, list[str]]:
    """Bytes of the segments (what Kafka calls a replica's size), and the names of links, which do not count."""
    total, links = 0, []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                links.append(entry.name)
            elif entry.name.endswith(SEGMENT):
                with contextlib.suppress(FileNotFoundError):  # retention removes segments as we look
                    total += entry.stat(follow_symlinks=False).st_size
    return total, links


def _topic_id(folder: int, where: str) -> str:
    try:
        raw = read_no_follow(PARTITION_METADATA, folder=folder, limit=_SMALL_FILE)
    except FileNotFoundError:
        return ""
    except OSError as error:
        _refuse_if_rights(error, where)
        return UNREADABLE_TOPIC_ID
    return folders.decode_partition_metadata(raw)


# -- place -------------------------------------------------------------------------------------------------------
def oddities_of_place(link: str | None, filesystem: str, oddities: list[str]) -> None:
    """Add what is odd about where a log directory lies; `link` is what its path points to, None for no link."""
    if link is not None:
        oddities.append(f"the directory is a link to {link}")
    if filesystem in _VOLATILE:
        oddities.append(f"lies in memory ({filesystem}): its content is lost with the host")


def capped(oddities: list[str]) -> tuple[str, ...]:
    """The first ones, and how many more there are."""
    if len(oddities) <= MAX_ODDITIES:
        return tuple(oddities)
    return (*oddities[:MAX_ODDITIES], f"and {len(oddities) - MAX_ODDITIES} more")


def _room(path: str) -> tuple[int, int]:
    """What is left for anybody but root: bytes, and files; -1 where that is not known."""
    try:
        found = os.statvfs(path)
    except OSError:
        return -1, -1
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else -1


def no_room(free_bytes: int, free_files: int) -> str:
    """What is wrong with a directory that stores a block still, and no segment any more; "" for nothing."""
    if 0 <= free_bytes < ROOM_BYTES:
        return f"{FULL}: {free_bytes // 1024} KiB are left, beside what the file system keeps for root"
    if 0 <= free_files < ROOM_FILES:
        return f"{FULL}: {free_files} inodes are left, each file takes one"
    return ""


def not_mounted(point: str, wanted_by: str) -> str:
    """What is wrong with a directory whose disk is not there: its folder belongs to another file system."""
    return f"{NOT_MOUNTED} {point} ({wanted_by} has a file system there)"
