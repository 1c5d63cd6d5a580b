"""What both sides' sums and fingerprints come to: the topics, and the partitions, that are not equal.

Arrow in, Arrow out; runs in Spark's Python workers, and nothing here imports pyspark.  Each function is given all rows
of the topics that it is given any row of (`migrate.diff.sealed`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrate.diff.partition_files import SCHEMA
from migrate.diff.topic_sums import HIGHEST, row_prints

ZOOKEEPER, KRAFT = 1, -1
LOW: Final = 0xFFFFFFFF
TOPICS: Final = pa.schema([("topic", pa.string()), ("zookeeper", pa.int64()), ("kraft", pa.int64())])
SIDED: Final = pa.schema([*SCHEMA, ("side", pa.int64())])
Longs = np.ndarray[Any, np.dtype[np.int64]]


def added_up(sums: pa.Table) -> dict[str, Any]:
    """A topic an entry, of rows as `topic_sums.SUMS`: its rows on either side, and each sum of both sides."""
    return _grouped(sums, sums.column_names[3:])


def differing_topics(sums: pa.Table) -> pa.RecordBatch:
    """The topics that differ, or may, with their rows on either side."""
    found = added_up(sums)
    return _rows(found, ~_agree(found))


def _agree(found: dict[str, Any]) -> Any:
    """Both sides have as many rows, both lanes cancel out, and the numbers are 0 to n - 1, each once."""
    n: Longs = found["zookeeper"]
    once = (found["numbers"] * 2 == n * (n - 1)) & (found["squares"] * 6 == n * (n - 1) * (2 * n - 1))
    whole = (n == found["kraft"]) & (n <= HIGHEST) & (found["odd"] == 0)
    return whole & once & _cancels(found, "a") & _cancels(found, "b")


def _cancels(found: dict[str, Any], lane: str) -> Any:
    """The halves' sums, with what the lower one carries, are 0 modulo 2^64."""
    low, high = found[f"{lane}_low"], found[f"{lane}_high"]
    return (low & LOW == 0) & ((high + (low >> 32)) & LOW == 0)


def differing_rows(rows: pa.Table) -> pa.RecordBatch:
    """The rows of the partitions that differ, or may, of rows as `SIDED`.

    Where each side has one row, the fingerprints are equal just where one less the other is nothing.
    """
    whole = rows.combine_chunks()
    (batch,) = whole.to_batches() or [pa.RecordBatch.from_pylist([], whole.schema)]
    prints = row_prints(batch)
    if prints is None or not len(batch):
        return batch
    sides = np.asarray(batch.column("side"))
    order, starts = _by_partition(batch)
    ours = np.add.reduceat((sides == ZOOKEEPER)[order].astype(np.int64), starts)
    counts = np.diff([*starts.tolist(), len(order)])
    equal = (ours == 1) & (counts == 2)
    for lane in prints.T:
        equal &= np.add.reduceat((lane.astype(np.int64) * sides)[order], starts) == 0
    return batch.take(pa.array(np.sort(order[~np.repeat(equal, counts)])))


def _by_partition(batch: pa.RecordBatch) -> tuple[Longs, Longs]:
    """The rows' numbers, those of a partition side by side, and where each partition begins."""
    coded = batch.column("topic").dictionary_encode()
    numbers = np.asarray(batch.column("partition")).astype(np.int64) & LOW
    keys = np.asarray(coded.indices).astype(np.int64) << 32 | numbers
    order = np.argsort(keys, kind="stable")
    return order, np.flatnonzero(np.diff(keys[order], prepend=-1))


def _grouped(table: pa.Table, summed: list[str]) -> dict[str, Any]:
    """Sums a topic, modulo 2^64; `rows` of each side as sums of their own."""
    ours, rows, nothing = pc.equal(table.column("side"), ZOOKEEPER), table.column("rows"), pa.scalar(0, pa.int64())
    counted = {"zookeeper": pc.if_else(ours, rows, nothing), "kraft": pc.if_else(ours, nothing, rows)}
    columns = {name: table.column(name) for name in ("topic", *summed)} | counted
    found = (
        pa.table(columns)
        .group_by("topic", use_threads=False)
        .aggregate([(name, "sum") for name in (*summed, *counted)])
    )
    return {"topic": found.column("topic")} | {
        name: np.asarray(found.column(f"{name}_sum")) for name in (*summed, *counted)
    }


def _rows(found: dict[str, Any], wanted: Any) -> pa.RecordBatch:
    """These topics of what was grouped."""
    table = pa.table([found[name] for name in TOPICS.names], schema=TOPICS).filter(pa.array(wanted))
    return pa.record_batch([column.combine_chunks() for column in table.columns], TOPICS)
