"""Heat maps: rows of squares, coloured by state; one set of values, drawn as terminal lines and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.ledger import ReplicaState
from migrate.model.stage import MIGRATION, Stage
from migrate.report.lines import Line, Tone
from migrate.report.wording import clip

STATES: Final = tuple(reversed([state.value for state in ReplicaState]))  # VERIFIED first: it grows from the floor
LETTERS: Final = {
    "VERIFIED": "V",
    "MISMATCH": "X",
    "LOST": "L",
    "UNASSIGNED": "U",
    "MIGRATING": "m",
    "MOVING": ">",
    "NOT REGISTERED": "R",
    "NOT ON DISK": "N",
    "TWO COPIES": "2",
    "UNKNOWN": "?",
}
TONES: Final = {"VERIFIED": Tone.GOOD, "MIGRATING": Tone.WARN, "MOVING": Tone.WARN, "UNASSIGNED": Tone.WARN}
EMPTY: Final = "no replica states"
DEAD: Final = "not healthy"
PROGRESS: Final = ("done", "half done", "to come", "unknown")  # of a stage


@dataclass(frozen=True, slots=True)
class Square:
    """One square: `state` is what the key says of its colour and letter."""

    state: str
    letter: str
    css: str
    tone: Tone
    tip: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row's name, its squares, its cells under the map's columns, and what of it needs a look ("" for nothing)."""

    name: str
    squares: tuple[Square, ...]
    cells: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """All rows; `key` has one square of each state that occurs."""

    rows: tuple[HeatRow, ...]
    columns: tuple[str, ...]
    key: tuple[Square, ...]

    def lines(self, width: int) -> Iterator[Line]:
        """For a terminal: a letter per square, the key last."""
        names = max((len(row.name) for row in self.rows), default=0)
        most = max((len(row.squares) for row in self.rows), default=0)
        wide = [max(map(len, column)) for column in zip(self.columns, *(row.cells for row in self.rows), strict=True)]
        head = "".join(f"  {name:>{room}}" for name, room in zip(self.columns, wide, strict=True))
        if head:
            yield Line(" " * (names + 2 + most) + head, Tone.DIM)
        for row in self.rows:
            cells = "".join(f"  {cell:>{room}}" for cell, room in zip(row.cells, wide, strict=True))
            letters = [(one.letter, one.tone) for one in row.squares]
            before, behind = f"{row.name:<{names}}  ", " " * (most - len(letters)) + cells
            words = (
                clip(f"  {row.words}", max(width - len(before) - len(letters) - len(behind), 0)) if row.words else ""
            )
            yield Line.of((before, Tone.PLAIN), *letters, (behind, Tone.PLAIN), (words, Tone.BAD))
        parts = [
            part
            for one in self.key
            for part in (("  ", Tone.PLAIN), (one.letter, one.tone), (f" {one.state}", Tone.DIM))
        ]
        yield Line.of(*parts[1:])


def stage_squares(stage: str, half: str) -> Iterator[Square]:
    """A cluster's square per stage of the migration, the next one half done where it is; "" is a stage not known."""
    for one in MIGRATION[1:]:
        if not stage:
            yield Square("unknown", "?", "s-unknown", Tone.BAD, f"{one.label}: unknown")
        elif one <= Stage.from_label(stage):
            yield Square("done", "d", "s-verified", Tone.GOOD, f"{one.label}: done")
        elif half and one <= Stage.from_label(half):
            yield Square("half done", "h", "s-migrating", Tone.WARN, f"{one.label}: half done")
        else:
            yield Square("to come", ".", "s-none", Tone.DIM, f"{one.label}: to come")


def heat_map(rows: Iterable[HeatRow], columns: Sequence[str] = ()) -> HeatMap:
    """The map of these rows, with its key, best state first."""
    found = tuple(rows)
    kinds = {one.state: one for row in found for one in row.squares}
    order = [*PROGRESS, *STATES, EMPTY, DEAD]
    key = sorted(kinds.values(), key=lambda one: order.index(one.state) if one.state in order else -1)
    return HeatMap(found, tuple(columns), tuple(key))


def square(states: Mapping[str, int], tip: str, health: str = "healthy") -> Square:
    """A directory's square: not healthy, or the worst state of its replicas."""
    if health != "healthy" and not health.startswith("unknown"):
        return Square(DEAD, "D", "s-dead", Tone.BAD, tip)
    worst = next((state.value for state in ReplicaState if states.get(state.value)), "")
    if health != "healthy":
        worst = ReplicaState.UNKNOWN.value
    if not worst:
        return Square(EMPTY, ".", "s-none", Tone.DIM, tip)
    return Square(worst, LETTERS[worst], css_class(worst), TONES.get(worst, Tone.BAD), tip)


def css_class(state: str) -> str:
    """The class that colours a state: `s-not-on-disk`."""
    return "s-" + state.lower().replace(" ", "-") if state in STATES else "s-unknown"
