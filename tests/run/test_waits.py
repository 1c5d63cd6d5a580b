"""How long a wait pauses between two looks."""

from __future__ import annotations

import itertools

import pytest

from migrate.errors import NoProgress
from migrate.model.outcome import Awaited, NotYet, Ready, Refused, Unknown, Verified
from migrate.run.waits import LONGEST_PAUSE, POLL, Wait
from tests.testing.simulated import FakeClock


@pytest.mark.parametrize(
    ("look", "pace", "pause"),
    [(0.0, 0.0, POLL), (5.0, 0.0, POLL), (0.0, 3.0, 3.0), (1.5, 3.0, 1.5), (10.0, 3.0, POLL)],
)
def test_a_pace_is_from_the_beginning_of_a_look_to_that_of_the_next(look: float, pace: float, pause: float) -> None:
    """A soak of three seconds, whose look took one and a half, is looked at again when it is over."""
    clock = FakeClock()
    wait = Wait("soak/soak", clock, 600.0, lambda *_, **__: None)
    for number in range(3):
        began = clock.monotonic()
        clock.sleep(look)
        assert not wait.is_over(NotYet("the soak", "the calendar", "nothing", progress=str(number), pace=pace))
        assert clock.monotonic() - began == pytest.approx(look + pause)


@pytest.mark.parametrize("found", [Ready(), Refused("down"), Verified(())])
def test_what_is_decided_is_not_waited_for(found: Ready | Refused | Verified) -> None:
    """No time passes, and nothing is said."""
    clock, told = FakeClock(), list[str]()
    began = clock.monotonic()
    assert Wait("soak/soak", clock, 600.0, lambda name, **_: told.append(name)).is_over(found)
    assert (clock.monotonic(), told) == (began, [])


@pytest.mark.parametrize(("patience", "seconds"), [(600.0, 30.0), (5.0, 5.0)])
def test_what_cannot_be_seen_is_looked_at_each_second_and_is_an_answer_after_half_a_minute(
    patience: float, seconds: float
) -> None:
    """Or after the wait's patience, where that is shorter; it is said once."""
    clock, told = FakeClock(), list[str]()
    wait = Wait("kraft-mode/1", clock, patience, lambda name, **data: told.append(f"{name}: {data['what']}"))
    began, looks = clock.monotonic(), 1
    while not wait.is_over(Unknown("no answer")):
        looks += 1
    assert (clock.monotonic() - began, looks) == (seconds, seconds + 1)
    assert told == ["waiting: what cannot be seen: no answer"]


@pytest.mark.parametrize("between", [NotYet("a broker", "b", "n"), Awaited("a unit", "h", "start it")])
def test_what_is_seen_in_between_begins_the_half_minute_anew(between: NotYet | Awaited) -> None:
    """A broker that answers every second time does answer."""
    clock = FakeClock()
    wait = Wait("kraft-mode/1", clock, 600.0, lambda *_, **__: None)
    for _ in range(3):
        for _ in range(25):
            assert not wait.is_over(Unknown("no answer"))
        assert not wait.is_over(between)


def test_a_wait_in_which_nothing_moves_ends_after_its_patience() -> None:
    """What it waited for, whose turn it was, and what to do; what moves begins the time anew, and may come back."""
    clock, told = FakeClock(), list[tuple[str, str]]()
    wait = Wait("kraft-mode/1", clock, 60.0, lambda name, **data: told.append((name, data.get("code", ""))))
    for progress in ("1", "2", "1"):
        began = clock.monotonic()
        while clock.monotonic() - began < 59.0:
            assert not wait.is_over(NotYet("replicas", "broker 1", "look at broker 1", progress=progress))
    still = NotYet("replicas", "broker 1", "look at broker 1", progress="1")
    with pytest.raises(NoProgress) as caught:
        [wait.is_over(still) for _ in range(1_000)]
    assert caught.value.what == "no progress for 60 s while waiting for replicas"
    assert (caught.value.where, caught.value.why) == ("step kraft-mode/1", "broker 1 did not move")
    assert caught.value.next_step == "look at broker 1"
    assert told == [*[("waiting", "")] * 3, ("stop", NoProgress.id)]


def test_a_wait_is_given_up_behind_its_patience_and_not_at_it() -> None:
    """What is looked at each twenty seconds may still move at the sixtieth."""
    clock = FakeClock()
    wait = Wait("kraft-mode/1", clock, 60.0, lambda *_, **__: None)
    still = NotYet("replicas", "broker 1", "look at broker 1", pace=20.0)
    with pytest.raises(NoProgress, match="no progress for 80 s"):
        [wait.is_over(still) for _ in range(100)]


@pytest.mark.parametrize(
    ("look", "walks", "pause"),
    [
        (2.0, True, POLL),
        (2.5, True, 7.5),
        (0.5, True, POLL),
        (3.0, True, 9.0),
        (8.0, True, LONGEST_PAUSE),
        (8.0, False, POLL),
    ],
)
def test_long_looks_at_every_file_are_further_apart(look: float, walks: bool, pause: float) -> None:
    """A million files are seconds of a processor on each broker's host; a look at answers alone is none of that."""
    clock = FakeClock()
    wait = Wait("kraft-mode/1", clock, 600.0, lambda *_, **__: None, walks_disks=walks)
    for number in range(3):
        began = clock.monotonic()
        clock.sleep(look)
        assert not wait.is_over(NotYet("replicas", "broker 1", "nothing", progress=str(number)))
        assert clock.monotonic() - began == pytest.approx(look + pause)


def test_a_unit_that_flaps_is_no_progress() -> None:
    """Up and down again and again: each turn is told, and the wait ends as one in which nothing moved."""
    clock, told = FakeClock(), list[str]()
    wait = Wait("migration-mode/1", clock, 60.0, lambda *_, **data: told.append(data.get("what", "")))
    up, down = NotYet("broker 1 to register", "broker 1", "nothing"), Awaited("kafka.service ends", "h1", "repair it")
    began = clock.monotonic()

    def flap() -> None:
        turns: tuple[NotYet | Awaited, ...] = (up, down)
        for found in itertools.cycle(turns):
            assert not wait.is_over(found)
            clock.sleep(5.0)

    with pytest.raises(NoProgress, match="no progress for 6"):
        flap()
    assert clock.monotonic() - began < 90.0
    assert set(told) >= {up.what, down.reason}
    assert len(told) > 4
