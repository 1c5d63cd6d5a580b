"""A run's events as lines: what a person needs to know, once; the rest is for the journal."""

from __future__ import annotations

import time

import pytest

from migrate.cli.progress import ProgressLines, line_of, tone_of
from migrate.model.history import Event
from migrate.report.lines import Tone

WAIT = {"step": "s", "what": "the copy", "owner": "the driver", "next": "look at its log", "progress": "1"}


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("session", {"resumed": False}, "the run begins"),
        ("session", {"resumed": True}, "resuming from the journal"),
        ("stage", {"stage": "copy"}, "stage copy"),
        ("intend", {"step": "copy/copy", "title": "watch"}, "  copy/copy: watch"),
        ("effect", {"effect": "stop", "node": "1", "detail": ""}, "    stop 1"),
        (
            "effect",
            {"effect": "write-config", "node": "1", "detail": "/k/b1.properties"},
            "    write-config 1: /k/b1.properties",
        ),
        ("waiting", WAIT, "    waiting for the copy (owner: the driver; look at its log)"),
        ("waiting", {**WAIT, "next": "nothing: it comes"}, "    waiting for the copy (owner: the driver)"),
        ("diff", {"offset": 7, "unexcused": 0}, "    compared at metadata offset 7: 0 unexpected differences"),
        (
            "diff",
            {"offset": 7, "unexcused": 0, "counts": {"partition": {"EQUAL": 1190}, "acl": {"EQUAL": 4, "EXPECTED": 1}}},
            "    compared 1,195 fields at metadata offset 7: 0 unexpected differences",
        ),
        (
            "conclude",
            {"step": "s", "outcome": "Verified", "evidence": ["a", "b"], "reason": ""},
            "  s: Verified - a; b",
        ),
        ("conclude", {"step": "s", "outcome": "Refused", "evidence": [], "reason": "no"}, "  s: Refused - no"),
        ("conclude", {"step": "s", "outcome": "AlreadyDone", "evidence": [""], "reason": ""}, "  s: AlreadyDone"),
        ("stop", {"reason": "a disk died", "code": ""}, "stopped: a disk died"),
        ("end", {"target": "cleanup"}, "the plan is complete: cleanup"),
        ("end", {"target": "cleanup", "back": False}, "the plan is complete: cleanup"),
        (
            "end",
            {"target": "assess", "back": True},
            "rolled back: the cluster is in ZooKeeper mode, as before the migration",
        ),
        ("end", {"target": "copy", "back": True}, "the copy was made again, with a fresh quorum"),
    ],
)
def test_each_event_that_matters_has_its_line(name: str, data: dict[str, object], line: str) -> None:
    """A wait names its owner, and what to do if there is something to do."""
    assert line_of(name, data) == line


@pytest.mark.parametrize("name", ["run", "effected", "diff-file", "ledger", "note", "of a later release"])
def test_what_only_the_journal_needs_has_none(name: str) -> None:
    """Nothing is printed for it."""
    assert line_of(name, {}) == ""


def test_lines_carry_the_time_of_day_and_are_not_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """The zone stands once before them; no colour where there is no terminal; on stderr: answers go to stdout."""
    lines = ProgressLines()
    for number in range(2):
        lines(Event(number, 1_764_000_000.0, "waiting", WAIT))
    lines(Event(3, 0.0, "note", {"key": "k", "value": "v"}))
    lines.print("a page")
    said = capsys.readouterr()
    assert said.out == ""
    zone, first, page = said.err.splitlines()
    assert zone == time.strftime("times of day: %Z (UTC%z)", time.localtime(1_764_000_000))
    told = "    waiting for the copy (owner: the driver; look at its log)"
    assert first == time.strftime("%H:%M:%S ", time.localtime(1_764_000_000)) + told
    assert page == "a page"


@pytest.mark.parametrize(
    ("outcome", "tone"),
    [
        ("Verified", Tone.GOOD),
        ("AlreadyDone", Tone.DIM),
        ("NotYet", Tone.WARN),
        ("Refused", Tone.BAD),
        ("Failed", Tone.BAD),
        ("Unknown", Tone.BAD),
        ("of a later release", Tone.BAD),
    ],
)
def test_a_conclusion_is_coloured_by_its_outcome(outcome: str, tone: Tone) -> None:
    """What is not known to be good is never green; the word is in the line as well."""
    data = {"step": "s", "outcome": outcome, "evidence": [], "reason": "why"}
    assert tone_of("conclude", data) is tone
    assert outcome in line_of("conclude", data)
