"""Before every step the run asks: windows, requests, clock, health.  Each refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import (
    ClockJumped,
    PlanIsStale,
    RunInterrupted,
    RunParked,
    WindowClosed,
)
from migrate.model.inventory import Pace
from migrate.model.plan import Direction
from migrate.model.stage import Stage
from migrate.model.windows import Dated, Weekly, Window
from tests.run.gated import EVENING, HOUR, Gated, bound, gated, refused
from tests.testing import worlds

NIGHTS = Window("default", "UTC", (Weekly(tuple(range(7)), 21 * 60, 5 * 60),), (), 2700.0)


# -- windows ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_inside_its_window_a_run_goes_to_its_end(tmp_path: Path) -> None:
    """Nothing is asked that holds."""
    run = Gated(tmp_path, bound(NIGHTS))
    assert run.session()[-1].name == "end"


def test_outside_of_its_window_a_run_looks_and_waits(tmp_path: Path) -> None:
    """It assesses (looking keeps no hours), and stops before the first change with 4."""
    run = Gated(tmp_path, bound(NIGHTS))
    run.clock.time -= HOUR
    error = refused(run, WindowClosed)
    assert error.exit_code == 4
    assert "opens Mon 2026-12-07 21:00 UTC" in error.what
    assert "run the same command again from Mon 2026-12-07 21:00 UTC on" in error.next_step
    assert run.cluster.done == []


@pytest.mark.slow
def test_a_roll_parks_between_brokers_when_the_next_one_would_not_fit(tmp_path: Path) -> None:
    """Measured on this run's own nodes: two hours each, a fourth would end too late; the next night ends it."""
    run = Gated(tmp_path, bound(NIGHTS), node_seconds=2 * HOUR)
    error = refused(run, RunParked)
    assert error.exit_code == 5
    assert run.stopped() == ["0", "1", "2"]
    assert "parked before kraft-mode/0" in error.what
    assert "2 h 45 min needed (45 min of it reserve for a rollback)" in error.what
    assert len([node for node in run.cluster.running if node < 3000]) == 3, "parked with every broker up"
    run.clock.time = EVENING + 24 * HOUR
    assert run.session()[-1].name == "end"
    assert run.stopped() == ["0", "1", "2", "0", "1", "2"], "nothing twice"


@pytest.mark.slow
def test_before_a_node_was_measured_the_playbooks_estimate_counts(tmp_path: Path) -> None:
    """Eight hours a node, by the playbook: it never begins, and says that the window never stays open so long."""
    run = Gated(tmp_path, bound(NIGHTS, pace=Pace(node_estimate=8 * HOUR)))
    error = refused(run, RunParked)
    assert "window default never stays open that long: 8 h at most" in error.what
    assert run.stopped() == []
    assert "correct the window or the estimates" in error.next_step


@pytest.mark.slow
def test_the_copy_is_never_parked_before(tmp_path: Path) -> None:
    """The window ends right after the last broker of the first roll: the copy is watched all the same."""
    closes = replace(NIGHTS, allow=(Dated("2026-12-07T20:00", "2026-12-07T23:30"),), reserve=0.0)
    run = Gated(tmp_path, bound(closes, stage_windows={Stage.COPY: "default"}, pace=Pace(600.0)), target=Stage.HYBRID)
    run.stops = [10.0, 10.0, 2.6 * HOUR]
    assert run.session()[-1].name == "end"
    assert run.clock.now() > EVENING + 2.5 * HOUR


@pytest.mark.slow
def test_a_roll_that_would_stand_half_done_over_a_freeze_does_not_begin(tmp_path: Path) -> None:
    """It would fit two brokers, and then stand for weeks."""
    freeze = replace(NIGHTS, deny=(Dated("2026-12-08T05:00", "2027-01-05T00:00"),))
    run = Gated(tmp_path, bound(freeze, pace=Pace(node_estimate=2 * HOUR, hybrid_max_age=24 * HOUR)))
    error = refused(run, RunParked)
    assert "half rolled or hybrid longer than hybrid_max_age allows (24 h)" in error.what
    assert run.stopped() == []


