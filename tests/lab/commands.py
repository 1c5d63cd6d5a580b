"""The command as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys

from migrate.run.effects import VARIABLE

SECONDS = 900


def environment(crash: str = "") -> dict[str, str]:
    """Ours, with the point at which the process is to kill itself."""
    return {**os.environ, VARIABLE: crash}


def kraft_migrate(*words: str, crash: str = "", module: str = "migrate") -> subprocess.CompletedProcess[str]:
    """Run it to its end; `crash` names a point at which it kills itself."""
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, env=environment(crash), capture_output=True, text=True, check=False, timeout=SECONDS)
