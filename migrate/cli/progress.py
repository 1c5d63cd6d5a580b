"""A run's events as lines for a person, each with its time of day, and a live board below them on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.console import Console
from rich.text import Text

from migrate.cli.screen import coloured, painted, terminal_width
from migrate.errors import MigrateError
from migrate.model.history import Event
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.report.lines import Line, Tone, fold
from migrate.report.wording import printable
from migrate.run import journal as journals

if TYPE_CHECKING:
    from migrate.cli.live_board import LiveBoard

HEAD: Final = len("07:51:58 ")  # before a line's text
TONES: Final = {
    "stage": Tone.TITLE,
    "waiting": Tone.WARN,
    "fault": Tone.WARN,
    "stop": Tone.BAD,
    "end": Tone.GOOD,
}
TONES_OF_OUTCOMES: Final = {"Verified": Tone.GOOD, "AlreadyDone": Tone.DIM, "NotYet": Tone.WARN, "Awaited": Tone.WARN}

BACK_AT: Final = {  # a rollback plan, by its end
    "assess": "rolled back: the cluster is in ZooKeeper mode, as before the migration",
    "copy": "the copy was made again, with a fresh quorum",
    "protocol": "rolled back: every broker has the file from before its protocol version was raised",
    "directories": "taken away again: every broker is without the playbook's log directories",
}


class ProgressLines:
    """Listens to an engine; colour and board only where there is a terminal."""

    def __init__(self) -> None:
        self._console = Console(
            file=sys.stderr,
            highlight=False,
            soft_wrap=True,
            color_system="standard" if coloured(err=True) else None,
            force_terminal=sys.stderr.isatty(),
            no_color=False,
        )
        self._last = ""
        self._zone = ""
        self._board: LiveBoard | None = None

    def __call__(self, event: Event) -> None:
        """Print one event, if a person wants to know; the board hears of each."""
        if self._board is not None:
            self._board.hear(event)
        text = line_of(event.name, event.data)
        if text and text != self._last:
            self._last = text
            self.say(text, tone_of(event.name, event.data), at=event.time)

    @contextmanager
    def following(
        self, plan: Plan, journal: pathlib.Path, playbook: Playbook | None = None, work: Callable[[], object] = str
    ) -> Iterator[None]:
        """Show the board of this run, and the work in progress, below the lines; only lines without a terminal."""
        if not self._console.is_terminal:
            yield
            return
        from migrate.cli.live_board import LiveBoard, live_region
        from migrate.run.past_runs import samples_of

        earlier = samples_of(journal.parent.parent, plan.cluster, but=journal.parent)
        self._board = LiveBoard(plan, journal, playbook=playbook, work=work, earlier=earlier)
        try:
            with live_region(self._console, self._board):
                yield
        finally:
            self._board = None

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, at: float | None = None) -> None:
        """A line behind the time of day, its zone said once; later lines of the text hang under it."""
        now = time.localtime(at)
        zone = time.strftime("%Z (UTC%z)", now)
        if zone != self._zone:
            self._zone = zone
            self._print([Line(f"times of day: {zone}", Tone.DIM)])
        width = terminal_width(err=True)
        head = time.strftime("%H:%M:%S ", now)
        for number, line in enumerate(text.split("\n")):
            told = printable(line.strip() if number else line)
            for piece in fold(told, width - HEAD) if width else [told]:
                self._print([Line(piece, tone)], head)
                head = " " * HEAD

    def print(self, page: str | Iterable[Line]) -> None:
        """A page, its lines as they are."""
        lines = map(Line, page.split("\n")) if isinstance(page, str) else page
        self._print([Line(printable(line.text), line.tone) for line in lines])

    def _print(self, lines: Iterable[Line], head: str = "") -> None:
        """A terminal that went away does not stop a run: the journal has it all."""
        text = "\n".join(painted(Line(head, Tone.DIM)) + painted(line) for line in lines)
        with contextlib.suppress(OSError):
            self._console.print(Text.from_ansi(text))


def tone_of(name: str, data: Mapping[str, Any]) -> Tone:
    """What an event means; a step's conclusion by its outcome, and an unknown one as bad."""
    if name == "conclude":
        return TONES_OF_OUTCOMES.get(data["outcome"], Tone.BAD)
    return TONES.get(name, Tone.PLAIN)


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
            fields = sum(sum(classes.values()) for classes in data.get("counts", {}).values())
            what = f"compared {fields:,} fields" if fields else "compared"
            return f"    {what} at metadata offset {data['offset']}: {data['unexcused']} unexpected differences"
        case "conclude":
            said = "; ".join(data["evidence"]) or data["reason"]
            line = f"  {data['step']}: {data['outcome']}" + (f" - {said}" if said else "")
            return "\n  ".join((line, *data.get("left", ())))
        case "fault":
            return f"    fault {data['state']}: {data['what']}"
        case "stop":
            return f"stopped: {data['reason']}"
        case "end":
            return BACK_AT[data["target"]] if data.get("back") else f"the plan is complete: {data['target']}"
        case _:
            return ""


SCHEMA: Final = "kraft-migrate/event/v1"


class EventLines:
    """Listens to an engine, and gives each event once, as a line of JSON, to each of `takers`.

    What the journal got without telling (facts, an interrupt) is brought in its place.  A session begins where the
    journal ended before it: sessions fed to one file give every event once.
    """

    def __init__(self, plan: Plan, journal: pathlib.Path, *takers: Callable[[str], None]) -> None:
        self._plan, self._journal, self._takers = plan, journal, takers
        self._next = len(_events(journal))

    def __call__(self, event: Event) -> None:
        """Give this event, and before it those that were not given yet."""
        if event.number > self._next:
            self._catch_up(event.number)
        if event.number >= self._next:
            self._give(event)

    def close(self) -> None:
        """Give the events of the journal after the last one that was given."""
        self._catch_up(None)

    def _catch_up(self, end: int | None) -> None:
        for event in _events(self._journal)[self._next : end]:
            self._give(event)

    def _give(self, event: Event) -> None:
        self._next = event.number + 1
        line = json_line(self._plan, event)
        for take in self._takers:
            take(line)


class LineWriter:
    """Writes lines to a stream, until whoever reads them goes away: the run continues without them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.gone = False

    def __call__(self, line: str) -> None:
        """Write one."""
        if self.gone:
            return
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except OSError:
            self.gone = True
            _drop(self._out)


def json_line(plan: Plan, event: Event) -> str:
    """One event; `n` is its line in the journal, `step` an id of the plan and the report ("" where none is meant)."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "run": plan.short,
        "n": event.number,
        "time": event.time,
        "event": event.name,
        "step": str(event.data.get("step", "")),
        "data": dict(event.data),
    }
    return json.dumps(body, ensure_ascii=True, separators=(",", ":"))


def _events(journal: pathlib.Path) -> tuple[Event, ...]:
    try:
        return journals.read(journal).events
    except (OSError, MigrateError):
        return ()


def _drop(out: TextIO) -> None:
    """What is buffered for a reader that went away must not fail again at the interpreter's end."""
    if out is sys.stdout:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)
