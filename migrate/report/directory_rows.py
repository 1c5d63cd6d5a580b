"""Every broker's log directories as rows: what `directories show`, the assessment and their picture tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from migrate.model.inventory import BrokerNode
from migrate.model.ledger import count_states
from migrate.model.loader import Foretold, assigned_to, foretell
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory, MetaBroken, MetaProperties
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


def directory_rows(world: World) -> tuple[DirectoryRow, ...]:
    """Brokers in the inventory's order, directories in that of log.dirs; nobody is left out."""
    return tuple(row for node in world.inventory.brokers for row in _of_broker(node, world))


def _of_broker(node: BrokerNode, world: World) -> Iterator[DirectoryRow]:
    disks = world.disks if isinstance(world.disks, Unknown) else world.disks.get(node.id, Unknown("not looked at"))
    if isinstance(disks, Unknown):
        yield DirectoryRow(int(node.id), "?", f"unknown: {disks.reason}")
        return
    foretold = _foretold(disks, world)
    for entry in disks.directories:
        yield _row(node, entry, world, foretold)
    if disks.metadata_directory is not None:
        yield _row(node, disks.metadata_directory, world, foretold, log_dir=False)


def _foretold(disks: BrokerDisks, world: World) -> Foretold | None:
    """By the metadata's assignments where they are the truth already, else by ZooKeeper's."""
    zookeeper, kraft = world.zookeeper, world.kraft
    if not isinstance(zookeeper, Unknown):
        return foretell(disks, assigned_to(int(disks.broker), zookeeper.partitions))
    if not isinstance(kraft, Unknown) and len(kraft.partitions):
        return foretell(disks, assigned_to(int(disks.broker), kraft.partitions))
    return None


def _row(
    node: BrokerNode, entry: Directory, world: World, foretold: Foretold | None, *, log_dir: bool = True
) -> DirectoryRow:
    meta = entry.meta
    known = meta if isinstance(meta, MetaProperties) else None
    identity = str(entry.id or "-")
    rows = () if isinstance(world.ledger, Unknown) else world.ledger.of(node.id)
    strays = None if foretold is None else [fate for fate in foretold.strays if fate.directory == entry.path]
    return DirectoryRow(
        broker=int(node.id),
        path=entry.path,
        health=entry.health,
        mount=entry.mount,
        filesystem=entry.filesystem,
        free_bytes=entry.free_bytes,
        meta=f"V{meta.version}"
        if isinstance(meta, MetaProperties)
        else f"broken: {meta.reason}"
        if isinstance(meta, MetaBroken)
        else "missing",
        cluster_id=known.cluster_id if known else None,
        node_id=known.node_id if known else None,
        directory_id=identity,
        registered=_registered(node, entry, world) if log_dir else "-",
        replicas=sum(kind == "current" for kind in entry.replicas.kind),
        bytes=sum(entry.replicas.size),
        folders={kind: entry.replicas.kind.count(kind) for kind in KINDS if kind in entry.replicas.kind},
        metadata_log=entry.holds_metadata_log,
        log_dir=log_dir,
        would_be_stray=None if strays is None else len(strays),
        stray_bytes=None if strays is None else sum(fate.size for fate in strays),
        oddities=entry.oddities,
        ledger=count_states(row for row in rows if row.on_disk == identity),
    )


def _registered(node: BrokerNode, entry: Directory, world: World) -> str:
    registration = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node.id)
    if registration is None:
        return "unknown"
    return "yes" if entry.id in registration.log_dirs else "no"
