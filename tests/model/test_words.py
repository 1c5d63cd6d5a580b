"""Numbers as a person says them."""

from __future__ import annotations

import pytest

from migrate.model.words import lasting


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.4, "0 s"), (3, "3 s"), (72, "1 min 12 s"), (3600, "1 h"), (604800, "7 d"), (93784, "1 d 2 h")],
)
def test_a_length_of_time_is_said_by_its_two_greatest_parts(seconds: float, said: str) -> None:
    """A soak of a week is no number of seconds."""
    assert lasting(seconds) == said
