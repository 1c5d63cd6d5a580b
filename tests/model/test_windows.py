"""Windows: when they are open, also at both clock changes; property-tested against a minute-by-minute reading."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.windows import (
    Always,
    Closed,
    Dated,
    Interval,
    LastBusinessDay,
    Open,
    Span,
    Weekly,
    Window,
    ever_opens,
    intervals,
    label,
    local,
    longest,
    spelled,
    state,
)

BERLIN = "Europe/Berlin"
EVERY_DAY = tuple(range(7))
HOUR = 3600.0


def at(text: str, zone: str = BERLIN) -> float:
    """A local time as seconds since the epoch."""
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def utc(text: str) -> float:
    """The same in UTC."""
    return at(text, "UTC")


def window(*allow: Span, deny: tuple[Span, ...] = (), zone: str = BERLIN) -> Window:
    """A window called default."""
    return Window("default", zone, allow, deny, 2700.0)


def hours(days: tuple[int, ...], start: str, end: str) -> Weekly:
    """Weekly hours from `21:00` to `05:00`."""
    first, last = (int(text[:2]) * 60 + int(text[3:]) for text in (start, end))
    return Weekly(days, first, last)


NIGHTS = hours((0, 1, 2, 3), "21:00", "05:00")


@pytest.mark.parametrize(
    ("moment", "until"),
    [
        ("2026-11-30T21:00", "2026-12-01T05:00"),  # Monday, at the first second
        ("2026-12-01T04:59", "2026-12-01T05:00"),
        ("2026-12-04T04:00", "2026-12-04T05:00"),  # Friday morning still is Thursday's night
    ],
)
def test_nights_are_open_until_the_morning_after(moment: str, until: str) -> None:
    """A span over midnight belongs to the day on which it begins."""
    assert state(window(NIGHTS), at(moment)) == Open(at(until))


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-12-01T05:00", "2026-12-01T21:00"),  # the end is no part of it
        ("2026-11-30T20:59", "2026-11-30T21:00"),
        ("2026-12-04T21:30", "2026-12-07T21:00"),  # no window on Friday
    ],
)
def test_a_closed_window_says_when_it_opens_and_why_it_is_closed(moment: str, opens: str) -> None:
    """The words of the playbook, and the local time."""
    found = state(window(NIGHTS), at(moment))
    assert isinstance(found, Closed)
    assert found.opens == at(opens)
    assert "Mon-Thu 21:00-05:00 Europe/Berlin" in found.why


def test_a_blackout_wins_and_is_named() -> None:
    """Whole days, the last one included; the night before is cut at midnight."""
    freeze = Dated("2026-12-15T00:00", "2027-01-05T00:00")
    nights = window(NIGHTS, deny=(freeze,))
    assert state(nights, at("2026-12-14T22:00")) == Open(at("2026-12-15T00:00"))
    found = state(nights, at("2026-12-20T22:00"))
    assert isinstance(found, Closed)
    assert found.opens == at("2027-01-05T00:00")  # inside Monday's night
    assert found.why == "a blackout holds: 2026-12-15..2027-01-04 (Europe/Berlin)"


def test_a_blackout_in_the_middle_splits_the_window() -> None:
    """Open before it, open after it."""
    cut = window(NIGHTS, deny=(Dated("2026-11-30T23:00", "2026-12-01T01:00"),))
    found = list(intervals(cut, at("2026-11-30T20:00"), at("2026-12-01T12:00")))
    assert found == [
        (at("2026-11-30T21:00"), at("2026-11-30T23:00")),
        (at("2026-12-01T01:00"), at("2026-12-01T05:00")),
    ]


@pytest.mark.parametrize(
    ("month", "day"), [("2026-01", 30), ("2026-02", 27), ("2026-05", 29), ("2026-10", 30), ("2026-12", 31)]
)
def test_the_last_business_day_is_no_weekend(month: str, day: int) -> None:
    """Months that end on a Saturday or Sunday end on Friday here."""
    closed = window(Always(), deny=(LastBusinessDay(),))
    assert isinstance(state(closed, at(f"{month}-{day}T12:00")), Closed)
    assert state(closed, at(f"{month}-{day - 1}T12:00")) == Open(at(f"{month}-{day}T00:00"))


def test_days_that_touch_are_one_opening() -> None:
    """Nobody has to park at midnight of a weekend."""
    weekend = window(Weekly((5, 6), 0, 1440))
    assert state(weekend, at("2026-12-05T10:00")) == Open(at("2026-12-07T00:00"))


def test_always_is_open_for_ever() -> None:
    """Without an end to park before."""
    assert state(window(Always()), at("2026-12-05T10:00")) == Open(float("inf"))


# -- clock changes: 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00 in Berlin -----------------------------------
def test_a_night_over_the_jump_in_spring_is_an_hour_shorter() -> None:
    """Real seconds count, not the label."""
    nights = window(hours(EVERY_DAY, "21:00", "05:00"))
    start = at("2026-03-28T21:00")
    assert state(nights, start) == Open(start + 7 * HOUR)


def test_a_night_over_the_jump_in_autumn_is_an_hour_longer() -> None:
    """The clock shows 05:00 nine hours after 21:00."""
    nights = window(hours(EVERY_DAY, "21:00", "05:00"))
    start = at("2026-10-24T21:00")
    assert state(nights, start) == Open(start + 9 * HOUR)


def only(found: Window, day: str) -> list[Interval]:
    """What opens on that day."""
    return list(intervals(found, at(f"{day}T00:00"), at(f"{day}T12:00")))


def test_a_time_that_stands_twice_is_read_so_that_the_window_is_shorter() -> None:
    """02:30 is 00:30 and 01:30 UTC on that day: it begins at the later, ends at the earlier of them."""
    begins = window(hours((6,), "02:30", "04:00"))
    assert only(begins, "2026-10-25") == [(utc("2026-10-25T01:30"), utc("2026-10-25T03:00"))]
    ends = window(hours((6,), "01:00", "02:30"))
    assert only(ends, "2026-10-25") == [(utc("2026-10-24T23:00"), utc("2026-10-25T00:30"))]


def test_a_time_that_does_not_exist_is_read_so_that_the_window_is_shorter() -> None:
    """02:30 never comes on that day: a window from it begins at 03:30, one until it ends at 01:30."""
    begins = window(hours((6,), "02:30", "04:00"))
    assert only(begins, "2026-03-29") == [(at("2026-03-29T03:30"), at("2026-03-29T04:00"))]
    ends = window(hours((6,), "01:00", "02:30"))
    assert only(ends, "2026-03-29") == [(at("2026-03-29T01:00"), at("2026-03-29T01:30"))]


def test_a_window_of_the_missing_hour_does_not_open_that_day() -> None:
    """And opens as ever a week later."""
    missing = window(hours((6,), "02:05", "02:55"))
    assert only(missing, "2026-03-29") == []
    assert only(missing, "2026-04-05") == [(at("2026-04-05T02:05"), at("2026-04-05T02:55"))]


def test_a_blackout_at_a_clock_change_is_read_longer() -> None:
    """02:30 to 02:45 in autumn: from the first 02:30 to the second 02:45."""
    closed = window(Always(), deny=(hours((6,), "02:30", "02:45"),))
    found = only(closed, "2026-10-25")
    gaps = [(one[1], two[0]) for one, two in pairwise(found)]
    assert (utc("2026-10-25T00:30"), utc("2026-10-25T01:45")) in gaps


def test_zones_without_clock_changes_and_with_odd_offsets_work() -> None:
    """Kathmandu is 5 h 45 min ahead."""
    nepal = window(hours(EVERY_DAY, "21:00", "22:00"), zone="Asia/Kathmandu")
    assert state(nepal, utc("2026-06-01T15:15")) == Open(utc("2026-06-01T16:15"))


# -- questions about a window ----------------------------------------------------------------------------------------
def test_a_window_that_is_denied_whole_never_opens() -> None:
    """Asked without a clock; a blackout that only covers some weeks is none of it."""
    assert not ever_opens(window(hours((0,), "21:00", "22:00"), deny=(Weekly((0,), 0, 1440),)))
    assert not ever_opens(
        window(Dated("2026-12-20T10:00", "2026-12-20T12:00"), deny=(Dated("2026-12-15T00:00", "2027-01-05T00:00"),))
    )
    assert ever_opens(window(NIGHTS, deny=(Dated("2026-12-15T00:00", "2030-01-05T00:00"),)))
    assert ever_opens(window(Dated("2019-12-20T10:00", "2019-12-20T12:00")))  # once: whether too late, the clock says


def test_dated_windows_of_the_past_do_not_open_any_more() -> None:
    """No opening is promised that will not come."""
    found = state(window(Dated("2026-11-01T20:00", "2026-11-02T04:00")), at("2026-11-03T00:00"))
    assert isinstance(found, Closed)
    assert found.opens is None


def test_the_longest_opening_counts_what_is_left_of_the_present_one() -> None:
    """A step that is longer never fits."""
    assert longest(window(NIGHTS), at("2026-12-01T00:00")) == 8 * HOUR
    once = window(Dated("2026-12-01T20:00", "2026-12-01T22:00"))
    assert longest(once, at("2026-12-01T21:00")) == HOUR
    assert longest(once, at("2026-12-02T21:00")) == 0.0


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (Always(), "always"),
        (LastBusinessDay(), "last-business-day-of-month"),
        (NIGHTS, "Mon-Thu 21:00-05:00"),
        (Weekly((0, 2), 0, 1440), "Mon,Wed"),
        (Dated("2026-12-24T00:00", "2026-12-25T00:00"), "2026-12-24"),
        (Dated("2026-12-24T10:00", "2026-12-25T00:00"), "2026-12-24T10:00..2026-12-25T00:00"),
    ],
)
def test_spans_are_spelled_as_playbooks_write_them(span: Span, text: str) -> None:
    """And the whole window in one line."""
    assert spelled(span) == text
    assert label(window(span)) == f"{text} {BERLIN}"


def test_moments_are_told_in_the_zone_of_the_window() -> None:
    """With the zone's name on that day."""
    assert local(window(NIGHTS), utc("2026-07-01T19:00")) == "Wed 2026-07-01 21:00 CEST"


