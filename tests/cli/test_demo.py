"""What the demo says of a lab that it leaves running; the demo itself is tests/lab/test_demo.py."""

from __future__ import annotations

from pathlib import Path

from migrate.cli.demo import sent_from_offsets, where_parked
from migrate.model.stage import Stage
from migrate.run.carry_out import RunFolder
from migrate.run.journal import Journal


def test_a_lab_is_parked_where_its_run_ended() -> None:
    """As it was asked for."""
    assert where_parked(Stage.HYBRID, Stage.HYBRID) == "parked after stage hybrid; the cluster is running"


def test_a_lab_that_went_further_is_not_said_to_stand_where_it_was_asked_to() -> None:
    """A finished demo in the same folder, and `--until hybrid` behind it: nothing is taken back."""
    said = where_parked(Stage.CLEANUP, Stage.HYBRID)
    assert said.startswith("parked after stage cleanup;")
    assert "further than hybrid" in said


def looked(folder: Path, time: float, step: str, *offsets: int) -> RunFolder:
    """A run whose step saw the ledger at these offsets."""
    run = RunFolder(folder)
    folder.mkdir()
    journal = Journal.begin(run.journal, time, {})
    for later, offset in enumerate(offsets):
        journal.append(time + later, "ledger", {"step": step, "offset": offset, "engine": "pure", "cells": []})
    return run


def test_directories_were_sent_from_the_first_look_of_the_latest_run_that_sent_them(tmp_path: Path) -> None:
    """Before its request, not the proof behind it; a run before a rollback stands in another metadata log."""
    looked(tmp_path / "b", 100.0, "kraft-mode/assign-2", 900, 950)
    looked(tmp_path / "a", 200.0, "kraft-mode/assign-2", 400, 450)
    run = looked(tmp_path / "c", 300.0, "kraft-mode/2", 500)
    assert sent_from_offsets(run) == {2: 400}
