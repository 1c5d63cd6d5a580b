"""What Kafka 3.9 does by itself: every move that may come next in a cluster, each with the rule's source.

`MD/` is `metadata/src/main/java/org/apache/kafka`, `KS/` is `core/src/main/scala/kafka`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.oracles.machine import Flag, Metadata, Mode, Owner, Registered, Views, Znode
from tests.testing.explorer.cluster import (
    STALE,
    B,
    C,
    Cluster,
    Driver,
    G,
    Node,
    folded,
    leader,
    put,
    with_broker,
    with_common,
    with_controller,
)

Step = tuple[str, Cluster]
# restarted, or told by a new active controller: the log holds a registration of it already
JOINS_AGAIN: Final = "a broker in migration mode is whole again"


def moves(cluster: Cluster) -> Iterator[Step]:
    """Every move of the cluster, its people's restarts of crashed processes included; a move always changes it."""
    yield from _elections(cluster)
    yield from _driver(cluster)
    yield from _brokers(cluster)
    yield from _zookeeper_controller(cluster)
    yield from _content(cluster)
    yield from _supervisor(cluster)


# -- controllers -----------------------------------------------------------------------------------------------------
def majority(cluster: Cluster) -> bool:
    """Do enough formatted controllers run?"""
    alive = sum(1 for entry in cluster[1] if entry[C.PROCESS] and entry[C.FORMATTED])
    return 2 * alive > len(cluster[1])


def _elections(cluster: Cluster) -> Iterator[Step]:
    """`KafkaRaftClient`: any live voter may win.  What it writes: `MD/controller/ActivationRecordsGenerator`."""
    if leader(cluster) is not None or not majority(cluster):
        return
    for node in sorted({entry for entry in cluster[1] if entry[C.PROCESS]}):
        yield _elected(cluster, node)


def _elected(cluster: Cluster, node: Node) -> Step:
    number, common = cluster[1].index(node), cluster[2]
    flag, meta = node[C.PROCESS] == Flag.ON, common[G.META]
    if flag and meta == Metadata.NONE:
        # "Should not have ZK migrations enabled on a cluster that was created in KRaft mode."
        return "a flagged controller is elected over a log without migration, and dies", with_controller(
            cluster, number, (C.PROCESS, 0), (C.CRASHED, 1)
        )
    changes: list[tuple[int, int]] = []
    if meta == Metadata.UNKNOWN:  # an empty log: bootstrap records
        changes.append((G.META, Metadata.PRE_MIGRATION if flag else Metadata.NONE))
    if meta == Metadata.MIGRATION and not flag:
        changes.append((G.META, Metadata.POST_MIGRATION))
    if flag and meta in (Metadata.UNKNOWN, Metadata.PRE_MIGRATION, Metadata.MIGRATION):
        # KRaftMigrationDriver.recoverMigrationStateFromZK makes the znode; WAIT_FOR_CONTROLLER_QUORUM in MIGRATION
        # asks whether it is done: "KRaft controller indicates an active migration, but the ZK state does not."
        stuck = meta == Metadata.MIGRATION and common[G.ZNODE] not in (Znode.COPIED, STALE)
        changes.append((G.DRIVER, Driver.INACTIVE if stuck else Driver.WAITING))
        if common[G.ZNODE] == Znode.ABSENT:
            changes.append((G.ZNODE, Znode.WAITING))
        if common[G.ZNODE] == Znode.NULL:  # KAFKA-19480: it hangs parsing it
            changes.append((G.DRIVER, Driver.INACTIVE))
    text = "a controller with the flag is elected" if flag else "a controller WITHOUT the flag is elected"
    return text, with_common(with_controller(cluster, number, (C.LEADS, 1)), *changes)


