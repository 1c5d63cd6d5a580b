"""One look at all nodes: every part known, or Unknown with its reason, by itself, and soon."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from typing import Any

import pytest

from migrate.checks.releases import least_release
from migrate.errors import AccessRefused, AnswerBroken, KafkaRefused
from migrate.kafka.connection import Connection, KeptConnections, Limits
from migrate.kafka.live import (
    Wants,
    applied_configs,
    describe_log_dirs,
    described,
    fold,
    look,
    metadata,
    protocol_version,
    protocol_versions,
)
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, Inventory, SecretCommand, SecretFile
from migrate.model.outcome import Denied, Unknown
from migrate.model.views import LogDirAnswer, MetadataAnswer, NodeAnswer, PartitionHealth, Quorum
from tests.kafka.fake_node import Close, FakeNode, Raw, Silence, served
from tests.kafka.test_controller import inventory_of, quorum_answer
from tests.testing.kraft_cluster import BROKER, CONTROLLERS, KraftCluster, wait_for

QUICK = Limits(connect_seconds=0.3, answer_seconds=0.3)


def broker(**scripts: object) -> FakeNode:
    """A broker that answers everything, but for what is said otherwise."""
    return FakeNode(
        {
            "Metadata": lambda _v, _b: answer({"t": [partition(0)]}),
            "DescribeLogDirs": lambda _v, _b: {"errorCode": 0, "results": []},
        }
        | scripts  # type: ignore[arg-type]
    )


def told_release(answer: NodeAnswer | Unknown) -> str | None:
    """The line of releases that the advisor takes a node for."""
    assert isinstance(answer, NodeAnswer), answer
    return least_release(answer)


def with_brokers(inventory: Inventory, *addresses: str) -> Inventory:
    """The inventory with brokers 0, 1, ... at these addresses."""
    brokers = tuple(BrokerNode(NodeId(index), "h", address, "") for index, address in enumerate(addresses))
    return replace(inventory, brokers=brokers)


def test_each_part_is_unknown_by_itself() -> None:
    """A broker without the right to DescribeLogDirs still tells its metadata; a dead one tells nothing, with why."""
    denied = broker(DescribeLogDirs=lambda _v, _b: {"errorCode": 31, "results": []})
    closing = broker(Metadata=lambda _v, _b: Close())
    with denied, closing:
        found = look(with_brokers(inventory_of(), denied.address, closing.address, "127.0.0.1:1"), limits=QUICK)
    assert isinstance(found.brokers[NodeId(0)], NodeAnswer)
    assert isinstance(found.metadata[NodeId(0)], MetadataAnswer)
    log_dirs = found.log_dirs[NodeId(0)]
    assert isinstance(log_dirs, Unknown)
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in log_dirs.reason
    assert isinstance(found.brokers[NodeId(1)], NodeAnswer)
    assert isinstance(found.metadata[NodeId(1)], Unknown)
    assert isinstance(found.log_dirs[NodeId(1)], Unknown)
    dead = Unknown("127.0.0.1:1: no connection: Connection refused")
    assert (found.brokers[NodeId(2)], found.metadata[NodeId(2)], found.log_dirs[NodeId(2)]) == (dead, dead, dead)
    assert found.quorum == Unknown("the inventory names no controllers")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [Silence(), Close(), Raw(b"\0\0\0\5garbage..."), Raw(b"\xff" * 400), Raw(b"\0\0", close=True)]
)
def test_no_fault_of_any_node_comes_out_as_an_exception(fault: object) -> None:
    """Whatever comes instead of the first answer: Unknown, within the limits, for all parts."""
    bad = FakeNode({"ApiVersions": lambda _v, _b: fault})  # type: ignore[dict-item,return-value]
    began = time.monotonic()
    with bad:
        found = look(with_brokers(inventory_of(bad.address), bad.address), limits=QUICK)
    assert time.monotonic() - began < 10
    assert isinstance(found.quorum, Unknown)
    assert all(isinstance(said, Unknown) for said in (*found.brokers.values(), *found.controllers.values()))


def test_a_secret_that_cannot_be_read_is_an_answer_too() -> None:
    """A fault of ours is told like one of the world: nobody gets an exception out of a look."""
    access = Access("SASL_PLAINTEXT", "PLAIN", "tool", SecretFile("/nowhere/secret"))
    with broker() as node:
        inventory = replace(with_brokers(inventory_of(), node.address), broker_access=access)
        found = look(inventory, limits=QUICK)
    said = found.brokers[NodeId(0)]
    assert isinstance(said, Unknown)
    assert "/nowhere/secret" in said.reason


def test_the_newest_leader_is_believed() -> None:
    """One that was cut off may still think that it leads."""
    old, new = (
        FakeNode({"DescribeQuorum": quorum_answer(3000, 4)}),
        FakeNode({"DescribeQuorum": quorum_answer(3001, 7)}),
    )
    with old, new:
        found = look(inventory_of(old.address, new.address), limits=QUICK)
    assert isinstance(found.quorum, Quorum)
    assert (found.quorum.leader, found.quorum.leader_epoch) == (3001, 7)


def test_without_a_leader_each_controllers_word_is_told() -> None:
    """Followers, dead ones and those that may not be asked stand apart."""
    follower = FakeNode({"DescribeQuorum": quorum_answer(0, error=6)})
    denied = FakeNode({"DescribeQuorum": quorum_answer(0, top=31)})
    with follower, denied:
        found = look(inventory_of(follower.address, denied.address, "127.0.0.1:1"), limits=QUICK)
    assert isinstance(found.quorum, Unknown)
    assert "3000 does not lead" in found.quorum.reason
    assert "3001: " in found.quorum.reason
    assert "CLUSTER_AUTHORIZATION_FAILED" in found.quorum.reason
    assert "3002: 127.0.0.1:1: no connection" in found.quorum.reason
    assert isinstance(found.controllers[NodeId(3000)], NodeAnswer)


@pytest.mark.parametrize("flag", [None, True, False])
def test_the_flag_is_what_the_node_says_and_absent_is_false(flag: bool | None) -> None:
    """Kafka leaves the tag out where the flag is off; features come with it."""
    features = [{"name": "metadata.version", "maxVersionLevel": 21, "minVersionLevel": 21}]
    extra = {"finalizedFeatures": features} | ({} if flag is None else {"zkMigrationReady": flag})
    node = FakeNode({"DescribeQuorum": quorum_answer(3000)})
    plain = served()
    node.scripts["ApiVersions"] = lambda version, body: plain(version, body) | extra  # type: ignore[operator]
    with node:
        found = look(inventory_of(node.address), limits=QUICK)
    assert found.controllers[NodeId(3000)] == NodeAnswer(bool(flag), {"metadata.version": 21})


def test_what_is_not_wanted_is_not_asked() -> None:
    """And is Unknown, not empty."""
    with broker() as node:
        inventory = with_brokers(inventory_of("127.0.0.1:1"), node.address)
        found = look(inventory, wants=Wants(controllers=False, log_dirs=False), limits=QUICK)
    assert found.quorum == Unknown("not asked for")
    assert found.controllers == {}
    assert found.log_dirs[NodeId(0)] == Unknown("not asked for")
    assert isinstance(found.metadata[NodeId(0)], MetadataAnswer)
    assert [name for name, _, _ in node.seen] == ["ApiVersions", "Metadata"]


# -- on real Kafka -----------------------------------------------------------------------------------------------
@pytest.mark.kafka
def test_a_real_cluster_is_seen_whole(kraft_cluster: KraftCluster) -> None:
    """Through the clear listener and through SASL/PLAIN alike, the password by a command; the flag is off."""
    sasl = kraft_cluster.sasl_inventory
    asked = SecretCommand(("/bin/cat", str(kraft_cluster.folder / "password")))
    by_command = replace(sasl, broker_access=replace(sasl.broker_access, password=asked))
    for inventory in (kraft_cluster.inventory, sasl, by_command):
        found = look(inventory, controller_samples=20)
        assert isinstance(found.quorum, Quorum)
        assert found.quorum.leader in CONTROLLERS
        for node in CONTROLLERS:
            assert found.controllers[node] == NodeAnswer(False, {"metadata.version": 21})
            assert told_release(found.controllers[node]) == "3.9"
        assert told_release(found.brokers[BROKER]) == "3.9"
        said = found.metadata[BROKER]
        assert isinstance(said, MetadataAnswer)
        assert said.controller_ids == (BROKER,) * 20
        directories = found.log_dirs[BROKER]
        assert not isinstance(directories, Unknown)
        assert len(directories) == 3


@pytest.mark.kafka
def test_a_real_listener_refuses_a_wrong_password_and_a_right_that_is_missing(kraft_cluster: KraftCluster) -> None:
    """The reason names user and error, never the secret."""
    wrong = kraft_cluster.folder / "wrong"
    wrong.write_text("canary-wrong\n")
    wrong.chmod(0o600)
    good = kraft_cluster.sasl_inventory
    bad = replace(good, broker_access=replace(good.broker_access, password=SecretFile(str(wrong))))
    said = look(bad).brokers[BROKER]
    assert isinstance(said, Unknown)
    assert "user tool was refused: SASL_AUTHENTICATION_FAILED (58)" in said.reason
    assert "canary" not in said.reason
    nobody = kraft_cluster.folder / "nobody"
    nobody.write_text("x")
    nobody.chmod(0o600)
    poor = replace(good, broker_access=Access("SASL_PLAINTEXT", "PLAIN", "none", SecretFile(str(nobody))))
    found = look(poor)
    assert isinstance(found.brokers[BROKER], NodeAnswer)
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in str(found.log_dirs[BROKER])
    clear = replace(good, broker_access=Access())
    assert isinstance(look(clear, limits=QUICK).metadata[BROKER], Unknown)


@pytest.mark.kafka
def test_a_paused_real_broker_is_unknown_within_the_limits(kraft_cluster: KraftCluster) -> None:
    """The kernel still accepts connections for it; nobody answers, and nobody is kept waiting for it."""
    kraft_cluster.signal(BROKER, signal.SIGSTOP)
    try:
        found = look(kraft_cluster.inventory)
        assert isinstance(found.brokers[BROKER], Unknown)
        assert isinstance(found.metadata[BROKER], Unknown)
        assert isinstance(found.quorum, Quorum)
    finally:
        kraft_cluster.signal(BROKER, signal.SIGCONT)
    wait_for("the broker answers again", lambda: isinstance(look(kraft_cluster.inventory).brokers[BROKER], NodeAnswer))
    kraft_cluster.wait_until_ready()


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


def told(code: int = 0, **values: str) -> FakeNode:
    """A broker that describes these values of its configuration."""
    configs = [{"name": name.replace("_", "."), "value": value} for name, value in values.items()]
    return FakeNode({"DescribeConfigs": lambda _v, _b: {"results": [{"errorCode": code, "configs": configs}]}})


def test_a_broker_says_which_protocol_version_it_runs_with() -> None:
    """The one key; an answer without it, or no right to ask, is no version."""
    with told(inter_broker_protocol_version="3.8") as node, Connection(node.address, Access(), QUICK) as connection:
        assert protocol_version(connection, 1) == "3.8"
    with told() as node, Connection(node.address, Access(), QUICK) as connection, pytest.raises(KafkaRefused):
        protocol_version(connection, 1)
    with told(29) as node, Connection(node.address, Access(), QUICK) as connection, pytest.raises(AccessRefused) as no:
        protocol_version(connection, 1)
    assert "DESCRIBE_CONFIGS on Cluster" in str(no.value)


@pytest.mark.parametrize("results", [[], [{"errorCode": 0, "configs": []}] * 2])
def test_an_answer_about_no_broker_or_two_is_broken(results: list[dict[str, Any]]) -> None:
    """Each broker is asked about itself alone."""
    with FakeNode({"DescribeConfigs": lambda _v, _b: {"results": results}}) as node:
        for question in (protocol_version, described):
            with Connection(node.address, Access(), QUICK) as connection, pytest.raises(AnswerBroken):
                question(connection, 1)


def test_a_broker_that_may_not_be_asked_what_it_runs_with_is_told_apart() -> None:
    """From one that does not answer; a value that Kafka hides is none."""
    with told(num_io_threads="8", ssl_key_password=None) as node, told(29) as other:  # type: ignore[arg-type]
        brokers = (
            BrokerNode(NodeId(0), "b0", node.address, "/b0"),
            BrokerNode(NodeId(1), "b1", other.address, "/b1"),
            BrokerNode(NodeId(2), "b2", "127.0.0.1:1", "/b2"),
        )
        kept = KeptConnections()
        found = applied_configs(replace(inventory_of(), brokers=brokers), kept)
        kept.close()
    assert found[NodeId(0)] == {"num.io.threads": "8"}
    assert isinstance(found[NodeId(1)], Denied)
    assert isinstance(found[NodeId(2)], Unknown)
    assert not isinstance(found[NodeId(2)], Denied)


def test_each_broker_is_asked_for_its_protocol_version_by_itself() -> None:
    """One that does not answer hides no other."""
    with told(inter_broker_protocol_version="3.9-IV0") as node:
        brokers = (
            BrokerNode(NodeId(0), "b0", node.address, "/b0"),
            BrokerNode(NodeId(1), "b1", "127.0.0.1:1", "/b1"),
        )
        kept = KeptConnections()
        found = protocol_versions(replace(inventory_of(), brokers=brokers), kept)
        kept.close()
    assert found[NodeId(0)] == "3.9-IV0"
    assert isinstance(found[NodeId(1)], Unknown)


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


def test_each_broker_is_called_with_its_own_access() -> None:
    """A plain listener beside one that asks for a user; neither is called with the other's."""
    with broker() as plain, broker() as other:
        inventory = with_brokers(inventory_of(), plain.address, other.address)
        own = replace(inventory.brokers[1], access=Access("SASL_PLAINTEXT", "PLAIN", "ops", SecretFile("/none")))
        found = look(replace(inventory, brokers=(inventory.brokers[0], own)), limits=QUICK)
    assert isinstance(found.brokers[NodeId(0)], NodeAnswer)
    refused = found.brokers[NodeId(1)]
    assert isinstance(refused, Unknown)
    assert "/none" in refused.reason  # the password of its own access is looked for
