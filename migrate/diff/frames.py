"""Views -> Arrow -> DataFrames with explicit schemas.  A view reaches Spark only through this module.

Every frame has a column `cluster`: 0 for the one cluster of a run; several small clusters can share a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from migrate.diff.session import reason_of
from migrate.diff.typed_rows import EntityRow
from migrate.errors import SparkGone
from migrate.model.columns import UNREADABLE_TOPIC_ID, EntityColumns, PartitionColumns
from migrate.model.facts import DisksByBroker, registered_directories, unseen
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, KraftView

INTS: Final = pa.list_(pa.int32())
TEXTS: Final = pa.list_(pa.string())

PARTITIONS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("replicas", INTS),
        ("isr", INTS),
        ("adding", INTS),
        ("removing", INTS),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("recovery_state", pa.int32()),
        ("directories", TEXTS),
    ]
)
ENTITIES: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
    ]
)
FOLDERS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("broker", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("place", pa.int32()),  # position of the directory among the broker's
        ("number", pa.int32()),  # position of the folder in its directory
        ("directory", pa.string()),
        ("topic_id", pa.string()),
        ("role", pa.string()),  # current, future or unreadable
    ]
)
BROKERS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("broker", pa.int32()),
        ("unseen", pa.string()),  # why its disks are unknown, "" if they are known
        ("registered", TEXTS),  # null without a registration that has LogDirs
    ]
)
CLUSTERS: Final = pa.schema(
    [
        ("cluster", pa.int32()),
        ("missing", pa.string()),  # views that every row needs and that are unknown, "" for none
        ("metadata_speaks", pa.bool_()),
        ("finalized", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Column:
    """Columns of one frame, gathered in Python lists before they become Arrow."""

    schema: pa.Schema
    values: dict[str, list[object]]

    @classmethod
    def of(cls, schema: pa.Schema) -> Column:
        return cls(schema, {name: [] for name in schema.names})

    def add(self, *row: object) -> None:
        for column, value in zip(self.values.values(), row, strict=True):
            column.append(value)

    def table(self) -> pa.Table:
        return pa.table(self.values, schema=self.schema)


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over an Arrow table.

    In one chunk: pyspark 4.3 silently drops every row that comes after an empty chunk.  A session of Spark Connect
    takes no schema from a table without rows.
    """
    if not table.num_rows and is_remote():
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    return spark.createDataFrame(table.combine_chunks())


def partitions(columns: PartitionColumns, cluster: int = 0) -> pa.Table:
    """Partitions of a view, whole columns at a time."""
    values = {
        "cluster": [cluster] * len(columns),
        "topic": columns.topic,
        "partition": columns.partition,
        "topic_id": columns.topic_id,
        "replicas": columns.replicas,
        "isr": columns.isr,
        "adding": columns.adding,
        "removing": columns.removing,
        "leader": columns.leader,
        "leader_epoch": columns.leader_epoch,
        "recovery_state": columns.recovery_state,
        "directories": columns.directories,
    }
    return pa.table(values, schema=PARTITIONS)


def entities(columns: EntityColumns, typed: Iterable[EntityRow] = (), cluster: int = 0) -> pa.Table:
    """Everything that is no partition.

    `typed` rows are made here, for both views alike, from what the views hold as values (brokers, features); they
    take the place of all rows of their kinds.
    """
    made = tuple(typed)
    kinds = {"broker", *(row[0] for row in made)}
    distinct = dict.fromkeys(zip(columns.kind, columns.key, columns.name, columns.value, strict=True))
    rows = [*(row for row in distinct if row[0] not in kinds), *made]
    if not rows:
        return ENTITIES.empty_table()
    return pa.table([[cluster] * len(rows), *map(list, zip(*rows, strict=True))], schema=ENTITIES)


def folders(disks: DisksByBroker | Unknown, cluster: int = 0) -> pa.Table:
    """Replica folders that the ledger asks for: future ones anywhere, current ones of healthy directories."""
    found = Column.of(FOLDERS)
    for broker, seen in {} if isinstance(disks, Unknown) else disks.items():
        if not isinstance(seen, Unknown):
            _add_folders(found, int(broker), seen, cluster)
    return found.table()


def _add_folders(found: Column, broker: int, disks: BrokerDisks, cluster: int) -> None:
    for place, directory in enumerate(disks.directories):
        replicas = directory.replicas
        for number, (topic, partition, topic_id, kind) in enumerate(
            zip(replicas.topic, replicas.partition, replicas.topic_id, replicas.kind, strict=True)
        ):
            role = kind
            if kind == "current" and topic_id == UNREADABLE_TOPIC_ID:
                role = "unreadable"
            if kind == "future" or (kind == "current" and directory.healthy):
                found.add(cluster, broker, topic, partition, place, number, directory.id or "", topic_id, role)


def brokers(
    ids: Iterable[int], disks: DisksByBroker | Unknown, kraft: KraftView | Unknown, cluster: int = 0
) -> pa.Table:
    """Each broker of `ids`: why its disks are unknown, and the directories that it registered."""
    found = Column.of(BROKERS)
    for broker in sorted(set(ids)):
        registered = registered_directories(kraft, broker)
        found.add(cluster, broker, unseen(broker, disks), None if registered is None else sorted(registered))
    return found.table()


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turn whatever pyspark and its gateway raise into SparkGone: `what` could not be finished.

    An OSError of pyspark's own is a driver that went away, or a file in Spark's folder that could not be written: it
    hands tables over in such files.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        raise SparkGone(f"Spark could not finish {what}", why=reason_of(error)) from error
