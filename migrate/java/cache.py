"""The per-user cache: Kafka's jars and class archives, shared by every lab and by several runs at once.

One rule makes it safe: a folder appears under its final name complete and checked, by one rename, or not at all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.errors import JarsUnavailable

Progress = Callable[[str], None]

LOCK_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.2


def silent(_line: str) -> None:
    """Report no progress."""


@contextmanager
def locked(path: Path, progress: Progress, *, seconds: float = LOCK_SECONDS) -> Iterator[int]:
    """Hold the lock file; yields its descriptor.

    The kernel frees it when the last process that holds the descriptor ends, so a killed run leaves nothing behind;
    a child that is given the descriptor keeps the lock while it still writes.

    Raises:
        JarsUnavailable: another run holds it for longer than `seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, progress, seconds)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, progress: Progress, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                progress("another run is filling the cache: waiting for it")
                told = True
            if time.monotonic() > deadline:
                raise JarsUnavailable(
                    f"another run has held the cache's lock for {seconds:.0f} s",
                    where=str(path),
                    next_step="look for a stuck kraft-migrate or java process of yours, end it, run the command again",
                ) from None
            _pause(POLL_SECONDS)
        else:
            return


def _pause(seconds: float) -> None:
    # flock has no timeout of its own; a wait on nothing is one
    import select  # noqa: PLC0415 - only a run that waits needs it

    select.select([], [], [], seconds)


@contextmanager
def staged(final: Path) -> Iterator[Path]:
    """A folder beside `final` to fill; it takes that name when the block ends without an error.

    Only under the lock: what a killed run left of it is removed first.
    """
    stage = final.with_name(final.name + ".partial")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        yield stage
        _sync(stage)
        stage.rename(final)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in [*folder.iterdir(), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
