"""The live region of a run on a terminal: what it does and waits for, and the board, below the lines of progress."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TextIO

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from migrate.cli.answers import as_json
from migrate.cli.screen import say_page, say_text
from migrate.errors import JournalDamaged, MigrateError
from migrate.model.history import Event
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.ports import Clock
from migrate.report.lines import fold
from migrate.report.run_board import Board, Cell, board, lines
from migrate.report.wording import plural, printable
from migrate.run import journal as journals

STYLES: Final = {Cell.DONE: "green", Cell.NOW: "bold yellow", Cell.STOPPED: "bold red", Cell.TO_DO: "dim"}
TABLE_FRAME: Final = 3  # characters that a column takes besides its text
LEAST_ROWS: Final = 3
QUIET: Final = (Cell.NONE, Cell.DONE)
Row = tuple[str, tuple[Cell, ...]]


def board_table(found: Board, *, width: int, rows: int) -> Table:
    """The table, at most `width` characters wide and with at most `rows` rows; what has no room is counted in words.

    Stages that are done give way first, then those furthest ahead; nodes in progress or stopped are always shown.
    """
    columns = _columns_that_fit(found, width)
    shown, folded = _rows_that_fit(found, max(rows, LEAST_ROWS))
    table = Table(title=_title(found, columns), title_justify="left", caption=folded or None, caption_justify="left")
    table.add_column("node", justify="right", no_wrap=True)
    for index in columns:
        table.add_column(found.columns[index], justify="center", no_wrap=True)
    for node, cells in shown:
        table.add_row(printable(node), *(_cell(cells[index], found.doing) for index in columns))
    return table


def _cell(cell: Cell, doing: str) -> Text:
    words = doing if cell is Cell.NOW and doing else cell.value
    return Text(printable(words), style=STYLES.get(cell, ""))


def _title(found: Board, columns: Sequence[int]) -> str:
    before, after = (columns[0], len(found.columns) - 1 - columns[-1]) if columns else (0, 0)
    hidden = [*([f"{plural(before, 'stage')} before"] if before else ()), *([f"{after} after"] if after else ())]
    return f"run {found.plan}" + (f" ({', '.join(hidden)})" if hidden else "")


def _columns_that_fit(found: Board, width: int) -> Sequence[int]:
    """The first column that is not done, the one before it, those after it, then earlier ones, while there is room."""
    number = len(found.columns)
    widths = [max([cell_len(name), *(_longest(found, i))]) + TABLE_FRAME for i, name in enumerate(found.columns)]
    room = width - max([4, *(cell_len(node) for node, _ in found.rows)]) - TABLE_FRAME - 1
    settled = 0
    while settled < number and all(cells[settled] in QUIET for _, cells in found.rows):
        settled += 1
    first = min(settled, number - 1)
    last = first + 1
    if first > 0 and sum(widths[first - 1 : last]) <= room:
        first -= 1
    while last < number and sum(widths[first : last + 1]) <= room:
        last += 1
    while first > 0 and sum(widths[first - 1 : last]) <= room:
        first -= 1
    return range(first, last)


def _longest(found: Board, column: int) -> Iterator[int]:
    for _, cells in found.rows:
        yield cell_len(_cell(cells[column], found.doing).plain)


def _rows_that_fit(found: Board, most: int) -> tuple[Sequence[Row], str]:
    """The rows to show, and what is to be said of the others."""
    if len(found.rows) <= most:
        return found.rows, ""
    live = [row for row in found.rows if {Cell.NOW, Cell.STOPPED} & set(row[1])]
    begun = [row for row in found.rows if row not in live and _place(row) == "begun"]
    coming = [row for row in found.rows if row not in live and _place(row) == "to come"]
    finished = [row for row in found.rows if row not in live and _place(row) == "done"]
    kept = {row[0] for row in [*live, *begun[::-1], *coming, *finished[::-1]][: max(most, len(live))]}
    shown = [row for row in found.rows if row[0] in kept]
    counts = Counter(_place(row) for row in found.rows if row[0] not in kept)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    return shown, f"and {plural(len(found.rows) - len(shown), 'more node')}: {words}"


def _place(row: Row) -> str:
    """How far a node is with all of its stages."""
    cells = set(row[1]) - {Cell.NONE}
    if cells <= {Cell.DONE}:
        return "done"
    return "begun" if Cell.DONE in cells else "to come"


def folded(said: Sequence[str], width: int) -> list[Text]:
    """The lines, none of them cut; room is left for the `^C` that a terminal writes behind the last one."""
    return [Text(piece) for line in said for piece in fold(printable(line), width - 4)]


LOG: Final = logging.getLogger("migrate.cli")
FRAME: Final = 6  # lines of the table's own: title, borders, heads, caption
SPOKEN: Final = ("migrate", "migrate.manual")  # loggers whose handlers write to stderr


class LiveBoard:
    """What a `rich.live.Live` shows.  `hear` is called in the run's thread, `page` in Live's own."""

    def __init__(
        self,
        plan: Plan,
        journal: pathlib.Path,
        now: Callable[[], float] = time.time,
        playbook: Playbook | None = None,
        work: Callable[[], object] = str,
    ) -> None:
        self._plan, self._journal, self._now, self._playbook, self._work = plan, journal, now, playbook, work
        self._events: list[Event] = []
        self._board: Board | None = None

    def hear(self, event: Event) -> None:
        """One event of this run; the first one of a session brings those before it in the journal.

        Whatever cannot be drawn is not: no run ends by its picture.
        """
        try:
            if event.number > len(self._events):
                self._events = [known for known in self._before() if known.number < event.number]
            self._events.append(event)
            self._board = board(self._plan, self._events, self._playbook)
        except Exception:
            LOG.debug("the board of event %d cannot be made", event.number, exc_info=True)
            self._board = None

    def page(self, console: Console) -> Group:
        """Lines and table, within the terminal's size."""
        found = self._board
        try:
            return Group() if found is None else self._drawn(found, console)
        except Exception:  # in the thread of the picture, or while a line is printed
            LOG.debug("the board cannot be drawn", exc_info=True)
            return Group()

    def _drawn(self, found: Board, console: Console) -> Group:
        looks = str(self._work()) if found.over is None else ""
        told = [*lines(found, self._now()), *([f"looks    {looks}"] if looks else ())]
        for shown in (told, [line for line in told if not line.startswith("then ")]):
            said = folded(shown, console.width)
            rows = console.height - 1 - len(said) - FRAME
            if rows >= LEAST_ROWS:
                return Group(board_table(found, width=console.width, rows=rows), *said)
        return Group(*said[: console.height - 1])  # a picture higher than the terminal would be left there twice

    def _before(self) -> tuple[Event, ...]:
        try:
            return journals.read(self._journal).events
        except (OSError, MigrateError):
            return ()


