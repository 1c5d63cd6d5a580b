"""A round is its seed's, and every fault is drawn for every part of the way."""

from __future__ import annotations

from collections import Counter

from tests.long.soak.draw import DISKS, FAULTS, GOALS, LEGS, LONGEST_HOLD, REACHED, draw, round_seed, stages_to, step_at
from tests.long.soak.faults import _STRIKES


def test_a_seed_draws_the_same_round_for_good() -> None:
    """Written down: a row of an old report can be repeated."""
    drawn = draw(2)
    assert drawn == draw(2)
    assert (drawn.goal, [drawn.strikes[leg].fault for leg in LEGS]) == (
        "hybrid",
        ["zookeeper-killed", "second-apply", "run-folder-full"],
    )
    assert round_seed(1, 0) == round_seed(1, 0) != round_seed(1, 1) != round_seed(2, 0)


def test_every_fault_and_goal_is_drawn_about_equally_often() -> None:
    """No fault is rare: over a thousand rounds each comes between half and twice its share."""
    rounds = [draw(round_seed(7, index)) for index in range(1000)]
    for leg in LEGS:
        found = Counter(one.strikes[leg].fault for one in rounds)
        assert set(found) == set(FAULTS)
        assert all(500 / len(FAULTS) < times < 2000 / len(FAULTS) for times in found.values())
    assert all(times > 250 for times in Counter(one.goal for one in rounds).values())
    assert set(Counter(one.goal for one in rounds)) == set(GOALS)


def test_a_strike_lies_on_the_way() -> None:
    """Its stage is one that the way there passes; whole numbers and seconds are within their bounds."""
    for index in range(300):
        drawn = draw(round_seed(3, index))
        assert (drawn.strikes["there"].stage in stages_to(drawn.goal)) is drawn.by_stages
        assert drawn.strikes["there"].stage not in REACHED
        assert drawn.strikes["back"].stage == drawn.strikes["again"].stage == ""
        for strike in drawn.strikes.values():
            assert 0 <= strike.share <= 1
            assert 0 < strike.hold <= LONGEST_HOLD
            assert strike.disk in range(DISKS)


def test_a_share_is_a_step_of_the_plan() -> None:
    """From the first to the last, never behind it."""
    steps = ["a", "b", "c"]
    assert [step_at(share, steps) for share in (0.0, 0.33, 0.34, 0.99, 1.0)] == [0, 0, 1, 2, 2]


def test_every_fault_that_is_drawn_can_be_done() -> None:
    """The two tables are one."""
    assert set(_STRIKES) == set(FAULTS)
