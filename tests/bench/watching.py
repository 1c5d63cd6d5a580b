"""What an idle `status --watch` costs: CPU seconds of its process against the clock, on a terminal and without one.

    python -m tests.bench.watching --inventory FILE [--seconds N]

The cluster should be at rest.  A first look (imports, sessions) is not counted: it goes by before the measuring begins.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TICKS: Final = os.sysconf("SC_CLK_TCK")
FIRST_LOOK: Final = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Idle:
    """CPU seconds and seconds by the clock; `share` is of one core."""

    name: str
    cpu: float
    seconds: float

    @property
    def share(self) -> float:
        """0.01 is one hundredth of a core."""
        return self.cpu / self.seconds


def measure(inventory: Path, seconds: float, *, first: float = FIRST_LOOK) -> list[Idle]:
    """Both forms at once, each a process of its own."""
    pause = threading.Event()
    with _watching(inventory, terminal=False) as lines, _watching(inventory, terminal=True) as terminal:
        processes = {"lines": lines, "terminal": terminal}
        pause.wait(first)
        before = {name: (_cpu(pid), time.monotonic()) for name, pid in processes.items()}
        pause.wait(seconds)
        return [
            Idle(name, _cpu(pid) - before[name][0], time.monotonic() - before[name][1])
            for name, pid in processes.items()
        ]


@contextlib.contextmanager
def _watching(inventory: Path, *, terminal: bool) -> Iterator[int]:
    """The process's id; it is ended as a person does, by Ctrl-C."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "migrate", "status", "--inventory", str(inventory), "--watch"]
    out = theirs if terminal else subprocess.DEVNULL
    environment = {**os.environ, "TERM": "xterm-256color"}
    child = subprocess.Popen(
        words, stdin=theirs, stdout=out, stderr=out, cwd=ROOT, env=environment, start_new_session=True
    )
    os.close(theirs)
    reader = threading.Thread(target=_drained, args=(ours,), daemon=True)
    reader.start()
    try:
        yield child.pid
    finally:
        _ended(child)
        reader.join(5)
        os.close(ours)


def _ended(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, once more where it came while a module was imported and was swallowed there."""
    for _ in range(3):
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(3)
            return
    child.kill()
    child.wait()


def _drained(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def _cpu(pid: int) -> float:
    """User and system seconds so far, of the process with all its threads (proc(5), stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(description="what an idle status --watch costs")
    parser.add_argument("--inventory", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    for found in measure(given.inventory.absolute(), given.seconds):
        print(f"{found.name:<9} {found.cpu:.2f} CPU seconds in {found.seconds:.0f} s: {found.share:.2%} of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
