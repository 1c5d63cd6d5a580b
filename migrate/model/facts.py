"""From the views to the ledger's facts: one `ReplicaFacts` a replica, in plain Python, without Spark.

Rows are seeded from ZooKeeper's replica lists, after finalize from the metadata's own.  After the copy, replicas that
the metadata alone names have a row too: KIP-858 promises something about *every* replica of a broker, and one that
ZooKeeper does not list is still the broker's.  `migrate.diff.ledger` joins the same in Spark.  Where the
cluster stands in the copy is decided here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.columns import UNREADABLE_TOPIC_ID, PartitionColumns, unswept
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaFacts, facts_of, row
from migrate.model.new_directories import alone
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import BrokerDisks, KraftView, NoZnode, ZookeeperView, whole_or_unknown
from migrate.model.words import as_utf8
from migrate.model.world import World

DisksByBroker = Mapping[NodeId, BrokerDisks | Unknown]


@dataclass(frozen=True, slots=True)
class Seed:
    """A replica that has a row: who names it, and the directory the metadata gives it ("" where it names none)."""

    topic: str
    topic_id: str
    partition: int
    broker: int
    in_zookeeper: bool
    in_metadata: str | None  # None: the metadata has no such replica, or no say yet


@dataclass(slots=True)
class Folders:
    """What one broker's directories hold of one partition name."""

    current: list[tuple[str, str]] = field(default_factory=list)  # (topic id, directory id), healthy directories
    future: bool = False
    unreadable: bool = False


NO_FOLDER: Final = Folders()


@dataclass(frozen=True, slots=True)
class OfBroker:
    """What the views say of a broker: folders by (topic, partition), its registration, why its rows are unknown."""

    folders: Mapping[tuple[str, int], Folders]
    registered: frozenset[str] | None
    unknown: str


def gather(
    zookeeper: ZookeeperView | Unknown,
    kraft: KraftView | Unknown,
    disks: DisksByBroker | Unknown,
    *,
    after_copy: bool,
    finalized: bool,
) -> Iterator[ReplicaFacts]:
    """The facts of every replica, in no order.

    Where the view that seeds the rows is unknown they are seeded from what there is, all of them unknown: such rows
    show a reader what is at stake, and `unknown_views` says that they may be too few.
    """
    missing = "; ".join(unknown_views(zookeeper, kraft, disks, after_copy=after_copy, finalized=finalized))
    metadata_speaks = after_copy or finalized
    brokers: dict[int, OfBroker] = {}  # what is the same for all of a broker's rows, which are many
    for seed in _seeds(zookeeper, kraft, after_copy=metadata_speaks, finalized=finalized):
        broker = brokers.get(seed.broker)
        if broker is None:
            broker = brokers[seed.broker] = _of_broker(seed.broker, kraft, disks)
        here = broker.folders.get((seed.topic, seed.partition), NO_FOLDER)
        yield facts_of(
            seed.topic,
            seed.topic_id,
            seed.partition,
            seed.broker,
            seed.in_zookeeper,
            seed.in_metadata,
            here.current,
            here.future,
            here.unreadable,
            broker.registered,
            missing or broker.unknown,
            metadata_speaks,
            finalized,
        )


def build(
    zookeeper: ZookeeperView | Unknown,
    kraft: KraftView | Unknown,
    disks: DisksByBroker | Unknown,
    *,
    after_copy: bool,
    finalized: bool,
) -> Ledger:
    """The ledger by the pure rule, rows in the order of topic, partition, broker.

    A ZooKeeper view with malformed parts is no view: a topic that it lacks may well exist.
    """
    if not isinstance(zookeeper, Unknown):
        zookeeper = whole_or_unknown(zookeeper)
    facts = gather(zookeeper, kraft, disks, after_copy=after_copy, finalized=finalized)
    return Ledger(
        rows=tuple(sorted(map(row, facts), key=row_order)),
        offset=standing_offset(kraft, metadata_speaks=after_copy or finalized),
        engine="pure",
        unknown=unknown_views(zookeeper, kraft, disks, after_copy=after_copy, finalized=finalized),
    )


def row_order(entry: LedgerRow) -> tuple[str, str, int, int]:
    """The one order of rows, in both engines."""
    return entry.topic, entry.topic_id, entry.partition, entry.broker


def standing_offset(kraft: KraftView | Unknown, *, metadata_speaks: bool) -> int:
    """The offset at which a ledger stands: -1 before the copy, or without metadata."""
    return kraft.offset if metadata_speaks and not isinstance(kraft, Unknown) else -1


def unknown_views(
    zookeeper: ZookeeperView | Unknown,
    kraft: KraftView | Unknown,
    disks: DisksByBroker | Unknown,
    *,
    after_copy: bool,
    finalized: bool,
) -> tuple[str, ...]:
    """The views that every row needs and that are unknown, each as `view: reason`.

    Before the copy a row needs ZooKeeper and the disks; after it the metadata too; after finalize no ZooKeeper.
    """
    found = []
    if isinstance(zookeeper, Unknown) and not finalized:
        found.append(f"zookeeper: {zookeeper.reason}")
    if isinstance(kraft, Unknown) and (after_copy or finalized):
        found.append(f"kraft: {kraft.reason}")
    if isinstance(disks, Unknown):
        found.append(f"disks: {disks.reason}")
    return tuple(map(as_utf8, found))


