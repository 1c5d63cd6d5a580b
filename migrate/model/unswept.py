"""Building very many values without Python's search for cycles among them.

The collector looks at all containers there are each time that their number has grown by a quarter.  While a view of
twenty thousand partitions is built that is a third of the work, and finds nothing: lists of numbers hold no cycles.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Paused:
    """How many blocks are at work, in all threads; and was the collector on before the first?"""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.was_on = False


_PAUSED = _Paused()


@contextmanager
def unswept() -> Iterator[None]:
    """No search for cycles while the block runs, in any thread: for blocks that end within a minute."""
    with _PAUSED.lock:
        if not _PAUSED.blocks:
            _PAUSED.was_on = gc.isenabled()
            gc.disable()
        _PAUSED.blocks += 1
    try:
        yield
    finally:
        with _PAUSED.lock:
            _PAUSED.blocks -= 1
            if not _PAUSED.blocks and _PAUSED.was_on:
                gc.enable()
