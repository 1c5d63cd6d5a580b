"""Numbers as a person says them."""

from __future__ import annotations

import pytest

from migrate.model.words import duration, estimate


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0 s"),
        (3, "3 s"),
        (9.94, "9.9 s"),
        (9.99, "10 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (185, "3 min 05 s"),
        (3600, "1 h"),
        (7800, "2 h 10 min"),
        (540_000, "6 d 6 h"),
        (604_800, "7 d"),
    ],
)
def test_durations_are_read_at_a_glance(seconds: float, words: str) -> None:
    """Two units at most."""
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (2, "10 s"),
        (47, "50 s"),
        (118, "2 min"),
        (149, "2 min"),
        (1160, "19 min"),
        (7790, "2 h 10 min"),
        (86_400, "1 d"),
    ],
)
def test_an_estimate_has_no_more_digits_than_are_known(seconds: float, words: str) -> None:
    """Tens of seconds, then minutes."""
    assert estimate(seconds) == words
