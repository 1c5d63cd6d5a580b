"""Many clusters compared by Spark: a task reads each cluster, and one job compares the rows of all.

The driver sends a row per cluster, which says where its bundle is.  Executors read it (`mapInArrow`) and hand on rows
of one schema, `ROWS`: those of both sides, and one row without a side, which says what else the cluster's report rests
on, or why it was not read.  These rows stay with the executors; the driver holds what is reported of them.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from migrate.diff import frames
from migrate.diff.compare import (
    EQUAL,
    EXCUSED,
    MOST_ROWS,
    PARTITION,
    Question,
    Terms,
    all_differing,
    equal_fields,
    in_classes,
    report_of,
    rows_given,
)
from migrate.diff.frames import answering
from migrate.diff.session import reason_of
from migrate.diff.tables import ENTITY_KEYS, PARTITION_KEYS, Compared, entity_join, partition_join
from migrate.errors import NotVisible, SparkGone
from migrate.model import strict_json
from migrate.model.codec import decode, encode
from migrate.model.difference import DiffReport
from migrate.model.inventory import NotRead
from migrate.model.ledger import LedgerSummary

SIDES: Final = ("zookeeper", "kraft")
OF_PARTITIONS: Final = [entry for entry in frames.PARTITIONS if entry.name not in {"cluster", "topic", "directories"}]
ROWS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("side", pa.string()),  # null: `value` is what the cluster's report rests on
        ("kind", pa.string()),
        ("key", pa.string()),  # a partition's topic
        ("name", pa.string()),
        ("value", pa.string()),
        *OF_PARTITIONS,
    ]
)
CLUSTERS: Final = pa.schema([("id", pa.int64()), ("cluster", pa.int32()), ("place", pa.string())])
ANSWERS: Final = pa.schema([("cluster", pa.int32()), ("answer", pa.string())])
BATCH: Final = 65_536
MOST_LISTED: Final = 100_000  # rows of all clusters: of more, each lists its share, and counts the rest
LEAST_LISTED: Final = 100  # of a cluster
LOCAL_TASKS: Final = 2  # per core, of the join
FAILURES: Final = (PySparkException, Py4JError, OSError, EOFError)


@dataclass(frozen=True, slots=True)
class Read:
    """A cluster of which both sides were read, and its ledger."""

    question: Question
    ledger: LedgerSummary | None = None


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What is reported of a cluster."""

    report: DiffReport
    ledger: LedgerSummary | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What an executor says of a cluster beside its rows; `given` are each kind's rows of ZooKeeper and of KRaft."""

    terms: Terms
    given: tuple[tuple[str, int, int], ...]
    ledger: LedgerSummary | None


Reader = Callable[[str], Read]
Answered = tuple[float, Told | NotRead]  # behind the seconds that reading took


def compare_clusters(
    spark: SparkSession, places: Sequence[str], read: Reader, *, today: date
) -> list[tuple[float, ClusterAnswer | NotRead]]:
    """Comparison and ledger of each cluster, in their order, with the seconds that reading it took.

    `read` is called by executors, with each of `places`.

    What `read` raises is the answer of its cluster alone.  Counts are exact; rows of all are at most about 100,000.

    Raises:
        SparkGone: the session ended under the comparison, or executors cannot run this package.
    """
    if not places:
        return []
    with answering("the comparisons"):
        parts = _read(spark, list(enumerate(places)), read)
        told = {cluster: said for _, some in parts for cluster, said in some.items()}
        good = {cluster: said for cluster, (_, said) in told.items() if isinstance(said, Told)}
        kept = [frame for frame, _ in parts if frame is not None]
        rows, groups = _differing(spark, kept, good, today)
        for frame in kept:
            frame.unpersist()
    return [
        (seconds, said if isinstance(said, NotRead) else _answer(cluster, said, rows, groups, today))
        for cluster, (seconds, said) in sorted(told.items())
    ]


def on_executors(spark: SparkSession, places: Sequence[str], work: Callable[[str], str]) -> list[str | NotRead]:
    """What `work` makes of each of these on the executors, in their order; what it raises is the answer of that one.

    Raises:
        SparkGone: the session ended meanwhile.
    """

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, place in _pairs(batches):
            said: str | NotRead
            try:
                said = work(place)
            except Exception as error:  # noqa: BLE001 - one cluster's damage is that cluster's, a defect of ours included
                said = _as_answer(error)
            yield pa.record_batch([pa.array([cluster], pa.int32()), pa.array([_text(said)])], schema=ANSWERS)

    if not places:
        return []
    with answering("the clusters' files"):
        frame = _tasks(spark, list(enumerate(places))).mapInArrow(answers, from_arrow_schema(ANSWERS))
        found = {row["cluster"]: _value(str | NotRead, row["answer"]) for row in frame.toArrow().to_pylist()}
    return [found[cluster] for cluster in range(len(places))]


