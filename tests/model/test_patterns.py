"""Patterns of foreign hands: they mean what Python's engine takes them for, and their work is bounded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.patterns import LARGEST, LONGEST, MOST_STEPS, PatternRefused, Work, compiled

HOSTILE = (
    "(a+)+b",
    "(a|a)+b",
    "(a|aa)+b",
    "(?:a?){30}a{30}b",
    "([a-z]+[.]?)*!",
    "(?:(?:a+)+)+b",
    "(x+x+)+y|(a+a+)+y",
    "(.*)(.*)(.*)(.*)(.*)(.*)b",
    "((a{0,9}){0,5}){0,5}b",
    "a*a*a*a*a*a*a*a*b",
    "(a|b|ab)*(a+b*)*c",
)

letters = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\.", "\\w", "-"])
patterns = st.recursive(
    letters,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{1,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=500, deadline=None)
@given(patterns, st.text("ab.-", max_size=8))
def test_a_pattern_means_what_pythons_engine_takes_it_for(text: str, name: str) -> None:
    """Whether the whole text matches, and where the matches one behind the other are (empty ones as Java has them)."""
    try:
        mine, other = compiled(text), re.compile(text)
    except PatternRefused as error:
        assert "may be empty" in str(error)  # noqa: PT017 - most are read
        return
    assert (mine.fullmatch(name) is None) is (other.fullmatch(name) is None)
    spans, at = [], 0
    while at <= len(name) and (found := other.search(name, at)):
        spans.append(found.span())
        at = found.end() + (found.end() == found.start())
    assert [(one.begin, one.end) for one in mine.finditer(name)] == spans


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CN=(.*?),OU=([^,]*).*", "CN=a,OU=b,O=c"),
        ("^(a|ab)(c|bcd)(d*)$", "abcd"),
        ("(a*?)(a*)", "aaa"),
        ("(?:(x)|(y))+", "xy"),
        ("()()", ""),
        ("(a)?b", "b"),
        (r"[\w.-]+\d{2}", "a.b-c42"),
        ("[^-a]+", "b"),
        ("[a-]+", "a-"),
    ],
)
def test_groups_are_those_that_are_preferred(text: str, name: str) -> None:
    """Greedy takes the most, lazy the least, and the first of two ways goes first."""
    mine, other = compiled(text).fullmatch(name), re.compile(text).fullmatch(name)
    assert mine is not None
    assert other is not None
    assert mine.texts[1:] == other.groups()


@pytest.mark.parametrize("text", HOSTILE)
def test_the_work_of_any_pattern_is_bounded_by_its_size_and_the_text(text: str) -> None:
    """Each of them takes exponential or high polynomial time where an engine backtracks."""
    pattern, name, work = compiled(text), "a" * 249, Work()
    assert pattern.fullmatch(name, work) is None
    assert work.steps <= pattern.size * (len(name) + 1)
    assert pattern.size <= LARGEST + 2


@pytest.mark.slow
def test_matches_one_behind_the_other_are_bounded_too() -> None:
    """Where each of thousands of matches would look at the whole text, it is refused in the end."""
    with pytest.raises(PatternRefused, match=f"more than {MOST_STEPS} steps"):
        list(compiled("(?:.*z|a)" + "(?:.*y)?" * 20).finditer("a" * 4000))
    assert len(list(compiled("a|b").finditer("ab" * 2000))) == 4000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "not closed, at character 2"),
        ("a)", "closes no group, at character 2"),
        ("[a", "is not closed"),
        ("[]", "inside of"),
        ("[z-a]", "smaller one first"),
        ("[[:alpha:]]", "inside of"),
        ("[a&&b]", "inside of"),
        ("*a", "nothing before"),
        ("(a*)*", "may be empty"),
        ("(a|b?)+", "may be empty"),
        ("a**", "one repetition follows another"),
        ("a*+", "one repetition follows another"),
        ("a{", "as a letter"),
        ("a{x}", "as a letter"),
        ("a{2,1}", "smaller number first"),
        ("a{99999999999999999999}", "as a letter"),
        ("a{1001}", "at most|of 0 to"),
        ("\\", "nothing follows a backslash"),
        (r"(a)\1", r"\\1 is not read"),
        (r"\bq", r"\\b is not read"),
        ("(?=a)", "only \\(\\?: is read"),
        ("(?i)a", "only \\(\\?: is read"),
        ("(?P<x>a)", "only \\(\\?: is read"),
        ("(" * 900, "groups are nested"),
        ("(?:" * 30 + "a" + ")" * 30, "groups are nested"),
        ("a" * (LONGEST + 1), "at most"),
        ("((a{99}){99}){99}", "too large"),
        ("(?:(?:(?:(?:){999}){999}){999}){999}", "too large"),
        ("a{1000}", "too large"),
    ],
)
def test_what_is_not_read_is_refused_with_its_place(text: str, why: str) -> None:
    """Neither a traceback nor a guess; sizes are refused before they are built."""
    with pytest.raises(PatternRefused, match=why):
        compiled(text)


@settings(max_examples=500, deadline=None)
@given(st.text("ab()[]{}|*+?^$.\\-,0129:", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never another error; what is read means the same to Python's engine, where that reads it."""
    try:
        mine = compiled(text)
    except PatternRefused:
        return
    other = re.compile(text)
    for name in ("", "a", "ab", "b.a", "-"):
        assert (mine.fullmatch(name) is None) is (other.fullmatch(name) is None)
