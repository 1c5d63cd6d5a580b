"""The ledger by Spark, which joins the views and applies the one rule (`migrate.model.ledger`) to batches of rows.

Executors are sent the rule's functions themselves (`mapInArrow`), so that they need no package of ours.  Inputs are the
views' frames; several clusters can share a job (column `cluster`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from pyspark.sql.pandas.types import from_arrow_schema

from migrate.diff import frames
from migrate.diff.frames import answering
from migrate.model import ledger as rule
from migrate.model.columns import PartitionColumns
from migrate.model.facts import DisksByBroker, row_order, standing_offset, unknown_views
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, ZookeeperView, whole_or_unknown

TABLES: Final = {
    "zookeeper": frames.PARTITIONS,
    "kraft": frames.PARTITIONS,
    "folders": frames.FOLDERS,
    "brokers": frames.BROKERS,
    "clusters": frames.CLUSTERS,
}
KEYS: Final = ("cluster", "topic_id", "partition", "broker")
FOLDER_KEYS: Final = ("cluster", "broker", "topic", "partition")
JOINED: Final = (  # as `facts_of` takes them, after `cluster`
    *("cluster", "topic", "topic_id", "partition", "broker", "in_zookeeper", "directory", "copies", "future"),
    *("unreadable", "registered", "blind", "metadata_speaks", "finalized"),
)
ROWS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        *((name, pa.string()) for name in ("topic", "topic_id")),
        *((name, pa.int32()) for name in ("partition", "broker")),
        *((name, pa.string()) for name in ("state", "on_disk", "in_metadata", "why")),
    ]
)
cloudpickle.register_pickle_by_value(rule)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Question:
    """The views of one cluster, and how far its migration is."""

    zookeeper: ZookeeperView | Unknown
    kraft: KraftView | Unknown
    disks: DisksByBroker | Unknown
    after_copy: bool
    finalized: bool

    @property
    def metadata_speaks(self) -> bool:
        """Does the metadata say where replicas are?"""
        return self.after_copy or self.finalized

    @property
    def missing(self) -> tuple[str, ...]:
        return unknown_views(
            self.zookeeper, self.kraft, self.disks, after_copy=self.after_copy, finalized=self.finalized
        )

    def zookeeper_partitions(self) -> PartitionColumns:
        """ZooKeeper's replica lists, where they seed rows."""
        return (
            PartitionColumns() if isinstance(self.zookeeper, Unknown) or self.finalized else self.zookeeper.partitions
        )

    def kraft_partitions(self) -> PartitionColumns:
        """The metadata's replica lists, where they have a say."""
        asked = self.metadata_speaks or isinstance(self.zookeeper, Unknown)
        return self.kraft.partitions if asked and not isinstance(self.kraft, Unknown) else PartitionColumns()

    @property
    def named(self) -> int:
        """How many replicas a list names at least: a ledger with fewer rows would let a gate pass."""
        return max(self.zookeeper_partitions().replica_count(), self.kraft_partitions().replica_count())

    @property
    def offset(self) -> int:
        return standing_offset(self.kraft, metadata_speaks=self.metadata_speaks)

    def tables(self, cluster: int) -> dict[str, pa.Table]:
        """All that the ledger is made of, one Arrow table for each name in `TABLES`."""
        clusters = frames.Column.of(frames.CLUSTERS)
        clusters.add(cluster, "; ".join(self.missing), self.metadata_speaks, self.finalized)
        lists = self.zookeeper_partitions(), self.kraft_partitions()
        ids = {NodeId(broker) for columns in lists for replicas in columns.replicas for broker in replicas}
        ids |= set() if isinstance(self.kraft, Unknown) else self.kraft.brokers.keys()
        ids |= set() if isinstance(self.disks, Unknown) else self.disks.keys()
        return {
            "zookeeper": frames.partitions(lists[0], cluster),
            "kraft": frames.partitions(lists[1], cluster),
            "folders": frames.folders(self.disks, cluster),
            "brokers": frames.brokers(ids, self.disks, self.kraft, cluster),
            "clusters": clusters.table(),
        }


def ledger(
    spark: SparkSession,
    zookeeper: ZookeeperView | Unknown,
    kraft: KraftView | Unknown,
    disks: DisksByBroker | Unknown,
    *,
    after_copy: bool,
    finalized: bool,
) -> Ledger:
    """The ledger by Spark.

    Raises:
        SparkGone: the session ended under the job.
    """
    if not isinstance(zookeeper, Unknown):
        zookeeper = whole_or_unknown(zookeeper)
    (found,) = ledgers(spark, [Question(zookeeper, kraft, disks, after_copy, finalized)])
    return found


