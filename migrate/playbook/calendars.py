"""Blackouts that others keep: a calendar file (RFC 5545) and a country's public holidays, as dated spans of a window.

Both are taken from some days ago to a year and a half from now: an opening is looked for 400 days ahead.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from migrate.model.requirements import require
from migrate.model.windows import Dated, Listed
from migrate.playbook.document import MAX_BYTES, read_trusted

BACK: Final = dt.timedelta(days=14)
AHEAD: Final = dt.timedelta(days=550)
MOST: Final = 2_000  # events of one calendar in that time
HOLIDAYS: Final = re.compile(r"holidays (?P<country>[A-Z]{2})(?:-(?P<part>[A-Z0-9]{1,3}))?")
CALENDAR: Final = re.compile(r"calendar (?P<path>\S.*)")
TOO_OFTEN: Final = re.compile(rb"FREQ=(SECONDLY|MINUTELY|HOURLY)", re.IGNORECASE)  # each of them would be an event
DAY: Final = dt.timedelta(days=1)
MINUTE: Final = dt.timedelta(minutes=1)


def today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def is_listed(text: str) -> bool:
    """Does a playbook write a calendar or holidays so?"""
    return any(form.fullmatch(text) for form in (HOLIDAYS, CALENDAR))


def listed(text: str, near: Path, timezone: str) -> Listed:
    """The spans; a calendar's path is relative to `near`.

    Raises:
        ValueError: there is no such country, or the file cannot be read or understood.
        PackageMissing: the extra `calendar` is not installed.
        DocumentNotTrusted: others could have written the file.
    """
    if (match := HOLIDAYS.fullmatch(text)) is not None:
        return Listed(text, _holidays(match["country"], match["part"]))
    match = CALENDAR.fullmatch(text)
    assert match is not None
    try:
        raw = read_trusted(near / match["path"])
    except OSError as error:
        raise ValueError(f"{match['path']} cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ValueError(f"{match['path']} has more than {MAX_BYTES // 1024} KiB")
    return Listed(text, _events(raw, match["path"], ZoneInfo(timezone)))


def _holidays(country: str, part: str | None) -> tuple[Dated, ...]:
    require("holidays")
    import holidays  # noqa: PLC0415 - an extra

    try:
        first, last = today() - BACK, today() + AHEAD
        found = holidays.country_holidays(country, subdiv=part, years=range(first.year, last.year + 1))
    except NotImplementedError as error:
        place = country if part is None else f"{country}-{part}"
        raise ValueError(
            f"the package `holidays` has none of {place}: ISO 3166 codes are expected, such as DE or DE-BY"
        ) from error
    return tuple(_whole_days(day, day + DAY) for day in sorted(found))


def _events(raw: bytes, path: str, zone: ZoneInfo) -> tuple[Dated, ...]:
    require("icalendar", "recurring_ical_events")
    import icalendar  # noqa: PLC0415 - an extra
    import recurring_ical_events  # noqa: PLC0415 - an extra

    first, last = today() - BACK, today() + AHEAD
    found = []
    try:
        calendar = icalendar.Calendar.from_ical(raw)
        if TOO_OFTEN.search(raw):
            raise ValueError("an event repeats each hour or more often")  # noqa: TRY301 - told like all else that is wrong
        for event in recurring_ical_events.of(calendar).between(first, last):
            found.append(_span(event.start, event.end, zone))
            if len(found) > MOST:
                raise ValueError(f"it has more than {MOST} events")  # noqa: TRY301 - told like all else that is wrong
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is not understood as a calendar: {error}") from error
    if not found:
        raise ValueError(f"{path} has no event from {first} to {last}: a calendar that denies nothing")
    return tuple(sorted(found, key=lambda span: (span.start, span.end)))


def _span(start: dt.date, end: dt.date, zone: ZoneInfo) -> Dated:
    """Whole minutes that hold the event, in the window's zone; times without a zone are in it already."""
    if not isinstance(start, dt.datetime) or not isinstance(end, dt.datetime):
        return _whole_days(start, max(end, start + DAY))
    begin, finish = (_local(moment, zone) for moment in (start, end))
    begin, up = begin.replace(second=0, microsecond=0), finish.replace(second=0, microsecond=0)
    return Dated(_text(begin), _text(up if up == finish and up > begin else up + MINUTE))


def _moment(day: dt.date) -> dt.datetime:
    return day if isinstance(day, dt.datetime) else dt.datetime.combine(day, dt.time())


def _local(moment: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    return (moment if moment.tzinfo is None else moment.astimezone(zone)).replace(tzinfo=None)


def _whole_days(first: dt.date, end: dt.date) -> Dated:
    return Dated(_text(_moment(first)), _text(_moment(end)))


def _text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="minutes")
