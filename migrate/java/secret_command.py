"""A secret from an operator's command: its standard output, and nothing else.

It stands in this layer because those above start no processes.  No shell is asked: the command is a list of words, the
first an absolute path.  It has no terminal and no input, so that it can ask nobody; what it writes to its standard
error is not kept, for it may hold the secret.  Its environment is ours, from which every secret was taken before.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import SecretUnreadable
from migrate.model import limits
from migrate.model.trusted import distrust_of

MAX_BYTES: Final = limits.most("secret")
KEPT_SECONDS: Final = 300.0  # an answer is used for so long: connections are opened by the hundred
PIECE: Final = 4096


@dataclass(frozen=True, slots=True)
class _Kept:
    content: bytes
    until: float  # monotonic seconds

    def __repr__(self) -> str:
        return "_Kept(...)"


_KEPT: Final[dict[tuple[str, ...], _Kept]] = {}
_ONE_AT_A_TIME: Final[dict[tuple[str, ...], threading.Lock]] = {}  # each by itself: one that hangs delays no other


def ask(argv: Sequence[str], timeout: float, *, fresh: bool = False) -> bytes:
    """Run the command and return its output, at most 64 KiB; the answer is kept for five minutes unless `fresh`.

    Raises:
        SecretUnreadable: it cannot be started, others could change it, it failed, or did not end within `timeout`
            seconds (it is killed then, with all that it started).  Messages name the program, never its words.
    """
    key = tuple(argv)
    with _ONE_AT_A_TIME.setdefault(key, threading.Lock()):
        kept = _KEPT.get(key)
        if kept is None or fresh or time.monotonic() > kept.until:
            _check(key[0])
            kept = _Kept(_run(key, timeout), time.monotonic() + KEPT_SECONDS)
            _KEPT[key] = kept
        return kept.content


def _check(program: str) -> None:
    try:
        problem = distrust_of(Path(program), Path(program).parent)
    except OSError as error:
        raise SecretUnreadable(f"the secret's command cannot be started: {error.strerror}", where=program) from None
    if problem:
        raise SecretUnreadable(
            f"the secret's command cannot be trusted: {problem}",
            where=program,
            why="another user can change it, and it would be run as this user",
            next_step="let it and its folder belong to this user or to root, and nobody else write them (chmod go-w)",
        )


def _run(argv: tuple[str, ...], timeout: float) -> bytes:
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SecretUnreadable(f"the secret's command cannot be started: {error.strerror}", where=argv[0]) from None
    deadline = time.monotonic() + timeout
    try:
        content = _answer(process, deadline)
        code = 0 if len(content) > MAX_BYTES else process.wait(max(deadline - time.monotonic(), 0))
    except (TimeoutError, subprocess.TimeoutExpired):
        raise SecretUnreadable(
            f"the secret's command did not end within {timeout:.0f} s",
            where=argv[0],
            why="it may wait for a person, or for a service that does not answer",
            next_step="run it by hand as this user; `timeout` beside `command` gives it more time",
        ) from None
    finally:
        _end(process)
    if len(content) > MAX_BYTES:
        raise SecretUnreadable(f"the secret's command wrote more than {MAX_BYTES // 1024} KiB", where=argv[0])
    if code:
        raise SecretUnreadable(
            f"the secret's command ended with {code}",
            where=argv[0],
            why="what it said is not kept, for it may hold the secret",
            next_step="run it by hand as this user",
        )
    return content


def _answer(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    assert process.stdout is not None
    found = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while len(found) <= MAX_BYTES:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.select(left):
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), PIECE)
            if not piece:
                return bytes(found)
            found += piece
    return bytes(found)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End whatever of it still runs: it has a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
