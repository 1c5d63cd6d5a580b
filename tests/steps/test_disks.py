"""A roll whose proof fails names the disks that are not as they should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import Stopped
from migrate.model.world import World
from migrate.steps import disks
from migrate.steps.assign import AssignDirectories
from migrate.steps.base import BaseStep
from migrate.steps.disks import LOOK, with_sick_disks
from migrate.steps.finalize import RollForward
from migrate.steps.forward import RollToKraft, RollToMigrationMode
from migrate.steps.look import ProveHybrid, Soak
from tests.steps.looks import registration, row_in, service, unhealthy, whole
from tests.testing import worlds
from tests.testing.clusters import directory_id, topic_id
from tests.testing.sick_disks import emptied, gone, replaced
from tests.testing.worlds import with_directory, with_folder

AFTER_FIRST, AFTER_SECOND = whole(Stage.MIGRATION_MODE), whole(Stage.KRAFT_MODE)
ROLLS = [(RollToMigrationMode(1), AFTER_FIRST), (RollToKraft(1), AFTER_SECOND)]


def sick(world: World, broker: int = 1) -> World:
    """One disk of a broker is gone."""
    return worlds.with_directory(world, broker, 1, gone)


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=["first", "second"])
def test_a_broker_that_registered_without_a_dead_disk_is_refused_with_the_disk(
    step: RollToMigrationMode | RollToKraft, world: World
) -> None:
    """It was started on it: the two lists of ids alone would say nothing of the cause."""
    rest = frozenset({directory_id(1, 0), directory_id(1, 2)})
    found = step.verify(registration(1, log_dirs=rest)(sick(world)))
    assert isinstance(found, Refused)
    assert found.reason.endswith(f"; broker 1 /data/b1/d1: is no folder: {LOOK}")


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=["first", "second"])
def test_a_broker_that_ended_is_refused_with_the_disk(step: RollToMigrationMode | RollToKraft, world: World) -> None:
    """An empty directory stops a start in KRaft mode."""
    found = step.verify(service(1, Stopped(1))(worlds.with_directory(world, 1, 1, emptied)))
    assert isinstance(found, Refused)
    assert "broker 1 does not run (its process on b1)" in found.reason
    assert "/data/b1/d1: it has no meta.properties" in found.reason


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=["first", "second"])
def test_a_wait_says_the_disks_of_all_brokers_as_the_next_step(
    step: RollToMigrationMode | RollToKraft, world: World
) -> None:
    """Full ISRs do not come by themselves where another broker's disk died."""
    found = step.verify(unhealthy(sick(world, 2)))
    assert isinstance(found, NotYet)
    assert found.next_step == f"broker 2 /data/b2/d1: is no folder: {LOOK}"
    whole_disks = step.verify(unhealthy(world))
    assert isinstance(whole_disks, NotYet)
    assert LOOK not in whole_disks.next_step


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=["first", "second"])
def test_healthy_disks_change_no_answer(step: RollToMigrationMode | RollToKraft, world: World) -> None:
    """Of a broker that is proven, and of one that is not."""
    assert isinstance(step.verify(world), Verified)
    found = step.verify(service(1, Stopped(1))(world))
    assert isinstance(found, Refused)
    assert LOOK not in found.reason


@pytest.mark.parametrize("answer", [Ready(), Unknown("no"), Refused("why")])
def test_another_brokers_disk_is_no_reason_for_a_refusal(answer: Readiness) -> None:
    """It is told where its own broker is asked for."""
    assert with_sick_disks(sick(AFTER_SECOND, 2), 1, answer) == answer


def test_every_disk_is_named() -> None:
    """In the inventory's order."""
    world = worlds.with_directory(sick(AFTER_SECOND), 1, 2, emptied)
    assert NodeId(1) in worlds.kraft(world).brokers
    found = with_sick_disks(world, 1, Refused("why"))
    assert isinstance(found, Refused)
    assert found.reason.startswith("why; broker 1 /data/b1/d1: is no folder; broker 1 /data/b1/d2: it has no meta")


@pytest.mark.parametrize(
    ("step", "stage"), [(ProveHybrid(), Stage.HYBRID), (Soak(0.0), Stage.SOAK)], ids=["hybrid", "soak"]
)
def test_a_proof_of_the_whole_cluster_names_the_disks_of_all_brokers(step: ProveHybrid | Soak, stage: Stage) -> None:
    """A plan to finalize that was made before a disk died begins with one: replicas alone would not tell the cause."""
    world = replace(whole(stage), ledger=row_in(ReplicaState.NOT_ON_DISK)(whole(stage)).ledger)
    found = step.verify(worlds.with_directory(sick(world, 0), 2, 2, emptied))
    assert isinstance(found, Refused)
    assert "NOT ON DISK" in found.reason
    assert "; broker 0 /data/b0/d1: is no folder; broker 2 /data/b2/d2: it has no meta.properties" in found.reason
    assert found.reason.endswith(LOOK)
    plain = step.verify(world)
    assert isinstance(plain, NotYet), "with every disk healthy it may be of a topic that is being created"
    assert LOOK not in plain.next_step


BEFORE = [(RollToMigrationMode(1), whole(Stage.CONTROLLERS)), (RollToKraft(1), whole(Stage.HYBRID))]


