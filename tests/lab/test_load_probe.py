"""The load reports as a probe does, so that an error budget can rest on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from migrate.lab.load import _report
from migrate.lab.load_client import Tally
from migrate.model.inventory import ErrorBudget
from migrate.model.outcome import NotYet, Ready
from migrate.run.budget import within_budget
from migrate.run.clock import SystemClock


class Turns(threading.Event):
    """A stop that comes after some turns; each turn changes the tally."""

    def __init__(self, changes: Iterator[tuple[int, int]], tally: Tally) -> None:
        super().__init__()
        self._changes, self._tally = changes, tally

    def wait(self, timeout: float | None = None) -> bool:
        """No time passes."""
        change = next(self._changes, None)
        if change is None:
            return True
        self._tally.acknowledged += change[0]
        self._tally.failed += change[1]
        return False


def reported(folder: Path, *changes: tuple[int, int]) -> Path:
    """The probe's file after these turns."""
    tally = Tally()
    _report(folder, tally, Turns(iter(changes), tally))
    return folder / "probe.jsonl"


def test_a_load_without_failures_is_within_its_budget(tmp_path: Path) -> None:
    """Before its first record it says nothing."""
    path = reported(tmp_path, (0, 0), (0, 0), (200, 0), (198, 0))
    assert len(path.read_text().splitlines()) == 2
    assert within_budget(ErrorBudget(str(path), 0.001, 60.0), SystemClock().now()) == Ready()


def test_records_that_were_given_up_spend_the_budget(tmp_path: Path) -> None:
    """Two of four hundred are more than one in a thousand, over a restart of the load, too."""
    reported(tmp_path, (200, 1))
    path = reported(tmp_path, (198, 1))
    found = within_budget(ErrorBudget(str(path), 0.001, 60.0), SystemClock().now())
    assert isinstance(found, NotYet)
    assert found.next_step.startswith("2 of 400 failed within 60 s")
