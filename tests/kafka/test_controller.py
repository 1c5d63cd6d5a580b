"""The active controller: its own word alone counts, and what is sent to it is sent once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import (
    AccessRefused,
    AnswerBroken,
    KafkaRefused,
    NoActiveController,
    NotController,
    NotLeader,
    Retryable,
    StaleBrokerEpoch,
)
from migrate.kafka.connection import Connection, Limits
from migrate.kafka.controller import MAX_ASSIGNMENTS, ActiveController, describe_quorum, distinct
from migrate.kraft.fetch import MetadataReader
from migrate.model.ids import LOST, MIGRATING, DirectoryId, NodeId
from migrate.model.inventory import Access, ControllerNode, Inventory
from migrate.model.secrets import Digester
from migrate.model.views import Quorum, Voter
from migrate.protocol.loader import Values
from tests.kafka.fake_node import FakeNode, Silence
from tests.testing.kraft_cluster import BROKER, CONTROLLERS, KraftCluster, wait_for

QUICK = Limits(connect_seconds=0.3, answer_seconds=0.3)
D0, D1 = "fLUdTjFFJ_w2ms3XPW9eXg", "MwHvBO4gsYotXCbgBpe76Q"
T0, T1 = "b1X1a2lVTUuEZKTmypRKzw", "xo4WO4jXRNuHkeFyAKq2ig"


def inventory_of(*addresses: str) -> Inventory:
    """Controllers 3000, 3001, ... at these addresses."""
    controllers = tuple(
        ControllerNode(NodeId(3000 + index), "h", address, "", "") for index, address in enumerate(addresses)
    )
    return Inventory("fake", "", "", (), controllers, "CTL", Access(), Access(), None, "none")


def quorum_answer(leader: int, epoch: int = 5, error: int = 0, top: int = 0) -> Callable[[int, Values], Values]:
    """A DescribeQuorum answer."""
    voter = {"replicaDirectoryId": "A" * 22, "lastFetchTimestamp": -1}
    seen = {3000: 5000, 3001: 6000, 3002: -1}  # the leader's clock; 3002 was never caught up
    voters = [
        voter | {"replicaId": replica, "logEndOffset": 100 - replica % 10, "lastCaughtUpTimestamp": seen[replica]}
        for replica in (3002, 3000, 3001)
    ]
    partition = {
        "partitionIndex": 0,
        "errorCode": error,
        "errorMessage": None,
        "leaderId": leader,
        "leaderEpoch": epoch,
        "highWatermark": 90,
        "currentVoters": [] if error else voters,
        "observers": [],
    }
    topics = [{"topicName": "__cluster_metadata", "partitions": [partition]}]
    return lambda _version, _body: {"errorCode": top, "errorMessage": None, "topics": topics, "nodes": []}


@pytest.fixture
def nodes() -> Iterator[list[FakeNode]]:
    """Three controllers; the second leads."""
    with ExitStack() as stack:
        found = [stack.enter_context(FakeNode({"DescribeQuorum": quorum_answer(0, error=6)})) for _ in range(3)]
        found[1].scripts["DescribeQuorum"] = quorum_answer(3001)
        yield found


@pytest.fixture
def active(nodes: list[FakeNode]) -> ActiveController:
    """The client for them."""
    return ActiveController(inventory_of(*(node.address for node in nodes)), QUICK)


# -- who leads ---------------------------------------------------------------------------------------------------
def test_the_leader_is_found_by_its_own_answer(active: ActiveController, nodes: list[FakeNode]) -> None:
    """And asked first from then on."""
    behind = ((3000, 1000), (3001, 0), (3002, -1))
    expected = Quorum(NodeId(3001), 5, 90, tuple(Voter(NodeId(id_), 100 - id_ % 10, late) for id_, late in behind))
    assert active.quorum() == expected
    assert nodes[0].connections == 1
    assert active.quorum() == expected
    assert nodes[0].connections == 1
    assert nodes[2].connections == 0


def test_voters_and_observers_of_a_dynamic_quorum_are_told_apart_by_their_directory_ids() -> None:
    """A controller that was formatted with another id is both; the zero id of a static quorum is none."""
    ids = [str(DirectoryId.from_bytes(bytes([number]) * 16)) for number in (1, 2, 3)]

    def state(node: int, identity: str, end: int, late: int) -> dict[str, object]:
        caught_up = {"lastFetchTimestamp": -1, "lastCaughtUpTimestamp": 5000 - late if late >= 0 else -1}
        return {"replicaId": node, "replicaDirectoryId": identity, "logEndOffset": end} | caught_up

    answer = quorum_answer(3001)(2, {})
    (partition,) = answer["topics"][0]["partitions"]
    partition["currentVoters"] = [state(3001, ids[1], 100, 0), state(3000, ids[0], -1, -1)]
    partition["observers"] = [state(3000, ids[2], 99, 400), state(1, str(MIGRATING), 99, 500)]
    with FakeNode({"DescribeQuorum": lambda *_: answer}) as node, Connection(node.address, Access(), QUICK) as asked:
        found = describe_quorum(asked)
    dead, alive = found.voters
    assert (dead.directory, alive.directory) == (ids[0], ids[1])
    observer = Voter(NodeId(3000), 99, 400, ids[2])
    assert found.observers == (Voter(NodeId(1), 99, 500), observer)
    assert (found.instead_of(dead), found.instead_of(alive)) == (observer, None)
    assert found.instead_of(replace(dead, caught_up_ms=10)) is None, "one that was removed shows for minutes"


def test_a_followers_leader_id_is_never_read(nodes: list[FakeNode]) -> None:
    """It answers 0 on top, error 6 below, and leaderId 0, which is a broker's id."""
    with Connection(nodes[0].address, Access(), QUICK) as connection, pytest.raises(NotLeader):
        describe_quorum(connection)


