"""Policy drive sends proven rows only, and believes the metadata alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Ready, Refused, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import HalfDone, NotBegun, Predicted
from migrate.steps import facts
from migrate.steps.assign import AssignDirectories
from tests.steps.looks import Bend, Remembered, answer, no_leader, rows, unhealthy, whole, without
from tests.testing import worlds

STEP = AssignDirectories(2)
BEFORE = whole(Stage.COPY)
M, U, V = ReplicaState.MIGRATING, ReplicaState.UNASSIGNED, ReplicaState.VERIFIED
UNFIT = tuple(state for state in ReplicaState if state not in (M, U, V))


def test_a_broker_in_migration_mode_may_be_seeded() -> None:
    """Every row of it is proven by registration and disk."""
    effects = Remembered()
    assert STEP.check(BEFORE) == Ready()
    assert STEP.progress(BEFORE) == NotBegun()
    STEP.do(BEFORE, effects)
    assert effects.done == ["assign 2"]


@pytest.mark.parametrize("state", UNFIT)
def test_one_unproven_row_holds_all_of_them(state: ReplicaState) -> None:
    """A wrong directory is accepted by Kafka without an error."""
    world = replace(BEFORE, ledger=rows(M, state, V))
    assert isinstance(world.ledger, Ledger)
    named = tuple(replace(row, in_metadata=row.on_disk) for row in world.ledger.rows)
    found = STEP.check(replace(world, ledger=replace(world.ledger, rows=named)))
    if state is ReplicaState.NOT_ON_DISK:  # a topic that is being created: waited for by its name
        assert isinstance(found, NotYet)
        assert "orders-1" in found.what
    else:
        assert isinstance(found, Refused)
        assert f"orders-1 is {state.value}" in found.reason


def test_replicas_of_a_topic_made_in_hybrid_are_sent_like_the_others() -> None:
    """They are UNASSIGNED from their beginning."""
    world = replace(BEFORE, ledger=rows(M, U, V))
    assert (STEP.check(world), STEP.progress(world)) == (Ready(), HalfDone("1 of 3 are VERIFIED"))
    found = STEP.verify(world)
    assert isinstance(found, NotYet)
    assert found.progress == "1"


def test_a_topic_made_behind_the_last_request_does_not_hold_the_proof() -> None:
    """Nobody sends its directories, and a broker in migration mode does not report them: no wait would end."""
    proven = STEP.verify(replace(BEFORE, ledger=rows(V, U, V)))
    assert proven == Verified(
        ("2 replicas VERIFIED at metadata offset 500", "1 replica made since, which the broker reports in KRaft mode")
    )


def test_rows_of_other_brokers_do_not_hold_it() -> None:
    """They are gated where they are rolled."""
    assert STEP.check(replace(BEFORE, ledger=rows(ReplicaState.LOST, broker=1))) == Ready()


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.PRE_MIGRATION), "refused"),
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), "refused"),
        (no_leader, "notyet"),
        (unhealthy, "notyet"),
        (without("ledger"), "unknown"),
        (without("kraft"), "unknown"),
        (without("live"), "unknown"),
    ],
)
def test_each_gate_alone_holds_it(bend: Bend, says: str) -> None:
    """In PRE_MIGRATION nobody assigns: the controller would refuse."""
    assert answer(STEP.check(bend(BEFORE))).startswith(says)


@pytest.mark.parametrize(
    ("states", "told"),
    [((M, M), NotBegun()), ((M, V), HalfDone("1 of 2 are VERIFIED")), ((V, V), AlreadyDone), ((), AlreadyDone)],
)
def test_progress_is_counted_in_the_metadata(states: tuple[ReplicaState, ...], told: object) -> None:
    """What it says already is not sent again; a broker without replicas has nothing to send."""
    found = STEP.progress(replace(BEFORE, ledger=rows(*states)))
    assert isinstance(found, AlreadyDone) if told is AlreadyDone else found == told
    assert answer(STEP.progress(without("ledger")(BEFORE))) == "unknown: ledger hidden"


def test_rows_on_their_way_are_waited_for_and_any_other_is_refused() -> None:
    """The answers were accepted; the records must be committed."""
    on_the_way = STEP.verify(replace(BEFORE, ledger=rows(V, M, M)))
    assert isinstance(on_the_way, NotYet)
    assert on_the_way.progress == "2"
    for state in UNFIT:
        assert isinstance(STEP.verify(replace(BEFORE, ledger=rows(V, M, state))), Refused), state
    assert STEP.verify(replace(BEFORE, ledger=rows(V, V))) == Verified(("2 replicas VERIFIED at metadata offset 500",))
    assert answer(STEP.verify(without("ledger")(BEFORE))) == "unknown: ledger hidden"


def test_the_broker_stays_in_migration_mode() -> None:
    """The step promises it, and the plan shows one line."""
    promised = STEP.expects(BEFORE, Predicted())
    assert promised == {"registered:2": "migration"} == facts.observed(BEFORE, promised)
    assert [action.symbol for action in STEP.actions(BEFORE, Predicted())] == ["~"]
    assert (STEP.id, STEP.params()) == ("kraft-mode/assign-2", {"broker": "2"})
    assert "broker 2" in STEP.title
