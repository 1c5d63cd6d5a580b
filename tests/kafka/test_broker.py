"""What brokers say: counts and exceptions, nothing of what is whole."""

from __future__ import annotations

from typing import Any

import pytest

from migrate.errors import AccessRefused
from migrate.kafka.broker import describe_log_dirs, fold, metadata
from migrate.kafka.connection import Connection, Limits
from migrate.model.inventory import Access
from migrate.model.views import LogDirAnswer, PartitionHealth
from tests.kafka.fake_node import FakeNode
from tests.testing.kraft_cluster import BROKER, KraftCluster, wait_for

QUICK = Limits(connect_seconds=0.3, answer_seconds=0.3)


def partition(index: int, **other: Any) -> dict[str, Any]:
    """A whole partition, but for what is said otherwise."""
    whole = {
        "errorCode": 0,
        "partitionIndex": index,
        "leaderId": 1,
        "leaderEpoch": 3,
        "replicaNodes": [1, 2, 0],
        "isrNodes": [0, 1, 2],
        "offlineReplicas": [],
    }
    return whole | other


def answer(topics: dict[str, list[dict[str, Any]]], controller: int = 2, error: int = 0) -> dict[str, Any]:
    """A Metadata answer of three brokers."""
    return {
        "brokers": [{"nodeId": node, "host": "h", "port": 1, "rack": None} for node in (2, 0, 1)],
        "clusterId": "c",
        "controllerId": controller,
        "topics": [
            {"errorCode": error, "name": name, "topicId": "A" * 22, "partitions": partitions}
            for name, partitions in topics.items()
        ],
    }


def test_whole_partitions_are_counted_only() -> None:
    """An ISR in another order is whole."""
    found = fold(answer({"t": [partition(0), partition(1)], "u": [partition(0)]}), (2,))
    assert (found.brokers, found.partitions, found.unhealthy, found.controller_ids) == ((0, 1, 2), 3, (), (2,))


@pytest.mark.parametrize(
    "other",
    [
        {"isrNodes": [1, 2]},
        {"leaderId": -1, "errorCode": 5},
        {"leaderId": -1},
        {"offlineReplicas": [0]},
        {"errorCode": 72},
        {"isrNodes": []},
    ],
)
def test_a_partition_that_is_not_whole_is_told(other: dict[str, Any]) -> None:
    """Short ISR, no leader, a replica offline, any error: each alone is enough."""
    found = fold(answer({"t": [partition(0), partition(1, **other)]}), (2,))
    (only,) = found.unhealthy
    assert (only.topic, only.partition) == ("t", 1)
    assert only.isr == tuple(other.get("isrNodes", [0, 1, 2]))
    assert only.replicas == (1, 2, 0)
    assert only.leader == other.get("leaderId", 1)


def test_a_topic_that_answers_with_an_error_is_not_healthy() -> None:
    """It has no partitions to show, which must not look like none that is wrong."""
    assert fold(answer({"t": []}, error=29), (2,)).unhealthy == (PartitionHealth("t", -1, -1, (), ()),)


def test_the_controllers_id_is_asked_as_often_as_wanted() -> None:
    """All topics once; then brief requests, whose answers are all kept: one of them proves nothing."""
    ids = iter([2, 0, 2, 1, 2])
    node = FakeNode({"Metadata": lambda _version, body: answer({"t": [partition(0)]}, next(ids)) | _topics(body)})
    with node, Connection(node.address, Access(), QUICK) as connection:
        found = metadata(connection, controller_samples=5)
    assert found.controller_ids == (2, 0, 2, 1, 2)
    assert found.partitions == 1
    bodies = [body for name, _, body in node.seen if name == "Metadata"]
    assert [body["topics"] for body in bodies] == [None, [], [], [], []]
    assert not any(body["allowAutoTopicCreation"] for body in bodies)


def _topics(body: dict[str, Any]) -> dict[str, Any]:
    return {} if body["topics"] is None else {"topics": []}


def test_log_directories_are_told_with_their_errors_and_moves() -> None:
    """An offline one has an error and nothing in it; future replicas are named, not counted."""
    parts = [
        {"partitionIndex": index, "partitionSize": 1, "offsetLag": 0, "isFutureKey": index == 9} for index in (0, 9, 4)
    ]
    results = [
        {"errorCode": 56, "logDir": "/d1", "topics": []},
        {"errorCode": 0, "logDir": "/d0", "topics": [{"name": "t", "partitions": parts}]},
    ]
    node = FakeNode({"DescribeLogDirs": lambda _v, _b: {"errorCode": 0, "results": results}})
    with node, Connection(node.address, Access(), QUICK) as connection:
        found = describe_log_dirs(connection)
    assert found == (LogDirAnswer("/d0", 0, 2, ("t-9",)), LogDirAnswer("/d1", 56, 0, ()))


def test_no_right_to_log_directories_is_not_an_empty_answer() -> None:
    """Kafka answers with error 31 and no directories."""
    node = FakeNode({"DescribeLogDirs": lambda _v, _b: {"errorCode": 31, "results": []}})
    with node, Connection(node.address, Access(), QUICK) as connection, pytest.raises(AccessRefused):
        describe_log_dirs(connection)


@pytest.mark.kafka
def test_a_real_broker_tells_its_topics_and_directories(kraft_cluster: KraftCluster) -> None:
    """Every replica lies in one of the configured directories."""
    kraft_cluster.create_topic("told", 5)
    with Connection(kraft_cluster.inventory.brokers[0].address, Access()) as connection:
        found = metadata(connection, controller_samples=3)
        wait_for("five logs", lambda: sum(entry.replicas for entry in describe_log_dirs(connection)) >= 5)
        directories = describe_log_dirs(connection)
    assert found.brokers == (BROKER,)
    assert found.partitions >= 5
    assert [entry.path for entry in directories] == [str(kraft_cluster.data(BROKER, index)) for index in range(3)]
    assert {entry.error for entry in directories} == {0}
