"""An assessment: the verdict first, the share of checks it rests on, a row per directory."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate import __version__
from migrate.model.findings import Finding, Severity
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.report import lines
from migrate.report.assessment import (
    Assessment,
    ClusterFacts,
    ZookeeperReads,
    assessment_html,
    assessment_json,
    assessment_lines,
    cluster_facts,
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
READS: ZookeeperReads = {"operations": 7, "most_a_second": None}
ASKED = ("B-DIR-01", "B-ZKN-03", "I-VER-01", "W-DIR-09")


@pytest.mark.parametrize(
    ("found", "word", "share"),
    [
        ((BLOCKER, WARNING, BLIND), "BLOCKED (1 blocker)", "3 of 4 checks made; 1 could not: B-DIR-01"),
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


def test_after_the_end_of_a_migration_no_plan_comes_next() -> None:
    """Its page says what does; before its end the plan comes next."""
    over, before = ClusterFacts(stage="cleanup"), ClusterFacts(stage="finalize")
    assert "Nothing of the migration is left" in Assessment("c", (), ASKED, (), facts=over).next_step
    assert "plan PLAYBOOK" in Assessment("c", (), ASKED, (), facts=before).next_step
    assert "Fix the blockers" in Assessment("c", (BLOCKER,), ASKED, (), facts=over).next_step


def test_the_share_names_the_checks_that_can_block_first_and_not_all_of_a_hundred() -> None:
    """The JSON has every code."""
    unseen = [replace(UNSURE, code=f"I-AAA-{number}") for number in range(100)]
    told = Assessment("c", (*unseen, BLIND), tuple(entry.code for entry in (*unseen, BLIND)), ())
    assert str(told.checks).startswith("0 of 101 checks made; 101 could not: B-DIR-01, I-AAA-0, ")
    assert str(told.checks).endswith(" and 93 more")
    assert len(assessment_json(told, READS)["checks"]["not_made"]) == 101


@pytest.mark.parametrize("alone", [True, False])
def test_an_incomplete_assessment_says_how_to_complete_it(alone: bool) -> None:
    """In every form: by an inventory, or by rights."""
    told = Assessment("c", (BLIND,), ASKED, (), alone)
    page = " ".join(pages.read(assessment_html(told)).words.split())
    for text in (
        lines.text(assessment_lines(told)),
        json.dumps(assessment_json(told, READS)),
        page,
    ):
        assert "INCOMPLETE" in text
        assert ("connect string" in text) is alone
        assert ("doctor" in text) is not alone
    assert Assessment("c", (), ASKED, (), alone).advice == ""


@pytest.mark.parametrize("width", [72, 80, 120])
def test_verdict_and_share_fit_the_terminal(width: int) -> None:
    """Nothing is torn by it."""
    unseen = tuple(replace(BLIND, code=f"B-AAA-{number}") for number in range(100))
    told = Assessment("c", unseen, tuple(entry.code for entry in unseen), ())
    assert max(len(line.text) for line in assessment_lines(told, width)) <= width


def test_the_pages_are_whole_and_nothing_in_them_is_markup_of_the_clusters() -> None:
    """Names of topics are whatever somebody typed."""
    told = Assessment("pay<ments>", (BLOCKER, BLIND), ASKED, directory_rows(world_at(Stage.ASSESS)))
    page = pages.read(assessment_html(told))
    assert page.faults == []
    assert "BLOCKED (1 blocker)" in page.words
    assert "/data/b2/d2" in page.words
    assert "Log directories of every broker" in assessment_html(told), "the picture stands in it"
    empty = pages.read(assessment_html(Assessment("c", (), (), ())))
    assert empty.faults == []
    assert "No findings." in empty.words


def test_cluster_time_version_verdict_and_next_step_stand_at_the_top() -> None:
    """In every form, before the findings; what was not seen says so."""
    facts = ClusterFacts("2026-03-01 21:00:00 UTC", "3.9", 3, 1200)
    told = Assessment("payments", (BLOCKER, WARNING), ASKED, (), facts=facts)
    for text in (
        pages.read(assessment_html(told)).words,
        lines.text(assessment_lines(told)),
    ):
        top = text[: text.index("B-ZKN-03")]
        for words in ("payments", "2026-03-01 21:00:00 UTC", __version__, "BLOCKED", "3.9", "1,200", "assess again"):
            assert words in top, words
    ready = Assessment("payments", (INFO,), ASKED, ())
    assert "kraft-migrate plan" in lines.text(assessment_lines(ready))
    assert "partitions unknown" in lines.text(assessment_lines(ready))
    body = assessment_json(told, READS)
    assert (body["looked"], body["release"], body["brokers"], body["partitions"]) == (
        "2026-03-01 21:00:00 UTC",
        "3.9",
        3,
        1200,
    )


def test_facts_are_counted_where_they_are_seen() -> None:
    """ZooKeeper's partitions until the copy, the metadata's afterwards; a tree that nobody read counts nothing."""
    for stage in (Stage.ASSESS, Stage.HYBRID):
        found = cluster_facts(world_at(stage), "now")
        assert (found.brokers, found.partitions, found.looked) == (3, 6, "now")
        assert found.release == "3.9"
    hidden = replace(
        world_at(Stage.ASSESS), zookeeper=Unknown("hidden"), kraft=Unknown("hidden"), live=Unknown("hidden")
    )
    assert cluster_facts(hidden, "").words == {
        "release": "unknown",
        "brokers": "3",
        "partitions": "unknown",
        "last look": "unknown",
    }
