"""Six real clusters whose migration stands still: `status` says which node is missing, and why; mended, they go on."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kazoo.client import KazooClient

from migrate.hosts.properties import edit, parse
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import run_tool
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.topology import HOST
from migrate.model.broker_modes import FLAG
from migrate.model.config_keys import VOTERS
from migrate.model.ids import NodeId
from migrate.run import journal as journals
from migrate.steps import configuration
from tests.lab.commands import kraft_migrate
from tests.lab.throttled_move import throttled_move
from tests.testing.this_host import format_storage

pytestmark = pytest.mark.kafka

TOPIC = "waits"
PARTS = ("port", "dead-id", "topic-id", "flag", "sync", "moves")
STOP = 60.0


@dataclass
class Cluster:
    """A lab at stage controllers, to be bent."""

    lab: Lab
    used: bool = False

    def status(self) -> Any:
        """`status --output json`."""
        ended = kraft_migrate("status", "--inventory", str(self.lab.inventory_path), "--output", "json")
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    def text(self) -> str:
        """`status` for a person, in one line."""
        ended = kraft_migrate("status", "--inventory", str(self.lab.inventory_path))
        assert ended.returncode in (0, 3), ended.stderr
        return " ".join(ended.stdout.split())

    def until(self, reached: Callable[[Any], bool], seconds: float = 150) -> Any:
        """Ask for the status until it is so; each question takes a second, and looks at everything anew."""
        deadline = time.monotonic() + seconds
        while not reached(found := self.status()):
            assert time.monotonic() < deadline, json.dumps(found, indent=1)
        return found

    def restart(self, name: str, content: bytes | None = None) -> None:
        """With another file, where one is given."""
        self.lab.supervisor.stop(name, STOP)
        if content is not None:
            self.lab.topology.config(name).write_bytes(content)
        self.lab.supervisor.start(name)

    def migration_file(self, broker: int) -> bytes:
        """The right file for the first roll."""
        return configuration.migration_mode(
            self.lab.topology.config(f"broker-{broker}").read_bytes(), self.lab.inventory
        )

    def roll(self, *brokers: int) -> None:
        """Into migration mode, as the migration's first roll does."""
        for broker in brokers:
            self.restart(f"broker-{broker}", self.migration_file(broker))
        self.until(lambda found: set(brokers) <= registered(found))

    def zookeeper(self, stack: ExitStack) -> KazooClient:
        """A client of its own, inside the chroot."""
        client = KazooClient(self.lab.topology.zookeeper)
        client.start()
        stack.callback(client.close)
        stack.callback(client.stop)
        return client


def registered(found: Any) -> set[int]:
    """Brokers that are registered as migrating."""
    return {row["node"] for row in found["processes"] if row["registered"] == "migration"}


def codes(found: Any) -> list[tuple[str, list[int]]]:
    """What holds, and of whom."""
    return [(row["code"], row["nodes"]) for row in found["waiting"]]


