"""The collector's answers in the inbox, each bound to an instruction.

An answer counts where it echoes the id that was asked of that node last: whether it is older than what was done since
is known from the id, never from a clock.
"""

from __future__ import annotations

import base64
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from migrate.errors import CollectedDamaged, CollectedForNobody, CollectedOtherVersion, NotTold
from migrate.hosts.collected import Collected, body_of, collected_of, read_raw, refuse_odd_content
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import Directory

NO_ANSWER: Final = "no answer of the collector is there that was made after the last instruction for it"


@dataclass(frozen=True, slots=True)
class Watched:
    """A path as it is on the host: kind is nothing, file, folder, other or error; `shown` is its text without secrets.

    `changed` is the inode's time in seconds; `near` are names in its folder that begin with its own (None: not known).
    """

    path: str
    kind: str
    sha256: str = ""
    changed: float = 0.0
    lines: int = -1
    placeholders: int = 0
    shown: bytes = b""
    near: tuple[str, ...] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class KafkaProcess:
    """A Kafka process that names the node's file; `more` counts the words behind it, which may override the file."""

    pid: int
    started: float
    more: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the collector; `processes` None: it was not asked for them."""

    collected: Collected
    instruction: str
    watched: Mapping[str, Watched]
    processes: tuple[KafkaProcess, ...] | None
    metas: Mapping[str, bytes]  # by the path of each meta.properties that is there
    folders: Mapping[str, tuple[str, ...]]
    absent: frozenset[str]  # directories that are not there
    without_meta: frozenset[str]  # paths of meta.properties that are not there

    def directory(self, path: str) -> Directory | None:
        disks = self.collected.disks
        if isinstance(disks, Unknown):
            return None
        apart = () if disks.metadata_directory is None else (disks.metadata_directory,)
        return next((entry for entry in (*disks.directories, *apart) if entry.path == path), None)

    def started_with(self, path: str) -> str | None:
        """SHA-256 of the raw file that the one process was started with, where the times prove it (systemd.py)."""
        file = self.watched.get(path)
        if file is None or file.kind != "file" or self.processes is None or len(self.processes) != 1:
            return None
        process = self.processes[0]
        proven = not process.more and file.changed + 0.5 < process.started
        return file.sha256 if proven else None


def read_answer(path: str) -> Answer:
    """Read one file of the inbox; raises what `read_collected` raises."""
    body = body_of(read_raw(path), path)
    with refuse_odd_content(path):
        return _answer(collected_of(body, path), body)


def _answer(collected: Collected, body: Mapping[str, Any]) -> Answer:
    told = body.get("told") or {"instruction": "", "watched": [], "processes": None}
    watched = {str(entry["path"]): _watched(entry) for entry in told["watched"]}
    looks = {str(entry["path"]).rstrip("/"): entry for entry in body["directories"]}
    metas = {
        f"{path}/{META_PROPERTIES}": base64.b64decode(entry["meta"]["raw"], validate=True)
        for path, entry in looks.items()
        if "raw" in entry.get("meta", {})
    }
    absent = frozenset(path for path, entry in looks.items() if (entry.get("unreachable") or [0])[0] == errno.ENOENT)
    without = frozenset(
        f"{path}/{META_PROPERTIES}" for path, entry in looks.items() if entry.get("meta") == {} or path in absent
    )
    folders = {
        path: tuple(sorted(str(inner["name"]) for inner in entry["entries"]))
        for path, entry in looks.items()
        if "entries" in entry
    }
    found = told["processes"]
    processes = None
    if found is not None:
        processes = tuple(KafkaProcess(int(e["pid"]), int(e["started"]) / 1e9, int(e["more"])) for e in found)
    return Answer(collected, str(told["instruction"]), watched, processes, metas, folders, absent, without)


def _watched(entry: Mapping[str, Any]) -> Watched:
    near = None if entry["near"] is None else tuple(map(str, entry["near"]))
    found = Watched(str(entry["path"]), str(entry["kind"]), near=near)
    if found.kind == "error":
        return replace(found, problem=str(entry["error"][1]))
    if found.kind != "file":
        return found
    return replace(
        found,
        sha256=str(entry["sha256"]),
        changed=int(entry["changed"]) / 1e9,
        lines=int(entry["lines"]),
        placeholders=int(entry["placeholders"]),
        shown=base64.b64decode(entry["raw"], validate=True),
    )


class Inbox:
    """The folder where answers are put, each under the name that its instruction gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[
            str, tuple[tuple[int, int, int], Answer]
        ] = {}  # a file is decoded once for each time it changes

    def answer(self, node: NodeId, instruction: str) -> Answer | Unknown:
        """The node's answer to that instruction; to `manual look` where no instruction was given ("")."""
        path = self.folder / f"answer-{instruction or int(node)}.json"
        try:
            status = os.lstat(path)
            mark = (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._read.get(path.name, (None,))[0] != mark:
                self._read[path.name] = mark, read_answer(str(path))
        except FileNotFoundError:
            return Unknown(f"node {int(node)}: {NO_ANSWER}")
        except (CollectedDamaged, CollectedOtherVersion, CollectedForNobody) as error:
            return Unknown(f"node {int(node)}: {NO_ANSWER}; {path.name}: {error}")
        found = self._read[path.name][1]
        if (found.collected.node, found.instruction) != (node, instruction):
            return Unknown(f"node {int(node)}: {NO_ANSWER}; {path.name} is the answer of another node or instruction")
        return found


def not_told_error(node: NodeId, path: str) -> NotTold:
    """The error for a path that no answer shows."""
    return NotTold("the collector's answer does not include it", where=f"node {int(node)}: {path}")
