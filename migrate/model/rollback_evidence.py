"""What a rollback must prove of the metadata: stopped controllers' logs, and partition states behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate.model.columns import PartitionColumns
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, NoZnode, ZookeeperView


@dataclass(frozen=True, slots=True)
class MetadataLogs:
    """The controllers' metadata directories, read while no controller runs.

    `holders` are the controllers with a log or a snapshot; empty: nothing of a quorum lies there, and the rest says so.
    `end` is the committed end (exclusive), Unknown where the directories prove none.  `epoch` is the highest epoch
    that any of them knows.  `registered` are the brokers that the log knows, dead or alive.  `partitions` are those of
    the committed metadata, with their partition epochs.  `view` is the image at `end`; None where nothing of a quorum
    is there.
    """

    holders: tuple[int, ...] = ()
    end: int | Unknown = 0
    state: ZkMigrationState = ZkMigrationState.NONE
    epoch: int = -1
    registered: tuple[int, ...] = ()
    partitions: PartitionColumns = field(default_factory=PartitionColumns, repr=False)
    view: KraftView | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Growing(Unknown):
    """Unknown, for a controller still writes its log.

    `rehearsed`: all the same they were read, by what will read them once no controller leads.
    """

    rehearsed: bool = False


def old_log(view: ZookeeperView, logs: MetadataLogs) -> str | None:
    """What a half-done rollback, or a copy that is stuck, has left of a quorum; None where /migration goes with it."""
    znode = view.migration
    if isinstance(znode, MigrationZnode) and znode.copied:
        return None  # whether the log has made that copy is another rule's
    word = "absent" if isinstance(znode, NoZnode) else "without an offset"
    if logs.state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION):
        return f"the metadata of controllers {list(logs.holders)} says {logs.state.name}, /migration is {word}"
    if isinstance(znode, NoZnode) and logs.registered:
        known = f"knows brokers {list(logs.registered)}"
        return f"the metadata of controllers {list(logs.holders)} {known}, /migration is absent"
    return None


@dataclass(frozen=True, slots=True)
class StateBehind:
    """A `state` znode with a version below the partition epoch that the metadata has.

    ZooKeeper's controller takes the version for the partition epoch (`LeaderAndIsr.partitionEpoch`), and a broker
    ignores a LeaderAndIsr whose partition epoch is below the one that it knows (`Partition.makeLeader`,
    `makeFollower`).  KRaft counts one for each change, dual write writes several of them at once.
    """

    path: str
    version: int
    partition_epoch: int
