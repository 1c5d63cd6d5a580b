"""A cluster in memory behind the protocols that production implements: observer, files, services, ZooKeeper, drive.

Its rules are Kafka's: registrations by mode, the copy that starts by itself with the last broker's registration,
directories that a KRaft broker reports, finalization by the election of a controller without the flag.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, Self

from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.meta_properties import META_PROPERTIES, decode
from migrate.hosts.properties import parse
from migrate.model.broker_modes import node_mode
from migrate.model.difference import DiffReport
from migrate.model.facts import pure_ledger
from migrate.model.ids import MIGRATING, NodeId
from migrate.model.launch import STOP_SECONDS, Unit
from migrate.model.listeners import Heard, Served
from migrate.model.outcome import Unknown
from migrate.model.ports import Observer
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import Growing, MetadataLogs
from migrate.model.stage import Stage
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    KraftView,
    LiveView,
    MetaMissing,
    NoFile,
    NoZnode,
    Quorum,
    Running,
    ServiceState,
    Stopped,
    ZkBroker,
    ZookeeperView,
)
from migrate.model.world import BROKER, NOT_ASKED, Need, World
from migrate.steps.facts import sha256
from tests.testing import worlds
from tests.testing.worlds import BROKERS, CONTROLLERS, kraft, live, meta_file, zk

world_at = cache(worlds.world_at)  # values: one of each is enough for the hundreds of looks of a run
config_file = cache(worlds.config_file)


class Killed(BaseException):
    """The process is gone, as after SIGKILL: nothing catches it."""


PARTS: Final = {
    "zookeeper": {Need.ZOOKEEPER, Need.LEDGER, Need.SPARK_LEDGER, Need.STATES_BEHIND, Need.COPY, Need.SESSIONS},
    "kraft": {Need.KRAFT, Need.LEDGER, Need.SPARK_LEDGER, Need.COPY},
    "disks": {Need.DISKS, Need.LEDGER, Need.SPARK_LEDGER},
    "metadata_logs": {Need.METADATA_LOGS, Need.STATES_BEHIND},
    "diff": {Need.DIFF},
    "backups": {Need.BACKUPS},
    "copy": {Need.COPY},
    "leftovers": {Need.LEFTOVERS},
    "units": {Need.UNITS},
    "protocols": {Need.PROTOCOLS},
    "ensemble": {Need.ENSEMBLE},
    "applied": {Need.APPLIED},
    "listeners": {Need.LISTENERS},
    "stores": {Need.STORES},
}


def as_asked(world: World, needs: frozenset[Need]) -> World:
    """The parts of the world that were asked for; the real observer looks at no other."""
    return replace(world, **{part: NOT_ASKED for part, by in PARTS.items() if not needs & by})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class AsAsked:
    """A cluster in memory that shows no more than it is asked for."""

    cluster: Observer

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The world, in the parts asked for."""
        return as_asked(self.cluster.observe(needs, facts), needs)


@dataclass(slots=True)
class FakeClock:
    """Time that passes only by sleeping."""

    time: float = 1_000_000.0

    def now(self) -> float:
        """Seconds."""
        return self.time

    def monotonic(self) -> float:
        """The same seconds."""
        return self.time

    def boot(self) -> str:
        """One host that is never restarted."""
        return "boot"

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.time += seconds


