"""Where this user's files that can be made again lie: Kafka's jars, class archives, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """XDG_CACHE_HOME/kraft-migrate, or ~/.cache/kraft-migrate; not made here."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"  # the XDG rule: relative ones are ignored
    return root / "kraft-migrate"
