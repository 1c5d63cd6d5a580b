"""A cluster in memory that can go back: with the znodes of the takeover, sessions, and what each broker believes.

The rules are those seen on Kafka 3.9.2.  What a wrong order would do to a real cluster is done, and noted in `harms`:
a `/controller` deleted under a running quorum, a lower epoch, a stale `/migration` under a fresh quorum, a broker that
hangs in its controlled shutdown because it believes in a controller that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from migrate.errors import ZnodeChanged
from migrate.hosts.leftovers import ASIDE_SUFFIX, kept_files
from migrate.hosts.meta_properties import decode
from migrate.model.broker_modes import node_mode
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    ControllerZnode,
    KraftView,
    LiveView,
    MetadataAnswer,
    MigrationZnode,
    NodeAnswer,
    NoZnode,
    PartitionHealth,
    Stopped,
    ZookeeperView,
)
from migrate.model.world import NOT_ASKED, Need, World
from tests.testing import worlds
from tests.testing.simulated import SimulatedCluster, world_at
from tests.testing.worlds import BROKERS, CONTROLLERS, OFFSET, kraft, zk

LOOKS_TO_LEARN = 2  # after the deletion of /controller a broker learns of the new owner within seconds
SAMPLES = 20
ONLY_KRAFT = DifferenceClass.ONLY_KRAFT
MADE_LATE = Difference("topic", "made-late", "", ONLY_KRAFT, None, "topic")
MADE_IN_DUAL_WRITE = "/brokers/topics/made-in-dual-write/partitions/0/state"


@dataclass(slots=True)
class TwoWay(SimulatedCluster):
    """Three brokers and three controllers that may go both ways, any number of times."""

    owner: tuple[str, int] | None = ("zookeeper", 0)  # of /controller
    owner_version: int = 0
    kraft_epoch: int = 0  # of the quorum; /controller has it while a KRaft controller owns it
    epoch: int = 3  # /controller_epoch
    epoch_version: int = 3
    highest_epoch: int = 0  # that any partition state was written with
    migration: int | None = None  # /migration's offset; None: no such znode
    migration_version: int = 0
    hold_copy: bool = False  # a dead id in an assignment holds the copy
    believes_kraft: dict[int, int] = field(default_factory=dict)  # broker -> looks until it learns who owns it
    lingering: dict[int, int] = field(default_factory=dict)  # broker -> looks until the session it left ends
    stale: set[int] = field(default_factory=set)  # brokers that send the epoch of a quorum that is gone, for ever
    sessions: dict[int, int] = field(default_factory=dict)  # broker -> number of its registration
    unwritten_at_stop: int = 0  # records that are committed as the next quorum loses its majority
    unwritten: int = 0  # records that are committed, and that dual write has not brought to ZooKeeper
    state_versions: dict[str, tuple[int, int]] = field(default_factory=dict)  # znode -> version, partition epoch
    claimed: int = 3  # the epoch with which the owner of /controller took it
    harms: list[str] = field(default_factory=list)
    aside: list[tuple[int, str]] = field(default_factory=list)  # controller, path: what is in the folders of asides
    half_aside: set[int] = field(default_factory=set)  # whose log is set aside, and whose meta.properties is not

    # -- processes ---------------------------------------------------------------------------------------------------
    def stop(self, node: NodeId, timeout: float) -> None:
        """A clean stop: the session ends with the process.  One that believes in a dead controller hangs."""
        number = int(node)
        if number in self.believes_kraft and self.leader is None:
            self.harms.append(f"broker {number} hangs 300 s in its controlled shutdown")
        if node in BROKERS and self._is_fenced():
            self.harms.append(f"broker {number} was stopped under a controller whose writes ZooKeeper refuses")
        led = self.leader is not None
        SimulatedCluster.stop(self, node, timeout)
        if led and self.leader is None:
            self.unwritten, self.unwritten_at_stop = self.unwritten + self.unwritten_at_stop, 0
        self._gone(number)

    def kill(self, node: int) -> None:
        """SIGKILL by somebody: its session stays for a while."""
        del self.running[node]
        if node in self.sessions:
            self.lingering[node] = LOOKS_TO_LEARN
        self._gone(node)
        self._elect()

    def _gone(self, node: int) -> None:
        self.sessions.pop(node, None)
        self.believes_kraft.pop(node, None)
        if self.owner == ("zookeeper", node):
            self.owner = None
            self._claim()

    def start(self, node: NodeId) -> None:
        """As any start; in ZooKeeper's list a broker stands once, and its directories have version 0 or a flag."""
        number = int(node)
        raw = self.files[number, worlds.inventory().node(node).config]
        mode = node_mode(worlds.config_file(node, "", raw).values)
        if node in BROKERS and mode in ("zookeeper", "migration") and number in self.lingering:
            self.harms.append(f"broker {number} died: NodeExists on its own registration")
            return
        if node in BROKERS and mode == "zookeeper" and self._version_one(number):
            self.harms.append(f"broker {number} died: meta.properties of version 1")
            return
        if node in BROKERS and mode in ("zookeeper", "migration"):
            self.sessions[number] = self.sessions.get(number, 100 * number) + 1 + len(self.done)
        self.stale.discard(number)
        SimulatedCluster.start(self, node)
        if node in BROKERS and mode == "migration" and self.owner is not None and self.owner[0] == "kraft":
            self.believes_kraft[number] = LOOKS_TO_LEARN
        self._claim()

    def _version_one(self, node: int) -> bool:
        metas = [
            raw for (owner, path), raw in self.files.items() if owner == node and path.endswith("/meta.properties")
        ]
        return any(getattr(decode(raw), "version", 0) == 1 for raw in metas)

    def _elect(self) -> None:
        before = self.leader
        SimulatedCluster._elect(self)
        if self.leader is None:
            return
        if self.leader != before:
            self.kraft_epoch += 1
        if self.migration is None:
            self.migration, self.migration_version = -1, 0
        if self.leader != before and self.unwritten and self.migration > 0:  # it leads, and writes what is missing
            self.migration, self.unwritten = self.migration + self.unwritten, 0
        if self.copied and self.leader != before:
            self._take_over(self.leader)

    def _register(self) -> None:
        if self.leader is None:
            return
        before = self.copied
        stale = self.migration is not None and self.migration > 0 and not before
        SimulatedCluster._register(self)
        for node in self.stale:
            self.registered.pop(node, None)
        if (self.hold_copy or set(self.registered) != set(map(int, BROKERS))) and not before:
            self.copied = False
        if self.copied and not before:
            if stale:
                self.harms.append("ZooKeeper was emptied: a fresh quorum took an old /migration for its own copy")
            self.migration, self.migration_version = OFFSET, self.migration_version + 1
            self._take_over(self.leader)

    def _take_over(self, controller: int) -> None:
        self.owner, self.owner_version = ("kraft", controller), self.owner_version + 1
        self.epoch, self.epoch_version = self.epoch + 1, self.epoch_version + 1
        self.highest_epoch = max(self.highest_epoch, self.kraft_epoch)
        self.state_versions = {MADE_IN_DUAL_WRITE: (6, 9)}
        for broker in self.sessions:
            self.believes_kraft[broker] = LOOKS_TO_LEARN

    def _claim(self) -> None:
        """A broker with a session claims /controller where nobody has it."""
        if self.owner is not None or not self.sessions:
            return
        self.owner, self.owner_version = ("zookeeper", min(self.sessions)), self.owner_version + 1
        self.epoch, self.epoch_version = self.epoch + 1, self.epoch_version + 1
        self.claimed = self.epoch
        if self.epoch <= self.highest_epoch:
            self.harms.append(f"/controller_epoch {self.epoch} is not above {self.highest_epoch}: leaders will stay -1")

    def _is_fenced(self) -> bool:
        """A broker owns /controller, and /controller_epoch was written since it claimed both in one transaction."""
        return self.owner is not None and self.owner[0] == "zookeeper" and self.claimed != self.epoch

    # -- znodes ------------------------------------------------------------------------------------------------------
    def set(self, path: str, data: bytes, version: int) -> None:
        """Only /controller_epoch is ever set."""
        assert path == "/controller_epoch", path
        self._same_version(path, version, self.epoch_version)
        self.done.append(f"set {path} {data.decode()}")
        self.epoch, self.epoch_version = int(data), self.epoch_version + 1

    def delete(self, path: str, version: int) -> None:
        """/controller or /migration."""
        self.done.append(f"delete {path}")
        if path == "/controller":
            assert self.owner is not None
            self._same_version(path, version, self.owner_version)
            if self.leader is not None or any(int(node) in self.running for node in CONTROLLERS):
                self.harms.append("/controller was deleted while a controller runs: it claims it again")
            if self.owner[0] == "kraft" and self.unwritten:
                self.harms.append("a topic is lost: ZooKeeper never got it")
            if self.owner[0] == "kraft" and self._are_behind():
                self.harms.append(f"followers ignore ZooKeeper's controller: {self.state_versions}")
            if self.owner[0] == "zookeeper" and self.claimed > self.highest_epoch:
                self.harms.append("/controller of a broker was deleted")
            self.owner = None
            self._claim()
            return
        assert path == "/migration", path
        assert self.migration is not None, "deleted twice"
        self._same_version(path, version, self.migration_version)
        self.migration = None

    def raise_versions(self, least: Mapping[str, int], owner: int | None) -> None:
        """By as many writes as it takes; a broker's /controller goes with them."""
        self.done.append(f"raise {sorted(least)}")
        if any(int(node) in self.running for node in CONTROLLERS):
            self.harms.append("partition states were written while a controller runs")
        if owner is not None:
            assert self.owner is not None
            self._same_version("/controller", owner, self.owner_version)
        for path, version in least.items():
            self.state_versions[path] = (max(version, self.state_versions[path][0]), self.state_versions[path][1])
        if owner is not None:
            self.owner = None
            self._claim()

    def _are_behind(self) -> tuple[StateBehind, ...]:
        return tuple(
            StateBehind(path, *counts) for path, counts in self.state_versions.items() if counts[0] < counts[1]
        )

    def _same_version(self, path: str, asked: int, real: int) -> None:
        if asked != real:
            raise ZnodeChanged("the change was refused: it has another version", where=path)

    # -- files -------------------------------------------------------------------------------------------------------
    def exists(self, node: NodeId, path: str) -> bool:
        """Files, and metadata directories of controllers."""
        if path in self.entries(node):
            return True
        return SimulatedCluster.exists(self, node, path) or path == f"/data/c{int(node)}"

    def entries(self, node: NodeId) -> list[str]:
        """What a controller's metadata directory holds, with what was set aside in it."""
        here, number = f"/data/c{int(node)}", int(node)
        log = [f"{here}/__cluster_metadata-0"] if number in self.formatted and number not in self.half_aside else []
        meta = [f"{here}/meta.properties"] if number in self.formatted else []
        return [*log, *meta, *(path for owner, path in self.aside if owner == number)]

    def names(self, node: NodeId, path: str) -> list[str]:
        """Of a metadata directory, and of the folders of files."""
        if path != f"/data/c{int(node)}":
            return SimulatedCluster.names(self, node, path)
        return sorted({entry.removeprefix(f"{path}/").partition("/")[0] for entry in self.entries(node)})

    def make_directory(self, node: NodeId, path: str) -> None:
        """One to set metadata aside in."""
        if (int(node), path) not in self.aside:
            self.aside.append((int(node), path))

    def rename(self, node: NodeId, old: str, new: str) -> None:
        """A quorum without directories is a fresh one."""
        if not old.startswith(f"/data/c{int(node)}/"):
            assert ASIDE_SUFFIX in new
            self.done.append(f"aside {int(node)} {old}")  # without the time in it, which a recovered run has later
            SimulatedCluster.rename(self, node, old, old + ASIDE_SUFFIX)
            return
        assert int(node) not in self.running, "a controller's metadata was taken away under it"
        assert old in self.entries(node)
        assert new not in self.entries(node)
        self.aside.append((int(node), new))
        if not old.endswith("/meta.properties"):
            self.half_aside.add(int(node))
            return
        self.done.append(f"aside {int(node)} /data/c{int(node)}")
        self.formatted.discard(int(node))
        self.half_aside.discard(int(node))
        if not self.formatted:
            self.copied, self.kraft_epoch, self.state_versions = False, 0, {}
            self.registered.clear()
            self.assigned.clear()
            self.stale = {node for node in map(int, BROKERS) if self.modes.get(node) == "migration"} & set(self.running)

    # -- what is seen ------------------------------------------------------------------------------------------------
    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """As the cluster is, with the copies beside its files; each look brings what comes by itself nearer."""
        samples = SAMPLES if Need.CONTROLLER_NAMES in needs else 1
        world = SimulatedCluster.observe(self, needs, facts)
        if not isinstance(world.live, Unknown):
            world = replace(world, live=self._answers(world.live, samples))
        kept = {node: kept_files(self, node, (world.configs or {}).get(node)) for node in (*BROKERS, *CONTROLLERS)}  # type: ignore[union-attr]
        if Need.DIFF in needs and self.compares:
            world = self._compared_with_logs(world)
        behind = self._seen_behind(world) if Need.STATES_BEHIND in needs else NOT_ASKED
        self._pass_time()
        return replace(world, backups=kept, states_behind=behind)

    def _seen_behind(self, world: World) -> tuple[StateBehind, ...] | Unknown:
        logs = world.metadata_logs
        return logs if isinstance(logs, Unknown) else self._are_behind()

    def _compared_with_logs(self, world: World) -> World:
        """Stopped controllers' image beside ZooKeeper, as long as one of them owns /controller."""
        logs = world.metadata_logs
        asked = isinstance(world.kraft, Unknown) and isinstance(world.diff, Unknown) and self.copied
        if not asked or isinstance(logs, Unknown) or isinstance(logs.end, Unknown) or not zk(world).kraft_owns:
            return world
        rows = (MADE_LATE,) if self.unwritten else ()
        counts = {"topic": {"EQUAL": 3, **({ONLY_KRAFT.value: 1} if rows else {})}}
        return replace(world, diff=DiffReport(logs.end - 1, 0, counts, rows))

    def _pass_time(self) -> None:
        self.lingering = {node: left - 1 for node, left in self.lingering.items() if left > 1}
        if self.leader is None and self.owner is not None and self.owner[0] == "zookeeper":
            self.believes_kraft = {node: left - 1 for node, left in self.believes_kraft.items() if left > 1}

    def _metadata_logs(self) -> MetadataLogs | Unknown:
        found = SimulatedCluster._metadata_logs(self)
        if isinstance(found, Unknown) or self.kraft_epoch == 0:
            return found
        return MetadataLogs(
            holders=tuple(sorted(self.formatted)),
            end=OFFSET + 1 + self.unwritten,
            state=ZkMigrationState.MIGRATION if self.copied else ZkMigrationState.PRE_MIGRATION,
            epoch=self.kraft_epoch,
            registered=tuple(sorted(self.registered)),
        )

    def _stage(self) -> Stage:
        if self.finalized:
            return Stage.FINALIZE
        if self.leader is None:
            return Stage.ASSESS
        return Stage.COPY if self.copied else Stage.CONTROLLERS

    def _zookeeper(self, view: ZookeeperView) -> ZookeeperView:
        everyone = zk(world_at(Stage.ASSESS)).brokers
        alive = {
            node: replace(entry, epoch=self.sessions.get(int(node), entry.epoch))
            for node, entry in everyone.items()
            if int(node) in self.sessions or int(node) in self.lingering
        }
        match self.owner:
            case ("zookeeper", broker):
                controller: ControllerZnode | NoZnode = ControllerZnode(broker, -1, True, self.owner_version)
            case ("kraft", node):
                controller = ControllerZnode(node, self.kraft_epoch, False, self.owner_version)
            case _:
                controller = NoZnode()
        migration: MigrationZnode | NoZnode = NoZnode()
        if self.migration is not None:
            epoch = 1 if self.migration > 0 else -1
            migration = MigrationZnode(self.migration, epoch, 3000, 2, self.migration_version)
        return replace(
            view,
            brokers=alive,
            controller=controller,
            controller_epoch=self.epoch,
            controller_epoch_version=self.epoch_version,
            state_epoch=self.highest_epoch,
            owner_fenced=self._is_fenced(),
            migration=migration,
        )

    def _kraft(self, view: KraftView) -> KraftView:
        found = SimulatedCluster._kraft(self, view)
        state = ZkMigrationState.MIGRATION if self.copied else ZkMigrationState.PRE_MIGRATION
        return replace(found, migration_state=ZkMigrationState.POST_MIGRATION if self.finalized else state)

    def _disks(self, disks: object) -> dict[NodeId, BrokerDisks | Unknown]:
        """A controller's directory is there whether it runs or not; a broker's meta.properties may be a file."""
        full = world_at(Stage.COPY).disks
        assert not isinstance(full, Unknown)
        found = SimulatedCluster._disks(self, dict(full))
        for node in BROKERS:
            entry = found[node]
            assert isinstance(entry, BrokerDisks)
            directories = []
            for directory in entry.directories:
                raw = self.files.get((int(node), f"{directory.path}/meta.properties"))
                directories.append(directory if raw is None else replace(directory, meta=decode(raw)))
            found[node] = replace(entry, directories=tuple(directories))
        return found

    def _answers(self, view: LiveView, samples: int) -> LiveView:
        """Who is named as controller, who is seen, which partitions lack the brokers that are down."""
        alive = tuple(int(node) for node in BROKERS if int(node) in self.running)
        down = set(map(int, BROKERS)) - set(alive)
        partitions = kraft(world_at(Stage.KRAFT_MODE)).partitions
        rows = zip(partitions.topic, partitions.partition, partitions.replicas, strict=True)
        sick = tuple(
            PartitionHealth(topic, number, -1 if not left else left[0], tuple(left), tuple(replicas))
            for topic, number, replicas in rows
            if (left := [entry for entry in replicas if entry not in down]) != list(replicas)
        )
        if self.hold_copy:  # replica 9 is on no broker
            sick = (*sick, PartitionHealth("held", 0, alive[0], (alive[0],), (alive[0], 9)))
        metadata: dict[NodeId, MetadataAnswer | Unknown] = {}
        for node, answer in view.metadata.items():
            if isinstance(answer, Unknown):
                metadata[node] = answer
                continue
            named = self._named(int(node), alive, samples)
            metadata[node] = replace(answer, controller_ids=named, brokers=alive, unhealthy=(*answer.unhealthy, *sick))
        controllers: dict[NodeId, NodeAnswer | Unknown] = {
            node: answer if not isinstance(self.state(node), Stopped) else Unknown("connection refused")
            for node, answer in view.controllers.items()
        }
        return replace(view, metadata=metadata, controllers=controllers)

    def _named(self, broker: int, alive: tuple[int, ...], samples: int) -> tuple[int, ...]:
        """One that believes in KRaft names any living broker."""
        if broker in self.believes_kraft or self.modes.get(broker) == "kraft" or self.owner is None:
            return tuple(alive[number % len(alive)] for number in range(samples))
        return (self.owner[1] if self.owner[0] == "zookeeper" else alive[0],) * samples


def two_way() -> TwoWay:
    """Three brokers in ZooKeeper mode, each with its session."""
    found = TwoWay.in_zookeeper_mode()
    assert isinstance(found, TwoWay)
    found.sessions = {int(node): 10 + int(node) for node in BROKERS}
    return found
