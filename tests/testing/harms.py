"""A simulated cluster to which harm can come, and which says so: what Kafka does where a guard is missing.

The rules are Kafka 3.9's, each with its source in the comment beside it.  `harms` lists what happened, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import ControllerZnode, MetaProperties, MigrationZnode, PartitionHealth, ZookeeperView
from migrate.model.world import Need, World
from tests.testing import worlds
from tests.testing.simulated import SimulatedCluster
from tests.testing.worlds import BROKERS, kraft, live, with_directory, with_kraft, with_live, with_zk

STALE = MigrationZnode(900, 3, 3000, 2, 7)
SICK = PartitionHealth("orders", 3, 1, (1,), (0, 1))  # min.insync.replicas is 2: one more stop takes its leader


@dataclass(slots=True)
class Fragile(SimulatedCluster):
    """Three brokers in ZooKeeper mode, and whatever is wrong with them."""

    remembers: bool = False  # /migration holds the offset of an earlier attempt
    elsewhere: Callable[[], bool] = lambda: False  # the address leads to another cluster
    cleaned: Callable[[], bool] = lambda: False  # /controller was deleted while controllers run
    moving: Callable[[], bool] = lambda: False  # another tool moves replicas
    behind: Callable[[], bool] = lambda: False  # a partition has one replica left in its ISR
    formatted_disk: bool = False  # broker 1 has a disk that kafka-storage formatted
    unissued: bool = False  # nobody issues the logins that nodes start with
    harms: list[str] = field(default_factory=list)

    # -- what is seen ------------------------------------------------------------------------------------------------
    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """The world, with what is wrong in it."""
        return self._bent(SimulatedCluster.observe(self, needs, facts))

    def _bent(self, world: World) -> World:
        if self.cleaned():
            world = with_zk(world, controller=ControllerZnode(0, -1, ephemeral=True, version=0))
        if self.elsewhere():
            world = with_zk(world, cluster_id="O" * 22)
        if self.moving():
            columns = kraft(world).partitions
            world = with_kraft(world, partitions=replace(columns, adding=[[2], *columns.adding[1:]]))
        if self.behind():
            answers = live(world).metadata.items()
            sick = {
                node: answer if isinstance(answer, Unknown) else replace(answer, unhealthy=(SICK,))
                for node, answer in answers
            }
            world = with_live(world, metadata=sick)
        if self.formatted_disk:
            world = with_directory(
                world,
                1,
                0,
                lambda entry: (
                    replace(entry, meta=replace(entry.meta, version=1))
                    if isinstance(entry.meta, MetaProperties)
                    else entry
                ),
            )
        return world

    def _zookeeper(self, view: ZookeeperView) -> ZookeeperView:
        found = SimulatedCluster._zookeeper(self, view)
        return replace(found, migration=STALE) if self.remembers and not self.copied else found

    # -- what comes of it --------------------------------------------------------------------------------------------
    def harm(self, what: str) -> None:
        """Note it once."""
        if what not in self.harms:
            self.harms.append(what)

    def stop(self, node: NodeId, timeout: float) -> None:
        """A stop by our hand, and what it does to a cluster that was not fit for it."""
        self._acted(f"node {int(node)} was stopped")
        if node in BROKERS:
            self._stopped_broker(int(node))
        SimulatedCluster.stop(self, node, timeout)

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """A file by our hand: one under a running process is what nobody asked for."""
        if int(node) in self.running and path == worlds.inventory().node(node).config:
            self.harm(f"the file of node {int(node)} was changed while its process runs")
        SimulatedCluster.write(self, node, path, content)

    def start(self, node: NodeId) -> None:
        """A start by our hand."""
        self._acted(f"node {int(node)} was started")
        if self.unissued:  # LoginManager: KafkaException, LoginException: Connection refused
            self.harm(f"broker {int(node)} ended at its start")
        SimulatedCluster.start(self, node)

    def drive(self, broker: NodeId) -> str:
        """Assignments by our hand."""
        self._acted(f"directories of broker {int(broker)} were sent")
        return SimulatedCluster.drive(self, broker)

    def _acted(self, what: str) -> None:
        if self.elsewhere():
            self.harm(f"{what} in another cluster")

    def _stopped_broker(self, node: int) -> None:
        if self.behind() and node in SICK.isr:
            self.harm("a partition lost its last replica in the ISR")
        if self.cleaned() and self.copied:
            # ZkMigrationClient.claimControllerLeadership: KRaft claims /controller again and deletes what was made
            self.harm("two controllers write: what one makes, the other deletes")
        if self.moving() and self.copied:
            self.harm("a broker was stopped while replicas move (KAFKA-16120)")
        if self.formatted_disk and self.modes[node] == "zookeeper":
            # KAFKA-20762: plain ZooKeeper mode refuses version 1
            self.harm("the rollback is shut: meta.properties of version 1")
        for broker in map(int, BROKERS):
            path = worlds.inventory().node(NodeId(broker)).config
            if broker in self.running and broker != node and self._hash(broker, path) != self.running[broker]:
                self.harm(f"broker {broker} would start into another mode")

    def _hash(self, node: int, path: str) -> str:
        return worlds.config_file(NodeId(node), path, self.files[node, path]).sha256

    def _elect(self) -> None:
        before = self.finalized
        SimulatedCluster._elect(self)
        left = [node for node in map(int, BROKERS) if self.registered.get(node) != "kraft"]
        if self.finalized and not before and left:
            # ActivationRecordsGenerator: POST_MIGRATION, whatever mode the brokers are in (KAFKA-20960)
            self.harm(f"finalized while brokers {left} need ZooKeeper")

    def _register(self) -> None:
        before = self.copied
        SimulatedCluster._register(self)
        if self.copied and not before and self.remembers:
            # KRaftMigrationDriver: /migration says done, so SYNC_KRAFT_TO_ZK writes an empty image (strimzi #11262)
            self.harm("ZooKeeper was emptied")
