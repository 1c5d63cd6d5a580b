"""Which parts of a story each commit runs; the others run in `python -m tests long`, before a release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet

NOTES: list[str] = []  # what a test wants said at the end of the output, such as what died before it


def parts(every: Iterable[str], *, each_commit: Sequence[str]) -> list[ParameterSet]:
    """For `pytest.mark.parametrize`: every part, with the marker `long` where it is not one of each commit's."""
    found = [pytest.param(part, marks=() if part in each_commit else pytest.mark.long) for part in every]
    if missing := set(each_commit) - {one.values[0] for one in found}:
        msg = f"no such part: {', '.join(sorted(missing))}"
        raise ValueError(msg)
    return found
