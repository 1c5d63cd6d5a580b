"""`--json-lines`: each event of a run as a line of JSON, numbered as in the journal, with the step ids of all pages."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any, Final, TextIO

from migrate.errors import MigrateError
from migrate.model.history import Event
from migrate.model.plan import Plan
from migrate.run import journal as journals

SCHEMA: Final = "kraft-migrate/event/v1"


class EventLines:
    """Listens to an engine.  What the journal got without telling (facts, an interrupt) is brought in its place.

    A session's lines begin where the journal ended before it: fed to one file, two sessions give every event once.
    """

    def __init__(self, plan: Plan, journal: pathlib.Path, out: TextIO) -> None:
        self._plan, self._journal, self._out = plan, journal, out
        self._next = len(_events(journal))
        self.gone = False  # whoever read the lines went away: the run continues without them

    def __call__(self, event: Event) -> None:
        """Write this event, and before it those that were not written yet."""
        if event.number > self._next:
            self._catch_up(event.number)
        if event.number >= self._next:
            self._write(event)

    def close(self) -> None:
        """Write the events of the journal after the last one that was written."""
        self._catch_up(None)

    def _catch_up(self, end: int | None) -> None:
        for event in _events(self._journal)[self._next : end]:
            self._write(event)

    def _write(self, event: Event) -> None:
        self._next = event.number + 1
        if self.gone:
            return
        try:
            self._out.write(json_line(self._plan, event) + "\n")
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
