"""Journals of simulated runs, and the reports of them, byte for byte.  UPDATE_GOLDEN=1 writes the files anew.

A run goes forward or back, is killed behind an effect and given the same command again, or is stopped by what it meets.
Of a journal each line is kept without its number, length, checksum and chain, which reading it has checked: a line more
would change all that follow.
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from migrate.errors import NoProgress
from migrate.model.history import Event
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.report import run_board
from migrate.report.run_pages import run_html
from migrate.report.run_report import build
from migrate.report.run_values import Extra, run_json
from migrate.run import journal as journals
from tests.golden.fixed import fix
from tests.golden.kept_worlds import KillAfter
from tests.run.test_engine import plan_for, run
from tests.run.test_rollback import at, rollback_plan
from tests.steps.looks import unhealthy
from tests.testing.golden import same_as_kept
from tests.testing.killing import memory_folder
from tests.testing.simulated import Killed
from tests.testing.simulated_back import TwoWay, two_way
from tests.testing.worlds import BROKERS, CONTROLLERS

JOURNALS = Path(__file__).parent / "journals"
REPORTS = Path(__file__).parent / "reports"
ROLES = {**{str(int(node)): "broker" for node in BROKERS}, **{str(int(node)): "controller" for node in CONTROLLERS}}
Made = Callable[[Path], tuple[TwoWay, Plan]]


def forward(target: Stage = Stage.CLEANUP) -> Made:
    """From ZooKeeper mode."""

    def made(_folder: Path) -> tuple[TwoWay, Plan]:
        cluster = two_way()
        return cluster, plan_for(cluster, target)

    return made


def back(entry: str) -> Made:
    """From a cluster that was migrated that far."""

    def made(folder: Path) -> tuple[TwoWay, Plan]:
        cluster = at(entry, folder)
        return cluster, rollback_plan(cluster)

    return made


def stuck(folder: Path) -> tuple[TwoWay, Plan]:
    """Out of a copy that no controller will note."""
    cluster = at("hybrid", folder)
    cluster.migration = -1
    return cluster, rollback_plan(cluster, copy_again=True)


def sick(_folder: Path) -> tuple[TwoWay, Plan]:
    """A partition is without its full ISR from the second broker's first restart on."""
    cluster = two_way()
    cluster.bend = lambda world: unhealthy(world) if "start 1 migration" in cluster.done else world
    return cluster, plan_for(cluster)


RUNS: dict[str, tuple[Made, tuple[str, ...]]] = {  # with the effects behind which it is killed; the last resumes
    "migration": (forward(), ()),
    "migration-to-controllers": (forward(Stage.CONTROLLERS), ()),
    "killed-behind-a-format": (forward(), ("format 3000",)),
    "killed-behind-a-stop": (forward(), ("stop 1",)),
    "killed-before-a-start": (forward(), ("write 2 migration",)),
    "killed-behind-an-assignment": (forward(), ("assign 2",)),
    "killed-behind-each-broker": (forward(), ("start 0 kraft", "start 1 kraft", "start 2 kraft")),
    "killed-while-finalizing": (forward(), ("write 3001 finalized", "stop 3000")),
    "stopped-by-an-isr": (sick, ()),
    **{
        f"back-from-{entry.replace(' ', '-')}": (back(entry), ())
        for entry in (
            "controllers up",
            "half of the first roll",
            "hybrid",
            "half of the second roll",
            "all brokers KRaft",
        )
    },
    "back-killed-behind-the-controllers-stop": (back("hybrid"), ("stop 3000",)),
    "back-killed-between-the-znodes": (back("hybrid"), ("delete /controller",)),
    "back-killed-before-a-start": (back("half of the second roll"), ("write 1 migration", "write 0 zookeeper")),
    "back-killed-while-setting-aside": (back("hybrid"), ("aside 3001 /data/c3001",)),
    "the-copy-again": (stuck, ()),
}

AS_A_DIFFERENCE = {  # runs that were killed -> the same run that was not
    **{name: "migration" for name in RUNS if name.startswith("killed-")},
    **{name: "back-from-hybrid" for name in RUNS if name.startswith("back-killed-")},
    "back-killed-before-a-start": "back-from-half-of-the-second-roll",
}
REPORTED = (
    "migration",
    "migration-to-controllers",
    "stopped-by-an-isr",
    "back-from-half-of-the-first-roll",
    "back-killed-before-a-start",
    "the-copy-again",
)


@pytest.fixture(autouse=True)
def _nothing_else_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a run is made of is fixed."""
    fix(monkeypatch)


@cache
def carried_out(name: str) -> tuple[Plan, tuple[Event, ...]]:
    """That run, killed and resumed, in a folder that is named relatively; its plan and its whole journal."""
    made, kills = RUNS[name]
    with memory_folder() as folder, contextlib.chdir(folder):
        cluster, plan = made(folder / "before")
        run_folder = Path("run")
        run_folder.mkdir()
        for effect in kills:
            with pytest.raises(Killed):
                run(cluster, plan, run_folder, KillAfter(cluster, effect))
        with contextlib.suppress(NoProgress):
            run(cluster, plan, run_folder)
        assert cluster.harms == []
        return plan, journals.read(run_folder / "journal.jsonl").events


def lines(events: Iterable[Event]) -> list[str]:
    """One event a line."""
    return [
        json.dumps({"t": event.time, "event": event.name, "data": event.data}, sort_keys=True) + "\n"
        for event in events
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_leaves_the_journal_that_was_kept(name: str) -> None:
    """Of one that was killed: what it has beside, and lacks of, that of the run that was not."""
    _, events = carried_out(name)
    if name not in AS_A_DIFFERENCE:
        same_as_kept(JOURNALS / f"{name}.jsonl", "".join(lines(events)).encode())
        return
    _, whole = carried_out(AS_A_DIFFERENCE[name])
    other = difflib.unified_diff(lines(whole), lines(events), "not killed", "killed", n=0)
    same_as_kept(JOURNALS / f"{name}.diff", "".join(other).encode())


@pytest.mark.parametrize("name", REPORTED)
def test_a_run_has_the_report_that_was_kept(name: str) -> None:
    """As a page, as JSON, and as the lines of its board."""
    plan, events = carried_out(name)
    report = build(plan, events, None, Extra(True, roles=ROLES))
    board = run_board.lines(run_board.board(plan, events), events[-1].time + 100.0)
    same_as_kept(REPORTS / f"{name}.html", run_html(report).encode())
    same_as_kept(REPORTS / f"{name}.json", run_json(report).encode())
    same_as_kept(REPORTS / f"{name}.txt", "".join(f"{line}\n" for line in board).encode())


def test_nothing_is_kept_that_no_run_leaves() -> None:
    """A run that goes takes its files with it."""
    assert {path.stem for path in JOURNALS.iterdir()} == {*RUNS}
    assert {path.stem for path in REPORTS.iterdir()} == {*REPORTED}
