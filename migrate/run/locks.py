"""The run's lock: a file in the runs' folder for this host, a znode for everybody, while ZooKeeper is there."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import socket
from typing import Protocol

from migrate.errors import RunLocked


class ZookeeperLock(Protocol):
    """What `migrate.zookeeper.lock` gives."""

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
