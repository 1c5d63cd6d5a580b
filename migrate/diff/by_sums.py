"""Partitions compared by sums of fingerprints first: the rows that differ alone are set field by field.

Inputs are files (`migrate.diff.partition_files`).  Spark's Python workers read them row group by row group and sum by
topic; Spark brings the sums of a topic together (`migrate.diff.sealed`), and workers add them.  Of the topics that are
not equal the rows follow in the same way, and workers set their fingerprints side by side: the rows that are not equal
alone go through the same join as ever (`migrate.diff.tables`).  Nothing holds a side: what grows are lists of what
differs, and where these grow too long more goes through the join, in the end everything (`in_jvm`), which spills to
disk.

Workers need this package: elsewhere than on this host all rows go through the join.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from migrate.diff import frames, topic_sums
from migrate.diff.merged_sums import KRAFT, SIDED, TOPICS, ZOOKEEPER, differing_rows, differing_topics
from migrate.diff.partition_files import SCHEMA, PartitionFiles, Split, batches
from migrate.diff.sealed import SEALED, opened, seal
from migrate.diff.tables import Compared, partition_join

LOG = logging.getLogger("migrate.diff")
MOST_TOPICS: Final = 200_000  # that differ: their names are sent to each task
MOST_ROWS: Final = 500_000  # that differ: they are brought here; more, and all of those topics' are joined unseen
MOST_SHARE: Final = 0.3  # of the rows: above, reading them twice costs more than joining all
TASKS: Final = 2  # a side and a core
MERGED_ROWS: Final = 4_000_000  # of both sides, a task that merges what became of them
TYPES: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int32(): "int",
    pa.int64(): "bigint",
    frames.INTS: "array<int>",
}
Read = Callable[[pa.RecordBatch, int], Iterable[pa.RecordBatch]]
Send = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Merge = Callable[[pa.Table], pa.RecordBatch]
Sides = Sequence[tuple[PartitionFiles, int]]


def compare_files(spark: SparkSession, zookeeper: PartitionFiles, kraft: PartitionFiles) -> Compared:
    """The partitions of both; by sums where Spark runs on this host and few topics differ, else by `in_jvm`."""
    if not (spark.sparkContext.master or "").startswith("local"):
        return in_jvm(spark, zookeeper, kraft)
    differing = _differing(spark, zookeeper, kraft)
    if differing.num_rows > MOST_TOPICS:
        LOG.info("more than %d topics differ: every row is compared", MOST_TOPICS)
        return in_jvm(spark, zookeeper, kraft)
    fetched = (pc.sum(differing.column("zookeeper")).as_py() or 0, pc.sum(differing.column("kraft")).as_py() or 0)
    if max(fetched) > MOST_SHARE * max(zookeeper.rows, kraft.rows):
        LOG.info("%d topics differ, with most of the rows: every row is compared", differing.num_rows)
        return in_jvm(spark, zookeeper, kraft)
    topics = differing.column("topic").combine_chunks()
    rows = _differing_rows(spark, (zookeeper, kraft), topics)
    if rows.num_rows <= MOST_ROWS:
        found = [rows.filter(pc.equal(rows.column("side"), side)).select(SCHEMA.names) for side in (ZOOKEEPER, KRAFT)]
        fetched = (found[0].num_rows, found[1].num_rows)
        left, right = (_framed(spark, side) for side in found)
    else:
        left, right = (_fetched(spark, side, topics) for side in (zookeeper, kraft))
    LOG.info("%d topics differ: %d rows of theirs are compared field by field", len(topics), sum(fetched))
    agreed = zookeeper.rows - fetched[0]
    if kraft.rows - fetched[1] != agreed:
        raise RuntimeError(f"{agreed} and {kraft.rows - fetched[1]} rows agree: a file has changed meanwhile")
    return replace(partition_join(left, right, fetched), agreed=agreed)


def in_jvm(spark: SparkSession, zookeeper: PartitionFiles, kraft: PartitionFiles) -> Compared:
    """Every row of both, read and joined by Spark itself: no Python there, and disk where memory is short."""
    left, right = (_read(spark, side) for side in (zookeeper, kraft))
    return partition_join(left, right, (zookeeper.rows, kraft.rows))


def _read(spark: SparkSession, side: PartitionFiles) -> DataFrame:
    if not side.files:
        return frames.frame(spark, frames.PARTITIONS.empty_table())
    return spark.read.parquet(*side.files).selectExpr("0 AS cluster", *SCHEMA.names)


# -- sums ------------------------------------------------------------------------------------------------------------
def _differing(spark: SparkSession, zookeeper: PartitionFiles, kraft: PartitionFiles) -> pa.Table:
    """(topic, zookeeper, kraft) of topics that differ, or may, with their rows: MOST_TOPICS + 1 a task at most."""
    sides, most = ((zookeeper, ZOOKEEPER), (kraft, KRAFT)), MOST_TOPICS + 1
    answer: pa.Table = summed(spark, sides, lambda sums: differing_topics(sums).slice(0, most), TOPICS).toArrow()
    return answer


def summed(spark: SparkSession, sides: Sides, merge: Merge, schema: pa.Schema) -> DataFrame:
    """What `merge` makes of the sums of the sides' topics, with that schema."""

    def read(batch: pa.RecordBatch, side: int) -> list[pa.RecordBatch]:
        return [topic_sums.topic_sums(batch, side)]

    return _merged(spark, sides, (read, topic_sums.SUMS), (merge, schema))


