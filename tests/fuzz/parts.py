"""Parts of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.damage import Parts


def one(name: str, raw: bytes) -> Callable[[Path], Parts]:
    """A file of one part."""
    return lambda _: {name: raw}


def dumped(value: Any) -> bytes:
    """JSON as most of our files have it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
