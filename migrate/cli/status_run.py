"""What `status` tells of a run that was begun and is not ended: how far it is, and the command by which it goes on."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from migrate.model.history import Event
    from migrate.model.plan import Plan

RUN_ROLLS_IT: Final = ("S-STUCK-30", "S-STUCK-31")  # a broker that is not rolled yet, or was stopped to be rolled
PROGRAM: Final = "kraft-migrate"
FIRST: Final = frozenset({"prepare", "controllers"})  # what a run has left that stopped before it changed the cluster
WATCH: Final = "status PLAYBOOK --watch"


def unended(runs: pathlib.Path) -> dict[str, Any] | None:
    """The newest run of the folder, where its plan is not carried out yet; None where there is none to go on with.

    `next`: the run's own command, without the program's name.  `stages`: of its steps left; `nodes`: the brokers
    that it has yet to take through the first roll.
    A journal or a plan that cannot be read tells nothing here: `apply` says what is wrong with it.
    """
    from migrate.cli.planning import load_plan
    from migrate.errors import MigrateError
    from migrate.run import journal as journals

    found = [(path.stat().st_mtime, path) for path in runs.glob("*/journal.jsonl")]
    if not found:
        return None
    folder = max(found)[1].parent
    try:
        plan, events = load_plan(folder / "plan.json"), journals.read(folder / "journal.jsonl").events
        return _told(plan, events, folder, runs)
    except (OSError, MigrateError, KeyError, ValueError):
        return None


def _told(plan: Plan, events: Sequence[Event], folder: pathlib.Path, runs: pathlib.Path) -> dict[str, Any] | None:
    """The same of its plan and journal; KeyError or ValueError where they are none of a run's."""
    from migrate.model.stage import Stage
    from migrate.report.run_board import WELL, board, lines
    from migrate.run import owners

    done = {event.data["step"] for event in events if event.name == "conclude" and event.data["outcome"] in WELL}
    left = [step for step in plan.steps if step.id not in done]
    if not left:
        return None
    lock = owners.of_file(runs / "lock")
    return {
        "plan": plan.short,
        "back": plan.back,
        "alive": lock is not None and lock.held,
        "told": lines(board(plan, events), time.time())[0],
        "next": _command(plan, folder / "plan.json"),
        "stages": [step.stage.label for step in left],
        "nodes": [int(step.params["broker"]) for step in left if step.stage is Stage.MIGRATION_MODE],
    }


def _command(plan: Plan, path: pathlib.Path) -> str:
    from migrate.report.change_summary import next_command

    near = os.path.relpath(path)
    return next_command(plan, str(path) if near.startswith(os.pardir) else near).removeprefix(f"{PROGRAM} ")


def with_run(answer: Mapping[str, Any], run: Mapping[str, Any] | None) -> dict[str, Any]:
    """The answer with the run in it, and with the run's own command as the next one where that is what comes next.

    Where no step left is of the stage that comes next, the cluster went on without that run: it is told, and no more.
    """
    if run is None:
        return dict(answer)
    after = answer.get("next", "")
    coming = {after.rpartition("--stage ")[2]} if "--stage " in after else FIRST
    told = {key: run[key] for key in ("plan", "back", "alive", "told", "next")}
    if not after or not (run["back"] or coming & set(run["stages"])):
        return {**answer, "run": {**told, "next": ""}}
    said = {**answer, "run": told, "next": WATCH if run["alive"] else run["next"]}
    if "waiting" in answer:
        said["waiting"] = [_goes_on(row, run) for row in answer["waiting"]]
    return said


def _goes_on(row: Mapping[str, Any], run: Mapping[str, Any]) -> Mapping[str, Any]:
    """A broker that the run has yet to roll is nobody's to roll or to start by hand."""
    if row["code"] not in RUN_ROLLS_IT or not set(row["nodes"]) <= set(run["nodes"]):
        return row
    return {**row, "owner": f"run {run['plan']}", "next": f"`{PROGRAM} {run['next']}` goes on with it."}


def as_lines(run: Mapping[str, Any] | None) -> list[str]:
    """The same for a person; [] where no run is to go on."""
    if run is None:
        return []
    lives = "its process lives" if run["alive"] else "no process is at it"
    return [f"{run['told']}; {lives}"]
