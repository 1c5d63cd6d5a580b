"""The figures of a run: stages, restarts and load over time, and on the same axis the ledger filling up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from migrate.model.ledger import ReplicaState
from migrate.model.stage import Stage
from migrate.report.directories import STATES, css_class
from migrate.report.markup import box, element, line, picture, text
from migrate.report.run_events import node_order
from migrate.report.run_values import NOT_OBSERVED, Cell, LedgerMoment, Restart, RunReport
from migrate.report.wording import clip, clock, duration, plural

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


ROW: Final = 24.0
MOST_MOMENTS: Final = 32
PANEL: Final = (216.0, 56.0)
TOP: Final = 22.0
TALL: Final = 150.0  # of the ledger's figure
BAR: Final = 14.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The page that a figure is drawn for: its width, the room for labels at the left and for words at the right."""

    width: float
    gutter: float
    right: float
    letters: int


WIDE: Final = Frame(960.0, 140.0, 90.0, 22)
NARROW: Final = Frame(366.0, 112.0, 34.0, 15)  # a page of 400 pixels


@dataclass(slots=True)
class Canvas:
    """The drawing while rows are added; `y` is the top of the next row."""

    report: RunReport
    frame: Frame
    scale: TimeScale
    parts: list[Markup]
    y: float = 22.0

    @classmethod
    def of(cls, report: RunReport, frame: Frame) -> Canvas:
        """An empty one, with the axis that all figures of the run have."""
        times = [report.begin, report.end, *_event_times(report)]
        return cls(report, frame, time_scale(times, frame.gutter, frame.width - frame.gutter - frame.right), [])

    def label(self, words: str, class_: str = "t") -> None:
        """The row's name, at the left."""
        place = self.frame.gutter - 10, self.y + BAR - 2
        self.parts.append(text(*place, clip(words, self.frame.letters), class_, text_anchor="end"))

    def bar(self, times: tuple[float, float], class_: str, tip: str) -> float:
        """A bar over that time, at least two units wide; answers where it ends."""
        begin, end = self.scale.x(times[0]), self.scale.x(times[1])
        wide = max(end - begin, 2.0)
        self.parts.append(box((begin, self.y, wide, BAR), class_, tip, rx=2.0))
        return begin + wide

    def drawing(self, label: str) -> Markup:
        """The whole figure: behind the rows what was left out and the axis, before them the marks."""
        back = [*_cuts(self), *_idle(self), *_axis(self)]
        return picture(self.frame.width, self.y + 26, label, *back, *self.parts, *_marks(self))


def timeline(report: RunReport, frame: Frame = WIDE) -> Markup:
    """The figure; an empty drawing where the journal has no stage yet."""
    if not report.stages:
        return Markup("")
    canvas = Canvas.of(report, frame)
    _stages(canvas)
    _restarts(canvas)
    _load(canvas)
    return canvas.drawing("Timeline of stages and restarts")


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
        seen = up if entry.unseen_from is None else max(entry.unseen_from, entry.stopped)
        words = f"down for {duration(up - entry.stopped)}"
        canvas.bar((entry.stopped, seen), "bar-down", f"{entry.step}: {words if entry.down is not None else 'stopped'}")
        if entry.unseen_from is not None:
            until = entry.unseen_to if entry.unseen_to is not None else up
            tip = f"{entry.step}: {NOT_OBSERVED} from {clock(seen)} to {clock(until)}"
            canvas.bar((seen, until), "bar-unseen", tip)
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
        canvas.parts.append(text(canvas.frame.gutter, canvas.y + BAR - 3, "none", "d"))
    canvas.y += ROW


def _axis(canvas: Canvas) -> Iterator[Markup]:
    bottom = canvas.y + 4
    for time in canvas.scale.ticks():
        x = canvas.scale.x(time)
        yield line((x, 14), (x, bottom), "grid")
        yield text(x, bottom + 14, clock(time), "d", text_anchor="middle")
    yield line((canvas.frame.gutter, bottom), (canvas.frame.width - canvas.frame.right, bottom), "axis")


