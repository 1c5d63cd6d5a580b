"""The lab's processes as units: a stand-in for `systemctl` and `journalctl` where the host has no systemd.

`python -IS units.py STATE systemctl|journalctl WORDS...` understands the words of the host program and no others. It is
no part of a real cluster: the lab's own host.json names its folder.  `broker-0.service` is the process `broker-0` that
a file of STATE describes.  It is started for each look, so this module imports nothing that takes long.

A process is identified by pid, start time and boot, so that no other is touched.  It is started in a session of its own
and outlives who started it.  Its record is written by the process itself between fork and exec: none runs unrecorded.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

DEAD_STATES: Final = frozenset("ZXx")  # a zombie has ended; only its exit code is left
SPEC_SUFFIX: Final = ".process.json"
SUFFIX: Final = ".service"
USER: Final = "unit-user"  # a file of STATE: who units run as, if not who started the lab
OF_A_LAB: Final = "lab"  # in place of `enabled`, for no boot starts them (`migrate.model.launch`)
PROGRAMS: Final = ("systemctl", "journalctl")
TAIL_BYTES: Final = 1 << 16  # of a log, at least
LINE_BYTES: Final = 256  # on average at most
# $1 record, $2 its first lines, $3 folder, $4 output; the record names this very process, and exec keeps pid and start
LAUNCH: Final = """
set -e
record=$1 facts=$2 folder=$3 output=$4
shift 4
cd "$folder"
{ printf '%s\\n' "$facts"; cat /proc/$$/stat; } > "$record.new"
mv "$record.new" "$record"
exec >>"$output" 2>&1
exec "$@"
"""


class Stat(NamedTuple):
    """What /proc/PID/stat says (proc(5)): `start` is in clock ticks since boot."""

    pid: int
    state: str
    parent: int
    start: int


class Record(NamedTuple):
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


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes as long as all the rest
        return file.read()


def boot_id() -> str:
    """This boot of the host: start times count from it."""
    return _text("/proc/sys/kernel/random/boot_id").strip()


def read_stat(pid: int) -> Stat | None:
    """Return the process that has that pid now, or None."""
    try:
        return parse_stat(_text(f"/proc/{pid}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def record_path(state: str, name: str) -> str:
    return f"{state}/{name}.running"


def read_record(state: str, name: str) -> Record | None:
    """The record of that process; None where it was never started.  ValueError, OSError."""
    try:
        return parse_record(_text(record_path(state, name)))
    except FileNotFoundError:
        return None


def is_alive(record: Record) -> bool:
    """Does the recorded process run, and not another with the same pid?"""
    found = read_stat(record.pid) if record.boot == boot_id() else None
    return found is not None and found.start == record.start and found.state not in DEAD_STATES


def end(record: Record, sent: signal.Signals, timeout: float) -> bool:
    """Send the signal to that process and no other; is it gone after at most so many seconds?"""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(record.pid)
        try:
            # the descriptor names one process for good: checked after it was opened, the pid cannot be another's
            if is_alive(record):
                signal.pidfd_send_signal(descriptor, sent)
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                return bool(poll.poll(timeout * 1000))
        finally:
            os.close(descriptor)
    return True


def launch(state: str, spec: dict[str, Any], config_sha256: str) -> str:
    """Start the process in its own session, and return once its record is written; why it did not start, else "".

    Raises:
        OSError: there is no shell.
    """
    facts = f"{boot_id()} {time.time():.3f} {config_sha256}"
    record = record_path(state, spec["name"])
    argv = ["/bin/sh", "-c", LAUNCH, "launch", record, facts, spec["directory"], spec["output"], *spec["argv"]]
    reading, writing = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_DUP2, writing, 2),
        ]
        pid = os.posix_spawn(
            "/bin/sh", argv, spec["environment"], file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE]
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        complaint = pipe.read().decode(errors="replace").strip()  # ends when the shell has recorded itself, or died
    found = read_record(state, spec["name"])
    if found is not None and found.pid == pid:
        return ""
    os.waitpid(pid, 0)
    return complaint or "it wrote no record of itself"


@contextlib.contextmanager
def locked(state: str) -> Iterator[None]:
    """One start at a time."""
    with open(f"{state}/start.lock", "ab") as file:  # noqa: PTH123
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def last_words(paths: Sequence[str], lines: int) -> list[str]:
    """The last lines of the first of these files that has any."""
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
            file.seek(max(0, file.seek(0, os.SEEK_END) - max(TAIL_BYTES, lines * LINE_BYTES)))
            if tail := file.read().decode(errors="replace").splitlines()[-lines:]:
                return tail
    return []


def config_sha256(path: str) -> str:
    """The SHA-256 of a configuration file, or `-` where there is none."""
    import hashlib  # noqa: PLC0415 - only a start needs it

    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return "-"


# -- systemctl and journalctl ----------------------------------------------------------------------------------------
def answer(state: str, words: Sequence[str]) -> tuple[int, str]:
    """The exit code, and what is printed."""
    try:
        match list(words):
            case ["systemctl", "show", "--no-pager", "-p", _, "--", unit]:
                wanted = "multi-user.target" if _name(unit) in _enabled(state) else ""
                return 0, f"{_show(state, _name(unit))}User={_user(state)}\nWantedBy={wanted}\n"
            case ["systemctl", "start", "--no-block", "--", unit]:
                return _start(state, _name(unit))
            case ["systemctl", "stop", "--no-block", "--", unit]:  # asked to end, and not waited for
                if record := read_record(state, _name(unit)):
                    end(record, signal.SIGTERM, 0)
                return 0, ""
            case ["systemctl", "is-enabled", "--", unit]:
                return (0, f"{OF_A_LAB}\n") if _name(unit) in _enabled(state) else (1, "disabled\n")
            case ["systemctl", "list-dependencies", "--plain", "--no-pager", "--", target]:
                return 0, "\n".join([target, *(f"  {name}{SUFFIX}" for name in sorted(_enabled(state)))]) + "\n"
            case ["journalctl", "-u", unit, "-n", lines, "-o", "cat", "--no-pager"]:
                spec = _spec(state, _name(unit))
                return 0, "\n".join(last_words([spec["log"], spec["output"]], int(lines))) + "\n"
    except (OSError, ValueError) as error:
        return 1, f"{error}\n"
    return 64, f"the stand-in does not know these words: {' '.join(words)}\n"


def _start(state: str, name: str) -> tuple[int, str]:
    spec = _spec(state, name)
    with locked(state):
        record = read_record(state, name)
        if record is not None and is_alive(record):
            return 0, ""
        complaint = launch(state, spec, config_sha256(spec["config"]))
    return (1, f"{name} could not be started: {complaint}\n") if complaint else (0, "")


def _spec(state: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_text(f"{state}/{name}{SPEC_SUFFIX}"))
    return found


def _enabled(state: str) -> set[str]:
    """Units of nodes, which a plan asks to start at boot; here the lab's own commands start them."""
    names = {name.removesuffix(SPEC_SUFFIX) for name in os.listdir(state) if name.endswith(SPEC_SUFFIX)}  # noqa: PTH208
    return {name for name in names if name.startswith(("broker-", "controller-"))}


