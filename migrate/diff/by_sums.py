"""Partitions compared by sums of fingerprints first: the rows that differ alone are set field by field.

Inputs are files (`migrate.diff.partition_files`).  Spark's Python workers read them row group by row group, sum by
topic and hand over one row a topic; the JVM adds these.  Of the topics that are not equal the fingerprints of all rows
follow, and of the rows that are not equal the rows: these alone go through the same join as ever
(`migrate.diff.tables`).  Nothing holds a side: what grows are lists of what differs, and where these grow too long more
goes through the join, in the end everything (`in_jvm`), which spills to disk.

Workers need this package: elsewhere than on this host all rows go through the join.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark reader expects

from migrate.diff import frames, topic_sums
from migrate.diff.partition_files import SCHEMA, PartitionFiles, Split, batches
from migrate.diff.tables import Compared, partition_join

LOG = logging.getLogger("migrate.diff")
MOST_TOPICS: Final = 200_000  # that differ: their names are sent to each task
MOST_KEYS: Final = 500_000  # partitions that differ; where there are more, all rows of those topics are joined
MOST_SHARE: Final = 0.3  # of the rows: above, reading them twice costs more than joining all
TASKS: Final = 4  # a side and a core
ZOOKEEPER, KRAFT = 1, -1
LOW: Final = 0xFFFFFFFF
TYPES: Final = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", frames.INTS: "array<int>"}
KEYS: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("zookeeper", pa.int64()), ("kraft", pa.int64())]
)
Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Fetch = Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]]
Read = Callable[[pa.RecordBatch, int], Iterable[pa.RecordBatch]]
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
    keys = _differing_keys(spark, (zookeeper, kraft), topics)
    if keys.num_rows <= MOST_KEYS:
        fetched = (pc.sum(keys.column("zookeeper")).as_py() or 0, pc.sum(keys.column("kraft")).as_py() or 0)
        numbers = topic_sums.keys(keys.column("topic"), keys.column("partition"), topics).combine_chunks()
        fetch = _fetching_rows(topics, numbers)
    else:
        fetch = _fetching_topics(topics)
    LOG.info("%d topics differ: %d rows of theirs are compared field by field", len(topics), sum(fetched))
    agreed = zookeeper.rows - fetched[0]
    if kraft.rows - fetched[1] != agreed:
        raise RuntimeError(f"{agreed} and {kraft.rows - fetched[1]} rows agree: a file has changed meanwhile")
    left, right = (_fetched(spark, side, fetch if any(fetched) else None) for side in (zookeeper, kraft))
    return replace(partition_join(left, right, fetched), agreed=agreed)


def in_jvm(spark: SparkSession, zookeeper: PartitionFiles, kraft: PartitionFiles) -> Compared:
    """Every row of both, read and joined by Spark itself: no Python there, and disk where memory is short."""
    left, right = (_read(spark, side) for side in (zookeeper, kraft))
    return partition_join(left, right, (zookeeper.rows, kraft.rows))


def _read(spark: SparkSession, side: PartitionFiles) -> DataFrame:
    if not side.files:
        return frames.frame(spark, frames.PARTITIONS.empty_table())
    return spark.read.parquet(*side.files).select(F.lit(0).alias("cluster"), *SCHEMA.names)


# -- sums ------------------------------------------------------------------------------------------------------------
def _differing(spark: SparkSession, zookeeper: PartitionFiles, kraft: PartitionFiles) -> pa.Table:
    """(topic, zookeeper, kraft) of topics that differ, or may: with their rows; one more than MOST_TOPICS at most."""
    added = added_up(spark, ((zookeeper, ZOOKEEPER), (kraft, KRAFT)))
    found = added.where(~_agrees()).select("topic", "zookeeper", "kraft").limit(MOST_TOPICS + 1)
    answer: pa.Table = found.toArrow()
    return answer


def added_up(spark: SparkSession, sides: Sides) -> DataFrame:
    """A row a topic: its rows on either side, and the sums of fingerprints, one side's less the other's."""
    sums = _in_turns(spark, sides, lambda batch, side: [topic_sums.topic_sums(batch, side)], topic_sums.SUMS)
    rows = F.col("rows")
    return sums.groupBy("topic").agg(
        F.sum(F.when(F.col("side") == ZOOKEEPER, rows).otherwise(0)).alias("zookeeper"),
        F.sum(F.when(F.col("side") == KRAFT, rows).otherwise(0)).alias("kraft"),
        *(F.sum(name).alias(name) for name in topic_sums.SUMS.names[3:]),
    )


def _agrees() -> Column:
    """Both sides have as many rows, both lanes cancel out, and the numbers are 0 to n - 1, each once."""
    n = F.col("zookeeper")
    once = (F.col("numbers") * 2 == n * (n - 1)) & (F.col("squares") * 6 == n * (n - 1) * (2 * n - 1))
    return (n == F.col("kraft")) & (F.col("odd") == 0) & _cancels("a") & _cancels("b") & once


def _cancels(lane: str) -> Column:
    """The halves' sums, with what the lower one carries, are 0 modulo 2^64."""
    low, high = F.col(f"{lane}_low"), F.col(f"{lane}_high")
    return (low.bitwiseAND(F.lit(LOW)) == 0) & ((high + F.shiftright(low, 32)).bitwiseAND(F.lit(LOW)) == 0)


