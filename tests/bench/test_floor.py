"""The barest script takes a lab through all stages: what the demo is set against does its work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.lab.cluster import Lab
from migrate.model.views import Running
from tests.bench.races import ROOT

STAGES = (
    "up",
    "seed",
    "controllers",
    "migration-mode",
    "copy",
    "kraft-mode",
    "finalize",
    "without-zookeeper",
    "again",
    "down",
    "total",
)


@pytest.mark.kafka
def test_the_floor_migrates_a_lab_and_leaves_nothing_running(tmp_path: Path) -> None:
    """In a process of its own, as in the race."""
    command = [sys.executable, "-m", "tests.bench.floor", str(tmp_path / "lab")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    assert tuple(json.loads(done.stdout)) == STAGES
    processes = Lab.open(tmp_path / "lab").supervisor
    assert [name for name in processes.specs() if isinstance(processes.state(name), Running)] == []
