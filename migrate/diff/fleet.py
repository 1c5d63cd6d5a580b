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
from dataclasses import asdict, dataclass
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
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference, NotRead
from migrate.model.ledger import LedgerRow, LedgerSummary, ReplicaState

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


Reader = Callable[[str], Read]
Told = Mapping[str, Any]


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
        good = {cluster: said for cluster, said in told.items() if "not_read" not in said}
        terms = {cluster: _terms(said) for cluster, said in good.items()}
        kept = [frame for frame, _ in parts if frame is not None]
        rows, groups = _differing(spark, kept, good, terms, today)
        for frame in kept:
            frame.unpersist()
    answers = {
        cluster: _answer(cluster, said, terms[cluster], rows.get(cluster, []), groups.get(cluster, []), today)
        for cluster, said in good.items()
    }
    return [
        (told[cluster]["seconds"], answers.get(cluster) or NotRead(**told[cluster]["not_read"]))
        for cluster in range(len(places))
    ]


def on_executors(spark: SparkSession, places: Sequence[str], work: Callable[[str], str]) -> list[str | NotRead]:
    """What `work` makes of each of these on the executors, in their order; what it raises is the answer of that one.

    Raises:
        SparkGone: the session ended meanwhile.
    """

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, place in _pairs(batches):
            try:
                said = json.dumps({"answer": work(place)})
            except Exception as error:  # noqa: BLE001 - one cluster's damage is that cluster's, a defect of ours included
                said = json.dumps({"not_read": asdict(_as_answer(error))})
            yield pa.record_batch([pa.array([cluster], pa.int32()), pa.array([said])], schema=ANSWERS)

    if not places:
        return []
    with answering("the clusters' files"):
        frame = _tasks(spark, list(enumerate(places))).mapInArrow(answers, from_arrow_schema(ANSWERS))
        found = {
            row["cluster"]: strict_json.loads(row["answer"], surrogates=True) for row in frame.toArrow().to_pylist()
        }
    said = [found[cluster] for cluster in range(len(places))]
    return [NotRead(**one["not_read"]) if "not_read" in one else one["answer"] for one in said]


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
    told: dict[str, Any]
    try:
        found = read(place)
        partitions, entities = found.question.tables(cluster)
        for pair, keys in ((partitions, PARTITION_KEYS), (entities, ENTITY_KEYS)):
            for side, table in zip(SIDES, pair, strict=True):
                if table.group_by(list(keys)).aggregate([]).num_rows != table.num_rows:
                    raise RuntimeError(f"a key of {side} appears twice")  # noqa: TRY301 - as whatever is raised here
                tables.append(_sided(side, table))
        given = [[kind, *both] for (_, kind), both in rows_given([partitions, entities]).items()]
        told = {"terms": asdict(found.question.terms), "given": given, "ledger": _ledger_json(found.ledger)}
    except Exception as error:  # noqa: BLE001 - one cluster's damage is that cluster's, a defect of ours included
        tables, told = [], {"not_read": asdict(_as_answer(error))}
    told["seconds"] = time.monotonic() - began
    row = {"cluster": cluster, "value": json.dumps(told)}
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
) -> list[tuple[DataFrame | None, dict[int, Told]]]:
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
        return [(None, {clusters[0][0]: {"not_read": asdict(NotRead.of(lost)), "seconds": 0.0}})]
    return [(frame, {row["cluster"]: strict_json.loads(row["value"], surrogates=True) for row in said})]


def _require_executors(spark: SparkSession) -> None:
    """Raise what Spark does where it cannot even run a task of this package that reads nothing."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _pairs(iter(()))  # is the package there?
        yield from batches

    spark.range(1).mapInArrow(nothing, "id bigint").toArrow()


# -- on the driver -----------------------------------------------------------------------------------------------
def _terms(told: Told) -> Terms:
    terms = dict(told["terms"])
    accepted = tuple(AcceptedDifference(**entry) for entry in terms.pop("accepted"))
    return Terms(**terms, accepted=accepted)


def _ledger_json(ledger: LedgerSummary | None) -> dict[str, Any] | None:
    if ledger is None:
        return None
    counts = [[int(broker), state, number] for broker, of in ledger.counts.items() for state, number in of.items()]
    return {
        "offset": ledger.offset,
        "counts": counts,
        "rows": [asdict(row) for row in ledger.rows],
        "unknown": ledger.unknown,
    }


def _ledger(told: Mapping[str, Any] | None) -> LedgerSummary | None:
    if told is None:
        return None
    counts: dict[NodeId, dict[ReplicaState, int]] = {}
    for broker, state, number in told["counts"]:
        counts.setdefault(NodeId(broker), {})[ReplicaState(state)] = number
    rows = tuple(LedgerRow(**{**row, "state": ReplicaState(row["state"])}) for row in told["rows"])
    return LedgerSummary(told["offset"], counts, rows, tuple(told["unknown"]))


ByCluster = dict[int, list[dict[str, Any]]]


def _differing(
    spark: SparkSession, kept: Sequence[DataFrame], told: Mapping[int, Told], terms: Mapping[int, Terms], today: date
) -> tuple[ByCluster, ByCluster]:
    """Rows to list, and groups of rows with their number, of each cluster that has such."""
    tables = _tables(spark, kept, told)
    if not tables:
        return {}, {}
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
        for kind, zookeeper, kraft in said["given"]:
            before = given.get(kind, (0, 0))
            given[kind] = before[0] + zookeeper, before[1] + kraft
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


def _answer(
    cluster: int,
    told: Told,
    terms: Terms,
    rows: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    today: date,
) -> ClusterAnswer | NotRead:
    """A cluster that lost rows on the way is not reported in part."""
    given = {(cluster, kind): (zookeeper, kraft) for kind, zookeeper, kraft in told["given"]}
    try:
        equal = equal_fields(given, groups)
    except RuntimeError as error:
        return NotRead.of(error)
    counted = Counter({(kind, EQUAL): number for (_, kind), number in equal.items()})
    for group in groups:
        counted[group["kind"], group["cls"]] += group["n"]
    return ClusterAnswer(report_of(terms, rows, counted, today), _ledger(told["ledger"]))
