"""Which store leads, whether a quorum was ever started, and what a finalize that came too early has left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks.phase import Phase, kraft_holds_controller, lost_at_the_end, no_quorum_yet, phase_of
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerZnode, NoZnode, NullZnode, Stopped
from migrate.model.world import World
from tests.steps.looks import Bend, registration, service, without
from tests.testing.worlds import CONTROLLERS, with_kraft, with_zk, world_at


@pytest.mark.parametrize(
    ("stage", "phase"),
    [
        (Stage.ASSESS, Phase.BEFORE_COPY),
        (Stage.CONTROLLERS, Phase.BEFORE_COPY),
        (Stage.COPY, Phase.DUAL_WRITE),
        (Stage.SOAK, Phase.DUAL_WRITE),
        (Stage.FINALIZE, Phase.FINALIZED),
    ],
)
def test_the_metadata_tells_the_phase(stage: Stage, phase: Phase) -> None:
    """By its migration state."""
    assert phase_of(world_at(stage)) is phase


def test_where_the_metadata_cannot_be_read_the_owner_of_the_controller_znode_tells_the_phase() -> None:
    """A KRaft controller's: the copy has begun.  Nothing seen is no KRaft controller's."""
    hidden = without("kraft")(world_at(Stage.COPY))
    assert phase_of(hidden) is Phase.DUAL_WRITE
    assert kraft_holds_controller(hidden)
    blind = without("zookeeper")(hidden)
    assert phase_of(blind) is Phase.BEFORE_COPY
    assert not kraft_holds_controller(blind)
    for owner in (ControllerZnode(0, -1, ephemeral=True, version=0), NoZnode(), Unknown("denied")):
        assert phase_of(with_zk(hidden, controller=owner)) is Phase.BEFORE_COPY


def all_stopped(world: World) -> World:
    """No controller process lives."""
    for node in CONTROLLERS:
        world = service(int(node), Stopped())(world)
    return world


STOPPED = all_stopped(without("kraft")(world_at(Stage.CONTROLLERS)))


@pytest.mark.parametrize(
    "world",
    [
        world_at(Stage.ASSESS),
        world_at(Stage.PREPARE),
        without("services")(world_at(Stage.ASSESS)),
        STOPPED,
        with_zk(STOPPED, migration=NullZnode(0)),
    ],
    ids=["assess", "prepare", "no znode, processes unknown", "a znode, all stopped", "a null znode, all stopped"],
)
def test_there_is_no_quorum_yet(world: World) -> None:
    """No /migration, or no process: nothing is there to be seen."""
    assert no_quorum_yet(world)


@pytest.mark.parametrize(
    "bend",
    [
        lambda world: with_zk(replace(world, kraft=world_at(Stage.CONTROLLERS).kraft), migration=NoZnode()),
        without("zookeeper"),
        lambda world: with_zk(
            world, migration=NoZnode(), controller=ControllerZnode(3000, 1, ephemeral=False, version=0)
        ),
        without("services"),
        service(3001, world_at(Stage.CONTROLLERS).services[NodeId(3001)]),  # type: ignore[index]
        service(3001, Unknown("no /proc")),
        lambda world: replace(world, services={NodeId(3000): Stopped()}),
        lambda world: replace(world, inventory=replace(world.inventory, controllers=())),
    ],
    ids=[
        "metadata",
        "blind",
        "owner",
        "processes unknown",
        "one runs",
        "one unknown",
        "one not looked at",
        "none named",
    ],
)
def test_a_quorum_that_may_be_there_is_not_passed_over(bend: Bend) -> None:
    """Something unseen is not nothing."""
    assert not no_quorum_yet(bend(STOPPED))


def test_brokers_lost_at_the_end_are_those_that_a_finalize_left_outside_of_kraft_mode() -> None:
    """Fenced, registered as migrating, and the metadata finalized: nothing less."""
    finalized = with_kraft(world_at(Stage.COPY), migration_state=ZkMigrationState.POST_MIGRATION)
    lost = registration(1, fenced=True)(finalized)
    assert lost_at_the_end(lost) == {1}
    assert lost_at_the_end(registration(1, migrating=False)(lost)) == frozenset()
    assert lost_at_the_end(finalized) == frozenset()
    assert lost_at_the_end(with_kraft(lost, migration_state=ZkMigrationState.MIGRATION)) == frozenset()
    assert lost_at_the_end(without("kraft")(lost)) == frozenset()
