"""An assessment: the verdict first, the share of checks it rests on, a row per directory."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate.model.findings import Finding, Severity
from migrate.model.stage import Stage
from migrate.report.assessment import (
    Assessment,
    assessment_html,
    assessment_json,
    assessment_markdown,
    assessment_text,
)
from migrate.report.directories import directory_rows
from tests.report import pages
from tests.testing.worlds import world_at

BLOCKER = Finding("B-ZKN-03", Severity.BLOCKER, "/brokers/topics/<b>|t", "no topic_id", "seen", "cure", 4)
WARNING = Finding("W-DIR-09", Severity.WARNING, "broker 1", "tmpfs")
BLIND = Finding("B-DIR-01", Severity.BLIND_SPOT, "the brokers' disks", "not checked", "not asked for", "", 1)
UNSURE = Finding("W-DIR-09", Severity.BLIND_SPOT, "the brokers' disks", "not checked", "not asked for", "", 99)
PROOF = Finding("B-DIR-01", Severity.BLIND_SPOT, "the ledger", "not checked", "not asked for", "", 99)
INFO = Finding("I-VER-01", Severity.INFO, "x", "y")
ASKED = ("B-DIR-01", "B-ZKN-03", "I-VER-01", "W-DIR-09")


@pytest.mark.parametrize(
    ("found", "word", "share"),
    [
        ((BLOCKER, WARNING, BLIND), "BLOCKED (1 in the way)", "3 of 4 checks made; 1 could not: B-DIR-01"),
        ((WARNING, BLIND), "INCOMPLETE (1 blocking check not made)", "3 of 4 checks made; 1 could not: B-DIR-01"),
        ((BLIND, BLIND), "INCOMPLETE (1 blocking check not made)", "3 of 4 checks made; 1 could not: B-DIR-01"),
        ((UNSURE,), "READY WITH WARNINGS (1 blind spot)", "3 of 4 checks made; 1 could not: W-DIR-09"),
        ((WARNING, UNSURE), "READY WITH WARNINGS (1 warning, 1 blind spot)", "3 of 4 checks made; 1 could"),
        ((PROOF,), "READY WITH WARNINGS (1 blind spot)", "3 of 4 checks made; 1 could not: B-DIR-01"),
        ((WARNING,), "READY WITH WARNINGS (1)", "4 of 4 checks made"),
        ((INFO,), "READY", "4 of 4 checks made"),
        ((), "READY", "4 of 4 checks made"),
    ],
)
def test_ready_rests_on_every_check_that_can_block(found: tuple[Finding, ...], word: str, share: str) -> None:
    """One of them that was not made makes it INCOMPLETE; one that the step itself makes as its proof does not."""
    told = Assessment("c", found, ASKED, ())
    assert str(told.verdict) == word
    assert str(told.checks).startswith(share)


def test_the_share_names_the_checks_that_can_block_first_and_not_all_of_a_hundred() -> None:
    """The JSON has every code."""
    unseen = [replace(UNSURE, code=f"I-AAA-{number}") for number in range(100)]
    told = Assessment("c", (*unseen, BLIND), tuple(entry.code for entry in (*unseen, BLIND)), ())
    assert str(told.checks).startswith("0 of 101 checks made; 101 could not: B-DIR-01, I-AAA-0, ")
    assert str(told.checks).endswith(" and 93 more")
    assert len(json.loads(assessment_json(told))["checks"]["not_made"]) == 101


@pytest.mark.parametrize("alone", [True, False])
def test_an_incomplete_assessment_says_how_to_complete_it(alone: bool) -> None:
    """In every form: by an inventory, or by rights."""
    told = Assessment("c", (BLIND,), ASKED, (), alone)
    page = " ".join(pages.read(assessment_html(told)).words.split())
    for text in (assessment_text(told), assessment_json(told), assessment_markdown(told), page):
        assert "INCOMPLETE" in text
        assert ("connect string" in text) is alone
        assert ("doctor" in text) is not alone
    assert Assessment("c", (), ASKED, (), alone).advice == ""


def test_verdict_and_share_fit_a_terminal_of_80_columns() -> None:
    """Nothing is torn by the terminal."""
    unseen = tuple(replace(BLIND, code=f"B-AAA-{number}") for number in range(100))
    told = Assessment("c", unseen, tuple(entry.code for entry in unseen), ())
    assert max(map(len, assessment_text(told).splitlines())) <= 80


def test_the_pages_are_whole_and_nothing_in_them_is_markup_of_the_clusters() -> None:
    """Names of topics are whatever somebody typed."""
    told = Assessment("pay<ments>", (BLOCKER, BLIND), ASKED, directory_rows(world_at(Stage.ASSESS)))
    page = pages.read(assessment_html(told))
    assert page.faults == []
    assert "BLOCKED (1 in the way)" in page.words
    assert "/data/b2/d2" in page.words
    assert "Log directories of every broker" in assessment_html(told), "the picture stands in it"
    text = assessment_markdown(told)
    assert text.startswith("# BLOCKED (1 in the way)")
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "| `2` | `/data/b2/d2` |" in text
    empty = pages.read(assessment_html(Assessment("c", (), (), ())))
    assert empty.faults == []
    assert "No findings." in empty.words
