"""A run at a glance, from plan and journal: nodes by stages, what is under way or waited for, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.history import Event
from migrate.model.plan import Plan, PlannedStep
from migrate.report.run_events import node_order
from migrate.report.wording import duration, plural

WELL: Final = ("Verified", "AlreadyDone")
NODE_PARAMS: Final = ("broker", "controller", "node")
CLUSTER: Final = "cluster"
COMING: Final = 3


class Cell(StrEnum):
    """How far the steps of one node in one stage are."""

    NONE = ""
    TO_DO = "."
    NOW = "now"
    DONE = "done"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Board:
    """`rows`: node and one cell a column; `waiting`: what, owner and next step of the present wait, since when.

    `doing` is one word for what happens on the node whose cell is NOW: the effect under way, `waits`, `paused` or "".
    """

    plan: str
    target: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    state: str
    now: str
    since: float | None
    waiting: tuple[str, str, str] | None
    coming: tuple[str, ...]
    done: int
    steps: int
    doing: str = ""


def board(plan: Plan, events: Sequence[Event]) -> Board:
    """The board of the journal so far."""
    done = {e.data["step"] for e in events if e.name == "conclude" and e.data["outcome"] in WELL}
    state, current, since, waiting = _present(events)
    stopped = state.startswith("stopped")
    columns = tuple(dict.fromkeys(step.stage.label for step in plan.steps))
    nodes: dict[str, dict[str, list[PlannedStep]]] = {}
    for step in plan.steps:
        nodes.setdefault(_node(step), {}).setdefault(step.stage.label, []).append(step)
    rows = tuple(
        (node, tuple(_cell(nodes[node].get(column, ()), done, current, stopped=stopped) for column in columns))
        for node in sorted(nodes, key=node_order)
    )
    left = [step for step in plan.steps if step.id not in done and step.id != current]
    return Board(
        plan=plan.short,
        target=plan.target.label,
        columns=columns,
        rows=rows,
        state=state,
        now=next((f"{step.title} [{step.id}]" for step in plan.steps if step.id == current), ""),
        since=since,
        waiting=waiting,
        coming=tuple(step.title for step in left[:COMING]),
        done=len(done),
        steps=len(plan.steps),
        doing=_doing(events) if current and not stopped else "",
    )


def _doing(events: Sequence[Event]) -> str:
    """One word for what happens right now, by the last event that says it."""
    for event in reversed(events):
        match event.name:
            case "effect":
                return str(event.data["effect"])
            case "waiting":
                return "waits"
            case "paused":
                return "paused"
            case "effected" | "intend" | "resumed" | "session":
                return ""
            case _:
                continue
    return ""


def _present(events: Iterable[Event]) -> tuple[str, str, float | None, tuple[str, str, str] | None]:
    """State, the step under way, since when, and what it waits for."""
    state, current, since, waiting = "not begun", "", None, None
    begun: float | None = None
    for event in events:
        data = event.data
        match event.name:
            case "session":
                state, waiting = "running", None
            case "intend":
                current, since, begun, waiting = str(data["step"]), event.time, event.time, None
            case "waiting":
                if waiting is None or waiting[0] != data["what"] or current != data["step"]:
                    since = event.time
                current = str(data["step"])
                waiting = (str(data["what"]), str(data["owner"]), str(data["next"]))
            case "paused":
                state, current, since, waiting = f"paused {data['by']}", str(data["step"]), event.time, None
            case "resumed":
                state, since = "running", event.time
            case "conclude":
                current, since, waiting, begun = "", event.time, None, None
            case "effect" | "effected":
                waiting, since = None, begun
            case "stop":
                state = f"stopped: {data['reason']}"
            case "end":
                state = "ended: the plan is carried out"
            case _:
                pass
    return state, current, since, waiting


def _node(step: PlannedStep) -> str:
    return next((step.params[name] for name in NODE_PARAMS if name in step.params), CLUSTER)


def _cell(steps: Sequence[PlannedStep], done: set[str], current: str, *, stopped: bool) -> Cell:
    if not steps:
        return Cell.NONE
    if current in {step.id for step in steps} - done:
        return Cell.STOPPED if stopped else Cell.NOW
    return Cell.DONE if all(step.id in done for step in steps) else Cell.TO_DO


def lines(found: Board, now: float) -> list[str]:
    """The board as plain lines, without its table."""
    text = [
        f"run {found.plan} to stage {found.target}: {found.done} of {plural(found.steps, 'step')} done; {found.state}"
    ]
    if found.now:
        text.append(f"now      {found.now}{_since(found.since, now) if found.waiting is None else ''}")
    if found.waiting is not None:
        what, owner, next_step = found.waiting
        text += [f"waits    for {what}{_since(found.since, now)}", f"owner    {owner}", f"if it lasts  {next_step}"]
    if found.coming:
        text.append(f"then     {'; '.join(found.coming)}")
    return text


def _since(since: float | None, now: float) -> str:
    return "" if since is None else f", for {duration(max(0.0, now - since))}"
