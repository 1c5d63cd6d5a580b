"""Which parts of a story each commit runs; the others run in `python -m tests long`, before a release."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

NOTES: list[str] = []  # what a test wants said at the end of the output, such as what died before it


def parts(each_commit: Sequence[str], long: Sequence[str]) -> list[ParameterSet]:
    """For `pytest.mark.parametrize`: those of each commit, then those with the marker `long`."""
    both = set(each_commit) & set(long)
    if both:
        msg = f"in both tiers: {', '.join(sorted(both))}"
        raise ValueError(msg)
    return [pytest.param(part) for part in each_commit] + [pytest.param(part, marks=pytest.mark.long) for part in long]
