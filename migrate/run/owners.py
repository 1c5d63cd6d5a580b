"""Does the owner of a lock live?  Said of a process only where it can be seen from here."""

from __future__ import annotations

import fcntl
import os
import pathlib
import socket
from dataclasses import dataclass
from enum import StrEnum


class Alive(StrEnum):
    """What is known of an owner."""

    LIVES = "lives"
    DEAD = "is dead"
    UNSEEN = "cannot be seen from here"


def process(host: str, pid: int) -> Alive:
    """The process of that number on that host; one that got a dead one's number counts as living."""
    if host != socket.gethostname():
        return Alive.UNSEEN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Alive.DEAD
    except PermissionError:
        return Alive.LIVES
    return Alive.LIVES


@dataclass(frozen=True, slots=True)
class FileOwner:
    """What stands in a lock file, and whether the kernel says that somebody holds it."""

    text: str
    held: bool


def of_file(path: pathlib.Path) -> FileOwner | None:
    """The lock file's owner; None where there is no file."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        text = os.pread(handle, 4096, 0).decode(errors="replace").strip()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return FileOwner(text, held=True)
        return FileOwner(text, held=False)
    finally:
        os.close(handle)


def empty(path: pathlib.Path) -> bool:
    """Take a dead owner's name out of the lock file; False where somebody holds it.

    The file itself stays: two runs that lock two files of one name would both be alone.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
