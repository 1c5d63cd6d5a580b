"""A plan's time: when each step would happen, and whether the plan fits its windows (pure).

The same arithmetic decides in a run, before every step: now + p90 of what must follow + reserve <= the window's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from migrate.errors import WindowNeverOpens
from migrate.model.durations import Durations, Estimate
from migrate.model.history import Event, concluded
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.windows import Closed, Open, Window, label, local, longest, state
from migrate.model.words import duration, estimate, plural, span
from migrate.plan.parking import block, in_between


class Fits(StrEnum):
    FITS = "fits"
    PARKS = "will park"
    NOT = "does not fit"


@dataclass(frozen=True, slots=True)
class Room:
    until: float


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why the step may not begin now; `opens` is when it may (None: never by these windows)."""

    why: str
    opens: float | None


@dataclass(frozen=True, slots=True)
class ParkAt:
    """A stop of the plan: after how many of its steps, before which, why, from when until when."""

    after: int
    before: str
    why: str
    since: float
    until: float | None
    half_rolled: bool


@dataclass(frozen=True, slots=True)
class StageTime:
    stage: Stage
    steps: int
    estimate: Estimate
    window: str
    verdict: Fits
    ends: float | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the plan's steps would happen if it was applied at `start`, by their p90."""

    start: float
    stages: tuple[StageTime, ...]
    parks: tuple[ParkAt, ...]
    verdict: Fits

    @property
    def line(self) -> str:
        if self.verdict is not Fits.PARKS:
            return self.verdict.value
        return f"will park after {self.parks[0].after} steps"


def room(window: Window | None, steps: Sequence[PlannedStep], durations: Durations, now: float) -> Room | NoRoom:
    """May the first of these steps begin now?  They are all up to the next parking point."""
    if window is None:
        return Room(float("inf"))
    need = sum(durations.of(step).p90 for step in steps) + window.reserve
    what = f"{estimate(need)} needed ({duration(window.reserve)} of it reserve for a rollback)"
    found = state(window, now)
    match found:
        case Closed(why=why, opens=None):
            return NoRoom(f"{why}, and it does not open any more", None)
        case Closed(why=why, opens=float(opens)):
            if longest(window, now) < need:
                return NoRoom(f"{what}, but {_never_open_so_long(window, now)}", None)
            return NoRoom(f"{why}; it opens {local(window, opens)}", opens)
        case Open(until=until) if now + need <= until:
            return Room(until)
        case Open(until=until):
            if longest(window, until) < need:
                return NoRoom(f"{what}, but {_never_open_so_long(window, now)}", None)
            left = f"window {window.name} is open until {local(window, until)}, {estimate(until - now)} from now"
            return NoRoom(f"{left}; {what}", _next_long_enough(window, until, need))
    raise AssertionError(found)


def _never_open_so_long(window: Window, now: float) -> str:
    return f"window {window.name} never stays open that long: {duration(longest(window, now))} at most"


def _next_long_enough(window: Window, since: float, need: float) -> float | None:
    while True:
        match state(window, since):
            case Closed(opens=None):
                return None
            case Closed(opens=float(opens)):
                since = opens
            case Open(until=until):
                if since + need <= until:
                    return since
                since = until


def lay_out(
    steps: Sequence[PlannedStep], windows: Mapping[Stage, Window], durations: Durations, start: float
) -> Schedule:
    now, parks = start, []
    ends: dict[Stage, float | None] = {}
    words: dict[Stage, Fits] = {}
    index, stuck = 0, False
    while index < len(steps):
        step = steps[index]
        found = steps[index:] if stuck else block(steps, index)
        answer = room(windows.get(step.stage), found, durations, now)
        if isinstance(answer, NoRoom):
            parks.append(ParkAt(index, step.id, answer.why, now, answer.opens, in_between(steps, index)))
            if answer.opens is None:
                words.update(dict.fromkeys((later.stage for later in steps[index:]), Fits.NOT))
                break
            if index:
                words[step.stage] = Fits.PARKS
            now = answer.opens
            continue
        for one in found:
            now += durations.of(one).p90
            ends[one.stage] = now
            words.setdefault(one.stage, Fits.FITS)
        index += len(found)
    verdict = Fits.FITS
    if Fits.NOT in words.values():
        verdict = Fits.NOT
    elif any(park.after for park in parks):
        verdict = Fits.PARKS
    return Schedule(start, tuple(_stages(steps, windows, durations, words, ends)), tuple(parks), verdict)


