"""Races of comparing two large tables of partitions: ours on Spark, by fingerprints first, against full outer joins.

Both sides read the same Parquet files (`tests/bench/large.py`), warm, with two threads: polars, DuckDB, and Spark as
somebody would write it by hand.  Memory is what all processes of a side hold resident, at its highest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from migrate.diff.session import SparkHandle
from migrate.java.find import find_java
from migrate.model.spark_where import SparkWhere
from tests.bench import large
from tests.bench.decoding import digest
from tests.bench.races import SIDES, Race, Side, Work
from tests.bench.resident import cpu_of_all

THREADS: Final = 2
WARM: Final = 2  # comparisons before the one that is timed
CAP: Final = "2GB"
HEAP: Final = "540m"  # of our driver where 2 GB is all that there is: the rest is Python's, and Java's own
LISTED: Final = 10_000  # rows of a report at most (`migrate.diff.compare.MOST_ROWS`, which would load pyspark here)
Row = tuple[str, int, bool, bool, list[str]]  # topic, partition, does left, does right lack it, fields that differ
Found = list[tuple[str, str]]  # (partition, field); "" for a partition that one side lacks


@contextmanager
def both_tables(folder: Path, size: int) -> Iterator[None]:
    """The files; those that BENCH_TABLES names a folder for are written once, and stay there."""
    if kept := os.environ.get("BENCH_TABLES"):
        for place in large.write(Path(kept) / str(size), size):
            (folder / place.name).symlink_to(place)
    else:
        large.write(folder, size)
    yield


def told(found: Found) -> str:
    """How many of each field, and which; of as many as a report lists, how many alone."""
    if len(found) >= LISTED:
        return counted(found)
    return f"{sorted(Counter(field for _, field in found).items())} {digest(sorted(found))}"


def counted(found: Found) -> str:
    """How many differ, and how many stand on one side alone: what is told of lists too long to be kept whole."""
    return f"{sum(1 for _, field in found if field)} differ, {sum(1 for _, field in found if not field)} alone"


# -- ours ------------------------------------------------------------------------------------------------------------
def on_session(spark: Any, folder: Path, *, every_field: bool = False) -> Callable[[], Any]:
    """Our comparison of the files in that folder."""
    from migrate.diff.compare import Question, compare_files
    from migrate.diff.partition_files import PartitionFiles
    from tests.testing.clusters import kraft_view, zookeeper_view

    question = Question(zookeeper_view(), kraft_view())

    def timed() -> Any:
        files = PartitionFiles.at(folder / "left"), PartitionFiles.at(folder / "right")
        return compare_files(spark, question, files, today=date(2026, 1, 1), every_field=every_field)

    return timed


def rows_of(report: Any) -> Found:
    """What it lists."""
    return [(row.key, row.field) for row in report.differences if row.kind == "partition"]


def told_of(report: Any) -> str:
    """What it lists, as `told`."""
    rows = rows_of(report)
    return counts_of(report) if len(rows) >= LISTED else told(rows)


def counts_of(report: Any) -> str:
    """What it counts, as `counted`."""
    counts = report.counts["partition"]
    return f"{counts.get('DIFFERS', 0)} differ, {counts.get('ONLY_ZK', 0) + counts.get('ONLY_KRAFT', 0)} alone"


def ours(answer: Callable[[Any], str], heap: str = "", *, warm: int = WARM, every_field: bool = False) -> Side:
    """In a session of its own."""

    @contextmanager
    def side(folder: Path, _size: int) -> Iterator[Work]:
        where = SparkWhere(conf={"spark.driver.memory": heap} if heap else {})
        handle = SparkHandle.start(folder, where)
        try:
            timed = on_session(handle.get(600), folder, every_field=every_field)
            for _ in range(warm):
                timed()
            yield Work(timed, answer, tree=True, clock=cpu_of_all)
        finally:
            handle.stop()

    return side


# -- peers -----------------------------------------------------------------------------------------------------------
def by_polars(folder: Path) -> Found:
    """A full join, and the rows in which any field differs."""
    import polars as pl

    keys = ["topic", "partition"]
    tables = [
        pl.scan_parquet(folder / side / "*.parquet").with_columns(pl.lit(True).alias("there"))
        for side in ("left", "right")
    ]
    joined = tables[0].join(tables[1], on=keys, how="full", suffix="_r", coalesce=True)
    alone = pl.col("there").is_null() | pl.col("there_r").is_null()
    differs = {name: pl.col(name).ne_missing(pl.col(f"{name}_r")) for name in large.FIELDS}
    wanted = alone | pl.any_horizontal(differs.values())
    columns = [*keys, alone.alias("alone"), *(differ.alias(name) for name, differ in differs.items())]
    rows = joined.filter(wanted).select(columns).collect().rows()
    return named(rows)


def named(rows: Any) -> Found:
    """Of (topic, partition, alone, a flag a field)."""
    return [
        (f"{topic}-{partition}", field)
        for topic, partition, alone, *flags in rows
        for field in ([""] if alone else [name for name, flag in zip(large.FIELDS, flags, strict=True) if flag])
    ]


def joined_by_hand(tables: tuple[str, str]) -> str:
    """SQL that DuckDB and Spark both take."""
    differ = [f"l.{name} IS DISTINCT FROM r.{name}" for name in large.FIELDS]
    alone = "(l.topic IS NULL OR r.topic IS NULL)"
    flags = ", ".join(f"{words} AS {name}" for words, name in zip(differ, large.FIELDS, strict=True))
    return (
        f"SELECT coalesce(l.topic, r.topic), coalesce(l.partition, r.partition), {alone} AS alone, {flags} "
        f"FROM {tables[0]} l FULL OUTER JOIN {tables[1]} r ON l.topic = r.topic AND l.partition = r.partition "
        f"WHERE {alone} OR {' OR '.join(differ)}"
    )


def by_duckdb(folder: Path, cap: str = "") -> Found:
    """A full outer join; `cap` is its memory."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(f"SET temp_directory = '{folder}/spilled'")
        if cap:
            connection.execute(f"SET memory_limit = '{cap}'")
            connection.execute("SET preserve_insertion_order = false")
        tables = [f"read_parquet('{folder}/{side}/*.parquet')" for side in ("left", "right")]
        return named(connection.execute(joined_by_hand((tables[0], tables[1]))).fetchall())