def _user(state: str) -> str:
    try:
        return _text(f"{state}/{USER}").strip()
    except FileNotFoundError:
        return str(os.geteuid())


def _name(unit: str) -> str:
    return unit.removesuffix(SUFFIX)


def _show(state: str, name: str) -> str:
    if not os.path.exists(f"{state}/{name}{SPEC_SUFFIX}"):  # noqa: PTH110
        return "LoadState=not-found\nActiveState=inactive\nSubState=dead\nMainPID=0\n"
    record = read_record(state, name)
    common = "LoadState=loaded\nNeedDaemonReload=no\nRestart=no\nTimeoutStopUSec=infinity\nSendSIGKILL=no\n"
    if record is None or not is_alive(record):
        return f"{common}ActiveState=inactive\nSubState=dead\nMainPID=0\nExecMainStatus=0\n"
    started = record.start * 1_000_000 // os.sysconf("SC_CLK_TCK")
    times = f"ExecMainStartTimestampMonotonic={started}\n"
    return f"{common}{times}ActiveState=active\nSubState=running\nMainPID={record.pid}\n"


def main() -> int:
    """Answer one command."""
    code, said = answer(sys.argv[1], sys.argv[2:])
    (sys.stdout if "is-enabled" in sys.argv or not code else sys.stderr).write(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
