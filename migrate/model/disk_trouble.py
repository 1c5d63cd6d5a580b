"""What is wrong with a log directory, what that does to its broker in the mode it is in, and what to do.  Pure.

Sources: `ReplicaManager.handleLogDirFailure` (migration mode halts), `KafkaRaftServer.initializeLogDirs` (a readable
directory without meta.properties stops the start), `BrokerLifecycleManager` (log.dir.failure.timeout.ms), KAFKA-20762
(version 1 files bar the way back to ZooKeeper mode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    ConfigFile,
    Directory,
    KraftView,
    LogDirAnswer,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    Registration,
)
from migrate.model.world import World

FLAG: Final = "zookeeper.metadata.migration.enable"
TIMEOUT: Final = "log.dir.failure.timeout.ms"
TIMEOUT_DEFAULT: Final = "30000"  # ServerConfigs, since 3.8


class BrokerMode(StrEnum):
    """What a broker's file makes of it; FINAL is KRaft mode behind the point of no return."""

    ZOOKEEPER = "ZooKeeper mode"
    MIGRATION = "migration mode"
    KRAFT = "KRaft mode"
    FINAL = "KRaft mode, finalized"


EFFECT: Final[Mapping[BrokerMode, str]] = {
    BrokerMode.ZOOKEEPER: "the broker goes on without it; partitions that it led there have another leader, or none",
    BrokerMode.MIGRATION: "a broker in migration mode halts with its first dead directory: one disk is one broker",
    BrokerMode.KRAFT: "the broker goes on without it, its replicas there are failed over where the metadata knows "
    "their directory; for the others see `directories rescue`",
    BrokerMode.FINAL: "the broker goes on without it, its replicas there are failed over where the metadata knows "
    "their directory; for the others see `directories rescue`",
}
OLD_DISK: Final = "with the old disk back, start the broker: it goes on where it was"
VERSION_1: Final = (
    "its meta.properties has version 1, as kafka-storage format writes it: "
    "a ZooKeeper-mode broker does not start on it (KAFKA-20762)"
)
FETCHED: Final = "it fetches its replicas anew, those without another replica are lost"


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """One directory: what is wrong, what that does in this mode, and what to do, a sentence an entry."""

    broker: int
    path: str
    mode: BrokerMode
    what: str
    effect: str
    do: tuple[str, ...]


def disk_troubles(world: World) -> Iterator[DiskTrouble]:
    """Every directory of a broker that is not as it should be, in the inventory's order."""
    if isinstance(world.disks, Unknown) or isinstance(world.configs, Unknown):
        return
    for node in world.inventory.brokers:
        disks, file = world.disks.get(node.id), world.configs.get(node.id)
        if disks is None or isinstance(disks, Unknown) or not isinstance(file, ConfigFile):
            continue
        mode = mode_of(world, file)
        registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
        for directory in disks.directories:
            what = _wrong(directory, mode, registration, _answer(world, node.id, directory.path))
            if what:
                yield DiskTrouble(
                    int(node.id), directory.path, mode, what, _effect(mode, file), _mend(world, file, mode, directory)
                )


def mode_of(world: World, file: ConfigFile) -> BrokerMode:
    """By the broker's file, and by whether the migration is finalized."""
    if file.values.get("process.roles", "").strip():
        over = isinstance(world.kraft, KraftView) and world.kraft.migration_state is ZkMigrationState.POST_MIGRATION
        return BrokerMode.FINAL if over else BrokerMode.KRAFT
    return BrokerMode.MIGRATION if file.values.get(FLAG, "").strip().lower() == "true" else BrokerMode.ZOOKEEPER


def _answer(world: World, node: NodeId, path: str) -> LogDirAnswer | None:
    said = None if isinstance(world.live, Unknown) else world.live.log_dirs.get(node)
    return next((one for one in said if one.path == path), None) if isinstance(said, tuple) else None


def _wrong(
    directory: Directory, mode: BrokerMode, registration: Registration | None, answer: LogDirAnswer | None
) -> str:
    """What is wrong, "" for nothing."""
    offline = "; the broker calls it offline" if answer is not None and answer.error else ""
    if directory.problem:
        return directory.problem + offline
    if isinstance(directory.meta, MetaBroken):
        return f"its meta.properties: {directory.meta.reason}{offline}"
    if isinstance(directory.meta, MetaMissing) and (mode is not BrokerMode.ZOOKEEPER or offline):
        return f"it has no meta.properties: it was emptied, or is a new disk{offline}"
    known = registration is not None and bool(registration.log_dirs)
    if mode is BrokerMode.ZOOKEEPER and isinstance(directory.meta, MetaProperties) and directory.meta.version:
        return VERSION_1
    if offline:
        return "it is whole on the disk, and offline to the broker, which takes it back only when it starts"
    if known and registration is not None and directory.id is not None and directory.id not in registration.log_dirs:
        return (
            f"its directory.id {directory.id} is not the one that the broker registered: another disk is in its place"
        )
    return ""


def _effect(mode: BrokerMode, file: ConfigFile) -> str:
    """What becomes of the broker, log.dir.failure.timeout.ms read from its file."""
    if mode in (BrokerMode.ZOOKEEPER, BrokerMode.MIGRATION):
        return EFFECT[mode]
    value = file.values.get(TIMEOUT, "").strip()
    spelled = f"{TIMEOUT}={value}" if value else f"{TIMEOUT} is {TIMEOUT_DEFAULT}, the default"
    return f"{EFFECT[mode]}; {spelled}: a failure that no controller acknowledges for so long stops the broker"


def _mend(world: World, file: ConfigFile, mode: BrokerMode, directory: Directory) -> tuple[str, ...]:
    """With the old disk, and with a new one: what its meta.properties is to be at this stage."""
    if mode is BrokerMode.ZOOKEEPER and isinstance(directory.meta, MetaProperties) and directory.meta.version:
        return (
            "write its meta.properties as version 0, with broker.id instead of node.id and the same ids (a copy aside)",
        )
    whole = not directory.problem and not isinstance(directory.meta, MetaMissing | MetaBroken)
    if whole:
        return (f"restart broker {int(file.node)}",)
    return OLD_DISK, f"with a new disk: {new_disk(world, file, mode, directory.path)}; {FETCHED}"


def new_disk(world: World, file: ConfigFile, mode: BrokerMode, path: str) -> str:
    """How a new, empty disk is made known: which file, of which version, written by whom."""
    if mode in (BrokerMode.ZOOKEEPER, BrokerMode.MIGRATION):
        return (
            "leave the folder empty and start the broker, it writes meta.properties itself (version 0); do not run "
            "kafka-storage format: a version 1 file bars ZooKeeper mode (KAFKA-20762)"
        )
    cluster = cluster_of(world)
    if mode is BrokerMode.KRAFT:
        lines = f"version=0\\nbroker.id={int(file.node)}\\ncluster.id={cluster}\\n"
        return (
            f"printf '{lines}' > {path}/meta.properties, then start the broker, it adds a directory.id; kafka-storage "
            "format would write version 1, which bars the way back to ZooKeeper mode (KAFKA-20762)"
        )
    return f"kafka-storage format --cluster-id={cluster} --ignore-formatted -c {file.path}, then start the broker"


def cluster_of(world: World) -> str:
    """The cluster's id as the metadata, ZooKeeper or the inventory has it."""
    if isinstance(world.kraft, KraftView) and world.kraft.cluster_id:
        return world.kraft.cluster_id
    if not isinstance(world.zookeeper, Unknown):
        return world.zookeeper.cluster_id
    return world.inventory.expect_cluster_id or "CLUSTER_ID"
