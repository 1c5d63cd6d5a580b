"""Does the plan fit its windows?  Each step up to the next parking point is laid into them, one after the other (pure).

The same arithmetic decides in a run, before every step: now + p90 of what must follow + reserve <= the window's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.errors import WindowNeverOpens
from migrate.model.inventory import Playbook
from migrate.model.plan import PlannedStep
from migrate.model.stage import Stage
from migrate.model.windows import Closed, Open, Window, local, longest, state
from migrate.plan.durations import Durations, Estimate
from migrate.plan.parking import block, in_between

MINUTE: Final = 60.0


class Fits(StrEnum):
    """The three answers."""

    FITS = "fits"
    PARKS = "will park"
    NOT = "does not fit"


@dataclass(frozen=True, slots=True)
class Room:
    """There is time for the step, and for the rollback after it."""

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
    """One stage: its steps, its time by p50 and p90, its window, when it would end."""

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
        """The verdict in a few words: `fits`, `will park after 4 steps`, `does not fit`."""
        if self.verdict is not Fits.PARKS:
            return self.verdict.value
        return f"will park after {self.parks[0].after} steps"


def room(window: Window | None, steps: Sequence[PlannedStep], durations: Durations, now: float) -> Room | NoRoom:
    """May the first of these steps begin now?  They are all up to the next parking point."""
    if window is None:
        return Room(float("inf"))
    need = sum(durations.of(step).p90 for step in steps) + window.reserve
    what = f"{_minutes(need)} are needed ({_minutes(window.reserve)} of it reserve for a rollback)"
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
            left = f"window {window.name} is open until {local(window, until)}, {_minutes(until - now)} from now"
            return NoRoom(f"{left}; {what}", _next_long_enough(window, until, need))
    raise AssertionError(found)


def _never_open_so_long(window: Window, now: float) -> str:
    return f"window {window.name} never stays open that long: {_minutes(longest(window, now))} at most"


def _next_long_enough(window: Window, since: float, need: float) -> float | None:
    """When the next opening begins that has room for all of it."""
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
    """The schedule of a plan; `windows` has the stages that are bound."""
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
    """The windows that bind these stages."""
    return {stage: window for stage in stages if (window := playbook.window_of(stage)) is not None}


def must_open(playbook: Playbook, stages: Sequence[Stage], now: float) -> None:
    """Raise WindowNeverOpens where a stage's window has no opening from now on."""
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


def _minutes(seconds: float) -> str:
    return f"{seconds / MINUTE:.0f} min" if seconds >= 2 * MINUTE else f"{seconds:.0f} s"