@pytest.mark.slow
def test_without_a_leader_every_controllers_answer_is_told(active: ActiveController, nodes: list[FakeNode]) -> None:
    """One follows, one is silent, one may not be asked: all of it stands in the error."""
    nodes[1].scripts["DescribeQuorum"] = lambda _version, _body: Silence()
    nodes[2].scripts["DescribeQuorum"] = quorum_answer(0, top=31)
    with pytest.raises(NoActiveController) as caught:
        active.quorum()
    assert "3000: this controller does not lead" in caught.value.why
    assert "3001: no answer to DescribeQuorum in time" in caught.value.why
    assert "3002: DescribeQuorum was answered with CLUSTER_AUTHORIZATION_FAILED (31)" in caught.value.why
    assert isinstance(caught.value, Retryable)


@pytest.mark.parametrize(("top", "partition", "kind"), [(31, 0, AccessRefused), (0, 42, KafkaRefused)])
def test_other_errors_of_describe_quorum_are_not_a_follower(
    nodes: list[FakeNode], top: int, partition: int, kind: type[Exception]
) -> None:
    """A lacking right is no election."""
    nodes[1].scripts["DescribeQuorum"] = quorum_answer(3001, error=partition, top=top)
    with Connection(nodes[1].address, Access(), QUICK) as connection, pytest.raises(kind) as caught:
        describe_quorum(connection)
    assert not isinstance(caught.value, NotLeader)


def test_an_answer_without_the_partition_is_broken(nodes: list[FakeNode]) -> None:
    """Nothing is made up for it."""
    nodes[1].scripts["DescribeQuorum"] = lambda _v, _b: {
        "errorCode": 0,
        "errorMessage": None,
        "topics": [],
        "nodes": [],
    }
    with Connection(nodes[1].address, Access(), QUICK) as connection, pytest.raises(AnswerBroken):
        describe_quorum(connection)


def test_an_answer_with_an_id_that_no_node_has_is_broken(nodes: list[FakeNode]) -> None:
    """A typed error: one node's answer does not end the look at the others."""
    nodes[1].scripts["DescribeQuorum"] = quorum_answer(-1)
    with Connection(nodes[1].address, Access(), QUICK) as connection, pytest.raises(AnswerBroken, match="negative id"):
        describe_quorum(connection)


