"""Markdown whose words cannot become markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.report.markup import block, code, prose, table, words


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain words, 12 %", "plain words, 12 %"),
        ("a|b", "a\\|b"),
        ("<b>*x*</b>", "\\<b\\>\\*x\\*\\</b\\>"),
        ("[l](http://e.example)", "\\[l\\](http\\://e.example)"),
        ("www.e.example", "www\\.e.example"),
        ("a\nb", "a\\\\x0ab"),
        ("a &#x202e; b", "a \\&\\#x202e; b"),
    ],
)
def test_words_stay_words(text: str, safe: str) -> None:
    """Every character with a meaning is escaped; addresses are no links."""
    assert words(text) == safe


@given(st.text(alphabet="`a| \n", max_size=20))
def test_a_code_span_cannot_be_ended_by_its_text(text: str) -> None:
    """The fence is longer than any run of backticks inside."""
    span = code(text)
    if not span:
        return
    fence = re.match("`+", span.replace(" ", "", 1) if span.startswith("` ") else span)
    assert fence
    inside = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inside)
    assert "\n" not in span
    assert not re.search(r"(?<!\\)\|", span)


@given(st.lists(st.text(alphabet="`+-a\n", max_size=12), max_size=4))
def test_a_block_ends_where_we_end_it(lines: list[str]) -> None:
    """No line of a diff closes the fence."""
    first, *inside, last = block(lines, "diff")

    assert first == last + "diff"
    assert len(inside) == len(lines)
    assert not any(line.strip().startswith(last) for line in inside)


def test_tables_set_numbers_to_the_right() -> None:
    """By the title's last character, which is not shown."""
    assert table(("Kind", "Fields>"), [("a", "1")]) == ["| Kind | Fields |", "| --- | ---: |", "| a | 1 |"]


def test_sentences_of_a_page_show_code_as_code_and_never_break_a_checks_code() -> None:
    """What a cluster named stays text."""
    assert prose("see `a <b>`: B-ZKN-01, not B-ZKN-1") == (
        'see <code class="whole">a &lt;b&gt;</code>: <span class="whole">B-ZKN-01</span>, not B-ZKN-1'
    )
    assert prose("<b>` \x1b") == "&lt;b&gt;` \\x1b"
