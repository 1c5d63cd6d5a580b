"""A cluster in dual write for tests, and a client that never rests: it makes topics, deletes them, moves leaders.

One ZooKeeper, two brokers in migration mode, one controller: the least that has a leader to move.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from migrate.hosts.properties import read_config
from migrate.kafka.connection import Connection
from migrate.kafka.tls import cluster_config
from migrate.lab.cluster import Lab
from migrate.lab.ready import brokers_agree
from migrate.lab.topology import HOST
from migrate.model.ids import NodeId
from migrate.model.inventory import Access
from migrate.model.views import ConfigFile
from migrate.protocol.messages import ELECT_LEADERS
from migrate.steps import configuration
from tests.testing.kafka_schemas import KafkaApi
from tests.testing.kraft_cluster import wait_for
from tests.testing.this_host import LocalFiles, format_storage

REASSIGN = KafkaApi("AlterPartitionReassignments")


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
            admin = AdminClient(cluster_config(inventory))
            with Connection(f"{HOST}:{self.lab.topology.brokers[0].internal_port}", Access()) as connection:
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
    """A controller, and both brokers restarted in migration mode, up again: the cluster is copied, or will be."""
    inventory = lab.inventory
    node = inventory.controllers[0]
    files = LocalFiles()
    brokers = [read_config(files, broker.id, broker.config) for broker in inventory.brokers]
    first = brokers[0]
    assert isinstance(first, ConfigFile)
    admin = AdminClient(cluster_config(inventory))
    made = [NewTopic(name, 4, replica_assignment=[[0, 1]] * 4) for name in ("busy", "calm")]
    for future in admin.create_topics(made).values():
        future.result(60)
    entry = ConfigEntry("retention.ms", "70000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "calm", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    cluster_id = str(admin.describe_cluster().result(30).cluster_id)
    files.make_directory(node.id, node.metadata_directory)
    files.write(node.id, node.config, configuration.controller(first.values, inventory, node))
    format_storage(inventory, node.id, cluster_id, "3.9")
    lab.supervisor.start(node.id)
    for file in brokers:
        assert isinstance(file, ConfigFile)
        lab.supervisor.stop(file.node, 120)
        files.write(file.node, file.path, configuration.migration_mode(file.raw, inventory))
        lab.supervisor.start(NodeId(int(file.node)))
    wait_for("both brokers to answer, with whole partitions", lambda: not brokers_agree(lab.topology))
