"""One look at all nodes: every part known, or Unknown with its reason, by itself, and soon."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest

from migrate.checks.advisor import least_release
from migrate.kafka.connection import Limits
from migrate.kafka.live import Wants, look
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, Inventory, SecretCommand, SecretFile
from migrate.model.outcome import Unknown
from migrate.model.views import MetadataAnswer, NodeAnswer, Quorum
from tests.kafka.fake_node import Close, FakeNode, Raw, Silence, served
from tests.kafka.test_broker import answer, partition
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
        began = time.monotonic()
        found = look(kraft_cluster.inventory)
        assert time.monotonic() - began < 15
        assert isinstance(found.brokers[BROKER], Unknown)
        assert isinstance(found.metadata[BROKER], Unknown)
        assert isinstance(found.quorum, Quorum)
    finally:
        kraft_cluster.signal(BROKER, signal.SIGCONT)
    wait_for("the broker answers again", lambda: isinstance(look(kraft_cluster.inventory).brokers[BROKER], NodeAnswer))
    kraft_cluster.wait_until_ready()
