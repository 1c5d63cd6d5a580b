"""What befalls a cluster: crashes, dying disks, and other hands.  Each costs one of the bounded number of faults."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from tests.oracles.machine import Flag, Metadata, Mode, Views, Znode
from tests.testing.explorer.cluster import STALE, B, C, Cluster, G, leader, with_broker, with_common, with_controller
from tests.testing.explorer.kafka import each, resigned, without_broker, without_controller


class Fault(Enum):
    """Kinds of faults; the last two befall engines (`system`)."""

    BROKER = "a broker is killed"
    CONTROLLER = "a controller is killed"
    RESIGNED = "the active controller steps down, and its process lives on"
    DISK = "a log directory fails"
    FLAGLESS = "another hand starts a controller without the flag"
    FLAG_FILE = "another hand takes the flag out of a controller's file"
    FILE = "another hand changes a broker's file"
    ZOOKEEPER = "another hand changes ZooKeeper past Kafka"
    JOURNAL = "the journal is lost"
    LEFT_OVER = "an earlier attempt left /migration behind"
    NULL = "a tool left /migration with null data"
    KILL = "an engine is killed"
    PAUSE = "an engine is paused beyond its session"


def befall(cluster: Cluster) -> Iterator[tuple[Fault, str, Cluster]]:
    """Every fault that may come next."""
    common = cluster[2]
    for number, node in each(cluster[0]):
        if node[B.PROCESS]:
            yield Fault.BROKER, Fault.BROKER.value, without_broker(cluster, number, (B.CRASHED, 1))
            if not node[B.DISK]:
                yield Fault.DISK, *_disk(cluster, number)
        if not node[B.HAND]:
            yield Fault.FILE, Fault.FILE.value, with_broker(cluster, number, (B.HAND, 1))
    for number, entry in each(cluster[1]):
        if entry[C.PROCESS]:
            yield Fault.CONTROLLER, Fault.CONTROLLER.value, without_controller(cluster, number, (C.CRASHED, 1))
        if entry[C.FORMATTED] and entry[C.FILE] == Flag.ON:
            edited = with_controller(cluster, number, (C.FILE, Flag.OFF))
            yield Fault.FLAG_FILE, Fault.FLAG_FILE.value, edited
            restarted = without_controller(cluster, number, (C.FILE, Flag.OFF), (C.PROCESS, Flag.OFF), (C.CRASHED, 0))
            yield Fault.FLAGLESS, Fault.FLAGLESS.value, restarted
    if leader(cluster) is not None:
        yield Fault.RESIGNED, Fault.RESIGNED.value, resigned(cluster)
    if common[G.META] == Metadata.MIGRATION and common[G.VIEWS] != Views.DIFFER:
        yield Fault.ZOOKEEPER, Fault.ZOOKEEPER.value, with_common(cluster, (G.VIEWS, Views.DIFFER))
    if common[G.FINALIZING]:
        yield Fault.JOURNAL, Fault.JOURNAL.value, with_common(cluster, (G.FINALIZING, 0))
    if common[G.ZNODE] == Znode.ABSENT and not any(entry[C.FORMATTED] for entry in cluster[1]):
        yield Fault.LEFT_OVER, Fault.LEFT_OVER.value, with_common(cluster, (G.ZNODE, STALE))
        yield Fault.NULL, Fault.NULL.value, with_common(cluster, (G.ZNODE, Znode.NULL))


def _disk(cluster: Cluster, number: int) -> tuple[str, Cluster]:
    """`ReplicaManager.handleLogDirFailure`, `ReplicationControlManager.handleDirectoriesOffline`.

    A broker in migration mode halts (KAFKA-16431).  A KRaft broker lives on; replicas whose directory the metadata does
    not know are not failed over.
    """
    node = cluster[0][number]
    if node[B.PROCESS] == Mode.MIGRATION:
        halted = without_broker(cluster, number, (B.DISK, 1), (B.CRASHED, 1))
        return "a log directory fails, and the broker in migration mode halts", halted
    if node[B.PROCESS] == Mode.KRAFT and not node[B.DIRS]:
        text = "a log directory fails under replicas whose directory is unknown: they are not failed over"
        return text, with_broker(cluster, number, (B.DISK, 2), (B.WHOLE, 0))
    return Fault.DISK.value, with_broker(cluster, number, (B.DISK, 1), (B.WHOLE, 0))
