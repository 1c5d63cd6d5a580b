"""What is said of a broken directory in each mode: what is wrong with it, and what becomes of its broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.model.broker_modes import Mode
from migrate.model.disk_trouble import Sick, Wrong, effect_of, sick_directories
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, Directory, LogDirAnswer, MetaBroken, MetaMissing, Running, Stopped
from migrate.model.world import World
from tests.steps.looks import registration
from tests.testing import worlds
from tests.testing.clusters import uuid
from tests.testing.sick_disks import (
    MODES,
    PATH,
    emptied,
    formatted,
    gone,
    replaced,
    torn,
    with_process,
)

Bend = Callable[[Directory], Directory]


def told(world: World, bend: Bend, disk: int = 1) -> list[Sick]:
    """Of one of broker 1's directories, bent."""
    return list(sick_directories(worlds.with_directory(world, 1, disk, bend)))


@pytest.mark.parametrize("stage", MODES)
def test_a_healthy_cluster_has_no_trouble(stage: Stage) -> None:
    """At any stage, also before directories have ids."""
    assert list(sick_directories(worlds.world_at(stage))) == []


@pytest.mark.parametrize(("bend", "wrong"), [(gone, Wrong.BROKEN), (torn, Wrong.BAD_IDENTITY)])
@pytest.mark.parametrize(("stage", "mode"), MODES.items())
def test_a_broken_directory_is_told_in_every_mode(stage: Stage, mode: Mode, bend: Bend, wrong: Wrong) -> None:
    """With its broker, its path, its mode."""
    (one,) = told(worlds.world_at(stage), bend)
    assert (one.broker, one.directory.path, one.mode, one.wrong) == (1, PATH, mode, wrong)
    assert one.words == (f"{mode.words}, finalized" if stage is Stage.CLEANUP else mode.words)


def test_one_disk_is_one_broker_in_migration_mode() -> None:
    """It halts; elsewhere it goes on."""
    effects = {}
    for stage in MODES:
        (one,) = told(with_process(worlds.world_at(stage), 1, Stopped(1)), gone)
        effects[stage] = effect_of(one)
    assert "one disk is one broker" in effects[Stage.HYBRID]
    assert all("continues without it" in effect for stage, effect in effects.items() if stage is not Stage.HYBRID)
    assert all("directories rescue" in effects[stage] for stage in (Stage.SOAK, Stage.CLEANUP))


def test_a_broker_in_migration_mode_that_runs_was_started_on_the_dead_disk() -> None:
    """It halts for what dies under it, and not for what was dead before."""
    world = worlds.world_at(Stage.HYBRID)
    (running,) = told(world, gone)
    assert isinstance(running.state, Running)
    assert "it was dead when the broker started" in effect_of(running)
    (unseen,) = told(replace(world, services=Unknown("no")), gone)
    assert "one disk is one broker" in effect_of(unseen)


@pytest.mark.parametrize("stage", [Stage.HYBRID, Stage.SOAK, Stage.CLEANUP])
def test_the_directory_of_the_metadata_log_takes_its_broker_along(stage: Stage) -> None:
    """The first of log.dirs, or metadata.log.dir; in ZooKeeper mode there is no such thing."""
    (one,) = told(worlds.world_at(stage), gone, disk=0)
    assert "the broker halts with it, and does not start without it" in effect_of(one)
    named = worlds.with_values(worlds.world_at(stage), 1, **{"metadata.log.dir": "/data/b1/./d1"})
    (other,) = told(named, gone, disk=0)
    assert "copy of the metadata log" not in effect_of(other)
    (named_one,) = told(named, gone, disk=1)
    assert "copy of the metadata log" in effect_of(named_one)


def test_in_zookeeper_mode_no_directory_holds_the_metadata() -> None:
    """All are equal."""
    (one,) = told(worlds.world_at(Stage.ASSESS), gone, disk=0)
    assert "continues without it" in effect_of(one)


