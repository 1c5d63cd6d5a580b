"""Does a plan fit its windows, where would it park, and with which estimates of durations?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace

import pytest

from migrate.errors import WindowNeverOpens
from migrate.model import durations
from migrate.model.durations import Durations, measured, percentile
from migrate.model.history import Event
from migrate.model.plan import PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Action
from migrate.model.windows import Dated, Weekly, Window, local
from migrate.plan.parking import block, in_between, may_leave_while_waiting, may_park_before
from migrate.plan.schedule import (
    Fits,
    NoRoom,
    Room,
    half_rolled_too_long,
    lay_out,
    must_open,
    room,
    time_left,
)
from migrate.steps.registry import KINDS
from tests.testing import worlds

HOUR = 3600.0
MONDAY = dt.datetime(2026, 12, 7, tzinfo=dt.UTC).timestamp()
NIGHTS = Window("nights", "UTC", (Weekly(tuple(range(7)), 21 * 60, 5 * 60),), (), 2700.0)
QUARTERS = Durations(900.0)  # a node takes 15 minutes by its p90


def step(number: int, kind: str, stage: Stage, **params: str) -> PlannedStep:
    """A planned step; looking kinds have no action."""
    looks = ("copy", "hybrid", "soak", "discover", "assess")
    actions = () if kind in looks else (Action(">", f"broker {number}", "restart"),)
    return PlannedStep(f"{stage.label}/{number}", kind, stage, "t", params, actions, {}, {}, "", "")


def first_roll(nodes: int) -> list[PlannedStep]:
    """That many brokers, and the copy."""
    rolled = [step(node, "roll-to-migration-mode", Stage.MIGRATION_MODE) for node in range(nodes)]
    return [*rolled, step(0, "copy", Stage.COPY)]


def second_roll(nodes: int) -> list[PlannedStep]:
    """That many brokers to KRaft."""
    return [step(node, "roll-to-kraft", Stage.KRAFT_MODE) for node in range(nodes)]


BOUND: Mapping[Stage, Window] = {Stage.MIGRATION_MODE: NIGHTS, Stage.KRAFT_MODE: NIGHTS, Stage.FINALIZE: NIGHTS}


# -- room: now + p90 + reserve <= end --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("now", "fits"),
    [
        (MONDAY + 21 * HOUR, True),
        (MONDAY + 28 * HOUR, True),  # 04:00: 15 + 45 minutes end at 05:00 sharp
        (MONDAY + 28 * HOUR + 1, False),
        (MONDAY + 20 * HOUR, False),
    ],
)
def test_a_node_begins_only_if_it_and_a_rollback_end_in_the_window(now: float, fits: bool) -> None:
    """To the second."""
    answer = room(NIGHTS, second_roll(1), QUARTERS, now)
    assert isinstance(answer, Room if fits else NoRoom)


def test_no_room_says_what_is_needed_what_is_left_and_when_to_come_back() -> None:
    """In the window's own zone."""
    answer = room(NIGHTS, second_roll(1), QUARTERS, MONDAY + 28.5 * HOUR)
    assert isinstance(answer, NoRoom)
    assert answer.opens == MONDAY + 45 * HOUR
    for part in ("1 h needed (45 min of it reserve", "open until Tue", "30 min from now"):
        assert part in answer.why


def test_a_step_without_a_window_always_has_room() -> None:
    """Looking stages keep no hours."""
    assert room(None, second_roll(1), QUARTERS, 0.0) == Room(float("inf"))


def test_a_node_longer_than_every_opening_never_has_room() -> None:
    """Whether it is asked in the window or before it."""
    for now in (MONDAY + 12 * HOUR, MONDAY + 22 * HOUR):
        answer = room(NIGHTS, second_roll(1), Durations(8 * HOUR), now)
        assert isinstance(answer, NoRoom)
        assert answer.opens is None
        assert "window nights never stays open that long: 8 h at most" in answer.why