# -- assigning ---------------------------------------------------------------------------------------------------
def assigned(code: int = 0, top: int = 0, drop: int = 0) -> Callable[[int, Values], Values]:
    """An AssignReplicasToDirs answer that names all that was asked, but for the last `drop` of each topic."""

    def answer(_version: int, body: Values) -> Values:
        directories = [
            {
                "id": directory["id"],
                "topics": [
                    {
                        "topicId": topic["topicId"],
                        "partitions": [
                            {"partitionIndex": entry["partitionIndex"], "errorCode": code}
                            for entry in topic["partitions"][: len(topic["partitions"]) - drop]
                        ],
                    }
                    for topic in directory["topics"]
                ],
            }
            for directory in body["directories"]
        ]
        return {"errorCode": top, "directories": [] if top else directories}

    return answer


def sent(node: FakeNode) -> list[Values]:
    """The AssignReplicasToDirs requests that came."""
    return [body for name, _, body in node.seen if name == "AssignReplicasToDirs"]


def entries(body: Values) -> list[tuple[str, str, int]]:
    """(directory, topic id, partition) of a request."""
    return [
        (directory["id"], topic["topicId"], entry["partitionIndex"])
        for directory in body["directories"]
        for topic in directory["topics"]
        for entry in topic["partitions"]
    ]


def test_each_replica_is_sent_once_with_its_directory(active: ActiveController, nodes: list[FakeNode]) -> None:
    """Kafka writes a record for every repetition."""
    nodes[1].scripts["AssignReplicasToDirs"] = assigned()
    answer = active.assign(NodeId(2), 177, {D0: [(T0, 0), (T0, 0), (T1, 3)], D1: [(T0, 1)]})
    assert answer == {(T0, 0): 0, (T0, 1): 0, (T1, 3): 0}
    (body,) = sent(nodes[1])
    assert (body["brokerId"], body["brokerEpoch"]) == (2, 177)
    assert sorted(entries(body)) == sorted([(D0, T0, 0), (D0, T1, 3), (D1, T0, 1)])


def test_no_request_holds_more_than_kafkas_own_senders_put_into_one(
    active: ActiveController, nodes: list[FakeNode]
) -> None:
    """5,000 replicas go in three requests, and all answers come back."""
    nodes[1].scripts["AssignReplicasToDirs"] = assigned(code=100)
    wanted = {D0: [(T0, number) for number in range(3000)], D1: [(T1, number) for number in range(2000)]}
    answer = active.assign(NodeId(2), 177, wanted)
    assert [len(entries(body)) for body in sent(nodes[1])] == [MAX_ASSIGNMENTS, MAX_ASSIGNMENTS, 500]
    assert len(answer) == 5000
    assert set(answer.values()) == {100}


def test_nothing_to_send_sends_nothing(active: ActiveController, nodes: list[FakeNode]) -> None:
    """Not even a connection."""
    assert active.assign(NodeId(2), 177, {D0: []}) == {}
    assert sum(node.connections for node in nodes) == 0


@pytest.mark.parametrize(
    ("top", "kind", "retryable"),
    [(77, StaleBrokerEpoch, True), (41, NotController, True), (31, AccessRefused, False), (35, KafkaRefused, False)],
)
def test_errors_of_the_whole_request_are_typed(
    active: ActiveController, nodes: list[FakeNode], top: int, kind: type[Exception], retryable: bool
) -> None:
    """An epoch that moved and a controller that moved may be tried again, after looking again; once it was sent."""
    nodes[1].scripts["AssignReplicasToDirs"] = assigned(top=top)
    with pytest.raises(kind) as caught:
        active.assign(NodeId(2), 177, {D0: [(T0, 0)]})
    assert isinstance(caught.value, Retryable) == retryable
    assert len(sent(nodes[1])) == 1


def test_an_answer_that_forgets_a_replica_is_broken(active: ActiveController, nodes: list[FakeNode]) -> None:
    """Silence about one is no success."""
    nodes[1].scripts["AssignReplicasToDirs"] = assigned(drop=1)
    with pytest.raises(AnswerBroken, match="1 of 3 replicas"):
        active.assign(NodeId(2), 177, {D0: [(T0, 0), (T0, 1), (T0, 2)]})


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({D0: [(T0, 0)], D1: [(T0, 0)]}, "two directories"),
        ({str(LOST): [(T0, 0)]}, "reserved"),
        ({"nonsense": [(T0, 0)]}, "no Kafka UUID"),
    ],
)
def test_what_would_harm_is_never_sent(assignments: dict[str, list[tuple[str, int]]], message: str) -> None:
    """Kafka takes all of these with success: a wrong directory fails the replica over."""
    with pytest.raises(ValueError, match=message):
        distinct(assignments)


