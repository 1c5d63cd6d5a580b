"""A host as in the field: root owns the host program, Kafka's own user runs the broker and owns its disks.

Files keep owner and mode.  systemctl is stood in for by a program of a few lines.
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

from migrate.errors import FileNotReplaced
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Holder, ProgramHolder
from migrate.hosts.systemd import Service, SystemdServices
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Running, Stopped
from tests.hosts.test_systemd import FastWaits
from tests.lab.test_supervisor import Stage
from tests.testing.host_program import broker, controller, installed
from tests.testing.ssh_server import ssh_server

NODE, CONTROLLER = NodeId(7), NodeId(3000)
KAFKA = "nobody"
UID = 65534
PYTHON = Path("/usr/bin/python3")  # one that every user may run
BROKER = """\
import pathlib, signal, sys
told = pathlib.Path(sys.argv[2])
told.write_bytes(pathlib.Path(sys.argv[1]).read_bytes())
signal.sigwait({signal.SIGTERM})
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
    runner: Holder

    @property
    def config(self) -> Path:
        """The broker's file: root's, readable by Kafka's group."""
        return self.folder / "node-7.properties"

    @property
    def files(self) -> RemoteFiles:
        """The files of broker and controller."""
        return RemoteFiles({NODE: self.runner, CONTROLLER: self.runner})

    def services(self) -> SystemdServices:
        """Its unit, and the storage tool as Kafka's user."""
        service = Service(NODE, "node-7.service", str(self.config), self.runner, self.files)
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
        with ssh_server(tmp_path / "ssh") as (_server, connections):
            access = installed(
                tmp_path / "program",
                [broker(7, folder / "node-7.properties")],
                [controller(3000, folder / "controller.properties", folder / "metadata")],
                state=folder,
                user=UID,
                kafka_home=folder / "kafka",
                python=str(PYTHON),
            )
            found = Host(folder, stage, ProgramHolder(connections.runner("kafka-1"), access))
            told = found.place("told", UID)
            as_kafka = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", str(PYTHON), "-S", "-c")
            words = (*as_kafka, BROKER, str(found.config), str(told / "config"))
            stage.add("node-7", node=7, argv=words)
            stage.add("node-3000", node=3000)
            found.config.chmod(0o640)
            os.chown(found.config, 0, UID)
            yield found
    finally:
        stage.sweep()
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_broker_of_another_user_is_given_its_file_started_and_stopped(host: Host) -> None:
    """It reads what was written for it; owner, group and mode are as they were; which file it runs with is proven."""
    content = b"node.id=7\nprocess.roles=broker\n"
    host.files.write(NODE, str(host.config), content)
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


@pytest.mark.slow
def test_a_controllers_new_file_can_be_read_by_its_unit(host: Host) -> None:
    """Owner, group and mode of the brokers' file of that host; without one it is root's, for the unit's group."""
    path = host.folder / "controller.properties"
    for model in (True, False):
        if not model:
            path.unlink()
            host.config.unlink()
        host.files.write(CONTROLLER, str(path), b"node.id=3000\n")
        now = path.stat()
        assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (0, UID, 0o640), model


@pytest.mark.slow
def test_disks_are_proven_as_the_user_who_writes_on_them(host: Host) -> None:
    """Root could write everywhere: what Kafka's user, who owns the others, may not write is broken."""
    good, bad = host.place("d0", UID), host.place("d1", 0, 0o755)
    kafka = CollectorDisks({NODE: host.runner})
    disks = kafka.look(NODE, [str(good)], None)
    assert isinstance(disks, BrokerDisks)
    assert disks.directories[0].healthy
    found = kafka.look(NODE, [str(good), str(bad)], None)
    assert isinstance(found, BrokerDisks)
    assert [entry.problem for entry in found.directories] == ["", "cannot be written: Permission denied"]
    alone = kafka.look(NODE, [str(bad)], None)
    assert isinstance(alone, Unknown)
    assert f"{bad}: the collector's user may not look into it" in alone.reason


@pytest.mark.slow
def test_a_disks_identity_is_written_as_kafkas_user_alone(host: Host) -> None:
    """Root writes nothing there; where Kafka's user may not write, nobody does."""
    good, bad = host.place("d0", UID), host.place("d1", 0, 0o755)
    host.files.write(NODE, f"{good}/meta.properties", b"version=0\n")
    assert (good / "meta.properties").stat().st_uid == UID
    with pytest.raises(FileNotReplaced, match="Permission denied"):
        host.files.write(NODE, f"{bad}/meta.properties", b"version=0\n")
    assert list(bad.iterdir()) == []


@pytest.mark.slow
def test_storage_is_formatted_as_kafkas_user(host: Host) -> None:
    """Root's files in a controller's directory would keep it from starting."""
    tool = host.folder / "kafka" / "bin" / "kafka-storage.sh"
    tool.parent.mkdir(parents=True)
    metadata = host.place("metadata", UID)
    tool.write_text(f'#!/bin/sh\nid -un > "{metadata}/meta.properties"\n')
    tool.chmod(0o755)
    host.services().format_storage(NODE, "A" * 22, "3.9")
    assert (metadata / "meta.properties").read_text() == f"{KAFKA}\n"
    assert (metadata / "meta.properties").stat().st_uid == UID
