"""A made-up cluster goes through everything that the benchmark of a run's own scale measures."""

from __future__ import annotations

from tests.bench import scale


def test_every_part_is_measured() -> None:
    """Small; the sizes of what is written for people are told too."""
    found = scale.measure(6, 240)
    assert len(found.seconds) >= 7
    assert all(seconds >= 0 for seconds in found.seconds.values())
    assert all(size > 0 for size in found.sizes.values())
