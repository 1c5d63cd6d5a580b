"""The lab's processes, each described by one JSON file: started, stopped and observed (see `units`).

The files are without secrets: argv and environment of a process are visible to everybody on the host.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import ProcessNotStarted, ProcessNotStopped, ProcessSpecUnreadable
from migrate.hosts.files import read_no_follow, replace_file
from migrate.lab import units
from migrate.lab.units import SPEC_SUFFIX, Record
from migrate.model import strict_json
from migrate.model.codec import decode
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped

KILL_SECONDS: Final = 20.0


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


def reap(record: Record) -> int | None:
    """Reap a dead child of this process; its exit code (negative: the signal), else None."""
    found = units.read_stat(record.pid)
    if found is None or found.start != record.start or found.parent != os.getpid():
        return None
    try:
        pid, status = os.waitpid(record.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if pid else None


class Supervisor:
    """Starts and stops the processes described in `state_dir`."""

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
            record = units.read_record(str(self.folder), name)
            if record is None:
                return Stopped(self._exit_codes.get(name))
            if units.is_alive(record):
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
        with units.locked(str(self.folder)):
            state = self.state(node)
            if not isinstance(state, Stopped):
                reason = f"it runs already (pid {state.pid})" if isinstance(state, Running) else state.reason
                raise ProcessNotStarted(f"{spec.name} was not started: {reason}", where=spec.config)
            self._exit_codes.pop(spec.name, None)
            try:
                complaint = units.launch(str(self.folder), asdict(spec), units.config_sha256(spec.config))
            except OSError as error:
                complaint = str(error)
        if complaint:
            raise ProcessNotStarted(f"{spec.name} could not be started", where=spec.directory, why=complaint)

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
        record = units.read_record(str(self.folder), spec.name)
        if record is None:
            return
        if not units.end(record, sent, timeout):
            why = "\n         ".join(self.last_words(spec.name, 3))
            raise ProcessNotStopped(
                f"{spec.name} still runs {timeout:.0f} s after {sent.name}", where=spec.log, why=why
            )
        self.state(spec.name)  # reaps a child of ours

    def last_words(self, node: NodeId | str, lines: int) -> Sequence[str]:
        """The last lines of its log; of its output where there is no log."""
        spec = self.spec(node)
        return units.last_words([spec.log, spec.output], lines)
