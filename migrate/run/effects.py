"""The effects: the only place through which a run changes a cluster.

Each asks the lock first, writes its intent into the journal, acts, and writes that it acted; a crash point stands
before and after each.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from migrate.errors import (
    DirectoryInUse,
    DirectoryLost,
    HostCommandUnknown,
    MigrateError,
    NotSetAside,
    PlanIsStale,
    ProcessNotStopped,
)
from migrate.hosts import leftovers, meta_properties
from migrate.hosts.files import replace_file
from migrate.hosts.leftovers import ASIDE_SUFFIX, is_copy
from migrate.hosts.meta_properties import decode_folder
from migrate.hosts.properties import diff
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.launch import STOP_SECONDS
from migrate.model.outcome import Unknown, unknown
from migrate.model.ports import Clock, Files, Lock, ServiceControl, ZookeeperWrites, target_of
from migrate.model.rollback_readiness import StateBehind
from migrate.model.secrets import without_digits
from migrate.model.views import KeptFiles, MetaProperties, Stopped
from migrate.run import journal as journals
from migrate.run.journal import Journal
from migrate.zookeeper import layout

EFFECTS: Final = (  # all of them, as journal, crash points and docs/guarantees.md call them
    "write-config",
    "backup-file",
    "set-aside",
    "remove-copy",
    "set-znode",
    "delete-znode",
    "raise-versions",
    "backup-zookeeper",
    "make-directory",
    "format",
    "format-directories",
    "stop",
    "start",
    "assign-directories",
    "release-lock",
)
STATES_AT_ONCE: Final = 200  # whose versions one line of the journal tells
SAID: Final = 2000  # characters that a journal keeps of a tool's words


@dataclass(frozen=True, slots=True)
class Hands:
    files: Files
    services: ServiceControl
    zookeeper: Callable[[], ZookeeperWrites]
    drive: Callable[[NodeId], str]
    not_storing: Callable[[NodeId, Sequence[str]], Mapping[str, str]] = field(kw_only=True)  # hosts.disks
    tell: Callable[[Event], None] = lambda _: None  # hears of each effect, once its intent is on disk
    at_once: int = 1  # hosts that are worked side by side


class JournaledEffects:
    def __init__(
        self, hands: Hands, journal: Journal, lock: Lock, clock: Clock, folder: pathlib.Path, crash: CrashPoints
    ) -> None:
        self._hands = hands
        self._journal = journal
        self._lock = lock
        self._clock = clock
        self._folder = folder
        self._crash = crash
        self.step = ""

    def crash_point(self, label: str) -> None:
        self._crash.reach(label)

    @contextmanager
    def _effect(self, name: str, node: str, detail: str) -> Iterator[None]:
        label = f"{name}:{node}"
        self._lock.still_ours()
        data = {"step": self.step, "effect": name, "node": node, "detail": detail}
        self._hands.tell(self._journal.append(self._clock.now(), "effect", data))
        self._crash.reach(f"before:{label}")
        self._ours_at_the_last_moment()
        with self._may_have_happened(name, node):
            yield
        self._crash.reach(f"after:{label}")
        self._hands.tell(self._journal.append(self._clock.now(), "effected", data))

    @contextmanager
    def _may_have_happened(self, name: str, node: str | NodeId) -> Iterator[None]:
        try:
            yield
        except HostCommandUnknown as error:
            error.why = error.why or f"{self.step} was at `{name}` of node {node}: it may have happened, or not"
            raise

    def _ours_at_the_last_moment(self) -> None:
        """Asked again behind the intent: writing it may have taken as long as a paused process sleeps."""
        self._lock.still_ours()

    def write_config(self, node: NodeId, path: str, content: bytes, expect_sha256: str | None) -> None:
        """Write a file, with a copy of what lay there beside it; PlanIsStale where that is not what was looked at."""
        before = self._hands.files.read(node, path) if self._hands.files.exists(node, path) else None
        here = None if before is None else hashlib.sha256(before).hexdigest()
        if here != expect_sha256:
            raise PlanIsStale(f"{path} of node {int(node)} changed between looking and writing", where=path)
        lines = [
            *map(without_digits, diff(before or b"", content, path))
        ]  # each session of a run has digits of its own
        with self._effect("write-config", str(int(node)), path):
            if before is not None:
                leftovers.keep_copies(self._hands.files, node, {path: before})
            else:
                self.keep_here(node, path, content)
            self._hands.files.write(node, path, content)
        self._journal.append(
            self._clock.now(), "diff-file", {"step": self.step, "node": int(node), "path": path, "lines": lines}
        )

    def backup_files(self, node: NodeId, paths: Sequence[str]) -> None:
        """Keep a copy beside each file, and one in the run's folder; an older copy is never overwritten."""
        contents: dict[str, bytes] = {}
        for path, content in leftovers.read_all(self._hands.files, node, paths).items():
            if isinstance(content, bytes):
                contents[path] = content
            elif not isinstance(content, FileNotFoundError):
                raise content
        if not contents:
            return
        with self._effect("backup-file", str(int(node)), ", ".join(contents)):
            beside = leftovers.keep_copies(self._hands.files, node, contents)
            for path, content in contents.items():
                self.keep_here(node, path, content)
        for path, content in contents.items():
            digest = hashlib.sha256(content).hexdigest()
            self.note(f"backup:{int(node)}:{path}", f"{beside[path]} (SHA-256 {digest})")

    def copies_of(self, node: NodeId, path: str) -> KeptFiles | Unknown:
        """What earlier effects kept beside a file that is gone."""
        try:
            return leftovers.kept_beside(self._hands.files, node, path)
        except MigrateError as error:
            return unknown(error)

    def keep_here(self, node: NodeId, path: str, content: bytes) -> pathlib.Path:
        """Keep a file's content in the run's folder; what is kept there under that name, of any file, stays."""
        found = copy_in(self._folder, node, path)
        if found.exists() and found.read_bytes() != content:
            found = found.with_name(f"{found.name}-{hashlib.sha256(content).hexdigest()[:8]}")
        found.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(str(found), content)
        return found

    def set_aside(self, node: NodeId, path: str) -> None:
        """Give a file of a stopped node a name with the time in it; what is not there needs none."""
        if not self._hands.files.exists(node, path):
            return
        beside = f"{target_of(self._hands.files, node, path) or path}{ASIDE_SUFFIX}-{self._moment()}"
        new, number = beside, 1
        while self._hands.files.exists(node, new):
            new, number = f"{beside}-{number}", number + 1
        with self._effect("set-aside", str(int(node)), f"{path} -> {new}"):
            self._hold_down((node,))
            try:
                self._hands.files.rename(node, path, new)
            except OSError as error:
                raise NotSetAside(f"it was not renamed: {error.strerror or error}", where=path) from error
        self.note(f"aside:{int(node)}:{path}", new)

    def remove_copy(self, node: NodeId, path: str) -> None:
        """Remove a copy; what is not there needs no removal, and what is no copy of ours by its name stays."""
        if not is_copy(path) or not self._hands.files.exists(node, path):
            return
        with self._effect("remove-copy", str(int(node)), path):
            self._hands.files.remove(node, path)

    def set_metadata_aside(self, node: NodeId, directory: str) -> None:
        """Move a stopped controller's metadata into a folder of its own directory; a killed move goes on."""
        files, directory = self._hands.files, directory.rstrip("/")
        if not leftovers.holds_metadata(files, node, directory):
            return
        new = leftovers.choose_aside_folder(files, node, directory, self._moment())
        with self._effect("set-aside", str(int(node)), f"{directory} -> {new}"):
            self._hold_down((node,))
            try:
                leftovers.set_metadata_aside(
                    files, node, directory, new, lambda entry: self._crash.reach(f"aside:{int(node)}:{entry}")
                )
            except OSError as error:
                raise NotSetAside(f"it was not moved: {error.strerror or error}", where=directory) from error
        self.note(f"aside:{int(node)}:{directory}", new)

    def _moment(self) -> str:
        return time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock.now()))

    def set_znode(self, path: str, data: bytes, version: int) -> None:
        with self._effect("set-znode", path, f"{data.decode(errors='replace')} (over version {version})"):
            self._hands.zookeeper().set(path, data, version)

    def delete_znode(self, path: str, version: int, down: Sequence[NodeId] = ()) -> None:
        with self._effect("delete-znode", path, f"version {version}"):
            self._hold_down(down)
            self._hands.zookeeper().delete(path, version)

    def raise_versions(self, states: Sequence[StateBehind], owner: int | None, down: Sequence[NodeId]) -> None:
        """Write states' own bytes over them, some hundreds at once, while none of the nodes in `down` lives.

        `owner`, the version of a broker's /controller, goes with the last of them: killed before, some are still
        behind, so that the rest is planned again with it.
        """
        for start in range(0, len(states), STATES_AT_ONCE):
            some, last = states[start : start + STATES_AT_ONCE], start + STATES_AT_ONCE >= len(states)
            told = [f"{entry.path} {entry.version} -> {entry.partition_epoch}" for entry in some]
            told += [f"delete /controller version {owner}"] if last and owner is not None else []
            with self._effect("raise-versions", layout.TOPICS, "; ".join(told)):
                self._hold_down(down)
                least = {entry.path: entry.partition_epoch for entry in some}
                self._hands.zookeeper().raise_versions(least, owner if last else None)

    def _hold_down(self, nodes: Sequence[NodeId]) -> None:
        """Looked at again at the last moment: a process that crashed may have been started again by its owner since.

        The service is stopped even where no process lives, so that whoever owns it does not start it again.
        """
        for node in nodes:
            self._is_down(node)
            self._hands.services.stop(node, STOP_SECONDS)
            self._is_down(node)

    def _is_down(self, node: NodeId) -> None:
        state = self._hands.services.state(node)
        if not isinstance(state, Stopped):
            raise ProcessNotStopped(
                f"node {int(node)} was stopped, and runs again or cannot be seen ({state})",
                where=f"node {int(node)}",
                why="what is taken away under a controller that runs it would claim again, or write on",
                next_step=f"find out who starts node {int(node)}, stop it there, and make a new plan",
            )

    def backup_zookeeper(self, name: str = "zookeeper") -> None:
        """Keep the whole tree in the run's folder, under that name; a later one of the same name replaces it."""
        target = self._folder / "backup" / f"{name}.jsonl.gz"
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._effect("backup-zookeeper", "zookeeper", target.name):
            found = self._hands.zookeeper().backup(str(target))
        text = ", ".join(f"{key} {value}" for key, value in sorted(found.items()))
        self.note(f"backup:{name}", f"{target.name}: {text}")

    def make_directory(self, node: NodeId, path: str) -> None:
        with self._effect("make-directory", str(int(node)), path):
            self._hands.files.make_directory(node, path)

    def format_storage(self, nodes: Sequence[NodeId], cluster_id: str, release_version: str, voters: str = "") -> None:
        """Side by side, for each is its own host's work; where one fails, the others come to their end first."""
        what = f"cluster {cluster_id}, release {release_version}{f', voters {voters}' if voters else ''}"

        def formatted(node: NodeId) -> None:
            with self._may_have_happened("format", node):
                self._hands.services.format_storage(node, cluster_id, release_version, voters=voters)

        for start in range(0, len(nodes), self._hands.at_once):
            some = nodes[start : start + self._hands.at_once]
            with ExitStack() as begun, ThreadPoolExecutor(len(some), thread_name_prefix="format") as pool:
                for node in some:
                    begun.enter_context(self._effect("format", str(int(node)), what))
                for done in [pool.submit(formatted, node) for node in some]:
                    done.result()

    def format_directories(self, node: NodeId, cluster_id: str, release_version: str) -> None:
        with self._effect("format-directories", str(int(node)), f"cluster {cluster_id}, release {release_version}"):
            self._hold_down((node,))
            said = self._hands.services.format_storage(node, cluster_id, release_version, ignore_formatted=True)
        self.note(f"formatted:{int(node)}", " ".join(said.split())[-SAID:])

    def require_empty(self, node: NodeId, path: str) -> None:
        """Looked into at the last moment, the broker being down: a replica may have come since the step's own look."""
        replicas = [name for name in self._hands.files.names(node, path) if decode_folder(name) is not None]
        if replicas:
            raise DirectoryInUse(f"it holds replicas: {', '.join(replicas[:5])}", where=path)

    def require_same(self, node: NodeId, metas: Mapping[str, MetaProperties]) -> None:
        """Looked at in the last moment before a start.

        A broker in migration mode that is started without a disk makes the replicas of that disk anew on the others.
        """
        files = {f"{path}/{meta_properties.META_PROPERTIES}": path for path in metas}
        for file, content in leftovers.read_all(self._hands.files, node, tuple(files)).items():
            path = files[file]
            if isinstance(content, OSError):
                raise self._lost(
                    node, path, f"its {meta_properties.META_PROPERTIES} cannot be read: {content.strerror or content}"
                ) from content
            if meta_properties.decode(content) != metas[path]:
                raise self._lost(node, path, f"its {meta_properties.META_PROPERTIES} is another than before the stop")
        for path, problem in self._hands.not_storing(node, tuple(metas)).items():
            raise self._lost(node, path, problem)

    def _lost(self, node: NodeId, path: str, what: str) -> DirectoryLost:
        return DirectoryLost(
            what, where=path, why=f"broker {int(node)} remains stopped: started now, it would continue without it"
        )

    def stop(self, node: NodeId) -> None:
        with self._effect("stop", str(int(node)), ""):
            self._hands.services.stop(node, STOP_SECONDS)

    def start(self, node: NodeId) -> None:
        with self._effect("start", str(int(node)), ""):
            self._hands.services.start(node)

    def assign_directories(self, broker: NodeId) -> None:
        with self._effect("assign-directories", str(int(broker)), "AssignReplicasToDirs"):
            said = self._hands.drive(broker)
        self.note(f"assigned:{int(broker)}", said)

    def release_zookeeper_lock(self) -> None:
        """The lock file holds alone from here."""
        with self._effect("release-lock", "zookeeper", ""):
            self._lock.release_zookeeper()

    def note(self, key: str, value: str) -> None:
        self._journal.append(self._clock.now(), "note", {"key": key, "value": value})

    def note_measures(self) -> None:
        for key, value in journals.measures(self._journal.events).items():
            self.note(key, value)


