"""A KRaft cluster in memory, without ZooKeeper: three brokers with one log directory each, and empty disks beside them.

Its rules are Kafka's: a KRaft broker does not start on a directory without meta.properties, registers the ids that it
finds, and reports its replicas' directories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from migrate.hosts.properties import log_dirs, parse
from migrate.model.columns import PartitionColumns, ReplicaColumns
from migrate.model.facts import pure_ledger
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.new_directories import META, NewDirectory
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    Directory,
    KraftView,
    LiveView,
    LogDirAnswer,
    MetaMissing,
    MetaProperties,
)
from migrate.model.world import Need, World
from migrate.plan import directories
from migrate.steps.facts import sha256
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, uuid
from tests.testing.simulated import SimulatedCluster, world_at
from tests.testing.worlds import BROKERS, CONTROLLERS, kraft, live

NEW = {node: (f"/new/b{node}/e0", f"/new/b{node}/e1") for node in BROKERS}


def inventory() -> Inventory:
    """The lab's, without ZooKeeper."""
    return replace(worlds.inventory(), zookeeper="")


def playbook(new: Mapping[NodeId, tuple[str, ...]] = NEW) -> Playbook:
    """Two more directories a broker."""
    return replace(worlds.playbook(), stages=(Stage.DIRECTORIES,), broker_policies={}, new_directories=dict(new))


