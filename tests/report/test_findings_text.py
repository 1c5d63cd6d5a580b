"""Findings on their own, as `assess` shows them."""

from __future__ import annotations

from typing import Any

from migrate.model.findings import Finding, Severity
from migrate.report.assessment import SCHEMA, Assessment, assessment_json, assessment_lines
from migrate.report.findings_text import finding_lines, told
from migrate.report.lines import text
from tests.report import story
from tests.report.golden import same_as_golden

ALL = (story.INFO, story.WARNING, *story.BLIND, story.BLOCKER)
FOUND = Assessment("payments-eu1", ALL, tuple(entry.code for entry in ALL), ())


def as_json() -> Any:
    """The whole as a program reads it."""
    return assessment_json(FOUND, {"operations": 7, "most_a_second": None})


def test_the_text_of_findings() -> None:
    """Golden: blockers first, each with evidence and fix; blind spots by what could not be seen."""
    same_as_golden("findings.txt", text(assessment_lines(FOUND)))


def test_blockers_come_first_in_every_form() -> None:
    """Whatever order the checks had."""
    order = [entry["code"] for entry in as_json()["findings"]]

    assert order == ["B-ZKN-05", "W-DIR-07", "B-MIG-02", "B-QRM-01", "I-VER-01"]
    assert [row.code for row in told(ALL)] == ["B-ZKN-05", "W-DIR-07", "?", "I-VER-01"]


def test_the_json_has_a_schema_counts_and_the_callers_facts() -> None:
    """Every field of every finding stands under its own name."""
    body = as_json()

    assert (body["schema"], body["cluster"]) == (SCHEMA, "payments-eu1")
    assert body["zookeeper_reads"] == {"operations": 7, "most_a_second": None}
    assert body["verdict"] == "BLOCKED"
    assert body["checks"] == {"asked": 5, "made": 3, "not_made": ["B-MIG-02", "B-QRM-01"]}
    assert body["counts"] == {"blocker": 1, "warning": 1, "blind_spot": 2, "info": 1}
    first = body["findings"][0]
    assert (first["severity"], first["blocks_from"], first["fix"]) == ("B", 4, story.BLOCKER.fix)


def test_a_blocker_says_from_which_stage_on() -> None:
    """A finding that blocks nothing says nothing."""
    blocks = {row.code: row.blocks for row in told(ALL)}

    assert blocks["B-ZKN-05"] == "Blocks stage 4 migration-mode and every later one"
    assert blocks["W-DIR-07"] == ""
    assert blocks["?"] == "2 checks could not be made: B-MIG-02, B-QRM-01"


def blind(about: str, why: str, *codes: str) -> list[Finding]:
    """What a check could not see."""
    return [Finding(code, Severity.BLIND_SPOT, about, "not checked", why) for code in codes]


def test_what_could_not_be_seen_is_told_by_its_cause() -> None:
    """One stopped broker is one block; what rests on what was not seen is with it; nobody's question is no cause."""
    down, session = "broker 1 is stopped on b1", "no session"
    found = [
        *blind("the Metadata answer of broker 1", down, "B-HLT-07", "B-NET-01"),
        *blind("what broker 1 says of itself", down, *(f"W-HLT-{number:02}" for number in range(9))),
        *blind("ZooKeeper", session, "B-ZKN-01"),
        *blind("the ledger", f"the ledger is seeded from ZooKeeper: {session}", "B-DIR-08"),
        *blind("the comparison", "not asked for", "B-MIG-06"),
        *blind("the configurations", "not asked for", "W-MIG-11"),
    ]
    named = {row.about: (row.message, row.behind) for row in told(found)}
    assert named == {
        down: ("", "2 parts were not seen because of it"),
        "ZooKeeper": (session, "2 parts were not seen because of it"),
        "the comparison": ("not asked for", ""),
        "the configurations": ("not asked for", ""),
    }
    short = text(finding_lines(found, 80, full=False))
    assert "11 checks could not be made: B-HLT-07, B-NET-01" in short
    assert "and 3 more" in short
    assert "Metadata" not in short
    full = text(finding_lines(found, 80))
    assert "the Metadata answer of broker 1: B-HLT-07, B-NET-01" in full
    assert "W-HLT-08" in full