@pytest.mark.slow
def test_half_a_roll_that_stood_too_long_is_told_and_goes_on(tmp_path: Path) -> None:
    """To refuse would only make it older."""
    run = Gated(tmp_path, bound(NIGHTS), node_seconds=2 * HOUR)
    refused(run, RunParked)
    run.clock.time = EVENING + 72 * HOUR
    run.session()
    (note,) = [event for event in run.named("note") if event.data["key"] == "hybrid-age"]
    assert "longer than 24 h" in note.data["value"]


@pytest.mark.slow
def test_a_half_done_broker_is_finished_outside_of_the_window(tmp_path: Path) -> None:
    """Killed with a broker down at the window's end: the same command brings it up, and parks behind it."""
    run = Gated(tmp_path, bound(NIGHTS))
    run.each_look = _once(lambda: run.stopped() == ["0"], _die)
    with pytest.raises(_Died):
        run.session()
    run.clock.time = EVENING + 12 * HOUR
    run.each_look = lambda: None
    refused(run, RunParked)
    assert run.stopped() == ["0"]
    assert run.named("conclude")[-1].data["step"] == "migration-mode/0"


@pytest.mark.slow
def test_half_a_finalize_is_ended_outside_of_the_window(tmp_path: Path) -> None:
    """Killed behind the first controller without the flag: the same command goes through the others at any hour."""
    run = Gated(tmp_path, bound(NIGHTS), target=Stage.CLEANUP)
    run.each_look = _once(lambda: run.concluded("finalize/1-of-3"), _die)
    with pytest.raises(_Died):
        run.session()
    run.clock.time = EVENING + 12 * HOUR
    run.each_look = lambda: None
    assert "parked before cleanup" in refused(run, RunParked).what
    assert [node for node in run.stopped() if int(node) >= 3000] == ["3001", "3002", "3000"]


@pytest.mark.slow
def test_files_that_another_hand_writes_during_finalize_start_no_controller(tmp_path: Path) -> None:
    """Between two controllers: the one that was done is not started again with such a file, nor is the next one."""
    run = Gated(tmp_path, worlds.playbook(), target=Stage.FINALIZE)

    def write() -> None:
        for node in (3001, 3002):
            run.cluster.files[node, worlds.inventory().node(node).config] += b"num.io.threads=99\n"

    run.each_look = _once(lambda: run.concluded("finalize/1-of-3"), write)
    assert "config:3001 would become" in refused(run, PlanIsStale).what
    assert [node for node in run.stopped() if int(node) >= 3000] == ["3001"]


class _Died(BaseException):
    """As a kill would."""


def _die() -> None:
    raise _Died


def _once(when: Callable[[], bool], act: Callable[[], object]) -> Callable[[], None]:
    """Act the first time that it holds."""
    done: list[bool] = []

    def look() -> None:
        if not done and when():
            done.append(True)
            act()

    return look


# -- the rollback ----------------------------------------------------------------------------------------------------
def back(tmp_path: Path, **changes: Any) -> Gated:
    """A run whose plan is called the rollback, at noon, under a playbook whose window opens at night."""
    run = Gated(tmp_path, bound(NIGHTS, **changes))
    run.clock.time -= 9 * HOUR
    run.target = Stage.CONTROLLERS
    run.plan = replace(run.planned(), direction=Direction.BACK)
    return run


@pytest.mark.slow
def test_an_emergency_keeps_no_hours(tmp_path: Path) -> None:
    """No window binds a rollback, unless the playbook names one for it."""
    (tmp_path / "free").mkdir()
    assert back(tmp_path / "free").session()[-1].name == "end"
    (tmp_path / "bound").mkdir()
    refused(back(tmp_path / "bound", rollback_window="default"), WindowClosed)


# -- requests ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_first_interrupt_parks_behind_the_broker_that_is_being_restarted(tmp_path: Path) -> None:
    """With it up and proven; exit code 130; the same command resumes."""
    run = gated(tmp_path)
    run.each_look = _once(lambda: run.stopped() == ["0"], lambda: setattr(run.request, "by", "Ctrl-C"))
    error = refused(run, RunInterrupted)
    assert error.exit_code == 130
    assert "parked before migration-mode/1: Ctrl-C asked for it" in error.what
    assert run.stopped() == ["0"]
    run.request.by = ""
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_an_interrupt_before_the_copy_parks_behind_it(tmp_path: Path) -> None:
    """The last broker's registration starts it by itself: it is watched to its end."""
    run = gated(tmp_path)
    run.each_look = _once(lambda: run.stopped() == ["0", "1", "2"], lambda: setattr(run.request, "by", "SIGTERM"))
    assert "parked before hybrid" in refused(run, RunInterrupted).what