@dataclass(slots=True)
class KraftCluster(SimulatedCluster):
    """State beside the base's: what lies in directories that are not the first, and which ids are registered."""

    wanted: Mapping[NodeId, tuple[str, ...]] = field(default_factory=lambda: dict(NEW))
    registered_ids: dict[int, frozenset[str]] = field(default_factory=dict)
    planted: dict[tuple[int, str], ReplicaColumns] = field(default_factory=dict)  # (broker, path) -> replicas
    broken: dict[str, str] = field(default_factory=dict)  # path -> what is wrong with it
    taken: dict[str, str] = field(default_factory=dict)  # path -> whose it is too
    level: int = 21
    when_stopped: Callable[[int], None] = lambda _: None  # what happens in the moment of a stop
    state_is: ZkMigrationState = ZkMigrationState.NONE

    @classmethod
    def with_one_directory(cls) -> Self:
        """Three brokers and three controllers run; every replica lies in each broker's only directory."""
        cluster = cls()
        world = world_at(Stage.CLEANUP)
        assert not isinstance(world.configs, Unknown)
        for node in (*BROKERS, *CONTROLLERS):
            file = world.configs[node]
            assert isinstance(file, ConfigFile)
            raw = file.raw.replace(b"/d0,/data/b%d/d1,/data/b%d/d2" % (node, node), b"/d0")
            cluster.files[int(node), file.path] = raw
            cluster.running[int(node)] = sha256(raw)
            cluster.modes[int(node)] = "kraft" if node in BROKERS else "finalized"
        for node in BROKERS:
            cluster.files[int(node), f"/data/b{node}/d0/{META}"] = str(_first(node).id).encode()
            cluster.incarnations[int(node)] = 1
            cluster.registered[int(node)] = "kraft"
            cluster._tell(int(node))
        cluster.leader = int(CONTROLLERS[0])
        cluster.copied = cluster.finalized = True
        return cluster

    # -- ServiceControl ----------------------------------------------------------------------------------------------
    def stop(self, node: NodeId, timeout: float) -> None:
        """One that does not run is only held down."""
        if int(node) not in self.running:
            self.held_down.add(int(node))
            return
        SimulatedCluster.stop(self, node, timeout)
        self.when_stopped(int(node))

    def start(self, node: NodeId) -> None:
        """A KRaft broker refuses a directory without meta.properties."""
        for path in self.paths(int(node)):
            assert (int(node), f"{path}/{META}") in self.files, f"broker {int(node)} does not start: {path} is bare"
        SimulatedCluster.start(self, node)
        self._tell(int(node))

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """What is bare of its log.dirs gets ids; what is not stays."""
        assert int(node) not in self.running, "formatted under a running broker"
        assert ignore_formatted
        assert (cluster_id, release_version) == (CLUSTER_ID, "3.9-IV0")
        bare = [path for path in self.paths(int(node)) if (int(node), f"{path}/{META}") not in self.files]
        for path in bare:
            made = uuid(7000 + 100 * int(node) + len(self.files))
            self.files[int(node), f"{path}/{META}"] = made.encode()
        self.done.append(f"format {int(node)} {len(bare)}")
        return f"Formatting {bare}"

    # -- what it is --------------------------------------------------------------------------------------------------
    def paths(self, node: int) -> tuple[str, ...]:
        """log.dirs of its file."""
        raw = self.files[node, worlds.inventory().node(node).config]
        return log_dirs(parse(raw)) if NodeId(node) in BROKERS else ()

    def ids(self, node: int) -> frozenset[str]:
        """Of the directories in its file."""
        found = (self.files.get((node, f"{path}/{META}")) for path in self.paths(node))
        return frozenset(raw.decode() for raw in found if raw is not None)

    def plant(self, node: int, path: str, topic: str = "late", kind: str = "current") -> None:
        """A replica in one of its directories."""
        columns = ReplicaColumns([topic], [0], ["T" * 22], [kind], [f"{topic}-0"], [10])
        self.planted[node, path] = columns
        self.files[node, f"{path}/{topic}-0"] = b""

    def _tell(self, node: int) -> None:
        if NodeId(node) in BROKERS:
            self.registered_ids[node] = self.ids(node)

    # -- Observer ----------------------------------------------------------------------------------------------------
    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The world as it is."""
        base = world_at(Stage.CLEANUP)
        world = replace(
            base,
            inventory=inventory(),
            playbook=playbook(self.wanted),
            zookeeper=Unknown("the cluster is KRaft alone"),
            kraft=self._kraft(kraft(base)),
            disks={node: self._disks_of(int(node)) for node in BROKERS}
            | {node: entry for node, entry in _disks(base).items() if node in CONTROLLERS},
            live=self._live(live(base)),
            configs=self._configs(),
            services={node: self.state(node) for node in (*BROKERS, *CONTROLLERS)},
            new_directories={
                node: tuple(self._new(int(node), path) for path in self.wanted.get(node, ())) for node in BROKERS
            },
            facts=facts,
        )
        world = self.bend(world)
        return replace(world, ledger=pure_ledger(world)) if Need.LEDGER in needs else world

    def _kraft(self, view: KraftView) -> KraftView:
        brokers = {
            node: replace(
                entry,
                migrating=False,
                fenced=int(node) not in self.running,
                incarnation=f"incarnation-{int(node)}-{self.incarnations[int(node)]}",
                log_dirs=frozenset(map(DirectoryId, self.registered_ids[int(node)])),
            )
            for node, entry in view.brokers.items()
        }
        rows = view.partitions
        first = [[str(_first(NodeId(node)).id) for node in replicas] for replicas in rows.replicas]
        partitions: PartitionColumns = replace(rows, directories=first)
        return replace(
            view,
            brokers=brokers,
            partitions=partitions,
            migration_state=self.state_is,
            features={"metadata.version": self.level},
        )

    def _live(self, view: LiveView) -> LiveView:
        view = SimulatedCluster._live(self, view)
        answers = {
            node: tuple(LogDirAnswer(path, 0, 2, ()) for path in self.paths(int(node)))
            if int(node) in self.running
            else Unknown("connection refused")
            for node in BROKERS
        }
        return replace(view, log_dirs=answers)

    def _disks_of(self, node: int) -> BrokerDisks:
        return BrokerDisks(NodeId(node), tuple(self._directory(node, path) for path in self.paths(node)))

    def _meta(self, node: NodeId, directory: str) -> bytes:
        return worlds.meta_file(self._directory(int(node), directory).meta)

    def _directory(self, node: int, path: str) -> Directory:
        first = _first(NodeId(node))
        raw = self.files.get((node, f"{path}/{META}"))
        meta = MetaMissing() if raw is None else MetaProperties(1, CLUSTER_ID, node, DirectoryId(raw.decode()))
        home = path == first.path
        return replace(
            first,
            path=path,
            meta=meta,
            problem=self.broken.get(path, ""),
            replicas=_replicas(NodeId(node)) if home else self.planted.get((node, path), ReplicaColumns()),
            holds_metadata_log=home,
        )

    def _new(self, node: int, path: str) -> NewDirectory:
        names = tuple(name for name in self.names(NodeId(node), path))
        taken = (self.taken[path],) if path in self.taken else ()
        return NewDirectory(self._directory(node, path), path, names, taken)


def plan_for(cluster: KraftCluster, *, back: bool = False) -> Plan:
    """The plan from the stage of the cluster, there or back."""
    world = cluster.observe(directories.PLANNED_ON, {})
    return directories.build(world, playbook(cluster.wanted), created=1.0, back=back)


def _disks(world: World) -> Mapping[NodeId, BrokerDisks | Unknown]:
    assert not isinstance(world.disks, Unknown)
    return world.disks


def _first(node: NodeId) -> Directory:
    return worlds.found_directory(_disks(world_at(Stage.CLEANUP)), node, 0)


def _replicas(node: NodeId) -> ReplicaColumns:
    """All of the broker's replicas, wherever the healthy cluster has them."""
    found = ReplicaColumns()
    entry = _disks(world_at(Stage.CLEANUP))[node]
    assert isinstance(entry, BrokerDisks)
    for directory in entry.directories:
        for name in ("topic", "partition", "topic_id", "kind", "folder", "size"):
            getattr(found, name).extend(getattr(directory.replicas, name))
    return found
