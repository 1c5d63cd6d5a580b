"""Markdown whose words cannot become markup."""

from __future__ import annotations

import pytest

from migrate.report.markup import prose, table, words


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


def test_tables_set_numbers_to_the_right() -> None:
    """By the title's last character, which is not shown."""
    assert table(("Kind", "Fields>"), [("a", "1")]) == ["| Kind | Fields |", "| --- | ---: |", "| a | 1 |"]


def test_sentences_of_a_page_show_code_as_code_and_never_break_a_checks_code() -> None:
    """What a cluster named stays text."""
    assert prose("see `a <b>`: B-ZKN-01, not B-ZKN-1") == (
        'see <code class="whole">a &lt;b&gt;</code>: <span class="whole">B-ZKN-01</span>, not B-ZKN-1'
    )
    assert prose("<b>` \x1b") == "&lt;b&gt;` \\x1b"
