"""Limits requests to ZooKeeper to so many operations a second, for an ensemble that serves others meanwhile.

An operation is one znode that is read, listed, or asked for its ACL, however many of them one request carries; a sync
is one.  Writes are not limited: they are few, and releasing a lock late helps nobody.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

LOG: Final = logging.getLogger("migrate.zookeeper")
AT_ONCE_SECONDS: Final = 0.1  # of the rate: what one request may carry, and what may be caught up after a pause
SAID_EVERY: Final = 5.0  # seconds between two lines about a read that is held back


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)  # Ctrl-C ends it at once


class Pace:
    """Counts the operations of one session, and limits them to `rate` per second; None: only counts them.

    In any `t` seconds at most rate * (t + 0.2) + 1 operations are let through.  `monotonic` and `sleep` are the
    clock's.  Asked by one thread or by several.
    """

    def __init__(
        self,
        rate: int | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        if rate is not None and rate < 1:
            raise ValueError(f"{rate} operations a second")
        self.rate = rate
        self.operations = 0
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._due = self._said = monotonic()

    def at_once(self, most: int) -> int:
        """How many operations one request may carry, at most `most`: a tenth of a second's worth, and at least one."""
        return most if self.rate is None else max(1, min(most, int(self.rate * AT_ONCE_SECONDS)))

    def take(self, count: int) -> None:
        with self._lock:
            self.operations += count
            if self.rate is None:
                return
            now = self._monotonic()
            start = max(self._due, now - AT_ONCE_SECONDS)
            self._due = start + count / self.rate
            if start > now and now - self._said >= SAID_EVERY:
                self._said = now
                LOG.info("ZooKeeper: %d operations asked for, at most %d a second", self.operations, self.rate)
        if start > now:
            self._sleep(start - now)

    def __str__(self) -> str:
        return "as fast as it answers" if self.rate is None else f"at most {self.rate:,} operations a second"
