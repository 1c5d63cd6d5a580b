"""Who follows a run beside the screen: each in a thread of its own, so that no run waits for it or ends by it."""

from __future__ import annotations

import logging
import pathlib
import queue
import socket
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from migrate.cli.progress import WholeJournal
from migrate.errors import FileNotReplaced, MigrateError
from migrate.hosts.files import replace_file
from migrate.model.history import Event
from migrate.model.inventory import Recipient
from migrate.model.notifications import Notice
from migrate.model.ports import Clock
from migrate.report.metrics import Metrics
from migrate.report.notices import Notices, RunState
from migrate.run.deliver import Delivery, delivered_within

LOG: Final = logging.getLogger("migrate.cli")
NOWHERE: Final = -1  # the number of an event that no journal has
TICK: Final = 1.0  # seconds between two looks at what lasts
AGAIN: Final = 10.0  # seconds between two files of metrics where no event comes
READABLE: Final = 0o644  # for the collector, which is another user
FLUSH: Final = 40.0  # seconds at the end of a run for what is still in progress: more than a hook may take


class Follower(Protocol):
    """Called in its thread alone."""

    def hear(self, event: Event) -> None: ...

    def tick(self) -> None:
        """Behind each event, and each second without one, once a session of ours has begun."""

    def close(self) -> None:
        """The run is over, and all was heard."""


class Following:
    """Listens to an engine, and hands each event to a follower, in the journal's order."""

    def __init__(self, journal: pathlib.Path, follower: Callable[[Iterable[Event]], Follower]) -> None:
        self._whole = WholeJournal(journal, self._hear)
        self._follower = follower(self._whole.before)
        self._heard = False
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="following", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Never waits."""
        self._events.put(event)

    def refused(self, error: MigrateError, now: float) -> None:
        """The command ended so.  Where no session had begun, no journal says it: it is told as a stop all the same."""
        reason = f"it was refused, nothing was begun: {error}"
        self._events.put(Event(NOWHERE, now, "stop", {"reason": reason, "code": error.id}))

    def close(self, seconds: float = 2 * FLUSH) -> None:
        """The session is over: give the follower so much time for what is left."""
        self._events.put(None)
        self._thread.join(seconds)

    def _hear(self, event: Event) -> None:
        self._safely(partial(self._follower.hear, event))

    def _work(self) -> None:
        going = True
        while going:
            try:
                event = self._events.get(timeout=TICK)
                going = event is not None
                if event is not None and event.number == NOWHERE:
                    if not self._heard:
                        self._hear(event)
                elif event is not None:
                    self._heard = True
                    self._whole(event)
                elif self._heard:  # else no session of ours began: what the journal got is another run's
                    self._whole.close()
            except queue.Empty:
                pass
            except Exception:
                LOG.debug("a follower of the run", exc_info=True)
            if not going:
                self._safely(self._follower.close)
            elif self._heard:
                self._safely(self._follower.tick)

    @staticmethod
    def _safely(act: Callable[[], None]) -> None:
        try:
            act()
        except Exception:  # no run ends by what is told of it
            LOG.debug("a follower of the run", exc_info=True)


class Notifier:
    """Tells the recipients of a playbook what happens in a run."""

    def __init__(
        self,
        run: RunState,
        recipients: tuple[Recipient, ...],
        before: Iterable[Event],
        clock: Clock,
        say: Callable[[str], None],
        flush: float = FLUSH,
    ) -> None:
        self._notices = Notices.of(run, recipients, socket.gethostname(), before)
        self._clock, self._flush = clock, flush
        self._deliveries = {one.name: Delivery(one, clock, say) for one in recipients}

    def hear(self, event: Event) -> None:
        self._put(self._notices.hear(event))

    def tick(self) -> None:
        self._put(self._notices.late(self._clock.now()))

    def close(self) -> None:
        delivered_within([*self._deliveries.values()], self._flush, self._clock)

    def _put(self, found: Iterable[tuple[Recipient, Notice]]) -> None:
        for recipient, notice in found:
            self._deliveries[recipient.name].put(notice)


class MetricsFile:
    """Writes a run's metrics for a collector that reads files: behind each event, and every ten seconds."""

    def __init__(
        self, run: RunState, path: pathlib.Path, before: Iterable[Event], clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._metrics, self._path, self._clock, self._say = Metrics.of(run, before), path, clock, say
        self._written: float | None = None
        self._fresh = self._failed = False

    def hear(self, event: Event) -> None:
        self._metrics.hear(event)
        self._fresh = True

    def tick(self) -> None:
        """At most once a second: events come by the hundred."""
        passed = AGAIN if self._written is None else self._clock.monotonic() - self._written
        if passed >= AGAIN or (self._fresh and passed >= TICK):
            self._write()

    def close(self) -> None:
        """Nothing was heard: the file is another run's, or of an earlier session."""
        if self._fresh or self._written is not None:
            self._write()

    def _write(self) -> None:
        """A failure is said once, until it can be written again."""
        self._written, self._fresh = self._clock.monotonic(), False
        try:
            replace_file(str(self._path), self._metrics.text(self._clock.now()).encode(), mode=READABLE)
        except FileNotReplaced as error:
            if not self._failed:
                self._say(f"the metrics were not written, the run continues: {error}")
            self._failed = True
        else:
            self._failed = False