def copied(found: Any) -> bool:
    """Has the copy been made, and does nothing wait any more?"""
    return found.get("stage") == "copy" and not found["waiting"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in ZooKeeper mode, one topic, three controllers that wait for brokers."""
    lab = Lab.create(tmp_path_factory.mktemp("stuck") / "lab")
    try:
        lab.up()
        admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
        for future in admin.create_topics([NewTopic(TOPIC, 3, 2)]).values():
            future.result(30)
        for stage in ("prepare", "controllers"):
            planned = kraft_migrate("plan", str(lab.playbook_path), "--stage", stage, "--output", "json")
            fingerprint = json.loads(planned.stdout)["fingerprint"]
            ended = kraft_migrate("apply", str(Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"))
            assert ended.returncode == 0, ended.stderr
        lab.down()
        shutil.copytree(lab.topology.directory, kept_of(lab), symlinks=True)
        lab.up()
        yield Cluster(lab)
    finally:
        lab.down()


def kept_of(lab: Lab) -> Path:
    """Where the stopped lab is kept."""
    return Path(f"{lab.topology.directory}-kept")


@pytest.fixture
def cluster(made: Cluster) -> Cluster:
    """As it was made, for each part."""
    if made.used:
        made.lab.down()
        shutil.rmtree(made.lab.topology.directory)
        shutil.copytree(kept_of(made.lab), made.lab.topology.directory, symlinks=True)
        made.lab.up()
    made.used = True
    return made


def bend_and_judge(part: str, cluster: Cluster, stack: ExitStack) -> None:
    """The part of that name."""
    parts = {"port": wrong_port, "dead-id": dead_id, "topic-id": no_topic_id, "flag": no_flag, "sync": endless_sync}
    if part == "moves":
        throttled_move(cluster, TOPIC, partial(kafka_tool, cluster))
    else:
        parts[part](cluster, stack)


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
def test_a_migration_that_stands_still_is_explained_and_goes_on_when_mended(part: str, cluster: Cluster) -> None:
    """Before the first roll it says who has not been rolled; then the fault, and nothing else; mended, the copy."""
    found = cluster.until(lambda found: bool(found["waiting"]))
    assert codes(found) == [("S-STUCK-30", [0, 1, 2])]
    with ExitStack() as stack:
        bend_and_judge(part, cluster, stack)
    cluster.until(lambda found: found.get("stage") in ("copy", "hybrid") and not found["waiting"])
    assert "waits" not in cluster.text().replace(TOPIC, "")


def wrong_port(cluster: Cluster, stack: ExitStack) -> None:
    """Broker 1's file gives every controller a port where nobody listens; its log says 'started' all the same."""
    sockets = [stack.enter_context(socket.socket()) for _ in range(3)]  # bound, and not listening: nobody else's
    for entry in sockets:
        entry.bind((HOST, 0))
    right = cluster.migration_file(1)
    addresses = [f"{HOST}:{entry.getsockname()[1]}" for entry in sockets]
    ids = [controller.id for controller in cluster.lab.topology.controllers]
    voters = ",".join(f"{node}@{address}" for node, address in zip(ids, addresses, strict=True))
    cluster.roll(0, 2)
    cluster.restart("broker-1", edit(right, {VOTERS: voters}, ()))
    found = cluster.until(
        lambda found: codes(found) == [("S-STUCK-33", [1])] and any("[1]" in e for e in found["waiting"][0]["evidence"])
    )
    (row,) = found["waiting"]
    wrong = dict(zip(ids, addresses, strict=True))[found["quorum"]["leader"]]
    assert wrong in row["cause"]
    assert any(f"nobody answers at {wrong}" in line for line in row["evidence"])
    assert str(cluster.lab.topology.config("broker-1")) in row["owner"]
    assert "Still waiting for ZK brokers [1] to register with KRaft" in " ".join(row["evidence"])
    assert f"because its file gives the active controller {found['quorum']['leader']} as {wrong}" in cluster.text()
    cluster.restart("broker-1", right)


def dead_id(cluster: Cluster, stack: ExitStack) -> None:
    """A replica is assigned to broker 9, which does not exist; put back, the driver goes on at its next look."""
    zookeeper = cluster.zookeeper(stack)
    path = f"/brokers/topics/{TOPIC}"
    original, _ = zookeeper.get(path)
    value = json.loads(original)
    value["partitions"]["1"][1] = 9
    cluster.roll(0, 1)
    zookeeper.set(path, json.dumps(value).encode())
    cluster.restart("broker-2", cluster.migration_file(2))
    found = cluster.until(lambda found: codes(found) == [("S-STUCK-50", [9])])
    (row,) = found["waiting"]
    assert f"partitions assigned to it: 1 ({TOPIC}-1)" in row["cause"]
    moved = json.loads(row["next"][row["next"].index("{") :])
    ((topic, partition, replicas),) = [tuple(entry.values()) for entry in moved["partitions"]]
    assert (topic, partition) == (TOPIC, 1)
    assert 9 not in replicas
    assert len(set(replicas)) == 2
    text = cluster.text()
    assert "for broker 9, found in assignments, to register because broker 9 is neither in /brokers/ids" in text
    gives_up(cluster)
    zookeeper.set(path, original)


def gives_up(cluster: Cluster) -> None:
    """The watch of that copy ends although NoOp records go on, or when it is interrupted; nothing is changed."""
    playbook = cluster.lab.playbook_path
    text = playbook.read_text()
    assert "no_progress_timeout: 3m" in text
    playbook.write_text(text.replace("no_progress_timeout: 3m", "no_progress_timeout: 10s"))
    planned = kraft_migrate("plan", str(playbook), "--stage", "migration-mode", "--output", "json")
    assert planned.returncode == 3, planned.stderr  # the dead id blocks: nothing is left to do here but to watch
    plan = Path(cluster.lab.inventory.runs) / json.loads(planned.stdout)["fingerprint"][:8] / "plan.json"
    ended = kraft_migrate("apply", str(plan))
    assert ended.returncode != 0
    said = " ".join((ended.stdout + ended.stderr).split())
    assert "no progress for 1" in said
    assert "brokers [9], found in assignments, to register with KRaft; S-STUCK-50: 9:" in said
    assert "the controllers make the copy by themselves" in said
    with subprocess.Popen(
        [sys.executable, "-m", "migrate", "apply", str(plan)], stderr=subprocess.PIPE, text=True
    ) as run:
        deadline = time.monotonic() + STOP
        while not _watches_again(plan.parent / "journal.jsonl"):
            assert time.monotonic() < deadline
            threading.Event().wait(0.2)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=STOP)
    assert run.returncode == 130
    assert "parked in copy/copy: Ctrl-C asked for it; the controllers make the copy by themselves" in " ".join(
        told.split()
    )
    playbook.write_text(text)


