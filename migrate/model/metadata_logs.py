"""What stopped controllers' logs on disk say: how far a majority wrote, and up to where ZooKeeper must have it."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate.model.columns import PartitionColumns
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState


@dataclass(frozen=True, slots=True)
class MetadataLogs:
    """The controllers' metadata directories, read while no controller runs.

    `holders` are the controllers with a log or a snapshot; empty: nothing of a quorum lies there, and the rest says so.
    `end` is the committed end (exclusive), Unknown where the directories prove none.  `content` is the last offset
    below it whose record dual write has to bring to ZooKeeper (-1: none).  `epoch` is the highest epoch that any of
    them knows.  `registered` are the brokers that the log knows, dead or alive.  `partitions` are those of the
    committed metadata, with their partition epochs.
    """

    holders: tuple[int, ...] = ()
    end: int | Unknown = 0
    content: int = -1
    state: ZkMigrationState = ZkMigrationState.NONE
    epoch: int = -1
    registered: tuple[int, ...] = ()
    partitions: PartitionColumns = field(default_factory=PartitionColumns, repr=False)
