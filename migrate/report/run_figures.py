"""The figures of a run in numbers: stages, restarts, load and ledgers, each placed in percent of one time axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.ledger import ReplicaState
from migrate.model.stage import Stage
from migrate.report.heat_map import STATES, HeatMap, HeatRow, Square, css_class, heat_map, square
from migrate.report.run_events import node_order
from migrate.report.run_values import NOT_OBSERVED, Cell, LedgerMoment, Restart, RunReport
from migrate.report.wording import clock, duration, plural

WHOLE: Final = 100.0  # of the axis
CUT_WIDTH: Final = 4.5
BETWEEN_TICKS: Final = 10.0
MOST_MOMENTS: Final = 32
_SHORTEST_CUT: Final = 600.0  # seconds: shorter pauses are part of the story
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


# -- the axis ---
@dataclass(frozen=True, slots=True)
class Bar:
    """What is drawn from `x` on, `width` wide, with its class and a tool tip; `words` are printed beside it."""

    x: float
    width: float
    class_: str
    tip: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the axis: times begin..end are at x..x+width; `cut` where the time between was left out."""

    begin: float
    end: float
    x: float
    width: float
    cut: bool


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Maps a time of the run to its place on the axis."""

    segments: tuple[Segment, ...]

    def x(self, time: float) -> float:
        """Where that time is; times outside are put on the nearer end."""
        if time <= self.segments[0].begin:
            return 0.0
        for segment in self.segments:
            if time <= segment.end:
                share = (time - segment.begin) / (segment.end - segment.begin) if segment.end > segment.begin else 0.0
                return segment.x + share * segment.width
        return WHOLE

    def bar(self, begin: float, end: float, class_: str, tip: str, words: str = "") -> Bar:
        """A bar over that time."""
        x = self.x(begin)
        return Bar(x, max(self.x(end) - x, 0.0), class_, tip, words)

    def ticks(self) -> list[float]:
        """Round times that are far enough apart for their words."""
        found: list[float] = []
        for segment in self.segments:
            if segment.cut or segment.end <= segment.begin:
                continue
            wanted = BETWEEN_TICKS * (segment.end - segment.begin) / segment.width
            step = next((step for step in _STEPS if step >= wanted), _STEPS[-1])
            tick = -(-segment.begin // step) * step
            while tick <= segment.end:
                found.append(tick)
                tick += step
        return found


def time_scale(times: Sequence[float]) -> TimeScale:
    """An axis over the times of events.

    A pause is cut where it is longer than ten minutes and than a fifth of all time that is not such a pause.
    """
    ordered = sorted(set(times)) or [0.0]
    pauses = _pauses(ordered)
    bounds: list[tuple[float, float, bool]] = []
    at = ordered[0]
    for start, stop in pauses:
        bounds.extend([(at, start, False), (start, stop, True)])
        at = stop
    bounds.append((at, ordered[-1], False))
    busy = sum(stop - start for start, stop, cut in bounds if not cut) or 1.0
    room = max(WHOLE - CUT_WIDTH * len(pauses), WHOLE / 4)
    segments: list[Segment] = []
    x = 0.0
    for start, stop, cut in bounds:
        wide = (WHOLE - room) / len(pauses) if cut else room * (stop - start) / busy
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


@dataclass(frozen=True, slots=True)
class Axis:
    """What all figures of a run share: the scale, and what is behind the rows and before them."""

    scale: TimeScale
    ticks: tuple[tuple[float, str], ...]
    behind: tuple[Bar, ...]
    marks: tuple[tuple[float, str, str], ...]  # place, class, words


def axis(report: RunReport) -> Axis:
    """That of a report."""
    scale = time_scale([report.begin, report.end, *_event_times(report)])
    marks = [(scale.x(one.begin), "mark-resume", "resumed") for one in report.sessions if one.resumed]
    final = next((span for span in report.stages if not span.reversible), None)
    if final is not None:
        marks.append((scale.x(final.begin), "mark-final", "no rollback"))
    ticks = tuple((scale.x(time), clock(time)) for time in scale.ticks())
    return Axis(scale, ticks, tuple(_behind(report, scale)), tuple(marks))


def _behind(report: RunReport, scale: TimeScale) -> Iterator[Bar]:
    """What was left out, and where no engine ran."""
    for cut in scale.segments:
        if cut.cut:
            took = duration(cut.end - cut.begin)
            yield scale.bar(cut.begin, cut.end, "cut", f"left out: {took}", " ".join(took.split(" ")[:2]))
    for one, later in itertools.pairwise(report.sessions):
        tip = f"no engine ran for {duration(later.begin - one.last)}: {NOT_OBSERVED}"
        yield scale.bar(one.last, later.begin, "idle", tip)


def _event_times(report: RunReport) -> Iterator[float]:
    for step in report.steps:
        yield from (time for time in (step.begin, step.end) if time is not None)
    for entry in report.restarts:
        yield from (time for time in (entry.stopped, entry.started, entry.proven) if time is not None)
    for session in report.sessions:
        yield from (session.begin, session.last)
    yield from (entry.time for entry in report.ledgers)
    yield from (entry.end for entry in report.waits)


# -- the time line ---
Row = tuple[str, list[Bar]]


def timeline(report: RunReport, on: TimeScale) -> list[Row]:
    """A row a stage, a row a node, one for the load; nothing where the journal has no stage yet."""
    if not report.stages:
        return []
    return [*_stages(report, on), *_restarts(report, on), *_load(report, on)]


def _stages(report: RunReport, on: TimeScale) -> Iterator[Row]:
    for span in report.stages:
        end = report.end if span.end is None else span.end
        took, still = duration(end - span.begin), span.end is None
        class_ = ("bar-stage" if span.reversible else "bar-final") + (" open" if still else "")
        tip = f"{span.stage}: {clock(span.begin)} to {clock(end)}, {took}, {span.passed} of {span.steps} steps"
        yield span.stage, [on.bar(span.begin, end, class_, tip, f"{took}, open" if still else took)]


def _restarts(report: RunReport, on: TimeScale) -> Iterator[Row]:
    nodes: dict[str, list[Restart]] = {}
    for entry in report.restarts:
        nodes.setdefault(entry.node, []).append(entry)
    for node in sorted(nodes, key=lambda node: (report.roles.get(node, ""), node_order(node))):
        yield report.name(node), [bar for entry in nodes[node] for bar in _restart(on, entry, report.end)]


def _restart(on: TimeScale, entry: Restart, end: float) -> Iterator[Bar]:
    if entry.started is not None:
        proven = entry.proven if entry.proven is not None else end
        words = f"proven after {duration(proven - entry.started)}" if entry.proven is not None else "not proven yet"
        yield on.bar(entry.started, proven, "bar-proof", f"{entry.step}: up at {clock(entry.started)}, {words}")
    if entry.stopped is not None:
        up = entry.started if entry.started is not None else end
        seen = up if entry.unseen_from is None else max(entry.unseen_from, entry.stopped)
        words = f"down for {duration(up - entry.stopped)}" if entry.down is not None else "stopped"
        yield on.bar(entry.stopped, seen, "bar-down", f"{entry.step}: {words}")
        if entry.unseen_from is not None:
            until = entry.unseen_to if entry.unseen_to is not None else up
            tip = f"{entry.step}: {NOT_OBSERVED} from {clock(seen)} to {clock(until)}"
            yield on.bar(seen, until, "bar-unseen", tip)
    elif entry.started is not None:
        tip = f"{entry.step}: first start at {clock(entry.started)}"
        yield on.bar(entry.started, entry.started, "tick-start", tip)


def _load(report: RunReport, on: TimeScale) -> Iterator[Row]:
    if report.load is None:
        return
    inside = [gap for gap in report.load.gaps if report.begin <= gap[0] <= report.end]
    bars = [
        on.bar(start, start + seconds, "bar-gap", f"{partition}: no acknowledgement for {duration(seconds)}")
        for start, seconds, partition in inside
    ]
    yield "load: gaps", bars or [Bar(0.0, 0.0, "", "", "none")]


# -- the ledger ---
@dataclass(frozen=True, slots=True)
class Stack:
    """Replicas by state, one on the other: each class and its share of the figure's height; x and width on an axis."""

    parts: tuple[tuple[str, float], ...]
    tip: str
    x: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One directory of a broker: its replicas ledger by ledger, and its present state in words."""

    path: str
    stacks: tuple[Stack, ...]
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
    return tuple(_sum([cell for ledger in report.ledgers for cell in ledger.cells]))


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


def overview(report: RunReport, on: TimeScale) -> list[Stack]:
    """All replicas by state on the time line's axis: what one ledger counted holds until the next one."""
    shown = chosen(report.ledgers)
    most = max((ledger.replicas for ledger in shown), default=1)
    found = []
    for at, ledger in enumerate(shown):
        end = shown[at + 1].time if at + 1 < len(shown) else max(report.end, ledger.time)
        states, x = _sum(ledger.cells), on.x(ledger.time)
        tip = f"{clock(ledger.time)} {ledger.step}, offset {ledger.offset}: {_words(states)}"
        found.append(Stack(_parts(states, most), tip, x, on.x(end) - x))
    return found


