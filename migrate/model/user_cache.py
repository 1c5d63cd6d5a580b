"""Where this user's files that can be made again lie: Kafka's jars, class archives, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

from migrate.errors import SystemRefused


def cache_directory() -> Path:
    """XDG_CACHE_HOME/kraft-migrate, or ~/.cache/kraft-migrate; not made here.

    Raises:
        SystemRefused: this account has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):  # the XDG rule: relative ones are ignored
        return Path(base) / "kraft-migrate"
    try:
        return Path.home() / ".cache" / "kraft-migrate"
    except RuntimeError as error:
        raise SystemRefused(
            "this account has no home directory", next_step="set HOME, or XDG_CACHE_HOME to a folder of yours"
        ) from error
