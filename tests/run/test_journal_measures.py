"""The time without a controller and each broker's downtime, told by the journal's own times."""

from __future__ import annotations

from migrate.model.history import Event
from migrate.run.journal import Gap, away, controller_gap, measures


def effect(time: float, name: str, node: object, step: str, event: str = "effect") -> Event:
    """One effect."""
    return Event(0, time, event, {"step": step, "effect": name, "node": str(node), "detail": ""})


def ended(time: float, step: str, outcome: str = "Verified") -> Event:
    """A conclusion."""
    return Event(0, time, "conclude", {"step": step, "outcome": outcome})


STOP = "hybrid/stop-controllers"
BACK = (
    effect(10.0, "stop", 3001, STOP),
    effect(12.0, "stop", 3002, STOP),
    effect(14.0, "stop", 3000, STOP),
    effect(17.0, "delete-znode", "/controller", "copy/hand-back-control"),
    effect(17.5, "delete-znode", "/controller", "copy/hand-back-control", "effected"),
    effect(20.0, "stop", 0, "migration-mode/back-0"),
    ended(27.0, "migration-mode/back-0"),
)


def test_the_gap_is_from_the_majoritys_loss_to_the_deletion() -> None:
    """The second of three stops takes it."""
    assert controller_gap(BACK) == Gap(12.0, 17.5)
    assert Gap(12.0, 17.5).seconds == 5.5


def test_without_a_deletion_or_a_stop_there_is_no_gap() -> None:
    """Before the copy /controller stays a broker's."""
    assert controller_gap(BACK[:4]) is None
    assert controller_gap(BACK[3:]) is None


def test_killed_before_the_end_was_written_the_gap_lasts_to_the_next_sign_of_life() -> None:
    """A bound from above: nobody saw when it ended."""
    assert controller_gap((*BACK[:4], Event(0, 40.0, "session", {}), *BACK[5:])) == Gap(12.0, 40.0)


def test_a_single_controller_takes_the_majority_with_it() -> None:
    """It is the first, and the last."""
    assert controller_gap((BACK[2], BACK[4])) == Gap(14.0, 17.5)


def test_a_broker_is_away_from_its_stop_to_its_proof_in_every_roll() -> None:
    """Both rolls count; a refusal half way leaves it down."""
    first = (
        effect(1.0, "stop", 0, "kraft-mode/back-0"),
        ended(3.0, "kraft-mode/back-0", "Refused"),
        ended(5.0, "kraft-mode/back-0"),
    )
    assert away((*first, *BACK)) == {0: 4.0 + 7.0}


def test_controllers_are_not_counted_among_the_brokers() -> None:
    """They are stopped for good."""
    assert away((*BACK[:3], ended(15.0, STOP))) == {}


def test_the_notes_are_texts_by_key() -> None:
    """As the journal keeps them."""
    assert measures(BACK) == {"gap:controller": "5.5", "away:0": "7.0"}
    assert measures(()) == {}
