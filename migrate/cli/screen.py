"""The one way to the screen, folded at the terminal's width and coloured by meaning.

What a cluster, a host or a file says may hold control characters, line breaks and bidi overrides.  `say` prints one
line, so that nothing in it can pass for a line of ours; `say_text` and `say_lines` print lines that are ours, each made
visible; `say_page` prints what is copied or read by programs, without fold or colour.  No other module of the command
line prints (ruff's TID251 holds that).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import click

from migrate.report.lines import NARROWEST, WIDEST, WIDTH, Line, Tone, fold, meanings
from migrate.report.wording import printable

STYLES: Final[dict[Tone, dict[str, Any]]] = {
    Tone.PLAIN: {},
    Tone.TITLE: {"bold": True},
    Tone.DIM: {"dim": True},
    Tone.GOOD: {"fg": "green"},
    Tone.WARN: {"fg": "yellow"},
    Tone.BAD: {"fg": "red", "bold": True},
    Tone.ADD: {"fg": "green"},
    Tone.REMOVE: {"fg": "red"},
}


def terminal_width(*, err: bool = False) -> int | None:
    """Columns of the stream's terminal, from 72 to 140; None where it is a file or a pipe."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        return None
    columns = 0
    with contextlib.suppress(OSError, ValueError):
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    return max(NARROWEST, min(columns, WIDEST)) if columns else WIDTH


def page_width(*, err: bool = False) -> int:
    """The terminal's width, and 110 in files and pipes."""
    return terminal_width(err=err) or WIDTH


def coloured(*, err: bool = False) -> bool:
    """Is the stream coloured: on a terminal, unless NO_COLOR is set (no-color.org)?"""
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(line: Line) -> str:
    """The line in the colour of its tone; without one, its words in theirs."""
    if line.tone is not Tone.PLAIN:
        return click.style(line.text, **STYLES[line.tone])
    parts = line.parts or meanings(line.text)
    return "".join(click.style(part, **STYLES[tone]) if STYLES[tone] else part for part, tone in parts)


def say(line: object = "", *, err: bool = False) -> None:
    """One line: line breaks in it are spelled out like every other control character."""
    _say([Line(printable(str(line)))], err=err)


def say_text(text: str, *, err: bool = False) -> None:
    """Lines for a person: folded on a terminal, whole in files and pipes, where they are searched."""
    _say([Line(printable(line)) for line in text.split("\n")], err=err)


def say_lines(lines: Iterable[Line]) -> None:
    """A page's lines, which are folded already."""
    _say([replace(line, text=printable(line.text)) for line in lines], err=False, folded=True)


def say_page(text: str, *, end: str = "\n") -> None:
    """A page that we made, for a program or to be copied: what foreign values have in it is spelled out."""
    ProgressLine.clear()
    _echo("\n".join(map(printable, text.split("\n"))) + end, err=False)


def _say(lines: Iterable[Line], *, err: bool, folded: bool = False) -> None:
    width = None if folded else terminal_width(err=err)
    pieces = (
        replace(line, text=piece) for line in lines for piece in (fold(line.text, width) if width else [line.text])
    )
    color = coloured(err=err)
    text = "\n".join(painted(piece) if color else piece.text for piece in pieces)
    ProgressLine.clear()
    _echo(text + "\n", err=err, color=color)


def _echo(text: str, *, err: bool, color: bool | None = None) -> None:
    """A terminal that was closed takes no messages: the command ends with its own exit code all the same."""
    try:
        click.echo(text, err=err, color=color, nl=False)  # noqa: TID251 - the one place
    except OSError as error:
        if not err or error.errno != errno.EIO:
            raise


class ProgressLine:
    """The last line of a terminal while something takes longer than a second; whatever is printed replaces it."""

    FIRST: Final = 1.0  # seconds without a line
    EVERY: Final = 0.5
    _lock = threading.Lock()
    _drawn = _shows = False

    @classmethod
    def clear(cls) -> None:
        """Make room for what is printed now."""
        with cls._lock:
            cls._write("")

    @classmethod
    @contextmanager
    def showing(cls, what: Callable[[], str]) -> Iterator[None]:
        """Show what is in progress while the block runs, and for how long; on a terminal alone, and once."""
        main = threading.current_thread() is threading.main_thread()
        if cls._shows or not main or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield
            return
        ended, began, cls._shows = threading.Event(), time.monotonic(), True

        def show() -> None:
            pause = cls.FIRST
            while not ended.wait(pause):
                pause = cls.EVERY
                text = printable(f"{time.monotonic() - began:3.0f} s  {what() or 'working'}")
                with cls._lock:
                    if not ended.is_set():
                        cls._write(text[: page_width(err=True) - 1])

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            cls._shows = False
            cls.clear()
            thread.join()

    @classmethod
    def _write(cls, text: str) -> None:
        """Replace the line; a terminal that went away is no error."""
        if text or cls._drawn:
            cls._drawn = bool(text)
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"\r{text}\x1b[K")
                sys.stderr.flush()
