"""Races of getting decoded partitions into Spark: whole columns, and fingerprints a topic, against tuples a row.

The peer is a Python Data Source that yields a tuple a row, which is what Spark's documentation shows first.  All read
the same files (`tests/bench/large.py`) in sessions of the same kind, warm; the peer's session has ours' settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.diff.session import SparkHandle
from tests.bench import large
from tests.bench.joining import WARM
from tests.bench.races import Race, Side, Work
from tests.bench.resident import cpu_of_all

DDL: Final = (
    "topic string, partition int, topic_id string, replicas array<int>, isr array<int>, adding array<int>, "
    "removing array<int>, leader int, leader_epoch int, recovery_state int"
)
Entered = tuple[int, int]  # rows, the sum of their numbers


@contextmanager
def one_table(folder: Path, size: int) -> Iterator[None]:
    """The files."""
    large.write(folder, size)
    yield


def looked_at(frame: Any) -> Entered:
    """Every column of every row is looked at."""
    from pyspark.sql import functions as F  # noqa: N812

    hashed = F.bit_xor(F.xxhash64(*large.SCHEMA.names))
    row = frame.agg(F.count(F.lit(1)).alias("rows"), F.sum("partition").alias("numbers"), hashed).first()
    assert row is not None
    return row["rows"], row["numbers"]


def by_columns(spark: Any, folder: Path) -> Entered:
    """Through the product's door: Arrow, in one piece."""
    from migrate.diff import frames

    tables = [pq.read_table(path, schema=large.SCHEMA) for path in sorted((folder / "left").glob("*.parquet"))]
    return looked_at(frames.frame(spark, pa.concat_tables(tables)))


def by_fingerprints(spark: Any, folder: Path) -> Entered:
    """Summed by topic where they are read; a row a topic enters."""
    from pyspark.sql import functions as F  # noqa: N812

    from migrate.diff import merged_sums
    from migrate.diff.by_sums import summed
    from migrate.diff.partition_files import PartitionFiles

    names = ["zookeeper", "numbers", *(f"{lane}_{half}" for lane in "ab" for half in ("low", "high"))]
    schema = pa.schema([(name, pa.int64()) for name in names])

    def every(sums: pa.Table) -> pa.RecordBatch:
        found = merged_sums.added_up(sums)
        return pa.record_batch([pa.array(found[name]) for name in schema.names], schema)

    sums = summed(spark, ((PartitionFiles.at(folder / "left"), merged_sums.ZOOKEEPER),), every, schema)
    lanes = (F.bit_xor(name) for name in names[2:])
    row = sums.agg(F.sum("zookeeper").alias("rows"), F.sum("numbers").alias("numbers"), *lanes).first()
    assert row is not None
    return row["rows"], row["numbers"]


def by_tuples(spark: Any, folder: Path) -> Entered:
    """A Python Data Source."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    schema = DDL

    class Reader(DataSourceReader):
        """A file a task."""

        def __init__(self, options: Any) -> None:
            self.folder = options["folder"]

        def partitions(self) -> list[InputPartition]:
            """The files."""
            return [InputPartition(str(path)) for path in sorted(Path(self.folder).glob("*.parquet"))]

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            """A tuple a row."""
            for batch in pq.ParquetFile(partition.value).iter_batches():
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    class Rows(DataSource):
        """Its name."""

        @classmethod
        def name(cls) -> str:
            """As `format` wants it."""
            return "partitions_by_tuples"

        def schema(self) -> str:
            """Of large.SCHEMA."""
            return schema

        def reader(self, schema: Any) -> DataSourceReader:
            """The reader."""
            return Reader(self.options)

    spark.dataSource.register(Rows)
    return looked_at(spark.read.format("partitions_by_tuples").option("folder", str(folder / "left")).load())


def side(enter: Callable[[Any, Path], Entered]) -> Side:
    """In a session of its own."""

    @contextmanager
    def running(folder: Path, _size: int) -> Iterator[Work]:
        handle = SparkHandle.start(folder)
        try:
            spark = handle.get(600)
            for _ in range(WARM):
                enter(spark, folder)
            yield Work(lambda: enter(spark, folder), str, tree=True, clock=cpu_of_all)
        finally:
            handle.stop()

    return running


def a_race(name: str, promise: float, enter: Callable[[Any, Path], Entered], *, once: str = "") -> Race:
    """At two million rows, a file for each of two threads."""
    return Race(
        f"rows into Spark, {name}",
        2_000_000,
        promise=promise,
        at_most=False,
        around=one_table,
        sides={"ours": side(enter), "peer": side(by_tuples)},
        once=once,
        note="rows; from Parquet, warm; seconds are of the CPU; memory is resident, of all processes of a side",
        goal="P9",
        peer="Python Data Source, a tuple a row",
        lasting=True,
        least=20_000,
    )


RACES: Final = (
    a_race(
        "all columns", 6.0, by_columns, once="ours failed: ten million rows at once are more than the driver's heap"
    ),
    a_race("fingerprints", 12.0, by_fingerprints),
)
