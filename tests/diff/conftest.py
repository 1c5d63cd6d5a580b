"""One Spark session for all tests of this area: started when a test first asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from migrate.diff.session import SparkHandle


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
