"""The command as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from migrate.errors import NoProgress
from migrate.lab.cluster import Lab
from migrate.run.effects import VARIABLE
from tests.testing.last_words import told_to_restart

SECONDS = 2700
STOP = 60.0
BROKERS = 3


def environment(crash: str = "") -> dict[str, str]:
    """Ours, with the point at which the process is to kill itself."""
    return {**os.environ, VARIABLE: crash}


def kraft_migrate(*words: str, crash: str = "", module: str = "migrate") -> subprocess.CompletedProcess[str]:
    """Run it to its end; `crash` names a point at which it kills itself."""
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, env=environment(crash), capture_output=True, text=True, check=False, timeout=SECONDS)


def stopped(directory: Path) -> None:
    """Nothing of the lab in that folder lives on."""
    if (directory / "lab.json").exists():
        kraft_migrate("lab", "down", "--dir", str(directory))


def to_its_end(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The same on that lab; where it stops for a broker that has lost its channel, what is printed is done.

    It can hit each broker once, as control changes hands.
    """
    ended = kraft_migrate(*words)
    for _ in range(BROKERS):
        named = told_to_restart(ended.stderr) if ended.returncode == NoProgress.exit_code else []
        for node in named:
            supervisor = Lab.open(directory).supervisor
            supervisor.stop(f"broker-{node}", STOP)
            supervisor.start(f"broker-{node}")
        ended = kraft_migrate(*words) if named else ended
    return ended
