"""Where a cluster stands is said by the cluster: by the metadata's state, by registrations, by ZooKeeper alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.detect import Detected, detect
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerZnode, MigrationZnode, NodeAnswer, NullZnode
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.worlds import kraft, live, world_at


def stands(world: World) -> tuple[str, str | None]:
    """Stage and half-done stage, by name."""
    found = detect(world)
    assert isinstance(found, Detected), found
    return found.stage.label, None if found.half is None else found.half.label


def refused(world: World) -> str:
    """Why the stage is unknown."""
    found = detect(world)
    assert isinstance(found, Unknown), found
    return found.reason


@pytest.mark.parametrize(
    ("stage", "complete", "half"),
    [
        (Stage.DISCOVER, "assess", None),
        (Stage.PREPARE, "assess", None),
        (Stage.CONTROLLERS, "controllers", None),
        (Stage.MIGRATION_MODE, "controllers", "migration-mode"),
        (Stage.COPY, "copy", None),
        (Stage.HYBRID, "copy", None),
        (Stage.KRAFT_MODE, "kraft-mode", None),
        (Stage.SOAK, "kraft-mode", None),
        (Stage.FINALIZE, "finalize", None),
        (Stage.CLEANUP, "finalize", None),
    ],
)
def test_every_stage_of_a_healthy_migration_is_recognised(stage: Stage, complete: str, half: str | None) -> None:
    """Looking stages leave no trace in the cluster: the last one with effects is named."""
    assert stands(world_at(stage)) == (complete, half)


def test_one_broker_in_kraft_mode_is_a_half_done_second_roll() -> None:
    """The stage before it is complete."""
    brokers = kraft(world_at(Stage.COPY)).brokers
    first = {NodeId(0): replace(brokers[NodeId(0)], migrating=False)}
    assert stands(worlds.with_kraft(world_at(Stage.COPY), brokers={**brokers, **first})) == ("hybrid", "kraft-mode")


def test_a_broker_that_is_not_registered_at_all_is_not_in_kraft_mode() -> None:
    """Two of three are not all."""
    brokers = {node: entry for node, entry in kraft(world_at(Stage.SOAK)).brokers.items() if node != 2}
    assert stands(worlds.with_kraft(world_at(Stage.SOAK), brokers=brokers)) == ("hybrid", "kraft-mode")


def controller(answer: NodeAnswer | Unknown) -> World:
    """Finalized, but for the last controller, which answers that."""
    world = world_at(Stage.FINALIZE)
    return worlds.with_live(world, controllers={**live(world).controllers, NodeId(3002): answer})


@pytest.mark.parametrize(
    ("world", "names"),
    [
        (controller(NodeAnswer(migration_flag=True, finalized_features={})), "with the flag: 3002"),
        (controller(Unknown("connection refused")), "do not answer: 3002"),
        (replace(world_at(Stage.FINALIZE), live=Unknown("no network")), "do not answer: 3000-3002"),
        (worlds.with_live(world_at(Stage.FINALIZE), controllers={}), "do not answer: 3000-3002"),
    ],
    ids=["flag", "silent", "unseen", "not asked"],
)
def test_finalize_is_complete_only_where_every_controller_says_so(world: World, names: str) -> None:
    """A stopped controller may be the one between its stop and its start: silence is no proof."""
    found = detect(world)
    assert isinstance(found, Detected)
    assert (found.stage, found.half) == (Stage.SOAK, Stage.FINALIZE)
    assert names in found.how


def test_controllers_without_the_flag_are_named_as_what_cannot_migrate() -> None:
    """State NONE: the quorum was formatted or elected without it."""
    assert "B-MIG-02" in refused(worlds.with_kraft(world_at(Stage.CONTROLLERS), migration_state=ZkMigrationState.NONE))


LEFT = ControllerZnode(3000, 7, ephemeral=False, version=1)  # it stays after finalize, and /migration may be deleted


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (worlds.with_zk(world_at(Stage.ASSESS), migration=MigrationZnode(400, 1, 3000, 2, 7)), "no controller's"),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=NullZnode(0)), "no controller's"),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=MigrationZnode(-1, -1, -1, -1, 0)), "none answers"),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=MigrationZnode(0, 0, 3000, 2, 1)), "none answers"),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=Unknown("denied")), "denied"),
        (worlds.with_zk(world_at(Stage.ASSESS), controller=LEFT), "/controller is KRaft controller 3000's"),
        (worlds.with_zk(world_at(Stage.ASSESS), controller=Unknown("denied")), "denied"),
        (replace(world_at(Stage.ASSESS), zookeeper=Unknown("no session")), "no session"),
    ],
    ids=["copied", "null", "waiting", "offset 0", "unseen", "KRaft's controller", "unseen controller", "nothing seen"],
)
def test_what_cannot_be_told_apart_is_unknown(world: World, says: str) -> None:
    """A cluster that was copied and one that was not look alike where no controller answers."""
    assert says in refused(world)
