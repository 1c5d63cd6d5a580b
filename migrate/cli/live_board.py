"""The live region of a run on a terminal: what it does and waits for, below the lines of progress."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from migrate.cli.answers import as_json
from migrate.cli.screen import say_page, say_text
from migrate.errors import JournalDamaged, MigrateError
from migrate.model.history import Event
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.ports import Clock
from migrate.report.lines import fold
from migrate.report.run_board import Board, board, lines
from migrate.report.wording import plural, printable
from migrate.run import journal as journals


def folded(said: Sequence[str], width: int) -> list[Text]:
    """The lines, none of them cut; room is left for the `^C` that a terminal writes behind the last one."""
    return [Text(piece) for line in said for piece in fold(printable(line), width - 4)]


LOG: Final = logging.getLogger("migrate.cli")
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
        """Its lines, within the terminal's size."""
        found = self._board
        try:
            return Group() if found is None else self._drawn(found, console)
        except Exception:  # in the thread of the picture, or while a line is printed
            LOG.debug("the board cannot be drawn", exc_info=True)
            return Group()

    def _drawn(self, found: Board, console: Console) -> Group:
        looks = str(self._work()) if found.over is None else ""
        told = [*lines(found, self._now()), *([f"looks    {looks}"] if looks else ())]
        return Group(*folded(told, console.width)[: console.height - 1])  # a higher one would be left there twice

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
    """The whole screen: the cluster, then what the run does and waits for; always lower than the terminal.

    Of a higher picture the terminal shows the beginning alone, and Ctrl-C leaves its first lines there twice: the
    cluster's last lines go.
    """
    width, height = size
    text = folded(as_text(answer).split("\n"), width)
    said = [] if found is None else folded(lines(found, now), width)
    room = height - 2 - len(said)  # without the hint, and the line below it
    if len(text) > room:
        cut = len(text) - max(0, room - 1)
        text = [*text[:-cut], Text(f"... {plural(cut, 'more line')}: `status` without --watch", style="dim")]
    hint = Text("Ctrl-C ends the watching, not the run", style="dim")
    return Group(*[*text, *said][: height - 2], hint)