def test_a_metadata_directory_that_lies_apart_is_looked_at_too() -> None:
    """It is in no registration, and halts the broker all the same."""
    world = worlds.with_values(worlds.world_at(Stage.SOAK), 1, **{"metadata.log.dir": "/meta"})
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(1)]
    assert not isinstance(disks, Unknown)
    apart = replaced(replace(disks.directories[0], path="/meta"))
    whole = replace(world, disks={**world.disks, NodeId(1): replace(disks, metadata_directory=apart)})
    assert list(sick_directories(whole)) == []
    dead = replace(disks, metadata_directory=gone(apart))
    (one,) = sick_directories(replace(world, disks={**world.disks, NodeId(1): dead}))
    assert one.directory.path == "/meta"
    assert "the broker halts with it" in effect_of(one)
    new = replace(disks, metadata_directory=emptied(apart))
    before = worlds.world_at(Stage.ASSESS)
    assert list(sick_directories(replace(before, disks={**world.disks, NodeId(1): new}))) == []  # not used yet


@pytest.mark.parametrize("stage", MODES)
def test_a_directory_without_identity_is_told_in_every_mode(stage: Stage) -> None:
    """It reads and writes well; perhaps it is only not mounted, and the running broker notices late."""
    world = worlds.world_at(stage)
    (one,) = told(world, emptied)
    assert one.wrong is Wrong.NO_IDENTITY
    assert "emptied, is a new disk, or is not mounted" in one.said
    assert "when its log cleaner looks" in effect_of(one)
    (down,) = told(with_process(world, 1, Stopped(0)), emptied)
    assert "log cleaner" not in effect_of(down)
    kraft = one.mode is Mode.KRAFT
    assert ("No `meta.properties` found" in effect_of(down)) is kraft
    assert ("takes it for a new disk" in effect_of(down)) is not kraft


def test_another_disk_in_its_place_is_told_by_its_id() -> None:
    """It reads and writes well, and every replica in the metadata is elsewhere."""
    (one,) = told(worlds.world_at(Stage.SOAK), replaced)
    assert one.wrong is Wrong.OTHER_DISK
    assert uuid(99) in one.said
    assert "registers the disk when it starts" in effect_of(one)


def test_a_disk_that_is_whole_again_is_offline_until_its_broker_starts() -> None:
    """Kafka takes a directory back only at a start."""
    world = worlds.world_at(Stage.SOAK)
    live = worlds.live(world)
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    bent = worlds.with_live(world, log_dirs={**live.log_dirs, NodeId(1): said})
    (one,) = sick_directories(bent)
    assert one.wrong is Wrong.OFFLINE
    assert "offline to the broker" in one.said


def test_log_dir_failure_timeout_is_read_and_explained() -> None:
    """By its default, and by the file; it means nothing to a ZooKeeper-mode broker."""
    world = worlds.world_at(Stage.SOAK)
    assert "log.dir.failure.timeout.ms is 30000, the default" in effect_of(told(world, gone)[0])
    named = worlds.with_values(world, 1, **{"log.dir.failure.timeout.ms": "5000"})
    said = effect_of(told(named, gone)[0])
    assert "log.dir.failure.timeout.ms=5000: a failure that no controller acknowledges" in said
    assert "timeout" not in effect_of(told(worlds.world_at(Stage.HYBRID), gone)[0])


def test_a_version_1_file_is_told_while_brokers_keep_their_metadata_in_zookeeper() -> None:
    """KAFKA-20762: a plain broker does not start on it, one in migration mode runs on it until then."""
    effects = {stage: [effect_of(one) for one in told(worlds.world_at(stage), formatted)] for stage in MODES}
    assert "does not start on it" in effects[Stage.ASSESS][0]
    assert "runs on it" in effects[Stage.HYBRID][0]
    assert "B-RBK-03" in effects[Stage.HYBRID][0]
    assert effects[Stage.SOAK] == effects[Stage.CLEANUP] == []


@pytest.mark.parametrize("part", ["disks", "configs"])
def test_what_is_not_seen_is_not_told(part: str) -> None:
    """Who cannot be seen has a line of its own elsewhere; a trouble is something known."""
    world = worlds.world_at(Stage.SOAK)
    bent = replace(world, disks=Unknown("no")) if part == "disks" else replace(world, configs=Unknown("no"))
    assert list(sick_directories(bent)) == []


