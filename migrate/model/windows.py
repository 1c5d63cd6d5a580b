"""Change windows: when a run may act, in the wall-clock time of an IANA zone (pure).

The rule for clock changes: a local time that does not exist (spring) or appears twice (autumn) is read so that what is
allowed is shorter and what is denied is longer.  Lengths are real seconds: a night window over the jump in spring is an
hour shorter than its label, and one over the jump in autumn an hour longer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

DAY: Final = dt.timedelta(days=1)
SATURDAY: Final = 5
HORIZON_DAYS: Final = 400  # how far ahead an opening is looked for: over a year, so that yearly blackouts have passed
BACK_DAYS: Final = 9  # how far back an interval may begin that covers now, beyond dated spans, which are taken whole


@dataclass(frozen=True, slots=True)
class Always:
    """Every moment."""


@dataclass(frozen=True, slots=True)
class Weekly:
    """The same hours on some days of each week: `start` and `end` in minutes after midnight.

    `days` are 0 (Monday) to 6, the day on which the hours begin; with `end` <= `start` they end on the next day.
    """

    days: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dated:
    """From one local time to another, as ISO 8601 without a zone; the end is no part of it."""

    start: str
    end: str


@dataclass(frozen=True, slots=True)
class LastBusinessDay:
    """The whole last day of each month that is Monday to Friday."""


Span = Always | Weekly | Dated | LastBusinessDay
Interval = tuple[float, float]  # seconds since the epoch; the end is no part of it


@dataclass(frozen=True, slots=True)
class Window:
    """When a run may act; `reserve` are the seconds at its end that stay free for a rollback."""

    name: str
    timezone: str
    allow: tuple[Span, ...]
    deny: tuple[Span, ...]
    reserve: float


@dataclass(frozen=True, slots=True)
class Open:
    """The window is open until then (seconds since the epoch; infinity where it never closes)."""

    until: float


@dataclass(frozen=True, slots=True)
class Closed:
    """The window is closed: why, and when it opens next (None: not within `HORIZON_DAYS`)."""

    why: str
    opens: float | None


def state(window: Window, now: float) -> Open | Closed:
    for days in (BACK_DAYS, HORIZON_DAYS):  # asked every second while a run waits, and mostly answered by this week
        horizon = now + days * 86400.0
        found = next(intervals(window, now, horizon), None)
        if found is not None and found[0] > now:
            return Closed(_why(window, now), found[0])
        if found is not None and found[1] < horizon:
            return Open(found[1])
    return Closed(_why(window, now), None) if found is None else Open(found[1])


def intervals(window: Window, since: float, until: float) -> Iterator[Interval]:
    """The open intervals that end after `since` and begin before `until`, in order and apart.

    One that goes on at `until` ends there, except where nothing ever ends it: then it ends at infinity.
    """
    zone = ZoneInfo(window.timezone)
    denied = _merged(_all(window.deny, zone, since, until, shorter=False))
    allowed = _merged(_all(window.allow, zone, since, until, shorter=True))
    for start, end in _without(allowed, denied):
        if end > since and start < until:
            yield start, end


def longest(window: Window, now: float) -> float:
    """Seconds of the longest opening from now on, within `HORIZON_DAYS`; 0 where it never opens."""
    found = intervals(window, now, now + HORIZON_DAYS * 86400.0)
    return max((end - max(start, now) for start, end in found), default=0.0)


def ever_opens(window: Window) -> bool:
    """Is there any moment that the window's own words allow?  Asked without a clock, when a playbook is read.

    Weekly hours are looked at over the horizon from a day without dated spans; dated ones at their own time.
    """
    dated = [span for span in window.allow if isinstance(span, Dated)]
    zone = ZoneInfo(window.timezone)
    bounds = [_dated(span, zone, shorter=True) for span in dated]
    if any(next(intervals(window, start, end), None) for start, end in bounds if end > start):
        return True
    last = max((_dated(span, zone, shorter=False)[1] for span in window.deny if isinstance(span, Dated)), default=0.0)
    return next(intervals(window, last, last + HORIZON_DAYS * 86400.0), None) is not None


def local(window: Window, moment: float) -> str:
    """The moment in the window's zone: `Tue 2026-12-01 21:00 CET`."""
    return dt.datetime.fromtimestamp(moment, ZoneInfo(window.timezone)).strftime("%a %Y-%m-%d %H:%M %Z")