def _cuts(canvas: Canvas) -> Iterator[Markup]:
    for cut in canvas.scale.cuts:
        yield box((cut.x, 14, cut.width, canvas.y - 10), "cut", f"left out: {duration(cut.end - cut.begin)}")
        words = duration(cut.end - cut.begin).split(" ")
        yield text(cut.x + cut.width / 2, 11, " ".join(words[:2]), "d", text_anchor="middle")


def _idle(canvas: Canvas) -> Iterator[Markup]:
    for before, after in zip(canvas.report.sessions, canvas.report.sessions[1:], strict=False):
        begin, end = canvas.scale.x(before.last), canvas.scale.x(after.begin)
        tip = f"no engine ran for {duration(after.begin - before.last)}: {NOT_OBSERVED}"
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


@dataclass(frozen=True, slots=True)
class Panel:
    """One directory of a broker: its drawing, and its present state in words."""

    path: str
    directory: str
    drawing: Markup
    words: str
    verified: bool


@dataclass(frozen=True, slots=True)
class BrokerPanels:
    """A broker's directories; `whole` where every replica of it is VERIFIED now."""

    broker: str
    panels: tuple[Panel, ...]
    words: str
    whole: bool


def legend(report: RunReport) -> tuple[str, ...]:
    """The states that occur in this run, VERIFIED first."""
    seen = {
        state for ledger in report.ledgers for cell in ledger.cells for state, count in cell.states.items() if count
    }
    return tuple(state for state in STATES if state in seen)


def gates(report: RunReport) -> list[tuple[float, str]]:
    """When a broker of the second roll was stopped, and what had been proven of the one before it."""
    rolled = [entry for entry in report.restarts if entry.stage == Stage.KRAFT_MODE.label and entry.stopped is not None]
    found = []
    for before, entry in itertools.pairwise(rolled):
        if before.proven is None or entry.stopped is None or before.node == entry.node:
            continue
        seen = [one for one in report.ledgers if one.time <= entry.stopped]
        counted = f", {seen[-1].verified:,} of {plural(seen[-1].replicas, 'replica')} VERIFIED" if seen else ""
        proven = f"{report.name(before.node)} proven at {clock(before.proven)}{counted}"
        found.append((entry.stopped, f"gate before {report.name(entry.node)}: {proven}"))
    return found