@contextmanager
def live_region(console: Console, shown: LiveBoard) -> Iterator[None]:
    """The region is below everything that is printed meanwhile, logged lines too; its last state is left there."""
    before = sys.stderr
    live = Live(
        console=console, refresh_per_second=1, get_renderable=lambda: shown.page(console), redirect_stdout=False
    )
    with contextlib.suppress(OSError):
        live.start()
        console.show_cursor()  # a run that is killed must not leave a terminal without one
    _log_to(before, sys.stderr)
    try:
        yield
    finally:
        _log_to(sys.stderr, before)
        with contextlib.suppress(OSError):  # the terminal went away meanwhile
            live.stop()


def _log_to(old: TextIO, new: TextIO) -> None:
    for name in SPOKEN:
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is old:
                handler.setStream(new)


TICK: Final = 1.0  # seconds between two looks at the journal's size
LOOK: Final = 30.0  # seconds between two looks at the cluster
LEAST_TEXT: Final = 8  # lines of the cluster that are worth more than the table
MOVING: Final = ("time",)  # keys of an answer that change without anything having happened


@dataclass(slots=True)
class RunFile:
    """The newest run of a folder of runs, read again only when its journal grew."""

    runs: pathlib.Path
    playbook: Playbook | None = None
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
                plan = load_plan(path.parent / "plan.json")
                ours = self.playbook is not None and plan.playbook_sha256 == self.playbook.sha256
                self._board = board(plan, journals.read(path).events, self.playbook if ours else None)
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
        with Live(console=console, auto_refresh=False) as live:
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
            told = {**answer, "run": None if found is None else lines(found, time.time())}
            say_page(as_json("status", told, None))
        else:
            say_text("\n".join([as_text(answer), *([] if found is None else lines(found, time.time()))]))


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
    """The whole screen: the cluster, the run's table, what it does and waits for; always lower than the terminal.

    Of a higher picture the terminal shows the beginning alone, and Ctrl-C leaves its first lines there twice.  What the
    run does and waits for comes first; then the table, with few nodes if need be; the cluster's last lines go.
    """
    width, height = size
    text = folded(as_text(answer).split("\n"), width)
    said = [] if found is None else folded(lines(found, now), width)
    room = height - 2 - len(said)  # without the hint, and the line below it
    table: list[Any] = []
    if found is not None:
        rows = min(max(room - len(text) - FRAME - 1, LEAST_ROWS), len(found.rows))
        if room - FRAME - 1 - rows >= min(len(text), LEAST_TEXT):
            table = [Text(""), board_table(found, width=width, rows=rows)]
            room -= FRAME + 1 + rows
    if len(text) > room:
        cut = len(text) - max(0, room - 1)
        text = [*text[:-cut], Text(f"... {plural(cut, 'more line')}: `status` without --watch", style="dim")]
    hint = Text("Ctrl-C ends the watching, not the run", style="dim")
    return Group(*[*text, *table, *said][: height - 2], hint)
