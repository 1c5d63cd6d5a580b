"""A run's events as lines for a person, and a live board below them where there is a terminal."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from migrate.model.history import Event
from migrate.report.wording import hanging, printable

if TYPE_CHECKING:
    from migrate.cli.live_board import LiveBoard
    from migrate.model.plan import Plan

HEAD: Final = 12  # characters before a line's text
STYLES: Final = {
    "stage": "bold cyan",
    "waiting": "yellow",
    "conclude": "green",
    "stop": "bold red",
    "end": "bold green",
}

BACK_AT: Final = {  # a rollback plan, by its end
    "assess": "rolled back: the cluster is in ZooKeeper mode, as before the migration",
    "copy": "the copy was made again, with a fresh quorum",
    "directories": "taken away again: every broker is without the playbook's log directories",
}


class ProgressLines:
    """Listens to an engine; colour only where there is a terminal."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._began = time.monotonic()
        self._last = ""
        self._board: LiveBoard | None = None

    def __call__(self, event: Event) -> None:
        """Print one event, if a person wants to know; the board hears of each."""
        if self._board is not None:
            self._board.hear(event)
        text = line_of(event.name, event.data)
        if text and text != self._last:
            self._last = text
            self.say(text, STYLES.get(event.name, ""))

    @contextmanager
    def following(self, plan: Plan, journal: pathlib.Path) -> Iterator[None]:
        """Show the board of this run below the lines; without a terminal there are only the lines."""
        if not self._console.is_terminal:
            yield
            return
        from migrate.cli.live_board import LiveBoard, live_region

        self._board = LiveBoard(plan, journal)
        try:
            with live_region(self._console, self._board):
                yield
        finally:
            self._board = None

    def say(self, text: str, style: str = "") -> None:
        """One line with the time since the start."""
        head = Text(f"[{time.monotonic() - self._began:7.1f}] ", style="dim")
        self._print(head + Text(hanging(text, " " * HEAD), style=style))

    def print(self, text: str) -> None:
        """A page of text, its lines as they are."""
        self._print(Text("\n".join(map(printable, text.split("\n")))))

    def _print(self, text: Text) -> None:
        """A terminal that went away does not stop a run: the journal has it all."""
        with contextlib.suppress(OSError):
            self._console.print(text)


def line_of(name: str, data: Mapping[str, Any]) -> str:
    """The event's line; "" for what only the journal needs."""
    match name:
        case "session":
            return "resuming from the journal" if data["resumed"] else "the run begins"
        case "stage":
            return f"stage {data['stage']}"
        case "intend":
            return f"  {data['step']}: {data['title']}"
        case "effect":  # a controlled shutdown may take minutes
            return f"    {data['effect']} {data['node']}" + (f": {data['detail']}" if data["detail"] else "")
        case "waiting":
            after = "" if data["next"].startswith("nothing") else f"; {data['next']}"
            return f"    waiting for {data['what']} (owner: {data['owner']}{after})"
        case "diff":
            return f"    compared at metadata offset {data['offset']}: {data['unexcused']} unexcused differences"
        case "conclude":
            said = "; ".join(data["evidence"]) or data["reason"]
            line = f"  {data['step']}: {data['outcome']}" + (f" - {said}" if said else "")
            return "\n  ".join((line, *data.get("left", ())))
        case "fault":
            return f"    fault {data['state']}: {data['what']}"
        case "paused":
            return f"paused before {data['step']}, {data['by']}; `control resume` continues it"
        case "resumed":
            return "resumed"
        case "stop":
            return f"stopped: {data['reason']}"
        case "end":
            return BACK_AT[data["target"]] if data.get("back") else f"the plan is complete: {data['target']}"
        case _:
            return ""
