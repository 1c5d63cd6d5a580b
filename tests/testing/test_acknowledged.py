"""The gap that a restart costs is the longest one that touches it."""

from __future__ import annotations

import pytest

from tests.testing.acknowledged import Restart, downtime

RESTART = Restart("bare", 1, 100.0, 110.0)


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([99.9, 100.1, 103.1, 109.9, 110.2], 6.8),
        ([90.0, 109.0, 111.0], 19.0),  # it began before the restart: the whole of it counts
        ([99.0, 100.5, 130.0], 29.5),  # and behind it
        ([1.0, 2.0], 108.0),
        ([], 10.0),
    ],
)
def test_the_longest_gap_that_touches_a_restart(times: list[float], gap: float) -> None:
    """A partition that was never acknowledged is down throughout."""
    assert downtime({0: times}, RESTART).longest == pytest.approx(gap)


def test_sum_and_percentile_are_over_partitions() -> None:
    """Of a hundred partitions the p99 leaves the worst one out."""
    found = downtime({number: [100.0, 100.0 + number / 100, 110.0] for number in range(100)}, RESTART)
    assert found.longest == pytest.approx(10.0)
    assert found.p99 == pytest.approx(9.99)
    assert found.total == pytest.approx(sum(max(n / 100, 10 - n / 100) for n in range(100)))
