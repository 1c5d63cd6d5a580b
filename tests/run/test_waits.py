"""How long a wait pauses between two looks."""

from __future__ import annotations

import itertools

import pytest

from migrate.errors import NoProgress
from migrate.model.outcome import Awaited, NotYet
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


@pytest.mark.parametrize(
    ("look", "walks", "pause"),
    [(0.5, True, POLL), (3.0, True, 9.0), (8.0, True, LONGEST_PAUSE), (8.0, False, POLL)],
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
