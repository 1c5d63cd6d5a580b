"""Processes that outlive us: started detached, known again by pid *and* start time, stopped only when proven ours.

A pid alone proves nothing: the kernel gives it to the next process.  The start time (ticks since boot, field 22 of
/proc/PID/stat) makes the pair unique for one boot, and the boot's own id for ever.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import ProcessStillRuns

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# the Spark driver's gateway opens to whoever holds these: no child needs them
SCRUBBED: Final = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process of this host, for ever: pid, start time in clock ticks since boot, id of that boot."""

    pid: int
    started: int
    boot: str

    def text(self) -> str:
        """One line for a pid file."""
        return f"{self.pid} {self.started} {self.boot}\n"

    @classmethod
    def parse(cls, text: str) -> ProcessMark:
        """The mark in a pid file; ValueError for anything else."""
        pid, started, boot = text.split()
        return cls(int(pid), int(started), boot)


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start ticks of a process, None if there is none."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = raw.rpartition(")")[2].split()  # the name in parentheses may hold anything
    return fields[0], int(fields[19])


def mark_of(pid: int) -> ProcessMark:
    """The mark of a living process; ProcessLookupError if there is none."""
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(pid)
    return ProcessMark(pid, stat[1], BOOT_ID.read_text(encoding="ascii").strip())


def lives(mark: ProcessMark) -> bool:
    """Does exactly that process live?  A zombie does not; ours are reaped here."""
    stat = _stat(mark.pid)
    if stat is None or stat[1] != mark.started or mark.boot != BOOT_ID.read_text(encoding="ascii").strip():
        return False
    if stat[0] in "ZX":
        with contextlib.suppress(ChildProcessError):
            os.waitpid(mark.pid, os.WNOHANG)
        return False
    return True


def start_detached(argv: Sequence[str], *, log: Path, extra_env: Mapping[str, str] | None = None) -> ProcessMark:
    """Start a process in a session of its own, with output appended to `log`; it lives on when we are killed.

    Secrets belong in files: neither `argv` nor the environment is private.
    """
    env = {key: value for key, value in os.environ.items() if key not in SCRUBBED} | dict(extra_env or {})
    pid = os.posix_spawnp(
        argv[0],
        list(argv),
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    )
    return mark_of(pid)


def wait_for_end(mark: ProcessMark, timeout: float) -> bool:
    """Wait up to `timeout` seconds for the process to end; True when it has ended."""
    try:
        handle = os.pidfd_open(mark.pid)
    except ProcessLookupError:
        return True
    try:
        if not lives(mark):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(timeout * 1000)
    finally:
        os.close(handle)
    return not lives(mark)


def terminate(mark: ProcessMark, timeout: float) -> None:
    """SIGTERM to exactly that process, and wait until it is gone (never SIGKILL).

    Raises:
        ProcessStillRuns: it lives on after `timeout` seconds.
    """
    try:
        handle = os.pidfd_open(mark.pid)  # holds the identity: the signal cannot reach a later owner of the pid
    except ProcessLookupError:
        return
    try:
        if not lives(mark):
            return
        signal.pidfd_send_signal(handle, signal.SIGTERM)
    finally:
        os.close(handle)
    if not wait_for_end(mark, timeout):
        raise ProcessStillRuns(f"process {mark.pid} was told to end and still runs after {timeout:g} s")
