"""Policy `drive` at work: sent once, paced, retried on typed errors only, stopped when the cluster moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from migrate.errors import (
    AccessRefused,
    AnswerTimeout,
    AssignmentRefused,
    ConnectionClosed,
    DriveStopped,
    NotController,
    ReplicaMoved,
    StaleBrokerEpoch,
)
from migrate.model.ids import NodeId
from migrate.model.ledger import LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MigrationZnode, NoZnode, PartitionHealth, Quorum
from migrate.model.world import Need, World
from migrate.run.drive import ATTEMPTS, MOST, Driver
from tests.testing.simulated import FakeClock, Killed, SimulatedCluster
from tests.testing.worlds import BROKERS, kraft, live, with_kraft, with_live, world_at, zk

BROKER = NodeId(2)
Sent = Mapping[str, Sequence[tuple[str, int]]]


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute is 300 looks."""
    monkeypatch.setattr("migrate.run.drive.PACE_SECONDS", 5.0)


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
    only: bool = False  # does the metadata take what was sent, and nothing besides?
    taken: set[tuple[str, int]] = field(default_factory=set)

    def assign(self, broker: NodeId, broker_epoch: int, assignments: Sent) -> Mapping[tuple[str, int], int]:
        """Play the next line of the script."""
        self.epochs.append(broker_epoch)
        line = self.script.pop(0) if self.script else 0
        if isinstance(line, Exception):
            raise line
        if line == 0:
            self.sent.append(assignments)
            self.taken |= {replica for replicas in assignments.values() for replica in replicas}
            if not self.only:
                self.cluster.assigned.add(int(broker))
            self.offset += 1
        return {replica: line for replicas in assignments.values() for replica in replicas}


def in_dual_write(controller: Controller, bend: Callable[[World], World], behind: Callable[[], int]) -> None:
    """/migration follows the metadata at that distance; rows that the controller took are VERIFIED."""

    def dual_write(world: World) -> World:
        znode = MigrationZnode(controller.offset - behind(), 1, 3000, 2, 7)
        world = replace(world, zookeeper=replace(zk(world), migration=znode))
        if not isinstance(world.kraft, Unknown):
            world = with_kraft(world, offset=controller.offset, high_watermark=controller.offset + 1)
        return bend(world)

    controller.cluster.bend = dual_write


@dataclass(slots=True)
class Seen:
    """What the cluster shows, with a change to each of the broker's rows of the ledger: None for one that is gone."""

    cluster: SimulatedCluster
    row: Callable[[LedgerRow], LedgerRow | None]

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """A look."""
        world = self.cluster.observe(needs, facts)
        if isinstance(world.ledger, Unknown):
            return world
        rows = ((row, self.row(row) if row.broker == BROKER else row) for row in world.ledger.rows)
        return replace(world, ledger=replace(world.ledger, rows=tuple(now for _, now in rows if now is not None)))


def one_by_one(controller: Controller) -> Seen:
    """The metadata has what the controller took, and nothing besides."""
    controller.only = True

    def row(found: LedgerRow) -> LedgerRow:
        taken = (found.topic_id, found.partition) in controller.taken
        return replace(found, state=ReplicaState.VERIFIED) if taken else found

    return Seen(controller.cluster, row)


def driven(
    script: Sequence[Exception | int] = (),
    bend: Callable[[World], World] = lambda world: world,
    behind: Callable[[], int] = lambda: 0,
) -> Controller:
    """Drive broker 2 of a cluster in hybrid; the controller it spoke to."""
    cluster = in_hybrid()
    controller = Controller(cluster, list(script))
    in_dual_write(controller, bend, behind)
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


