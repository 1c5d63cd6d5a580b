"""The report of a run as one self-contained HTML file without script or network, with its timeline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from migrate.report import figure_ledger
from migrate.report.figure_diff import counts_matrix
from migrate.report.run_events import node_order
from migrate.report.run_values import Restart, RunReport
from migrate.report.svg import box, element, line, picture, text
from migrate.report.templating import render
from migrate.report.wording import clip, clock, duration

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
        """Where that time is; times outside are put on the nearer end."""
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


WIDTH: Final = 960.0
GUTTER: Final = 140.0
ROW: Final = 24.0
BAR: Final = 14.0
RIGHT: Final = 90.0  # room for the words beside the last bar


@dataclass(slots=True)
class Canvas:
    """The drawing while rows are added; `y` is the top of the next row."""

    report: RunReport
    scale: TimeScale
    parts: list[Markup]
    y: float = 22.0

    def label(self, words: str, class_: str = "t") -> None:
        """The row's name, at the left."""
        self.parts.append(text(GUTTER - 10, self.y + BAR - 2, clip(words, 22), class_, text_anchor="end"))

    def bar(self, times: tuple[float, float], class_: str, tip: str) -> float:
        """A bar over that time, at least two units wide; answers where it ends."""
        begin, end = self.scale.x(times[0]), self.scale.x(times[1])
        wide = max(end - begin, 2.0)
        self.parts.append(box((begin, self.y, wide, BAR), class_, tip, rx=2.0))
        return begin + wide


def timeline(report: RunReport) -> Markup:
    """The figure; an empty drawing where the journal has no stage yet."""
    if not report.stages:
        return Markup("")
    times = [report.begin, report.end, *_event_times(report)]
    canvas = Canvas(report, time_scale(times, GUTTER, WIDTH - GUTTER - RIGHT), [])
    _stages(canvas)
    _restarts(canvas)
    _load(canvas)
    back = [*_cuts(canvas), *_idle(canvas), *_axis(canvas)]
    return picture(WIDTH, canvas.y + 26, "Timeline of stages and restarts", *back, *canvas.parts, *_marks(canvas))


def _event_times(report: RunReport) -> Iterator[float]:
    for step in report.steps:
        yield from (time for time in (step.begin, step.end) if time is not None)
    for entry in report.restarts:
        yield from (time for time in (entry.stopped, entry.started, entry.proven) if time is not None)
    for session in report.sessions:
        yield from (session.begin, session.last)
    yield from (entry.time for entry in report.ledgers)
    yield from (entry.end for entry in report.waits)


def _stages(canvas: Canvas) -> None:
    for span in canvas.report.stages:
        end = canvas.report.end if span.end is None else span.end
        took = duration(end - span.begin)
        class_ = "bar-stage" if span.reversible else "bar-final"
        tip = f"{span.stage}: {clock(span.begin)} to {clock(end)}, {took}, {span.passed} of {span.steps} steps"
        canvas.label(span.stage)
        edge = canvas.bar((span.begin, end), class_ + ("" if span.end is not None else " open"), tip)
        words = took if span.end is not None else f"{took}, open"
        canvas.parts.append(text(edge + 5, canvas.y + BAR - 3, words, "d"))
        canvas.y += ROW


def _restarts(canvas: Canvas) -> None:
    nodes: dict[str, list[Restart]] = {}
    for entry in canvas.report.restarts:
        nodes.setdefault(entry.node, []).append(entry)
    if nodes:
        canvas.y += 8
    names = sorted(nodes, key=lambda node: (canvas.report.roles.get(node, ""), node_order(node)))
    for node in names:
        canvas.label(canvas.report.name(node))
        for entry in nodes[node]:
            _restart(canvas, entry)
        canvas.y += ROW


