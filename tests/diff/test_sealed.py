"""Batches sealed for Spark's shuffle: every row arrives, and a topic's rows arrive together."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.diff import sealed
from migrate.diff.sealed import BUCKETS, SEALED, opened, seal

ROWS = pa.schema([("topic", pa.string()), ("number", pa.int64())])
NAMES = st.lists(st.text(min_size=1, max_size=4), max_size=30)


def batches(names: list[str], size: int = 7) -> list[pa.RecordBatch]:
    """Numbered rows, some at a time."""
    rows = [{"topic": name, "number": number} for number, name in enumerate(names)]
    return [pa.RecordBatch.from_pylist(rows[at : at + size], ROWS) for at in range(0, len(rows), size)]


def content(found: list[pa.RecordBatch]) -> list[tuple[int, str, int]]:
    """(bucket, topic, number) of each row."""
    return [
        (bucket, row["topic"], row["number"])
        for batch in found
        for bucket, raw in zip(batch.column("bucket").to_pylist(), batch.column("content"), strict=True)
        for row in pa.ipc.read_record_batch(raw.as_buffer(), ROWS).to_pylist()
    ]


@given(names=NAMES, tasks=st.integers(1, 5), most=st.integers(1, 20))
def test_every_row_is_in_one_bucket_which_is_its_topics(names: list[str], tasks: int, most: int) -> None:
    """However many are gathered before they are sealed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "MOST_ROWS", most)
        found = content(list(seal(batches(names), tasks)))
    assert sorted((number, topic) for _, topic, number in found) == list(enumerate(names))
    assert len({(bucket, topic) for bucket, topic, _ in found}) == len(set(names))
    assert all(0 <= bucket < BUCKETS * tasks for bucket, _, _ in found)


@pytest.mark.spark
def test_a_task_is_given_whole_topics(spark: SparkSession) -> None:
    """From several tasks to several others."""
    names = [f"topic {number % 11}" for number in range(200)]
    table = pa.Table.from_batches(batches(names))
    sent = spark.createDataFrame(table).repartition(3)

    def sealing(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return seal((batch.cast(ROWS) for batch in rows), 2)

    def counted(found: pa.Table) -> pa.RecordBatch:
        groups = found.group_by("topic").aggregate([("number", "count")])
        return pa.record_batch([groups.column(name).combine_chunks() for name in ("topic", "number_count")], ROWS)

    carried = sent.mapInArrow(sealing, "bucket int, content binary")
    answer = opened(carried, 2, ROWS, counted, "topic string, number bigint").toArrow()
    assert carried.toArrow().schema.names == SEALED.names
    assert sorted(answer.column("topic").to_pylist()) == sorted(set(names))
    assert sum(answer.column("number").to_pylist()) == len(names)
