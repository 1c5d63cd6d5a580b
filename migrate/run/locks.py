"""The run's lock: a file in the runs' folder for this host, a znode for everybody, while ZooKeeper is there.

A cluster without ZooKeeper has its lock on its hosts: a file beside each broker's configuration.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import socket
from collections.abc import Iterable
from typing import Final, Protocol, Self

from migrate.errors import LockLost, RunLocked

HOST_SUFFIX: Final = ".kraft-migrate-lock"


class ZookeeperLock(Protocol):
    """What `migrate.zookeeper.lock` gives, and `HostLocks` where there is no ZooKeeper."""

    def still_ours(self) -> None:
        """Raise LockLost where it is not."""

    def release(self) -> None:
        """Delete the znode."""


class LockFile:
    """An flock on a file: the kernel frees it when the process ends, however it ends."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = path.read_text(errors="replace").strip()
            os.close(self._handle)
            raise RunLocked(f"another process holds this run: {owner or 'unknown'}", where=str(path)) from error
        os.ftruncate(self._handle, 0)
        os.write(self._handle, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())

    def release(self) -> None:
        """Give it back."""
        os.close(self._handle)

    def still_there(self) -> bool:
        """Is the file that is held the one that another run would lock?"""
        held = os.fstat(self._handle)
        try:
            here = self.path.stat()
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (held.st_dev, held.st_ino)


class HostLocks:
    """One lock file beside each broker's configuration: two runs of two folders meet there."""

    def __init__(self, files: list[LockFile]) -> None:
        self._files = files

    @classmethod
    def acquire(cls, configs: Iterable[str]) -> Self:
        """All of them, or none; RunLocked where another process holds one."""
        found: list[LockFile] = []
        try:
            for config in configs:
                found.append(LockFile(pathlib.Path(config + HOST_SUFFIX)))  # noqa: PERF401 - those that were taken are given back
        except BaseException:
            cls(found).release()
            raise
        return cls(found)

    def still_ours(self) -> None:
        """Raise LockLost where a file was deleted or replaced: another run could hold the new one."""
        for file in self._files:
            if not file.still_there():
                raise LockLost("the lock file on a broker's host was deleted or replaced", where=str(file.path))

    def release(self) -> None:
        """Give all of them back; the files stay, empty."""
        for file in self._files:
            file.release()


class RunLock:
    """Both locks as one; after `release_zookeeper` the file holds alone."""

    def __init__(self, file: LockFile, zookeeper: ZookeeperLock | None) -> None:
        self._file = file
        self._zookeeper = zookeeper

    def joined(self, zookeeper: ZookeeperLock) -> RunLock:
        """The same file's lock with a znode beside it."""
        return RunLock(self._file, zookeeper)

    def still_ours(self) -> None:
        """Raise where the znode was lost; the file's flock cannot be."""
        if self._zookeeper is not None:
            self._zookeeper.still_ours()

    def release_zookeeper(self) -> None:
        """Delete the znode."""
        if self._zookeeper is not None:
            self._zookeeper.release()
            self._zookeeper = None

    def release(self) -> None:
        """Give both back; the file also where the znode was lost."""
        try:
            self.release_zookeeper()
        finally:
            self._file.release()
