"""Looks and waits take minutes: what was asked before them is asked again behind them, before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import ClockJumped, RunInterrupted, RunParked
from migrate.model.inventory import HealthPolicy, Pace
from migrate.model.windows import Dated
from tests.run.gated import EVENING, HOUR, Gated, bound, gated
from tests.run.test_gatekeeper import NIGHTS
from tests.run.test_gatekeeper_health import unhealthy

LOOKS = HealthPolicy(12, 600.0)  # not quite two hours before each start


@pytest.mark.slow
def test_a_window_that_closes_while_it_is_looked_starts_nothing(tmp_path: Path) -> None:
    """There was room when the looks began."""
    evening = replace(NIGHTS, allow=(Dated("2026-12-07T20:00", "2026-12-07T22:30"),), reserve=0.0)
    run = Gated(tmp_path, bound(evening, health=LOOKS, pace=Pace(60.0)))
    with pytest.raises(RunParked, match="parked before controllers/start-controllers"):
        run.session()
    assert not any(entry.startswith("start") for entry in run.cluster.done)
    assert run.clock.now() > EVENING + 1.5 * HOUR


@pytest.mark.slow
def test_a_clock_that_is_set_while_it_is_looked_starts_nothing(tmp_path: Path) -> None:
    """By it the window behind the looks is judged."""
    run = gated(tmp_path, health=LOOKS)
    run.clock.slept = lambda: setattr(run.clock, "set_by", -2 * HOUR if run.clock.time > EVENING + HOUR else 0.0)
    with pytest.raises(ClockJumped, match="jumped by -7200 s"):
        run.session()
    assert not any(entry.startswith("start") for entry in run.cluster.done)


@pytest.mark.slow
def test_a_request_that_comes_while_it_is_looked_starts_nothing(tmp_path: Path) -> None:
    """Every look is good; whoever speaks meanwhile is heard before the controllers are started."""
    run = gated(tmp_path, health=LOOKS)

    def speak() -> None:
        if run.clock.now() >= EVENING + 1800.0:
            run.clock.slept = lambda: None
            run.request.by = "Ctrl-C"

    run.clock.slept = speak
    with pytest.raises(RunInterrupted, match="parked before controllers/start-controllers"):
        run.session()
    assert not any(entry.startswith("start") for entry in run.cluster.done)


@pytest.mark.slow
def test_a_window_that_closes_while_a_step_waits_for_its_gate_parks(tmp_path: Path) -> None:
    """One partition after the other lags, so that the wait goes on; it does not go on out of hours."""
    evening = replace(NIGHTS, allow=(Dated("2026-12-07T20:00", "2026-12-07T21:30"),), reserve=0.0)
    run = Gated(tmp_path, bound(evening, pace=Pace(60.0), health=HealthPolicy(1)))
    run.cluster.bend = lambda world: unhealthy(world, f"topic-{run.clock.time:.0f}")

    def pass_on() -> None:
        run.clock.time += 30.0
        assert run.clock.time < EVENING + HOUR, "it waits on out of hours"

    run.clock.slept = pass_on
    with pytest.raises(RunParked, match="parked before controllers/start-controllers: "):
        run.session()
    assert run.named("waiting")
    assert not any(entry.startswith("start") for entry in run.cluster.done)


@pytest.mark.slow
def test_a_clock_that_is_set_while_a_step_waits_for_its_gate_stops_the_run(tmp_path: Path) -> None:
    """The window is asked by that very clock."""
    run = gated(tmp_path, health=HealthPolicy(1), no_progress_seconds=600.0)
    run.cluster.bend = unhealthy

    def jump() -> None:
        if any(event.name == "waiting" for event in run.said):
            run.clock.set_by = -2 * HOUR

    run.clock.slept = jump
    with pytest.raises(ClockJumped, match="jumped by -7200 s"):
        run.session()
    assert run.stopped() == []
