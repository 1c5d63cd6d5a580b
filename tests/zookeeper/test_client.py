"""A session is had or refused with the reason; a loss of the connection is waited out, and said when it lasts."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl

from migrate.errors import (
    ChrootMissing,
    ConnectStringWrong,
    Retryable,
    WorldError,
    ZookeeperSessionLost,
    ZookeeperUnreachable,
)
from migrate.lab.topology import free_ports
from migrate.model.secrets import Digester
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, connect, parse_connect_string, translated
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.read import read_view
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree, running_server


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:2181", (("h:2181",), "")),
        ("h", (("h:2181",), "")),
        ("a:1,b:2/kafka", (("a:1", "b:2"), "/kafka")),
        (" a:1 , b ,,c:3/kafka/prod ", (("a:1", "b:2181", "c:3"), "/kafka/prod")),
        ("a:1/", (("a:1",), "")),
        ("a:1/kafka,b:2/kafka", (("a:1",), "/kafka,b:2/kafka")),
        ("[fe80::1%eth0]", (("[fe80::1%eth0]:2181",), "")),
        ("[::1]:2181/x", (("[::1]:2181",), "/x")),
        ("::1:2182/x y", (("[::1]:2182",), "/x y")),
        ("h:", (("h:2181",), "")),
    ],
)
def test_a_connect_string_is_hosts_and_a_chroot(text: str, expected: tuple[tuple[str, ...], str]) -> None:
    """As ZooKeeper's client reads Kafka's zookeeper.connect."""
    found = parse_connect_string(text)
    assert (found.servers, found.chroot) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "/kafka",
        "h:x",
        "h:99999",
        "h:0",
        "a:1//x",
        "a:1/x/../y",
        "a:1/x/",
        "a b:1",
        "a:1/x\x01y",
        "[::1",
        f"{'a' * 64}.b:1",
    ],
)
def test_another_connect_string_is_refused(text: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConnectStringWrong):
        connect(text)


@pytest.mark.slow
def test_nobody_there_is_said_soon() -> None:
    """Within the given time, as an error that a retry may mend."""
    with pytest.raises(ZookeeperUnreachable, match=r"0\.5 s") as caught:
        connect(f"127.0.0.1:{free_ports(1)[0]}", timeout=0.5)
    assert isinstance(caught.value, Retryable)
    assert caught.value.where.startswith("127.0.0.1:")


class Unanswered:
    """A kazoo client, and a transaction of it that nobody answers."""

    connected = True

    def __init__(self) -> None:
        self.calls: list[str] = []

    def add_listener(self, _: object) -> None:
        """Nobody is told of anything."""

    def commit_async(self) -> Unanswered:
        """It is on its way."""
        self.calls.append("commit")
        return self

    def get(self, timeout: float) -> None:
        """No answer comes in that time."""
        self.calls.append(f"wait {timeout:g}")
        raise KazooTimeoutError

    def stop(self) -> None:
        """The session ends."""
        self.calls.append("stop")

    def close(self) -> None:
        """And what belongs to it."""
        self.calls.append("close")


def test_a_transaction_without_an_answer_ends_the_session() -> None:
    """It may be sent on the next connection else, when another run holds the lock."""
    kazoo: Any = Unanswered()
    with pytest.raises(ZookeeperSessionLost, match="TimeoutError"):
        ZookeeperClient(kazoo, "h:2181", 10.0).commit(kazoo, "/x")
    assert kazoo.calls == ["commit", "wait 20", "stop", "close"]


def test_what_kazoo_does_not_know_is_a_typed_error() -> None:
    """An error code of a newer server, or an answer out of its order."""
    with pytest.raises(WorldError, match="RuntimeError"), translated("/x"):
        raise kazoo_errors.EXCEPTIONS[-999]


def test_a_transaction_without_a_connection_is_not_sent() -> None:
    """Nothing is kept for later."""
    kazoo: Any = Unanswered()
    kazoo.connected = False
    with pytest.raises(ZookeeperSessionLost, match="nothing was sent"):
        ZookeeperClient(kazoo, "h:2181", 0.01).commit(kazoo, "/x")
    assert kazoo.calls == []


def test_passwords_of_an_access_are_not_shown() -> None:
    """Neither in repr nor in str."""
    access = ZookeeperAccess(sasl_username="u", sasl_password="hunter2", digest="a:hunter2")
    assert "hunter2" not in f"{access!r}{access}"
    assert access.options()["sasl_options"]["mechanism"] == "DIGEST-MD5"


@pytest.mark.zookeeper
def test_a_missing_chroot_is_named(server: ZookeeperServer) -> None:
    """It is not created, and the session is closed."""
    with pytest.raises(ChrootMissing, match="/no/such"):
        server.client("/no/such")
    with server.client() as root:
        assert root.data(["/no"]) == [Absent.MISSING]


@pytest.mark.zookeeper
def test_nobody_waits_for_a_session_that_we_ended(server: ZookeeperServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of another thread ends with it: whoever interrupts a command is not held up."""
    client = server.client(session=60.0)
    client.close()
    monkeypatch.setattr(client, "wait_connected", lambda _seconds: pytest.fail("it waits for a connection"))
    with pytest.raises(ZookeeperSessionLost, match="there is no connection"):
        client.data(["/"])