def test_an_opening_that_is_too_short_is_passed_over() -> None:
    """The next one with room counts, not the next one."""
    short = Dated("2026-12-08T12:00", "2026-12-08T12:30")
    window = replace(NIGHTS, allow=(*NIGHTS.allow, short))
    assert local(window, MONDAY + 36 * HOUR) == "Tue 2026-12-08 12:00 UTC"
    answer = room(window, second_roll(1), QUARTERS, MONDAY + 28.5 * HOUR)
    assert isinstance(answer, NoRoom)
    assert answer.opens == MONDAY + 45 * HOUR


# -- parking points --------------------------------------------------------------------------------------------------
def test_the_copy_and_half_a_quorum_are_no_parking_points() -> None:
    """Whoever begins the last broker must have time for the copy; whoever begins finalize, for all controllers."""
    plan = [*first_roll(3), *(step(node, "finalize-controller", Stage.FINALIZE) for node in (1, 2, 3))]
    assert [may_park_before(plan, index) for index in range(len(plan))] == [True, True, True, False, True, False, False]
    assert [len(block(plan, index)) for index in (0, 2, 4)] == [1, 2, 3]


def test_a_plan_that_begins_inside_may_still_not_begin() -> None:
    """Not to start is always possible."""
    assert may_park_before([step(0, "copy", Stage.COPY)], 0)


def test_only_a_step_that_changes_nothing_may_be_left_while_it_waits() -> None:
    """A soak of days and the copy, which continues by itself, may; a broker that is half restarted may not."""
    assert may_leave_while_waiting([step(0, "soak", Stage.SOAK)], 0)
    assert may_leave_while_waiting([step(0, "copy", Stage.COPY)], 0)
    assert not may_leave_while_waiting(second_roll(1), 0)


def test_between_the_first_broker_and_the_last_the_cluster_is_half_rolled() -> None:
    """Before the first and after the last it is not."""
    plan = [*first_roll(2), *second_roll(2)]
    assert [in_between(plan, index) for index in range(5)] == [False, True, True, True, True]
    assert in_between(second_roll(2), 1), "a plan of the second roll alone begins in hybrid"


# -- the whole plan --------------------------------------------------------------------------------------------------
def test_a_plan_that_ends_before_the_window_fits() -> None:
    """Two hours of nodes at nine in the evening."""
    found = lay_out(second_roll(8), BOUND, QUARTERS, MONDAY + 21 * HOUR)
    assert (found.verdict, found.line, found.parks) == (Fits.FITS, "fits", ())
    (stage,) = found.stages
    assert (stage.steps, stage.window, stage.verdict) == (8, "nights", Fits.FITS)
    assert (stage.estimate.p50, stage.estimate.p90) == (8 * 360.0, 8 * 900.0)
    assert stage.ends == MONDAY + 23 * HOUR


def test_a_plan_that_is_too_long_parks_after_so_many_nodes_and_goes_on_the_next_night() -> None:
    """Seven and a quarter hours of room are 29 nodes."""
    found = lay_out(second_roll(40), BOUND, QUARTERS, MONDAY + 21 * HOUR)
    assert found.line == "will park after 29 steps"
    (park,) = found.parks
    assert (park.before, park.since) == ("kraft-mode/29", MONDAY + 28.25 * HOUR)
    assert park.until == MONDAY + 45 * HOUR
    assert park.half_rolled
    assert found.stages[0].ends == MONDAY + 45 * HOUR + 11 * 900.0


def test_a_plan_made_at_noon_begins_when_the_window_opens() -> None:
    """That is no parking: nothing was done."""
    found = lay_out(second_roll(4), BOUND, QUARTERS, MONDAY + 12 * HOUR)
    assert found.verdict is Fits.FITS
    assert [park.after for park in found.parks] == [0]
    assert found.stages[0].ends == MONDAY + 22 * HOUR