@pytest.mark.parametrize(("step", "world"), BEFORE, ids=["first", "second"])
@pytest.mark.parametrize("broker", [1, 2])
def test_a_gate_that_refuses_names_the_disk_of_any_broker_too(
    step: RollToMigrationMode | RollToKraft, world: World, broker: int
) -> None:
    """Before the stop, and before a start that a killed run owes."""
    for found in (step.check(sick(world, broker)), step.resume(sick(world, broker))):
        assert isinstance(found, Refused)
        assert f"broker {broker} /data/b{broker}/d1: is no folder" in found.reason
        assert found.reason.endswith(LOOK)


def test_a_broker_that_a_killed_run_left_stopped_is_not_started_on_another_disk() -> None:
    """The two lists of ids alone would not say where it lies."""
    world = service(1, Stopped(0))(whole(Stage.HYBRID))
    found = RollToKraft(1).resume(worlds.with_directory(world, 1, 1, replaced))
    assert isinstance(found, Refused)
    assert "broker 1 /data/b1/d1: its directory.id" in found.reason


STEPS = [
    (RollToMigrationMode(2), Stage.CONTROLLERS),
    (AssignDirectories(2), Stage.COPY),
    (RollToKraft(2), Stage.COPY),
]


def moving(stage: Stage, *, wait: bool, node: int = 0) -> World:
    """t0-0 is on its way to a third directory of that broker."""
    world = with_folder(whole(stage), node, 2, ("t0", 0, topic_id(0), "future"))
    assert not isinstance(world.playbook, Unknown)
    return replace(world, playbook=replace(world.playbook, wait_for_moves=wait))


@pytest.mark.parametrize(("step", "stage"), STEPS)
def test_a_move_of_any_broker_refuses_a_roll(step: BaseStep, stage: Stage) -> None:
    """With the replica, both directories and how far it is; the code is the blocker's."""
    assert step.check(whole(stage)) == Ready()
    found = step.check(moving(stage, wait=False))
    assert isinstance(found, Refused)
    assert found.codes == ("B-DIR-12",)
    assert "t0-0 on broker 0 from /data/b0/d" in found.reason
    assert "to /data/b0/d2 (10 of " in found.reason


@pytest.mark.parametrize(("step", "stage"), STEPS)
def test_where_the_playbook_waits_it_is_waited_for_with_progress(step: BaseStep, stage: Stage) -> None:
    """What moves, who owns it, and bytes that grow: a wait that is seen to advance."""
    found = step.check(moving(stage, wait=True))
    assert isinstance(found, NotYet)
    assert "the end of 1 move between directories: t0-0 on broker 0" in found.what
    assert "move threads" in found.owner
    further = with_directory(
        moving(stage, wait=True),
        0,
        2,
        lambda entry: replace(entry, replicas=replace(entry.replicas, size=[*entry.replicas.size[:-1], 11])),
    )
    later = step.check(further)
    assert isinstance(later, NotYet)
    assert (found.progress, later.progress) == ("1 10", "1 11")


def test_hybrid_is_not_proven_while_something_moves() -> None:
    """Refused or waited for as before a roll."""
    assert isinstance(disks.ended(moving(Stage.COPY, wait=True)), NotYet)
    refused = ProveHybrid().verify(moving(Stage.COPY, wait=False))
    assert isinstance(refused, Refused)
    assert "t0-0 on broker 0" in refused.reason
    assert isinstance(ProveHybrid().verify(moving(Stage.COPY, wait=True)), NotYet)


def test_disks_that_cannot_be_seen_are_no_proof_that_nothing_moves() -> None:
    """Unknown is neither ready nor refused."""
    world = replace(whole(Stage.COPY), disks=Unknown("no rights"))
    assert disks.ended(world) == Unknown("no rights")
    assert disks.none_half_done(world, 2) == Unknown("no rights")


def test_a_broker_stopped_in_the_middle_of_a_move_does_not_start_in_kraft_mode() -> None:
    """It could make the unfinished copy the current one: both ways out are named, with the folder."""
    found = disks.none_half_done(moving(Stage.COPY, wait=True, node=2), 2)
    assert isinstance(found, Refused)
    assert "/data/b2/d2/t0-0" in found.reason
    assert "start it with the previous file" in found.reason
    assert disks.none_half_done(moving(Stage.COPY, wait=True, node=1), 2) == Ready(), "another broker's is another's"


def test_past_the_point_of_no_return_a_broker_is_not_stopped_in_the_middle_of_a_move() -> None:
    """Its own moves alone hold it; of one that is down the copy must go, for it has no way back."""
    step = RollForward(2)
    for wait in (True, False):
        world = worlds.with_kraft(
            moving(Stage.FINALIZE, wait=wait, node=2), migration_state=ZkMigrationState.POST_MIGRATION
        )
        found = step.check(world)
        assert isinstance(found, NotYet if wait else Refused)
        assert "t0-0 on broker 2" in str(found)
        for answer in (step.check(service(2, Stopped())(world)), step.resume(service(2, Stopped())(world))):
            assert isinstance(answer, Refused)
            assert "delete the unfinished copy (/data/b2/d2/t0-0) while it is down; then run" in answer.reason
    other = worlds.with_kraft(
        moving(Stage.FINALIZE, wait=False, node=1), migration_state=ZkMigrationState.POST_MIGRATION
    )
    assert step.check(other) == Ready()


def test_a_broker_stopped_in_the_middle_of_a_move_does_start_in_migration_mode() -> None:
    """The move goes on there; down it would stand still for ever."""
    step = RollToMigrationMode(0)
    assert step.resume(moving(Stage.CONTROLLERS, wait=False)) == Ready()
