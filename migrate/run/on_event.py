"""`apply --on-event CMD`: each event of a run as a line of JSON on the standard input of a command.

One process per event, one after another, in a thread behind a bounded queue: no run waits for the command, or ends by
it.  What is said of it has its program and no other word of it: one may be a key, as in the URL of a chat's channel.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.runner import LocalRunner
from migrate.model.ports import Clock
from migrate.model.words import plural

LOG: Final = logging.getLogger("migrate.run")
SECONDS: Final = 10.0  # for one event; then the command is ended, with all that it started
AT_THE_END: Final = 15.0  # seconds for what waits when the session has ended: more than one event may take
MOST_WAITING: Final = 1000  # events


class EventCommand:
    """The command, its queue, and the thread that empties it.  `say` gets the first failure, and the sum."""

    def __init__(self, words: Sequence[str], clock: Clock, say: Callable[[str], None]) -> None:
        self._words, self._clock, self._say = tuple(words), clock, say
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._given = self._dropped = self._failed = 0
        self._why = self._sum = ""
        self._until = math.inf
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="on-event", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Give it one event.  Never waits: an event for which the queue has no room is dropped and counted."""
        if self._closed:
            return
        self._given += 1
        if self._lines.qsize() < MOST_WAITING:
            self._lines.put(line)
        else:
            self._dropped += 1

    def close(self) -> str:
        """Give it what waits, for `AT_THE_END` seconds at most; answers what it did not take, "" if nothing."""
        if self._closed:
            return self._sum
        self._closed = True
        self._until = self._clock.monotonic() + AT_THE_END
        self._lines.put(None)
        self._thread.join(AT_THE_END)
        dropped = self._dropped + (max(1, self._lines.qsize()) if self._thread.is_alive() else 0)
        missed = [f"{self._failed} failed (the first: {self._why})"] if self._failed else []
        missed += [f"{dropped} dropped"] if dropped else []
        if missed:
            self._sum = f"{self._words[0]} did not take each of {plural(self._given, 'event')}: {', '.join(missed)}"
            self._say(f"--on-event: {self._sum}")
        return self._sum

    def _work(self) -> None:
        while (line := self._lines.get()) is not None:
            seconds = min(SECONDS, self._until - self._clock.monotonic())
            if seconds <= 0:
                self._dropped += 1
                continue
            try:
                why, said = self._run(line, seconds)
            except Exception as error:
                LOG.debug("an event's command", exc_info=True)
                why, said = type(error).__name__, ""
            if why:
                self._failed += 1
                if not self._why:
                    self._why = why
                    self._say(f"--on-event: {self._words[0]} failed, the run continues: {why}{said}")

    def _run(self, line: str, seconds: float) -> tuple[str, str]:
        """What went wrong, "" if nothing, and what the command complained of."""
        try:
            done = LocalRunner().run(self._words, stdin=f"{line}\n".encode(), seconds=seconds)
        except MigrateError as error:
            return error.what, ""
        return (f"it ended with {done.code}", f": {done.says}" if done.says else "") if done.code else ("", "")
