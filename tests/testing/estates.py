"""Processes under an operator's scripts, one of which starts a process again, with the commands that work them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts import host_setup
from migrate.hosts.commands import HostAccess
from migrate.hosts.own_commands import HostServices, service_of
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import LocalRunner, ProgramHolder
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, Inventory, OwnCommands
from tests.testing import worlds
from tests.testing.host_installation import PYTHON

USER = "nobody"
AS_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
NODE = NodeId(7)
START = """#!/bin/sh
setsid {user} {command} >>{folder}/kafka.log 2>&1 </dev/null &
echo $! >{folder}/kafka.pid
"""
STOP = """#!/bin/sh
kill "$(cat {folder}/kafka.pid)"
"""
STATUS = """#!/bin/sh
kill -0 "$(cat {folder}/kafka.pid)" 2>/dev/null && echo up && exit 0
echo down; exit 3
"""
LOOP = """#!/bin/sh
while [ -e {folder}/wanted ]; do
    {user} {command} >>{folder}/kafka.log 2>&1 </dev/null &
    echo $! >{folder}/kafka.pid
    wait
done
"""
START_LOOP = """#!/bin/sh
touch {folder}/wanted
setsid {folder}/loop.sh >/dev/null 2>&1 </dev/null &
"""
STOP_LOOP = """#!/bin/sh
rm -f {folder}/wanted
kill "$(cat {folder}/kafka.pid)"
"""


class Waits:
    """Real time."""

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waited."""
        threading.Event().wait(seconds)


def wait_for(what: str, seen: Callable[[], object], seconds: float = 30) -> None:
    """Fail where it does not come true."""
    until = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < until, what
        threading.Event().wait(0.05)


def script(path: Path, text: str) -> str:
    """A program of root's."""
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def needs(*programs: str) -> None:
    """Skip where one is not installed."""
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"no {name} on this machine")


def _made(folder: Path, command: Sequence[str], start: str, stop: str) -> OwnCommands:
    words = {"folder": folder, "command": shlex.join(command), "user": shlex.join(AS_USER)}
    texts = {"start.sh": start, "stop.sh": stop, "status.sh": STATUS, "loop.sh": LOOP}
    made = {name: (script(folder / name, text.format(**words)),) for name, text in texts.items()}
    return OwnCommands(USER, made["start.sh"], made["stop.sh"], made["status.sh"], 330)


def _ended(folder: Path) -> None:
    if (folder / "kafka.pid").exists():
        subprocess.run(["sh", str(folder / "stop.sh")], check=False, stderr=subprocess.DEVNULL)


@contextmanager
def scripts(folder: Path, command: Sequence[str]) -> Iterator[OwnCommands]:
    """An operator's own; nobody starts the process again."""
    needs("setpriv", "setsid")
    try:
        yield _made(folder, command, START, STOP)
    finally:
        _ended(folder)


@contextmanager
def loop(folder: Path, command: Sequence[str]) -> Iterator[OwnCommands]:
    """A supervisor that starts the process again however it ends, until its own stop command."""
    needs("setpriv", "setsid")
    try:
        yield _made(folder, command, START_LOOP, STOP_LOOP)
    finally:
        _ended(folder)


ESTATES = {"scripts": scripts, "loop": loop}


def inventory_of(folder: Path, node: BrokerNode, kafka_home: str = "/opt/kafka") -> Inventory:
    """Of that node alone, on this host, without sudo."""
    options = {"kafka_home": kafka_home, "sudo": "no", "host_program": f"{folder}/host"}
    nodes = {"brokers": (node,), "controllers": ()}
    return replace(worlds.inventory(), executor="local", executor_options=options, **nodes)  # type: ignore[arg-type]


def services_of(folder: Path, node: BrokerNode, kafka_home: str = "/opt/kafka") -> HostServices:
    """Over the host program as `doctor --host-setup` installs it, in a folder of the test."""
    place = folder / f"program-{time.monotonic_ns()}"
    inventory = inventory_of(place, node, kafka_home)
    found = {**host_setup.configuration(inventory, node.host), "path": str(folder)}
    host_setup.install(place, found, str(PYTHON) if PYTHON.exists() else sys.executable)
    runner = ProgramHolder(LocalRunner(), HostAccess.of(inventory.executor_options))
    return HostServices({node.id: service_of(node, runner=runner, files=RemoteFiles({node.id: runner}))}, Waits())
