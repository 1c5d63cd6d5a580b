"""Arbitrary small clusters: healthy ones that were bent in any of the ways that a ledger must tell apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it

from migrate.diff.ledger import Question
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, KraftView, MetaMissing, Registration, ZookeeperView
from tests.testing.clusters import Cluster, directory_id, healthy_cluster, topic_id, uuid

Bend = Callable[[Random, Cluster], None]


def a_folder(random: Random, cluster: Cluster) -> list[tuple[str, int, str, str]]:
    """The folders of any directory that holds some."""
    return random.choice([folders for folders in cluster.folders.values() if folders] or [[]])


def other_directory(random: Random, cluster: Cluster) -> None:
    """The metadata names a reserved, another, a foreign or no directory."""
    partition = random.choice(cluster.partitions)
    index = random.randrange(len(partition.directories) or 1)
    if partition.directories:
        names = [MIGRATING, UNASSIGNED, LOST, directory_id(partition.replicas[0], 0), uuid(3), ""]
        partition.directories[index] = random.choice(names)


def short_directories(random: Random, cluster: Cluster) -> None:
    """The metadata's list of directories is too short."""
    partition = random.choice(cluster.partitions)
    del partition.directories[random.randrange(len(partition.directories) + 1) :]


def other_topic(random: Random, cluster: Cluster) -> None:
    """A folder's partition.metadata is missing, unreadable, or of another topic."""
    folders = a_folder(random, cluster)
    if folders:
        index = random.randrange(len(folders))
        topic, number, _, kind = folders[index]
        folders[index] = (topic, number, random.choice(["", "?", topic_id(44)]), kind)


def more_folders(random: Random, cluster: Cluster) -> None:
    """One more folder of any kind anywhere."""
    partition = random.choice(cluster.partitions)
    broker = random.choice(list(cluster.log_dirs))
    place = random.randrange(len(cluster.log_dirs[broker]))
    found_id = random.choice([partition.topic_id, partition.topic_id, "", "?", topic_id(45)])
    kind = random.choice(["current", "current", "future", "deleted", "stray"])
    cluster.folders.setdefault((broker, place), []).append((partition.topic, partition.partition, found_id, kind))


def fewer_folders(random: Random, cluster: Cluster) -> None:
    """A folder is gone."""
    folders = a_folder(random, cluster)
    if folders:
        folders.pop(random.randrange(len(folders)))


def without_id(random: Random, zookeeper: ZookeeperView) -> ZookeeperView:
    """ZooKeeper's topics, one of them without id (the metadata always has one)."""
    partitions = zookeeper.partitions
    unlucky = random.choice(partitions.topic)
    ids = [
        "" if topic == unlucky else found for topic, found in zip(partitions.topic, partitions.topic_id, strict=True)
    ]
    return replace(zookeeper, partitions=replace(partitions, topic_id=ids))


BENDS: tuple[Bend, ...] = (
    other_directory,
    other_directory,
    short_directories,
    other_topic,
    more_folders,
    more_folders,
    fewer_folders,
)


def any_question(random: Random) -> Question:
    """Views of a bent cluster; any of them, or a broker's part, may be unknown or broken."""
    brokers = random.randint(1, 3)
    cluster = healthy_cluster(brokers, random.randint(1, 3), random.randint(0, 2), random.randint(1, 2))
    if cluster.partitions:
        for _ in range(random.choice([0, 1, 1, 2, 4])):
            random.choice(BENDS)(random, cluster)
    zookeeper, kraft, disks = cluster.zookeeper, cluster.kraft, cluster.disks
    if cluster.partitions and random.random() < 0.3:  # one side has another list of partitions or replicas
        if random.random() < 0.5:
            del cluster.partitions[random.randrange(len(cluster.partitions))]
        else:
            cluster.partitions[0].replicas[0] = random.choice([3, 4])  # another broker, never one twice
        if random.random() < 0.5:
            zookeeper = cluster.zookeeper
        else:
            kraft = cluster.kraft
    if cluster.partitions and zookeeper.partitions.topic and random.random() < 0.1:
        zookeeper = without_id(random, zookeeper)
    kraft = _bent_registrations(random, kraft)
    disks = _bent_disks(random, disks)
    why = Unknown(random.choice(["timed out", "refused; no route"]))
    return Question(
        zookeeper=why if random.random() < 0.07 else zookeeper,
        kraft=why if random.random() < 0.07 else kraft,
        disks=why if random.random() < 0.07 else disks,
        after_copy=random.random() < 0.8,
        finalized=random.random() < 0.2,
    )


def _bent_registrations(random: Random, kraft: KraftView) -> KraftView:
    brokers: dict[NodeId, Registration] = {}
    for broker, found in kraft.brokers.items():
        draw = random.random()
        if draw < 0.1:
            continue
        log_dirs = found.log_dirs
        if draw < 0.2:
            log_dirs = frozenset(sorted(log_dirs)[1:])
        elif draw < 0.25:
            log_dirs = frozenset()
        brokers[broker] = replace(found, log_dirs=log_dirs)
    return replace(kraft, brokers=brokers)


def _bent_disks(random: Random, disks: Mapping[NodeId, BrokerDisks | Unknown]) -> dict[NodeId, BrokerDisks | Unknown]:
    bent: dict[NodeId, BrokerDisks | Unknown] = {}
    for broker, found in disks.items():
        draw = random.random()
        if draw < 0.05:
            continue
        if draw < 0.1 or isinstance(found, Unknown):
            bent[broker] = Unknown("ssh: no route")
            continue
        directories = list(found.directories)
        place = random.randrange(len(directories))
        if draw < 0.2:
            directories[place] = replace(directories[place], problem="Input/output error")
        elif draw < 0.25:
            directories[place] = replace(directories[place], meta=MetaMissing())
        bent[broker] = replace(found, directories=tuple(directories))
    return bent
