"""How long a wait pauses between two looks, and when a full look is due."""

from __future__ import annotations

import itertools

import pytest

from migrate.errors import NoProgress
from migrate.model.outcome import Awaited, NotYet, Ready, Refused, Unknown, Verified
from migrate.run.waits import CHEAP, DEAR, LONGEST_PAUSE, MEANWHILE, Wait
from tests.testing.simulated import FakeClock


@pytest.mark.parametrize(
    ("look", "pace", "pause"),
    [(0.0, 0.0, CHEAP[0]), (5.0, 0.0, CHEAP[0]), (0.0, 3.0, 3.0), (1.5, 3.0, 1.5), (10.0, 3.0, CHEAP[0])],
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
    """What it waited for, whose turn it was, and what to do; what moves starts the soak again, and may come back."""
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
    ("look", "dear", "pause"),
    [
        (1.0, True, DEAR[0]),
        (2.0, True, DEAR[0]),
        (2.5, True, 7.5),
        (3.0, True, 9.0),
        (8.0, True, LONGEST_PAUSE),
        (8.0, False, CHEAP[0]),
    ],
)
def test_full_looks_are_further_apart(look: float, dear: bool, pause: float) -> None:
    """A million files are seconds of a processor on each broker's host; a look at answers alone is none of that."""
    clock = FakeClock()
    wait = Wait("kraft-mode/1", clock, 600.0, lambda *_, **__: None, dear=dear)
    for number in range(3):
        began = clock.monotonic()
        clock.sleep(look)
        assert not wait.is_over(NotYet("replicas", "broker 1", "nothing", progress=str(number)))
        assert clock.monotonic() - began == pytest.approx(look + pause)


REGISTERS = NotYet("broker 1 to register", "broker 1", "nothing")


@pytest.mark.parametrize(("narrow", "paces"), [(True, CHEAP), (False, DEAR)])
def test_looks_back_off_while_nothing_moves(narrow: bool, paces: tuple[float, float]) -> None:
    """From the least pause to the longest; what moves brings the least one back."""
    clock, pauses = FakeClock(), list[float]()
    wait = Wait("kraft-mode/1", clock, 6000.0, lambda *_, **__: None, dear=True)

    def turn(found: NotYet) -> None:
        before = clock.monotonic()
        assert wait.goes_on(found) if narrow else not wait.is_over(found)
        pauses.append(clock.monotonic() - before)

    for _ in range(200):
        turn(REGISTERS)
    assert (pauses[0], pauses[-1]) == paces
    assert pauses == sorted(pauses)
    turn(NotYet("broker 1 to unfence", "broker 1", "nothing"))
    assert pauses[-1] == paces[0]


@pytest.mark.parametrize("found", [Ready(), Refused("down"), Verified(()), Unknown("no answer")])
def test_a_narrow_look_decides_nothing(found: Ready | Refused | Verified | Unknown) -> None:
    """Whatever it sees besides a wait, a full look follows at once."""
    clock, told = FakeClock(), list[str]()
    began = clock.monotonic()
    assert not Wait("kraft-mode/1", clock, 600.0, lambda name, **_: told.append(name)).goes_on(found)
    assert (clock.monotonic(), told) == (began, [])


def test_a_full_look_is_due_only_where_narrow_ones_see_nothing_move() -> None:
    """It names what they cannot see; further apart each time, and again soon after something moved."""
    clock = FakeClock()
    wait, dues = Wait("kraft-mode/1", clock, 600.0, lambda *_, **__: None, dear=True), list[float]()

    def wait_for(found: NotYet, seconds: float) -> None:
        began = clock.monotonic()
        while clock.monotonic() - began < seconds:
            if wait.wants_full_look:
                dues.append(clock.monotonic() - began)
                assert not wait.is_over(found)
            assert wait.goes_on(found)

    for number in range(8):
        wait_for(NotYet("copy", "the controllers", "nothing", progress=str(number)), MEANWHILE[0] - 1.0)
    assert not dues
    wait_for(REGISTERS, 200.0)
    assert dues == pytest.approx([10.0, 30.0, 70.0, 130.0, 190.0], abs=8.0)


def test_a_wait_is_given_up_by_a_full_look_alone() -> None:
    """What a narrow look sees may have a cause that only a full one names; to alternate between both is no progress."""
    clock = FakeClock()
    wait = Wait("kraft-mode/1", clock, 60.0, lambda *_, **__: None, dear=True)
    began = clock.monotonic()
    while clock.monotonic() - began < 60.0 or not wait.wants_full_look:
        assert wait.goes_on(REGISTERS) if not wait.wants_full_look else not wait.is_over(DISK)
    with pytest.raises(NoProgress, match="broken disk"):
        wait.is_over(DISK)
    assert clock.monotonic() - began < 63.0


DISK = NotYet("broker 1 to register: broken disk", "broker 1", "repair it")


def test_a_unit_that_flaps_is_no_progress() -> None:
    """Up and down again and again: it is told each time it is down, and the end of the wait names that, whenever it is.

    What it would do once it stays up is told once: what a person can do is in the other sentence.
    """
    clock, told = FakeClock(), list[str]()
    wait = Wait("migration-mode/1", clock, 60.0, lambda *_, **data: told.append(data.get("what", "")))
    up = NotYet("broker 1 to register", "broker 1", "nothing")
    down = Awaited("kafka.service ends", "h1", "repair it; the run then continues")
    began = clock.monotonic()

    def flap() -> None:
        turns: tuple[NotYet | Awaited, ...] = (up, down)
        for found in itertools.cycle(turns):
            assert not wait.is_over(found)
            clock.sleep(5.0)

    with pytest.raises(NoProgress, match=r"no progress for 6. s while waiting for kafka\.service ends") as caught:
        flap()
    assert clock.monotonic() - began < 90.0
    assert caught.value.next_step == "repair it; then give the same command again"
    assert told.count(up.what) == 1
    assert told.count(down.reason) > 4