def peer(find: Callable[[Path], Found], answer: Callable[[Found], str], warm: int = WARM) -> Side:
    """One of them, in this process."""

    @contextmanager
    def side(folder: Path, _size: int) -> Iterator[Work]:
        os.environ["POLARS_MAX_THREADS"] = str(THREADS)
        for _ in range(warm):
            find(folder)
        yield Work(lambda: find(folder), answer, tree=True, clock=cpu_of_all)

    return side


def by_plain_spark(spark: Any, folder: Path) -> Found:
    """A full outer join with null-safe comparison of each column, and the rows that are left."""
    for side in ("left", "right"):
        spark.read.parquet(str(folder / side)).createOrReplaceTempView(f"the_{side}")
    table = spark.sql(joined_by_hand(("the_left", "the_right"))).toArrow()
    return named(zip(*(column.to_pylist() for column in table.columns), strict=True))


@contextmanager
def plain_spark(folder: Path, _size: int) -> Iterator[Work]:
    """A session as pyspark starts one by itself, with 4 GB of heap and nothing else said but where it runs."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    builder: Any = SparkSession.builder
    builder = (
        builder.master(f"local[{THREADS}]").config("spark.driver.memory", "4g").config("spark.ui.enabled", "false")
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        for _ in range(WARM):
            by_plain_spark(spark, folder)
        yield Work(lambda: by_plain_spark(spark, folder), told, tree=True, clock=cpu_of_all)
    finally:
        spark.stop()


# -- races -----------------------------------------------------------------------------------------------------------
def missing(module: str) -> Callable[[], str]:
    """Why that peer cannot run here."""
    return lambda: "" if find_spec(module) else f"{module} is not installed (pip install -e '.[bench]')"


def a_race(name: str, promise: float, other: Side, who: str, lacks: Callable[[], str] = str) -> Race:
    """At five million rows a side."""
    return Race(
        f"comparison of files, {name}",
        5_000_000,
        promise=promise,
        at_most=name != "plain Spark",
        around=both_tables,
        sides={"ours": ours(told_of), "peer": other},
        growing=SIDES if name != "plain Spark" else ("ours",),  # 25 million would take it ten minutes
        note="rows a side, Parquet, warm; seconds are of the CPU; memory is resident, of all processes of a side",
        goal="P5",
        peer=who,
        lacks=lacks,
        lasting=True,
        least=20_000,
    )


RACES: Final = (
    a_race("polars", 1.0, peer(by_polars, told), "polars' full join", missing("polars")),
    a_race("DuckDB", 2.0, peer(by_duckdb, told), "DuckDB's full join", missing("duckdb")),
    a_race("plain Spark", 3.5, plain_spark, "Spark's full outer join, default settings"),
    Race(
        "comparison of files within 2 GB",
        50_000_000,
        promise=0.75,
        at_most=True,
        around=both_tables,
        sides={
            "ours": ours(counts_of, HEAP, warm=0),
            "peer": peer(lambda folder: by_duckdb(folder, CAP), counted, warm=0),
        },
        once="its N is ten times that of the races with polars and DuckDB",
        note="rows a side; DuckDB may take 2 GB; seconds are of the CPU; memory of all processes of a side",
        goal="P6",
        peer="DuckDB's full join, 2 GB",
        megabytes=2_147,
        lacks=missing("duckdb"),
        lasting=True,
        least=20_000,
    ),
)