def test_the_last_broker_of_the_first_roll_needs_room_for_the_copy() -> None:
    """At 03:57 there is room for a broker, and none for the copy after it."""
    nine = MONDAY + 27.95 * HOUR
    found = lay_out(first_roll(1), BOUND, QUARTERS, nine)
    assert [park.after for park in found.parks] == [0]
    assert isinstance(room(NIGHTS, first_roll(1)[:1], QUARTERS, nine), Room)


def test_what_fits_no_window_is_said_of_every_later_stage() -> None:
    """Nothing is promised behind it."""
    found = lay_out([*first_roll(2), *second_roll(2)], BOUND, Durations(8 * HOUR), MONDAY + 21 * HOUR)
    assert found.line == "does not fit"
    assert {stage.verdict for stage in found.stages} == {Fits.NOT}
    assert found.parks[0].until is None


def test_half_a_roll_that_would_stand_over_the_freeze_is_found_before_it_begins() -> None:
    """The next night is weeks away: longer than the playbook allows."""
    freeze = replace(NIGHTS, deny=(Dated("2026-12-08T05:00", "2027-01-05T00:00"),))
    found = lay_out(second_roll(40), {Stage.KRAFT_MODE: freeze}, QUARTERS, MONDAY + 21 * HOUR)
    park = half_rolled_too_long(found, 24 * HOUR)
    assert park is not None
    assert park.after == 29
    assert half_rolled_too_long(lay_out(second_roll(40), BOUND, QUARTERS, MONDAY + 21 * HOUR), 24 * HOUR) is None


def test_a_window_that_is_over_is_refused_by_name() -> None:
    """With the stage, and the playbook as the place to mend it."""
    over = replace(NIGHTS, allow=(Dated("2020-01-01T00:00", "2020-01-02T00:00"),))
    playbook = replace(worlds.playbook(), windows={"default": over})
    with pytest.raises(WindowNeverOpens) as caught:
        must_open(playbook, [Stage.ASSESS, Stage.PREPARE], MONDAY)
    assert "window nights of stage prepare" in caught.value.what
    must_open(playbook, [Stage.ASSESS, Stage.SOAK], MONDAY)  # looking stages keep no hours


# -- durations -------------------------------------------------------------------------------------------------------
def events(*seconds: float, kind: str = "roll-to-kraft") -> list[Event]:
    """A journal of steps that took so long, one after the other."""
    found, now = [Event(0, 100.0, "session", {})], 100.0
    for number, took in enumerate(seconds):
        name = f"{kind}/{number}"
        found.append(Event(1, now + took / 2, "intend", {"step": name}))
        found.append(Event(2, now + took, "conclude", {"step": name, "kind": kind, "outcome": "Verified"}))
        now += took
    return found


def test_the_first_node_of_the_run_replaces_the_estimate() -> None:
    """And with fewer than ten the p90 is the longest."""
    known = Durations(900.0, measured(events(60.0, 240.0, 90.0)))
    found = known.of(second_roll(1)[0])
    assert (found.p50, found.p90, found.source) == (90.0, 240.0, "measured here on 3 steps")


def test_brokers_of_the_first_roll_tell_about_the_second() -> None:
    """A restart is a restart; controllers are not brokers."""
    known = Durations(900.0, measured(events(60.0, kind="roll-to-migration-mode")))
    assert known.of(second_roll(1)[0]).p90 == 60.0
    assert known.of(step(1, "finalize-controller", Stage.FINALIZE)).p90 == 450.0


def test_estimates_say_that_they_are_estimates() -> None:
    """A soak takes what the playbook says."""
    assert QUARTERS.of(second_roll(1)[0]).source == "the playbook's node_estimate"
    assert QUARTERS.of(step(0, "hybrid", Stage.HYBRID)).source == "a stated default"
    assert QUARTERS.of(step(0, "soak", Stage.SOAK, seconds="7200.0")).p90 == 7500.0


def test_one_nodes_files_take_seconds_and_not_minutes() -> None:
    """Thirty brokers' backups were half an hour of a plan, and three minutes of its run."""
    assert sum(QUARTERS.of(step(node, "back-up-broker", Stage.PREPARE)).p50 for node in range(30)) <= 300.0


