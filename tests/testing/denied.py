"""A folder of somebody else's, as it is for who may not look into it; for root, who may, it has to be played."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn


def denied(path: Path) -> NoReturn:
    """In the place of a method of `Path` that looks."""
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
