"""What more is looked at where something waits: addresses without a credential, logs without a failure."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.errors import ProcessSpecUnreadable
from migrate.model.findings import Clues, Wanted
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import NodeAnswer, ServiceState, Stopped
from migrate.observe.clues import answer_at, gather
from tests.cli.commands import dead_port
from tests.kafka.fake_node import Close, FakeNode


class Logs:
    """Services of which only the logs are read; node 9 is described nowhere, node 8's log is another's."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        """Three lines."""
        self.read.append(int(node))
        if node == 9:
            raise ProcessSpecUnreadable("no process of node 9 is described", where="here")
        if node == 8:
            raise PermissionError("not ours")
        return [f"line {number} of {int(node)}" for number in range(min(lines, 3))]

    def state(self, node: NodeId) -> ServiceState:
        """Not asked for."""
        return Stopped()

    def stop(self, node: NodeId, timeout: float) -> None:
        """Never."""
        raise AssertionError(node)

    def start(self, node: NodeId) -> None:
        """Never."""
        raise AssertionError(node)

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """Never."""
        raise AssertionError(node)


def last(lines: Sequence[str]) -> tuple[str, ...]:
    """The last line."""
    return tuple(lines[-1:])


def controller() -> FakeNode:
    """Serves BrokerRegistration, as controllers do."""
    keys = [{"apiKey": key, "minVersion": 0, "maxVersion": 4} for key in (18, 62)]
    return FakeNode({"ApiVersions": lambda _version, _body: {"errorCode": 0, "apiKeys": keys}})


def test_who_answers_is_told_by_what_it_serves_and_gets_no_credential() -> None:
    """Nobody has proven that the address is a node of this cluster: one request, which needs no right."""
    with controller() as node:
        found = answer_at(node.address)
        assert isinstance(found, NodeAnswer)
        assert 62 in found.apis
        assert [name for name, _, _ in node.seen] == ["ApiVersions"]


def test_nobody_there_is_unknown_with_the_reason() -> None:
    """Refused, closed, or no Kafka at all."""
    with dead_port() as port:
        refused = answer_at(f"127.0.0.1:{port}")
    assert isinstance(refused, Unknown)
    assert "refused" in refused.reason.lower()
    with FakeNode({"ApiVersions": lambda _version, _body: Close()}) as node:
        assert isinstance(answer_at(node.address), Unknown)
    for address in ("nowhere", "host:notaport", "", ":", "127.0.0.1:99999999"):
        assert isinstance(answer_at(address), Unknown), address


def test_nothing_wanted_is_nothing_done() -> None:
    """No thread, no connection, no file."""
    logs = Logs()
    assert gather(Wanted(), logs, last) == Clues()
    assert logs.read == []


def test_each_part_is_there_or_says_why_not() -> None:
    """A node whose log cannot be read hides no other's."""
    logs = Logs()
    with controller() as node, dead_port() as port:
        wanted = Wanted((node.address, f"127.0.0.1:{port}"), (NodeId(1), NodeId(9), NodeId(8)))
        found = gather(wanted, logs, last)
        assert isinstance(found.addresses[node.address], NodeAnswer)
        assert isinstance(found.addresses[f"127.0.0.1:{port}"], Unknown)
    assert found.logs[NodeId(1)] == ("line 2 of 1",)
    described, ours = found.logs[NodeId(9)], found.logs[NodeId(8)]
    assert isinstance(described, Unknown)
    assert isinstance(ours, Unknown)
    assert "no process of node 9" in described.reason
