"""What is requested, or happens to the hour, while a step looks: asked again before it acts on what it saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.errors import RunInterrupted
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
