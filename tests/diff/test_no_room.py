"""A full disk under Spark's folder, where pyspark puts the tables that it hands over."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import SparkSession

from migrate.diff.compare import compare
from migrate.errors import SparkGone
from migrate.model.difference import DiffReport
from tests.testing.clusters import healthy_cluster, kraft_view, zookeeper_view
from tests.testing.no_room import no_room

pytestmark = pytest.mark.spark


def compared(spark: SparkSession) -> DiffReport:
    """Two views of one cluster."""
    rows = healthy_cluster().partitions
    zookeeper, kraft = zookeeper_view(rows), kraft_view(rows)
    return compare(spark, zookeeper, kraft, (), offset=100, lag=0, today=date(2026, 11, 21))


def test_a_full_disk_is_told_as_the_end_of_the_comparison(spark: SparkSession) -> None:
    """By an error of ours that names the cause: a gate never passes on it, and with room the next one answers."""
    with no_room(), pytest.raises(SparkGone, match="the comparison") as raised:
        compared(spark)
    assert "File too large" in raised.value.why
    assert sum(count.get("EQUAL", 0) for count in compared(spark).counts.values()) > 0