@pytest.mark.zookeeper
def test_the_view_of_a_loaded_tree_is_that_of_the_file(client: ZookeeperClient) -> None:
    """Every kind, through a chroot, at every stage."""
    from migrate.zookeeper.read import view_of

    digester = Digester()
    for stage in ("zk-before", "hybrid-after-copy", "finalized"):
        tree = golden(stage)
        for name in client.kazoo.get_children("/"):
            client.kazoo.delete(f"/{name}", recursive=True)
        load_tree(client, tree)
        live, filed = read_view(client, digester), view_of(tree, "x", digester)
        assert live.entities == filed.entities
        columns = set(live.partitions.__slots__) - {"revision"}
        for column in columns:
            assert getattr(live.partitions, column) == getattr(filed.partitions, column)
        assert list(live.brokers) == list(filed.brokers)
        assert all(broker.session == client.session for broker in live.brokers.values())
        assert live.znodes == filed.znodes
        assert live.blind_spots == ()
        assert live.connect == client.connect_string


@pytest.mark.zookeeper
def test_a_real_writer_races_the_reader(server: ZookeeperServer, chroot: str, client: ZookeeperClient) -> None:
    """Topics and states are written without pause: each view is one that ZooKeeper had, partition by partition."""
    load_tree(client, golden("zk-before"))
    stop = threading.Event()
    failures: list[object] = []

    def write() -> None:
        with server.client(chroot) as writer:
            number = 0
            while not stop.is_set():
                number += 1
                epoch = f'{{"version":1,"leader":1,"leader_epoch":{number},"controller_epoch":1,"isr":[1,0]}}'
                transaction = writer.kazoo.transaction()
                for partition in range(5):
                    transaction.set_data(f"/brokers/topics/t00/partitions/{partition}/state", epoch.encode())
                failures.extend(result for result in transaction.commit() if isinstance(result, Exception))
                if number % 3 == 0:
                    writer.kazoo.create(f"/admin/delete_topics/x{number}", b"")
                    writer.kazoo.delete(f"/admin/delete_topics/x{number}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        views = [read_view(client, Digester()) for _ in range(5)]
    finally:
        stop.set()
        thread.join(timeout=30)
    assert failures == []
    last = -1
    for view in views:
        rows = [index for index, topic in enumerate(view.partitions.topic) if topic == "t00"][:5]
        epochs = [view.partitions.leader_epoch[row] for row in rows]
        moving = {spot.partition(":")[0] for spot in view.blind_spots}
        if not moving:
            assert len(set(epochs)) == 1
        assert min(epochs) >= last
        last = max(epochs)
        assert len(view.partitions) == 212
    still = read_view(client, Digester())
    assert still.blind_spots == ()
    assert still.pending.deletions == ()


@pytest.mark.zookeeper
def test_a_subtree_without_rights_is_a_blind_spot(server: ZookeeperServer, chroot: str) -> None:
    """As with zookeeper.set.acl: users and brokers configurations are hidden from a foreign identity."""
    acl = make_digest_acl("kafka", "secret", all=True)
    access = ZookeeperAccess(digest="kafka:secret")
    with connect(server.address + chroot, access=access) as owner:
        load_tree(owner, golden("zk-before"))
        owner.kazoo.set_acls("/config/users", [acl])
        owner.kazoo.set_acls("/config/brokers", [acl])
        whole = read_view(owner, Digester())
        with server.client(chroot) as foreign:
            partial = read_view(foreign, Digester())
            foreign.multiread = False
            slowly = read_view(foreign, Digester())
    assert whole.blind_spots == ()
    assert {spot.partition(":")[0] for spot in partial.blind_spots} == {"/config/users", "/config/brokers"}
    assert partial.blind_spots == slowly.blind_spots
    assert "scram" in whole.entities.kind
    assert "scram" not in partial.entities.kind
    assert partial.partitions == slowly.partitions


@pytest.mark.zookeeper
def test_a_server_that_comes_back_is_waited_for(tmp_path: Path) -> None:
    """The same read is sent again on the next connection; the session survives the server's restart."""
    with running_server(tmp_path) as server, server.client(session=30) as client:
        create(client, "/x", b"1")
        session = client.session
        server.stop()
        server.start()
        (answer,) = client.data(["/x"])
        assert isinstance(answer, Znode)
        assert answer.data == b"1"
        assert client.session == session


@pytest.mark.zookeeper
def test_a_server_that_stays_away_is_an_error_that_a_retry_may_mend(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Typed, bounded in time, and kazoo says nothing of its own."""
    with caplog.at_level(logging.DEBUG), running_server(tmp_path) as server, server.client(session=1) as client:
        server.stop()
        with pytest.raises(ZookeeperSessionLost) as caught:
            client.data(["/x"])
    assert isinstance(caught.value, Retryable)
    assert not [record for record in caplog.records if "kazoo" in record.name]
    assert capfd.readouterr() == ("", "")
