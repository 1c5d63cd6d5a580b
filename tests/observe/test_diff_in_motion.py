"""Real dual write under real clients: nothing false is reported, and what was changed past Kafka is, each time.

One ZooKeeper, two brokers in migration mode, one controller; a client makes and deletes topics, changes
configurations and moves leaders all the while.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from migrate.hosts.config import read_config
from migrate.hosts.files import LocalFiles
from migrate.kafka.admin import bootstrap_servers, client_config
from migrate.kafka.connection import Connection
from migrate.lab.cluster import Lab
from migrate.lab.ready import PLAIN
from migrate.lab.topology import HOST, Shape
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ConfigFile, KraftView
from migrate.model.world import Need
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.protocol.fields import INT16, INT32, STRING, Array, message, struct
from migrate.protocol.fields import field as wire
from migrate.protocol.messages.admin import ELECT_LEADERS
from migrate.protocol.messages.api import Api
from migrate.steps import configuration
from tests.testing.kraft_cluster import wait_for

# long: it starts a Spark session of its own, and one process has only one
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

REASSIGN = Api(
    "AlterPartitionReassignments",
    message(
        "AlterPartitionReassignmentsRequest",
        45,
        "0",
        "0+",
        wire("timeoutMs", INT32, default=60000),
        wire(
            "topics",
            Array(
                struct(
                    "ReassignableTopic",
                    wire("name", STRING),
                    wire(
                        "partitions",
                        Array(
                            struct(
                                "ReassignablePartition",
                                wire("partitionIndex", INT32),
                                wire("replicas", Array(INT32), nullable="0+", default=None),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
    message(
        "AlterPartitionReassignmentsResponse",
        45,
        "0",
        "0+",
        wire("throttleTimeMs", INT32),
        wire("errorCode", INT16),
        wire("errorMessage", STRING, nullable="0+"),
        wire(
            "responses",
            Array(
                struct(
                    "ReassignableTopicResponse",
                    wire("name", STRING),
                    wire(
                        "partitions",
                        Array(
                            struct(
                                "ReassignablePartitionResponse",
                                wire("partitionIndex", INT32),
                                wire("errorCode", INT16),
                                wire("errorMessage", STRING, nullable="0+"),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)


@dataclass
class Churn:
    """A client that never rests; `rounds` is how often it did everything."""

    lab: Lab
    stop: threading.Event = field(default_factory=threading.Event)
    rounds: int = 0
    failures: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Until it is stopped; what fails is kept."""
        try:
            inventory = self.lab.inventory
            admin = AdminClient(client_config(bootstrap_servers(inventory), inventory.broker_access))
            with Connection(f"{HOST}:{self.lab.topology.brokers[0].internal_port}", PLAIN) as connection:
                while not self.stop.is_set():
                    self.once(admin, connection)
                    self.rounds += 1
                    self.stop.wait(0.2)  # a busy cluster, not one that drowns
        except Exception as error:  # noqa: BLE001 - the test tells what happened in its thread
            self.failures.append(repr(error))

    def once(self, admin: AdminClient, connection: Connection) -> None:
        """A topic made under a name that comes again, a value changed, leaders moved, the topic deleted."""
        name, turned = f"brief-{self.rounds % 3}", [[0, 1], [1, 0]][self.rounds % 2]
        made = NewTopic(name, 2, replica_assignment=[[0, 1], [1, 0]], config={"retention.ms": "60000"})
        admin.create_topics([made])[name].result(30)
        entry = ConfigEntry("retention.ms", str(100_000 + self.rounds), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "busy", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
        partitions = [{"partitionIndex": number, "replicas": turned} for number in range(4)]
        topics = [{"name": "busy", "partitions": partitions}]
        assert connection.call(REASSIGN, {"timeoutMs": 30000, "topics": topics})["errorCode"] == 0
        wanted = [{"topic": "busy", "partitions": [0, 1, 2, 3]}]
        connection.call(ELECT_LEADERS, {"electionType": 0, "topicPartitions": wanted, "timeoutMs": 30000})
        admin.delete_topics([name])[name].result(30)


@contextmanager
def churning(lab: Lab) -> Iterator[Churn]:
    """The client, in a thread of its own."""
    churn = Churn(lab)
    thread = threading.Thread(target=churn.run)
    thread.start()
    try:
        yield churn
    finally:
        churn.stop.set()
        thread.join(60)


def migrate_by_hand(lab: Lab) -> None:
    """A controller, and both brokers restarted in migration mode: the cluster is copied."""
    inventory = lab.inventory
    node = inventory.controllers[0]
    files = LocalFiles()
    brokers = [read_config(files, broker.id, broker.config) for broker in inventory.brokers]
    first = brokers[0]
    assert isinstance(first, ConfigFile)
    admin = AdminClient(client_config(bootstrap_servers(inventory), inventory.broker_access))
    made = [NewTopic(name, 4, replica_assignment=[[0, 1]] * 4) for name in ("busy", "calm")]
    for future in admin.create_topics(made).values():
        future.result(60)
    entry = ConfigEntry("retention.ms", "70000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "calm", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    cluster_id = str(admin.describe_cluster().result(30).cluster_id)
    files.make_directory(node.id, node.metadata_directory)
    files.write(node.id, node.config, configuration.controller(first.values, inventory, node))
    lab.supervisor.format_storage(node.id, cluster_id, "3.9")
    lab.supervisor.start(node.id)
    for file in brokers:
        assert isinstance(file, ConfigFile)
        lab.supervisor.stop(file.node, 120)
        files.write(file.node, file.path, configuration.migration_mode(file.raw, inventory))
        lab.supervisor.start(NodeId(int(file.node)))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The cluster in hybrid."""
    made = Lab.create(tmp_path_factory.mktemp("motion") / "lab", Shape(brokers=2, directories=2, controllers=1))
    try:
        made.up()
        migrate_by_hand(made)
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def observer(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterObserver]:
    """What `diff` looks with, kept over all looks; it waits for the end of the copy."""
    sources = Sources(lab.inventory, Unknown("no playbook"), Path(tmp_path_factory.mktemp("spark")))
    sources.start_spark()
    found = ClusterObserver(sources)

    def copied() -> bool:
        view = sources.kraft()
        return (
            isinstance(view, KraftView)
            and view.migration_state is ZkMigrationState.MIGRATION
            and sources.dual_write_offset() > 0
        )

    try:
        wait_for("the copy", copied, 180)
        handle = sources.spark()
        assert handle is not None
        handle.get(300)
        yield found
    finally:
        found.close()


def report_of(observer: ClusterObserver) -> DiffReport:
    """One comparison."""
    found = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF}), {}).diff
    assert isinstance(found, DiffReport), found
    return found


@contextmanager
def past_kafka(client: KazooClient, turn: int) -> Iterator[tuple[str, str, str]]:
    """A znode changed as no tool of Kafka's would, and put back; the row that must come of it."""
    state = "/brokers/topics/calm/partitions/1/state"
    path, row = [
        ("/config/topics/calm", ("topic-config", "calm", "retention.ms")),
        (state, ("partition", "calm-1", "leader_epoch")),
        ("/config/users/eve", ("client-quota", "user=eve", "producer_byte_rate")),
    ][turn % 3]
    before = None
    try:
        before, _ = client.get(path)
        value = json.loads(before)
    except NoNodeError:
        value = {"version": 1, "config": {"producer_byte_rate": "1024"}}
    if path == state:
        value["leader_epoch"] += 40
    elif before is not None:
        value["config"]["retention.ms"] = str(5000 + turn)
    changed = json.dumps(value).encode()
    if before is None:
        client.create(path, changed)
    else:
        client.set(path, changed)
    try:
        yield row
    finally:
        if before is None:
            client.delete(path)
        else:
            client.set(path, before)


@pytest.mark.parametrize("rounds", [10, pytest.param(50, marks=pytest.mark.long)])
def test_comparisons_in_a_row_report_nothing_false_and_every_change_past_kafka(
    lab: Lab, observer: ClusterObserver, rounds: int
) -> None:
    """Every other one with a znode changed behind Kafka's back; `calm` never rests among what moves."""
    client = KazooClient(lab.inventory.zookeeper)
    client.start(15)
    try:
        with churning(lab) as churn:
            again = 0
            for turn in range(rounds):
                if turn % 2:
                    with past_kafka(client, turn // 2) as row:
                        found = report_of(observer)
                    assert [(entry.kind, entry.key, entry.field) for entry in found.unexcused] == [row], found.unexcused
                    assert all("mzxid" in entry.zookeeper_where for entry in found.unexcused)
                else:
                    found = report_of(observer)
                    assert found.unexcused == ()
                again += found.looks > 1
                assert {entry.key.partition("-")[0] for entry in found.unsettled} <= {"busy", "brief"}
            assert churn.failures == []
            assert churn.rounds > rounds / 2, "the client did nothing meanwhile"
            assert again >= rounds // 2
    finally:
        client.stop()
        client.close()


def test_at_rest_all_is_equal_again(lab: Lab, observer: ClusterObserver) -> None:
    """Whatever moved has settled: one look is enough, and nothing is left open."""
    found = report_of(observer)
    assert (found.unexcused, found.unsettled) == ((), ())
    assert found.counts["partition"]["EQUAL"] >= 8 * 8
