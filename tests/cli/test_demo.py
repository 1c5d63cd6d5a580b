"""What the demo says of a lab that it leaves running; the demo itself is tests/lab/test_demo.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from migrate.cli.demo import Demo, DemoOptions, sent_from_offsets, where_parked
from migrate.cli.progress import ProgressLines
from migrate.errors import PlanIsStale, RunLocked
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.run.carry_out import RunFolder
from migrate.run.journal import Journal
from migrate.run.locks import LockFile
from tests.cli.test_apply import make


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


class Gone(Demo):
    """A demo whose kept plan the cluster went on without; `made` counts the plans that were made anew."""

    def __init__(self, folder: Path, plan: Plan, made: Plan) -> None:
        self._lab = SimpleNamespace(inventory=SimpleNamespace(runs=str(folder / "runs")), topology=None)  # type: ignore[assignment] # all that is asked of it
        self._options = DemoOptions(folder, None, Stage.CONTROLLERS, keep=False, load=False)
        self._lines = ProgressLines()
        self.kept: Plan | None = plan
        self.made, self.carried = made, list[Plan]()

    def _kept_plan(self, key: str) -> Plan | None:
        assert key == "plan"
        return self.kept

    def _plan(self, *_: object) -> Plan:
        return self.made if self.kept is None else self.kept

    def _carry_out(self, key: str, plan: Plan, *_: object) -> None:
        self.carried.append(plan)
        if plan is not self.made or len(self.carried) > 2:
            self.kept = None
            raise PlanIsStale("the plan begins with stage prepare, the cluster is at stage prepare")


def test_a_demo_plans_anew_at_once_where_the_cluster_went_on_without_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A killed demo whose run somebody carried on by hand goes on at the first try."""
    old, _ = make(tmp_path)
    new = replace(old, again=1)
    demo = Gone(tmp_path, old, new)
    assert demo._migrate(None, None)[0] == new  # type: ignore[arg-type] # neither is looked at
    assert demo.carried == [old, new]
    assert f"the cluster went on without plan {old.short}" in capsys.readouterr().err


def test_a_demo_beside_a_run_begins_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock is asked before the cluster is touched, or a plan is printed."""
    old, _ = make(tmp_path)
    demo = Gone(tmp_path, old, old)
    lock = LockFile(tmp_path / "runs" / "lock", {"owner": "alice", "run": "164dcc01", "since": "now"})
    try:
        with pytest.raises(RunLocked, match="run 164dcc01 is in progress: alice, pid "):
            demo.run()
    finally:
        lock.release()
    assert capsys.readouterr() == ("", "")