spans = st.builds(
    Weekly,
    st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    st.integers(0, 23).map(lambda hour: hour * 60),
    st.integers(1, 24).map(lambda hour: hour * 60),
).filter(lambda span: span.start != span.end)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=3),
    st.lists(spans, max_size=2),
    st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    st.integers(int(utc("2026-01-01")), int(utc("2027-12-01"))),
)
def test_intervals_are_what_a_clock_on_the_wall_says(
    allow: list[Weekly], deny: list[Weekly], zone: str, when: int
) -> None:
    """Away from clock changes, a moment is open exactly if its local time is allowed and not denied."""
    here = ZoneInfo(zone)
    start = when - when % HOUR + HOUR / 2
    found = list(intervals(window(*allow, deny=tuple(deny), zone=zone), start, start + 2 * 86400))
    assert all(one[1] < two[0] for one, two in pairwise(found)), "in order and apart"
    for step in range(48):
        moment = start + step * HOUR
        day = dt.datetime.fromtimestamp(moment, here)
        around = [dt.datetime.fromtimestamp(moment + hours * HOUR, here).utcoffset() for hours in (-30, 30)]
        if around[0] != around[1]:
            continue  # a clock change is near: held by the tests above
        wanted = any(_covers(span, day) for span in allow) and not any(_covers(span, day) for span in deny)
        assert any(begin <= moment < end for begin, end in found) == wanted, day


def _covers(span: Weekly, day: dt.datetime) -> bool:
    minutes = day.hour * 60 + day.minute
    if span.end > span.start:
        return day.weekday() in span.days and span.start <= minutes < span.end
    today = day.weekday() in span.days and minutes >= span.start
    return today or ((day.weekday() - 1) % 7 in span.days and minutes < span.end)