def copy_in(folder: pathlib.Path, node: NodeId, path: str) -> pathlib.Path:
    """Where a run keeps that file of a node in its folder."""
    return folder / "backup" / str(int(node)) / path.strip("/").replace("/", "_")


VARIABLE: Final = "KRAFT_MIGRATE_CRASH_AT"


class CrashPoints:
    """Numbered crash points, for tests of kill and resume: the process kills itself as nothing else could.

    `KRAFT_MIGRATE_CRASH_AT` names a point: its number, or the text that it is labelled with.

    | label | where |
    |---|---|
    | `before:EFFECT:NODE`, `after:EFFECT:NODE` | around every effect: behind its intent, before `effected` |
    | `unsynced:EVENT` | a line of the journal is written and not yet fsynced |
    | `unsynced:FILE` | the same of a configuration file: its new content has no name yet |
    | `sent:BROKER:N` | the N-th request of an assignment was answered, and nothing else was done |
    | `proof:STEP` | the effects of a step are done, and nothing of it is proven |
    """

    def __init__(self, wanted: str | None = None) -> None:
        self._wanted = os.environ.get(VARIABLE, "") if wanted is None else wanted
        self.passed = 0

    def reach(self, label: str) -> None:
        self.passed += 1
        if self._wanted and self._wanted in (str(self.passed), label):
            os.kill(os.getpid(), signal.SIGKILL)
