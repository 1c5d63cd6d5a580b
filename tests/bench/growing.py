"""Five times as much: with a race's rounds, or behind them (`tests/bench/run --growth`), one run a side."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench.races import GROWN, MEGABYTE, Race, Result, Run, Runner, further, in_its_own_process, kept


def five_times(entry: Race, folder: Path, size: int, run: Runner) -> dict[str, Run]:
    """One run with 5N of each side that grows; RuntimeError where they did not find the same."""
    larger = folder / "larger"
    larger.mkdir()
    with entry.around(larger, GROWN * size):
        grown = {side: run(entry.name, side, larger, GROWN * size) for side in entry.growing}
    agreed(entry, tuple(grown.values()))
    return grown


def agreed(entry: Race, found: Sequence[Run]) -> None:
    """RuntimeError where they did not find the same."""
    if len({one.answer for one in found}) > 1:
        raise RuntimeError(f"{entry.name}: the two did not find the same")


def behind(entry: Race, found: Result) -> Result:
    """The figures of its rounds with those of 5N, which is tried now."""
    with tempfile.TemporaryDirectory(prefix="race-") as scratch:
        return with_growth(entry, found, five_times(entry, Path(scratch), found.size, in_its_own_process))


def with_growth(entry: Race, found: Result, grown: Mapping[str, Run]) -> Result:
    """The figures of its rounds with those of 5N, as far as it was tried, and what is promised judged by both."""
    peaks = {"ours": found.ours_peak * MEGABYTE, "peer": found.peer_peak * MEGABYTE}
    ours = _share(grown.get("ours"), found.ours_seconds, peaks["ours"])
    peer = _share(grown.get("peer"), found.peer_seconds, peaks["peer"])
    missed = further(entry, peaks, ours[0])
    _, holds = kept(entry, found.ratio, found.ours_seconds)
    return replace(found, ours_growth=ours, peer_growth=peer, missed=missed, holds=holds and not missed)


def _share(grown: Run | None, seconds: float, peak: float) -> tuple[float, float]:
    """5N / N, of time and of the peak in bytes; zeros where it was not tried."""
    return (0.0, 0.0) if grown is None else (grown.seconds / seconds, grown.peak / max(peak, MEGABYTE))