def _driver(cluster: Cluster) -> Iterator[Step]:
    """`MD/metadata/migration/KRaftMigrationDriver`."""
    brokers, controllers, common = cluster
    meta, znode = common[G.META], common[G.ZNODE]
    match common[G.DRIVER]:
        case Driver.WAITING if meta == Metadata.MIGRATION:
            yield from _claims(cluster)
        case Driver.WAITING:
            # isZkMigrationReady of all voters; areZkBrokersReadyForMigration: every broker registered, fenced or not
            voters = all(entry[C.PROCESS] == Flag.ON for entry in controllers)
            if voters and all(entry[B.REG] == Registered.MIGRATING for entry in brokers):
                yield from _claims(cluster)
        case Driver.BECOME:  # BecomeZkControllerEvent: initialZkMigrationComplete() is all that it asks
            done = znode in (Znode.COPIED, STALE)
            text = "the driver skips the copy: /migration says that it was made" if done else "the copy begins"
            yield text, with_common(cluster, (G.DRIVER, Driver.SYNC if done else Driver.COPY))
        case Driver.COPY:
            yield (
                "the copy's transaction is committed",
                with_common(cluster, (G.DRIVER, Driver.COPIED), (G.META, Metadata.MIGRATION)),
            )
        case Driver.COPIED:
            yield (
                "/migration gets the copy's offset",
                with_common(cluster, (G.DRIVER, Driver.SYNC), (G.ZNODE, Znode.COPIED)),
            )
        case Driver.SYNC:
            yield _sync(cluster)
        case Driver.TELL:
            yield _tell(cluster)
        case _:
            return


def _claims(cluster: Cluster) -> Iterator[Step]:
    """`KS/zk/KafkaZkClient.tryRegisterKRaftControllerAsActiveController`.

    `/controller_epoch` and KRaft's epoch are two counters, and either may be the larger: the worse one is taken.
    """
    again = cluster[2][G.OWNER] == Owner.KRAFT
    text = "the new active controller takes /controller over" if again else "the active controller takes /controller"
    yield text, with_common(cluster, (G.DRIVER, Driver.BECOME), (G.OWNER, Owner.KRAFT), (G.EPOCH_LOW, 1))


def _sync(cluster: Cluster) -> Step:
    """SyncKRaftMetadataEvent: ZooKeeper is made what the image is."""
    common = cluster[2]
    if common[G.META] != Metadata.MIGRATION:
        return "ZooKeeper is emptied to match an empty image", with_common(
            cluster, (G.DRIVER, Driver.TELL), (G.EMPTIED, 1)
        )
    return "ZooKeeper is reconciled with the metadata", with_common(
        cluster, (G.DRIVER, Driver.TELL), (G.VIEWS, Views.EQUAL)
    )


def _tell(cluster: Cluster) -> Step:
    """SendRPCsToBrokersEvent: full LeaderAndIsr; logs that it does not list become strays (`ReplicaManager`).

    Partition epochs count each change, a state's version each write of several: the worse is taken.
    """
    brokers, controllers, common = cluster
    told = [put(entry, (B.BELIEVES, 1)) if entry[B.PROCESS] == Mode.MIGRATION else entry for entry in brokers]
    stray = common[G.EMPTIED] and any(entry[B.PROCESS] == Mode.MIGRATION for entry in brokers)
    strays = max(common[G.STRAY], int(stray))
    after = put(common, (G.DRIVER, Driver.DUAL_WRITE), (G.STRAY, strays), (G.VERSIONS_LOW, 1))
    return "brokers are told of the KRaft controller; dual write begins", folded(told, controllers, after)


# -- brokers -------------------------------------------------------------------------------------------------------
def each(nodes: tuple[Node, ...]) -> Iterator[tuple[int, Node]]:
    """Equal nodes once."""
    for number, node in enumerate(nodes):
        if number == 0 or node != nodes[number - 1]:
            yield number, node