def overview(report: RunReport, frame: Frame = WIDE) -> Markup:
    """All replicas by state on the time line's axis: what one ledger counted holds until the next one."""
    shown = chosen(report.ledgers)
    if not shown:
        return Markup("")
    canvas = Canvas.of(report, frame)
    most = max(ledger.replicas for ledger in shown) or 1
    for number in sorted({0, most // 2, most}):
        y = TOP + TALL * (1 - number / most)
        canvas.parts += [
            line((frame.gutter, y), (frame.width - frame.right, y), "grid"),
            text(frame.gutter - 6, y + 4, f"{number:,}", "d", text_anchor="end"),
        ]
    for at, ledger in enumerate(shown):
        states = _sum(ledger.cells)
        begin = canvas.scale.x(ledger.time)
        end = canvas.scale.x(shown[at + 1].time if at + 1 < len(shown) else max(report.end, ledger.time))
        tip = f"{clock(ledger.time)} {ledger.step}, offset {ledger.offset}: {_words(states)}"
        canvas.parts += _bar((begin, TOP, max(end - begin, 1.0), TALL), states, most, tip)
    canvas.y = TOP + TALL - 4
    canvas.parts += _idle(canvas)
    for time, tip in gates(report):
        x = canvas.scale.x(time)
        points = f"{x - 4:.1f},{TOP - 8:.1f} {x + 4:.1f},{TOP - 8:.1f} {x:.1f},{TOP:.1f}"
        canvas.parts += [
            line((x, TOP), (x, TOP + TALL), "mark-gate"),
            element("polygon", element("title", tip), points=points, class_="gate"),
        ]
    return canvas.drawing("Replicas by state over time")


def brokers(report: RunReport) -> tuple[BrokerPanels, ...]:
    """Panels by broker, brokers that are not whole first."""
    shown = chosen(report.ledgers)
    if not shown:
        return ()
    now = {cell.broker for cell in shown[-1].cells if not cell.directory}  # these still have replicas in no directory
    cells = [cell for ledger in shown for cell in ledger.cells if cell.directory or cell.broker in now]
    places = dict.fromkeys((cell.broker, cell.path, cell.directory) for cell in cells)
    top = max((cell.replicas for cell in cells), default=1)
    found: dict[str, list[Panel]] = {}
    for broker, path, directory in sorted(places, key=lambda place: (node_order(place[0]), place[1:])):
        bars = [_cell(ledger, (broker, path, directory)) for ledger in shown]
        found.setdefault(broker, []).append(_panel(bars, (path, directory), max(top, 1)))
    groups = [_broker(broker, panels, shown[-1]) for broker, panels in found.items()]
    return tuple(sorted(groups, key=lambda group: group.whole))


def _broker(broker: str, panels: Sequence[Panel], last: LedgerMoment) -> BrokerPanels:
    states = _sum([cell for cell in last.cells if cell.broker == broker])
    whole = bool(states) and set(states) == {ReplicaState.VERIFIED.value}
    return BrokerPanels(broker, tuple(panels), _words(states), whole)


def _panel(cells: Sequence[Cell | None], place: tuple[str, str], top: int) -> Panel:
    width, height = PANEL
    step = min(width / len(cells), 30.0)
    parts: list[Markup] = []
    for at, cell in enumerate(cells):
        if cell is not None:
            parts += _bar((at * step, 0.0, max(step - 1.5, 1.0), height), cell.states, top, _words(cell.states))
    parts.append(line((0, height), (width, height), "axis"))
    states = cells[-1].states if cells[-1] else {}
    words = _words(states)
    verified = bool(states) and {state for state, count in states.items() if count} == {ReplicaState.VERIFIED.value}
    drawing = picture(width, height + 1, f"{place[0] or 'no directory with an id'}: {words}", *parts)
    return Panel(place[0], place[1], drawing, words, verified)


def chosen(ledgers: Sequence[LedgerMoment]) -> list[LedgerMoment]:
    """At most 32 of the ledgers: the first, the last, and evenly those between at which a count changed."""
    moments = [entry for entry in ledgers if entry.cells]
    changed = [
        entry
        for at, entry in enumerate(moments)
        if at in (0, len(moments) - 1)
        or [cell.states for cell in entry.cells] != [cell.states for cell in moments[at - 1].cells]
    ]
    pool = moments if len(moments) <= MOST_MOMENTS else changed
    if len(pool) <= MOST_MOMENTS:
        return pool
    picks = {round(at * (len(pool) - 1) / (MOST_MOMENTS - 1)) for at in range(MOST_MOMENTS)}
    return [entry for at, entry in enumerate(pool) if at in picks]


def _bar(place: tuple[float, float, float, float], states: Mapping[str, int], top: int, tip: str) -> list[Markup]:
    x, y, width, height = place
    floor, parts = y + height, []
    for state in STATES:
        if count := states.get(state, 0):
            tall = max(height * count / top, 1.0)
            floor -= tall
            parts.append(box((x, floor, width, tall), css_class(state), tip))
    return parts


def _cell(ledger: LedgerMoment, place: tuple[str, str, str]) -> Cell | None:
    found = [cell for cell in ledger.cells if (cell.broker, cell.path, cell.directory) == place]
    return found[0] if found else None


def _sum(cells: Sequence[Cell]) -> dict[str, int]:
    found: dict[str, int] = {}
    for cell in cells:
        for state, count in cell.states.items():
            if count:
                found[state] = found.get(state, 0) + count
    return {state: found[state] for state in STATES if state in found}


def _words(states: Mapping[str, int]) -> str:
    """`42 of 42 VERIFIED`, or the other states by number, worst news not hidden."""
    total = sum(states.values())
    if not total:
        return "no replicas"
    rest = [f"{states[state]:,} {state}" for state in STATES[1:] if states.get(state)]
    verified = states.get(ReplicaState.VERIFIED.value, 0)
    if not rest:
        return f"all {plural(total, 'replica')} VERIFIED" if total > 1 else "its one replica VERIFIED"
    return ", ".join([f"{verified:,} of {total:,} VERIFIED", *rest])
