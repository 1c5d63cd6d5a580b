"""Many clusters compared by Spark's executors: a task reads a cluster, and one job compares what differs of all.

The driver sends a row a cluster, which says where its files are.  Executors read and decode them (`mapInArrow`) and
hand on rows of one schema, `ROWS`: of both sides what they do not say alike, and one row without a side, which says
what else the cluster's report rests on, or why it was not read.  Where the disks of a cluster were reported, the tables
of its ledger come with them, packed, and a second query makes the ledgers of all.  These rows stay with the executors;
the driver holds what is reported of them.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from migrate.diff import frames, ledger
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
from migrate.model.facts import row_order
from migrate.model.ids import NodeId
from migrate.model.inventory import FOLDERS, AcceptedDifference, NotRead
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
        ("packed", pa.binary()),  # rows of the table of `ledger.TABLES` that `kind` names, as a stream of Arrow
    ]
)
LEDGER: Final = "ledger"  # the side of packed rows
CLUSTERS: Final = pa.schema([("id", pa.int64()), ("cluster", pa.int32()), ("place", pa.string())])
ANSWERS: Final = pa.schema([("cluster", pa.int32()), ("answer", pa.string())])
BATCH: Final = 65_536
PACKING: Final = pa.ipc.IpcWriteOptions(compression="lz4")
MOST_LISTED: Final = 100_000  # rows of all clusters: of more, each lists its share, and counts the rest
LEAST_LISTED: Final = 100  # of a cluster
LOCAL_TASKS: Final = 2  # a core, of the join
STORE: Final = "try the URI with `pyarrow.fs` on an executor's host; docs/fleet.md says where its login comes from"
FAILURES: Final = (PySparkException, Py4JError, OSError, EOFError)


@dataclass(frozen=True, slots=True)
class Read:
    """A cluster of which both sides were read: the question has what differs.

    `equal` are the fields, by kind, that both say alike and that the question leaves out.
    """

    question: Question
    equal: Mapping[str, int]
    ledger: ledger.Question | None = None  # None: files, and no report of the cluster's disks with them


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What is reported of a cluster."""

    report: DiffReport
    ledger: LedgerSummary | None = None


Reader = Callable[[str], Read]
Done = Callable[[int, bool, float], None]  # which cluster was read, or could not be, and in how many seconds
Told = Mapping[str, Any]


def compare_clusters(
    spark: SparkSession, places: Sequence[str], read: Reader, *, today: date, done: Done | None = None
) -> list[ClusterAnswer | NotRead]:
    """Comparison and ledger of each cluster, in their order; `read` is called by executors, with each of `places`.

    What `read` raises is the answer of its cluster alone.  Counts are exact; rows of all are at most about 100,000, and
    as many of the ledgers.

    Raises:
        SparkGone: the session ended under the comparison, or executors cannot run this package.
    """
    if not places:
        return []
    with answering("the comparisons"):
        parts = _read(spark, list(enumerate(places)), read, done)
        told = {cluster: said for _, some in parts for cluster, said in some.items()}
        good = {cluster: said for cluster, said in told.items() if "not_read" not in said}
        terms = {cluster: _terms(said) for cluster, said in good.items()}
        kept = [frame for frame, _ in parts if frame is not None]
        rows, groups = _differing(spark, kept, good, terms, today)
        summaries = _ledgers(kept, {cluster: said["ledger"] for cluster, said in good.items() if "ledger" in said})
        for frame, _ in parts:
            if frame is not None:
                frame.unpersist()
    return [
        _answer(
            _report(cluster, good[cluster], terms[cluster], rows.get(cluster, []), groups.get(cluster, []), today),
            summaries.get(cluster),
        )
        if cluster in good
        else NotRead(**told[cluster]["not_read"])
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
def copy_from_store(uri: str, folder: Path) -> None:
    """The files of a cluster's folder in an object store (`pyarrow.fs`), copied into a folder of this host.

    Raises NotVisible where the store cannot be asked, or has no such file.
    """
    copied = 0
    try:
        store, root = FileSystem.from_uri(uri)
        for name in FOLDERS:
            for entry in store.get_file_info(FileSelector(f"{root}/{name}".rstrip("/"), allow_not_found=True)):
                if entry.type is FileType.File:
                    target = folder / name / entry.base_name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with store.open_input_stream(entry.path) as source, target.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
                    copied += 1
    except (OSError, pa.ArrowException) as error:
        raise NotVisible(
            "the object store cannot be read", where=uri, why=str(error).splitlines()[0][:200], next_step=STORE
        ) from error
    if not copied:
        raise NotVisible("the object store has no file there", where=uri, next_step=STORE)


def _tasks(spark: SparkSession, clusters: Sequence[tuple[int, str]]) -> DataFrame:
    """A row a cluster, each the whole of a task, which begin in this order."""
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
            next_step="install what docs/spark.md names there",
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
        told = {"terms": asdict(found.question.terms), "equal": dict(found.equal), "given": given}
        if (asked := found.ledger) is not None:
            told["ledger"] = {"named": asked.named, "offset": asked.offset, "unknown": asked.missing}
            tables += [_packed(cluster, name, table) for name, table in asked.tables(cluster).items()]
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


def _packed(cluster: int, name: str, table: pa.Table) -> pa.Table:
    """A table of the ledger as `ROWS`."""
    rows = []
    for batch in table.combine_chunks().to_batches(max_chunksize=BATCH):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=PACKING) as stream:
            stream.write_batch(batch)
        rows.append({"cluster": cluster, "side": LEDGER, "kind": name, "packed": sink.getvalue().to_pybytes()})
    return pa.Table.from_pylist(rows, schema=ROWS)


