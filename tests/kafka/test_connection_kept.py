"""A connection is kept from look to look, tells what is so now, and hides no node's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from migrate.errors import AnswerTimeout, ConnectionClosed, NodeUnreachable
from migrate.kafka.connection import Connection, KeptConnections
from migrate.kafka.live import look
from migrate.model.ids import NodeId
from migrate.model.inventory import Access
from migrate.model.views import MetadataAnswer, NodeAnswer
from migrate.protocol.loader import Values
from migrate.protocol.messages import METADATA
from tests.kafka.fake_node import Close, FakeNode, OtherCorrelation, Said, Silence, served
from tests.kafka.test_controller import inventory_of
from tests.kafka.test_live import QUICK, broker, with_brokers

CLEAR = Access()


def in_turn(*said: Said) -> Callable[[int, Values], Said]:
    """Another answer each time; the last one for ever."""
    turns = iter(said)
    last = said[-1]
    return lambda _version, _body: next(turns, last)


def versions(**more: object) -> Values:
    """What a node that serves everything answers to ApiVersions."""
    found = served()(4, {})
    assert isinstance(found, dict)
    return {**found, **more}


@pytest.fixture
def kept() -> Iterator[KeptConnections]:
    """Nothing is kept yet; all is closed at the end."""
    with closing(KeptConnections()) as found:
        yield found


def test_looks_share_one_connection_a_node(kept: KeptConnections) -> None:
    """Without `kept` each look opens its own."""
    with broker() as node:
        inventory = with_brokers(inventory_of(), node.address)
        for _ in range(3):
            found = look(inventory, limits=QUICK, kept=kept)
            assert isinstance(found.metadata[NodeId(0)], MetadataAnswer)
        assert node.connections == 1
        look(inventory, limits=QUICK)
        assert node.connections == 2


def test_a_kept_connection_tells_what_is_so_now(kept: KeptConnections) -> None:
    """Features are finalized while it stands open."""
    level = {"name": "metadata.version", "minVersionLevel": 1}
    before = versions(finalizedFeatures=[{**level, "maxVersionLevel": 20}])
    after = versions(finalizedFeatures=[{**level, "maxVersionLevel": 21}])
    with broker(ApiVersions=in_turn(before, after)) as node:
        inventory = with_brokers(inventory_of(), node.address)
        for wanted in (20, 21):
            answer = look(inventory, limits=QUICK, kept=kept).brokers[NodeId(0)]
            assert isinstance(answer, NodeAnswer)
            assert answer.finalized_features == {"metadata.version": wanted}
        assert node.connections == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Close(), Silence(), OtherCorrelation(versions()), versions(errorCode=35)])
def test_what_goes_wrong_with_a_kept_connection_is_settled_by_a_new_one(fault: Said, kept: KeptConnections) -> None:
    """A node that was restarted, closed what was idle, or lost the session answers all the same."""
    with broker(ApiVersions=in_turn(versions(), fault, versions())) as node:
        inventory = with_brokers(inventory_of(), node.address)
        for _ in range(2):
            found = look(inventory, limits=QUICK, kept=kept)
            assert isinstance(found.brokers[NodeId(0)], NodeAnswer)
            assert isinstance(found.metadata[NodeId(0)], MetadataAnswer)
        assert node.connections == 2


def test_a_node_that_ended_is_told_as_one(kept: KeptConnections) -> None:
    """A connection that stood open is no life of its process."""
    with FakeNode() as node, kept.connection(node.address, CLEAR, QUICK):
        pass
    with pytest.raises(NodeUnreachable), kept.connection(node.address, CLEAR, QUICK):
        pytest.fail("nobody listens")


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "error"), [(Close(), ConnectionClosed), (Silence(), AnswerTimeout)])
def test_a_connection_that_an_error_closed_is_not_kept(
    fault: Said, error: type[Exception], kept: KeptConnections
) -> None:
    """What may still come on it belongs to nobody."""
    with FakeNode({"Metadata": lambda _v, _b: fault}) as node:
        for _ in range(2):
            with pytest.raises(error), kept.connection(node.address, CLEAR, QUICK) as found:
                found.call(METADATA, {"topics": None, "allowAutoTopicCreation": False})
        assert node.connections == 2


def test_two_who_ask_at_once_have_two_and_one_is_kept(kept: KeptConnections) -> None:
    """A connection is one thread's."""
    with FakeNode() as node:
        with kept.connection(node.address, CLEAR, QUICK) as one, kept.connection(node.address, CLEAR, QUICK) as two:
            assert one is not two
        assert [found.is_open for found in (one, two)].count(True) == 1
        with kept.connection(node.address, CLEAR, QUICK) as third:
            assert third in (one, two)


def test_another_name_has_another_connection(kept: KeptConnections) -> None:
    """What one principal may do says nothing of another."""
    with FakeNode() as node:
        for access in (CLEAR, replace(CLEAR, username="other")):
            with kept.connection(node.address, access, QUICK):
                pass
        assert node.connections == 2


def test_closed_is_closed_also_what_was_in_use() -> None:
    """Nothing stays open behind the end of a run."""
    kept = KeptConnections()
    with FakeNode() as node:
        seen: list[Connection] = []
        with kept.connection(node.address, CLEAR, QUICK) as idle:
            seen.append(idle)
        with kept.connection(node.address, CLEAR, QUICK) as used:
            seen.append(used)
            kept.close()
        assert not any(one.is_open for one in seen)
