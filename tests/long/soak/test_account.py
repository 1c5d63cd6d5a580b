"""What the report says of rounds, and that it is whole whenever it is read."""

from __future__ import annotations

import json
from pathlib import Path

from tests.long.soak.account import BAD, GOOD, Attempt, Leg, RoundSeen, Soak, last_reason, read
from tests.long.soak.page import page

STDERR = """\
[    3.1]   hybrid/compare: begins
E-RUN-05: node 1 is not running
  where  hybrid/compare
  why    its process ended
  next   look at its log
report: /somewhere/report.html
"""


def seen(*against: str, ended: bool = True) -> RoundSeen:
    """A round with one leg: the tool was killed once, and then came to its end."""
    attempts = [Attempt(-9, "killed | here", 10.0), Attempt(0, "", 20.0)]
    leg = Leg("there", "tool-killed", "drawn", "hybrid/compare", "SIGKILL to the tool", attempts, 30.0, done=True)
    load = {"acknowledged": 1200, "missing": 0, "duplicated": 0, "longest_wait": 3}
    return RoundSeen(0, 42, "hybrid", "/f", 0.0, [leg], load, {}, [], list(against), 61.0, ended)


def test_a_round_is_good_only_when_it_ended_and_nothing_speaks_against_it() -> None:
    """A round in progress has no verdict; one that is bad already says so."""
    assert seen().verdict == GOOD
    assert seen("a process lives").verdict == seen("a process lives", ended=False).verdict == BAD
    assert seen(ended=False).verdict == ""


def test_the_report_adds_up_what_has_ended(tmp_path: Path) -> None:
    """What is in progress is in the report, and in no sum."""
    soak = Soak(1, 120.0, "c0ffee", 0.0, 7, rounds=[seen(), seen("lost"), seen(ended=False)])
    soak.write(tmp_path / "report.json")
    soak.write(tmp_path / "report.json")
    found = read(tmp_path / "report.json")
    assert found == json.loads(soak.text())
    assert found["totals"] == {
        "rounds": 2,
        "good": 1,
        "faults": 2,
        "calls": 4,
        "acknowledged": 2400,
        "missing": 0,
        "doubled": 0,
    }
    assert [one["verdict"] for one in found["rounds"]] == [GOOD, BAD, ""]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_the_reason_of_an_end_is_the_tools_own_error() -> None:
    """With its place and cause, not the lines of progress around it; without an error the last line."""
    assert last_reason(STDERR) == "E-RUN-05: node 1 is not running; where  hybrid/compare; why    its process ended"
    assert last_reason("one\n\ntwo\n") == "two"
    assert last_reason("") == ""


def test_the_page_shows_each_round_and_what_the_tool_said(tmp_path: Path) -> None:
    """Bad rounds stand out with the reason; a cell never breaks the table; a repeated row makes a second table."""
    soak = Soak(1, 120.0, "c0ffee" * 7, 0.0, 7, "ended", 7200.0, [seen(), seen("process 7 lives"), seen(ended=False)])
    text = page([json.loads(soak.text())] * 2)
    assert text.count("120 minutes: 2 rounds, 1 good; 2 faults struck") == 2
    assert text.count("| tool-killed at hybrid/compare: -9, 0 |") == 4
    assert "**bad**" in text
    assert "- Round 0: process 7 lives" in text
    assert "| tool-killed | -9 | killed / here | 2 |" in text
