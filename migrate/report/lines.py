"""Lines for a terminal: folded plain text with a tone beside it; the caller may colour it, files stay plain."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from migrate.report.wording import printable, size

WIDTH: Final = 110  # of files and pipes
NARROWEST: Final = 72
WIDEST: Final = 140
SIZES: Final = ("bytes", "free", "least free")  # columns that hold bytes


class Tone(StrEnum):
    """What a line, or a word of it, means; colours are the caller's choice."""

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
    """One line: text safe for a terminal, without colour; `parts` are the same text where its parts have tones."""

    text: str
    tone: Tone = Tone.PLAIN
    parts: tuple[tuple[str, Tone], ...] = ()

    @classmethod
    def of(cls, *parts: tuple[str, Tone]) -> Line:
        """The line of these parts."""
        safe = tuple((printable(text), tone) for text, tone in parts)
        return cls("".join(text for text, _ in safe).rstrip(), Tone.PLAIN, safe)


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
        for at, piece in enumerate(_folded(printable(text), self.width - indent - hang, hang=hang) or [""]):
            self.add(piece, tone, indent + (hang if at else 0))

    def table(self, rows: Iterable[Mapping[str, str]], indent: int = 2) -> None:
        """Rows as columns under their keys; cells of the widest columns are folded to fit the page."""
        names, cells = columns(rows)
        if not cells:
            return
        safe = [[printable(cell) for cell in row] for row in [[title(name) for name in names], *cells]]
        widths = _fit([max(map(len, column)) for column in zip(*safe, strict=True)], self.width - indent)
        for at, row in enumerate(safe):
            folded = [_folded(cell, wide, copied=None) for cell, wide in zip(row, widths, strict=True)]
            for pieces in itertools.zip_longest(*folded, fillvalue=""):
                text = "  ".join(piece.ljust(wide) for piece, wide in zip(pieces, widths, strict=True))
                self.add(text, Tone.DIM if at == 0 else Tone.PLAIN, indent)


COPIED: Final = re.compile(r"\W*(/|\w+://)")  # a path, an address: no line end may get into it
COMMAND: Final = re.compile(r"\s*([\w ]+:?  +)?(kraft-migrate|sudo|ssh|cd|python3?|kafka-[a-z-]+\.sh) ")
LABEL: Final = re.compile(r"\s*([*?+<!=-]|\d+\.|[\w.-]+( [\w.-]+)?:?(?=  )) +(?=\S)")


def fold(line: str, width: int) -> list[str]:
    """The printable line in pieces that fit, later ones under the text behind its label; a command stays whole."""
    if len(line) <= width or COMMAND.match(line):
        return [line]
    label, begin = LABEL.match(line), len(line) - len(line.lstrip())
    cut = label.end() if label and label.end() < width // 2 else begin
    hang = cut if cut > begin else begin + 2
    first, *more = _folded(line[cut:], width - hang)
    return [line[:cut] + first, *(" " * hang + piece for piece in more)]


def _folded(text: str, room: int, copied: re.Pattern[str] | None = COPIED, hang: int = 0) -> list[str]:
    """Pieces of at most `room` characters, the first of `hang` more: broken at blanks, else at `/`, else anywhere."""
    pieces: list[str] = []
    later = " " * hang
    for line in textwrap.wrap(
        text, room + hang, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    ):
        rest = line.removeprefix(later) if pieces else line
        while len(rest) > (fits := room if pieces else room + hang) and not (copied and copied.match(rest)):
            signs = [match.end() for match in re.finditer(r"[^\w\s]", rest[:fits])]
            at = signs[-1] if signs and signs[-1] > fits // 3 else fits
            pieces.append(rest[:at])
            rest = rest[at:]
        pieces.append(rest)
    return pieces


WORDS: Final = {  # by the words alone: a line without a tone of its own is coloured by them
    Tone.WARN: r"READY WITH (?:WARNINGS|WORK)|INCOMPLETE|UNFINISHED|UNSETTLED|NotYet|PARKED|MIGRATING|PENDING|WAITING"
    r"|W-[A-Z]+-\d+",
    Tone.GOOD: r"READY|NO CHANGES|PROVEN|EQUAL|Verified|VERIFIED|^ *ok(?= )",
    Tone.DIM: "AlreadyDone|I-[A-Z]+-[0-9]+",
    Tone.BAD: r"BLOCKED|DIFFERENT|NOT READY?|NOT PROVEN|Refused|Failed|FAILED|Unknown|STOPPED|OFFLINE|IRREVERSIBLE"
    r"|unknown(?=:)|^ *missing(?=  )|[BX]-[A-Z]+-\d+|S-STUCK-\d+|E-[A-Z]+(-\d+)?",
    Tone.TITLE: r"^ {0,2}[a-z][\w ]{0,14}?(?=  +\S)",
}
MEANING: Final = re.compile("|".join(rf"(?P<{tone.value}>(?<!\w)(?:{words})(?!\w))" for tone, words in WORDS.items()))


def meanings(line: str) -> Iterator[tuple[str, Tone]]:
    """The line in parts, each with what its words mean: outcomes, verdicts, codes and the label at its beginning."""
    at = 0
    for found in MEANING.finditer(line):
        yield line[at : found.start()], Tone.PLAIN
        yield found[0], Tone(found.lastgroup or Tone.PLAIN)
        at = found.end()
    yield line[at:], Tone.PLAIN


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
