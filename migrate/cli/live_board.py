"""The live region of a run on a terminal: what it does and waits for, below the lines of progress."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from migrate.errors import MigrateError
from migrate.model.durations import Samples
from migrate.model.history import Event
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.report.lines import fold
from migrate.report.run_board import NOTHING_EARLIER, Board, board, lines
from migrate.report.wording import printable
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
        earlier: Samples = NOTHING_EARLIER,
    ) -> None:
        self._plan, self._journal, self._now, self._playbook, self._work = plan, journal, now, playbook, work
        self._earlier = earlier
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
            self._board = board(self._plan, self._events, self._playbook, self._earlier)
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