@pytest.mark.parametrize(
    ("code", "says", "why"),
    [
        (35, "UNSUPPORTED_VERSION (35)", "metadata.version is below 3.7-IV2"),
        (56, "KAFKA_STORAGE_ERROR (56)", "the active controller's log says more"),
        (-7, "error -7", "the active controller's log says more"),
    ],
)
def test_a_refused_replica_is_an_error_that_explains_itself(code: int, says: str, why: str) -> None:
    """The replica, the code by its name, and what it means; no retry mends it."""
    with pytest.raises(AssignmentRefused) as caught:
        driven([code, 0])
    assert says in caught.value.what
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("code", "why"), [(100, "deleted in between"), (3, "does not exist any more"), (6, "it was reassigned in between")]
)
def test_replicas_that_the_controller_does_not_know_any_more_are_looked_up_again(code: int, why: str) -> None:
    """The metadata says so a moment later; then they are sent no more, and the rest is."""
    cluster = in_hybrid()
    controller = Controller(cluster, [code])
    in_dual_write(controller, lambda world: world, lambda: 0)
    first: list[LedgerRow] = []

    def deleted(row: LedgerRow) -> LedgerRow | None:
        first.append(row)
        return None if controller.epochs and row.partition == first[0].partition else row

    Driver(Seen(cluster, deleted), controller, FakeClock(), lambda: None).drive(BROKER)
    assert (len(controller.epochs), len(controller.sent)) == (2, 1)
    assert first[0].partition not in {number for _, number in controller.taken}
    assert controller.taken
    with pytest.raises(ReplicaMoved) as caught:  # the metadata goes on saying that they are there
        driven([code] * ATTEMPTS)
    assert why in caught.value.why


@pytest.mark.parametrize("error", [NotController("41"), AnswerTimeout("no answer"), ConnectionClosed("gone")])
def test_typed_errors_are_retried_and_what_was_taken_is_not_sent_again(error: Exception) -> None:
    """A request whose answer was lost may have been taken: the look before the retry says so."""
    assert len(driven([error]).epochs) == 2
    cluster = in_hybrid()

    class Lost(Controller):
        """Takes the request, and its answer is lost."""

        def assign(self, broker: NodeId, broker_epoch: int, assignments: Sent) -> Mapping[tuple[str, int], int]:
            """As the network does it."""
            super().assign(broker, broker_epoch, assignments)
            raise error

    controller = Lost(cluster)
    in_dual_write(controller, lambda world: world, lambda: 0)
    said = Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    assert len(controller.sent) == 1
    assert said == f"{len(controller.taken)} replicas in 1 request, 1 retried"


@pytest.mark.parametrize("most", [1, 2, 5000])
def test_requests_are_as_small_as_asked_for_and_each_waits_for_the_one_before(most: int) -> None:
    """When a request is sent, /migration has passed every record of those before it: never more than one behind."""
    cluster = in_hybrid()
    behind: list[int] = []
    lag = {"now": 0}

    class Watched(Controller):
        """Writes down how far /migration was behind when it was asked."""

        def assign(self, broker: NodeId, broker_epoch: int, assignments: Sent) -> Mapping[tuple[str, int], int]:
            """And dual write falls three looks behind with each."""
            behind.append(lag["now"])
            lag["now"] = 3
            return super().assign(broker, broker_epoch, assignments)

    def follow() -> int:
        lag["now"] = max(lag["now"] - 1, 0)
        return lag["now"]

    controller = Watched(cluster)
    in_dual_write(controller, lambda world: world, follow)
    told: list[str] = []
    seen = one_by_one(controller)
    driver = Driver(seen, controller, FakeClock(), lambda: None, most=most, tell=lambda _, text: told.append(text))
    driver.drive(BROKER)
    total = len(controller.taken)
    assert told[0] == f"request 1 with {min(most, total)} of {total} replicas"
    assert len(told) == len(controller.sent)
    assert len(controller.sent) == -(-total // min(most, MOST))
    assert sum(len(rows) for request in controller.sent for rows in request.values()) == total
    assert set(behind) == {0}


def test_killed_between_two_requests_the_next_process_sends_the_rest_alone() -> None:
    """The crash point behind each answer: nothing is sent twice, nothing is left out."""
    cluster = in_hybrid()
    controller = Controller(cluster)
    in_dual_write(controller, lambda world: world, lambda: 0)
    seen = one_by_one(controller)

    def reached(label: str) -> None:
        if label == f"sent:{int(BROKER)}:2":
            raise Killed

    with pytest.raises(Killed):
        Driver(seen, controller, FakeClock(), lambda: None, reached, 1).drive(BROKER)
    assert len(controller.taken) == 2
    said = Driver(seen, controller, FakeClock(), lambda: None, most=1).drive(BROKER)
    sent = [row for request in controller.sent for rows in request.values() for row in rows]
    assert len(sent) == len(set(sent)) == len(controller.taken)
    assert said.startswith(f"{len(sent) - 2} replicas")


def test_after_finalize_nobody_waits_for_zookeeper() -> None:
    """There is no dual write: the metadata alone is the pace."""

    def finalized(world: World) -> World:
        return replace(
            with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), zookeeper=Unknown("it is gone")
        )

    assert len(driven(bend=finalized).sent) == 1


