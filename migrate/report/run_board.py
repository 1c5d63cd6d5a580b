"""A run at a glance, from plan and journal: how far it is, what is in progress or waited for, what comes next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.durations import Samples, durations_by, measured
from migrate.model.history import Event, concluded
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.windows import Closed, Window, local, state
from migrate.model.words import counted, span
from migrate.plan.schedule import TimeLeft, time_left, window_for
from migrate.report.plan_verdict import PASSED, no_return
from migrate.report.wording import duration, plural

COMING: Final = 3
NOTHING_EARLIER: Final[Samples] = {}


@dataclass(frozen=True, slots=True)
class Board:
    """`waiting`: what, owner and next step of the present wait, since when.

    `now` is the step in progress, `phase` the part of it that is in progress, `since` when that
    began.  `began` and `over` are the session's.
    """

    plan: str
    target: str
    state: str
    now: str
    since: float | None
    waiting: tuple[str, str, str] | None
    coming: tuple[str, ...]
    done: int
    steps: int
    phase: str = ""
    began: float | None = None
    over: float | None = None
    left: TimeLeft | None = None
    window: Window | None = None
    problem: str = ""
    ledger: str = ""
    no_return: str = ""


def board(
    plan: Plan, events: Sequence[Event], playbook: Playbook | None = None, earlier: Samples = NOTHING_EARLIER
) -> Board:
    """The board of the journal so far; with the playbook, the time that is left and the change window.

    `earlier` is what other runs of this cluster measured.
    """
    done = concluded(events)
    found = Present()
    for event in events:
        found.hear(event)
    current, phase = found.step, found.phase
    stopped = found.over is not None
    left = [step for step in plan.steps if step.id not in done and step.id != current]
    if found.state == "running" and not current and left:
        current, phase = left.pop(0).id, "checking whether it may begin"
    under_way = next((step for step in plan.steps if step.id == current), None)
    time, window = None, None
    if playbook is not None and under_way is not None and not stopped:
        time = time_left(plan.steps, durations_by(playbook, earlier, measured(events)), events)
        window = window_for(plan, playbook, under_way.stage)
    return Board(
        plan=plan.short,
        target=plan.words.target if plan.kind.rolls_back else f"stage {plan.target.label}",
        state=found.state,
        now="" if under_way is None else f"{under_way.title} [{under_way.id}]",
        since=found.since,
        waiting=found.waiting,
        coming=tuple(step.title for step in left[:COMING]),
        done=len(done),
        steps=len(plan.steps),
        phase=phase,
        began=found.began,
        over=found.over,
        left=time,
        window=window,
        problem=found.problem if found.waiting is not None and not stopped else "",
        ledger=_ledger(events),
        no_return=_no_return(plan, events),
    )


def _ledger(events: Sequence[Event]) -> str:
    """`240 VERIFIED, 121 MIGRATING`, of all brokers, as the run last saw them; "" where it has not looked."""
    seen = next((event.data for event in reversed(events) if event.name == "ledger"), None)
    if seen is None or seen["offset"] < 0:  # before the copy nothing of KRaft has a directory
        return ""
    counts: Counter[str] = Counter()
    for cell in seen["cells"]:
        counts.update(cell["states"])
    return f"{counted(counts)}, at offset {seen['offset']}"


def _no_return(plan: Plan, events: Sequence[Event]) -> str:
    """Where the point of no return is, and whether it is passed; "" for plans that have nothing to do with it."""
    if plan.kind.rolls_back or not plan.kind.migrates:
        return ""
    final = {step.id for step in plan.steps if not step.stage.reversible}
    passed = any(event.name == "intend" and event.data["step"] in final for event in events)
    return PASSED if passed else no_return(plan)


@dataclass(slots=True)
class Present:
    """State, the step in progress, what of it since when, what it waits for, and when the session began and ended.

    Of the last session: nothing is counted from one that ended or was killed before.  `since`
    begins anew where something else is waited for.
    """

    state: str = "not begun"
    step: str = ""
    phase: str = ""
    since: float | None = None
    waiting: tuple[str, str, str] | None = None
    began: float | None = None
    over: float | None = None
    problem: str = ""

    def hear(self, event: Event) -> None:
        """One event more."""
        data, name = event.data, event.name
        if name in ("session", "intend", "conclude", "effect", "effected"):
            self.since, self.waiting = event.time, None
        match name:
            case "session":
                self.state, self.phase, self.began, self.over = "running", "", event.time, None
                self.phase = "looking how far it got" if self.step else ""
            case "intend":
                self.step, self.phase = str(data["step"]), ""
            case "waiting":
                what = str(data["what"])
                if self.waiting is None or self.step != data["step"] or self.waiting[0] != what:
                    self.since = event.time
                self.problem = str(data.get("problem", ""))
                self.step, self.waiting = str(data["step"]), (what, str(data["owner"]), str(data["next"]))
            case "conclude":
                self.step = self.phase = ""
            case "effect":
                self.phase = f"{data['effect']} {data['node']}"
            case "effected":
                self.phase = "verifying"
            case "stop":
                self.state, self.over = f"stopped: {data['reason']}", event.time
            case "end":
                self.state, self.over = "ended: the plan is carried out", event.time
            case _:
                pass


def lines(found: Board, now: float) -> list[str]:
    """The board as lines; a session that is over has no later time than its end."""
    now = now if found.over is None else found.over
    text = [found.problem] if found.problem else []
    text += [f"run {found.plan} to {found.target}: {found.done} of {plural(found.steps, 'step')} done; {found.state}"]
    if found.began is not None:
        passed = duration(max(0.0, now - found.began))
        text.append(f"time     {passed} {'so far' if found.over is None else 'in all'}{_left(found.left, now)}")
    if found.window is not None:
        text.append(f"window   {_ends(found.window, now)}")
    if found.now:
        phase = f": {found.phase}" if found.phase else ""
        text.append(f"now      {found.now}{phase}{_since(found.since, now) if found.waiting is None else ''}")
    if found.waiting is not None:
        what, owner, next_step = found.waiting
        text += [f"waits    for {what}{_since(found.since, now)}", f"owner    {owner}", f"if it lasts  {next_step}"]
    if found.coming:
        text.append(f"then     {'; '.join(found.coming)}")
    text += [f"ledger   {found.ledger}"] if found.ledger else []
    text += [f"no return  {found.no_return}"] if found.no_return else []
    return text


def _left(left: TimeLeft | None, now: float) -> str:
    if left is None:
        return ""
    by = f"{plural(left.measured, 'step')} measured" if left.measured else "nothing measured yet"
    return f"; about {span(*left.at(now))} left (p50 to p90, {by})"


def _ends(window: Window, now: float) -> str:
    found = state(window, now)
    if isinstance(found, Closed):
        return f"{window.name}: {found.why}" + (
            "" if found.opens is None else f"; it opens {local(window, found.opens)}"
        )
    if found.until == math.inf:
        return f"{window.name}: open, it does not close"
    return f"{window.name}: open until {local(window, found.until)}, for {duration(found.until - now)}"


def _since(since: float | None, now: float) -> str:
    return "" if since is None else f", for {duration(max(0.0, now - since))}"
