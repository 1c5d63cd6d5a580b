"""Processes under real supervisord, runit and Podman, and an operator's scripts, with the commands that work them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.commands import HostAccess
from migrate.hosts.own_commands import HostServices, service_of
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import LocalRunner, ProgramHolder
from migrate.lab.ssh_access import install
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, Inventory, OwnCommands
from tests.testing import worlds
from tests.testing.host_installation import PYTHON

USER = "nobody"
AS_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
NODE = NodeId(7)
SUPERVISORD = """[supervisord]
logfile={folder}/supervisord.log
pidfile={folder}/supervisord.pid
[unix_http_server]
file={folder}/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://{folder}/supervisor.sock
[program:kafka]
command={command}
user=nobody
autostart=false
autorestart=true
stopwaitsecs=330
redirect_stderr=true
stdout_logfile={folder}/kafka.log
"""
RUN = """#!/bin/sh
exec >>{folder}/kafka.log 2>&1 chpst -u nobody:nogroup {command}
"""
START = """#!/bin/sh
setsid {user} {command} >>{folder}/kafka.log 2>&1 </dev/null &
echo $! >{folder}/kafka.pid
"""
STOP = """#!/bin/sh
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
            pytest.skip(f"no {name} on this machine (tests/bed/install)")


@contextmanager
def supervisord(folder: Path, command: Sequence[str]) -> Iterator[OwnCommands]:
    """One that starts the process again however it ends."""
    needs("supervisord", "supervisorctl")
    config = folder / "supervisord.conf"
    config.write_text(SUPERVISORD.format(folder=folder, command=shlex.join(command).replace("%", "%%")))
    with subprocess.Popen(["supervisord", "-n", "-c", str(config)], stdout=subprocess.DEVNULL) as daemon:
        try:
            wait_for("supervisord", (folder / "supervisor.sock").exists)
            ctl = ("/usr/bin/supervisorctl", "-c", str(config))
            yield OwnCommands(
                USER, (*ctl, "start", "kafka"), (*ctl, "stop", "kafka"), 330, (*ctl, "status", "kafka")
            )  # fmt: skip
        finally:
            daemon.terminate()


@contextmanager
def runit(folder: Path, command: Sequence[str]) -> Iterator[OwnCommands]:
    """The same: runsv starts it again however it ends."""
    needs("runsvdir", "sv", "chpst")
    service = folder / "sv/kafka"
    service.mkdir(parents=True)
    (service / "down").touch()
    script(service / "run", RUN.format(folder=folder, command=shlex.join(command)))
    with subprocess.Popen(["runsvdir", str(service.parent)]) as daemon:
        try:
            wait_for("runsv", (service / "supervise/ok").exists)
            sv = ("/usr/bin/sv",)
            yield OwnCommands(
                USER, (*sv, "start", str(service)), (*sv, "-w", "30", "stop", str(service)), 330,
                (*sv, "status", str(service)),
            )  # fmt: skip
        finally:
            daemon.terminate()
            daemon.wait()  # it would start runsv again, and sv wait for its end in vain
            subprocess.run(["sv", "-w", "30", "exit", str(service)], check=False, stdout=subprocess.DEVNULL)


def podman_of(folder: Path) -> tuple[str, ...]:
    """Podman with everything of its own in a folder of the test; runc also runs where the cgroups are of both kinds."""
    own = {"--root": "root", "--runroot": "run", "--tmpdir": "tmp", "--network-config-dir": "networks"}
    places = [word for option, name in own.items() for word in (option, f"{folder}/podman/{name}")]
    return ("/usr/bin/podman", *places, "--cgroup-manager=cgroupfs", "--events-backend=file", "--runtime=runc")


@contextmanager
def podman(
    folder: Path, command: Sequence[str], mounts: Mapping[Path, Path] | None = None, words: Sequence[str] = ()
) -> Iterator[OwnCommands]:
    """A container of a small image, with what is in the folder at the same paths; conmon starts it again.

    `mounts` are others, by their paths in the container; `words` are further ones of `podman create`.
    """
    needs("podman", "runc")
    there = podman_of(folder)
    machine = (Path("/usr"), Path("/etc"), Path(command[0]).resolve().parents[1])  # with Java, where that is in neither
    volumes = {path: path for path in (*machine, *sorted(folder.iterdir()))} | dict(mounts or {})
    (folder / "podman").mkdir()
    image = folder / "podman/image.tar"
    with tarfile.open(image, "w") as tar:  # its programs and libraries are this machine's
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    limits = ("--ulimit=nofile=10000:10000", "--ulimit=nproc=4096:4096")  # Podman's are more than any root may give
    common = (
        "--network=host", "--user=65534:65534", *limits,
        *(f"--volume={source}:{path}{':ro' if path in machine else ''}" for path, source in volumes.items()),
    )  # fmt: skip
    create = ("create", "--name=kafka", "--restart=always", f"--log-opt=path={folder}/kafka.log", *common, *words)
    try:
        for step in (("import", "--quiet", str(image), "kafka"), ("run", "--rm", *common, "kafka", "/bin/true")):
            done = subprocess.run((*there, *step), check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no container runs on this machine: {done.stderr[-300:]}")
        subprocess.run((*there, *create, "kafka", *command), check=True, capture_output=True)
        yield OwnCommands(
            USER, (*there, "start", "kafka"), (*there, "stop", "--time", "330", "kafka"), 330,
            (*there, "logs", "--tail", "2000", "kafka"),
        )  # fmt: skip
    finally:
        subprocess.run((*there, "rm", "--force", "--time=1", "kafka"), check=False, capture_output=True)


@contextmanager
def scripts(folder: Path, command: Sequence[str]) -> Iterator[OwnCommands]:
    """An operator's own; nobody starts the process again."""
    needs("setpriv", "setsid")
    words = {"folder": folder, "command": shlex.join(command), "user": shlex.join(AS_USER)}
    made = OwnCommands(
        USER,
        (script(folder / "start.sh", START.format(**words)),),
        (script(folder / "stop.sh", STOP.format(**words)),),
        330,
    )
    try:
        yield made
    finally:
        if (folder / "kafka.pid").exists():
            subprocess.run(["sh", str(folder / "stop.sh")], check=False, stderr=subprocess.DEVNULL)


ESTATES = {"supervisord": supervisord, "runit": runit, "podman": podman, "scripts": scripts}


def inventory_of(folder: Path, node: BrokerNode, kafka_home: str = "/opt/kafka") -> Inventory:
    """Of that node alone, on this host, without sudo."""
    options = {"kafka_home": kafka_home, "sudo": "no", "host_program": f"{folder}/host"}
    nodes = {"brokers": (node,), "controllers": ()}
    return replace(worlds.inventory(), executor="local", executor_options=options, **nodes)  # type: ignore[arg-type]


def services_of(folder: Path, node: BrokerNode, kafka_home: str = "/opt/kafka") -> HostServices:
    """Over the host program as `doctor --host-setup` installs it, in a folder of the test."""
    place = folder / f"program-{time.monotonic_ns()}"
    inventory = inventory_of(place, node, kafka_home)
    install(place, inventory, folder, str(PYTHON) if PYTHON.exists() else sys.executable)
    runner = ProgramHolder(LocalRunner(), HostAccess.of(inventory.executor_options))
    return HostServices({node.id: service_of(node, runner=runner, files=RemoteFiles({node.id: runner}))}, Waits())
