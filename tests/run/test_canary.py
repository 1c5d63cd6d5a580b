"""Behind a roll's first broker the run watches for as long as the playbook says; a fault starts the soak again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NoProgress, PlanStopped, RunInterrupted
from migrate.model.facts import pure_ledger
from migrate.model.history import Event
from migrate.model.inventory import RollOrder
from migrate.model.outcome import NotYet, Refused, Unknown, Verified
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.plan.build import build
from migrate.report.run_report import build as build_report
from migrate.report.run_values import Holds
from migrate.steps.look import CLOCK, HELD, CanaryInKraftMode, CanaryInMigrationMode
from tests.run.gated import Gated
from tests.run.test_engine import PLANNED_ON
from tests.steps.looks import different, unhealthy
from tests.testing import worlds
from tests.testing.worlds import kraft, world_at

KRAFT = replace(world_at(Stage.KRAFT_MODE), ledger=pure_ledger(world_at(Stage.KRAFT_MODE)))

SOAK = 120.0
FIRST, SECOND = "migration-mode/canary-0", "kraft-mode/canary-0"
WATCHED = replace(worlds.playbook(), canary_soak=SOAK, no_progress_seconds=60.0)


def gated(tmp_path: Path, target: Stage = Stage.SOAK, **changes: object) -> Gated:
    """A run that watches its canaries."""
    return Gated(tmp_path, replace(WATCHED, **changes), target=target)  # type: ignore[arg-type]


def concluded(run: Gated, step: str) -> Event:
    """Its end."""
    (found,) = [event for event in run.named("conclude") if event.data["step"] == step]
    return found


def done(run: Gated) -> set[str]:
    """Steps that were concluded so far."""
    path = run.folder / "journal.jsonl"
    return {str(event.data["step"]) for event in run.named("conclude")} if path.exists() else set()


def watched(run: Gated, step: str) -> float:
    """Seconds between the canary's proof and the end of its soak."""
    return concluded(run, step).time - concluded(run, step.replace("canary-", "")).time


def waits(run: Gated, step: str) -> list[Event]:
    """What was said of waiting there."""
    return [event for event in run.named("waiting") if event.data["step"] == step]


# -- the plan --------------------------------------------------------------------------------------------------------
def test_a_canary_is_watched_behind_the_first_broker_of_both_rolls(tmp_path: Path) -> None:
    """Shown in the plan with its time; without the key there is none."""
    steps = {step.id: step for step in gated(tmp_path).planned().steps}
    order = list(steps)
    assert order[order.index(FIRST) - 1 : order.index(FIRST) + 2] == ["migration-mode/0", FIRST, "migration-mode/1"]
    assert order[order.index(SECOND) - 1] == "kraft-mode/0"
    assert steps[FIRST].title == "watch broker 0, the canary of the roll, for 2 min before the next one"
    assert not [step.id for step in gated(tmp_path, canary_soak=0.0).planned().steps if "canary" in step.id]


def test_the_first_of_the_chosen_order_is_the_one_that_is_watched(tmp_path: Path) -> None:
    """Whichever that is."""
    run = gated(tmp_path, roll_order=RollOrder.CANARY_FIRST)
    rolled = [step.id for step in run.planned().steps if step.kind == "roll-to-migration-mode"]
    (soak,) = [step.id for step in run.planned().steps if step.kind == "canary-in-migration-mode"]
    assert soak == rolled[0].replace("/", "/canary-")


@pytest.mark.slow
def test_planned_anew_half_way_the_canary_is_watched_only_while_it_stands_alone(tmp_path: Path) -> None:
    """With a second broker restarted somebody decided already."""
    for rolled, kept in ((1, True), (2, False)):
        run = gated(tmp_path / str(rolled), target=Stage.COPY)
        (tmp_path / str(rolled)).mkdir()
        ids = [step.id for step in run.planned().steps]
        last = f"migration-mode/{rolled}"
        assert last in ids
        with pytest.raises(RunInterrupted):
            stopping_before(run, last)
        plan = build(run.cluster.observe(PLANNED_ON, {}), WATCHED, target=Stage.COPY, only=False, created=1.0)
        assert (FIRST in [step.id for step in plan.steps]) is kept


def stopping_before(run: Gated, step: str) -> None:
    """A session that is asked to park once that step is next."""

    def look() -> None:
        index = [planned.id for planned in run.planned().steps].index(step)
        if run.planned().steps[index - 1].id in done(run):
            run.request.by = "a test"

    run.clock.slept = look
    run.each_look = look
    run.session()


