"""The report of a rehearsal: three ways, what was down in the middle one, and every claim."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate.model.history import LoadSummary
from migrate.report.rehearsal import (
    COUNTED_WHOLE,
    Leg,
    PartitionDown,
    Rehearsal,
    down_between,
    load_between,
    markdown,
    values,
)
from migrate.report.run_pages import run_html
from migrate.report.run_report import build
from migrate.report.run_values import Claim, Extra, Holds
from tests.report import pages, story

LOAD = LoadSummary(
    sent=1000,
    acknowledged=990,
    read=990,
    missing=0,
    duplicated=0,
    gaps=((105.0, 2.5, "orders-1"), (106.0, 1.5, "orders-1"), (300.0, 9.0, "orders-2")),
    leaderless=(
        (101.0, 0.5, "orders-0", "restart of broker 1"),
        (110.0, 0.25, "orders-0", "restart of broker 2"),
        (99.0, 7.0, "orders-3", "RF 1"),
    ),
)
STORY = Rehearsal(
    cluster="lab",
    stage="hybrid",
    legs=(
        Leg("there", 10.0, 80.0, "PROVEN"),
        Leg("rollback", 100.0, 30.0, "PROVEN"),
        Leg("again, to the end", 131.0, 159.0, "PROVEN"),
    ),
    readiness="READY from hybrid; 1 roll",
    gap=4.2,
    away={"0": 6.0, "1": 7.5},
    down=down_between(LOAD, 100.0, 130.0),
    claims=(Claim("Nothing is lost.", Holds.YES, "read whole"), Claim("Later.", Holds.NOT_DUE, "-")),
    load=LOAD,
)


def test_downtime_is_of_the_rollback_alone_and_by_partition() -> None:
    """Times without a leader add up, of the waits the longest counts; what began before or after is not its."""
    assert down_between(LOAD, 100.0, 130.0) == (
        PartitionDown("orders-0", 0.75, 0.0, "restart of broker 1"),
        PartitionDown("orders-1", 0.0, 2.5, ""),
    )
    assert down_between(LOAD, 1.0, 2.0) == ()


def test_the_report_begins_with_its_word_and_has_gap_readiness_and_downtime() -> None:
    """Each number with its unit."""
    text = markdown(STORY)
    assert text.startswith("# Rollback from hybrid: PROVEN\n")
    for part in ("4.2 s without a controller", "READY from hybrid", "broker 1 7.5 s", "orders-0", "990 acknowledged"):
        assert part in text, part
    assert "2 partitions; every other one had a leader" in text


@pytest.mark.parametrize("holds", [Holds.NO, Holds.NOT_SEEN])
def test_one_claim_that_does_not_hold_is_enough(holds: Holds) -> None:
    """One that could not be checked, too."""
    story = replace(STORY, claims=(*STORY.claims, Claim("x", holds, "y")))
    assert not story.proven
    assert markdown(story).startswith("# Rollback from hybrid: NOT PROVEN\n")
    assert values(story)["proven"] is False


def test_what_was_not_measured_is_said() -> None:
    """No load, no gap: neither is a zero."""
    text = markdown(replace(STORY, down=None, gap=None, load=None))
    assert "Not measured: no load ran." in text
    assert "there was always a controller" in text
    assert values(replace(STORY, down=None, gap=None))["down"] is None
    assert "No partition was ever seen without a leader" in markdown(replace(STORY, down=()))


def test_values_are_plain_json() -> None:
    """Through JSON and back they are the same."""
    told = values(STORY)
    assert json.loads(json.dumps(told)) == told
    assert (told["gap_seconds"], told["rollback_from"], len(told["legs"])) == (4.2, "hybrid", 3)
    want = {"partition": "orders-0", "leaderless": 0.75, "unacknowledged": 0.0, "why": "restart of broker 1"}
    assert told["down"][0] == want


def test_the_load_beside_a_rollback_is_judged_in_its_report() -> None:
    """With the gaps and partitions of that time, one that reaches into it too; records are said to be of all."""
    beside = load_between(LOAD, 100.0, 130.0)
    assert [gap[2] for gap in beside.gaps] == ["orders-1", "orders-1"]
    assert [one[0] for one in beside.leaderless] == [101.0, 110.0, 99.0]
    assert (beside.acknowledged, beside.missing) == (990, 0)
    report = build(story.plan(), story.journal(), beside, Extra(True, blind_spots=(COUNTED_WHOLE,)))
    text = pages.read(run_html(report)).words
    assert "990 acknowledged, 990 read, 0 missing" in text
    assert "This report judges no load" not in text
    assert "its records were counted once, at the end of the whole rehearsal" in text
