"""The measurement of an idle `status --watch` runs: both forms live, are measured, and end by Ctrl-C."""

from __future__ import annotations

from pathlib import Path

from tests.bench.watching import measure
from tests.cli.commands import inventory_in


def test_both_forms_are_measured(tmp_path: Path) -> None:
    """Small, on a cluster that is not there: what is measured is the process, not the look."""
    found = measure(inventory_in(tmp_path), 1.0, first=1.0)
    assert [entry.name for entry in found] == ["lines", "terminal"]
    assert all(entry.seconds >= 1.0 and entry.cpu >= 0.0 for entry in found)