def _splits(side: PartitionFiles, cores: int) -> list[Split]:
    """Some tasks a core: so many that the last one is not waited for long."""
    return side.splits(max(1, -(-sum(side.groups) // (TASKS * cores))))


def _in_turns(spark: SparkSession, sides: Sides, read: Read, schema: pa.Schema) -> DataFrame:
    """What `read` makes of each batch of the sides, whose tasks take turns."""
    cores = spark.sparkContext.defaultParallelism
    splits = [[(split, side) for split in _splits(files, cores)] for files, side in sides]
    turns = [entry for turn in zip_longest(*splits) for entry in turn if entry is not None]

    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            split, side = turns[number]
            for batch in batches(split):
                yield from read(batch, side)

    return _mapped(spark, work, len(turns), schema)


# -- rows ------------------------------------------------------------------------------------------------------------
def _differing_keys(spark: SparkSession, sides: Sequence[PartitionFiles], topics: pa.Array) -> pa.Table:
    """(topic, partition, zookeeper, kraft) of these topics' partitions that differ, or may: with their rows."""
    if not len(topics):
        return KEYS.empty_table()

    def read(batch: pa.RecordBatch, side: int) -> Iterator[pa.RecordBatch]:
        for some in topic_sums.topics_of([batch], topics):
            yield topic_sums.row_prints(some, side)

    rows = _in_turns(spark, list(zip(sides, (ZOOKEEPER, KRAFT), strict=True)), read, topic_sums.PRINTS)
    found = rows.groupBy("topic", "partition").agg(
        F.count_if(F.col("side") == ZOOKEEPER).alias("zookeeper"),
        F.count_if(F.col("side") == KRAFT).alias("kraft"),
        F.max("odd").alias("odd"),
        F.bit_xor("a").alias("a"),
        F.bit_xor("b").alias("b"),
    )
    once = (F.col("zookeeper") == 1) & (F.col("kraft") == 1)
    agrees = once & (F.col("odd") == 0) & (F.col("a") == 0) & (F.col("b") == 0)
    answer: pa.Table = found.where(~agrees).select(*KEYS.names).limit(MOST_KEYS + 1).toArrow()
    return answer


def _fetched(spark: SparkSession, side: PartitionFiles, fetch: Fetch | None) -> DataFrame:
    """The rows that `fetch` leaves of a side."""
    if fetch is None or not side.files:
        return frames.frame(spark, frames.PARTITIONS.empty_table())

    def read(batch: pa.RecordBatch, _side: int) -> Iterator[pa.RecordBatch]:
        for some in fetch(batch):
            columns = [column.cast(kind) for column, kind in zip(some.columns, SCHEMA.types, strict=True)]
            yield pa.record_batch(columns, SCHEMA)

    rows = _in_turns(spark, [(side, ZOOKEEPER)], read, SCHEMA)
    return rows.select(F.lit(0).alias("cluster"), *SCHEMA.names)


def _fetching_topics(topics: pa.Array) -> Fetch:
    return lambda batch: topic_sums.topics_of([batch], topics)


def _fetching_rows(topics: pa.Array, numbers: pa.Array) -> Fetch:
    return lambda batch: topic_sums.rows_of([batch], topics, numbers)


def _mapped(spark: SparkSession, work: Batches, tasks: int, schema: pa.Schema) -> DataFrame:
    """What the tasks 0 to `tasks` - 1 yield."""
    wanted = ", ".join(f"{field.name} {TYPES[field.type]}" for field in schema)
    return spark.range(0, tasks, 1, max(1, tasks)).mapInArrow(work, wanted)
