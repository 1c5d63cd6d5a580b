"""Every broker's log directories as rows: what `directories show`, the assessment and their picture tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from migrate.model.inventory import BrokerNode
from migrate.model.ledger import LedgerRow, count_states
from migrate.model.loader import Assigned, Foretold, all_assigned, foretell
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import Directory, KraftView, MetaBroken, MetaProperties
from migrate.model.world import World

KINDS = ("current", "future", "deleted", "stray")


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """One directory of a broker; `path` "?" stands for a broker that was not seen, `health` then says why.

    `meta` is V0, V1, `missing` or `broken: ...`.  `registered` is yes, no or unknown.  `replicas` and `bytes` are of
    current folders and of all folders.  `log_dir` is False for a metadata.log.dir outside of log.dirs.
    `would_be_stray` counts folders that a KRaft start would set aside; None where that is not known.
    """

    broker: int
    path: str
    health: str
    mount: str = ""
    filesystem: str = ""
    free_bytes: int = -1
    meta: str = "?"
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str = "?"
    registered: str = "?"
    replicas: int = 0
    bytes: int = 0
    folders: Mapping[str, int] = field(default_factory=dict)
    metadata_log: bool = False
    log_dir: bool = True
    would_be_stray: int | None = None
    stray_bytes: int | None = None
    oddities: tuple[str, ...] = ()
    ledger: Mapping[str, int] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Is it known to be?"""
        return self.health == "healthy"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "oddities": list(self.oddities)}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What all brokers' rows need, computed once: the ledger by broker and directory, and each broker's assignments."""

    world: World
    states: Mapping[tuple[int, str], Mapping[str, int]]
    assigned: Mapping[int, Assigned] | None  # None: nobody says what is assigned


def directory_rows(world: World) -> tuple[DirectoryRow, ...]:
    """Brokers in the inventory's order, directories in that of log.dirs; nobody is left out."""
    seen = _Seen(world, _states(world), _assigned(world))
    return tuple(row for node in world.inventory.brokers for row in _of_broker(node, seen))


def _states(world: World) -> dict[tuple[int, str], dict[str, int]]:
    places: dict[tuple[int, str], list[LedgerRow]] = {}
    for row in () if isinstance(world.ledger, Unknown) else world.ledger.rows:
        places.setdefault((row.broker, row.on_disk), []).append(row)
    return {place: count_states(rows) for place, rows in places.items()}


def _assigned(world: World) -> dict[int, Assigned] | None:
    """The metadata's assignments where no migration is under way in it (any more), else ZooKeeper's."""
    zookeeper, kraft = world.zookeeper, world.kraft
    copied = not isinstance(kraft, Unknown) and len(kraft.partitions) > 0
    if not isinstance(kraft, Unknown) and copied and (isinstance(zookeeper, Unknown) or _alone(kraft)):
        return all_assigned(kraft.partitions)
    return None if isinstance(zookeeper, Unknown) else all_assigned(zookeeper.partitions)


def _alone(kraft: KraftView) -> bool:
    """Does a tree in ZooKeeper, if there is one, no longer follow the metadata?"""
    return kraft.migration_state in (ZkMigrationState.NONE, ZkMigrationState.POST_MIGRATION)


def _of_broker(node: BrokerNode, seen: _Seen) -> Iterator[DirectoryRow]:
    disks = seen.world.disks
    found = disks if isinstance(disks, Unknown) else disks.get(node.id, Unknown("not looked at"))
    if isinstance(found, Unknown):
        yield DirectoryRow(int(node.id), "?", f"unknown: {found.reason}")
        return
    foretold = None
    if seen.assigned is not None:
        foretold = foretell(found, seen.assigned.get(int(node.id), Assigned({}, {})))
    for entry in found.directories:
        yield _row(node, entry, seen, foretold)
    if found.metadata_directory is not None:
        yield _row(node, found.metadata_directory, seen, foretold, log_dir=False)


def _row(
    node: BrokerNode, entry: Directory, seen: _Seen, foretold: Foretold | None, *, log_dir: bool = True
) -> DirectoryRow:
    known = entry.meta if isinstance(entry.meta, MetaProperties) else None
    identity = str(entry.id or "-")
    strays = None if foretold is None else [fate for fate in foretold.strays if fate.directory == entry.path]
    return DirectoryRow(
        broker=int(node.id),
        path=entry.path,
        health=entry.health,
        mount=entry.mount,
        filesystem=entry.filesystem,
        free_bytes=entry.free_bytes,
        meta=_meta(entry),
        cluster_id=known.cluster_id if known else None,
        node_id=known.node_id if known else None,
        directory_id=identity,
        registered=_registered(node, entry, seen.world) if log_dir else "-",
        replicas=sum(kind == "current" for kind in entry.replicas.kind),
        bytes=sum(entry.replicas.size),
        folders={kind: entry.replicas.kind.count(kind) for kind in KINDS if kind in entry.replicas.kind},
        metadata_log=entry.holds_metadata_log,
        log_dir=log_dir,
        would_be_stray=None if strays is None else len(strays),
        stray_bytes=None if strays is None else sum(fate.size for fate in strays),
        oddities=entry.oddities,
        ledger=dict(seen.states.get((int(node.id), identity), {})),
    )


def _meta(entry: Directory) -> str:
    if isinstance(entry.meta, MetaProperties):
        return f"V{entry.meta.version}"
    return f"broken: {entry.meta.reason}" if isinstance(entry.meta, MetaBroken) else "missing"


def _registered(node: BrokerNode, entry: Directory, world: World) -> str:
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
    if registration is None:
        return "unknown"
    return "yes" if entry.id in registration.log_dirs else "no"
