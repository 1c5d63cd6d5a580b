"""One real migration of a small cluster, seen through everything that looks: brokers, controllers, log, disks.

One ZooKeeper, one broker with three log directories, one controller: up to the copy and one driven assignment.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.errors import MigrateError, NotController, StaleBrokerEpoch
from migrate.hosts.properties import log_dirs, read_config
from migrate.kafka import live
from migrate.kafka.controller import ActiveController
from migrate.kafka.tls import cluster_config
from migrate.kraft.fetch import MetadataReader
from migrate.lab.cluster import Lab
from migrate.lab.topology import Shape
from migrate.model.ids import MIGRATING, DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import BrokerDisks, ConfigFile, KraftView, MetadataAnswer, MetaProperties, NodeAnswer, Quorum
from migrate.steps import configuration
from tests.testing.kraft_cluster import wait_for
from tests.testing.this_host import LocalFiles, disks_here, format_storage

pytestmark = pytest.mark.kafka

BROKER, CONTROLLER = NodeId(0), NodeId(3000)
PARTITIONS = 7


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A ZooKeeper-mode cluster with one topic; the tests take it on, in their order."""
    made = Lab.create(tmp_path_factory.mktemp("lab") / "one", Shape(brokers=1, directories=3, controllers=1))
    try:
        made.up()
        make_topic(made)
        yield made
    finally:
        made.down()


def make_topic(lab: Lab) -> None:
    """Through the SASL listener, as clients do."""
    inventory = lab.inventory
    admin = AdminClient(cluster_config(inventory))
    for future in admin.create_topics([NewTopic("moved", PARTITIONS, 1)]).values():
        future.result(timeout=60)


@pytest.fixture(scope="module")
def reader(lab: Lab) -> Iterator[MetadataReader]:
    """One reader through all of it, patient enough for a first election."""
    with MetadataReader(lab.inventory, Digester(), patience=60) as found:
        yield found


def config(lab: Lab, node: NodeId) -> ConfigFile:
    """A node's file."""
    found = read_config(LocalFiles(), node, lab.inventory.node(node).config)
    assert isinstance(found, ConfigFile)
    return found


def disks(lab: Lab) -> BrokerDisks:
    """The broker's log directories."""
    found = disks_here().look(BROKER, log_dirs(config(lab, BROKER).values), None)
    assert isinstance(found, BrokerDisks)
    return found


def on_disk(lab: Lab) -> dict[int, DirectoryId | None]:
    """Partition of the topic -> id of the directory that holds it."""
    return {
        partition: directory.id
        for directory in disks(lab).directories
        for topic, partition in zip(directory.replicas.topic, directory.replicas.partition, strict=True)
        if topic == "moved"
    }


def in_metadata(view: KraftView) -> dict[int, str]:
    """Partition of the topic -> directory id in the metadata."""
    rows = zip(view.partitions.topic, view.partitions.partition, view.partitions.directories, strict=True)
    return {partition: directories[0] for topic, partition, directories in rows if topic == "moved"}


def state(reader: MetadataReader) -> ZkMigrationState | None:
    """The migration's state, None while the log cannot be read."""
    try:
        return reader.view().migration_state
    except MigrateError:
        return None


def test_a_zookeeper_mode_broker_answers_and_planned_controllers_do_not(lab: Lab) -> None:
    """It names itself controller every time, has no flag and no features; its replicas have no directory ids."""
    found = live.look(lab.inventory, controller_samples=20)
    assert found.brokers[BROKER] == NodeAnswer(False, {})
    said = found.metadata[BROKER]
    assert isinstance(said, MetadataAnswer)
    assert (said.controller_ids, said.partitions, said.unhealthy) == ((BROKER,) * 20, PARTITIONS, ())
    told = found.log_dirs[BROKER]
    assert not isinstance(told, Unknown)
    directories = disks(lab).directories
    assert [entry.path for entry in told] == [entry.path for entry in directories]
    assert [entry.replicas for entry in told] == [len(entry.replicas) for entry in directories]
    assert all(entry.healthy and isinstance(entry.meta, MetaProperties) and entry.id is None for entry in directories)
    assert isinstance(found.controllers[CONTROLLER], Unknown)
    assert isinstance(found.quorum, Unknown)


def test_before_the_copy_the_quorum_is_seen_and_takes_no_assignment(lab: Lab, reader: MetadataReader) -> None:
    """PRE_MIGRATION, the flag on, the metadata version that of the brokers - and error 41."""
    inventory = lab.inventory
    node = inventory.controllers[0]
    first = disks(lab).directories[0].meta
    assert isinstance(first, MetaProperties)
    assert first.cluster_id
    LocalFiles().make_directory(node.id, node.metadata_directory)
    LocalFiles().write(node.id, node.config, configuration.controller(config(lab, BROKER).values, inventory, node))
    format_storage(inventory, node.id, first.cluster_id, "3.9")
    lab.supervisor.start(node.id)
    wait_for("PRE_MIGRATION", lambda: state(reader) is ZkMigrationState.PRE_MIGRATION)
    view = reader.view()
    assert view.cluster_id == first.cluster_id
    assert (view.brokers, len(view.partitions)) == ({}, 0)
    found = live.look(inventory)
    assert isinstance(found.quorum, Quorum)
    said = found.controllers[CONTROLLER]
    assert isinstance(said, NodeAnswer)
    assert said.migration_flag
    assert said.finalized_features["metadata.version"] == 21
    with pytest.raises(NotController):
        ActiveController(inventory).assign(BROKER, 1, {"fLUdTjFFJ_w2ms3XPW9eXg": [("b1X1a2lVTUuEZKTmypRKzw", 0)]})


def test_after_the_copy_every_replica_is_migrating_and_a_true_directory_can_be_sent(
    lab: Lab, reader: MetadataReader
) -> None:
    """The broker registered the ids on its disks; what is sent for it is in the log, the rest stays as it was."""
    inventory = lab.inventory
    lab.supervisor.stop(BROKER, 120)
    file = config(lab, BROKER)
    LocalFiles().write(BROKER, file.path, configuration.migration_mode(file.raw, inventory))
    lab.supervisor.start(BROKER)
    wait_for("the copy", lambda: state(reader) is ZkMigrationState.MIGRATION, 180)
    view = reader.view()
    registration = view.brokers[BROKER]
    assert registration.migrating
    assert registration.log_dirs == {directory.id for directory in disks(lab).directories}
    assert in_metadata(view) == dict.fromkeys(range(PARTITIONS), MIGRATING)
    wait_for("the broker with its flag", lambda: live.look(inventory).brokers[BROKER] == NodeAnswer(True, {}))

    true = on_disk(lab)
    topic_id = view.partitions.topic_id[view.partitions.topic.index("moved")]
    wanted = {str(true[partition]): [(topic_id, partition)] for partition in (2, 5)}
    active = ActiveController(inventory)
    with pytest.raises(StaleBrokerEpoch):
        active.assign(BROKER, registration.epoch + 1, wanted)
    answer = active.assign(BROKER, registration.epoch, wanted)
    assert set(answer.values()) == {0}
    after = in_metadata(reader.view(view.offset + 1))
    sent = {partition for replicas in wanted.values() for _, partition in replicas}
    assert after == {number: true[number] if number in sent else MIGRATING for number in range(PARTITIONS)}
