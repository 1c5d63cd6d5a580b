"""Log directories that a KRaft broker shall get, as its host shows them, and what speaks against one (pure).

KIP-858, "Migrating a cluster in KRaft without JBOD": directories are added to `log.dirs` behind those that are there,
because the first one holds the metadata log where `metadata.log.dir` does not say otherwise (`KafkaConfig`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import Directory, KraftView, MetaBroken, MetaMissing, MetaProperties

FEATURE: Final = "metadata.version"
UNKNOWN_TO_3_9: Final = 24  # 4.0-IV2; levels below it can be set on 3.9, though those of 4.0 are unstable there
NEEDED_LEVEL: Final = 17  # 3.7-IV2, the first one with directories in the metadata (MetadataVersion.java)
RELEASES: Final = {  # as `MetadataVersion.toString` names them, up to the newest one of Kafka 4.4
    17: "3.7-IV2", 18: "3.7-IV3", 19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0",
    22: "4.0-IV0", 23: "4.0-IV1", 24: "4.0-IV2", 25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1",
    28: "4.2-IV0", 29: "4.2-IV1", 30: "4.3-IV0", 31: "4.4-IV0", 32: "4.4-IV1", 33: "4.4-IV2",
}  # fmt: skip
META: Final = "meta.properties"
# what a broker or kafka-storage leaves in a directory that holds no replica, and what a new file system has in it
HARMLESS: Final = frozenset(
    {
        "lost+found",
        "bootstrap.checkpoint",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        ".lock",
        ".kafka_cleanshutdown",
    }
)


@dataclass(frozen=True, slots=True)
class NewDirectory:
    """One of them, and what its host shows of it."""

    directory: Directory
    place: str  # where its path leads to, links resolved
    names: tuple[str, ...]  # what lies in it
    taken: tuple[str, ...] = ()  # the log directories that it is, holds or lies in, as `host:` and path

    @property
    def path(self) -> str:
        return self.directory.path


def in_use(kraft: KraftView) -> bool:
    """Does this metadata say of no migration, and hold a cluster?  Then nobody may ever format its controllers.

    Controllers that were started without the flag have no partition, and no broker but those that migrate: it is
    Kafka 4 that writes snapshots of a migrated cluster in which the migration is not noted any more.
    """
    if kraft.migration_state is not ZkMigrationState.NONE:
        return False
    return len(kraft.partitions) > 0 or any(not entry.migrating for entry in kraft.brokers.values())


def alone(kraft: KraftView, zookeeper: str) -> bool:
    """Is the metadata all there is?  Migrated and finalized, or never migrated and without a ZooKeeper to ask.

    Kafka 4.x forgets that there was a migration: its snapshots have no such record.  A level that 3.9 does not know
    says then that there can be no ZooKeeper.
    """
    if kraft.migration_state is ZkMigrationState.POST_MIGRATION or kraft.features.get(FEATURE, 0) >= UNKNOWN_TO_3_9:
        return True
    return kraft.migration_state is ZkMigrationState.NONE and not zookeeper


def release_of(kraft: KraftView) -> str | Unknown:
    """What kafka-storage calls the cluster's metadata.version; Unknown for one that this tool does not know."""
    level = kraft.features.get(FEATURE)
    if level is None:
        return Unknown("the metadata names no metadata.version")
    return RELEASES.get(level, Unknown(f"metadata.version {level} is none that this tool knows"))


def version_too_low(kraft: KraftView) -> str:
    """Why directories cannot be in the metadata yet, and what raises the level; "" where they can."""
    level = kraft.features.get(FEATURE)
    if level is not None and level >= NEEDED_LEVEL:
        return ""
    return f"metadata.version is {'not set' if level is None else level}, directories need {NEEDED_LEVEL} (3.7-IV2)"


def against_format(entry: NewDirectory, broker: NodeId, cluster_id: str) -> Iterator[str]:
    """What speaks against formatting it for that broker; a directory that is formatted for it already is fine."""
    directory = entry.directory
    if directory.problem:
        yield f"it {directory.problem}"
        return
    yield from (f"it is, contains or is in {other}" for other in entry.taken)
    match directory.meta:
        case MetaBroken(reason=reason):
            yield f"its meta.properties cannot be trusted: {reason}"
        case MetaProperties(cluster_id=cluster, node_id=node) if (cluster, node) != (cluster_id, broker):
            yield f"its meta.properties is of cluster {cluster} and node {node}"
        case MetaProperties() | MetaMissing():
            pass
    yield from _content(entry)


def _content(entry: NewDirectory) -> Iterator[str]:
    replicas = entry.directory.replicas
    if replicas.folder:
        yield f"it holds replicas: {', '.join(replicas.folder[:3])}"
    if entry.directory.holds_metadata_log:
        yield "it holds a metadata log"
    known = {*replicas.folder, META, *HARMLESS}
    strange = [name for name in entry.names if name not in known and not name.startswith(f"{META}.")]
    if strange and not entry.directory.holds_metadata_log:
        yield f"it is not empty: {', '.join(strange[:3])}"


def unproven(entry: NewDirectory) -> str:
    """Why it is not known whether it stores a block; "" where that was tried."""
    return "" if entry.directory.problem else entry.directory.unproven
