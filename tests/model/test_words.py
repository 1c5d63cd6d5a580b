"""Numbers as a person says them."""

from __future__ import annotations

import pytest

from migrate.model.words import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.99, "10.0 s"),
        (12.4, "12 s"),
        (59.6, "1 min 00 s"),
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