def _text(value: object) -> str:
    """As executors tell the driver."""
    return json.dumps(encode(value))


def _value(kind: Any, text: str) -> Any:
    return decode(kind, strict_json.loads(text, surrogates=True), "an executor's answer")


# -- on the executors --------------------------------------------------------------------------------------------
def _tasks(spark: SparkSession, clusters: Sequence[tuple[int, str]]) -> DataFrame:
    """A row per cluster, each the whole of a task, which begin in this order."""
    numbers, places = zip(*clusters, strict=True)
    table = pa.table([range(len(clusters)), numbers, places], schema=CLUSTERS)
    tasks = spark.range(0, len(clusters), 1, len(clusters))
    return tasks.join(broadcast(frames.frame(spark, table)), "id").select("cluster", "place")


def _pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, str]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _as_answer(error: Exception) -> NotRead:
    if isinstance(error, ImportError):
        error = SparkGone(
            "a package is missing where Spark's executors run",
            why=str(error),
            next_step="install what docs/comparison.md names there",
        )
    return NotRead.of(error)


def _rows_of(cluster: int, place: str, read: Reader) -> Iterator[pa.RecordBatch]:
    """All rows of a cluster, that without a side first."""
    began = time.monotonic()
    tables: list[pa.Table] = []
    told: Told | NotRead
    try:
        found = read(place)
        partitions, entities = found.question.tables(cluster)
        for pair, keys in ((partitions, PARTITION_KEYS), (entities, ENTITY_KEYS)):
            for side, table in zip(SIDES, pair, strict=True):
                if table.group_by(list(keys)).aggregate([]).num_rows != table.num_rows:
                    raise RuntimeError(f"a key of {side} appears twice")  # noqa: TRY301 - as whatever is raised here
                tables.append(_sided(side, table))
        given = tuple((kind, *both) for (_, kind), both in rows_given([partitions, entities]).items())
        told = Told(found.question.terms, given, found.ledger)
    except Exception as error:  # noqa: BLE001 - one cluster's damage is that cluster's, a defect of ours included
        tables, told = [], _as_answer(error)
    row = {"cluster": cluster, "value": _text((time.monotonic() - began, told))}
    yield from pa.Table.from_pylist([row], schema=ROWS).to_batches()
    for table in tables:
        yield from (batch for batch in table.combine_chunks().to_batches(max_chunksize=BATCH) if len(batch))


def _sided(side: str, table: pa.Table) -> pa.Table:
    """Partitions, or everything else, as `ROWS`."""
    given = {name: table.column(name) for name in table.column_names}
    given["side"] = pa.repeat(side, table.num_rows)
    if "topic" in given:
        given |= {"key": given["topic"], "kind": pa.repeat(PARTITION, table.num_rows)}
    columns = [given.get(entry.name, pa.nulls(table.num_rows, entry.type)) for entry in ROWS]
    return pa.Table.from_arrays(columns, schema=ROWS)


def _read(
    spark: SparkSession, clusters: Sequence[tuple[int, str]], read: Reader
) -> list[tuple[DataFrame | None, dict[int, Answered]]]:
    """Frames of `ROWS` that executors keep, and what each cluster's report rests on.

    Where a task ends its process (for memory, perhaps) the job fails, however often it is tried; then the clusters are
    halved until that one is alone, and it alone is not read.
    """

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, place in _pairs(batches):
            yield from _rows_of(cluster, place, read)

    frame = _tasks(spark, clusters).mapInArrow(rows, from_arrow_schema(ROWS)).persist()
    try:
        said = frame.where("side IS NULL").select("cluster", "value").toArrow().to_pylist()
    except FAILURES as error:
        frame.unpersist()
        _require_executors(spark)
        if len(clusters) > 1:
            half = len(clusters) // 2
            return [*_read(spark, clusters[:half], read), *_read(spark, clusters[half:], read)]
        lost = NotVisible(
            "the process that read its files ended",
            why=reason_of(error),
            next_step="name it in a file of its own, or give the executors more memory",
        )
        return [(None, {clusters[0][0]: (0.0, NotRead.of(lost))})]
    return [(frame, {row["cluster"]: _value(Answered, row["value"]) for row in said})]


