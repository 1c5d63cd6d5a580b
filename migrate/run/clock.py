"""The one clock of a run."""

from __future__ import annotations

import threading
import time


class SystemClock:
    """Implements `migrate.model.ports.Clock`."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; Ctrl-C ends it at once."""
        threading.Event().wait(seconds)