def _unpacked(rows: DataFrame, name: str) -> DataFrame:
    """That table of the ledger, of all clusters."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(0):
                yield from pa.ipc.open_stream(packed.as_buffer())

    packed = rows.where(f"side = '{LEDGER}' AND kind = '{name}'").select("packed")
    return packed.mapInArrow(unpack, from_arrow_schema(ledger.TABLES[name]))


class Progress(AccumulatorParam[list[tuple[int, bool, float]]]):
    """Calls back, in the driver, for each cluster whose task has ended; executors have no callback."""

    def __init__(self, done: Done | None) -> None:
        self._done = done
        self._seen: set[int] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Progress], tuple[None]]:
        return Progress, (None,)

    def zero(self, value: list[tuple[int, bool, float]]) -> list[tuple[int, bool, float]]:  # noqa: ARG002 - pyspark's
        """Nothing was read."""
        return []

    def addInPlace(  # noqa: N802 - pyspark's
        self, value1: list[tuple[int, bool, float]], value2: list[tuple[int, bool, float]]
    ) -> list[tuple[int, bool, float]]:
        """All that were read; a task that was tried again counts once."""
        for cluster, good, seconds in value2 if self._done is not None else ():
            with self._lock:
                new = cluster not in self._seen
                self._seen.add(cluster)
            if new and self._done is not None:
                self._done(cluster, good, seconds)
        return value1 + value2


def _read(
    spark: SparkSession, clusters: Sequence[tuple[int, str]], read: Reader, done: Done | None
) -> list[tuple[DataFrame | None, dict[int, Told]]]:
    """Frames of `ROWS` that executors keep, and what each cluster's report rests on.

    Where a task ends its process (for memory, perhaps) the job fails, however often it is tried; then the clusters are
    halved until that one is alone, and it alone is not read.
    """
    # Spark Connect has no accumulators: there all are told once all were read
    progress = None if done is None or is_remote() else spark.sparkContext.accumulator([], Progress(done))

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for cluster, place in _pairs(batches):
            for batch in _rows_of(cluster, place, read):
                if progress is not None and batch.column(1)[0].as_py() is None:
                    told = strict_json.loads(batch.column(5)[0].as_py(), surrogates=True)
                    progress.add([(cluster, "not_read" not in told, told["seconds"])])
                yield batch

    frame = _tasks(spark, clusters).mapInArrow(rows, from_arrow_schema(ROWS)).persist()
    try:
        said = frame.where("side IS NULL").select("cluster", "value").toArrow().to_pylist()
    except FAILURES as error:
        frame.unpersist()
        _require_executors(spark)
        if len(clusters) > 1:
            half = len(clusters) // 2
            return [*_read(spark, clusters[:half], read, done), *_read(spark, clusters[half:], read, done)]
        lost = NotVisible(
            "the process that read its files ended",
            why=reason_of(error),
            next_step="name it alone (`--only NAME`), or give the executors more memory",
        )
        if done is not None:
            done(clusters[0][0], False, 0.0)
        return [(None, {clusters[0][0]: {"not_read": asdict(NotRead.of(lost))}})]
    told: dict[int, Told] = {row["cluster"]: strict_json.loads(row["value"], surrogates=True) for row in said}
    if done is not None and progress is None:
        for cluster, one in told.items():
            done(cluster, "not_read" not in one, one["seconds"])
    return [(frame, told)]


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


ByCluster = dict[int, list[dict[str, Any]]]


def _differing(
    spark: SparkSession, kept: Sequence[DataFrame], told: Mapping[int, Told], terms: Mapping[int, Terms], today: date
) -> tuple[ByCluster, ByCluster]:
    """Rows to list, and groups of rows with their number, of each cluster that has such."""
    tables = _tables(spark, kept, told)
    if not tables:
        return {}, {}
    classed = in_classes(spark, all_differing(tables), terms, today)
    rows = classed.limit(MOST_LISTED + 1).toArrow().to_pylist()
    if len(rows) <= MOST_LISTED:
        found = _by_cluster(rows)
        return found, found
    field = f"CASE WHEN kind = '{PARTITION}' AND field = '' THEN '' ELSE 'any' END AS field"
    values = [f"CASE WHEN {side} IS NOT NULL THEN '' END AS {side}" for side in SIDES]
    groups = classed.selectExpr("cluster", "kind", "cls", field, *values)
    counted = groups.groupBy(groups.columns).count().withColumnRenamed("count", "n").toArrow().to_pylist()
    of_clusters = _by_cluster(counted)
    share = _share(len(of_clusters))
    ranked = classed.selectExpr(
        "*", f"row_number() OVER (PARTITION BY cluster ORDER BY {EXCUSED}, kind, key, field) AS place"
    )
    return _by_cluster(ranked.where(f"place <= {share}").drop("place").toArrow().to_pylist()), of_clusters


def _share(clusters: int) -> int:
    """How many rows each of so many clusters lists."""
    return min(MOST_ROWS, max(LEAST_LISTED, MOST_LISTED // max(1, clusters)))


def _ledgers(kept: Sequence[DataFrame], told: Mapping[int, Told]) -> dict[int, LedgerSummary | NotRead]:
    """The ledgers of these clusters, each with its share of the rows that are not VERIFIED."""
    if not told:
        return {}
    packed = reduce(DataFrame.unionByName, kept)
    every = ledger.rows_from({name: _unpacked(packed, name) for name in ledger.TABLES}).persist()
    counted = every.groupBy("cluster", "broker", "state").agg(expr("count(1) AS n")).toArrow().to_pylist()
    unproven = every.where(f"state != '{ReplicaState.VERIFIED}'")
    share = _share(len({row["cluster"] for row in counted if row["state"] != ReplicaState.VERIFIED}))
    order = "row_number() OVER (PARTITION BY cluster ORDER BY topic, topic_id, partition, broker) AS place"
    listed = unproven.selectExpr("*", order).where(f"place <= {share}").drop("place").toArrow().to_pylist()
    every.unpersist()
    counts, rows = _by_cluster(counted), _by_cluster(listed)
    return {cluster: _summary(told[cluster], counts.get(cluster, []), rows.get(cluster, [])) for cluster in told}


def _summary(
    told: Told, counted: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> LedgerSummary | NotRead:
    states: dict[NodeId, dict[ReplicaState, int]] = {}
    for row in sorted(counted, key=lambda row: (row["broker"], row["state"])):
        states.setdefault(NodeId(row["broker"]), {})[ReplicaState(row["state"])] = row["n"]
    found = sum(row["n"] for row in counted)
    if found < told["named"]:
        return NotRead.of(RuntimeError(f"{told['named']} replicas were given to Spark, {found} rows came back"))
    listed = [
        LedgerRow(**{**row, "state": ReplicaState(row["state"])})
        for row in ({name: value for name, value in row.items() if name != "cluster"} for row in rows)
    ]
    return LedgerSummary(told["offset"], states, tuple(sorted(listed, key=row_order)), tuple(told["unknown"]))


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


def _report(
    cluster: int,
    told: Told,
    terms: Terms,
    rows: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    today: date,
) -> DiffReport | NotRead:
    given = {(cluster, kind): (zookeeper, kraft) for kind, zookeeper, kraft in told["given"]}
    try:
        equal = equal_fields(given, groups)
    except RuntimeError as error:
        return NotRead.of(error)
    counted = Counter({(kind, EQUAL): number for (_, kind), number in equal.items()})
    for kind, number in told["equal"].items():
        counted[kind, EQUAL] += number
    for group in groups:
        counted[group["kind"], group["cls"]] += group.get("n", 1)
    return report_of(terms, rows, counted, today)


def _answer(report: DiffReport | NotRead, found: LedgerSummary | NotRead | None) -> ClusterAnswer | NotRead:
    """A cluster that lost rows on the way is not reported in part."""
    for part in (report, found):
        if isinstance(part, NotRead):
            return part
    assert isinstance(report, DiffReport)
    assert not isinstance(found, NotRead)
    return ClusterAnswer(report, found)