def label(window: Window) -> str:
    denied = f", never {', '.join(map(spelled, window.deny))}" if window.deny else ""
    return f"{', '.join(map(spelled, window.allow))} {window.timezone}{denied}"


DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def spelled(span: Span) -> str:
    match span:
        case Always():
            return "always"
        case LastBusinessDay():
            return "last-business-day-of-month"
        case Dated(start=start, end=end):
            return _dates(start, end)
        case Weekly(days=days, start=start, end=end):
            hours = "" if (start, end) == (0, 1440) else f" {_hours(start)}-{_hours(end)}"
            return f"{_day_names(days)}{hours}"


def _dates(start: str, end: str) -> str:
    """Whole days by their first and last day."""
    if not (start.endswith("T00:00") and end.endswith("T00:00")):
        return f"{start}..{end}"
    first, last = start[:10], (dt.date.fromisoformat(end[:10]) - DAY).isoformat()
    return first if first == last else f"{first}..{last}"


def _day_names(days: tuple[int, ...]) -> str:
    if len(days) > 1 and days == tuple(range(days[0], days[-1] + 1)):
        return f"{DAY_NAMES[days[0]]}-{DAY_NAMES[days[-1]]}"
    return ",".join(DAY_NAMES[day] for day in days)


def _hours(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _why(window: Window, now: float) -> str:
    zone = ZoneInfo(window.timezone)
    for span in window.deny:
        if _holds(span, zone, now):
            return f"a blackout holds: {spelled(span)} ({window.timezone})"
    return f"window {window.name} is {label(window)}; now it is {local(window, now)}"


def _holds(span: Span, zone: ZoneInfo, now: float) -> bool:
    return any(start <= now < end for start, end in _spans(span, zone, now, now + 1.0, shorter=False))


# -- spans as intervals ----------------------------------------------------------------------------------------------
def _all(spans: Iterable[Span], zone: ZoneInfo, since: float, until: float, *, shorter: bool) -> Iterator[Interval]:
    for span in spans:
        yield from _spans(span, zone, since, until, shorter=shorter)


def _spans(span: Span, zone: ZoneInfo, since: float, until: float, *, shorter: bool) -> Iterator[Interval]:
    match span:
        case Always():
            yield float("-inf"), float("inf")
        case Dated():
            start, end = _dated(span, zone, shorter=shorter)
            if end > start:
                yield start, end
        case LastBusinessDay():
            for day in _days(zone, since, until):
                if day == _last_business_day(day):
                    yield _bounds(_at(day, 0), _at(day, 1440), zone, shorter=shorter)
        case Weekly(days=days, start=first, end=last):
            for day in _days(zone, since, until):
                if day.weekday() in days:
                    start, end = _bounds(
                        _at(day, first), _at(day, last if last > first else last + 1440), zone, shorter=shorter
                    )
                    if end > start:
                        yield start, end


def _days(zone: ZoneInfo, since: float, until: float) -> Iterator[dt.date]:
    day = dt.datetime.fromtimestamp(since, zone).date() - BACK_DAYS * DAY
    last = dt.datetime.fromtimestamp(until, zone).date() + DAY
    while day <= last:
        yield day
        day += DAY


def _at(day: dt.date, minutes: int) -> dt.datetime:
    return dt.datetime.combine(day, dt.time()) + dt.timedelta(minutes=minutes)


def _dated(span: Dated, zone: ZoneInfo, *, shorter: bool) -> Interval:
    return _bounds(dt.datetime.fromisoformat(span.start), dt.datetime.fromisoformat(span.end), zone, shorter=shorter)


def _bounds(start: dt.datetime, end: dt.datetime, zone: ZoneInfo, *, shorter: bool) -> Interval:
    """Two local times as moments; where one of them is none or two, the rule for clock changes decides."""
    starts, ends = _moments(start, zone), _moments(end, zone)
    return (max(starts), min(ends)) if shorter else (min(starts), max(ends))


def _moments(local_time: dt.datetime, zone: ZoneInfo) -> tuple[float, float]:
    return tuple(local_time.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))  # type: ignore[return-value] # two


def _last_business_day(day: dt.date) -> dt.date:
    last = (day.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    while last.weekday() >= SATURDAY:
        last -= DAY
    return last


def _merged(found: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _without(allowed: list[Interval], denied: list[Interval]) -> Iterator[Interval]:
    for begin, end in allowed:
        start = begin
        for off, on in denied:
            if on <= start or off >= end:
                continue
            if off > start:
                yield start, off
            start = max(start, on)
        if start < end:
            yield start, end
