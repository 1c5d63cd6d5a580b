"""What is said of a broken directory in each mode: its effect, and the right file for a new disk at that stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.model.disk_trouble import BrokerMode, DiskTrouble, disk_troubles
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Directory, LogDirAnswer, MetaBroken, MetaMissing, MetaProperties
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, uuid

MODES = {
    Stage.ASSESS: BrokerMode.ZOOKEEPER,
    Stage.HYBRID: BrokerMode.MIGRATION,
    Stage.SOAK: BrokerMode.KRAFT,
    Stage.CLEANUP: BrokerMode.FINAL,
}
PATH = "/data/b1/d1"


def gone(entry: Directory) -> Directory:
    """A file in its place."""
    return replace(entry, problem="is no folder", meta=MetaMissing())


def emptied(entry: Directory) -> Directory:
    """Healthy, and without identity."""
    return replace(entry, meta=MetaMissing())


def torn(entry: Directory) -> Directory:
    """A file that Kafka would take for another."""
    return replace(entry, meta=MetaBroken("empty: forgets"))


def replaced(entry: Directory) -> Directory:
    """Another disk with an id of its own."""
    assert isinstance(entry.meta, MetaProperties)
    return replace(entry, meta=replace(entry.meta, directory_id=uuid(99)))


def told(world: World, bend: Callable[[Directory], Directory]) -> list[DiskTrouble]:
    """Of broker 1's second directory, bent."""
    return list(disk_troubles(worlds.with_directory(world, 1, 1, bend)))


@pytest.mark.parametrize("stage", MODES)
def test_a_healthy_cluster_has_no_trouble(stage: Stage) -> None:
    """At any stage, also before directories have ids."""
    assert list(disk_troubles(worlds.world_at(stage))) == []


@pytest.mark.parametrize("bend", [gone, torn])
@pytest.mark.parametrize(("stage", "mode"), MODES.items())
def test_a_broken_directory_is_told_in_every_mode(
    stage: Stage, mode: BrokerMode, bend: Callable[..., Directory]
) -> None:
    """With its broker, its path, its mode."""
    (one,) = told(worlds.world_at(stage), bend)
    assert (one.broker, one.path, one.mode) == (1, PATH, mode)
    assert "old disk" in one.do[0]
    assert "with a new disk" in one.do[1]


def test_one_disk_is_one_broker_in_migration_mode() -> None:
    """It halts; elsewhere it goes on."""
    effects = {stage: told(worlds.world_at(stage), gone)[0].effect for stage in MODES}
    assert "halts" in effects[Stage.HYBRID]
    assert all("goes on without it" in effect for stage, effect in effects.items() if stage is not Stage.HYBRID)
    assert all("directories rescue" in effects[stage] for stage in (Stage.SOAK, Stage.CLEANUP))


def test_kafka_storage_format_is_named_behind_the_point_of_no_return_alone() -> None:
    """Before it, a version 1 file would bar ZooKeeper mode; an id may begin with a dash, so it stands behind =."""
    words = {stage: told(worlds.world_at(stage), gone)[0].do[1] for stage in MODES}
    assert f"kafka-storage format --cluster-id={CLUSTER_ID} --ignore-formatted -c " in words[Stage.CLEANUP]
    assert "KAFKA-20762" not in words[Stage.CLEANUP]
    for stage in (Stage.ASSESS, Stage.HYBRID):
        assert "leave the folder empty" in words[stage]
        assert "KAFKA-20762" in words[stage]
    assert rf"printf 'version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n' > {PATH}/meta.properties" in words[Stage.SOAK]


def test_an_empty_disk_is_no_trouble_in_zookeeper_mode_and_stops_a_kraft_start() -> None:
    """There the broker writes the file itself."""
    assert told(worlds.world_at(Stage.ASSESS), emptied) == []
    assert "emptied, or is a new disk" in told(worlds.world_at(Stage.SOAK), emptied)[0].what


def test_another_disk_in_its_place_is_told_by_its_id() -> None:
    """It reads and writes well, and every replica in the metadata is elsewhere."""
    (one,) = told(worlds.world_at(Stage.SOAK), replaced)
    assert uuid(99) in one.what
    assert one.do == ("restart broker 1",)


def test_a_disk_that_is_whole_again_needs_its_broker_restarted() -> None:
    """Kafka takes a directory back only at a start."""
    world = worlds.world_at(Stage.SOAK)
    live = worlds.live(world)
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    bent = worlds.with_live(world, log_dirs={**live.log_dirs, NodeId(1): said})
    (one,) = disk_troubles(bent)
    assert "offline to the broker" in one.what
    assert one.do == ("restart broker 1",)


def test_log_dir_failure_timeout_is_read_and_explained() -> None:
    """By its default, and by the file; it means nothing to a ZooKeeper-mode broker."""
    world = worlds.world_at(Stage.SOAK)
    assert "log.dir.failure.timeout.ms is 30000, the default" in told(world, gone)[0].effect
    named = worlds.with_values(world, 1, **{"log.dir.failure.timeout.ms": "5000"})
    assert "log.dir.failure.timeout.ms=5000: a failure that no controller acknowledges" in told(named, gone)[0].effect
    assert "timeout" not in told(worlds.world_at(Stage.HYBRID), gone)[0].effect


@pytest.mark.parametrize("part", ["disks", "configs"])
def test_what_is_not_seen_is_not_told(part: str) -> None:
    """Who cannot be seen has a line of its own elsewhere; a trouble is something known."""
    world = worlds.world_at(Stage.SOAK)
    bent = replace(world, disks=Unknown("no")) if part == "disks" else replace(world, configs=Unknown("no"))
    assert list(disk_troubles(bent)) == []


def test_a_version_1_file_bars_zookeeper_mode_alone() -> None:
    """KAFKA-20762: a disk that was formatted while the brokers were in KRaft mode."""

    def formatted(entry: Directory) -> Directory:
        assert isinstance(entry.meta, MetaProperties)
        return replace(entry, meta=replace(entry.meta, version=1))

    (one,) = told(worlds.world_at(Stage.ASSESS), formatted)
    assert "does not start on it" in one.what
    assert "version 0" in one.do[0]
    for stage in (Stage.HYBRID, Stage.SOAK, Stage.CLEANUP):
        assert told(worlds.world_at(stage), formatted) == []