def _require_executors(spark: SparkSession) -> None:
    """Raise what Spark does where it cannot even run a task of this package that reads nothing."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _pairs(iter(()))  # is the package there?
        yield from batches

    spark.range(1).mapInArrow(nothing, "id bigint").toArrow()


# -- on the driver -----------------------------------------------------------------------------------------------
ByCluster = dict[int, list[dict[str, Any]]]


def _differing(
    spark: SparkSession, kept: Sequence[DataFrame], told: Mapping[int, Told], today: date
) -> tuple[ByCluster, ByCluster]:
    """Rows to list, and groups of rows with their number, of each cluster that has such."""
    tables = _tables(spark, kept, told)
    if not tables:
        return {}, {}
    terms = {cluster: said.terms for cluster, said in told.items()}
    classed = in_classes(spark, all_differing(tables), terms, today).persist()
    field = f"CASE WHEN kind = '{PARTITION}' AND field = '' THEN '' ELSE 'any' END AS field"
    values = [f"CASE WHEN {side} IS NOT NULL THEN '' END AS {side}" for side in SIDES]
    groups = classed.selectExpr("cluster", "kind", "cls", field, *values)
    counted = groups.groupBy(groups.columns).count().withColumnRenamed("count", "n").toArrow().to_pylist()
    of_clusters = _by_cluster(counted)
    ranked = classed.selectExpr(
        "*", f"row_number() OVER (PARTITION BY cluster ORDER BY {EXCUSED}, kind, key, field) AS place"
    )
    listed = ranked.where(f"place <= {rows_listed(len(of_clusters))}").drop("place").toArrow().to_pylist()
    classed.unpersist()
    return _by_cluster(listed), of_clusters


def rows_listed(clusters: int) -> int:
    """How many rows each of so many clusters lists."""
    return min(MOST_ROWS, max(LEAST_LISTED, MOST_LISTED // max(1, clusters)))


def _by_cluster(rows: Sequence[dict[str, Any]]) -> ByCluster:
    found: ByCluster = {}
    for row in rows:
        found.setdefault(row["cluster"], []).append(row)
    return found


def _tables(spark: SparkSession, kept: Sequence[DataFrame], told: Mapping[int, Told]) -> list[Compared]:
    """The two joins, as far as there is anything to join."""
    given: dict[str, tuple[int, int]] = {}
    for said in told.values():
        for kind, on_left, on_right in said.given:
            before = given.get(kind, (0, 0))
            given[kind] = before[0] + on_left, before[1] + on_right
    if not given:
        return []
    cores = 2 if is_remote() else spark.sparkContext.defaultParallelism
    rows = reduce(DataFrame.unionByName, kept).coalesce(LOCAL_TASKS * cores)
    left, right = (rows.where(f"side = '{side}'") for side in SIDES)
    tables = []
    if PARTITION in given:
        names = ["cluster", "key AS topic", *(entry.name for entry in OF_PARTITIONS)]
        zookeeper, kraft = (side.where(f"kind = '{PARTITION}'").selectExpr(*names) for side in (left, right))
        tables.append(partition_join(zookeeper, kraft, given[PARTITION]))
    kinds = tuple(sorted(given.keys() - {PARTITION}))
    if kinds:
        both = sum(given[kind][0] for kind in kinds), sum(given[kind][1] for kind in kinds)
        zookeeper, kraft = (side.where(f"kind != '{PARTITION}'") for side in (left, right))
        tables.append(entity_join(zookeeper, kraft, kinds, both))
    return tables


def _answer(cluster: int, told: Told, rows: ByCluster, groups: ByCluster, today: date) -> ClusterAnswer | NotRead:
    """A cluster that lost rows on the way is not reported in part."""
    given = {(cluster, kind): (zookeeper, kraft) for kind, zookeeper, kraft in told.given}
    try:
        equal = equal_fields(given, groups.get(cluster, []))
    except RuntimeError as error:
        return NotRead.of(error)
    counted = Counter({(kind, EQUAL): number for (_, kind), number in equal.items()})
    for group in groups.get(cluster, []):
        counted[group["kind"], group["cls"]] += group["n"]
    return ClusterAnswer(report_of(told.terms, rows.get(cluster, []), counted, today), told.ledger)
