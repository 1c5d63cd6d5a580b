"""The one clock of a run."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from typing import Final

BOOT_ID: Final = pathlib.Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """Implements `migrate.model.ports.Clock`."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back, a suspended machine's too."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot(self) -> str:
        """Which boot of which host `monotonic` counts from."""
        return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else f"pid {os.getpid()}"

    def sleep(self, seconds: float) -> None:
        """Wait; Ctrl-C ends it at once."""
        threading.Event().wait(seconds)
