"""A host as in the field: root logs in, Kafka's own user runs the broker and owns its disks; files keep owner and mode.

sudo and systemctl are stood in for by programs of a few lines that only these sessions see.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.hosts.commands import Privilege
from migrate.hosts.remote_disks import RemoteDisks
from migrate.hosts.remote_files import HostFiles, RemoteFiles
from migrate.hosts.runner import Runner
from migrate.hosts.systemd import Service, SystemdServices
from migrate.lab import ssh_hosts, units
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Running, Stopped
from tests.hosts.test_supervisor import Stage
from tests.hosts.test_systemd import FastWaits
from tests.testing.ssh_server import ssh_server

NODE = NodeId(7)
KAFKA = "nobody"
UID = 65534
PYTHON = Path("/usr/bin/python3")  # one that every user may run
BROKER = """\
import pathlib, signal, sys
told = pathlib.Path(sys.argv[2])
told.write_bytes(pathlib.Path(sys.argv[1]).read_bytes())
signal.sigwait({signal.SIGTERM})
"""
SUDO = """\
#!/bin/sh
# sudo -n [-u USER] [-l] -- WORDS; commands that stand in the file `denied` beside it, a line each, are refused
denied=$(dirname "$0")/denied
shift
user=root
if [ "$1" = -u ]; then user=$2; shift 2; PATH=/usr/bin:/bin; fi
asked=
if [ "$1" = -l ]; then asked=yes; shift; fi
shift
if [ -f "$denied" ] && printf '%s' "$*" | grep -qxFf "$denied"; then
  echo "sudo: a password is required" >&2
  exit 1
fi
if [ "$asked" ]; then echo "$@"; exit 0; fi
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@"
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="other users need root"),
    pytest.mark.skipif(
        not PYTHON.exists() or not shutil.which("setpriv") or not shutil.which("ssh"),
        reason="no python3 of the system, setpriv or OpenSSH client",
    ),
]


@dataclass
class Host:
    """One that SSH reaches, with a folder that all users may enter."""

    folder: Path
    stage: Stage
    runner: Runner

    @property
    def config(self) -> Path:
        """The broker's file: root's, readable by Kafka's group."""
        return self.folder / "node-7.properties"

    def services(self) -> SystemdServices:
        """Its unit, and the storage tool as Kafka's user."""
        files = HostFiles(self.runner, Privilege("root"))
        service = Service(
            NODE, "node-7.service", str(self.config), self.runner, files, Privilege("root"), Privilege(KAFKA),
            str(self.folder / "kafka"),
        )  # fmt: skip
        return SystemdServices({NODE: service}, FastWaits())

    def place(self, name: str, owner: int, mode: int = 0o750) -> Path:
        """A folder of that owner."""
        path = self.folder / name
        path.mkdir()
        path.chmod(mode)
        os.chown(path, owner, owner)
        return path


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Its broker is described, and does not run."""
    folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-host-", dir="/tmp"))
    folder.chmod(0o755)
    stage = Stage(folder)
    try:
        with ssh_server(tmp_path / "ssh") as (server, connections):
            programs = server.folder / ssh_hosts.BIN
            units.write_programs(programs, folder)
            (programs / "sudo").write_text(SUDO)
            (programs / "sudo").chmod(0o755)
            found = Host(folder, stage, connections.runner("kafka-1"))
            told = found.place("told", UID)
            as_kafka = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", str(PYTHON), "-S", "-c")
            words = (*as_kafka, BROKER, str(found.config), str(told / "config"))
            stage.add("node-7", node=7, argv=words)
            found.config.chmod(0o640)
            os.chown(found.config, 0, UID)
            yield found
    finally:
        stage.sweep()
        shutil.rmtree(folder)


def test_a_broker_of_another_user_is_given_its_file_started_and_stopped(host: Host) -> None:
    """It reads what was written for it; owner, group and mode are as they were; which file it runs with is proven."""
    content = b"node.id=7\nprocess.roles=broker\n"
    RemoteFiles({NODE: HostFiles(host.runner, Privilege("root"))}).write(NODE, str(host.config), content)
    now = host.config.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (0, UID, 0o640)
    services = host.services()
    services.start(NODE)
    state = services.state(NODE)
    while not (host.folder / "told/config").exists():
        assert isinstance(state := services.state(NODE), Running)
    assert isinstance(state, Running)
    assert Path(f"/proc/{state.pid}").stat().st_uid == UID
    assert (host.folder / "told/config").read_bytes() == content
    assert state.config_sha256 == hashlib.sha256(content).hexdigest()
    services.stop(NODE, 30)
    assert isinstance(services.state(NODE), Stopped)


def test_disks_are_proven_as_the_user_who_writes_on_them(host: Host) -> None:
    """Root could write everywhere: what Kafka's user, who owns the others, may not write is broken."""
    good, bad = host.place("d0", UID), host.place("d1", 0, 0o755)
    kafka = RemoteDisks({NODE: host.runner}, Privilege(KAFKA))
    disks = kafka.look(NODE, [str(good)], None)
    assert isinstance(disks, BrokerDisks)
    assert disks.directories[0].healthy
    found = kafka.look(NODE, [str(good), str(bad)], None)
    assert isinstance(found, BrokerDisks)
    assert [entry.problem for entry in found.directories] == ["", "cannot be written: Permission denied"]
    alone = kafka.look(NODE, [str(bad)], None)
    assert isinstance(alone, Unknown)
    assert f"{bad}: the collector's user may not look into it" in alone.reason


def test_storage_is_formatted_as_kafkas_user(host: Host) -> None:
    """Root's files in a controller's directory would keep it from starting."""
    tool = host.folder / "kafka" / "bin" / "kafka-storage.sh"
    tool.parent.mkdir(parents=True)
    metadata = host.place("metadata", UID)
    tool.write_text(f'#!/bin/sh\nid -un > "{metadata}/meta.properties"\n')
    tool.chmod(0o755)
    host.services().format_storage(NODE, "x", "3.9")
    assert (metadata / "meta.properties").read_text() == f"{KAFKA}\n"
    assert (metadata / "meta.properties").stat().st_uid == UID
