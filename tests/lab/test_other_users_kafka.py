"""Real brokers and controllers of Kafka's own user, on a host that SSH reaches as root: the first roll, and the copy.

As in the field: root's unit manager starts them, root owns the configuration and Kafka's group reads it, Kafka's user
owns the disks.  systemctl is a program of a few lines; no process and no file may end with another owner.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.java.jars import kafka_jars
from migrate.lab.cluster import Lab
from migrate.lab.host import BIN, FOLDER, PROGRAM, install
from migrate.lab.supervisor import write_spec
from migrate.lab.topology import Shape
from migrate.lab.units import USER
from migrate.model.views import Running
from migrate.run import journal as journals
from tests.hosts.test_other_users import PYTHON, UID
from tests.lab.commands import kraft_migrate
from tests.lab.one_topic import make_topic

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="other users need root"),
    pytest.mark.skipif(not shutil.which("setpriv") or not shutil.which("ssh"), reason="no setpriv or OpenSSH client"),
]
AS_KAFKA = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")


def given_to_kafka(lab: Lab) -> None:
    """Processes, disks and logs are Kafka's user's; configurations are root's, readable by its group."""
    nodes = [broker.name for broker in lab.topology.brokers]
    nodes += [controller.name for controller in lab.topology.controllers]
    for name in nodes:
        spec = lab.supervisor.specs()[name]
        write_spec(lab.topology.processes, replace(spec, argv=(*AS_KAFKA, *spec.argv)))
    for place in ("", "conf", FOLDER, f"{FOLDER}/{BIN}"):
        lab.topology.folder(place).chmod(0o755)
    os.chown(lab.topology.folder("conf"), UID, UID)
    for file in lab.topology.folder("conf").iterdir():
        os.chown(file, 0, UID)
        file.chmod(0o640)
    for name in ("data", "logs"):
        for folder in (lab.topology.folder(name), *lab.topology.folder(name).rglob("*")):
            os.chown(folder, UID, UID)
    for node in lab.topology.controllers:
        folder = Path(node.metadata_directory).parent
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, UID, UID)
    (lab.topology.processes / USER).write_text(str(UID))
    install(lab.topology, lab.inventory, str(PYTHON))


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A cluster in ZooKeeper mode whose brokers are another user's, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-users-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "kafka/libs").mkdir(parents=True)
    for jar in kafka_jars().classpath:
        shutil.copy(jar, folder / "kafka/libs")
    made = Lab.create(folder / "lab", Shape(ssh=True, directories=2), kafka_home=str(folder / "kafka"))
    try:
        given_to_kafka(made)
        made.up()
        make_topic(made)
        yield made
    finally:
        made.down()
        shutil.rmtree(folder)


def owner_of(lab: Lab, name: str) -> int:
    """The user that a node's process runs as."""
    state = lab.supervisor.state(name)
    assert isinstance(state, Running), name
    return Path(f"/proc/{state.pid}").stat().st_uid


def a_host_program_that_refuses_ends_the_run_before_it_begins(lab: Lab, plan: Path) -> None:
    """Its configuration lacks a node, or it is not there: E-HOST-27 names the node, no process and no file changes."""
    before = lab.supervisor.specs(), {node.name: lab.supervisor.state(node.name) for node in lab.topology.brokers}
    folder = lab.topology.folder(FOLDER, PROGRAM)
    for name in ("host.json", "host"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept.replace(b"broker-1.service", b"another.service"))
        if name == "host":
            (folder / name).rename(folder / "kept")
        ended = kraft_migrate("apply", str(plan))
        assert ended.returncode == 1, (name, ended.stdout[-500:], ended.stderr[-2000:])
        assert "E-HOST-27" in ended.stderr, (name, ended.stderr[-2000:])
        assert "node 1 on " in ended.stderr, ended.stderr[-2000:]
        assert "--host-setup" in ended.stderr, ended.stderr[-2000:]
        if name == "host":
            (folder / "kept").rename(folder / name)
        (folder / name).write_bytes(kept)
    events = journals.read(plan.parent / "journal.jsonl").events
    assert [event.name for event in events if event.name in ("effect", "intend")] == []
    states = {node.name: lab.supervisor.state(node.name) for node in lab.topology.brokers}
    assert (lab.supervisor.specs(), states) == before


def test_kafka_of_another_user_is_rolled_over_ssh_and_everything_keeps_its_owner(lab: Lab) -> None:
    """The first roll and the copy; every process and every file of the disks is Kafka's, every broker's file root's."""
    brokers = [node.name for node in lab.topology.brokers]
    assert {owner_of(lab, name) for name in brokers} == {UID}
    ended = kraft_migrate("plan", str(lab.playbook_path), "--to", "copy", "--output", "json")
    assert ended.returncode == 2, ended.stderr[-3000:]
    plan = Path(lab.inventory.runs) / json.loads(ended.stdout)["fingerprint"][:8] / "plan.json"
    a_host_program_that_refuses_ends_the_run_before_it_begins(lab, plan)
    ended = kraft_migrate("apply", str(plan))
    assert ended.returncode == 0, ended.stderr[-4000:]
    controllers = [node.name for node in lab.topology.controllers]
    assert {owner_of(lab, name) for name in (*brokers, *controllers)} == {UID}
    for name in brokers:
        file = lab.topology.config(name)
        status = file.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, UID, 0o640), name
        assert "zookeeper.metadata.migration.enable=true" in file.read_text()
    others = [str(path) for path in lab.topology.folder("data").rglob("*") if "zoo" not in str(path)]
    foreign = [path for path in others if os.lstat(path).st_uid != UID]
    assert others
    assert foreign == []
    metas = [Path(node.metadata_directory) / "meta.properties" for node in lab.topology.controllers]
    assert {meta.stat().st_uid for meta in metas} == {UID}