def _restart(canvas: Canvas, entry: Restart) -> None:
    end = canvas.report.end
    if entry.started is not None:
        proven = entry.proven if entry.proven is not None else end
        words = f"proven after {duration(proven - entry.started)}" if entry.proven is not None else "not proven yet"
        canvas.bar((entry.started, proven), "bar-proof", f"{entry.step}: up at {clock(entry.started)}, {words}")
    if entry.stopped is not None:
        up = entry.started if entry.started is not None else end
        canvas.bar((entry.stopped, up), "bar-down", f"{entry.step}: down for {duration(up - entry.stopped)}")
    elif entry.started is not None:
        x = canvas.scale.x(entry.started)
        points = f"{x - 5:.1f},{canvas.y + BAR:.1f} {x + 5:.1f},{canvas.y + BAR:.1f} {x:.1f},{canvas.y:.1f}"
        tip = element("title", f"{entry.step}: first start at {clock(entry.started)}")
        canvas.parts.append(element("polygon", tip, points=points, class_="tick-start"))


def _load(canvas: Canvas) -> None:
    load = canvas.report.load
    if load is None:
        return
    canvas.label("load: gaps")
    inside = [gap for gap in load.gaps if canvas.report.begin <= gap[0] <= canvas.report.end]
    for start, seconds, partition in inside:
        canvas.bar((start, start + seconds), "bar-gap", f"{partition}: no acknowledgement for {duration(seconds)}")
    if not inside:
        canvas.parts.append(text(GUTTER, canvas.y + BAR - 3, "none", "d"))
    canvas.y += ROW


def _axis(canvas: Canvas) -> Iterator[Markup]:
    bottom = canvas.y + 4
    for time in canvas.scale.ticks():
        x = canvas.scale.x(time)
        yield line((x, 14), (x, bottom), "grid")
        yield text(x, bottom + 14, clock(time), "d", text_anchor="middle")
    yield line((GUTTER, bottom), (WIDTH - RIGHT, bottom), "axis")


def _cuts(canvas: Canvas) -> Iterator[Markup]:
    for cut in canvas.scale.cuts:
        yield box((cut.x, 14, cut.width, canvas.y - 10), "cut", f"left out: {duration(cut.end - cut.begin)}")
        words = duration(cut.end - cut.begin).split(" ")
        yield text(cut.x + cut.width / 2, 11, " ".join(words[:2]), "d", text_anchor="middle")


def _idle(canvas: Canvas) -> Iterator[Markup]:
    for before, after in zip(canvas.report.sessions, canvas.report.sessions[1:], strict=False):
        begin, end = canvas.scale.x(before.last), canvas.scale.x(after.begin)
        tip = f"no engine ran for {duration(after.begin - before.last)}"
        yield box((begin, 14, end - begin, canvas.y - 10), "idle", tip)


def _marks(canvas: Canvas) -> Iterator[Markup]:
    for session in canvas.report.sessions:
        if session.resumed:
            x = canvas.scale.x(session.begin)
            yield line((x, 14), (x, canvas.y + 4), "mark-resume")
            yield text(x, 11, "resumed", "mark-words", text_anchor="middle")
    for span in canvas.report.stages:
        if not span.reversible:
            x = canvas.scale.x(span.begin)
            yield line((x, 14), (x, canvas.y + 4), "mark-final")
            yield text(x, 11, "no rollback", "final-words", text_anchor="middle")
            return


OPEN_BROKERS = 6  # more whole brokers than this are folded


def run_html(report: RunReport) -> str:
    """The whole file."""
    groups = figure_ledger.brokers(report)
    whole = [group for group in groups if group.whole]
    fold = len(whole) > OPEN_BROKERS
    return render(
        "run.html.jinja",
        report=report,
        timeline=timeline(report),
        overview=figure_ledger.overview(report),
        legend=[(state, figure_ledger.css_class(state)) for state in figure_ledger.legend(report)],
        shown=[group for group in groups if not (fold and group.whole)],
        folded=whole if fold else [],
        final=any(not span.reversible for span in report.stages),
        matrix=counts_matrix(report.diffs[-1]) if report.diffs else "",
    )