def test_every_kind_that_an_estimate_names_is_a_steps() -> None:
    """A name that no step has would change nothing, in silence."""
    named = {*durations.FAMILIES, *durations.NODE_SHARE, *durations.CANARIES, *durations.OF_FILES}
    assert named - {durations.BROKER} <= set(KINDS)


def test_a_step_over_two_sessions_is_no_sample() -> None:
    """What lay between the kill and the next morning says nothing about a node."""
    found = events(60.0, 70.0)
    found.insert(4, Event(9, 9e6, "session", {}))  # between the second step's intent and its end
    assert measured(found)["roll-to-kraft"] == (60.0,)


def test_percentiles_are_nearest_rank() -> None:
    """Of ten the ninth, of nine the ninth."""
    assert percentile(range(1, 11), 0.9) == 9
    assert percentile(range(1, 10), 0.9) == 9
    assert percentile([5.0], 0.5) == 5.0


def test_what_a_person_had_to_mend_meanwhile_is_no_sample() -> None:
    """A night with a dead disk would stand for every node after it."""
    found = events(60.0, 7000.0)
    found.insert(3, Event(8, 200.0, "waiting", {"step": "roll-to-kraft/1", "problem": "1 PROBLEM: a disk is dead"}))
    assert measured(found)["roll-to-kraft"] == (60.0,)


def test_all_runs_of_the_cluster_are_counted_and_health_and_looks_with_them() -> None:
    """From the end of one step to that of the next, so that the steps' sum is what the run took."""
    assert measured(events(60.0), events(80.0, 90.0))["broker"] == (60.0, 80.0, 90.0)


# -- the time that is left -------------------------------------------------------------------------------------------
def test_the_time_left_is_the_sum_of_the_steps_that_are_not_concluded() -> None:
    """The step in progress counts less what passed of it, and never less than nothing."""
    found = time_left(second_roll(3), QUARTERS, [Event(0, 1000.0, "session", {})])
    assert found is not None
    assert found.measured == 0
    assert found.at(1000.0) == (3 * 360.0, 3 * 900.0)
    assert found.at(1400.0) == (2 * 360.0, 2 * 900.0 + 500.0)
    assert time_left(second_roll(3), QUARTERS, []) is None


def test_what_the_run_measured_stands_for_the_steps_that_are_left() -> None:
    """Its own kind by the measurement; the others by what the plan says of them."""
    journal = events(60.0, 90.0)
    steps = [replace(one, id=f"roll-to-kraft/{at}") for at, one in enumerate(second_roll(3))]
    known = Durations(900.0, measured(journal))
    found = time_left([*steps, step(1, "finalize-controller", Stage.FINALIZE)], known, journal)
    assert found is not None
    assert found.measured == 2
    assert found.step == (60.0, 90.0)
    assert found.later == (180.0, 450.0)
    assert time_left(steps[:2], known, journal) is None


def test_a_soak_keeps_the_playbooks_length_and_counts_since_the_last_roll() -> None:
    """Over sessions of one boot; behind another boot it begins anew, as the engine counts."""
    soak = step(0, "soak", Stage.SOAK, seconds="7200.0")
    rolled = {"step": "kraft-mode/0", "stage": "kraft-mode", "outcome": "Verified", "boot": "a"}
    session = Event(1, 4000.0, "session", {"boot": "a"})
    journal = [Event(0, 1000.0, "conclude", rolled), session]
    found = time_left([*second_roll(1), soak], QUARTERS, journal)
    assert found is not None
    assert found.at(4000.0) == (7260.0 - 3000.0, 7500.0 - 3000.0)
    again = time_left([*second_roll(1), soak], QUARTERS, [journal[0], replace(session, data={"boot": "b"})])
    assert again is not None
    assert again.at(4000.0) == (7260.0, 7500.0)
