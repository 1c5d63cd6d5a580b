"""When a run may act: the keys `windows` and `window`, and their rules."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from migrate.model.windows import DAY_NAMES, Always, Dated, LastBusinessDay, Span, Weekly, Window, ever_opens
from migrate.model.written import Duration, Text
from migrate.playbook.document import Location
from migrate.playbook.fields import Fault, Section

DAY: Final = "(?:" + "|".join(DAY_NAMES) + ")"
WEEKLY: Final = re.compile(rf"({DAY}(?:-{DAY})?(?:,{DAY}(?:-{DAY})?)*)(?: ([0-2]\d:[0-5]\d)-([0-2]\d:[0-5]\d))?")
MOMENT: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?"
DATED: Final = re.compile(rf"({MOMENT})(?:\.\.({MOMENT}))?")
MINUTES: Final = 1440
LONG: Final = 16  # hours of a night with which nobody means a change window
EXAMPLES: Final = (
    "a span is expected: 'Mon-Thu 21:00-05:00', 'Sat,Sun', '2026-12-15..2027-01-04' (whole days), "
    "'2026-12-01T21:00..2026-12-02T05:00', 'last-business-day-of-month' or 'always'"
)


def span_of(text: str) -> Span:
    """The span that a playbook writes so; ValueError with examples for any other text."""
    if text == "always":
        return Always()
    if text == "last-business-day-of-month":
        return LastBusinessDay()
    if (match := WEEKLY.fullmatch(text)) is not None:
        start, end = (0, MINUTES) if match[2] is None else (_minutes(match[2]), _minutes(match[3]))
        if start in (end, MINUTES):
            raise ValueError(f"{text!r} has no length; a whole day is written without hours, such as 'Sat'")
        return Weekly(_days(match[1]), start, end)
    if (match := DATED.fullmatch(text)) is not None:
        start_text, end_text = match[1], match[2] or match[1]
        begin, finish = _moment(start_text), _moment(end_text)
        if len(end_text) == len("2026-12-15"):
            finish += dt.timedelta(days=1)  # a day is meant whole
        elif match[2] is None:
            raise ValueError(f"{text!r} has no end: write it as BEGIN..END")
        if finish <= begin:
            raise ValueError(f"{text!r} ends before it begins")
        return Dated(begin.isoformat(timespec="minutes"), finish.isoformat(timespec="minutes"))
    raise ValueError(EXAMPLES)


def _minutes(text: str) -> int:
    minutes = int(text[:2]) * 60 + int(text[3:])
    if minutes > MINUTES:
        raise ValueError(f"{text} is no time of a day: 00:00 to 24:00")
    return minutes


def _days(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAY_NAMES.index(first), DAY_NAMES.index(last or first)
        found += [(begin + step) % 7 for step in range((end - begin) % 7 + 1)]
    if len(set(found)) != len(found):
        raise ValueError(f"a day appears twice in {text!r}")
    return tuple(sorted(found))


def _moment(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text.replace(" ", "T"))
    except ValueError as error:
        raise ValueError(f"{text!r} is no day, or no time of one") from error


def _allowed(text: str) -> str:
    if isinstance(span_of(text), LastBusinessDay):
        raise ValueError("this span only denies")  # noqa: TRY004 - pydantic collects ValueErrors
    return text


def _denied(text: str) -> str:
    if isinstance(span_of(text), Always):
        raise ValueError("a window that is always denied never opens")  # noqa: TRY004 - pydantic collects ValueErrors
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError; odd paths are OSErrors
        raise ValueError("an IANA time zone is expected, such as Europe/Berlin or UTC") from error
    return text


TimeZone = Annotated[Text, AfterValidator(_zone)]


class WindowSection(Section):
    """When a run may act.  Blackouts (`deny`) win; `reserve` at the end stays free for a rollback.

    A local time that does not exist or is ambiguous is read so that the window is shorter.
    """

    timezone: TimeZone = "UTC"
    allow: Annotated[list[Annotated[Text, AfterValidator(_allowed)]], Field(min_length=1)]
    deny: list[Annotated[Text, AfterValidator(_denied)]] = Field(default_factory=list)
    reserve: Duration = 2700.0

    def window(self, name: str) -> Window:
        return Window(
            name, self.timezone, tuple(map(span_of, self.allow)), tuple(map(span_of, self.deny)), self.reserve
        )


def long_hours(windows: Mapping[str, WindowSection]) -> Iterator[str]:
    """Hours that end on the next day and leave next to none of it: two times that were mixed up look so."""
    for name, section in windows.items():
        for text in section.allow:
            match span_of(text):
                case Weekly(_, start, end) if 0 < end <= start and (hours := (end - start + MINUTES) / 60) > LONG:
                    yield f"window {name}: {text} is {hours:.4g} hours of each of its days"


def closed_faults(windows: Mapping[str, WindowSection]) -> Iterator[Fault]:
    for name, section in windows.items():
        if not ever_opens(section.window(name)):
            at, why = ("spec", "windows", name), "what it denies covers all that it allows"
            yield Fault(at, f"window {name} never opens", why, "take a blackout out, or allow more")


def window_faults(windows: Mapping[str, WindowSection], at: Location, window: str | None) -> Iterator[Fault]:
    if window is not None and window not in windows:
        known = ", ".join(windows) or "none"
        yield Fault((*at, "window"), f"there is no window {window!r}", f"`windows` has: {known}")
