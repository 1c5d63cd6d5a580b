"""Subjects of commits can be read in a list: short, in one form, each saying what the commit does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = "564f29478139265f324f318269291d0e4c557dfa"  # earlier subjects are older than the rule
LONGEST = 72
ENDINGS = ("ed", "ing")
VERBS = {"Bring", "Embed", "Exceed", "Feed", "Need", "Ping", "Proceed", "Seed", "Shed", "Speed", "Spring", "String"}
NO_VERBS = {
    "A",
    "An",
    "And",
    "Each",
    "Every",
    "For",
    "In",
    "It",
    "No",
    "Of",
    "On",
    "The",
    "This",
    "To",
    "We",
    "What",
    "When",
}


def fault(subject: str) -> str:
    """What is wrong with a subject; empty for a good one."""
    first = re.split(r"[\s,:]", subject, maxsplit=1)[0]
    if len(subject) > LONGEST:
        return f"{len(subject)} characters, at most {LONGEST}"
    if subject.endswith("."):
        return "ends with a full stop"
    if not re.fullmatch(r"[A-Z][a-z]+(-[a-z]+)*", first) or first in NO_VERBS:
        return f"starts with {first!r}, not with a verb and a capital letter"
    if first not in VERBS and first.endswith(ENDINGS):
        return f"starts with {first!r}, not with a verb in its base form"
    return ""


def git(*words: str) -> str | None:
    """What git answers; None where it does not."""
    try:
        answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def test_each_commit_says_what_it_does_in_a_short_line() -> None:
    """From the base on; skipped without the history, as in an unpacked archive or a shallow clone."""
    if git("merge-base", "--is-ancestor", BASE, "HEAD") is None:
        pytest.skip("the base commit is not in this history")
    subjects = (git("log", "--no-merges", "--format=%h %s", f"{BASE}..HEAD") or "").splitlines()
    wrong = [f"{line}: {found}" for line in subjects if (found := fault(line.split(" ", 1)[1]))]
    assert wrong == []


@pytest.mark.parametrize(
    ("subject", "wrong"),
    [
        ("Refuse plans without a fingerprint", ""),
        ("Feed damaged journals to each reader", ""),
        ("Re-read the journal after a kill", ""),
        ("Refuse plans without a fingerprint.", "full stop"),
        ("Refused plans without a fingerprint", "base form"),
        ("Refusing plans without a fingerprint", "base form"),
        ("refuse plans without a fingerprint", "capital letter"),
        ("The plan is refused without a fingerprint", "capital letter"),
        ("W-ZKN-99: refuse", "capital letter"),
        ("Refuse " + "very " * 20 + "old plans", "at most 72"),
        ("", "capital letter"),
    ],
)
def test_what_a_subject_may_not_be(subject: str, wrong: str) -> None:
    """Long, a sentence, a report of the past, or a title."""
    found = fault(subject)
    assert wrong in found
    assert bool(found) == bool(wrong)