# -- on real Kafka -----------------------------------------------------------------------------------------------
def directories_of(cluster: KraftCluster, topic: str, min_offset: int | None = None) -> dict[int, str]:
    """Partition -> directory in the metadata."""
    with MetadataReader(cluster.inventory, Digester()) as reader:
        found = reader.view(min_offset).partitions
    rows = zip(found.topic, found.partition, found.directories, strict=True)
    return {partition: directories[0] for name, partition, directories in rows if name == topic}


def ids_of(cluster: KraftCluster, topic: str) -> tuple[str, int]:
    """Topic id, and the broker's epoch."""
    with MetadataReader(cluster.inventory, Digester()) as reader:
        view = reader.view()
    return view.partitions.topic_id[view.partitions.topic.index(topic)], view.brokers[BROKER].epoch


@pytest.mark.kafka
def test_a_real_leader_answers_and_real_followers_do_not(kraft_cluster: KraftCluster) -> None:
    """Exactly one of three controllers leads, and all three are voters."""
    inventory = kraft_cluster.inventory
    quorum = ActiveController(inventory).quorum()
    assert [voter.id for voter in quorum.voters] == list(CONTROLLERS)
    assert quorum.high_watermark > 0
    for node in inventory.controllers:
        with Connection(node.address, Access()) as connection:
            if node.id == quorum.leader:
                assert describe_quorum(connection).leader == node.id
            else:
                with pytest.raises(NotLeader):
                    describe_quorum(connection)


@pytest.mark.kafka
def test_real_kafka_takes_true_directories_and_refuses_wrong_epochs_and_replicas(kraft_cluster: KraftCluster) -> None:
    """0 for a true one (no record), 77 for another epoch, 100 and 3 a replica for what does not exist."""
    kraft_cluster.create_topic("assigned", 3)
    wait_for(
        "the broker reported its directories",
        lambda: all(id_[:20] != "A" * 20 for id_ in directories_of(kraft_cluster, "assigned").values()),
    )
    topic_id, epoch = ids_of(kraft_cluster, "assigned")
    true = directories_of(kraft_cluster, "assigned")
    active = ActiveController(kraft_cluster.inventory)
    by_directory: dict[str, list[tuple[str, int]]] = {}
    for partition, directory in true.items():
        by_directory.setdefault(directory, []).append((topic_id, partition))
    assert active.assign(BROKER, epoch, by_directory) == {(topic_id, partition): 0 for partition in true}
    with pytest.raises(StaleBrokerEpoch):
        active.assign(BROKER, epoch + 1, by_directory)
    first = true[0]
    assert active.assign(BROKER, epoch, {first: [(T0, 0), (topic_id, 99)]}) == {(T0, 0): 100, (topic_id, 99): 3}
    assert directories_of(kraft_cluster, "assigned") == true


@pytest.mark.kafka
def test_real_kafka_elects_preferred_leaders_or_says_that_it_need_not(kraft_cluster: KraftCluster) -> None:
    """84 where the preferred replica leads already, 3 where there is no such partition."""
    kraft_cluster.create_topic("elected", 1)
    active = ActiveController(kraft_cluster.inventory)
    wait_for("a leader", lambda: active.elect_leaders({"elected": [0]}) == {("elected", 0): 84})
    assert active.elect_leaders({"elected": [7]}) == {("elected", 7): 3}


@pytest.mark.kafka
def test_after_the_leaders_death_the_next_one_is_found(kraft_cluster: KraftCluster, tmp_path: Path) -> None:
    """A paused leader is not waited for longer than the limits, and once the others elected, they answer."""
    active = ActiveController(kraft_cluster.inventory, QUICK)
    before = active.quorum()
    kraft_cluster.signal(before.leader, signal.SIGSTOP)
    try:
        wait_for("another leader", lambda: leader_of(active) not in (None, before.leader))
        assert active.quorum().leader_epoch > before.leader_epoch
    finally:
        kraft_cluster.signal(before.leader, signal.SIGCONT)
    kraft_cluster.wait_until_ready()


def leader_of(active: ActiveController) -> NodeId | None:
    """The leader now, None while there is none."""
    try:
        return active.quorum().leader
    except NoActiveController:
        return None
