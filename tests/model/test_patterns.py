"""Patterns of foreign hands: they mean what Python's engine takes them for, and their time is bounded."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.patterns import LONGEST, PatternRefused, compiled, compiled_as_java

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
    "(?:.*z|a)" + "(?:.*y)?" * 20,
)
SECONDS = 20  # of a machine with much else to do; an engine that backtracks takes years

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


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(patterns, st.text("ab.-", max_size=8))
def test_a_pattern_means_what_pythons_engine_takes_it_for(text: str, name: str) -> None:
    """Whether the whole text matches, and where the matches one behind the other are (empty ones as Java has them)."""
    try:
        mine, other = compiled_as_java(text), re.compile(text)
    except PatternRefused as error:
        assert "may be empty" in str(error)  # noqa: PT017 - most are read
        assert compiled(text).fullmatch(name) is bool(re.fullmatch(text, name))
        return
    assert mine.fullmatch(name) is bool(other.fullmatch(name))
    found, at = [], 0
    while at <= len(name) and (one := other.search(name, at)):
        found.append((*one.span(), (one.group(), *[text or "" for text in one.groups()])))
        at = one.end() + (one.end() == one.start())
    assert [(one.begin, one.end, one.texts) for one in mine.finditer(name)] == found


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
    mine, other = next(compiled_as_java(text).finditer(name)), re.compile(text).search(name)
    assert other is not None
    assert mine.texts == (other.group(), *(group or "" for group in other.groups()))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_pattern_takes_long_for_any_text(text: str) -> None:
    """Each of them takes exponential or high polynomial time where an engine backtracks."""
    pattern, name, begun = compiled(text), "a" * 4000, time.monotonic()
    assert not pattern.fullmatch(name)
    assert len(list(pattern.finditer(name))) <= len(name) + 1
    assert time.monotonic() - begun < SECONDS


REFUSED_BY_RE2 = [
    ("(", "missing [)]"),
    ("a)", "unexpected [)]"),
    ("[a", "missing ]"),
    ("[]", "missing ]"),
    ("[z-a]", "invalid character class range"),
    ("*a", "no argument for repetition"),
    ("a**", "bad repetition"),
    ("a*+", "bad repetition"),
    ("a{2,1}", "invalid repetition size"),
    ("a{1001}", "invalid repetition size"),
    ("\\", "trailing"),
    (r"(a)\1", "invalid escape sequence"),
    ("(?=a)", "invalid perl operator"),
    ("(?<!a)b", "invalid"),
    ("(?>a)", "invalid perl operator"),
    ("(" * 900, "missing [)]"),
    ("a" * (LONGEST + 1), "at most"),
    ("((a{99}){99}){99}", "invalid repetition size"),
    ("(?:(?:(?:(?:){999}){999}){999}){999}", "invalid repetition size"),
    (r"(?:\pL{500}){2}", "too large"),
    ("\ud800", "no Unicode"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED_BY_RE2)
def test_what_re2_does_not_take_is_refused_by_name(text: str, why: str) -> None:
    """Neither a traceback nor a guess; sizes are refused before they are built."""
    with pytest.raises(PatternRefused, match=why):
        compiled(text)
    with pytest.raises(PatternRefused):
        compiled_as_java(text)


@pytest.mark.parametrize(
    "text",
    [
        "[[:alpha:]]",  # a set of Java's in a set, a class of RE2's
        "[a[bc]]",
        "[a&&b]",  # an intersection of Java's
        "[]a]",
        "[^]a]",
        "(a*)*",
        "(a|b?)+",
        "(?:(a)?){3}",
        "(|a){2}",
        "^*",
        "a{",
        "a{x}",
        "a{,2}",
        "a{99999999999999999999}",
        r"\bq",
        r"\v",
        r"\Qa\E",
        r"\x41",
        r"\pL",
        r"\C",
        r"[\D]",
        r"[a\v]",
        "(?i)a",
        "(?P<x>a)",
        "(?<x>a)",
    ],
)
def test_what_java_takes_for_something_else_is_refused_with_its_place(text: str) -> None:
    """Where the engines would differ nothing is said of a name."""
    with pytest.raises(PatternRefused, match="at character"):
        compiled_as_java(text)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.text("ab()[]{}|*+?^$.\\-,0129:&", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never another error; what is read as Java's means the same to Python's engine."""
    try:
        mine = compiled_as_java(text)
    except PatternRefused:
        return
    other = re.compile(text)
    for name in ("", "a", "ab", "b.a", "-"):
        assert mine.fullmatch(name) is bool(other.fullmatch(name))


def test_a_text_that_is_no_unicode_is_matched_by_no_pattern() -> None:
    """Nothing is accepted for a name that nobody can have."""
    assert not compiled(".*").fullmatch("a\ud800")
    assert list(compiled(".*").finditer("a\ud800")) == []
