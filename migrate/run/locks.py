"""The run's lock: a file in the runs' folder for this host, a znode for everybody, while ZooKeeper is there.

A cluster without ZooKeeper has its lock on its hosts: a file beside each broker's configuration.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, Self

from migrate.errors import DirectoriesRefused, LockLost, MigrateError, RunLocked
from migrate.hosts.remote_files import LOCK_SUFFIX
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.plan import SHORT
from migrate.run import journal as journals

HOST_SUFFIX: Final = LOCK_SUFFIX
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


class ZookeeperLock(Protocol):
    """What `migrate.zookeeper.lock` gives, and `HostLocks` where there is no ZooKeeper."""

    def still_ours(self) -> None: ...

    def release(self) -> None: ...


class HeldFile(Protocol):
    """A lock file that is held on a node's host."""

    @property
    def where(self) -> str: ...

    def still_there(self) -> bool: ...

    def release(self) -> None: ...


class LockFile:
    """An flock on a file: the kernel frees it when the process ends, however it ends.

    `who` is what it says of its holder beside process and host: the person, the run, since when.
    """

    def __init__(self, path: pathlib.Path, who: Mapping[str, str] = NOBODY) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = path.read_text(errors="replace").strip()
            os.close(self._handle)
            raise RunLocked(said_of(owner, path.parent), where=str(path)) from error
        os.ftruncate(self._handle, 0)
        os.write(self._handle, json.dumps({**_ourselves(), **who}).encode())

    def release(self) -> None:
        os.close(self._handle)


class HostLocks:
    """One lock file beside each broker's configuration: two runs of two folders meet there."""

    def __init__(self, files: list[HeldFile]) -> None:
        self._files = files

    @classmethod
    def on_hosts(cls, nodes: Iterable[tuple[NodeId, str]], take: Callable[[NodeId, str, str], HeldFile]) -> Self:
        """All of them or none, each beside that node's configuration on its host; raises what `take` raises."""
        owner = json.dumps({**_ourselves(), "token": secrets.token_hex()})  # another run's line is never the same
        found: list[HeldFile] = []
        try:
            for node, config in nodes:
                found.append(take(node, config + HOST_SUFFIX, owner))
        except BaseException:
            cls(found).release()
            raise
        return cls(found)

    def still_ours(self) -> None:
        """Raise LockLost where a file was deleted or replaced, or what held it has ended: another could hold it."""
        for file in self._files:
            if not file.still_there():
                raise LockLost(
                    "the lock file on a broker's host was deleted or replaced, or what held it there has ended",
                    where=file.where,
                )

    def release(self) -> None:
        """Give all of them back; the files stay."""
        for file in self._files:
            file.release()


def of_brokers(inventory: Inventory, take: Callable[[NodeId, str, str], HeldFile] | None) -> HostLocks:
    """The lock of a cluster without ZooKeeper; `take` locks on the nodes' hosts, None: no host is reached.

    Raises:
        RunLocked: another process holds one.
        DirectoriesRefused: the executor reaches no host.
    """
    if take is None:
        raise DirectoriesRefused(
            f"executor {inventory.executor} reaches no host, so no lock can be taken there",
            where=inventory.path,
            next_step="use executor local or ssh",
        )
    return HostLocks.on_hosts(((node.id, node.config) for node in inventory.brokers), take)


def said_of(owner: str, runs: pathlib.Path) -> str:
    """`run 164dcc01 is in progress: root, pid 15585 on vm, since ..., now at step ...`; other words as they are."""
    try:
        found = {str(name): str(value) for name, value in strict_json.mapping(owner).items()}
        process = f"pid {found['pid']} on {found['host']}"
    except (ValueError, KeyError, TypeError):
        return f"another process holds this run: {owner or 'unknown'}"
    if not SHORT.fullmatch(run := found.get("run", "")):
        return f"another process holds this run: {process}"
    parts = [f"{found.get('owner', 'somebody')}, {process}", f"since {found.get('since', '?')}"]
    if step := _last_step(runs / run / "journal.jsonl"):
        parts.append(f"now at step {step}")
    return f"run {run} is in progress: {', '.join(parts)}"


def _last_step(journal: pathlib.Path) -> str:
    """The step that the run's journal names last; "" where none is."""
    try:
        events = journals.read(journal).events
    except (OSError, MigrateError):
        return ""
    return next((str(event.data["step"]) for event in reversed(events) if "step" in event.data), "")


def _ourselves() -> dict[str, str | int]:
    return {"pid": os.getpid(), "host": socket.gethostname()}


class RunLock:
    """Both locks as one; after `release_zookeeper` the file holds alone."""

    def __init__(self, file: LockFile, zookeeper: ZookeeperLock | None) -> None:
        self._file = file
        self._zookeeper = zookeeper

    def joined(self, zookeeper: ZookeeperLock) -> RunLock:
        return RunLock(self._file, zookeeper)

    def still_ours(self) -> None:
        """Raise where the znode was lost; the file's flock cannot be."""
        if self._zookeeper is not None:
            self._zookeeper.still_ours()

    def release_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.release()
            self._zookeeper = None

    def release(self) -> None:
        """Give both back; the file also where the znode was lost."""
        try:
            self.release_zookeeper()
        finally:
            self._file.release()


class Alive(StrEnum):
    LIVES = "lives"
    DEAD = "is dead"
    UNSEEN = "cannot be seen from here"


def process_alive(host: str, pid: int) -> Alive:
    """The process of that number on that host; one that got a dead one's number counts as living."""
    if host != socket.gethostname():
        return Alive.UNSEEN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Alive.DEAD
    except OverflowError:  # no process has such a number: it was not written by a run
        return Alive.UNSEEN
    except PermissionError:
        return Alive.LIVES
    return Alive.LIVES


@dataclass(frozen=True, slots=True)
class FileOwner:
    text: str
    held: bool


def file_owner(path: pathlib.Path) -> FileOwner | None:
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        text = os.pread(handle, 4096, 0).decode(errors="replace").strip()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return FileOwner(text, held=True)
        return FileOwner(text, held=False)
    finally:
        os.close(handle)


def empty_file(path: pathlib.Path) -> bool:
    """Take a dead owner's name out of the lock file; False where somebody holds it.

    The file itself stays: two runs that lock two files of one name would both be alone.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
