"""The ledger filling up: all replicas over time, then one small panel a broker and directory, MIGRATING to VERIFIED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from migrate.model.ledger import ReplicaState
from migrate.report.run_events import node_order
from migrate.report.run_values import Cell, LedgerMoment, RunReport
from migrate.report.svg import box, line, picture, text
from migrate.report.wording import clip, clock, plural

MOST_MOMENTS: Final = 32
STATES: Final = tuple(reversed([state.value for state in ReplicaState]))  # VERIFIED first: it grows from the floor
PANEL: Final = (216.0, 56.0)
WIDTH: Final = 960.0
HEIGHT: Final = 170.0
GUTTER: Final = 56.0


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


def css_class(state: str) -> str:
    """The class that colours a state: `s-not-on-disk`."""
    return "s-" + state.lower().replace(" ", "-") if state in STATES else "s-unknown"


def legend(report: RunReport) -> tuple[str, ...]:
    """The states that occur in this run, VERIFIED first."""
    seen = {
        state for ledger in report.ledgers for cell in ledger.cells for state, count in cell.states.items() if count
    }
    return tuple(state for state in STATES if state in seen)


def overview(report: RunReport) -> Markup:
    """All replicas by state, one stacked bar a ledger, with the stage below the bars."""
    shown = chosen(report.ledgers)
    if not shown:
        return Markup("")
    top = max(ledger.replicas for ledger in shown) or 1
    step = min((WIDTH - GUTTER - 10) / len(shown), 64.0)
    wide = GUTTER + step * len(shown) + 10
    parts: list[Markup] = []
    for number in (0, top // 2, top):
        y = HEIGHT - HEIGHT * number / top + 8
        parts += [
            line((GUTTER, y), (wide - 10, y), "grid"),
            text(GUTTER - 6, y + 4, f"{number:,}", "d", text_anchor="end"),
        ]
    for at, ledger in enumerate(shown):
        states = _sum(ledger.cells)
        tip = f"{clock(ledger.time)} {ledger.step}, offset {ledger.offset}: {_words(states)}"
        parts += _bar((GUTTER + at * step, 8.0, max(step - 3, 1.5), HEIGHT), states, top, tip)
    parts += _stage_names(report, shown, step)
    return picture(wide, HEIGHT + 48, "Replicas by state over time", *parts)


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


def _stage_names(report: RunReport, shown: Sequence[LedgerMoment], step: float) -> list[Markup]:
    stages = {entry.id: entry.stage for entry in report.steps}
    names = [stages.get(ledger.step, ledger.step.split("/")[0]) for ledger in shown]
    parts: list[Markup] = []
    begin, row = 0, 0
    for at in range(1, len(names) + 1):
        if at == len(names) or names[at] != names[begin]:
            left, right = GUTTER + begin * step, GUTTER + at * step - 3
            y = HEIGHT + 14
            parts.append(line((left, y), (right, y), "bracket"))
            low = row % 2 == 1 and right - left < 90
            parts.append(
                text((left + right) / 2, y + (28 if low else 14), clip(names[begin], 16), "d", text_anchor="middle")
            )
            begin, row = at, row + 1
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
