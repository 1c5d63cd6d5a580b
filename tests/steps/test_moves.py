"""Moves between directories hold both rolls: refused, or waited for where the playbook says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.outcome import NotYet, Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.steps import moves
from migrate.steps.assign import AssignDirectories
from migrate.steps.base import BaseStep
from migrate.steps.look import ProveHybrid
from migrate.steps.roll_broker import RollToKraft, RollToMigrationMode
from tests.steps.looks import whole
from tests.testing.clusters import topic_id
from tests.testing.worlds import with_directory, with_folder

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
    assert isinstance(moves.ended(moving(Stage.COPY, wait=True)), NotYet)
    refused = ProveHybrid().verify(moving(Stage.COPY, wait=False))
    assert isinstance(refused, Refused)
    assert "t0-0 on broker 0" in refused.reason
    assert isinstance(ProveHybrid().verify(moving(Stage.COPY, wait=True)), NotYet)


def test_disks_that_cannot_be_seen_are_no_proof_that_nothing_moves() -> None:
    """Unknown is neither ready nor refused."""
    world = replace(whole(Stage.COPY), disks=Unknown("no rights"))
    assert moves.ended(world) == Unknown("no rights")
    assert moves.none_half_done(world, 2) == Unknown("no rights")


def test_a_broker_stopped_in_the_middle_of_a_move_does_not_start_in_kraft_mode() -> None:
    """It could make the unfinished copy the current one: both ways out are named, with the folder."""
    found = moves.none_half_done(moving(Stage.COPY, wait=True, node=2), 2)
    assert isinstance(found, Refused)
    assert "/data/b2/d2/t0-0" in found.reason
    assert "start it with the file of before" in found.reason
    assert moves.none_half_done(moving(Stage.COPY, wait=True, node=1), 2) == Ready(), "another broker's is another's"


def test_a_broker_stopped_in_the_middle_of_a_move_does_start_in_migration_mode() -> None:
    """The move goes on there; down it would stand still for ever."""
    step = RollToMigrationMode(0)
    assert step.resume(moving(Stage.CONTROLLERS, wait=False)) == Ready()
