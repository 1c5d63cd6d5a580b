"""Secrets, read where they are used and from files that nobody but their owner can read."""

from __future__ import annotations

import os
import stat
from typing import Final

from migrate.errors import SecretUnreadable
from migrate.model.inventory import SecretFile

MAX_BYTES: Final = 64 * 1024
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def read_secret(secret: SecretFile) -> str:
    """The secret, without the white space around it.

    The mode is asked of the open file, so that it is the file that was read.  Messages never hold its content.

    Raises:
        SecretUnreadable: missing, empty, no regular file, open to others, too large, or no UTF-8.
    """
    try:
        descriptor = os.open(secret.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            _check(secret, os.fstat(file.fileno()))
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SecretUnreadable(f"the secret's file cannot be read: {error.strerror}", where=secret.path) from None
    if len(raw) > MAX_BYTES:
        raise SecretUnreadable(f"the secret's file is larger than {MAX_BYTES // 1024} KiB", where=secret.path)
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise SecretUnreadable("the secret's file is not UTF-8", where=secret.path) from None
    if not text:
        raise SecretUnreadable("the secret's file is empty", where=secret.path)
    return text


def _check(secret: SecretFile, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretUnreadable("the secret's path is no regular file", where=secret.path)
    if status.st_mode & OTHERS:
        raise SecretUnreadable(
            f"the secret's file has mode {stat.S_IMODE(status.st_mode):04o}",
            where=secret.path,
            why="others than its owner can read or change it",
            next_step=f"chmod 600 {secret.path}",
        )