def _watches_again(journal: Path) -> bool:
    """Does a second session watch the copy?"""
    names = [event.name for event in journals.read(journal).events]
    return names.count("session") == 2 and "waiting" in names[len(names) - names[::-1].index("session") :]


def no_topic_id(cluster: Cluster, stack: ExitStack) -> None:
    """The id goes when no ZooKeeper controller will change any more; its folders know which one belongs there."""
    zookeeper = cluster.zookeeper(stack)
    path = f"/brokers/topics/{TOPIC}"
    last = next(broker for broker in (2, 1, 0) if broker != json.loads(zookeeper.get("/controller")[0])["brokerid"])
    cluster.roll(*({0, 1, 2} - {last}))
    if json.loads(zookeeper.get("/controller")[0])["brokerid"] == last:
        cluster.restart(f"broker-{last}")
        cluster.until(lambda found: found["unhealthy_partitions"] == 0)
    original, _ = zookeeper.get(path)
    value = json.loads(original)
    topic_id = value.pop("topic_id")
    zookeeper.set(path, json.dumps(value).encode())
    cluster.restart(f"broker-{last}", cluster.migration_file(last))
    found = cluster.until(lambda found: codes(found) == [("S-STUCK-51", [])])
    (row,) = found["waiting"]
    assert row["cause"] == f"{path} has no topic_id"
    assert f'write "topic_id":"{topic_id}" into {path}' in row["next"]
    assert json.loads(zookeeper.get(path)[0]) == value  # still without: the driver does not mend it
    zookeeper.set(path, original)


def stale_migration(cluster: Cluster, zookeeper: KazooClient) -> None:
    """/migration of an earlier attempt: STOP comes first, before the brokers that are next; without data it hangs."""
    for epoch, code in ((99, "S-STUCK-01"), (0, "S-STUCK-02")):
        value = json.loads(zookeeper.get("/migration")[0])
        value |= {"kraft_metadata_offset": 9000, "kraft_metadata_epoch": epoch}
        zookeeper.set("/migration", json.dumps(value).encode())
        found = cluster.status()
        assert codes(found)[0][0] == code
        assert found["waiting"][0]["next"].startswith("Stop all controllers now")
        assert codes(found)[-1] == ("S-STUCK-30", [0, 1, 2])
    zookeeper.set("/migration", b"")
    assert codes(cluster.status()) == [("S-STUCK-03", []), ("S-STUCK-30", [0, 1, 2])]


def no_flag(cluster: Cluster, stack: ExitStack) -> None:
    """One of three controllers is provisioned without the flag: first it is not there, then it is there without.

    From its first start on: a leader that has once seen all of them ready does not look again.
    """
    lab, last = cluster.lab, cluster.lab.topology.controllers[-1]
    zookeeper = cluster.zookeeper(stack)
    value = json.loads(zookeeper.get("/cluster/id")[0])
    stale_migration(cluster, zookeeper)
    right = lab.topology.config(last.name).read_bytes()
    assert parse(right)[FLAG] == "true"
    for controller in lab.topology.controllers:
        lab.supervisor.stop(controller.name, STOP)
        shutil.rmtree(controller.metadata_directory)
        Path(controller.metadata_directory).mkdir()
        format_storage(lab.inventory, controller.id, value["id"], "3.9")
    zookeeper.delete("/migration")  # as the explanations say: with the controllers stopped
    lab.topology.config(last.name).write_bytes(edit(right, {}, [FLAG]))
    for controller in lab.topology.controllers[:-1]:
        lab.supervisor.start(controller.name)
    found = cluster.until(lambda found: found.get("stage") == "controllers")
    assert ("S-STUCK-20", [last.id]) in codes(found)
    assert ("S-STUCK-22", [last.id]) in codes(found)
    lab.supervisor.start(last.name)
    cluster.roll(0, 1, 2)
    told = f"Controller {last.id} has not enabled {FLAG}"
    found = cluster.until(
        lambda found: codes(found) == [("S-STUCK-20", [last.id])] and told in " ".join(found["waiting"][0]["evidence"])
    )
    (row,) = found["waiting"]
    assert row["cause"] == f"{FLAG} is missing in its file"
    assert row["waits_for"] == f"controller {last.id} to register with the migration flag"
    assert lab.inventory.node(NodeId(last.id)).config in row["owner"]
    assert f"because {FLAG} is missing in its file" in cluster.text()
    cluster.restart(last.name, right)