def _merged(
    spark: SparkSession, sides: Sides, reading: tuple[Read, pa.Schema], merging: tuple[Merge, pa.Schema]
) -> DataFrame:
    """What is read of the sides, brought together by topic: `merging` is given whole topics, some at a time."""
    tasks = max(spark.sparkContext.defaultParallelism, sum(files.rows for files, _ in sides) // MERGED_ROWS)
    (read, rows), (merge, schema) = reading, merging
    sent = _in_turns(spark, sides, read, SEALED, lambda tables: seal(tables, tasks))
    return opened(sent, tasks, rows, merge, _columns(schema))


def _splits(side: PartitionFiles, cores: int) -> list[Split]:
    """Some tasks a core: so many that the last one is not waited for long."""
    return side.splits(max(1, -(-sum(side.groups) // (TASKS * cores))))


def _in_turns(spark: SparkSession, sides: Sides, read: Read, schema: pa.Schema, send: Send = iter) -> DataFrame:
    """What `read` makes of each batch of the sides, whose tasks take turns; sent as `send` makes it of a task's."""
    cores = spark.sparkContext.defaultParallelism
    splits = [[(split, side) for split in _splits(files, cores)] for files, side in sides]
    turns = [entry for turn in zip_longest(*splits) for entry in turn if entry is not None]

    def found(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            split, side = turns[number]
            for batch in batches(split):
                yield from read(batch, side)

    tasks = len(turns)
    return spark.range(0, tasks, 1, max(1, tasks)).mapInArrow(lambda numbers: send(found(numbers)), _columns(schema))


# -- rows ------------------------------------------------------------------------------------------------------------
def _differing_rows(spark: SparkSession, sides: Sequence[PartitionFiles], topics: pa.Array) -> pa.Table:
    """The rows of these topics' partitions that differ, or may, as `SIDED`: MOST_ROWS + 1 a task at most."""
    most = MOST_ROWS + 1
    if not len(topics):
        return SIDED.empty_table()

    def read(batch: pa.RecordBatch, side: int) -> Iterator[pa.RecordBatch]:
        for some in topic_sums.topics_of([batch], topics):
            yield pa.record_batch([*_plain(some), pa.array(np.full(len(some), side), pa.int64())], SIDED)

    both = list(zip(sides, (ZOOKEEPER, KRAFT), strict=True))
    found = _merged(spark, both, (read, SIDED), (lambda rows: differing_rows(rows).slice(0, most), SIDED))
    answer: pa.Table = found.toArrow()
    return answer


def _framed(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that were brought here."""
    table = rows.cast(SCHEMA) if rows.num_rows else SCHEMA.empty_table()
    return frames.frame(spark, table).selectExpr("0 AS cluster", *SCHEMA.names)


def _fetched(spark: SparkSession, side: PartitionFiles, topics: pa.Array) -> DataFrame:
    """All rows of these topics of a side; nothing of them is here."""

    def read(batch: pa.RecordBatch, _side: int) -> Iterator[pa.RecordBatch]:
        for some in topic_sums.topics_of([batch], topics):
            yield pa.record_batch(_plain(some), SCHEMA)

    rows = _in_turns(spark, [(side, ZOOKEEPER)], read, SCHEMA)
    return rows.selectExpr("0 AS cluster", *SCHEMA.names)


def _plain(batch: pa.RecordBatch) -> list[pa.Array]:
    """Its columns, texts as such."""
    return [column.cast(kind) for column, kind in zip(batch.columns, SCHEMA.types, strict=True)]


def _columns(schema: pa.Schema) -> str:
    """As Spark names them."""
    return ", ".join(f"{field.name} {TYPES[field.type]}" for field in schema)
