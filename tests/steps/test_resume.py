"""A half-done step goes on behind gates of its own: what its own half took away is no fault, everything else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Ready, Refused, Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import HalfDone
from migrate.model.views import MigrationZnode, NoFile, NoZnode, NullZnode, PartitionHealth, Running, Stopped
from migrate.model.world import World
from migrate.steps import configuration, gates
from migrate.steps.base import BaseStep
from migrate.steps.controllers import StartControllers
from migrate.steps.finalize import FinalizeController
from migrate.steps.forward import RollToKraft, RollToMigrationMode
from tests.steps.looks import (
    Bend,
    answer,
    broken_disk,
    different,
    no_leader,
    registration,
    relook,
    row_in,
    service,
    silent,
    voter_behind,
    whole,
    without,
)
from tests.steps.test_finalize import file_of, finalized, started, with_file
from tests.testing import worlds
from tests.testing.clusters import topic_id
from tests.testing.worlds import kraft, live, zk

HELD = Refused | NotYet | Unknown


def down(world: World, broker: int) -> World:
    """A broker that its step has stopped: no session, no answer, fenced; the others see two brokers."""
    world = service(broker, Stopped(0))(world)
    world = worlds.with_zk(world, brokers={node: entry for node, entry in zk(world).brokers.items() if node != broker})
    others = tuple(node for node in range(3) if node != broker)
    answers = {
        node: Unknown("connection refused") if node == broker else replace(found, brokers=others)
        for node, found in live(world).metadata.items()
        if not isinstance(found, Unknown)
    }
    log_dirs = {**live(world).log_dirs, NodeId(broker): Unknown("connection refused")}
    world = worlds.with_live(world, metadata=answers, log_dirs=log_dirs)
    return registration(broker, fenced=True)(world) if broker in kraft(world).brokers else world


def state(found: ZkMigrationState) -> Bend:
    """The metadata in that state."""
    return lambda world: worlds.with_kraft(world, migration_state=found)


FIRST_ROLL, SECOND_ROLL = RollToMigrationMode(2, "yes"), RollToKraft(1)
HALF_FIRST, HALF_SECOND = down(whole(Stage.MIGRATION_MODE), 2), down(whole(Stage.COPY), 1)
Hold = tuple[Bend, str]

HOLDS_FIRST: tuple[Hold, ...] = (
    (lambda world: worlds.with_zk(world, topics_without_id=("orders",)), "orders"),
    (lambda world: worlds.with_zk(world, migration=MigrationZnode(400, 1, 3000, 2, 7)), "/migration"),
    (state(ZkMigrationState.NONE), "NONE"),
    (state(ZkMigrationState.POST_MIGRATION), "POST_MIGRATION"),
    (broken_disk(2), "/data/b2/d2"),
    (lambda world: down(world, 0), "broker 0"),
    (no_leader, "quorum"),
    (voter_behind, "3002"),
    (without("zookeeper"), ""),
    (without("kraft"), ""),
    (without("disks"), ""),
    (without("live"), ""),
)
HOLDS_SECOND: tuple[Hold, ...] = (
    (state(ZkMigrationState.PRE_MIGRATION), "PRE_MIGRATION"),
    (state(ZkMigrationState.POST_MIGRATION), "POST_MIGRATION"),
    (different, "retention.ms"),
    (without("diff"), ""),
    (broken_disk(1), "/data/b1/d2"),
    (row_in(ReplicaState.NOT_ON_DISK, 1), "NOT ON DISK"),
    (lambda world: relook(registration(1, log_dirs=frozenset())(world)), "registered"),
    (no_leader, "quorum"),
    (voter_behind, "3002"),
    (without("ledger"), ""),
    (without("kraft"), ""),
)


@pytest.mark.parametrize(
    ("step", "world"), [(FIRST_ROLL, HALF_FIRST), (SECOND_ROLL, HALF_SECOND)], ids=["first", "second"]
)
def test_a_stopped_broker_may_be_started_again_where_only_its_stop_is_seen(step: BaseStep, world: World) -> None:
    """What it asks for at its beginning would never come: its own half took it away."""
    assert isinstance(step.check(world), HELD)
    assert step.resume(world) == Ready()


@pytest.mark.parametrize(("bend", "says"), HOLDS_FIRST, ids=[str(number) for number in range(len(HOLDS_FIRST))])
def test_the_last_start_of_the_first_roll_is_held_by_everything_else(bend: Bend, says: str) -> None:
    """It starts the copy: all blockers again, a second broker that is down among them."""
    found = FIRST_ROLL.resume(bend(HALF_FIRST))
    assert isinstance(found, HELD)
    assert says in answer(found)


def test_neither_start_leans_on_the_checks_for_its_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every check silent: a dead disk, and a move that the stop interrupted."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    assert "/data/b2/d2" in answer(FIRST_ROLL.resume(broken_disk(2)(HALF_FIRST)))
    assert "/data/b1/d2" in answer(SECOND_ROLL.resume(broken_disk(1)(HALF_SECOND)))
    moving = worlds.with_folder(HALF_SECOND, 1, 2, ("t0", 0, topic_id(0), "future"))
    assert "in the middle of" in answer(SECOND_ROLL.resume(moving))


def test_the_copy_may_have_begun_meanwhile() -> None:
    """The start before the kill was the last one: the state is MIGRATION by now, and that is no fault."""
    begun = worlds.with_zk(state(ZkMigrationState.MIGRATION)(HALF_FIRST), migration=MigrationZnode(499, 1, 3000, 2, 9))
    assert FIRST_ROLL.resume(begun) == Ready()


@pytest.mark.parametrize(("bend", "says"), HOLDS_SECOND, ids=[str(number) for number in range(len(HOLDS_SECOND))])
def test_a_start_into_kraft_is_held_by_everything_else(bend: Bend, says: str) -> None:
    """Stores and directories must be what they were before its stop."""
    found = SECOND_ROLL.resume(bend(HALF_SECOND))
    assert isinstance(found, HELD)
    assert says in answer(found)


@pytest.mark.parametrize(("step", "half"), [(FIRST_ROLL, HALF_FIRST), (SECOND_ROLL, HALF_SECOND)])
def test_a_process_that_lives_half_way_is_stopped_only_beside_full_isrs(
    step: RollToMigrationMode | RollToKraft, half: World
) -> None:
    """Its own replicas may lag, and the others may not see it: that is what its restart is for."""
    raw = step.target(half, file_of(half, step.broker).raw)
    lives = service(step.broker, Running(7, 1.0, "0" * 64))(with_file(half, step.broker, raw))
    assert step.progress(lives) == HalfDone("file written, old process alive")
    assert step.resume(lives) == Ready()
    other = (step.broker + 1) % 3
    lags = PartitionHealth("orders", 3, step.broker, (step.broker,), (step.broker, other))
    assert isinstance(step.resume(lagging(lives, other, lags)), NotYet)
    own = PartitionHealth("orders", 3, other, (other,), (step.broker, other))
    assert step.resume(lagging(lives, other, own)) == Ready()


def lagging(world: World, broker: int, entry: PartitionHealth) -> World:
    """A partition is not whole, as that broker sees it."""
    found = live(world).metadata[NodeId(broker)]
    assert not isinstance(found, Unknown)
    return worlds.with_live(
        world, metadata={**live(world).metadata, NodeId(broker): replace(found, unhealthy=(entry,))}
    )


# -- controllers -----------------------------------------------------------------------------------------------------
START = StartControllers()
SOME_RUN = service(3002, Stopped())(whole(Stage.CONTROLLERS))


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_values(world, 3002, zookeeper__metadata__migration__enable=None), "lacks"),
        (lambda world: replace(world, configs={**world.configs, NodeId(3002): NoFile("/x")}), "cannot be read"),
        (lambda world: worlds.with_zk(world, migration=MigrationZnode(400, 1, 3000, 2, 7)), "remembers a copy"),
        (lambda world: worlds.with_zk(world, migration=MigrationZnode(1, 1, 3000, 2, 7)), "remembers a copy"),
        (lambda world: worlds.with_zk(world, migration=NullZnode(0)), "null data"),
        (without("zookeeper"), "zookeeper hidden"),
        (without("configs"), "cannot be read"),
    ],
)
def test_the_rest_of_the_controllers_start_with_the_flag_and_over_no_other_copy(bend: Bend, says: str) -> None:
    """However long ago the first ones were started."""
    for none in (NoZnode(), MigrationZnode(0, -1, 3000, 2, 7), MigrationZnode(-1, -1, 3000, 2, 7)):
        assert START.resume(worlds.with_zk(SOME_RUN, migration=none)) == Ready()
    found = START.resume(bend(SOME_RUN))
    assert isinstance(found, Refused | Unknown)
    assert says in answer(found)


# -- finalize --------------------------------------------------------------------------------------------------------
FIRST, SECOND = FinalizeController(1, 3), FinalizeController(2, 3)


def half(node: int) -> World:
    """The first controller is stopped, its file written; no controller has run without the flag."""
    world = started(whole(Stage.SOAK))
    world = with_file(world, node, configuration.finalized_controller(file_of(world, node).raw))
    answers = {**live(world).controllers, NodeId(node): Unknown("connection refused")}
    return service(node, Stopped(0))(worlds.with_live(world, controllers=answers))


NO_RETURN: tuple[Bend, ...] = (
    different,
    without("diff"),
    without("kraft"),
    without("zookeeper"),
    row_in(ReplicaState.MIGRATING),
    broken_disk(1),
    registration(1, migrating=True),
    lambda world: worlds.with_zk(world, migration=MigrationZnode(1, 1, 3000, 2, 7)),
    lambda world: worlds.with_values(world, 1, process__roles=None),
)


def test_before_the_first_start_without_the_flag_the_rollback_is_open_and_the_gates_hold() -> None:
    """A stopped controller and a written file are nothing irreversible yet."""
    assert FIRST.resume(half(3001)) == Ready()
    for bend in NO_RETURN:
        assert isinstance(FIRST.resume(bend(half(3001))), HELD)


def test_the_gates_of_a_half_done_step_do_not_lean_on_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every check silent its own gates hold."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    for bend in NO_RETURN:
        assert isinstance(FIRST.resume(bend(half(3001))), HELD)


def registered_without_flag(world: World) -> World:
    """A controller has run without the flag: its registration says so."""
    entries = kraft(world).controllers
    bent = replace(entries[NodeId(3001)], migration_ready=False)
    return worlds.with_kraft(world, controllers={**entries, NodeId(3001): bent})


def test_beyond_the_first_start_there_is_only_forward() -> None:
    """By a process, by a registration, or by the metadata: what is half done is finished, whatever else is."""
    crossed = (
        finalized(started(whole(Stage.SOAK)), 3001),
        registered_without_flag(half(3001)),
        state(ZkMigrationState.POST_MIGRATION)(half(3001)),
    )
    for world in crossed:
        assert FIRST.resume(different(world)) == Ready()
    assert SECOND.resume(different(half(3002))) == Ready()
