"""Small clusters by hand: views in which everything agrees, to be bent by a test in one place."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from migrate.model.columns import EntityColumns, PartitionColumns, ReplicaColumns
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    Directory,
    KraftView,
    MetaProperties,
    NoZnode,
    PendingWork,
    Registration,
    ZkBroker,
    ZnodeAcl,
    ZookeeperView,
)

CLUSTER_ID = "REh233dFSJKhrlnVHSnalQ"


def uuid(number: int) -> str:
    """A Kafka UUID that no reserved id equals: 2^64 + number."""
    return base64.urlsafe_b64encode((2**64 + number).to_bytes(16, "big")).rstrip(b"=").decode()


def topic_id(number: int) -> str:
    """The id of a test's topic."""
    return uuid(10_000 + number)


def endpoint(broker: int) -> str:
    """A broker's only listener."""
    return f"PLAINTEXT://127.0.0.1:{9000 + broker}"


def directory_id(broker: int, index: int) -> DirectoryId:
    """The id of a broker's log directory."""
    return DirectoryId(uuid(100 * (broker + 1) + index))


@dataclass(slots=True)
class Partition:
    """One partition, as both sides should have it."""

    topic: str
    topic_id: str
    partition: int
    replicas: list[int]
    directories: list[str] = field(default_factory=list)
    isr: list[int] | None = None
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    leader: int | None = None
    leader_epoch: int = 3
    recovery_state: int = 0

    def add_to(self, columns: PartitionColumns, *, directories: bool) -> None:
        """Append this partition's row."""
        columns.topic.append(self.topic)
        columns.topic_id.append(self.topic_id)
        columns.partition.append(self.partition)
        columns.replicas.append(list(self.replicas))
        columns.isr.append(list(self.replicas if self.isr is None else self.isr))
        columns.adding.append(list(self.adding))
        columns.removing.append(list(self.removing))
        columns.leader.append(self.replicas[0] if self.leader is None else self.leader)
        columns.leader_epoch.append(self.leader_epoch)
        columns.recovery_state.append(self.recovery_state)
        columns.directories.append(list(self.directories) if directories else [])
        columns.revision.append(7)


def columns_of(partitions: Iterable[Partition], *, directories: bool = False) -> PartitionColumns:
    """Partitions as a view holds them."""
    columns = PartitionColumns()
    for partition in partitions:
        partition.add_to(columns, directories=directories)
    return columns


def entities_of(rows: Iterable[tuple[str, str, str, str]]) -> EntityColumns:
    """(kind, key, name, value) rows as a view holds them."""
    columns = EntityColumns()
    for row in rows:
        columns.add(*row)
    return columns


OPEN_ACLS = {"/brokers/topics": (ZnodeAcl(31, "world", "anyone"),)}


def zookeeper_view(
    partitions: Iterable[Partition] = (),
    entities: Iterable[tuple[str, str, str, str]] = (),
    brokers: Sequence[int] = (),
) -> ZookeeperView:
    """A ZooKeeper view with those partitions, entities and live ZooKeeper-mode brokers."""
    return ZookeeperView(
        connect="127.0.0.1:2181/kafka",
        cluster_id=CLUSTER_ID,
        brokers={
            NodeId(n): ZkBroker(NodeId(n), 10 + n, (f"PLAINTEXT://127.0.0.1:{9000 + n}",), None, 1) for n in brokers
        },
        controller=NoZnode(),
        controller_epoch=1,
        migration=NoZnode(),
        partitions=columns_of(partitions),
        entities=entities_of(entities),
        topics_without_id=(),
        partitions_without_state=(),
        pending=PendingWork(),
        acls=OPEN_ACLS,
    )