def _brokers(cluster: Cluster) -> Iterator[Step]:
    for number, node in each(cluster[0]):
        if node[B.CRASHED] == 1:
            yield "a dead broker's session ends", with_broker(cluster, number, (B.CRASHED, 2))
        yield from _joins(cluster, number, node)
        in_zookeeper = node[B.PROCESS] in (Mode.ZOOKEEPER, Mode.MIGRATION)
        if node[B.BELIEVES] and in_zookeeper and cluster[2][G.OWNER] == Owner.ZOOKEEPER:
            yield "a broker learns who holds /controller", with_broker(cluster, number, (B.BELIEVES, 0))
        if _reports(cluster, node):
            yield "a KRaft broker reports its directories", with_broker(cluster, number, (B.DIRS, 1))


def _reports(cluster: Cluster, node: Node) -> bool:
    """`server/.../AssignmentsManager`: after the first publish, for logs that are there."""
    return bool(
        node[B.PROCESS] == Mode.KRAFT
        and node[B.WHOLE]
        and not node[B.DIRS]
        and not node[B.DISK]
        and leader(cluster) is not None
    )


def _joins(cluster: Cluster, number: int, node: Node) -> Iterator[Step]:
    """`MD/controller/ClusterControlManager.registerBroker`, `KS/server/BrokerLifecycleManager`, and ISRs that fill."""
    common, active = cluster[2], leader(cluster)
    if node[B.DISK]:
        return  # its replicas there are in no ISR until the disk is replaced
    flagged = active is not None and active[C.PROCESS] == Flag.ON
    owner = common[G.OWNER]
    match node[B.PROCESS]:
        case Mode.ZOOKEEPER:
            if owner == Owner.ZOOKEEPER and not node[B.WHOLE]:
                yield "a ZooKeeper-mode broker is whole", with_broker(cluster, number, (B.WHOLE, 1))
        case Mode.MIGRATION:
            registers = flagged and common[G.META] != Metadata.UNKNOWN  # ZK registrations need the leader's flag
            known = node[B.REG] == Registered.MIGRATING
            if registers and not (known and node[B.WHOLE]):
                told = owner == Owner.ZOOKEEPER or common[G.DRIVER] == Driver.DUAL_WRITE
                changes = [(B.REG, int(Registered.MIGRATING)), *([(B.WHOLE, 1)] if told else [])]
                after = with_broker(cluster, number, *changes)
                if after != cluster:
                    yield JOINS_AGAIN if known else "a broker registers as migrating", after
            elif owner == Owner.ZOOKEEPER and active is None and not node[B.WHOLE]:
                yield (
                    "a broker in migration mode is whole, without a KRaft controller",
                    with_broker(cluster, number, (B.WHOLE, 1)),
                )
        case Mode.KRAFT:
            if active is None or common[G.META] in (Metadata.UNKNOWN, Metadata.PRE_MIGRATION) or node[B.WHOLE]:
                return  # "KRaft brokers cannot register in PRE_MIGRATION"
            joined = with_broker(cluster, number, (B.REG, Registered.KRAFT), (B.WHOLE, 1), (B.BELIEVES, 1))
            if common[G.EMPTIED]:  # isStrayKraftReplica: the image does not list its logs
                yield "a KRaft broker sets its logs aside", with_common(joined, (G.STRAY, 1))
            else:
                yield "a broker registers in KRaft mode and unfences", joined
        case _:
            return


def _zookeeper_controller(cluster: Cluster) -> Iterator[Step]:
    """`KS/controller/KafkaController`: ZooKeeper-mode brokers watch `/controller`; one takes it when it is free."""
    common = cluster[2]
    if common[G.OWNER] != Owner.NOBODY:
        return
    if any(entry[B.PROCESS] in (Mode.ZOOKEEPER, Mode.MIGRATION) for entry in cluster[0]):
        yield "a ZooKeeper-mode broker takes /controller", with_common(cluster, (G.OWNER, Owner.ZOOKEEPER))


