"""`doctor --rights`, asked of nodes that answer by a script: nothing that was not seen counts as there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.doctor_items import Health, Item
from migrate.cli.doctor_rights import rights_of
from migrate.model.inventory import Access, Inventory
from migrate.model.rights import NOT_TOLD, OPERATIONS
from migrate.protocol.loader import Values
from migrate.protocol.messages import Code
from migrate.zookeeper.lock import LOCK_PATH
from tests.kafka.fake_node import FakeNode, Script
from tests.testing import worlds
from tests.testing.certificates import secret
from tests.testing.zookeeper_server import running_server

NOBODY = "127.0.0.1:1"  # nothing listens there
PLAIN = Access("PLAINTEXT")


def bits(*names: str) -> int:
    """KIP-430: a bit an operation."""
    return sum(1 << code for code, name in OPERATIONS.items() if name in names)


def broker(on_cluster: int, topics: int) -> dict[str, Script]:
    """A broker that allows us those operations, and tells of so many topics."""
    described: list[Values] = [{"errorCode": 0, "name": f"t{number}", "partitions": []} for number in range(topics)]
    return {
        "DescribeCluster": lambda *_: {"errorCode": 0, "clusterAuthorizedOperations": on_cluster},
        "Metadata": lambda *_: {"topics": described},
    }


def controller(quorum: int, fetch: int, cluster: int, on_cluster: int = NOT_TOLD) -> dict[str, Script]:
    """A controller with those error codes to the three requests."""

    def described(*_: object) -> Values:
        only = {"partitionIndex": 0, "errorCode": quorum, "currentVoters": [], "observers": []}
        whole = quorum if quorum == Code.CLUSTER_AUTHORIZATION_FAILED else 0
        return {"errorCode": whole, "topics": [{"topicName": "__cluster_metadata", "partitions": [only]}]}

    def fetched(*_: object) -> Values:
        if fetch in (Code.CLUSTER_AUTHORIZATION_FAILED, Code.UNKNOWN_SERVER_ERROR):
            return {"errorCode": fetch, "responses": []}
        return {"errorCode": 0, "responses": [{"partitions": [{"partitionIndex": 0, "errorCode": fetch}]}]}

    return {
        "DescribeQuorum": described,
        "Fetch": fetched,
        "DescribeCluster": lambda *_: {"errorCode": cluster, "clusterAuthorizedOperations": on_cluster},
    }


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Nodes live as long as the test."""
    with ExitStack() as found:
        yield found


def known(stack: ExitStack, brokers: list[dict[str, Script] | None], *controllers: dict[str, Script]) -> Inventory:
    """An inventory without ZooKeeper whose nodes answer so; None: nobody is there."""

    def address(scripts: dict[str, Script] | None) -> str:
        return NOBODY if scripts is None else stack.enter_context(FakeNode(scripts)).address

    own = worlds.inventory()
    padded = [*controllers, *[None] * (len(own.controllers) - len(controllers))]
    return replace(
        own,
        zookeeper="",
        broker_access=PLAIN,
        controller_access=PLAIN,
        brokers=tuple(
            replace(node, address=address(it)) for node, it in zip(own.brokers[: len(brokers)], brokers, strict=True)
        ),
        controllers=tuple(replace(node, address=address(it)) for node, it in zip(own.controllers, padded, strict=True)),
    )


def asked(inventory: Inventory, part: str) -> list[Item]:
    """What is said of brokers, or of controllers."""
    return [said for said in rights_of(inventory, LOCK_PATH) if said.name.startswith(part)]


def test_a_broker_that_is_down_is_passed_over(stack: ExitStack) -> None:
    """Rights are the cluster's: the next one tells them."""
    exact = broker(bits("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER"), 3)
    found = asked(known(stack, [None, exact]), "broker")
    assert [said.health for said in found] == [Health.GOOD, Health.LATER]
    assert "not known" in found[1].found, "without ZooKeeper nobody says how many topics there are"


def test_where_no_broker_answers_nothing_is_fine(stack: ExitStack) -> None:
    """Missing, with the reason."""
    (said,) = asked(known(stack, [None, None]), "broker")
    assert said.health is Health.MISSING
    assert "E-KAFKA-01" in said.found


def test_what_a_broker_lacks_is_told(stack: ExitStack) -> None:
    """No DESCRIBE: Kafka tells nothing of the cluster then."""
    found = asked(known(stack, [broker(NOT_TOLD, 2)]), "broker")
    told = {said.health: said.found for said in found}
    assert "lacks DESCRIBE" in told[Health.MISSING]
    found = asked(known(stack, [broker(bits("DESCRIBE"), 2)]), "broker")
    assert any(said.health is Health.LATER and "lacks DESCRIBE_CONFIGS, needed where" in said.found for said in found)
    (nothing,) = [said for said in asked(known(stack, [broker(NOT_TOLD, 0)]), "broker") if "topic" in said.found]
    assert (nothing.health, "describe no topic" in nothing.found) == (Health.MISSING, True)


