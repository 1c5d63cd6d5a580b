"""What can happen to a job while it runs: Java's exception, or the end of the driver.  One error for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrate.errors import SparkGone

LONGEST_REASON = 500


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turn whatever pyspark and its gateway raise into SparkGone: `what` could not be finished.

    An OSError of pyspark's own is a driver that went away, or a file in Spark's folder that could not be written: it
    hands tables over in such files.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        raise SparkGone(f"Spark could not finish {what}", why=reason) from error
