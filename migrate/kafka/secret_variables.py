"""Secrets from environment variables: taken out of this process's environment, so that no child is given them.

What the kernel keeps of a process's first environment (`/proc/PID/environ`) stays, for this user and root to read.
"""

from __future__ import annotations

import os
from typing import Final

from migrate.errors import SecretUnreadable

_TAKEN: Final[dict[str, str]] = {}


def take(name: str) -> None:
    """Move the variable's value out of the environment, if it has one; what was taken before stays."""
    value = os.environ.pop(name, None)
    if value is not None:
        _TAKEN[name] = value


def value_of(name: str) -> str:
    """The value, without the white space around it.

    Raises:
        SecretUnreadable: not set, empty, or no UTF-8.
    """
    take(name)
    if name not in _TAKEN:
        raise SecretUnreadable("the secret's environment variable is not set", where=f"environment {name}")
    text = _TAKEN[name].strip()
    if not text:
        raise SecretUnreadable("the secret's environment variable is empty", where=f"environment {name}")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):  # bytes that were no UTF-8
        raise SecretUnreadable("the secret's environment variable is not UTF-8", where=f"environment {name}")
    return text
