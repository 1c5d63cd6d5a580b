"""The lab's executor: processes of this host, identified by pid, start time and boot, so that no other is touched.

A process is started in a session of its own and outlives this one; the next run adopts it from the state folder.  Its
record is written by the process itself between fork and exec: it never runs unrecorded.  A process is described by one
JSON file, without secrets: argv and environment of a process are visible to everybody on the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import (
    ProcessNotStarted,
    ProcessNotStopped,
    ProcessSpecUnreadable,
    StorageNotFormatted,
)
from migrate.hosts.files import read_no_follow, replace_file
from migrate.model import strict_json
from migrate.model.codec import decode
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped

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


def read_stat(pid: int) -> Stat | None:
    """Return the process that has that pid now, or None."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(record: Record) -> bool:
    """Does the recorded process run, and not another with the same pid?"""
    found = read_stat(record.pid) if record.boot == boot_id() else None
    return found is not None and found.start == record.start and found.state not in DEAD_STATES


def reap(record: Record) -> int | None:
    """Reap a dead child of this process; its exit code (negative: the signal), else None."""
    found = read_stat(record.pid)
    if found is None or found.start != record.start or found.parent != os.getpid():
        return None
    try:
        pid, status = os.waitpid(record.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if pid else None


SPEC_SUFFIX: Final = ".process.json"


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process: its name (`broker-0`, `zookeeper`), node id where it has one, and how it is started.

    `log` is the program's own log file, `output` takes stdout and stderr; `format_argv` is the start of a
    `kafka-storage format` command ((): the node needs none).  All paths are absolute.
    """

    name: str
    node: int | None
    argv: tuple[str, ...]
    directory: str
    log: str
    output: str
    config: str
    environment: dict[str, str] = field(default_factory=dict)
    format_argv: tuple[str, ...] = ()


def write_spec(folder: Path, spec: ProcessSpec) -> None:
    """Replace the description of a process; a running one is not affected."""
    replace_file(str(folder / (spec.name + SPEC_SUFFIX)), (json.dumps(asdict(spec), indent=1) + "\n").encode())


def read_spec(path: Path) -> ProcessSpec:
    """The description in that file.  Raises ProcessSpecUnreadable: no such file, or not one of ours."""
    try:
        data = strict_json.loads(read_no_follow(str(path)), surrogates=True)
        return decode(ProcessSpec, data, "it", plain=True)  # type: ignore[no-any-return] # by its first argument
    except (OSError, ValueError) as error:
        raise ProcessSpecUnreadable("no readable description of a process", where=str(path), why=str(error)) from error


FORMAT_SECONDS: Final = 120.0
KILL_SECONDS: Final = 20.0
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


class Supervisor:
    """Implements `migrate.model.ports.ServiceControl` for the processes described in `state_dir`."""

    def __init__(self, state_dir: str | Path) -> None:
        self.folder = Path(state_dir)
        self._exit_codes: dict[str, int] = {}

    def specs(self) -> dict[str, ProcessSpec]:
        specs = (read_spec(path) for path in sorted(self.folder.glob("*" + SPEC_SUFFIX)))
        return {spec.name: spec for spec in specs}

    def spec(self, node: NodeId | str) -> ProcessSpec:
        """The description of a node (by id) or of a process (by name).  Raises ProcessSpecUnreadable: there is none."""
        if isinstance(node, str):
            return read_spec(self.folder / (node + SPEC_SUFFIX))
        for spec in self.specs().values():
            if spec.node == node:
                return spec
        raise ProcessSpecUnreadable(f"no process of node {node} is described", where=str(self.folder))

    def state(self, node: NodeId | str) -> ServiceState:
        name = self.spec(node).name
        try:
            record = self._record(name)
            if record is None:
                return Stopped(self._exit_codes.get(name))
            if is_alive(record):
                return Running(record.pid, record.started_at, record.config_sha256)
            exit_code = reap(record)
        except (OSError, ValueError) as error:
            return Unknown(f"process {name}: {error}")
        if exit_code is not None:
            self._exit_codes[name] = exit_code
        return Stopped(self._exit_codes.get(name), record.config_sha256)

    def start(self, node: NodeId | str) -> None:
        """Start the process in its own session and return at once, its record written.

        Raises:
            ProcessNotStarted: it runs already, or could not be launched.
        """
        spec = self.spec(node)
        with self._locked():
            state = self.state(node)
            if not isinstance(state, Stopped):
                reason = f"it runs already (pid {state.pid})" if isinstance(state, Running) else state.reason
                raise ProcessNotStarted(f"{spec.name} was not started: {reason}", where=spec.config)
            self._exit_codes.pop(spec.name, None)
            self._launch(spec)

    def stop(self, node: NodeId | str, timeout: float) -> None:
        """Send SIGTERM, and wait until the process is gone; nothing where it does not run.

        Raises:
            ProcessNotStopped: it lives on after `timeout` seconds, or its state is unknown.
        """
        spec = self.spec(node)
        state = self.state(node)
        if isinstance(state, Unknown):
            raise ProcessNotStopped(f"{spec.name} was not stopped: {state.reason}", where=str(self.folder))
        if isinstance(state, Running):
            self._end(spec, signal.SIGTERM, timeout)

    def kill(self, node: NodeId | str) -> None:
        """Send SIGKILL, and wait for the end: used by the lab alone, by no step of a migration."""
        self._end(self.spec(node), signal.SIGKILL, KILL_SECONDS)

    def _end(self, spec: ProcessSpec, sent: signal.Signals, timeout: float) -> None:
        record = self._record(spec.name)
        if record is None:
            return
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(record.pid)
            try:
                # the descriptor names one process for good: checked after it was opened, the pid cannot be another's
                if is_alive(record):
                    signal.pidfd_send_signal(descriptor, sent)
                    poll = select.poll()
                    poll.register(descriptor, select.POLLIN)
                    if not poll.poll(timeout * 1000):
                        why = "\n         ".join(self.last_words(spec.name, 3))
                        raise ProcessNotStopped(
                            f"{spec.name} still runs {timeout:.0f} s after {sent.name}", where=spec.log, why=why
                        )
            finally:
                os.close(descriptor)
        self.state(spec.name)  # reaps a child of ours

    def last_words(self, node: NodeId | str, lines: int) -> Sequence[str]:
        """The last lines of its log; of its output where there is no log."""
        spec = self.spec(node)
        for path in (spec.log, spec.output):
            with contextlib.suppress(OSError), Path(path).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - max(TAIL_BYTES, lines * LINE_BYTES)))
                if tail := file.read().decode(errors="replace").splitlines()[-lines:]:
                    return tail
        return []

    def format_storage(
        self,
        node: NodeId | str,
        cluster_id: str,
        release_version: str,
        *,
        ignore_formatted: bool = False,
        voters: str = "",
    ) -> str:
        """kafka-storage format with the node's configuration file; its output.

        With `ignore_formatted` directories that are formatted already stay as they are; without it they are an error.

        Raises:
            StorageNotFormatted: it refused, or did not end.
        """
        spec = self.spec(node)
        if not spec.format_argv:
            raise StorageNotFormatted("this process has no storage to format", where=spec.name)
        # one word: a cluster id may begin with a dash
        arguments = [f"--cluster-id={cluster_id}", "-c", spec.config, "--release-version", release_version]
        arguments += ["--ignore-formatted"] if ignore_formatted else []
        arguments += ["--initial-controllers", voters] if voters else []
        try:
            done = subprocess.run(
                [*spec.format_argv, *arguments], capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False,
                stdin=subprocess.DEVNULL, cwd=spec.directory, env=spec.environment,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StorageNotFormatted(
                "kafka-storage format did not run to its end", where=spec.name, why=str(error)
            ) from error
        output = (done.stdout + done.stderr).strip()
        if done.returncode:
            raise StorageNotFormatted("kafka-storage format refused", where=spec.config, why=output[-2000:])
        return output

    def _launch(self, spec: ProcessSpec) -> None:
        record = self._record_path(spec.name)
        facts = f"{boot_id()} {time.time():.3f} {config_sha256(spec.config)}"
        argv = ["/bin/sh", "-c", LAUNCH, "launch", str(record), facts, spec.directory, spec.output, *spec.argv]
        reading, writing = os.pipe()
        try:
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_DUP2, writing, 2),
            ]
            pid = os.posix_spawn(
                "/bin/sh", argv, spec.environment, file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE]
            )
        except OSError as error:
            os.close(reading)
            raise ProcessNotStarted(f"{spec.name} could not be started", where="/bin/sh", why=str(error)) from error
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            complaint = pipe.read().decode(errors="replace").strip()  # ends when the shell has recorded itself, or died
        found = self._record(spec.name)
        if found is None or found.pid != pid:
            os.waitpid(pid, 0)
            raise ProcessNotStarted(f"{spec.name} could not be started", where=spec.directory, why=complaint)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "start.lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _record_path(self, name: str) -> Path:
        return self.folder / f"{name}.running"

    def _record(self, name: str) -> Record | None:
        try:
            text = self._record_path(name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        return parse_record(text)


def config_sha256(path: str) -> str:
    """The SHA-256 of a configuration file, or `-` where there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return "-"