def _stages(
    steps: Sequence[PlannedStep],
    windows: Mapping[Stage, Window],
    durations: Durations,
    words: Mapping[Stage, Fits],
    ends: Mapping[Stage, float | None],
) -> Iterator[StageTime]:
    for stage in dict.fromkeys(step.stage for step in steps):
        members = [durations.of(step) for step in steps if step.stage is stage]
        sources = ", ".join(dict.fromkeys(entry.source for entry in members))
        total = Estimate(sum(entry.p50 for entry in members), sum(entry.p90 for entry in members), sources)
        window = windows.get(stage)
        name = "any time" if window is None else window.name
        yield StageTime(stage, len(members), total, name, words.get(stage, Fits.NOT), ends.get(stage))


def windows_of(playbook: Playbook, stages: Sequence[Stage]) -> dict[Stage, Window]:
    return {stage: window for stage in stages if (window := playbook.window_of(stage)) is not None}


def window_for(plan: Plan, playbook: Playbook, stage: Stage) -> Window | None:
    """The window that binds a step of that stage in this plan: a rollback has one of its own."""
    if plan.kind.rolls_back:
        return playbook.windows.get(playbook.rollback_window)
    return playbook.window_of(stage)


def must_open(playbook: Playbook, stages: Sequence[Stage], now: float) -> None:
    for stage, window in windows_of(playbook, stages).items():
        found = state(window, now)
        if isinstance(found, Closed) and found.opens is None:
            raise WindowNeverOpens(
                f"window {window.name} of stage {stage.label} does not open any more",
                where=playbook.path,
                why=found.why,
            )


def half_rolled_too_long(schedule: Schedule, limit: float) -> ParkAt | None:
    """The first stop that would leave the cluster half rolled or hybrid for longer than that."""
    for park in schedule.parks:
        if park.half_rolled and (park.until is None or park.until - park.since > limit):
            return park
    return None


Spread = tuple[float, float]  # seconds: p50, p90


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """What is left of a run: the step in progress since `began`, and those after it.

    `measured` counts the steps of this cluster that the figures rest on.
    """

    began: float
    step: Spread
    later: Spread
    measured: int

    def at(self, now: float) -> Spread:
        passed = max(0.0, now - self.began)
        return max(0.0, self.step[0] - passed) + self.later[0], max(0.0, self.step[1] - passed) + self.later[1]


def time_left(steps: Sequence[PlannedStep], durations: Durations, events: Sequence[Event]) -> TimeLeft | None:
    """What the steps take that are not concluded; None where none is left, or no session has begun."""
    done = concluded(events)
    left = [step for step in steps if step.id not in done]
    began = next((event.time for event in reversed(events) if event.name in ("session", "conclude")), None)
    if not left or began is None:
        return None
    if left[0].kind == "soak":
        began = _soaked_since(events, began)
    first, *later = map(durations.of, left)
    sums = sum(entry.p50 for entry in later), sum(entry.p90 for entry in later)
    count = sum(len(durations.measured.get(kind, ())) for kind in {step.kind for step in steps})
    return TimeLeft(began, (first.p50, first.p90), sums, count)


def _soaked_since(events: Sequence[Event], began: float) -> float:
    """When the soak began: behind the last step of the second roll, as far as that was since this boot."""
    boot = next((event.data.get("boot") for event in reversed(events) if event.name == "session"), None)
    for event in reversed(events):
        if event.name == "conclude" and event.data.get("stage") == Stage.KRAFT_MODE.label:
            return event.time if event.data.get("boot") == boot else began
    return began


UTC: Final = Window("UTC", "UTC", (), (), 0.0)


