"""Which directories were in the log before a KRaft registration: noted before the stop, proven after the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.steps import churn, disks
from migrate.steps.forward import RollToKraft
from tests.steps.looks import Remembered, registration, rows, whole, without
from tests.testing.worlds import kraft

M, U, V, L = ReplicaState.MIGRATING, ReplicaState.UNASSIGNED, ReplicaState.VERIFIED, ReplicaState.LOST


def in_kraft(note: str, *, epoch: int = 700) -> World:
    """Broker 2 has registered in KRaft mode at that offset; the journal has that note."""
    world = registration(2, epoch=epoch)(whole(Stage.KRAFT_MODE))
    return replace(world, facts={disks.order_key(2): note} if note else {})


def test_what_the_log_holds_is_noted_before_the_stop() -> None:
    """By the ledger, and at its offset; VERIFIED alone counts."""
    effects = Remembered()
    world = replace(whole(Stage.COPY), ledger=rows(M, U, V, V, L))
    disks.note_order(2, world, effects, driven=False)
    offset = 500
    assert effects.done == [f"note assigned-before:2=2 of 5 at metadata offset {offset}"]


def test_a_topic_created_behind_the_assignments_does_not_refuse_a_driven_broker_that_was_stopped() -> None:
    """The gate let its broker stop; the note of that look must not end the run behind the start."""
    ledger = rows(V, V, U, in_metadata="D" * 22)
    world = replace(whole(Stage.COPY), ledger=ledger)
    world = replace(world, facts={churn.PASSING + "replicas of broker 2": "another"})
    step, effects = RollToKraft(2, "drive"), Remembered()
    assert churn.rows_ended(world, ledger.of(2)[2:], 2) == Ready()
    step.do(world, effects)
    said = effects.done[0].removeprefix("note assigned-before:2=")
    assert said == "2 of 2 at metadata offset 500"
    assert disks.order_kept(2, in_kraft(said), driven=True) == Ready()


@pytest.mark.parametrize("view", ["ledger", "kraft"])
def test_what_cannot_be_seen_is_not_noted(view: str) -> None:
    """A number would be a guess."""
    effects = Remembered()
    disks.note_order(2, without(view)(whole(Stage.COPY)), effects, driven=True)
    assert effects.done == []


def test_a_broker_in_kraft_mode_is_not_noted() -> None:
    """What it has reported itself by then proves no order."""
    effects = Remembered()
    disks.note_order(2, whole(Stage.KRAFT_MODE), effects, driven=True)
    assert effects.done == []


def test_the_order_is_told_with_what_came_after_the_registration() -> None:
    """68 of 177 seeded: it sends the other 109."""
    world = replace(in_kraft("68 of 177 at metadata offset 500"), ledger=rows(*[V] * 177))
    (line,) = disks.order_evidence(2, world)
    assert line == (
        "68 of 177 directories of broker 2 were in the log at offset 500, before its KRaft registration at offset 700; "
        "the other 109 came after it"
    )
    assert disks.order_kept(2, world, driven=False) == Ready()
    refused = disks.order_kept(2, world, driven=True)
    assert isinstance(refused, Refused)
    assert "109 of 177" in refused.reason


def test_a_registration_before_the_look_breaks_the_order() -> None:
    """Whatever the rows say now."""
    found = disks.order_kept(2, in_kraft("4 of 4 at metadata offset 700"), driven=True)
    assert isinstance(found, Refused)
    assert "at offset 700" in found.reason
    assert disks.order_kept(2, in_kraft("4 of 4 at metadata offset 699"), driven=True) == Ready()


@pytest.mark.parametrize("note", ["", "many", "4 of 4"])
def test_without_a_note_nothing_is_claimed(note: str) -> None:
    """No line of evidence; the ledger still has to prove every row."""
    world = in_kraft(note)
    assert disks.order_kept(2, world, driven=True) == Ready()
    assert disks.order_evidence(2, world) == ()


def test_metadata_that_cannot_be_read_proves_no_order() -> None:
    """Unknown."""
    world = replace(in_kraft("4 of 4 at metadata offset 5"), kraft=Unknown("nobody answers"))
    assert disks.order_kept(2, world, driven=True) == Unknown("nobody answers")


def test_the_roll_notes_it_first_and_proves_it_last() -> None:
    """Before it stops the broker; and it is a line of its evidence."""
    effects = Remembered()
    RollToKraft(2, "observe").do(whole(Stage.COPY), effects)
    assert effects.done[0].startswith("note assigned-before:2=0 of ")
    world = whole(Stage.KRAFT_MODE)
    late = replace(
        world, facts={disks.order_key(2): f"1 of 1 at metadata offset {kraft(world).brokers[NodeId(2)].epoch}"}
    )
    assert isinstance(RollToKraft(2, "drive").verify(late), Refused)
    early = replace(world, facts={disks.order_key(2): "1 of 1 at metadata offset 0"})
    proven = RollToKraft(2, "drive").verify(early)
    assert isinstance(proven, Verified)
    assert any("before its KRaft registration" in line for line in proven.evidence)
