"""Tables on their way from Python to Python through Spark's shuffle: as bytes, which the JVM carries and never opens.

A row that becomes Spark's own costs the JVM ten times what it costs Arrow.  So what one task of Python makes for
another goes as a record batch in one binary value; Spark brings all of a bucket's batches to one task, spills them
where memory is short, and sees a few hundred rows instead of millions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

SEALED: Final = pa.schema([("bucket", pa.int32()), ("content", pa.binary())])
DDL: Final = "bucket int, content binary"
MOST_ROWS: Final = 200_000  # that a task gathers before it seals them
BUCKETS: Final = 8  # a task that opens them: Spark spreads them by a hash of its own


def seal(tables: Iterable[pa.RecordBatch], tasks: int) -> Iterator[pa.RecordBatch]:
    """The rows of these batches of one schema, as `SEALED`; all of a `topic` go into the same bucket."""
    buckets = BUCKETS * tasks
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= MOST_ROWS:
            yield _sealed(waiting, buckets)
            waiting, rows = [], 0
    if rows:
        yield _sealed(waiting, buckets)


def _sealed(tables: list[pa.RecordBatch], buckets: int) -> pa.RecordBatch:
    """One row a bucket that has any."""
    whole = pa.Table.from_batches(tables).combine_chunks()
    bucket = _buckets(whole.column("topic"), buckets)
    whole = whole.take(pa.array(np.argsort(bucket, kind="stable")))
    ends = np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()
    found = {
        number: whole.slice(start, end - start).combine_chunks().to_batches()[0].serialize()
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        if end > start
    }
    contents = pa.array([content.to_pybytes() for content in found.values()], pa.binary())
    return pa.record_batch([pa.array(list(found), pa.int32()), contents], SEALED)


def _buckets(topic: pa.ChunkedArray, buckets: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A bucket a row."""
    coded = topic.combine_chunks().dictionary_encode()
    names = coded.dictionary.to_pylist()
    each = np.fromiter((crc32(name.encode()) % buckets for name in names), np.int64, len(names))
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = each[np.asarray(coded.indices)]
    return found


def opened(
    sealed: DataFrame, tasks: int, schema: pa.Schema, merge: Callable[[pa.Table], pa.RecordBatch], wanted: str
) -> DataFrame:
    """What `merge` makes of the rows, which have that schema, in so many tasks; each is given whole topics.

    `wanted` are its columns, as Spark names them.  A task holds all that it is given at once.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        contents = (value for batch in batches for value in batch.column("content"))
        found = [pa.ipc.read_record_batch(value.as_buffer(), schema) for value in contents]
        if found:
            yield merge(pa.Table.from_batches(found))

    return sealed.repartition(tasks, "bucket").mapInArrow(work, wanted)
