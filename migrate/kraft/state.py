"""The mutable image: what the records so far have built.  Secrets stand in it as digests only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.model.columns import PartitionColumns
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ControllerRegistration, Registration


class PartitionRow(NamedTuple):
    """One partition; rows are replaced, never changed, so that views may share their lists."""

    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    leader: int
    leader_epoch: int
    recovery_state: int
    directories: list[str]
    partition_epoch: int


class Topic(NamedTuple):
    """A topic's name and its partitions, by id; `where` is the TopicRecord."""

    name: str
    where: str
    partitions: dict[int, PartitionRow]


@dataclass(slots=True)
class State:
    """Everything that metadata records set.

    `settings` holds what becomes entity rows, by (kind, key) and name: (value, where).  The two counts of
    changes, to partition rows and to everything else, tell whether columns made before still hold.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    brokers: dict[int, tuple[Registration, str]] = field(default_factory=dict)
    controllers: dict[int, ControllerRegistration] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    settings: dict[tuple[str, str], dict[str, tuple[str, str]]] = field(default_factory=dict)
    acls: dict[str, tuple[str, str]] = field(default_factory=dict)
    migration_state: ZkMigrationState = ZkMigrationState.NONE
    partition_changes: int = 0
    entity_changes: int = 0

    def set_row(self, topic_id: str, partition: int, row: PartitionRow) -> None:
        """Set a partition of a topic that is there."""
        self.topics[topic_id].partitions[partition] = row

    def set_rows(self, topic_id: str, rows: list[tuple[int, PartitionRow]]) -> None:
        """Set partitions of a topic that is there, in that order."""
        self.topics[topic_id].partitions.update(rows)
        self.partition_changes += len(rows)

    def put(self, kind: str, key: str, name: str, value: str | None, where: str) -> None:
        """Set a setting, or remove it (None); an entity without settings is gone."""
        if value is not None:
            self.settings.setdefault((kind, key), {})[name] = (value, where)
            return
        names = self.settings.get((kind, key))
        if names is not None:
            names.pop(name, None)
            if not names:
                del self.settings[kind, key]


def partition_columns(state: State) -> PartitionColumns:
    """All partitions, by topic name and partition."""
    columns = PartitionColumns()
    for name in sorted(state.topic_ids):
        topic_id = state.topic_ids[name]
        partitions = state.topics[topic_id].partitions
        for partition in sorted(partitions):
            row = partitions[partition]
            columns.topic.append(name)
            columns.topic_id.append(topic_id)
            columns.partition.append(partition)
            columns.replicas.append(row.replicas)
            columns.isr.append(row.isr)
            columns.adding.append(row.adding)
            columns.removing.append(row.removing)
            columns.leader.append(row.leader)
            columns.leader_epoch.append(row.leader_epoch)
            columns.recovery_state.append(row.recovery_state)
            columns.directories.append(row.directories)
            columns.revision.append(row.partition_epoch)
    return columns
