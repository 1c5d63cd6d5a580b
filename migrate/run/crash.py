"""Numbered crash points, for tests of kill and resume: the process kills itself as nothing else could.

`KRAFT_MIGRATE_CRASH_AT` names a point: its number, or the text that it is labelled with.

| label | where |
|---|---|
| `before:EFFECT:NODE`, `after:EFFECT:NODE` | around every effect: behind its intent, before `effected` |
| `unsynced:EVENT` | a line of the journal is written and not yet fsynced |
| `unsynced:FILE` | the same of a configuration file: its new content has no name yet |
| `sent:BROKER:N` | the N-th request of an assignment was answered, and nothing else was done |
| `proof:STEP` | the effects of a step are done, and nothing of it is proven |
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "KRAFT_MIGRATE_CRASH_AT"


class CrashPoints:
    """Counts the points that were passed."""

    def __init__(self, wanted: str | None = None) -> None:
        self._wanted = os.environ.get(VARIABLE, "") if wanted is None else wanted
        self.passed = 0

    def reach(self, label: str) -> None:
        """Die here, if this is the point that was asked for."""
        self.passed += 1
        if self._wanted and self._wanted in (str(self.passed), label):
            os.kill(os.getpid(), signal.SIGKILL)