# -- clients, and the people around --------------------------------------------------------------------------------
def _content(cluster: Cluster) -> Iterator[Step]:
    """Topics are made while dual write runs; KRaft has them first (`ZkMigrationClient`, one batch later).

    Their replicas are UNASSIGNED for as long (`ClusterControlManager.defaultDir`): nothing is VERIFIED until then.
    """
    common = cluster[2]
    if common[G.DRIVER] != Driver.DUAL_WRITE or leader(cluster) is None:
        return
    if common[G.VIEWS] == Views.EQUAL and any(entry[B.PROCESS] for entry in cluster[0]):
        behind = with_common(cluster, (G.VIEWS, Views.BEHIND))
        yield "a client makes a topic; ZooKeeper does not have it yet", behind
    if common[G.VIEWS] == Views.BEHIND:
        yield "dual write catches up", with_common(cluster, (G.VIEWS, Views.EQUAL))


def _supervisor(cluster: Cluster) -> Iterator[Step]:
    """Crashed processes are started again by whoever owns them; what was stopped on purpose is not.

    A failed disk is replaced, a file that another hand changed is put back: faults are few, so both end.  A difference
    is repaired as its refusal says: the active controller is restarted, and its successor has written ZooKeeper anew.
    """
    common = cluster[2]
    if common[G.VIEWS] == Views.DIFFER and common[G.DRIVER] == Driver.DUAL_WRITE and leader(cluster) is not None:
        yield "a person repairs the difference, as the refusal says", with_common(cluster, (G.VIEWS, Views.EQUAL))
    for number, node in each(cluster[0]):
        if node[B.DISK]:
            yield "a failed disk is replaced", with_broker(cluster, number, (B.DISK, 0), (B.DIRS, 0))
        if node[B.HAND]:
            yield "a changed file is put back", with_broker(cluster, number, (B.HAND, 0))
        if node[B.CRASHED] == 2 and not node[B.PROCESS]:
            believes = int(node[B.FILE] == Mode.KRAFT or cluster[2][G.OWNER] == Owner.KRAFT)
            yield (
                "a crashed broker is started again",
                with_broker(cluster, number, (B.PROCESS, node[B.FILE]), (B.CRASHED, 0), (B.BELIEVES, believes)),
            )
    for number, node in each(cluster[1]):
        if node[C.CRASHED] and not node[C.PROCESS]:
            yield (
                "a crashed controller is started again",
                with_controller(cluster, number, (C.PROCESS, node[C.FILE]), (C.CRASHED, 0)),
            )


def without_controller(cluster: Cluster, number: int, *changes: tuple[int, int]) -> Cluster:
    """A controller's process ends (and more of it changes); without a majority nobody leads."""
    led = cluster[1][number][C.LEADS]
    after = with_controller(cluster, number, (C.PROCESS, 0), (C.LEADS, 0), (C.CRASHED, 0), *changes)
    if led:
        return with_common(after, (G.DRIVER, Driver.INACTIVE))
    if leader(after) is not None and not majority(after):
        return resigned(after)
    return after


def resigned(cluster: Cluster) -> Cluster:
    """The active controller steps down, and no process ends.

    `KafkaRaftClient`: it resigns, too few voters fetch from it, or another voter begins a higher epoch.
    """
    stepped = [put(entry, (C.LEADS, 0)) for entry in cluster[1]]
    return folded(cluster[0], stepped, put(cluster[2], (G.DRIVER, Driver.INACTIVE)))


def without_broker(cluster: Cluster, number: int, *changes: tuple[int, int]) -> Cluster:
    """A broker's process ends (and more of it changes); `/controller` of a ZooKeeper-mode one passes to another."""
    after = with_broker(cluster, number, (B.PROCESS, 0), (B.WHOLE, 0), (B.BELIEVES, 0), (B.CRASHED, 0), *changes)
    left = any(entry[B.PROCESS] in (Mode.ZOOKEEPER, Mode.MIGRATION) for entry in after[0])
    if after[2][G.OWNER] == Owner.ZOOKEEPER and not left:
        return with_common(after, (G.OWNER, Owner.NOBODY))
    return after
