"""Words of every report."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.report.wording import clip, clock, moment, plural, printable, size


@given(st.text())
def test_no_text_reaches_a_terminal_with_a_character_that_acts(text: str) -> None:
    """Whatever a cluster names things: no control, no direction override, no line separator is left."""
    shown = printable(text)

    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Zl", "Zp", "Cs"}
    assert "\n" not in shown


@pytest.mark.slow
@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_ordinary_text_is_not_touched(text: str) -> None:
    """Letters of any script stay as they are."""
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb", "a\\x0ab"),
        ("x\u202ey", "x\\u202ey"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("größe-日本", "größe-日本"),
    ],
)
def test_what_acts_is_spelled_out(text: str, shown: str) -> None:
    """Escape sequences, new lines, bidirectional overrides, tags, lone surrogates."""
    assert printable(text) == shown


def test_times_are_utc_and_impossible_ones_are_still_shown() -> None:
    """A report may not fall over a clock that was wrong."""
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert clock(1_772_398_800.9) == "21:00:00"
    assert moment(1e30).endswith("s since 1970")


def test_numbers_agree_with_their_nouns() -> None:
    """One file, two files, thousands set apart."""
    assert plural(1, "file") == "1 file"
    assert plural(12_345, "file") == "12,345 files"
    assert plural(2, "start or restart", "starts and restarts") == "2 starts and restarts"
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (1023, "1023 B"), (931_979, "910.1 KiB"), (82_659_106_816, "77.0 GiB"), (2**60, "1024.0 PiB")],
)
def test_sizes_are_read_at_a_glance(count: int, words: str) -> None:
    """Powers of 1024, one digit."""
    assert size(count) == words