# -- the soak --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_next_broker_is_stopped_only_behind_the_soak(tmp_path: Path) -> None:
    """The board has what is waited for, who owns it and what comes next; the proof says for how long it held."""
    run = gated(tmp_path)
    run.session()
    for step in (FIRST, SECOND):
        assert SOAK <= watched(run, step) < SOAK + 40
        said = waits(run, step)[0].data
        assert said["what"] == "the end of the soak of canary 0: 2 min left of 2 min, all of it without a fault"
        assert (said["owner"], said["next"][:8]) == (CLOCK, "nothing:")
        assert "every ISR full" in concluded(run, step).data["evidence"][0]


@pytest.mark.slow
def test_a_fault_meanwhile_is_waited_for_and_begins_the_time_anew(tmp_path: Path) -> None:
    """An ISR that is not full for half a minute, in the middle of the soak."""
    run = gated(tmp_path, target=Stage.COPY)
    since: list[float] = []

    def bend(world: World) -> World:
        ended = done(run)
        if "migration-mode/0" not in ended or FIRST in ended:
            return world
        since[:] = since or [run.clock.time]
        if 60 <= run.clock.time - since[0] < 90:
            return unhealthy(world)
        return world

    run.cluster.bend = bend
    run.session()
    assert watched(run, FIRST) >= 90 + SOAK
    owners = [event.data["owner"] for event in waits(run, FIRST)]
    assert owners[0] == owners[-1] == CLOCK
    assert len(set(owners)) > 1


def faults(run: Gated, step: str) -> list[tuple[str, str]]:
    """What was told of faults there."""
    return [(event.data["state"], event.data["what"]) for event in run.named("fault") if event.data["step"] == step]


def again(world: World) -> World:
    """Broker 1 has another incarnation: its process was restarted between two looks."""
    view = kraft(world)
    entry = replace(view.brokers[worlds.BROKERS[1]], incarnation="R" * 22)
    return replace(world, kraft=replace(view, brokers={**view.brokers, worlds.BROKERS[1]: entry}))


def after(run: Gated, step: str, seconds: float, bend: Callable[[World], World]) -> Callable[[World], World]:
    """Bend the world from so many seconds after that step on."""

    def bent(world: World) -> World:
        ended = [event.time for event in run.named("conclude") if event.data["step"] == step] if done(run) else []
        return bend(world) if ended and run.clock.now() >= ended[0] + seconds else world

    return bent


@pytest.mark.slow
def test_a_restart_between_two_looks_begins_a_canarys_time_anew(tmp_path: Path) -> None:
    """Nothing was seen to be down; the new incarnation tells of it."""
    run = gated(tmp_path)
    run.cluster.bend = after(run, "kraft-mode/0", 60.0, lambda world: again(world) if not concluded_yet(run) else world)
    run.session()
    assert watched(run, SECOND) >= 60 + SOAK
    assert faults(run, FIRST) == []
    ((state, what), *_) = faults(run, SECOND)
    assert state == "happened"
    assert what.startswith("start of broker 1: ")


@pytest.mark.slow
def test_a_restart_in_the_last_moment_of_its_soak_begins_a_canarys_time_anew(tmp_path: Path) -> None:
    """The look that ends the time is the one that finds the new incarnation."""
    run = gated(tmp_path)
    ends = SOAK - 0.6  # between the last two looks
    run.cluster.bend = after(run, "kraft-mode/0", ends, lambda world: world if concluded_yet(run) else again(world))
    run.session()
    assert [state for state, _ in faults(run, SECOND)] == ["happened"]
    assert watched(run, SECOND) >= ends + SOAK


def concluded_yet(run: Gated) -> bool:
    """Is the second canary's soak over?"""
    return SECOND in done(run)


@pytest.mark.slow
@pytest.mark.parametrize("bend", [unhealthy, different], ids=["ISR", "difference"])
def test_a_fault_during_the_last_soak_is_told_with_its_times_and_the_soak_goes_on(
    tmp_path: Path, bend: Callable[[World], World]
) -> None:
    """It lasts for days: it is not begun anew, and nothing that was seen is left out."""
    run = gated(tmp_path, canary_soak=0.0, soak_seconds=600.0)
    since: list[float] = []

    def bent(world: World) -> World:
        if any(event.data["step"] == "soak/soak" for event in run.named("intend")) if done(run) else False:
            since[:] = since or [run.clock.now()]
            if 100 <= run.clock.now() - since[0] < 200:
                return bend(world)
        return world

    run.cluster.bend = bent
    run.session()
    (began, ended) = [event for event in run.named("fault") if event.data["step"] == "soak/soak"]
    assert (began.data["state"], ended.data["state"]) == ("began", "ended")
    assert "wrong now: " in began.data["what"]
    assert 80 <= ended.time - began.time <= 120
    assert concluded(run, "soak/soak").time - since[0] < 700
    report = build_report(run.planned(), run.events)
    (claim,) = [claim for claim in report.claims if "during a soak" in claim.text]
    assert claim.holds is Holds.YES
    assert " began: " in claim.evidence


