"""The dead id that holds the copy open stands in one assignment, and goes again without a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from migrate.errors import LabProofFailed
from migrate.lab import rollback_proofs
from migrate.lab.seed_data import LOAD_TOPICS, TOPICS
from migrate.zookeeper.client import ZookeeperClient
from tests.testing.zookeeper_server import running_server

pytestmark = pytest.mark.zookeeper
PATH = f"/brokers/topics/{rollback_proofs.TOPIC}"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperClient]:
    """A session with a topic's znode."""
    with running_server(tmp_path_factory.mktemp("held")) as server, server.client() as session:
        session.kazoo.ensure_path("/brokers/topics")
        yield session


def test_hold_and_release_leave_the_assignment_as_it_was(client: ZookeeperClient) -> None:
    """Each twice: done once, it is not done again."""
    before = {"version": 3, "topic_id": "x", "partitions": {"0": [0, 1, 2], "1": [1, 2, 0]}}
    client.kazoo.create(PATH, json.dumps(before).encode())
    for _ in range(2):
        rollback_proofs.hold_copy(client)
        data, stat = client.kazoo.get(PATH)
        assert json.loads(data)["partitions"] == {"0": [0, 1, 2, rollback_proofs.DEAD], "1": [1, 2, 0]}
        assert stat.version == 1
    for _ in range(2):
        rollback_proofs.release_copy(client)
        data, stat = client.kazoo.get(PATH)
        assert json.loads(data) == before
        assert stat.version == 2
    client.kazoo.delete(PATH)


def test_without_its_topic_nothing_is_held(client: ZookeeperClient) -> None:
    """Said, not guessed."""
    with pytest.raises(LabProofFailed, match="is not there"):
        rollback_proofs.hold_copy(client)


def test_the_topic_is_one_of_the_labs_and_none_of_the_loads() -> None:
    """With several replicas."""
    (topic,) = [one for one in TOPICS if one.name == rollback_proofs.TOPIC]
    assert topic.replication > 1
    assert topic.name not in LOAD_TOPICS
