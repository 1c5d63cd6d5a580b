"""What is in progress, and how much of it is done: looks write it, a progress line and the board of a run show it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Work:
    """The parts that are in progress, by name, each with its count, its total where known, and how long it lasts.

    Any thread may change it, any other may show it.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._now = now
        self._parts: dict[str, tuple[int, int, float]] = {}

    @contextmanager
    def part(self, name: str, total: int = 0) -> Iterator[None]:
        """That part is in progress while the block runs; a total of 0 is unknown."""
        with self._lock:
            self._parts[name] = (0, total, self._now())
        try:
            yield
        finally:
            with self._lock:
                self._parts.pop(name, None)

    def count(self, name: str) -> None:
        """One more of that part is done."""
        with self._lock:
            if name in self._parts:
                done, total, began = self._parts[name]
                self._parts[name] = (done + 1, total, began)

    def __str__(self) -> str:
        with self._lock:
            parts, now = list(self._parts.items()), self._now()
        said = []
        for name, (done, total, began) in parts:
            counted = f"{done:,} of {total:,}" if total else ""
            lasting = f"{now - began:.0f} s" if now - began >= 1 else ""
            behind = ", ".join(filter(None, (counted, lasting)))
            said.append(f"{name} ({behind})" if behind else name)
        return ", ".join(said)