def _of_broker(broker: int, kraft: KraftView | Unknown, disks: DisksByBroker | Unknown) -> OfBroker:
    found = disks if isinstance(disks, Unknown) else disks.get(NodeId(broker), Unknown(""))
    folders = {} if isinstance(found, Unknown) else _folders(found)
    return OfBroker(folders, registered_directories(kraft, broker), unseen(broker, disks))


def unseen(broker: int, disks: DisksByBroker | Unknown) -> str:
    """Why the broker's disks are unknown, "" if they are known."""
    if isinstance(disks, Unknown):
        return as_utf8(f"disks: {disks.reason}")
    seen = disks.get(NodeId(broker))
    if seen is None:
        return f"disks: broker {broker} was not looked at"
    reason = seen.reason if isinstance(seen, Unknown) else seen.unproven
    return as_utf8(f"disks: {reason}") if reason else ""


def _folders(disks: BrokerDisks) -> dict[tuple[str, int], Folders]:
    """Replica folders of a broker by (topic, partition).  A broken directory's copies are no copies."""
    found: dict[tuple[str, int], Folders] = {}
    for directory in disks.directories:
        replicas = directory.replicas
        for topic, partition, topic_id, kind in zip(
            replicas.topic, replicas.partition, replicas.topic_id, replicas.kind, strict=True
        ):
            if kind not in ("current", "future"):
                continue
            here = found.setdefault((topic, partition), Folders())
            if kind == "future":
                here.future = True
            elif directory.healthy and topic_id == UNREADABLE_TOPIC_ID:
                here.unreadable = True
            elif directory.healthy:
                here.current.append((topic_id, directory.id or ""))
    return found


def registered_directories(kraft: KraftView | Unknown, broker: int) -> frozenset[str] | None:
    """LogDirs of the registration; None without one, and for one without LogDirs (below metadata.version 3.7-IV2)."""
    if isinstance(kraft, Unknown):
        return None
    registration = kraft.brokers.get(NodeId(broker))
    return frozenset(registration.log_dirs) or None if registration is not None else None


def _seeds(
    zookeeper: ZookeeperView | Unknown, kraft: KraftView | Unknown, *, after_copy: bool, finalized: bool
) -> Iterator[Seed]:
    """Every replica that has a row, once.  ZooKeeper's order comes first, then what the metadata alone names."""
    asked = after_copy or isinstance(zookeeper, Unknown)
    in_metadata = kraft.partitions if asked and not isinstance(kraft, Unknown) else PartitionColumns()
    directories = _directories(in_metadata)
    seen: set[tuple[str, int, int]] = set()
    if not isinstance(zookeeper, Unknown) and not finalized:
        for topic, topic_id, partition, broker in _replicas(zookeeper.partitions):
            key = (topic_id, partition, broker)
            seen.add(key)
            yield Seed(topic, topic_id, partition, broker, in_zookeeper=True, in_metadata=directories.get(key))
    for topic, topic_id, partition, broker in _replicas(in_metadata):
        key = (topic_id, partition, broker)
        if key not in seen:
            yield Seed(topic, topic_id, partition, broker, in_zookeeper=False, in_metadata=directories[key])


def _replicas(partitions: PartitionColumns) -> Iterator[tuple[str, str, int, int]]:
    for topic, topic_id, partition, replicas in zip(
        partitions.topic, partitions.topic_id, partitions.partition, partitions.replicas, strict=True
    ):
        for broker in replicas:
            yield topic, topic_id, partition, broker


def _directories(partitions: PartitionColumns) -> dict[tuple[str, int, int], str]:
    """(topic id, partition, broker) -> the directory that the metadata names, "" where its list is too short."""
    rows = enumerate(zip(partitions.topic_id, partitions.partition, partitions.replicas, strict=True))
    return {
        (topic_id, partition, broker): partitions.directory_of(index, place)
        for index, (topic_id, partition, replicas) in rows
        for place, broker in enumerate(replicas)
    }


def migration_state(world: World) -> tuple[bool, bool]:
    return copy_state(world.zookeeper, world.kraft, world.inventory.zookeeper)


def copy_state(zookeeper: ZookeeperView | Unknown, kraft: KraftView | Unknown, connect: str) -> tuple[bool, bool]:
    """(after the copy, finalized), as the committed metadata says; `connect` is "" for a cluster without ZooKeeper.

    Where the metadata cannot be read, only a ZooKeeper without /migration proves that nothing was copied; everything
    else counts as after the copy, so that rows which need the metadata become UNKNOWN and not MIGRATING.
    """
    if isinstance(kraft, Unknown):
        untouched = not isinstance(zookeeper, Unknown) and isinstance(zookeeper.migration, NoZnode)
        return not untouched, False
    state = kraft.migration_state
    finalized = alone(kraft, connect)
    return finalized or state is ZkMigrationState.MIGRATION, finalized


def pure_ledger(world: World) -> Ledger | Unknown:
    after_copy, finalized = migration_state(world)
    if isinstance(world.zookeeper, Unknown) and not finalized:
        return Unknown(f"the ledger is seeded from ZooKeeper: {world.zookeeper.reason}")
    with unswept():
        return build(world.zookeeper, world.kraft, world.disks, after_copy=after_copy, finalized=finalized)
