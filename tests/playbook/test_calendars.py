"""Public holidays and calendar files as blackouts: with the real packages, on files as calendars export them."""

from __future__ import annotations

import datetime as dt
import sys
import textwrap
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from migrate.errors import DocumentInvalid, DocumentNotTrusted, PackageMissing
from migrate.model.windows import Closed, Dated, Open, label, state
from migrate.playbook import calendars
from migrate.playbook.calendars import MOST, listed
from migrate.playbook.load import load_playbook

pytest.importorskip("holidays")
pytest.importorskip("recurring_ical_events")
BERLIN = ZoneInfo("Europe/Berlin")
EVENTS = """\
BEGIN:VEVENT
UID:year-end
DTSTART;VALUE=DATE:20261218
DTEND;VALUE=DATE:20270104
SUMMARY:year-end freeze
END:VEVENT
BEGIN:VEVENT
UID:sale
DTSTART:20261127T200030Z
DTEND:20261128T075959Z
SUMMARY:sale
END:VEVENT
BEGIN:VEVENT
UID:payroll
DTSTART;TZID=America/New_York:20260102T120000
DURATION:PT2H
RRULE:FREQ=WEEKLY;BYDAY=FR
EXDATE;TZID=America/New_York:20261211T120000
END:VEVENT
BEGIN:VEVENT
UID:day
DTSTART;VALUE=DATE:20270301
END:VEVENT
"""


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day before all of this."""
    monkeypatch.setattr(calendars, "today", lambda: dt.date(2026, 11, 20))


def many(count: int) -> str:
    """So many events."""
    event = "BEGIN:VEVENT\nUID:{0}\nDTSTART:20261201T000000Z\nDURATION:PT1H\nEND:VEVENT\n"
    return "".join(event.format(number) for number in range(count))


def calendar(folder: Path, events: str = EVENTS) -> Path:
    """A file as calendars export it."""
    path = folder / "freeze.ics"
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//example//EN\n{textwrap.dedent(events)}END:VCALENDAR\n"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def playbook(folder: Path, *deny: str) -> Path:
    """One whose window denies these."""
    path = folder / "playbook.yaml"
    path.write_text(
        "apiVersion: kraft-migrate/v1\nkind: MigrationPlaybook\nmetadata: {name: p}\nspec:\n"
        "  cluster: {inventory: inventory.yaml}\n  windows:\n    default:\n      timezone: Europe/Berlin\n"
        f"      allow: [always]\n      deny: {list(deny)}\n  stages: [{{name: assess}}]\n"
    )
    return path


def at(folder: Path, *deny: str, local: str) -> Open | Closed:
    """Is that window open then?"""
    window = load_playbook(playbook(folder, *deny)).windows["default"]
    return state(window, dt.datetime.fromisoformat(local).replace(tzinfo=BERLIN).timestamp())


# -- holidays --------------------------------------------------------------------------------------------------------
def test_a_countrys_holidays_are_whole_days_in_the_windows_zone(tmp_path: Path) -> None:
    """Christmas is two days, and a state has more of them than its country."""
    closed = at(tmp_path, "holidays DE", local="2026-12-25T00:00")
    assert isinstance(closed, Closed)
    assert closed.why == "a blackout holds: holidays DE (2026-12-25) (Europe/Berlin)"
    assert closed.opens == dt.datetime(2026, 12, 27, tzinfo=BERLIN).timestamp()
    assert isinstance(at(tmp_path, "holidays DE", local="2026-12-24T23:59"), Open)
    assert isinstance(at(tmp_path, "holidays DE", local="2027-01-06T12:00"), Open)
    assert isinstance(at(tmp_path, "holidays DE-BY", local="2027-01-06T12:00"), Closed)


@pytest.mark.parametrize("place", ["XX", "DE-ZZ"])
def test_a_place_that_is_not_known_is_refused(tmp_path: Path, place: str) -> None:
    """With line and column: a holiday nobody knows of would be no holiday."""
    with pytest.raises(DocumentInvalid, match=rf"has none of {place}"):
        load_playbook(playbook(tmp_path, f"holidays {place}"))


# -- calendars -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("local", "held"),
    [
        ("2026-12-18T00:00", "2026-12-18..2027-01-03"),
        ("2027-01-03T23:59", "2026-12-18..2027-01-03"),
        ("2027-01-04T00:00", ""),
        ("2026-11-27T20:59", ""),  # the sale begins at 21:00:30 here
        ("2026-11-27T21:00", "2026-11-27T21:00..2026-11-28T09:00"),
        ("2026-11-28T08:59", "2026-11-27T21:00..2026-11-28T09:00"),
        ("2026-12-04T18:00", "2026-12-04T18:00..2026-12-04T20:00"),  # noon in New York
        ("2026-12-11T19:00", ""),  # the one that was cancelled
        ("2027-03-19T17:00", "2027-03-19T17:00..2027-03-19T19:00"),  # New York's clocks have changed, Berlin's have not
        ("2028-01-07T18:30", "2028-01-07T18:00..2028-01-07T20:00"),
        ("2027-03-01T23:59", "2027-03-01"),
    ],
)
def test_events_deny_as_long_as_they_take(tmp_path: Path, local: str, held: str) -> None:
    """Days, times of another zone, repetitions with exceptions; seconds are rounded to what is longer."""
    calendar(tmp_path)
    found = at(tmp_path, "calendar freeze.ics", local=local)
    if not held:
        assert isinstance(found, Open)
        return
    assert isinstance(found, Closed)
    assert found.why == f"a blackout holds: calendar freeze.ics ({held}) (Europe/Berlin)"


def test_a_window_is_still_one_line(tmp_path: Path) -> None:
    """However many days are listed."""
    calendar(tmp_path)
    window = load_playbook(playbook(tmp_path, "calendar freeze.ics", "holidays DE-BY")).windows["default"]
    assert label(window) == "always Europe/Berlin, never calendar freeze.ics, holidays DE-BY"


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ("", "no event"),
        ("BEGIN:VEVENT\nUID:x\nDTSTART:yesterday\nEND:VEVENT\n", "not understood"),
        ("BEGIN:VEVENT\n", "not understood"),
        ("BEGIN:VEVENT\nUID:x\nDTSTART:20260101T000000Z\nDURATION:PT1H\nRRULE:FREQ=HOURLY\nEND:VEVENT\n", "each hour"),
        (many(MOST + 1), str(MOST)),
        ("BEGIN:VEVENT\nUID:x\nDTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY\nEND:VEVENT\n", "each hour"),
        ("BEGIN:VEVENT\nUID:x\nDTSTART;VALUE=DATE:20190101\nEND:VEVENT\n", "no event"),
    ],
)
def test_a_calendar_that_says_nothing_is_refused(tmp_path: Path, events: str, said: str) -> None:
    """A freeze that is not understood is not passed over."""
    calendar(tmp_path, events)
    with pytest.raises(DocumentInvalid, match=said):
        load_playbook(playbook(tmp_path, "calendar freeze.ics"))


def test_a_calendar_that_is_not_there_or_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """It decides when a run may act."""
    with pytest.raises(DocumentInvalid, match="No such file"):
        load_playbook(playbook(tmp_path, "calendar freeze.ics"))
    calendar(tmp_path).chmod(0o666)
    with pytest.raises(DocumentNotTrusted):
        load_playbook(playbook(tmp_path, "calendar freeze.ics"))


@pytest.mark.parametrize("text", ["holidays", "holidays de", "calendar", "holiday DE"])
def test_what_is_neither_is_refused(tmp_path: Path, text: str) -> None:
    """With the forms that there are."""
    with pytest.raises(DocumentInvalid, match="a span is expected"):
        load_playbook(playbook(tmp_path, text))


def test_without_the_extra_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every package that is missing."""
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises((PackageMissing, ValueError)):
        listed("holidays DE", tmp_path, "UTC")


def test_spans_are_in_order(tmp_path: Path) -> None:
    """For a reader."""
    calendar(tmp_path)
    found = listed("calendar freeze.ics", tmp_path, "Europe/Berlin").spans
    assert list(found) == sorted(found, key=lambda span: span.start)
    assert Dated("2026-12-18T00:00", "2027-01-04T00:00") in found
