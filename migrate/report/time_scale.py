"""The time axis of a run: seconds to x, with long idle times (a park between two windows) cut out and labelled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CUT_WIDTH: Final = 34.0
_SHORTEST_CUT: Final = 600.0  # seconds: shorter pauses are part of the story
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the axis: times begin..end drawn on x..x+width; `cut` where the time between was left out."""

    begin: float
    end: float
    x: float
    width: float
    cut: bool


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Maps a time of the run to x."""

    segments: tuple[Segment, ...]

    def x(self, time: float) -> float:
        """Where that time stands; times outside are put on the nearer end."""
        first, last = self.segments[0], self.segments[-1]
        if time <= first.begin:
            return first.x
        for segment in self.segments:
            if time <= segment.end:
                share = (time - segment.begin) / (segment.end - segment.begin) if segment.end > segment.begin else 0.0
                return segment.x + share * segment.width
        return last.x + last.width

    @property
    def cuts(self) -> tuple[Segment, ...]:
        """The idle times that were left out."""
        return tuple(segment for segment in self.segments if segment.cut)

    def ticks(self, room: float = 70.0) -> list[float]:
        """Round times, at least `room` apart on the page."""
        found: list[float] = []
        for segment in self.segments:
            if segment.cut or segment.end <= segment.begin:
                continue
            wanted = room * (segment.end - segment.begin) / segment.width
            step = next((step for step in _STEPS if step >= wanted), _STEPS[-1])
            tick = -(-segment.begin // step) * step
            while tick <= segment.end:
                found.append(tick)
                tick += step
        return found


def time_scale(times: Sequence[float], x: float, width: float) -> TimeScale:
    """An axis over sorted times of events, on x..x+width.

    A pause is cut where it is longer than ten minutes and than a fifth of all time that is not such a pause.
    """
    ordered = sorted(set(times)) or [0.0]
    begin, end = ordered[0], ordered[-1]
    pauses = _pauses(ordered)
    bounds: list[tuple[float, float, bool]] = []
    at = begin
    for start, stop in pauses:
        bounds.extend([(at, start, False), (start, stop, True)])
        at = stop
    bounds.append((at, end, False))
    busy = sum(stop - start for start, stop, cut in bounds if not cut) or 1.0
    room = max(width - CUT_WIDTH * len(pauses), width / 4)
    cut_width = (width - room) / len(pauses) if pauses else 0.0
    segments: list[Segment] = []
    for start, stop, cut in bounds:
        wide = cut_width if cut else room * (stop - start) / busy
        segments.append(Segment(start, stop, x, wide, cut))
        x += wide
    return TimeScale(tuple(segments))


def _pauses(ordered: Sequence[float]) -> list[tuple[float, float]]:
    gaps = sorted(itertools.pairwise(ordered), key=lambda gap: gap[0] - gap[1])
    busy = ordered[-1] - ordered[0]
    chosen: list[tuple[float, float]] = []
    for start, stop in gaps:
        busy -= stop - start
        if stop - start < max(_SHORTEST_CUT, busy / 5):
            break
        chosen.append((start, stop))
    return sorted(chosen)