def heat_maps(report: RunReport) -> list[tuple[str, HeatMap]]:
    """Every directory before the run's first roll of a broker, at half of the second roll, and at the end."""
    shown = [entry for entry in report.ledgers if any(cell.path for cell in entry.cells)]
    if not shown:
        return []
    rolled = [entry.stopped for entry in report.restarts if entry.stage == Stage.KRAFT_MODE.label and entry.stopped]
    half = [entry for entry in shown if rolled and entry.time <= rolled[len(rolled) // 2]]
    picked = {"first seen": shown[0], "half of the second roll": (half or shown[:1])[-1], "at the end": shown[-1]}
    found: dict[float, tuple[str, LedgerMoment]] = {}
    for name, entry in picked.items():
        found.setdefault(entry.time, (name, entry))
    return [
        (f"{name}, {clock(entry.time)}: {_words(_sum(entry.cells))}", _heat(entry)) for name, entry in found.values()
    ]


def _heat(ledger: LedgerMoment) -> HeatMap:
    rows: dict[str, list[Cell]] = {}
    for cell in sorted(ledger.cells, key=lambda cell: (node_order(cell.broker), cell.path)):
        rows.setdefault(cell.broker, []).append(cell)
    return heat_map(HeatRow(f"broker {broker}", tuple(map(_square, cells))) for broker, cells in rows.items())


def _square(cell: Cell) -> Square:
    return square(cell.states, f"{cell.path or 'in no directory with an id'}: {_words(cell.states)}")


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
    for place in sorted(places, key=lambda place: (node_order(place[0]), place[1:])):
        found.setdefault(place[0], []).append(_panel([_states(ledger, place) for ledger in shown], place[1], top))
    groups = [_broker(broker, panels, shown[-1]) for broker, panels in found.items()]
    return tuple(sorted(groups, key=lambda group: group.whole))


def _broker(broker: str, panels: Sequence[Panel], last: LedgerMoment) -> BrokerPanels:
    states = _sum([cell for cell in last.cells if cell.broker == broker])
    return BrokerPanels(broker, tuple(panels), _words(states), _verified(states))


def _panel(found: Sequence[Mapping[str, int]], path: str, top: int) -> Panel:
    stacks = tuple(Stack(_parts(states, top), _words(states)) for states in found)
    return Panel(path, stacks, _words(found[-1]), _verified(found[-1]))


def _states(ledger: LedgerMoment, place: tuple[str, str, str]) -> dict[str, int]:
    """Nothing where the ledger does not have that directory."""
    return _sum([cell for cell in ledger.cells if (cell.broker, cell.path, cell.directory) == place][:1])


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


def _parts(states: Mapping[str, int], top: int) -> tuple[tuple[str, float], ...]:
    return tuple((css_class(state), WHOLE * count / max(top, 1)) for state, count in states.items())


def _sum(cells: Sequence[Cell]) -> dict[str, int]:
    """By state, VERIFIED first: it grows from the floor; a state of another version comes last."""
    named = dict.fromkeys([*STATES, *(state for cell in cells for state in cell.states)])
    counts = {state: sum(cell.states.get(state, 0) for cell in cells) for state in named}
    return {state: count for state, count in counts.items() if count}


def _verified(states: Mapping[str, int]) -> bool:
    return set(states) == {ReplicaState.VERIFIED.value}


def _words(states: Mapping[str, int]) -> str:
    """`42 of 42 VERIFIED`, or the other states by number, worst news not hidden."""
    total = sum(states.values())
    if not total:
        return "no replicas"
    rest = [f"{count:,} {state}" for state, count in states.items() if state != ReplicaState.VERIFIED.value]
    verified = states.get(ReplicaState.VERIFIED.value, 0)
    if not rest:
        return f"all {plural(total, 'replica')} VERIFIED" if total > 1 else "its one replica VERIFIED"
    return ", ".join([f"{verified:,} of {total:,} VERIFIED", *rest])
