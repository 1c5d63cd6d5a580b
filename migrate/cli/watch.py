"""`status --watch`: a live table on a terminal, plain lines elsewhere; idle it costs next to nothing.

The journal is read again only when its file grew; the cluster itself is looked at every half minute, because a look at
everything costs a third of a second of a core.
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from migrate.cli.live_board import board_table
from migrate.cli.screen import say_page
from migrate.errors import JournalDamaged, MigrateError
from migrate.report.run_board import Board, board, lines
from migrate.report.wording import printable
from migrate.run import journal as journals

if TYPE_CHECKING:
    from migrate.model.ports import Clock

TICK: Final = 1.0  # seconds between two looks at the journal's size
LOOK: Final = 30.0  # seconds between two looks at the cluster
FRAME: Final = 8  # lines of the screen that are neither the cluster's, nor the run's, nor rows of the table
MOVING: Final = ("time",)  # keys of an answer that change without anything having happened


@dataclass(slots=True)
class RunFile:
    """The newest run of a folder of runs, read again only when its journal grew."""

    runs: pathlib.Path
    _seen: tuple[pathlib.Path, int] | None = None
    _board: Board | None = None

    def read(self) -> Board | None:
        """The board of the newest run; None where there is none, or where its plan cannot be read."""
        from migrate.cli.planning import load_plan

        found = [(path.stat().st_mtime, path) for path in self.runs.glob("*/journal.jsonl")]
        if not found:
            return None
        path = max(found)[1]
        now = (path, path.stat().st_size)
        if now != self._seen:
            self._seen = now
            try:
                self._board = board(load_plan(path.parent / "plan.json"), journals.read(path).events)
            except (JournalDamaged, MigrateError):
                self._board = None
        return self._board


def watch(
    look: Callable[[], Mapping[str, Any]],
    as_text: Callable[[Mapping[str, Any]], str],
    run: RunFile,
    clock: Clock,
    *,
    output: str,
    turns: int | None = None,
) -> None:
    """Look again and again until Ctrl-C, or for so many `turns`."""
    console = Console(highlight=False)
    if output == "text" and console.is_terminal:
        with Live(console=console, refresh_per_second=1, auto_refresh=False) as live:
            for answer, found in _turns(look, run, clock, turns):
                live.update(page(answer, as_text, found, time.time(), console.size), refresh=True)
        return
    last: object = None
    for answer, found in _turns(look, run, clock, turns):
        said = {key: value for key, value in answer.items() if key not in MOVING}
        now = (said, None if found is None else (found.state, found.now, found.waiting, found.done))
        if now == last:
            continue
        last = now
        if output == "json":
            say_page(json.dumps({**answer, "run": None if found is None else lines(found, time.time())}))
        else:
            say_page(
                "\n".join([as_text(answer), *([] if found is None else map(printable, lines(found, time.time())))])
            )


def _turns(look: Callable[[], Mapping[str, Any]], run: RunFile, clock: Clock, turns: int | None) -> Any:
    """The cluster's answer, at most half a minute old, and the run's board, each second."""
    answer, looked, number = look(), clock.monotonic(), 0
    while True:
        yield answer, run.read()
        number += 1
        if turns is not None and number >= turns:
            return
        clock.sleep(TICK)
        if clock.monotonic() - looked >= LOOK:
            answer, looked = look(), clock.monotonic()


def page(
    answer: Mapping[str, Any],
    as_text: Callable[[Mapping[str, Any]], str],
    found: Board | None,
    now: float,
    size: tuple[int, int],
) -> Group:
    """The whole screen, `size` characters wide and high: the cluster, the run's table, what it does and waits for."""
    text = printable_lines(as_text(answer))
    parts: list[Any] = [Text(text)]
    if found is not None:
        said = lines(found, now)
        table = board_table(found, width=size[0], rows=size[1] - text.count("\n") - len(said) - FRAME)
        parts += [Text(""), table, *(Text(printable(line)) for line in said)]
    parts.append(Text("Ctrl-C ends the watching, not the run", style="dim"))
    return Group(*parts)


def printable_lines(text: str) -> str:
    """Line by line, so that only the line ends stay as they are."""
    return "\n".join(map(printable, text.split("\n")))