def kraft_view(
    partitions: Iterable[Partition] = (),
    entities: Iterable[tuple[str, str, str, str]] = (),
    brokers: Iterable[Registration] = (),
    *,
    offset: int = 100,
    high_watermark: int | Unknown | None = None,
) -> KraftView:
    """A committed metadata image."""
    return KraftView(
        cluster_id=CLUSTER_ID,
        offset=offset,
        epoch=1,
        high_watermark=offset + 1 if high_watermark is None else high_watermark,
        source="by hand",
        migration_state=ZkMigrationState.MIGRATION,
        features={"metadata.version": 21},
        brokers={broker.id: broker for broker in brokers},
        controllers={},
        partitions=columns_of(partitions, directories=True),
        entities=entities_of(entities),
    )


def registration(broker: int, log_dirs: Iterable[str], *, migrating: bool = True) -> Registration:
    """A registration, unfenced."""
    return Registration(
        id=NodeId(broker),
        epoch=50 + broker,
        incarnation=uuid(5000 + broker),
        migrating=migrating,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=frozenset(DirectoryId(log_dir) for log_dir in log_dirs),
        endpoints=(endpoint(broker),),
    )


Folder = tuple[str, int, str, str]  # topic, partition, topic id, kind


def directory(path: str, id_: str | None, folders: Iterable[Folder] = (), problem: str = "") -> Directory:
    """A log directory with replica folders."""
    replicas = ReplicaColumns()
    for topic, partition, found_id, kind in folders:
        replicas.topic.append(topic)
        replicas.partition.append(partition)
        replicas.topic_id.append(found_id)
        replicas.kind.append(kind)
        replicas.folder.append(f"{topic}-{partition}")
        replicas.size.append(0)
    meta = MetaProperties(0, CLUSTER_ID, None, None if id_ is None else DirectoryId(id_))
    return Directory(path=path, problem=problem, meta=meta, replicas=replicas, holds_metadata_log=False)


def disks_of(found: Mapping[int, Sequence[Directory]]) -> dict[NodeId, BrokerDisks | Unknown]:
    """Every broker's directories."""
    return {NodeId(broker): BrokerDisks(NodeId(broker), tuple(dirs)) for broker, dirs in found.items()}


@dataclass(slots=True)
class Cluster:
    """A whole cluster in which every replica is VERIFIED: bend one place of it, then take the views."""

    partitions: list[Partition]
    folders: dict[tuple[int, int], list[Folder]]  # (broker, index of the directory) -> folders
    log_dirs: dict[int, list[str]]

    @property
    def zookeeper(self) -> ZookeeperView:
        """ZooKeeper's view."""
        return zookeeper_view(self.partitions, brokers=sorted(self.log_dirs))

    @property
    def kraft(self) -> KraftView:
        """The metadata's view."""
        return kraft_view(self.partitions, brokers=[registration(broker, ids) for broker, ids in self.log_dirs.items()])

    @property
    def disks(self) -> dict[NodeId, BrokerDisks | Unknown]:
        """The disks' view."""
        return disks_of(
            {
                broker: [
                    directory(f"/data/b{broker}/d{index}", id_, self.folders.get((broker, index), ()))
                    for index, id_ in enumerate(ids)
                ]
                for broker, ids in self.log_dirs.items()
            }
        )


def healthy_cluster(brokers: int = 3, directories: int = 3, topics: int = 2, partitions: int = 3) -> Cluster:
    """`brokers` brokers with `directories` directories each, every topic on all of them."""
    cluster = Cluster([], {}, {b: [directory_id(b, d) for d in range(directories)] for b in range(brokers)})
    for topic in range(topics):
        for number in range(partitions):
            replicas = [(number + index) % brokers for index in range(brokers)]
            places = {broker: (number + topic + broker) % directories for broker in replicas}
            cluster.partitions.append(
                Partition(
                    f"t{topic}", topic_id(topic), number, replicas, [directory_id(b, places[b]) for b in replicas]
                )
            )
            for broker, place in places.items():
                folder = (f"t{topic}", number, topic_id(topic), "current")
                cluster.folders.setdefault((broker, place), []).append(folder)
    return cluster
