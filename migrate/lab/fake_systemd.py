"""A stand-in for `systemctl` and `journalctl` on a host without systemd: the lab's processes as units.

It understands the commands of the host program and no others, and is no part of a real cluster: the lab's own host.json
names its folder.  `broker-0.service` is the process `broker-0` of the lab's folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError, ProcessNotStopped
from migrate.hosts.supervisor import Supervisor, read_stat
from migrate.model.outcome import Unknown
from migrate.model.views import Running

SUFFIX: Final = ".service"
USER: Final = "unit-user"
PROGRAMS: Final = ("systemctl", "journalctl")


def write_programs(folder: Path, state: Path) -> None:
    """Write programs of those names that ask this module about the processes in `state`."""
    folder.mkdir(parents=True, exist_ok=True)
    package = Path(__file__).parents[2]
    command = f'PYTHONPATH="{package}" exec "{sys.executable}" -m migrate.lab.fake_systemd "{state}"'
    for name in PROGRAMS:
        program = folder / name
        program.write_text(f'#!/bin/sh\n{command} {name} "$@"\n')
        program.chmod(0o755)


def answer(state: Path, words: Sequence[str]) -> tuple[int, str]:
    services = Supervisor(state)
    try:
        match list(words):
            case ["systemctl", "show", "--no-pager", "-p", _, "--", unit]:
                wanted = "multi-user.target" if _name(unit) in _enabled(state) else ""
                return 0, f"{_show(services, unit)}User={_user(state)}\nWantedBy={wanted}\n"
            case ["systemctl", "start", "--no-block", "--", unit]:
                if not isinstance(services.state(_name(unit)), Running):
                    services.start(_name(unit))
                return 0, ""
            case ["systemctl", "stop", "--no-block", "--", unit]:
                with contextlib.suppress(ProcessNotStopped):  # asked to end, and not waited for
                    services.stop(_name(unit), 0)
                return 0, ""
            case ["systemctl", "is-enabled", "--", unit]:
                return (0, "enabled\n") if _name(unit) in _enabled(state) else (1, "disabled\n")
            case ["systemctl", "list-dependencies", "--plain", "--no-pager", "--", target]:
                return 0, "\n".join([target, *(f"  {name}{SUFFIX}" for name in sorted(_enabled(state)))]) + "\n"
            case ["journalctl", "-u", unit, "-n", lines, "-o", "cat", "--no-pager"]:
                return 0, "\n".join(services.last_words(_name(unit), int(lines))) + "\n"
    except MigrateError as error:
        return 1, str(error)
    return 64, f"the stand-in does not know these words: {' '.join(words)}"


def _enabled(state: Path) -> set[str]:
    """Units that start at boot: all nodes', as a plan asks for it."""
    return {name for name in Supervisor(state).specs() if name.startswith(("broker-", "controller-"))}


def _user(state: Path) -> str:
    """The user of all units: who started the lab, unless the file names another."""
    try:
        return (state / USER).read_text().strip()
    except FileNotFoundError:
        return str(os.geteuid())


def _name(unit: str) -> str:
    return unit.removesuffix(SUFFIX)


def _show(services: Supervisor, unit: str) -> str:
    if _name(unit) not in services.specs():
        return "LoadState=not-found\nActiveState=inactive\nSubState=dead\nMainPID=0\n"
    state = services.state(_name(unit))
    if isinstance(state, Unknown):
        return "LoadState=loaded\nActiveState=maintenance\nSubState=unknown\nMainPID=0\n"
    common = "LoadState=loaded\nRestart=no\nTimeoutStopUSec=infinity\nSendSIGKILL=no\n"
    if isinstance(state, Running):
        started = _started(state.pid)
        times = f"ExecMainStartTimestampMonotonic={started}\n"
        return f"{common}{times}ActiveState=active\nSubState=running\nMainPID={state.pid}\n"
    code = state.exit_code or 0
    return f"{common}ActiveState=inactive\nSubState=dead\nMainPID=0\nExecMainStatus={code}\n"


def _started(pid: int) -> int:
    found = read_stat(pid)
    return 0 if found is None else found.start * 1_000_000 // os.sysconf("SC_CLK_TCK")


def main() -> int:
    """`python -m migrate.lab.fake_systemd STATE systemctl|journalctl WORDS...`."""
    code, said = answer(Path(sys.argv[1]), sys.argv[2:])
    (sys.stdout if "is-enabled" in sys.argv or not code else sys.stderr).write(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
