"""Sides of a race whose processes last through all rounds: warm, each does its work whenever it is told to."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tests.bench.races import ROOT, Run, known, measured


class Lasting:
    """Runs a side in its process, which is started with its first round."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str, int], subprocess.Popen[str]] = {}

    def __call__(self, name: str, side: str, folder: Path, size: int) -> Run:
        """Once more."""
        key = name, side, size
        if key not in self._running:
            command = [sys.executable, "-m", "tests.bench.races", "--one", name, side, str(folder), str(size)]
            self._running[key] = subprocess.Popen(
                [*command, "--again"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
            )
        process = self._running[key]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{name}, {side}: ended with {process.wait()}")
        return Run(**json.loads(line))

    def close(self) -> None:
        """Each ends when nothing more comes."""
        for process in self._running.values():
            process.communicate()
        self._running.clear()


def again(name: str, side: str, folder: Path, size: int) -> None:
    """One side, once for each line that comes in."""
    with known()[name].sides[side](folder, size) as work:
        for _ in sys.stdin:
            sys.stdout.write(json.dumps(asdict(measured(work))) + "\n")
            sys.stdout.flush()