class KillAt:
    """Crash points that kill at the n-th one reached; 0 kills never."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.passed = 0

    def reach(self, _label: str) -> None:
        """Count, and die where asked."""
        self.passed += 1
        if self.passed == self.at:
            raise Killed


@dataclass(slots=True)
class SimulatedCluster:
    """State, changed by effects; `done` lists every effect that reached it, in order."""

    files: dict[tuple[int, str], bytes] = field(default_factory=dict)
    running: dict[int, str] = field(default_factory=dict)  # node -> hash of the file it was started with
    modes: dict[int, str] = field(default_factory=dict)  # node -> mode of that file
    formatted: set[int] = field(default_factory=set)
    registered: dict[int, str] = field(default_factory=dict)  # broker -> migration | kraft
    incarnations: dict[int, int] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)
    leader: int | None = None
    copied: bool = False
    finalized: bool = False
    done: list[str] = field(default_factory=list)
    started: dict[int, str] = field(default_factory=dict)  # node -> hash of the file of its last start
    held_down: set[int] = field(default_factory=set)  # controllers whose service was stopped though none lived
    disabled: set[int] = field(default_factory=set)  # nodes that no boot starts, where they are units
    are_units: bool = False
    bend: Callable[[World], World] = lambda world: world
    compares: bool = True  # ZooKeeper with the metadata, once there is a copy
    clock: FakeClock = field(default_factory=FakeClock)  # of elections

    @classmethod
    def in_zookeeper_mode(cls) -> Self:
        """Three brokers, running; nothing of KRaft."""
        cluster = cls()
        world = world_at(Stage.ASSESS)
        assert not isinstance(world.configs, Unknown)
        for node in BROKERS:
            file = world.configs[node]
            assert isinstance(file, ConfigFile)
            cluster.files[int(node), file.path] = file.raw
            cluster.running[int(node)] = file.sha256
            cluster.modes[int(node)] = "zookeeper"
        return cluster

    # -- Files -------------------------------------------------------------------------------------------------------
    def read(self, node: NodeId, path: str) -> bytes:
        """A file's bytes; a meta.properties that nobody wrote is as its directory says."""
        if path.endswith(f"/{META_PROPERTIES}"):
            return self._meta(node, path.removesuffix(f"/{META_PROPERTIES}"))
        if (int(node), path) not in self.files:
            raise FileNotFoundError(path)
        return self.files[int(node), path]

    def _meta(self, node: NodeId, directory: str) -> bytes:
        disks = self._disks(world_at(Stage.COPY).disks).get(node)
        found = (
            [entry for entry in disks.directories if entry.path == directory] if isinstance(disks, BrokerDisks) else []
        )
        raw = self.files.get((int(node), f"{directory}/{META_PROPERTIES}"))
        if raw is not None and not found:
            return raw
        if not found or found[0].problem or isinstance(found[0].meta, MetaMissing):
            raise OSError(errno.EIO, os.strerror(errno.EIO), directory)
        return raw if raw is not None and decode(raw) == found[0].meta else meta_file(found[0].meta)

    def not_storing(self, node: NodeId, paths: Sequence[str]) -> dict[str, str]:
        """A directory's problem, where it has one."""
        disks = self._disks(world_at(Stage.COPY).disks).get(node)
        found = disks.directories if isinstance(disks, BrokerDisks) else ()
        return {entry.path: entry.problem for entry in found if entry.problem and entry.path in paths}

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Replace a file."""
        if BACKUP_SUFFIX not in path:
            self.done.append(f"write {int(node)} {node_mode(parse(content))}")
        self.files[int(node), path] = content

    def exists(self, node: NodeId, path: str) -> bool:
        """Is it there?"""
        return (int(node), path) in self.files

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """Set aside."""
        self.files[int(node), new] = self.files.pop((int(node), old))

    def remove(self, node: NodeId, path: str) -> None:
        """A copy."""
        del self.files[int(node), path]

    def make_directory(self, node: NodeId, path: str) -> None:
        """Folders are not modelled."""

    def names(self, node: NodeId, path: str) -> list[str]:
        """The files of a folder."""
        return sorted(
            name
            for owner, entry in self.files
            for folder, _, name in [entry.rpartition("/")]
            if (owner, folder) == (int(node), path)
        )

    # -- ServiceControl ----------------------------------------------------------------------------------------------
    def state(self, node: NodeId) -> ServiceState:
        """Running with the file it was started with, or stopped."""
        started = self.running.get(int(node))
        return (
            Stopped(None, self.started.get(int(node))) if started is None else Running(1000 + int(node), 1.0, started)
        )

    def stop(self, node: NodeId, timeout: float) -> None:
        """Stop a process; a quorum without its leader elects another.  A controller may be stopped where none lives."""
        if node in CONTROLLERS and int(node) not in self.running:
            self.held_down.add(int(node))
            return
        assert int(node) in self.running, f"node {int(node)} was stopped twice"
        self.done.append(f"stop {int(node)}")
        del self.running[int(node)]
        down = [broker for broker in BROKERS if int(broker) not in self.running]
        assert len(down) <= 1, f"more than one broker is down: {down}"
        self._elect()

    def start(self, node: NodeId) -> None:
        """Start a process with the current file, and let the cluster react."""
        assert int(node) not in self.running, f"node {int(node)} was started twice"
        raw = self.files[int(node), worlds.inventory().node(node).config]
        self.done.append(f"start {int(node)} {node_mode(parse(raw))}")
        self.running[int(node)] = self.started[int(node)] = sha256(raw)
        self.modes[int(node)] = node_mode(parse(raw))
        if node in CONTROLLERS:
            assert int(node) in self.formatted, f"controller {int(node)} was started unformatted"
            assert self.modes[int(node)] == "controller" or self.copied, "a controller without the flag before the copy"
        elif self.modes[int(node)] in ("migration", "kraft"):
            self.incarnations[int(node)] = self.incarnations.get(int(node), 0) + 1
        self._elect()
        self._register()

    def last_words(self, node: NodeId, lines: int) -> list[str]:
        """It never says anything."""
        return []

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """Format a controller; brokers' directories are formatted by a cluster that models them."""
        assert not ignore_formatted, f"node {int(node)} is no broker with bare directories"
        assert int(node) not in self.formatted, f"controller {int(node)} was formatted twice"
        self.done.append(f"format {int(node)}")
        self.formatted.add(int(node))
        return ""

    # -- ZookeeperWrites and drive -----------------------------------------------------------------------------------
    def create(self, path: str, data: bytes) -> None:
        """No step makes a znode in these tests."""
        raise AssertionError(path)

    def set(self, path: str, data: bytes, version: int) -> None:
        """No step sets a znode in these tests."""
        raise AssertionError(path)

    def delete(self, path: str, version: int) -> None:
        """No step deletes a znode in these tests."""
        raise AssertionError(path)

    def raise_versions(self, least: Mapping[str, int], owner: int | None) -> None:
        """No step raises a version in these tests."""
        raise AssertionError(sorted(least))

    def backup(self, destination: str) -> Mapping[str, str]:
        """A backup is a fact, no more."""
        return {"sha256": "0" * 64}

    def drive(self, broker: NodeId) -> str:
        """AssignReplicasToDirs is accepted."""
        self.done.append(f"assign {int(broker)}")
        self.assigned.add(int(broker))
        return "all"

    # -- leaders -----------------------------------------------------------------------------------------------------
    # -- how the cluster reacts --------------------------------------------------------------------------------------
    def _elect(self) -> None:
        """The leader stays while it lives; a majority elects the lowest.  Elected without the flag, it finalizes."""
        alive = [int(node) for node in CONTROLLERS if int(node) in self.running]
        if len(alive) < 2:
            self.leader = None
        elif self.leader not in alive:
            self.leader = alive[0]
        if self.leader is not None and self.copied and self.modes[self.leader] == "finalized":
            self.finalized = True

    def _register(self) -> None:
        if self.leader is None:
            return
        for node in map(int, BROKERS):
            if node in self.running and self.modes[node] in ("migration", "kraft"):
                self.registered[node] = self.modes[node]
                if self.modes[node] == "kraft":
                    self.assigned.add(node)
        if set(self.registered) == set(map(int, BROKERS)):
            self.copied = True

    # -- Observer ----------------------------------------------------------------------------------------------------
    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The world as it is, in the parts asked for."""
        base = world_at(self._stage())
        world = replace(
            base,
            zookeeper=self._zookeeper(zk(world_at(min(self._stage(), Stage.FINALIZE)))),
            kraft=Unknown("no controller answers") if self.leader is None else self._kraft(kraft(base)),
            disks=self._disks(base.disks),
            live=self._live(live(base)),
            configs=self._configs(),
            services={node: self.state(node) for node in (*BROKERS, *CONTROLLERS)},
            metadata_logs=self._metadata_logs(),
            listeners={node: self._heard(node) for node in BROKERS if facts.get(BROKER) in (None, str(int(node)))},
            facts=facts,
        )
        if self.are_units:
            world = self._as_units(world)
        world = self.bend(world)
        if needs & {Need.LEDGER, Need.SPARK_LEDGER}:
            world = replace(world, ledger=pure_ledger(world))
        compared = self.compares and Need.DIFF in needs and not isinstance(world.kraft, Unknown)
        if compared and isinstance(world.diff, Unknown) and self.copied and not self.finalized:
            world = replace(world, diff=DiffReport(kraft(world).offset, 0, {"topic": {"EQUAL": 3}}, ()))
        return world

    def _heard(self, node: NodeId) -> Heard:
        """One listener, which serves while the broker runs."""
        silent = "" if int(node) in self.running else "no connection"
        return Heard({"PLAINTEXT": Served("PLAINTEXT", f"broker-{int(node)}:9092", silent=silent)})

    def _as_units(self, world: World) -> World:
        """Reached over SSH, with every command allowed; a boot starts what is not disabled."""
        units = {
            node.id: Unit(
                node.host,
                f"kafka-{int(node.id)}.service",
                STOP_SECONDS,
                "disabled" if int(node.id) in self.disabled else "enabled",
                int(node.id) not in self.disabled,
            )
            for node in world.inventory.nodes
        }
        rights = {node.id: HostRights(node.host) for node in world.inventory.nodes}
        return replace(world, inventory=replace(world.inventory, executor="ssh"), units=units, host_rights=rights)

    def _metadata_logs(self) -> MetadataLogs | Unknown:
        """As stopped controllers leave them; a formatted directory alone is no log."""
        if any(int(node) in self.running for node in CONTROLLERS):
            return Growing("a controller runs", rehearsed=True)
        return MetadataLogs()

    def _stage(self) -> Stage:
        if self.finalized:
            return Stage.FINALIZE
        if self.copied:
            return Stage.COPY
        return Stage.ASSESS if self.leader is None else Stage.CONTROLLERS

    def _configs(self) -> dict[NodeId, ConfigFile | NoFile | Unknown]:
        found: dict[NodeId, ConfigFile | NoFile | Unknown] = {}
        for node in worlds.inventory().nodes:
            raw = self.files.get((int(node.id), node.config))
            found[node.id] = NoFile(node.config) if raw is None else config_file(node.id, node.config, raw)
        return found

    def _zookeeper(self, view: ZookeeperView) -> ZookeeperView:
        everyone = zk(world_at(Stage.ASSESS)).brokers
        alive: dict[NodeId, ZkBroker] = {
            node: entry
            for node, entry in everyone.items()
            if int(node) in self.running and self.modes[int(node)] in ("zookeeper", "migration")
        }
        migration = NoZnode() if self.leader is None and not self.copied else view.migration
        return replace(view, brokers=alive, migration=migration)

    def _kraft(self, view: KraftView) -> KraftView:
        full = kraft(world_at(Stage.KRAFT_MODE))
        brokers = {
            node: replace(
                full.brokers[node],
                migrating=self.registered[int(node)] == "migration",
                fenced=int(node) not in self.running,
                epoch=full.brokers[node].epoch if self.registered[int(node)] == "migration" else worlds.OFFSET + 1,
                incarnation=f"incarnation-{int(node)}-{self.incarnations[int(node)]}",
            )
            for node in BROKERS
            if int(node) in self.registered
        }
        partitions = view.partitions
        if self.copied:
            true = full.partitions
            directories = [
                [
                    here if broker in self.assigned else str(MIGRATING)
                    for broker, here in zip(replicas, listed, strict=True)
                ]
                for replicas, listed in zip(true.replicas, true.directories, strict=True)
            ]
            partitions = replace(true, directories=directories)
        controllers = {
            node: replace(entry, migration_ready=self.modes.get(int(node)) == "controller")
            for node, entry in view.controllers.items()
            if int(node) in self.running
        }
        return replace(view, brokers=brokers, partitions=partitions, controllers=controllers)

    def _disks(self, disks: object) -> dict[NodeId, BrokerDisks | Unknown]:
        assert isinstance(disks, dict)
        full = world_at(Stage.COPY).disks
        assert not isinstance(full, Unknown)
        plain = world_at(Stage.ASSESS).disks
        assert not isinstance(plain, Unknown)
        found = {node: full[node] if int(node) in self.incarnations else plain[node] for node in BROKERS}
        for node in CONTROLLERS:
            entry = full[node]
            assert isinstance(entry, BrokerDisks)
            if int(node) not in self.formatted:
                empty = replace(
                    entry.directories[0], meta=MetaMissing(), problem="does not exist", holds_metadata_log=False
                )
                entry = replace(entry, directories=(empty,))
            found[node] = entry
        return found

    def _live(self, view: LiveView) -> LiveView:
        quorum: Quorum | Unknown = Unknown("no controller leads")
        if self.leader is not None:
            base = live(world_at(Stage.COPY)).quorum
            assert isinstance(base, Quorum)
            quorum = replace(base, leader=NodeId(self.leader))
        answers = live(world_at(Stage.COPY)).controllers
        controllers = {
            node: replace(answer, migration_flag=self.modes[int(node)] == "controller")
            if int(node) in self.running and not isinstance(answer, Unknown)
            else Unknown("connection refused")
            for node, answer in answers.items()
        }
        metadata = {
            node: answer if int(node) in self.running else Unknown("connection refused")
            for node, answer in view.metadata.items()
        }
        return replace(view, quorum=quorum, controllers=controllers, metadata=metadata)