def test_the_worse_of_two_troubles_is_the_one_that_is_told() -> None:
    """A dead disk without a file is dead; a torn file that the broker calls offline is torn."""
    world = worlds.world_at(Stage.SOAK)
    (dead,) = told(world, lambda entry: replace(gone(entry), meta=MetaBroken("torn")))
    assert dead.wrong is Wrong.BROKEN
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    offline = worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(1): said})
    (one,) = told(offline, torn)
    assert one.wrong is Wrong.BAD_IDENTITY
    assert one.said.endswith("the broker calls it offline")
    (empty,) = told(offline, lambda entry: replace(entry, meta=MetaMissing()))
    assert empty.wrong is Wrong.NO_IDENTITY


# -- offline, and more than that; created again too early --------------------
OFFLINE = (LogDirAnswer(PATH, 56, 0, ()),)


def called_offline(world: World) -> World:
    """Broker 1 has given its second directory up."""
    return worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(1): OFFLINE})


def disks_of(world: World) -> BrokerDisks:
    """Broker 1's."""
    assert not isinstance(world.disks, Unknown)
    found = world.disks[NodeId(1)]
    assert isinstance(found, BrokerDisks)
    return found


def registered_without(world: World) -> World:
    """Broker 1 was started without its second directory."""
    first, _, third = disks_of(world).directories
    return registration(1, log_dirs=frozenset(entry.id for entry in (first, third)))(world)


def copied(world: World) -> World:
    """The replicas of broker 1's second directory lie in its third as well."""
    rows = disks_of(world).directories[1].replicas
    return worlds.with_directory(world, 1, 2, lambda entry: replace(entry, replicas=rows))


@pytest.mark.parametrize("stage", [Stage.HYBRID, Stage.SOAK, Stage.CLEANUP])
def test_another_disk_is_not_told_as_a_whole_one_that_is_offline(stage: Stage) -> None:
    """A restart would take it for good, and the old disk may lie on the desk."""
    (one,) = told(called_offline(worlds.world_at(stage)), replaced)
    assert one.wrong is Wrong.OTHER_DISK
    assert one.said.endswith("the broker calls it offline")


@pytest.mark.parametrize("stage", [Stage.HYBRID, Stage.SOAK, Stage.CLEANUP])
def test_a_disk_that_is_back_under_its_broker_only_needs_a_restart_unless_its_replicas_were_made_anew(
    stage: Stage,
) -> None:
    """With two copies the restart would be its last."""
    world = registered_without(called_offline(worlds.world_at(stage)))
    (one,) = sick_directories(world)
    assert one.wrong is Wrong.OFFLINE
    (two,) = sick_directories(copied(world))
    assert (two.wrong, two.twice) == (Wrong.TWICE, ("/data/b1/d2",))
    assert "Duplicate log directories" in effect_of(two)


@pytest.mark.parametrize("stage", [Stage.SOAK, Stage.CLEANUP])
def test_replicas_that_a_kraft_broker_made_anew_are_told_while_the_disk_is_away(stage: Stage) -> None:
    """The metadata still places them on the dead disk, and nobody reports where they lie."""
    (one,) = told(registered_without(copied(worlds.world_at(stage))), gone)
    assert (one.wrong, one.twice) == (Wrong.BROKEN, ("/data/b1/d2",))
    assert "made them again there" in effect_of(one)
    (held,) = told(registered_without(worlds.world_at(stage)), gone)
    assert held.twice == ()
    (unseen,) = told(replace(copied(worlds.world_at(stage)), kraft=Unknown("no")), gone)
    assert unseen.twice == ()


def test_a_kraft_broker_that_is_down_is_not_to_be_started_without_its_disk_too_early() -> None:
    """After a crash; one that runs has been started."""
    world = worlds.world_at(Stage.SOAK)
    (down,) = told(with_process(world, 1, Stopped(0)), gone)
    assert "broker.session.timeout.ms, 9 s by default" in effect_of(down)
    (runs,) = told(world, gone)
    assert "broker.session.timeout.ms" not in effect_of(runs)


@pytest.mark.parametrize("stage", [Stage.SOAK, Stage.CLEANUP])
def test_another_disk_is_told_also_where_the_broker_has_unregistered_the_old_one(stage: Stage) -> None:
    """A KRaft broker does that when it gives a directory up; the metadata still names the old one for its replicas."""
    world = registered_without(called_offline(worlds.world_at(stage)))
    (one,) = told(world, replaced)
    assert one.wrong is Wrong.OTHER_DISK