def test_a_change_of_leader_stops_it() -> None:
    """Something else is going on: nothing more is sent."""
    looks = iter((3000, 3001, 3001, 3001, 3001))

    def failover(world: World) -> World:
        quorum = live(world).quorum
        assert isinstance(quorum, Quorum)
        return with_live(world, quorum=replace(quorum, leader=NodeId(next(looks, 3001))))

    with pytest.raises(DriveStopped, match="changed from 3000 to 3001"):
        driven(bend=failover)


def test_a_request_that_was_refused_is_not_sent_again_to_another_leader() -> None:
    """NOT_CONTROLLER, and the next look shows who leads now; an election without an end is waited for."""
    looks = iter((3000, None, 3000, 3000, 3000, 3000))

    def failover(world: World) -> World:
        leader = next(looks, 3001)
        quorum = live(world).quorum
        assert isinstance(quorum, Quorum)
        seen = Unknown("no leader") if leader is None else replace(quorum, leader=NodeId(leader))
        return with_live(world, quorum=seen)

    assert len(driven([NotController("41")], failover).epochs) == 2
    looks = iter((3000, 3001))
    with pytest.raises(DriveStopped, match="changed from 3000 to 3001"):
        driven([NotController("41"), AssertionError("it was sent")], failover)


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

    with pytest.raises(DriveStopped, match="/migration has no offset of 501"):
        driven(bend=frozen)
    with pytest.raises(DriveStopped, match="is at 500 of 501"):
        driven(behind=lambda: 1)


def test_dual_write_that_is_slow_is_waited_for_as_long_as_it_moves() -> None:
    """An hour, if it must be: what ends the wait is that nothing moves."""
    looks = iter(range(60, -99, -1))
    assert len(driven(behind=lambda: max(next(looks), 0)).sent) == 1


def test_metadata_that_does_not_take_the_assignments_stops_it() -> None:
    """The answers were all 0, and that proves nothing."""
    cluster = in_hybrid()
    controller = Controller(cluster, only=True)
    in_dual_write(controller, lambda world: world, lambda: 0)
    with pytest.raises(DriveStopped, match="the metadata did not take"):
        Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    assert len(controller.sent) == 1


def test_a_cluster_that_is_not_whole_is_sent_nothing_at_all() -> None:
    """Not one request: the first one asks too."""
    sick = PartitionHealth("orders", 3, 1, (1,), (1, 2))
    cluster = in_hybrid()
    controller = Controller(cluster)
    cluster.bend = lambda world: with_live(
        world,
        metadata={
            node: answer if isinstance(answer, Unknown) else replace(answer, unhealthy=(sick,))
            for node, answer in live(world).metadata.items()
        },
    )
    with pytest.raises(DriveStopped, match="orders-3"):
        Driver(cluster, controller, FakeClock(), lambda: None).drive(BROKER)
    assert controller.epochs == []


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
