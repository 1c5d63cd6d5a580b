"""What a process and all that it has started take: memory at its highest, and CPU time.

For works that are several processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAUSE: Final = 0.05  # seconds between two looks
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass
class Watched:
    """`peak` in bytes: the highest sum of resident pages; what processes share is counted in each."""

    peak: int = 0

    def look(self, pid: int) -> None:
        """Once."""
        self.peak = max(self.peak, sum(map(resident, family(pid))))


def family(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    for one in found:  # grows meanwhile
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def resident(pid: int) -> int:
    """Bytes now; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


def cpu_of_all() -> float:
    """CPU seconds of this process and of all below it so far, of those that have ended too (proc(5), stat)."""
    return sum(map(_cpu, family(os.getpid())))


def _cpu(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:15])) / TICKS


def _stat(pid: int) -> list[str]:
    """The fields behind the name; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class Spent:
    """CPU seconds of all below this process, each process by itself: also of those for which nobody waits.

    Spark ends an executor's Python processes so; what one takes behind the last look at it is missing.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], float] = {}
        self.words: dict[tuple[int, str], str] = {}  # each process's command line
        self._before = dict(self._look())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _look(self) -> dict[tuple[int, str], float]:
        for pid in family(os.getpid()):
            if fields := _stat(pid):
                one = pid, fields[19]
                self._found[one] = sum(map(int, fields[11:13])) / TICKS
                with suppress(OSError):
                    self.words[one] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") or self.words.get(
                        one, ""
                    )
        return self._found

    def _run(self) -> None:
        while not self._over.wait(PAUSE):
            self._look()

    def end(self, parts: Mapping[str, str]) -> dict[str, float]:
        """The seconds since it was made, by part: name -> words of its processes' command lines; else `rest`."""
        self._over.set()
        self._thread.join()
        found = dict.fromkeys((*parts, "rest"), 0.0)
        for one, seconds in self._look().items():
            words = self.words.get(one, "")
            part = next((name for name, word in parts.items() if word in words), "rest")
            found[part] += seconds - self._before.get(one, 0.0)
        return found


@contextmanager
def watched(pid: int) -> Iterator[Watched]:
    """Looks at it for as long as the block runs."""
    found, over = Watched(), threading.Event()

    def look() -> None:
        while not over.wait(PAUSE):
            found.look(pid)

    found.look(pid)
    thread = threading.Thread(target=look, name="resident", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        found.look(pid)
