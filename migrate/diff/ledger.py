"""The ledger as conditions in Spark's SQL: the same table as `migrate.model.facts.build`, for the whole cluster.

`STATE` is `migrate.model.ledger.decide` as a list of conditions, first match wins; a property test holds the two
equal.  Inputs are the views' frames; several clusters can share a job (column `cluster`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr

from migrate.diff import frames
from migrate.diff.expected import chosen, literal
from migrate.diff.frames import answering
from migrate.model.columns import PartitionColumns
from migrate.model.facts import DisksByBroker, row_order, standing_offset, unknown_views
from migrate.model.ids import NodeId
from migrate.model.ledger import RESERVED_STATES, Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, Registration, ZookeeperView, whole_or_unknown
from migrate.model.words import as_utf8

TABLES: Final = {
    "zookeeper": frames.PARTITIONS,
    "kraft": frames.PARTITIONS,
    "folders": frames.FOLDERS,
    "brokers": frames.BROKERS,
    "clusters": frames.CLUSTERS,
}
KEYS: Final = ("cluster", "topic_id", "partition", "broker")
FOLDER_KEYS: Final = ("cluster", "broker", "topic", "partition")
NO_ID: Final = "zookeeper: the topic has no topic_id"
UNREADABLE: Final = "disks: a partition.metadata cannot be read"


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

    def registrations(self) -> Mapping[NodeId, Registration]:
        return {} if isinstance(self.kraft, Unknown) else self.kraft.brokers

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
        clusters.add(cluster, as_utf8("; ".join(self.missing)), self.metadata_speaks, self.finalized)
        lists = self.zookeeper_partitions(), self.kraft_partitions()
        ids = {NodeId(broker) for columns in lists for replicas in columns.replicas for broker in replicas}
        ids |= self.registrations().keys() | (set() if isinstance(self.disks, Unknown) else self.disks.keys())
        return {
            "zookeeper": frames.partitions(lists[0], cluster),
            "kraft": frames.partitions(lists[1], cluster),
            "folders": frames.folders(self.disks, cluster),
            "brokers": frames.brokers(ids, self.disks, self.registrations(), cluster),
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
    facts = _facts(
        _seeds(_replicas(tables["zookeeper"]), _replicas(tables["kraft"])),
        _held(tables["folders"]),
        tables["brokers"],
        tables["clusters"],
    )
    return facts.selectExpr(
        *("cluster", "topic", "topic_id", "partition", "broker"),
        f"{STATE} AS state",
        "array_join(on_disk, ',') AS on_disk",
        "coalesce(in_metadata, '') AS in_metadata",
        "unknown AS why",
    )


# -- facts -------------------------------------------------------------------------------------------------------
def _replicas(partitions: DataFrame) -> DataFrame:
    """One row a replica with its directory, "" where the list of directories is too short."""
    of_partition = ("cluster", "topic", "topic_id", "partition")
    exploded = partitions.selectExpr(*of_partition, "directories", "posexplode(replicas) AS (position, broker)")
    return exploded.selectExpr(*KEYS, "topic", "coalesce(get(directories, position), '') AS directory")


def _seeds(zookeeper: DataFrame, kraft: DataFrame) -> DataFrame:
    left = zookeeper.selectExpr(*KEYS, "topic AS z_topic")
    right = kraft.selectExpr(*KEYS, "topic AS k_topic", "directory")
    named = left.join(right, list(KEYS), "full_outer")
    return named.selectExpr(*KEYS, "z_topic", "directory", "coalesce(z_topic, k_topic) AS topic")


def _held(folders: DataFrame) -> DataFrame:
    """What one broker's directories hold of one partition name: current copies in order, future, unreadable."""
    copy = "named_struct('place', place, 'number', number, 'directory', directory, 'id', topic_id)"
    return folders.groupBy(*FOLDER_KEYS).agg(
        expr(f"sort_array(collect_list(CASE WHEN role = 'current' THEN {copy} END)) AS copies"),
        expr("max(role = 'future') AS future"),
        expr("max(role = 'unreadable') AS unreadable"),
    )


def _facts(seeds: DataFrame, held: DataFrame, brokers: DataFrame, clusters: DataFrame) -> DataFrame:
    """`ReplicaFacts` as columns."""
    joined = (
        seeds.join(held, list(FOLDER_KEYS), "left")
        .join(broadcast(brokers), ["cluster", "broker"], "left")
        .join(broadcast(clusters), ["cluster"], "left")
    )
    mine = "filter(copies, copy -> copy.id != '' AND copy.id = topic_id)"
    return joined.selectExpr(
        *("cluster", "topic", "topic_id", "partition", "broker", "registered"),
        f"coalesce(transform({mine}, copy -> copy.directory), CAST(array() AS ARRAY<STRING>)) AS on_disk",
        "coalesce(future, false) AS future",
        "CASE WHEN metadata_speaks THEN coalesce(directory, '') END AS in_metadata",
        f"{UNKNOWN} AS unknown",
        "(finalized OR z_topic IS NOT NULL) AND (NOT metadata_speaks OR directory IS NOT NULL) AS listed",
    )


def _state() -> str:
    """`decide` as a chain of conditions; `on_disk` is in order."""
    here = "get(on_disk, 0)"
    conditions = {
        "unknown != ''": ReplicaState.UNKNOWN,
        "size(on_disk) > 1": ReplicaState.TWO_COPIES,
        "size(on_disk) = 0": ReplicaState.NOT_ON_DISK,
        f"registered IS NOT NULL AND NOT array_contains(registered, {here})": ReplicaState.NOT_REGISTERED,
        "future": ReplicaState.MOVING,
        "in_metadata IS NULL": ReplicaState.MIGRATING,
        **{f"in_metadata = {literal(directory)}": state for directory, state in RESERVED_STATES.items()},
        f"in_metadata != {here} OR registered IS NULL OR NOT listed": ReplicaState.MISMATCH,
    }
    return chosen(
        {condition: literal(state) for condition, state in conditions.items()}, literal(ReplicaState.VERIFIED)
    )


STATE: Final = _state()
# Why the row is unknown: a view that all rows need, then the broker's disks, then this replica's own
UNKNOWN: Final = chosen(
    {
        "missing != ''": "missing",
        "unseen != ''": "unseen",
        "topic_id = ''": literal(NO_ID),
        "coalesce(unreadable, false)": literal(UNREADABLE),
    },
    "''",
)
