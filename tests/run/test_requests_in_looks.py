"""What is requested, or happens to the hour, while a step looks: asked again before it acts on what it saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.errors import RunInterrupted
from migrate.run import control
from migrate.run.control import Control, Request
from tests.run.gated import Gated, gated, refused


@pytest.mark.slow
def test_an_interrupt_during_the_look_before_a_restart_parks_before_it(tmp_path: Path) -> None:
    """That look can take a minute; nothing of the broker is touched, and the same command resumes."""
    looks = _looks_before(gated(tmp_path), "1")
    for look in (1, looks):
        _interrupted_at(look, gated(tmp_path / str(look)))


def _interrupted_at(look: int, run: Gated) -> None:
    run.folder.mkdir()
    run.each_look = _nth(look, lambda: run.concluded("migration-mode/0"), lambda: setattr(run.request, "by", "Ctrl-C"))
    assert "parked before migration-mode/1" in refused(run, RunInterrupted).what
    assert run.stopped() == ["0"]
    run.request.by = ""
    assert run.session()[-1].name == "end"


@pytest.mark.slow
def test_a_pause_during_the_look_before_a_restart_has_it_look_anew(tmp_path: Path) -> None:
    """What was seen before the pause is old; with the broker's stop comes a look of after it."""
    run = gated(tmp_path)
    pause = Control(Request.PAUSE, by="alice", host="desk")
    looked: list[float] = []
    last = _nth(
        _looks_before(gated(tmp_path / "first"), "1"),
        lambda: run.concluded("migration-mode/0"),
        lambda: control.write(run.folder, pause),
    )

    def look() -> None:
        last()
        if run.stopped() == ["0"]:
            looked.append(run.clock.now())

    run.each_look = look
    run.clock.slept = lambda: (
        control.write(run.folder, Control())
        if run.named("paused") and run.clock.now() > run.named("paused")[-1].time + 30.0
        else None
    )
    assert run.session()[-1].name == "end"
    resumed = run.named("resumed")[0]
    assert resumed.data["step"] == "migration-mode/1"
    assert any(time >= resumed.time for time in looked)


def _looks_before(run: Gated, broker: str) -> int:
    """How often a run looks between the end of the step before and the stop of that broker."""
    run.folder.mkdir(exist_ok=True)
    looks: list[int] = []

    def look() -> None:
        if run.concluded(f"migration-mode/{int(broker) - 1}") and broker not in run.stopped():
            looks.append(1)

    run.each_look = look
    assert run.session()[-1].name == "end"
    assert looks
    return len(looks)


def _nth(number: int, when: Callable[[], bool], act: Callable[[], object]) -> Callable[[], None]:
    """Act at that look of those at which it holds."""
    seen: list[int] = []

    def look() -> None:
        if when():
            seen.append(1)
            if len(seen) == number:
                act()

    return look