def scheduled(plan: Plan, playbook: Playbook, durations: Durations) -> Plan:
    """The plan with its schedule, and the times of its rollbacks, in the summary: no part of the fingerprint.

    Raises WindowNeverOpens where a stage of it waits for a window that does not open any more.
    """
    stages = list(dict.fromkeys(step.stage for step in plan.steps))
    if not plan.kind.rolls_back:
        must_open(playbook, stages, plan.created)
    windows = {stage: window for stage in stages if (window := window_for(plan, playbook, stage)) is not None}
    found = lay_out(plan.steps, windows, durations, plan.created)
    short: tuple[str, ...] = ()
    rollback = plan.summary.rollback
    if not plan.kind.rolls_back:  # a rollback's own time is the plan's
        short = tuple(_short_reserves(plan, windows, durations))
        rollback = tuple(_with_time(row, durations) for row in rollback)
    summary = replace(
        plan.summary,
        fit=found.line,
        schedule=tuple(_rows(found, windows, playbook)),
        parks=(*_parks(found, windows, playbook), *short),
        rollback=rollback,
    )
    return replace(plan, summary=summary)


def _with_time(row: Mapping[str, str], durations: Durations) -> Mapping[str, str]:
    """What the restarts of a rollback take, all brokers one after the other."""
    if not row.get("restarts", "").isdecimal():
        return row
    number, each = int(row["restarts"]), durations.restart
    return {**row, "time": span(number * each.p50, number * each.p90) if number else "no restart"}


def _short_reserves(plan: Plan, windows: Mapping[Stage, Window], durations: Durations) -> Iterator[str]:
    """The windows whose reserve is shorter than the longest rollback from a stage that they bind."""
    each = durations.restart
    longest_back: dict[Window, int] = {}
    restarts = {row["stage"]: int(row["restarts"]) for row in plan.summary.rollback if row["restarts"].isdecimal()}
    for stage, window in windows.items():
        if restarts.get(stage.label, 0) * each.p90 > window.reserve:
            longest_back[window] = max(longest_back.get(window, 0), restarts[stage.label])
    for window, number in longest_back.items():
        time = span(number * each.p50, number * each.p90)
        yield (
            f"warning: window {window.name} keeps {duration(window.reserve)} for a rollback (reserve), the longest "
            f"from its stages takes about {time} ({plural(number, 'restart')}, {each.source})"
        )


def _rows(found: Schedule, windows: Mapping[Stage, Window], playbook: Playbook) -> Iterator[Mapping[str, str]]:
    shown = next(iter(windows.values()), UTC)  # one zone for all rows: an end in another one looks earlier than it is
    for row in found.stages:
        window = windows.get(row.stage)
        yield {
            "stage": row.stage.label,
            "steps": str(row.steps),
            "p50": estimate(row.estimate.p50),
            "p90": estimate(row.estimate.p90),
            "by": row.estimate.source,
            "window": "any time" if window is None else f"{window.name}: {label(window)}",
            "reserve": "-" if window is None else duration(window.reserve),
            "fits": row.verdict.value,
            "ends": "-" if row.ends is None else local(window or shown, row.ends),
            "limit": f"{duration(playbook.patience(row.stage))} without progress, each step",
        }
    ends = [row.ends for row in found.stages if row.ends is not None]
    if found.stages:
        yield {
            "stage": "total",
            "steps": str(sum(row.steps for row in found.stages)),
            "p50": estimate(sum(row.estimate.p50 for row in found.stages)),
            "p90": estimate(sum(row.estimate.p90 for row in found.stages)),
            "by": "the sum of the stages; it ends at p90, waits for windows included",
            "window": "-",
            "reserve": "-",
            "fits": found.line,
            "ends": local(shown, max(ends)) if len(ends) == len(found.stages) else "-",
        }


def _parks(found: Schedule, windows: Mapping[Stage, Window], playbook: Playbook) -> Iterator[str]:
    for park in found.parks:
        if park.after == 0:
            yield f"begins later, before {park.before}: {park.why}"
        else:
            until = "" if park.until is None else f", until {local(next(iter(windows.values()), UTC), park.until)}"
            yield f"parks after {park.after} steps, before {park.before}{until}: {park.why}"
    too_long = half_rolled_too_long(found, playbook.pace.hybrid_max_age)
    if too_long is not None:
        yield (
            f"half rolled or hybrid before {too_long.before} for longer than hybrid_max_age allows "
            f"({duration(playbook.pace.hybrid_max_age)}): the first roll does not begin"
        )
