"""What of a comparison counts, and for whom: rules excuse always, acceptances on the way to KRaft only."""

from __future__ import annotations

from datetime import date

import pytest

from migrate.model.difference import (
    Difference,
    DifferenceClass,
    DifferenceName,
    DiffReport,
    current,
    names_from_text,
    names_to_text,
)
from migrate.model.inventory import AcceptedDifference

PLAIN = Difference("topic-config", "orders", "retention.ms", DifferenceClass.DIFFERS, "1", "2")
EXPECTED = Difference("topic", "orders", "id", DifferenceClass.EXPECTED, None, "x", "RULE")
ACCEPTED = Difference("acl", "a", "", DifferenceClass.ACCEPTED, None, "x", "OPS-7")


def report(**counts: int) -> DiffReport:
    """A comparison that lists one row of each class, and counts so many."""
    return DiffReport(500, 0, {"topic": {"EQUAL": 9, **counts}}, (PLAIN, EXPECTED, ACCEPTED))


def test_a_rule_excuses_for_every_way_and_an_acceptance_for_the_way_to_kraft() -> None:
    """A rollback would lose what was accepted."""
    found = report(DIFFERS=1, EXPECTED=1, ACCEPTED=1)
    assert found.unexcused == (PLAIN,)
    assert found.uncovered == (PLAIN, ACCEPTED)
    assert found.looks == 1


@pytest.mark.parametrize(
    ("counts", "cut", "uncovered_cut"),
    [
        ({"DIFFERS": 1, "ACCEPTED": 1}, False, False),
        ({"DIFFERS": 2, "ACCEPTED": 1}, True, True),
        ({"DIFFERS": 1, "ACCEPTED": 2}, False, True),
        ({"DIFFERS": 1, "ACCEPTED": 1, "EXPECTED": 99}, False, False),
    ],
)
def test_a_list_is_cut_where_more_was_counted_than_it_holds(
    counts: dict[str, int], cut: bool, uncovered_cut: bool
) -> None:
    """What is equal or expected is not listed, and not missed."""
    assert (report(**counts).cut, report(**counts).uncovered_cut) == (cut, uncovered_cut)


def test_an_acceptance_holds_until_the_day_of_its_end() -> None:
    """On that day it counts as a difference again."""
    entries = [
        AcceptedDifference("OPS-1", "topic", "orders", "*", "why", "CHG-1", day)
        for day in ("2026-12-01", "2026-12-02", "2026-12-03")
    ]
    assert [entry.expires for entry in current(entries, date(2026, 12, 2))] == ["2026-12-03"]


def test_names_go_through_text_and_none_is_no_text() -> None:
    """In one order, each once."""
    names = [DifferenceName.of(row) for row in (PLAIN, ACCEPTED, PLAIN)]
    assert names_from_text(names_to_text(names)) == set(names)
    assert (names_to_text([]), names_from_text("")) == ("", frozenset())
