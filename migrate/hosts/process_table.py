"""/proc as evidence: is the process of a record alive, and is it still the same one?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEAD_STATES: Final = frozenset("ZXx")  # a zombie has ended; only its exit code is left


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says (proc(5)): `start` is in clock ticks since boot."""

    pid: int
    state: str
    parent: int
    start: int


@dataclass(frozen=True, slots=True)
class Record:
    """A process as it was started.  pid and start together are unique for one boot."""

    boot: str
    started_at: float
    config_sha256: str | None
    pid: int
    start: int


def parse_stat(text: str) -> Stat:
    """The line of /proc/PID/stat: the command's name may hold spaces and parentheses (pure).

    Raises:
        ValueError: it is no such line.
    """
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    if not bracket or len(fields) < 20:
        message = f"not a stat line: {text[:80]!r}"
        raise ValueError(message)
    return Stat(int(head.split(" ", 1)[0]), fields[0], int(fields[1]), int(fields[19]))


def parse_record(text: str) -> Record:
    """A record: `boot started_at config_sha256` and the process's own stat line (pure).

    Raises:
        ValueError: it is no such text.
    """
    facts, _, line = text.partition("\n")
    words = facts.split()
    if len(words) != 3:
        message = f"not a record of a process: {text[:80]!r}"
        raise ValueError(message)
    stat = parse_stat(line)
    return Record(words[0], float(words[1]), None if words[2] == "-" else words[2], stat.pid, stat.start)


def boot_id() -> str:
    """This boot of the host: start times count from it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def look(pid: int) -> Stat | None:
    """The process with that pid now, or None."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def alive(record: Record) -> bool:
    """Does the very process of the record run (not one that has its pid now)?"""
    found = look(record.pid) if record.boot == boot_id() else None
    return found is not None and found.start == record.start and found.state not in DEAD_STATES


def reap(record: Record) -> int | None:
    """Collect a dead child of ours, whoever of us started it; its exit code (negative: the signal), else None."""
    found = look(record.pid)
    if found is None or found.start != record.start or found.parent != os.getpid():
        return None
    try:
        pid, status = os.waitpid(record.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if pid else None
