"""The model's cluster: tuples of small integers, so that a state hashes fast and equal nodes fold into one.

A cluster is `(brokers, controllers, common)`, brokers and controllers sorted: which of several equal nodes it is makes
no difference to what can follow.  `mark` says which engine (1, 2, or 3 for both) has chosen this node for its next act.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Final

from tests.oracles.machine import (
    BrokerAt,
    ControllerAt,
    Flag,
    Metadata,
    Mode,
    Owner,
    Registered,
    Standing,
    Views,
    Znode,
)

Node = tuple[int, ...]
Cluster = tuple[tuple[Node, ...], tuple[Node, ...], Node]


class B(IntEnum):
    """A broker's fields."""

    FILE = 0  # Mode
    PROCESS = 1  # Mode
    REG = 2  # Registered, in the quorum's log
    WHOLE = 3  # joined: registered anew where that is due, in every ISR
    DIRS = 4  # 0: MIGRATING in the metadata, 1: the directories on its disks
    DISK = 5  # 0 healthy, 1 a directory failed, 2 failed and its replicas were not failed over
    HAND = 6  # its file was changed by another hand
    BELIEVES = 7  # in a KRaft controller
    CRASHED = 8  # 1: its ZooKeeper session lives on, 2: ended
    MARK = 9


class C(IntEnum):
    """A controller's fields."""

    FILE = 0  # Flag
    PROCESS = 1  # Flag
    FORMATTED = 2
    LEADS = 3
    CRASHED = 4
    MARK = 5


class G(IntEnum):
    """The cluster's common fields."""

    META = 0  # Metadata of the quorum's log; UNKNOWN (0): an empty log
    DRIVER = 1  # Driver of the active controller
    ZNODE = 2  # Znode, and STALE: copied, by an earlier quorum
    OWNER = 3  # of /controller
    EPOCH_LOW = 4
    EMPTIED = 5  # ZooKeeper's topics were deleted to match an empty image
    STRAY = 6  # a broker has set a log aside
    VIEWS = 7  # Views
    FINALIZING = 8  # the journal knows of it
    LOST = 9  # something that was acknowledged in hybrid is gone
    VERSIONS_LOW = 10  # of partition states, below the epochs that brokers know


class Driver(IntEnum):
    """`MigrationDriverState` of the active controller (`MD/metadata/migration/MigrationDriverState.java`).

    COPIED is the instant between the end of the copy's transaction and the write of its offset into `/migration`.
    """

    INACTIVE = 0
    WAITING = 1  # WAIT_FOR_CONTROLLER_QUORUM and WAIT_FOR_BROKERS
    BECOME = 2  # BECOME_CONTROLLER
    COPY = 3  # ZK_MIGRATION
    COPIED = 4
    SYNC = 5  # SYNC_KRAFT_TO_ZK
    TELL = 6  # KRAFT_CONTROLLER_TO_BROKER_COMM
    DUAL_WRITE = 7


STALE: Final = 4  # G.ZNODE: as COPIED to whoever looks at it
PLAIN: Final = (Mode.ZOOKEEPER, Mode.ZOOKEEPER, 0, 1, 0, 0, 0, 0, 0, 0)
ABSENT: Final = (0, 0, 0, 0, 0, 0)
FIRST: Final = (0, 0, 0, Owner.ZOOKEEPER, 0, 0, 0, 0, 0, 0, 0)


def in_zookeeper_mode(brokers: int, controllers: int) -> Cluster:
    """A whole cluster that knows nothing of KRaft."""
    return plain_ints(((PLAIN,) * brokers, (ABSENT,) * controllers, FIRST))


def plain_ints(cluster: Cluster) -> Cluster:
    """The same without enums: they hash and compare slower."""
    brokers, controllers, common = cluster
    return (
        tuple(tuple(map(int, entry)) for entry in brokers),
        tuple(tuple(map(int, entry)) for entry in controllers),
        tuple(map(int, common)),
    )


def folded(brokers: Iterable[Node], controllers: Iterable[Node], common: Node) -> Cluster:
    """The one cluster that stands for all that differ in the order of equal nodes only."""
    return tuple(sorted(brokers)), tuple(sorted(controllers)), common


def put(node: Node, *changes: tuple[int, int]) -> Node:
    """The node (or the common part) with some fields changed."""
    values = list(node)
    for name, value in changes:
        values[name] = int(value)
    return tuple(values)


def with_broker(cluster: Cluster, number: int, *changes: tuple[int, int]) -> Cluster:
    """One broker changed."""
    brokers = list(cluster[0])
    brokers[number] = put(brokers[number], *changes)
    return folded(brokers, cluster[1], cluster[2])


