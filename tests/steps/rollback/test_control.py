"""Partition states' versions: what is raised, with whose election, and what is never taken for high enough."""

from __future__ import annotations

from dataclasses import replace

from migrate.model.outcome import AlreadyDone, Ready, Unknown, Verified
from migrate.model.rollback_readiness import StateBehind
from migrate.model.step import NO_ZNODE, NotBegun, Predicted
from migrate.model.views import ControllerZnode, MigrationZnode, NoZnode
from migrate.model.world import World
from migrate.steps.rollback.control import RAISED, RaiseStateVersions, named
from tests.steps.looks import Remembered, answer
from tests.steps.rollback.test_gates import hybrid
from tests.steps.rollback.test_steps import stopped_in_hybrid
from tests.testing.simulated_back import MADE_IN_DUAL_WRITE
from tests.testing.worlds import with_zk

STEP = RaiseStateVersions()
BROKERS_OWN = ControllerZnode(1, -1, True, 7)


def given_back() -> World:
    """A broker has /controller, with an epoch that is high enough; the versions are still low."""
    return with_zk(stopped_in_hybrid(), controller=BROKERS_OWN, controller_epoch=50, migration=NoZnode())


def test_what_is_behind_is_raised_under_the_stopped_quorum_before_anything_is_given_back() -> None:
    """/controller is the next step's to delete."""
    world, effects = stopped_in_hybrid(), Remembered()
    assert STEP.check(world) == Ready()
    assert STEP.progress(world) == NotBegun()
    STEP.do(world, effects)
    assert effects.done == [f"raise {MADE_IN_DUAL_WRITE} 6 -> 9 with None while [3000, 3001, 3002] are down"]
    assert answer(STEP.verify(world)).startswith("refused: still behind")


def test_a_broker_that_leads_already_goes_with_them() -> None:
    """It has read the states as they were."""
    effects = Remembered()
    STEP.do(given_back(), effects)
    assert effects.done == [f"raise {MADE_IN_DUAL_WRITE} 6 -> 9 with 7 while [3000, 3001, 3002] are down"]


def test_where_the_epoch_is_to_be_raised_first_the_hand_back_calls_the_election() -> None:
    """KAFKA-20488: a new owner with a low epoch would be refused by its own data."""
    world, effects = with_zk(given_back(), state_epoch=90), Remembered()
    STEP.do(world, effects)
    assert " with None " in effects.done[0]


def test_nothing_behind_is_done_already() -> None:
    """As in most migrations."""
    world = replace(stopped_in_hybrid(), states_behind=())
    assert STEP.progress(world) == AlreadyDone(RAISED)
    assert STEP.verify(world) == Verified((RAISED,))
    assert STEP.actions(world, Predicted()) == ()


def test_what_is_not_known_is_never_taken_for_high_enough() -> None:
    """But where KRaft never led, no broker has heard of an epoch of its."""
    unread = replace(stopped_in_hybrid(), states_behind=Unknown("denied"))
    assert STEP.progress(unread) == Unknown("denied")
    assert answer(STEP.check(unread)).startswith("unknown: whether partition states in ZooKeeper are behind")
    assert isinstance(STEP.verify(unread), Unknown)
    for migration in (MigrationZnode(500, 1, 3000, 2, 7), Unknown("malformed")):
        led = with_zk(replace(given_back(), states_behind=Unknown("denied")), migration=migration)
        assert isinstance(STEP.progress(led), Unknown)
    never = with_zk(replace(given_back(), states_behind=Unknown("no log")), migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert isinstance(STEP.progress(never), AlreadyDone)


def test_nothing_is_raised_under_a_controller_or_without_an_owner() -> None:
    """A controller that lives writes states itself; between two owners nobody can be told to go."""
    assert answer(STEP.check(hybrid())).startswith("refused: controllers [3000, 3001, 3002] run")
    nobody = with_zk(stopped_in_hybrid(), controller=NoZnode())
    assert answer(STEP.check(nobody)).startswith("notyet: somebody to own /controller")


def test_the_plan_tells_each_or_that_it_will_be_told() -> None:
    """Which they are nobody knows while the controllers run."""
    (later,) = STEP.actions(hybrid(), Predicted())
    assert later.what.endswith("known once the controllers are stopped")
    state, election = STEP.actions(given_back(), Predicted())
    assert (state.where, state.what) == (MADE_IN_DUAL_WRITE, "the same bytes, version 6 to 9")
    assert "broker 1 read the states before" in election.what
    assert (state.znode, state.version, state.before, state.after) == (
        *(MADE_IN_DUAL_WRITE, 6, None),
        "the same bytes, version 9",
    )
    assert (election.version, election.before, election.after) == (7, "broker 1", NO_ZNODE)


def test_a_sentence_names_a_few() -> None:
    """And counts the rest."""
    some = tuple(StateBehind(f"/s{number}", 1, 2) for number in range(5))
    assert named(some).endswith("/s2 (version 1, partition epoch 2) and 2 more")