@pytest.mark.parametrize(
    ("answers", "lacks"),
    [
        ((Code.NONE, Code.CLUSTER_AUTHORIZATION_FAILED, Code.CLUSTER_AUTHORIZATION_FAILED), "lacks CLUSTER_ACTION"),
        ((Code.CLUSTER_AUTHORIZATION_FAILED, Code.NONE, Code.CLUSTER_AUTHORIZATION_FAILED), "lacks DESCRIBE"),
        ((Code.CLUSTER_AUTHORIZATION_FAILED,) * 3, "lacks DESCRIBE, CLUSTER_ACTION"),
    ],
)
def test_what_a_controller_refuses_is_missing(answers: tuple[int, int, int], lacks: str, stack: ExitStack) -> None:
    """CLUSTER_ACTION too, which is told to nobody: it is tried by a read of the metadata."""
    (said,) = asked(known(stack, [], controller(*answers)), "controller")
    assert (said.health, lacks in said.found) == (Health.MISSING, True)
    assert "super.users" in said.to_do


@pytest.mark.parametrize("code", [Code.NONE, Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH])
def test_a_follower_lets_in_as_the_leader_does(code: int, stack: ExitStack) -> None:
    """It looks at the right first, and then says that it does not lead."""
    quorum = Code.NOT_LEADER_OR_FOLLOWER if code else Code.NONE
    (said,) = asked(known(stack, [], controller(quorum, code, Code.CLUSTER_AUTHORIZATION_FAILED)), "controller")
    assert said.health is Health.LATER
    assert "has DESCRIBE and CLUSTER_ACTION on Cluster, and no ALTER" in said.found


def test_an_answer_that_says_nothing_about_rights_is_not_taken_for_a_yes(stack: ExitStack) -> None:
    """An error of the server's own: it is told as what it is."""
    for answers in ((Code.UNKNOWN_SERVER_ERROR, Code.NONE), (Code.NONE, Code.UNKNOWN_SERVER_ERROR)):
        (said,) = asked(known(stack, [], controller(*answers, Code.CLUSTER_AUTHORIZATION_FAILED)), "controller")
        assert (said.health, "E-KAFKA-10" in said.found) == (Health.MISSING, True)


def test_with_alter_a_controller_tells_everything(stack: ExitStack) -> None:
    """Exactly the table's."""
    exact = bits("DESCRIBE", "CLUSTER_ACTION", "ALTER")
    (good,) = asked(known(stack, [], controller(0, 0, 0, exact)), "controller")
    assert good.health is Health.GOOD


def test_only_a_controller_that_is_not_there_may_come_later(stack: ExitStack, tmp_path: Path) -> None:
    """One that refuses the login has been reached: that is missing, and no other one is asked."""
    (later,) = asked(known(stack, []), "controller")
    assert later.health is Health.LATER
    refusing: dict[str, Script] = {
        "SaslHandshake": lambda *_: {"errorCode": 0, "mechanisms": ["PLAIN"]},
        "SaslAuthenticate": lambda *_: {"errorCode": Code.SASL_AUTHENTICATION_FAILED, "errorMessage": "no"},
    }
    inventory = known(stack, [], refusing, controller(0, 0, 0))
    login = Access("SASL_PLAINTEXT", "PLAIN", "admin", secret(tmp_path))
    with_login = replace(inventory, controller_access=login)
    (said,) = asked(with_login, "controller")
    assert (said.health, "E-KAFKA-05" in said.found) == (Health.MISSING, True)


@pytest.mark.zookeeper
def test_topics_that_brokers_leave_out_are_missed(stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Brokers say nothing of what may not be described; ZooKeeper says how many there are."""
    inventory = known(stack, [broker(bits("DESCRIBE"), 2)])
    with running_server(tmp_path_factory.mktemp("topics")) as server:
        with server.client() as client:
            for number in range(3):
                client.kazoo.create(f"/brokers/topics/t{number}", b"{}", makepath=True)
        found = asked(replace(inventory, zookeeper=server.address), "broker")
        assert [said.found for said in found if said.health is Health.MISSING] == [
            "User:ANONYMOUS, or the name of a certificate may describe 2 of 3 topics"
        ]
        whole = known(stack, [broker(bits("DESCRIBE", "DESCRIBE_CONFIGS"), 3)])
        assert {said.health for said in asked(replace(whole, zookeeper=server.address), "broker")} == {Health.GOOD}


def test_each_identity_is_asked_for_itself_with_the_nodes_that_it_opens(stack: ExitStack) -> None:
    """A broker with an access of its own is no answer for the others."""
    nodes = [stack.enter_context(FakeNode(broker(bits(*names), 1))) for names in (("DESCRIBE", "DESCRIBE_CONFIGS"), ())]
    inventory = worlds.inventory()
    first, second, third = inventory.brokers
    brokers = (
        replace(first, address=nodes[0].address),
        replace(second, address=nodes[1].address, access=Access("PLAINTEXT", username="ops")),
        replace(third, address=NOBODY),
    )
    found = list(rights_of(replace(inventory, zookeeper="", brokers=brokers, controllers=()), LOCK_PATH))
    names = [said.name for said in found]
    assert set(names) == {"broker rights (0, 2)", "broker rights (1)"}
    lacks = {said.name for said in found if said.health is Health.MISSING and "lacks" in said.found}
    assert lacks == {"broker rights (1)"}