def with_controller(cluster: Cluster, number: int, *changes: tuple[int, int]) -> Cluster:
    """One controller changed."""
    controllers = list(cluster[1])
    controllers[number] = put(controllers[number], *changes)
    return folded(cluster[0], controllers, cluster[2])


def with_common(cluster: Cluster, *changes: tuple[int, int]) -> Cluster:
    """The common part changed."""
    return cluster[0], cluster[1], put(cluster[2], *changes)


def leader(cluster: Cluster) -> Node | None:
    """The active controller."""
    return next((entry for entry in cluster[1] if entry[C.LEADS]), None)


def standing(cluster: Cluster) -> Standing:
    """What an engine sees of it."""
    brokers, controllers, common = cluster
    seen = Metadata(common[G.META]) if leader(cluster) is not None else Metadata.UNKNOWN
    return Standing(
        brokers=tuple(map(_broker_at, brokers)),
        controllers=tuple(map(_controller_at, controllers)),
        metadata=seen,
        znode=Znode.COPIED if common[G.ZNODE] == STALE else Znode(common[G.ZNODE]),
        owner=Owner(common[G.OWNER]),
        views=Views(common[G.VIEWS]),
        epoch_low=bool(common[G.EPOCH_LOW]),
        versions_low=bool(common[G.VERSIONS_LOW]),
        finalizing=bool(common[G.FINALIZING]),
        old_log=_old_log(cluster),
    )


def _old_log(cluster: Cluster) -> bool:
    """What lies on the controllers' disks while none runs, against `/migration`."""
    brokers, controllers, common = cluster
    if any(entry[C.PROCESS] for entry in controllers) or not any(entry[C.FORMATTED] for entry in controllers):
        return False
    if common[G.ZNODE] in (Znode.COPIED, STALE):
        return False
    if common[G.META] in (Metadata.MIGRATION, Metadata.POST_MIGRATION):
        return True
    return common[G.ZNODE] == Znode.ABSENT and any(entry[B.REG] for entry in brokers)


@cache
def _broker_at(node: Node) -> BrokerAt:
    return BrokerAt(
        file=Mode(node[B.FILE]),
        process=Mode(node[B.PROCESS]),
        registered=Registered(node[B.REG]),
        whole=bool(node[B.WHOLE]),
        verified=bool(node[B.DIRS]),
        healthy=not node[B.DISK],
        ours=not node[B.HAND],
        believes_kraft=bool(node[B.BELIEVES]) and node[B.PROCESS] != Mode.KRAFT,
        session_left=node[B.CRASHED] == 1,
    )


@cache
def _controller_at(node: Node) -> ControllerAt:
    file, process, formatted, leads, crashed = node[: C.MARK]
    return ControllerAt(Flag(file), Flag(process), bool(formatted), leads=bool(leads), returns=bool(crashed))


def told(cluster: Cluster) -> str:
    """One line for a person."""
    brokers, controllers, common = cluster
    return (
        f"brokers {_run(map(_broker, brokers))}; controllers {_run(map(_controller, controllers))}; {_common(common)}"
    )


def _run(parts: Iterable[str]) -> str:
    return " ".join(parts)


def _broker(node: Node) -> str:
    process = "-" if not node[B.PROCESS] else "zmk"[node[B.PROCESS] - 1]
    text = "zmk"[node[B.FILE] - 1] + process
    text += "" if node[B.WHOLE] else "(not whole)"
    return text + "+dirs" * node[B.DIRS] + "!disk" * bool(node[B.DISK]) + "!file" * node[B.HAND]


def _controller(node: Node) -> str:
    text = ("none", "flag", "NOFLAG")[node[C.FILE]] + "/" + ("-", "flag", "NOFLAG")[node[C.PROCESS]]
    return text + "*" * node[C.LEADS]


def _common(common: Node) -> str:
    znode = ("absent", "waiting", "copied", "null", "stale")[common[G.ZNODE]]
    parts = [f"log {Metadata(common[G.META]).name}", f"driver {Driver(common[G.DRIVER]).name}", f"/migration {znode}"]
    parts.append(f"/controller {Owner(common[G.OWNER]).name}")
    if common[G.VIEWS]:
        parts.append(f"views {Views(common[G.VIEWS]).name}")
    words = {
        G.EPOCH_LOW: "epoch low",
        G.VERSIONS_LOW: "versions low",
        G.EMPTIED: "ZOOKEEPER EMPTIED",
        G.STRAY: "STRAY LOGS",
        G.LOST: "CONTENT LOST",
    }
    parts.extend(text for field, text in words.items() if common[field])
    return ", ".join(parts)
