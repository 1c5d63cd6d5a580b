"""A Spark session for several observers at once, which each of them is lent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.model.difference import SparkWhere

if TYPE_CHECKING:
    from migrate.diff.session import SparkHandle as SparkHandle  # noqa: PLC0414 - callers name the type by this module


@contextmanager
def spark_session(where: SparkWhere) -> Iterator[SparkHandle]:
    """A session that begins to start now, in the background; ended with the block, its folder with it."""
    from migrate.diff.session import SparkHandle

    with tempfile.TemporaryDirectory(prefix="kraft-migrate-", ignore_cleanup_errors=True) as scratch:
        handle = SparkHandle.start(Path(scratch), where)
        try:
            yield handle
        finally:
            handle.stop()
