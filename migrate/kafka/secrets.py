"""Secrets, read where they are used: from files that only their owner can read, environment variables, or commands.

A variable is taken out of this process's environment, so that no child gets it.  What the kernel keeps of a process's
first environment (`/proc/PID/environ`) stays, for this user and root to read.
"""

from __future__ import annotations

import os
import shlex
import stat
from typing import Final

from migrate.errors import SecretUnreadable
from migrate.java.secret_command import ask
from migrate.model import limits
from migrate.model.inventory import Secret, SecretCommand, SecretFile, SecretVariable
from migrate.model.trusted import distrust

MAX_BYTES: Final = limits.most("secret")
COMMAND_SECONDS: Final = 60.0  # for a command that prints one
_TAKEN: Final[dict[str, str]] = {}


def take_from_environment(name: str) -> None:
    """Move the variable's value out of the environment, if it has one; what was taken before stays."""
    value = os.environ.pop(name, None)
    if value is not None:
        _TAKEN[name] = value


def read_variable(name: str) -> str:
    """The value, without the white space around it.  Raises SecretUnreadable: not set, empty, or no UTF-8."""
    take_from_environment(name)
    if name not in _TAKEN:
        raise SecretUnreadable("the secret's environment variable is not set", where=f"environment {name}")
    text = _TAKEN[name].strip()
    if not text:
        raise SecretUnreadable("the secret's environment variable is empty", where=f"environment {name}")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):  # bytes that were no UTF-8
        raise SecretUnreadable("the secret's environment variable is not UTF-8", where=f"environment {name}")
    return text


def read_secret(secret: Secret, *, fresh: bool = False) -> str:
    """The secret, without the white space around it; `fresh` asks its command anew.  Messages never hold any of it.

    Raises SecretUnreadable: missing, empty, too large, or no UTF-8; a file that is none, open to others, or of another
    user than this one and root; a command that failed.
    """
    match secret:
        case SecretVariable(name):
            return read_variable(name)
        case SecretCommand(argv):
            return _text(ask(argv, COMMAND_SECONDS, fresh=fresh), "the secret's command wrote what", argv[0])
        case SecretFile(path):
            return _text(read_private(path), "the secret's file", path)


def read_private(path: str, what: str = "the secret's file") -> bytes:
    """The content of a file that only its owner can read.  Raises SecretUnreadable as `read_secret` does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            _check(path, what, os.fstat(file.fileno()))  # of the open file: of the one that is read
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise SecretUnreadable(
            f"{what} cannot be read: {error.strerror}",
            where=path,
            next_step="write the secret into it (mode 0600), or correct its path in the inventory" if missing else "",
        ) from None
    if len(raw) > MAX_BYTES:
        raise SecretUnreadable(f"{what} is larger than {MAX_BYTES // 1024} KiB", where=path)
    return raw


def _text(raw: bytes, what: str, where: str) -> str:
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise SecretUnreadable(f"{what} is not UTF-8", where=where) from None
    if not text:
        raise SecretUnreadable(f"{what} is empty", where=where)
    return text


def _check(path: str, what: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretUnreadable(f"{what} is no regular file", where=path)
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretUnreadable(
            f"{what} has mode {stat.S_IMODE(status.st_mode):04o}",
            where=path,
            why="others than its owner can read or change it",
            next_step=f"chmod 600 {shlex.quote(path)}",
        )
    if why := distrust(status):
        raise SecretUnreadable(
            f"{what} is not trusted: {why}",
            where=path,
            why="that user can read and change it; root could read it all the same",
            next_step="give it to the user who runs kraft-migrate, or to root: `chown`",
        )
