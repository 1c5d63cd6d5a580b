"""An assessment as a file: verdict first, readiness that blind spots lower, a row a directory."""

from __future__ import annotations

import pytest

from migrate.model.findings import Finding, Severity
from migrate.model.stage import Stage
from migrate.report.assessment import Assessment, assessment_html, assessment_markdown
from migrate.report.directory_rows import directory_rows
from tests.report import pages
from tests.testing.worlds import world_at

BLOCKER = Finding("B-ZKN-03", Severity.BLOCKER, "/brokers/topics/<b>|t", "no topic_id", "seen", "cure", 4)
WARNING = Finding("W-DIR-09", Severity.WARNING, "broker 1", "tmpfs")
BLIND = Finding("B-DIR-01", Severity.BLIND_SPOT, "the brokers' disks", "not checked", "not asked for", "", 1)
INFO = Finding("I-VER-01", Severity.INFO, "x", "y")
ASKED = ("B-DIR-01", "B-ZKN-03", "I-VER-01", "W-DIR-09")


@pytest.mark.parametrize(
    ("found", "word", "share"),
    [
        ((BLOCKER, WARNING, BLIND), "BLOCKED (1 in the way)", "50% (2 of 4"),
        ((WARNING, BLIND), "READY WITH WARNINGS (1 warning, 1 blind spot)", "75% (3 of 4"),
        ((BLIND,), "READY WITH WARNINGS (1 blind spot)", "75% (3 of 4"),
        ((INFO,), "READY", "100% (4 of 4"),
        ((), "READY", "100% (4 of 4"),
    ],
)
def test_the_verdict_and_the_readiness(found: tuple[Finding, ...], word: str, share: str) -> None:
    """What was not seen is no pass; a warning lowers no readiness."""
    told = Assessment("c", found, ASKED, ())
    assert str(told.verdict) == word
    assert told.readiness.startswith(share)


def test_no_check_at_all_is_no_readiness() -> None:
    """0 of 0 is not 100%."""
    assert Assessment("c", (), (), ()).readiness.startswith("0% (0 of 0")


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