@pytest.mark.slow
def test_a_fault_at_the_end_of_the_last_soak_ends_the_run(tmp_path: Path) -> None:
    """As before: then everything must hold."""
    run = gated(tmp_path, canary_soak=0.0, soak_seconds=300.0)
    run.cluster.bend = lambda world: (
        different(world)
        if done(run) and any(event.data["step"] == "soak/soak" for event in run.named("intend"))
        else world
    )
    with pytest.raises(PlanStopped):
        run.session()
    assert [state for state, _ in faults(run, "soak/soak")] == ["began"]


@pytest.mark.slow
def test_a_restart_while_nobody_looked_at_the_soak_is_told_by_the_next_session(tmp_path: Path) -> None:
    """The marks are in the journal; the time without a look is named in the report."""
    run = gated(tmp_path, canary_soak=0.0, soak_seconds=7200.0)
    asked: list[float] = []

    def park() -> None:
        if not asked and any(event.data["step"] == "soak/soak" for event in run.named("waiting")):
            asked.append(run.clock.time)
            run.request.by = "a test"

    run.clock.slept = park
    with pytest.raises(RunInterrupted):
        run.session()
    run.request.by, run.cluster.bend = "", again
    run.clock.time += 3600
    run.session()
    assert ("happened", "start of broker 1") in [(state, what[:17]) for state, what in faults(run, "soak/soak")]
    (claim,) = [c for c in build_report(run.planned(), run.events).claims if "during a soak" in c.text]
    assert "not observed for 60 min" in claim.evidence or "not observed for 1 h" in claim.evidence


@pytest.mark.slow
def test_a_fault_that_stays_ends_the_run_with_one_broker_restarted(tmp_path: Path) -> None:
    """The others are never touched."""
    run = gated(tmp_path, target=Stage.COPY)

    def bend(world: World) -> World:
        ended = done(run)
        return unhealthy(world) if "migration-mode/0" in ended else world

    run.cluster.bend = bend
    with pytest.raises(NoProgress):
        run.session()
    assert run.stopped() == ["0"]


@pytest.mark.slow
def test_parked_in_its_soak_a_run_watches_the_whole_time_again(tmp_path: Path) -> None:
    """While nobody looks, nobody knows."""
    run = gated(tmp_path, target=Stage.COPY)
    asked: list[float] = []

    def park() -> None:
        if not asked and any("canary" in event.data["step"] for event in run.named("waiting")):
            asked.append(run.clock.time)
            run.request.by = "a test"

    run.clock.slept = park
    with pytest.raises(RunInterrupted):
        run.session()
    assert run.stopped() == ["0"]
    run.request.by = ""
    run.clock.time += 3600
    again = run.clock.time
    run.session()
    assert concluded(run, FIRST).time >= again + SOAK


# -- the step --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("held", ["0.0", "119.9"])
def test_before_its_time_the_soak_says_how_long_it_has_held(held: str) -> None:
    """And looks again soon enough."""
    world = replace(KRAFT, facts={HELD: held})
    found = CanaryInKraftMode(0, SOAK).verify(world)
    assert isinstance(found, NotYet)
    assert found.owner == CLOCK
    assert 0 < found.pace <= max(1.2, SOAK - float(held))


def test_behind_its_time_the_soak_is_proven_and_unmeasured_it_is_unknown() -> None:
    """A missing measure is no time."""
    world = KRAFT
    assert isinstance(CanaryInKraftMode(0, SOAK).verify(replace(world, facts={HELD: "120.0"})), Verified)
    assert isinstance(CanaryInKraftMode(0, SOAK).verify(replace(world, facts={})), Unknown)


@pytest.mark.parametrize(
    ("change", "kind"),
    [({"fenced": True}, NotYet), ({"migrating": True}, NotYet), ({"log_dirs": frozenset()}, Refused)],
)
def test_a_canary_that_is_not_as_it_was_proven_is_a_fault(change: dict[str, object], kind: type) -> None:
    """However long everything has held before."""
    world = world_at(Stage.KRAFT_MODE)
    view = kraft(world)
    entry = replace(view.brokers[worlds.BROKERS[0]], **change)  # type: ignore[arg-type]
    bent = replace(world, kraft=replace(view, brokers={**view.brokers, worlds.BROKERS[0]: entry}), facts={HELD: "9e9"})
    found = CanaryInKraftMode(0, SOAK).verify(bent)
    assert isinstance(found, kind)
    assert getattr(found, "owner", "") != CLOCK


def test_a_quorum_that_began_the_copy_is_no_canarys_state() -> None:
    """In the first roll the controllers wait for the other brokers."""
    found = CanaryInMigrationMode(0, SOAK).verify(replace(world_at(Stage.COPY), facts={HELD: "9e9"}))
    assert isinstance(found, Refused)