def ledgers(spark: SparkSession, questions: Sequence[Question]) -> list[Ledger]:
    """The ledgers of several clusters by one job, in their order."""
    rows: list[list[LedgerRow]] = [[] for _ in questions]
    with answering("the ledger"):
        answer = rows_of(spark, questions).toArrow()
    columns = [answer.column(name).to_pylist() for name in answer.column_names]
    for cluster, topic, topic_id, partition, broker, state, on_disk, in_metadata, why in zip(*columns, strict=True):
        rows[cluster].append(
            LedgerRow(topic, topic_id, partition, broker, ReplicaState(state), on_disk, in_metadata, why)
        )
    for question, found in zip(questions, rows, strict=True):
        _check_nothing_lost(question, len(found))
    return [
        Ledger(
            rows=tuple(sorted(found, key=row_order)),
            offset=question.offset,
            engine="spark",
            unknown=question.missing,
        )
        for question, found in zip(questions, rows, strict=True)
    ]


def _check_nothing_lost(question: Question, rows: int) -> None:
    """Each replica that a list names has its row.  Else it is a bug."""
    if rows < question.named:
        message = f"{question.named} replicas were given to Spark, {rows} rows came back"
        raise RuntimeError(message)


def rows_of(spark: SparkSession, questions: Sequence[Question]) -> DataFrame:
    """The ledger's rows as a DataFrame, with `cluster`."""
    tables = [question.tables(cluster) for cluster, question in enumerate(questions)]
    return rows_from({name: frames.frame(spark, pa.concat_tables([one[name] for one in tables])) for name in TABLES})


def rows_from(tables: Mapping[str, DataFrame]) -> DataFrame:
    """The same of DataFrames of `TABLES`."""
    joined = _joined(
        _seeds(_replicas(tables["zookeeper"]), _replicas(tables["kraft"])),
        _held(tables["folders"]),
        tables["brokers"],
        tables["clusters"],
    )
    return joined.mapInArrow(decider(), from_arrow_schema(ROWS))


def decider() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rule for batches of joined rows; pickled, it is all that an executor needs of ours."""
    facts_of, row, values_of = rule.facts_of, rule.row, attrgetter(*ROWS.names[1:])

    def decided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in JOINED]
            rows = [(cluster, *values_of(row(facts_of(*facts)))) for cluster, *facts in zip(*columns, strict=True)]
            if rows:
                found = zip(zip(*rows, strict=True), ROWS.types, strict=True)
                yield pa.RecordBatch.from_arrays([pa.array(column, kind) for column, kind in found], schema=ROWS)

    return decided


# -- the join ----------------------------------------------------------------------------------------------------
def _replicas(partitions: DataFrame) -> DataFrame:
    """One row a replica with its directory, "" where the list of directories is too short."""
    of_partition = ("cluster", "topic", "topic_id", "partition")
    exploded = partitions.selectExpr(*of_partition, "directories", "posexplode(replicas) AS (position, broker)")
    return exploded.selectExpr(*KEYS, "topic", "coalesce(get(directories, position), '') AS directory")


def _seeds(zookeeper: DataFrame, kraft: DataFrame) -> DataFrame:
    left = zookeeper.selectExpr(*KEYS, "topic AS z_topic")
    right = kraft.selectExpr(*KEYS, "topic AS k_topic", "directory")
    named = left.join(right, list(KEYS), "full_outer")
    return named.selectExpr(
        *KEYS, "z_topic IS NOT NULL AS in_zookeeper", "directory", "coalesce(z_topic, k_topic) AS topic"
    )


def _held(folders: DataFrame) -> DataFrame:
    """What one broker's directories hold of one partition name: current copies in order, future, unreadable."""
    copy = "named_struct('place', place, 'number', number, 'directory', directory, 'id', topic_id)"
    return folders.groupBy(*FOLDER_KEYS).agg(
        expr(f"sort_array(collect_list(CASE WHEN role = 'current' THEN {copy} END)) AS copies"),
        expr("max(role = 'future') AS future"),
        expr("max(role = 'unreadable') AS unreadable"),
    )


def _joined(seeds: DataFrame, held: DataFrame, brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """What `facts_of` takes, as columns."""
    joined = (
        seeds.join(held, list(FOLDER_KEYS), "left")
        .join(broadcast(brokers), ["cluster", "broker"], "left")
        .join(broadcast(clusters), ["cluster"], "left")
    )
    made = {
        "copies": "coalesce(transform(copies, copy -> array(copy.id, copy.directory)), array())",
        "future": "coalesce(future, false)",
        "unreadable": "coalesce(unreadable, false)",
        "blind": "CASE WHEN missing != '' THEN missing ELSE unseen END",
    }
    return joined.selectExpr(*(f"{made[name]} AS {name}" if name in made else name for name in JOINED))