SLASHED = "flink/job"
ORDINARY = [f"group-{number}" for number in range(20)]


def allowed(group: str) -> AclBinding:
    """An ACL of that group."""
    return AclBinding(
        ResourceType.GROUP,
        group,
        ResourcePatternType.LITERAL,
        "User:eve",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


MAINS = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}


def kafka_tool(cluster: Cluster, command: str) -> None:
    """Run a command line of Kafka's tools as it was told, with this cluster's addresses and login."""
    topology = cluster.lab.topology
    login = topology.folder("admin.properties")
    settings = settings_for(topology)
    login.touch(mode=0o600)
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security."
        f'plain.PlainLoginModule required username="{settings["sasl.username"]}" '
        f'password="{settings["sasl.password"]}";\n',
        encoding="utf-8",
    )
    name, *words = shlex.split(command)
    main = MAINS[name]
    address = str(settings["bootstrap.servers"])
    if "--bootstrap-controller" in words:
        address = cluster.lab.inventory.node(NodeId(cluster.status()["quorum"]["leader"])).address
    else:
        words += ["--command-config", str(login)]
    words[words.index("HOST:PORT")] = address
    done = run_tool(find_java(), kafka_jars().classpath, main, words, 60)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def endless_sync(cluster: Cluster, stack: ExitStack) -> None:
    """What ZooKeeper has no place for keeps each new controller in its sync; removed as told, dual write continues.

    In ZooKeeper mode neither can be made; in hybrid both succeed, and the run forward names both before any election.
    """
    lab = cluster.lab
    metrics = "--alter --entity-type client-metrics --entity-name sub --add-config interval.ms=60000"
    admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
    with pytest.raises(KafkaException, match="Failed to create ACL"):
        admin.create_acls([allowed(SLASHED)])[allowed(SLASHED)].result(30)
    cluster.roll(0, 1, 2)
    cluster.until(copied)
    planned = kraft_migrate("plan", str(lab.playbook_path), "--stage", "hybrid", "--output", "json")
    plan = str(Path(lab.inventory.runs) / json.loads(planned.stdout)["fingerprint"][:8] / "plan.json")
    for future in admin.create_acls([allowed(group) for group in (*ORDINARY[:10], SLASHED, *ORDINARY[10:])]).values():
        future.result(30)
    kafka_tool(cluster, f"kafka-configs --bootstrap-controller HOST:PORT {metrics}")
    refused = " ".join(kraft_migrate("apply", plan).stderr.split())
    assert f"ACL of GROUP {SLASHED} (LITERAL)" in refused
    assert "client-metrics-config sub" in refused
    assert f"--remove --force --group {SLASHED} --resource-pattern-type literal" in refused
    cluster.restart(f"controller-{cluster.status()['quorum']['leader']}")
    told = "Unknown config resource type CLIENT_METRICS"
    found = cluster.until(
        lambda found: (
            [code for code, _ in codes(found)] == ["S-STUCK-05", "S-STUCK-06"]
            and told in " ".join(found["waiting"][0]["evidence"])
        )
    )
    assert found["rollback"]["readiness"] == "NOT READY"
    kafka_tool(cluster, command_of(found["waiting"][0]))
    found = cluster.until(
        lambda found: (
            [code for code, _ in codes(found)] == ["S-STUCK-06"]
            and "during event SyncKRaftMetadataEvent. Will retry" in " ".join(found["waiting"][0]["evidence"])
        )
    )
    (row,) = found["waiting"]
    assert "not S-STUCK-01" in row["next"]
    kafka_tool(cluster, command_of(row))
    cluster.until(copied)
    zookeeper = cluster.zookeeper(stack)
    assert set(ORDINARY) <= set(zookeeper.get_children("/kafka-acl/Group"))  # those lost with it are there again
    ended = kraft_migrate("apply", plan)
    assert ended.returncode == 0, ended.stderr
    cluster.until(lambda found: found.get("stage") == "hybrid")


def command_of(row: Any) -> str:
    """The command in the next step of an explanation."""
    found: str = row["next"]
    return found[found.index("kafka-") : found.index("; then ")]
