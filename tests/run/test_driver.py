"""Policy `drive` at work: sent once, paced, retried on typed errors only, stopped when the cluster moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from migrate.errors import AccessRefused, AssignmentRefused, DriveStopped, StaleBrokerEpoch
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MigrationZnode, NoZnode, PartitionHealth, Quorum
from migrate.model.world import World
from migrate.run.drive import ATTEMPTS, Driver
from tests.testing.simulated import FakeClock, SimulatedCluster
from tests.testing.worlds import BROKERS, kraft, live, with_kraft, with_live, world_at, zk

BROKER = NodeId(2)
Sent = Mapping[str, Sequence[tuple[str, int]]]


def in_hybrid() -> SimulatedCluster:
    """Copied; every broker registered as migrating, no directory known."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    cluster.formatted = {3000, 3001, 3002}
    for node in (3000, 3001, 3002):
        cluster.running[node], cluster.modes[node] = "x", "controller"
    cluster.leader, cluster.copied = 3000, True
    for node in map(int, BROKERS):
        cluster.modes[node], cluster.registered[node], cluster.incarnations[node] = "migration", "migration", 1
    return cluster


@dataclass(slots=True)
class Controller:
    """Answers AssignReplicasToDirs by a script: an exception, or an error code for every replica; then with success."""

    cluster: SimulatedCluster
    script: list[Exception | int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    offset: int = 500

    def assign(self, broker: NodeId, broker_epoch: int, assignments: Sent) -> Mapping[tuple[str, int], int]:
        """Play the next line of the script."""
        self.epochs.append(broker_epoch)
        line = self.script.pop(0) if self.script else 0
        if isinstance(line, Exception):
            raise line
        if line == 0:
            self.sent.append(assignments)
            self.cluster.assigned.add(int(broker))
            self.offset += 1
        return {replica: line for replicas in assignments.values() for replica in replicas}


def driven(script: Sequence[Exception | int] = (), bend: Callable[[World], World] = lambda world: world) -> Controller:
    """Drive broker 2 of a cluster in hybrid; the controller it spoke to."""
    cluster = in_hybrid()
    controller = Controller(cluster, list(script))

    def dual_write(world: World) -> World:
        znode = MigrationZnode(controller.offset, 1, 3000, 2, 7)
        return bend(replace(world, zookeeper=replace(zk(world), migration=znode)))

    cluster.bend = dual_write
    Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    return controller


def test_every_replica_of_the_broker_is_sent_once_with_its_true_directory() -> None:
    """And nothing of another broker."""
    controller = driven()
    sent = [replica for request in controller.sent for replicas in request.values() for replica in replicas]
    partitions = kraft(world_at(Stage.KRAFT_MODE)).partitions
    mine = [
        (topic, number)
        for topic, number, replicas in zip(partitions.topic_id, partitions.partition, partitions.replicas, strict=True)
        if int(BROKER) in replicas
    ]
    assert sorted(sent) == sorted(mine)
    registered = kraft(world_at(Stage.KRAFT_MODE)).brokers[BROKER].log_dirs
    assert {directory for request in controller.sent for directory in request} <= set(map(str, registered))


def test_what_the_metadata_says_already_is_not_sent() -> None:
    """After a kill, nothing is sent twice."""
    cluster = in_hybrid()
    cluster.assigned.add(int(BROKER))
    controller = Controller(cluster)
    said = Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    assert controller.epochs == []
    assert said == "0 replicas in 0 requests, 0 retried"


def test_a_stale_broker_epoch_is_retried_with_the_epoch_read_again() -> None:
    """The registration moved between reading and sending."""
    epochs = iter((176, 176, 854, 854, 854, 854, 854))

    def moved(world: World) -> World:
        view = kraft(world)
        fresh = replace(view.brokers[BROKER], epoch=next(epochs, 854))
        return with_kraft(world, brokers={**view.brokers, BROKER: fresh})

    stale = StaleBrokerEpoch("STALE_BROKER_EPOCH (77)")
    controller = driven([stale, stale], moved)
    assert len(controller.epochs) == 3
    assert controller.epochs[0] == 176
    assert controller.epochs[-1] == 854


def test_retries_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that refuses for ever is an error with its own name."""
    monkeypatch.setattr("migrate.run.drive.LOG.info", lambda *_: None)
    with pytest.raises(StaleBrokerEpoch):
        driven([StaleBrokerEpoch("77")] * (ATTEMPTS + 1))


def test_other_errors_are_not_retried() -> None:
    """A missing right does not come by asking again."""
    with pytest.raises(AccessRefused):
        driven([AccessRefused("31"), 0])


def test_a_refused_replica_is_an_error() -> None:
    """UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER and the like: the replica and the code are named."""
    with pytest.raises(AssignmentRefused, match="error 100"):
        driven([100])


def test_a_change_of_leader_stops_it() -> None:
    """Something else is going on: nothing more is sent."""
    looks = iter((3000, 3001, 3001, 3001, 3001))

    def failover(world: World) -> World:
        quorum = live(world).quorum
        assert isinstance(quorum, Quorum)
        return with_live(world, quorum=replace(quorum, leader=NodeId(next(looks, 3001))))

    with pytest.raises(DriveStopped, match="changed from 3000 to 3001"):
        driven(bend=failover)


def test_a_partition_that_loses_a_replica_stops_it() -> None:
    """An ISR member that goes while directories are sent may be gone because of them."""
    sick = PartitionHealth("orders", 3, 1, (1,), (1, 2))

    def shrunk(world: World) -> World:
        answers = {
            node: answer if isinstance(answer, Unknown) else replace(answer, unhealthy=(sick,))
            for node, answer in live(world).metadata.items()
        }
        return with_live(world, metadata=answers)

    with pytest.raises(DriveStopped, match="orders-3"):
        driven(bend=shrunk)


def test_dual_write_that_does_not_pass_stops_it() -> None:
    """The metadata has it, ZooKeeper has not: the pace is dual write's."""

    def frozen(world: World) -> World:
        return replace(world, zookeeper=replace(zk(world), migration=NoZnode()))

    with pytest.raises(DriveStopped, match="dual write"):
        driven(bend=frozen)


@pytest.mark.parametrize(
    "bend",
    [
        lambda world: replace(world, kraft=Unknown("no controller answers")),
        lambda world: replace(world, disks=Unknown("no rights")),
        lambda world: with_kraft(world, brokers={}),
        lambda world: with_live(world, quorum=Unknown("no leader")),
    ],
    ids=["no metadata", "no disks", "not registered", "no leader"],
)
def test_without_proof_nothing_is_sent(bend: Callable[[World], World]) -> None:
    """What is unknown is never sent, and never counts as nothing to send."""
    cluster = in_hybrid()
    cluster.bend = bend
    controller = Controller(cluster)
    with pytest.raises(DriveStopped):
        Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    assert controller.epochs == []
