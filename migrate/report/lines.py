"""Lines for a terminal: plain text with a tone beside it, so that the caller may colour it and files stay plain."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from migrate.report.wording import printable, size

WIDTH: Final = 110
SIZES: Final = ("bytes", "free")  # columns that hold bytes


class Tone(StrEnum):
    """What a line means; colours are the caller's choice."""

    PLAIN = "plain"
    TITLE = "title"
    DIM = "dim"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: text safe for a terminal, without colour."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(slots=True)
class Page:
    """Lines being written."""

    lines: list[Line] = field(default_factory=list)
    width: int = WIDTH

    def add(self, text: str = "", tone: Tone = Tone.PLAIN, indent: int = 0) -> None:
        """One line, whatever its length (commands and diffs are copied, so they are never folded)."""
        self.lines.append(Line((" " * indent + printable(text)).rstrip(), tone))

    def heading(self, text: str) -> None:
        """A section's title after an empty line."""
        self.add()
        self.add(text, Tone.TITLE)

    def wrap(self, text: str, tone: Tone = Tone.PLAIN, indent: int = 2, hang: int = 0) -> None:
        """A paragraph folded at the page's width."""
        room = self.width - indent - hang
        for at, piece in enumerate(textwrap.wrap(printable(text), room, break_on_hyphens=False) or [""]):
            self.add(piece, tone, indent + (hang if at else 0))

    def table(self, rows: Iterable[Mapping[str, str]], indent: int = 2) -> None:
        """Rows as columns under their keys; cells of the widest columns are folded to fit the page."""
        names, cells = columns(rows)
        if not cells:
            return
        safe = [[printable(cell) for cell in row] for row in [[title(name) for name in names], *cells]]
        widths = _fit([max(map(len, column)) for column in zip(*safe, strict=True)], self.width - indent)
        for at, row in enumerate(safe):
            folded = [textwrap.wrap(cell, wide) for cell, wide in zip(row, widths, strict=True)]
            for pieces in itertools.zip_longest(*folded, fillvalue=""):
                text = "  ".join(piece.ljust(wide) for piece, wide in zip(pieces, widths, strict=True))
                self.add(text, Tone.DIM if at == 0 else Tone.PLAIN, indent)


def columns(rows: Iterable[Mapping[str, str]]) -> tuple[list[str], list[list[str]]]:
    """The keys of all rows in the order in which they first appear, and each row's cells under them."""
    found = list(rows)
    names = list(dict.fromkeys(name for row in found for name in row))
    return names, [[_cell(name, str(row.get(name, ""))) for name in names] for row in found]


def _cell(name: str, value: str) -> str:
    return size(int(value)) if name in SIZES and value.isdecimal() and len(value) < 20 else value


def title(name: str) -> str:
    """A key as a column's title: `meta_version` is read as `meta version`."""
    return name.replace("_", " ")


def text(lines: Sequence[Line]) -> str:
    """The lines as one plain text with a newline at its end."""
    return "\n".join(line.text for line in lines) + "\n"


def _fit(widths: list[int], room: int) -> list[int]:
    while sum(widths) + 2 * (len(widths) - 1) > room and max(widths) > 12:
        widths[widths.index(max(widths))] -= 1
    return widths
