"""Who gives a command."""

from __future__ import annotations

import getpass
import os


def account() -> str:
    """The account's name; `uid 1000` where this system knows no name for it, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