@pytest.mark.slow
def test_an_interrupt_leaves_no_half_quorum_without_the_flag(tmp_path: Path) -> None:
    """Finalize goes through all controllers, once its first one was restarted."""
    run = gated(tmp_path)
    run.target = Stage.CLEANUP
    first = next(str(node) for node in (3001,))
    run.each_look = _once(lambda: first in run.stopped(), lambda: setattr(run.request, "by", "Ctrl-C"))
    assert "parked before cleanup" in refused(run, RunInterrupted).what
    assert [node for node in run.stopped() if int(node) >= 3000] == ["3001", "3002", "3000"]


@pytest.mark.slow
def test_a_soak_can_be_left_while_it_lasts(tmp_path: Path) -> None:
    """Nobody has to wait for days; it counts on meanwhile."""
    run = gated(tmp_path, soak_seconds=20.0)
    run.each_look = _once(
        lambda: bool(run.named("waiting")) and run.named("waiting")[-1].data["step"].startswith("soak"),
        lambda: setattr(run.request, "by", "Ctrl-C"),
    )
    assert "parked before soak" in refused(run, RunInterrupted).what
    run.request.by = ""
    run.clock.time += 60.0
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_until_a_stage_parks_behind_it_and_the_same_plan_goes_on(tmp_path: Path) -> None:
    """Again, as often as it is asked for; without it the run is carried out."""
    run = gated(tmp_path)
    run.until = "hybrid"
    for _ in range(2):
        error = refused(run, RunParked)
        assert "--until hybrid asked for it" in error.what
        assert "without --until" in error.next_step
        assert run.stopped() == ["0", "1", "2"]
        assert {event.data["stage"] for event in run.named("conclude")} >= {"hybrid"}
        assert "kraft-mode" not in {event.data["stage"] for event in run.named("intend")}
    run.until = ""
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_until_a_step_parks_behind_it(tmp_path: Path) -> None:
    """One broker of a roll, then the next one."""
    run = gated(tmp_path)
    for broker in ("0", "1"):
        run.until = f"migration-mode/{broker}"
        assert f"parked before migration-mode/{int(broker) + 1}" in refused(run, RunParked).what
        assert run.stopped() == [str(number) for number in range(int(broker) + 1)]
    run.until = "soak"
    assert run.session()[-1].name == "end"


# -- the clock -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("jump", [-2 * HOUR, 2 * HOUR, 61.0])
def test_a_clock_that_is_set_during_a_run_stops_it(tmp_path: Path, jump: float) -> None:
    """Forwards or backwards; at a parking point, with what is half done finished."""
    run = Gated(tmp_path, bound(NIGHTS))
    run.each_look = _once(lambda: run.stopped() == ["0"], lambda: setattr(run.clock, "set_by", jump))
    error = refused(run, ClockJumped)
    assert f"jumped by {jump:+.0f} s" in error.what
    assert run.stopped() == ["0"]


@pytest.mark.slow
def test_a_clock_that_is_slewed_is_fine(tmp_path: Path) -> None:
    """NTP moves it by fractions."""
    run = gated(tmp_path)

    def drift() -> None:
        run.clock.set_by += 0.01

    run.each_look = drift
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_a_clock_before_the_journals_last_line_is_refused(tmp_path: Path) -> None:
    """A window decided by it would be decided by a wrong time."""
    run = gated(tmp_path)
    run.each_look = _once(lambda: run.stopped() == ["0"], lambda: setattr(run.request, "by", "Ctrl-C"))
    refused(run, RunInterrupted)
    run.request.by, done = "", list(run.cluster.done)
    run.clock.time -= HOUR
    assert "behind the journal's last line" in refused(run, ClockJumped).what
    assert run.cluster.done == done
