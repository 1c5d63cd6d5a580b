"""The one Spark session of all tests: started when a test first asks for it, since a process has only one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from migrate.diff.session import SparkHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # importing it costs a second, which most tests need not pay


@pytest.fixture(scope="session")
def spark_handle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkHandle]:
    """The handle of the one session."""
    handle = SparkHandle.start(tmp_path_factory.mktemp("spark"))
    try:
        yield handle
    finally:
        handle.stop()


@pytest.fixture(scope="session")
def spark(spark_handle: SparkHandle) -> SparkSession:
    """The one session, warm."""
    return spark_handle.get(timeout=300)


def driver_pid(handle: SparkHandle) -> int | None:
    """The process id of its driver, while there is one."""
    return None if handle._gateway is None else handle._gateway.proc.pid
