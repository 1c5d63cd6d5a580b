"""A write happens under the version it names, or not at all; a fence stops a run that lost the lock."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooState
from kazoo.exceptions import NoAuthError, NodeExistsError, RolledBackError, RuntimeInconsistency
from kazoo.security import make_digest_acl

from migrate.errors import LockLost, WorldError, ZnodeChanged, ZookeeperDenied, ZookeeperSessionLost
from migrate.model.ports import ZookeeperWrites
from migrate.zookeeper.backup import load_backup
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, connect
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.lock import Fence
from migrate.zookeeper.write import ZookeeperWriter, check_results
from tests.testing.zookeeper_server import ZookeeperServer, running_server


def found(client: ZookeeperClient, path: str) -> tuple[bytes | None, int] | Absent:
    """Data and version now."""
    (answer,) = client.data([path])
    return (answer.data, answer.version) if isinstance(answer, Znode) else answer


@pytest.mark.zookeeper
def test_a_write_under_the_right_version_happens(client: ZookeeperClient) -> None:
    """Create, set at version 0, set at version 1, delete at version 2."""
    writer: ZookeeperWrites = ZookeeperWriter(client)
    writer.create("/x", b"a")
    assert found(client, "/x") == (b"a", 0)
    writer.set("/x", b"b", 0)
    writer.set("/x", b"c", 1)
    assert found(client, "/x") == (b"c", 2)
    writer.delete("/x", 2)
    assert found(client, "/x") is Absent.MISSING


@pytest.mark.zookeeper
def test_versions_are_raised_by_the_same_bytes_and_the_owner_goes_with_the_last(client: ZookeeperClient) -> None:
    """One transaction for all; a second time there is nothing to raise, and nobody goes."""
    writer: ZookeeperWrites = ZookeeperWriter(client)
    for path, data in (("/s", b"s"), ("/t", b"t"), ("/high", b"h"), ("/controller", b"{}")):
        writer.create(path, data)
    writer.raise_versions({"/s": 3, "/t": 1, "/high": 0}, None)
    assert [found(client, path) for path in ("/s", "/t", "/high")] == [(b"s", 3), (b"t", 1), (b"h", 0)]
    writer.raise_versions({"/s": 3, "/t": 2}, 0)
    assert (found(client, "/t"), found(client, "/controller")) == ((b"t", 2), Absent.MISSING)
    writer.create("/controller", b"{}")
    writer.raise_versions({"/s": 3, "/t": 2}, 0)
    assert found(client, "/controller") == (b"{}", 0)


@pytest.mark.zookeeper
def test_versions_are_raised_whole_or_not_at_all(client: ZookeeperClient) -> None:
    """Where the owner changed, or a state is gone: nothing is written."""
    writer = ZookeeperWriter(client)
    writer.create("/s", b"s")
    writer.create("/controller", b"{}")
    with pytest.raises(ZnodeChanged, match="another version"):
        writer.raise_versions({"/s": 9}, 4)
    with pytest.raises(ZnodeChanged, match="not there any more"):
        writer.raise_versions({"/s": 9, "/gone": 9}, 0)
    assert (found(client, "/s"), found(client, "/controller")) == ((b"s", 0), (b"{}", 0))


@pytest.mark.zookeeper
def test_a_version_is_raised_by_as_many_transactions_as_it_takes(client: ZookeeperClient) -> None:
    """A partition whose replicas came and went thousands of times."""
    writer = ZookeeperWriter(client)
    writer.create("/s", b"s" * 100)
    writer.create("/controller", b"{}")
    writer.raise_versions({"/s": 2_345}, 0)
    assert (found(client, "/s"), found(client, "/controller")) == ((b"s" * 100, 2_345), Absent.MISSING)


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda writer: writer.create("/x", b"new"), "exists already"),
        (lambda writer: writer.create("/no/parent", b"new"), "does not exist"),
        (lambda writer: writer.set("/x", b"new", 0), "another version"),
        (lambda writer: writer.set("/x", b"new", 2), "another version"),
        (lambda writer: writer.set("/none", b"new", 0), "does not exist"),
        (lambda writer: writer.delete("/x", 0), "another version"),
        (lambda writer: writer.delete("/x", 7), "another version"),
        (lambda writer: writer.delete("/none", 0), "does not exist"),
        (lambda writer: writer.delete("/parent", 0), "has children"),
    ],
)
def test_a_write_under_another_version_is_refused_and_changes_nothing(
    client: ZookeeperClient, write: Callable[[ZookeeperWriter], None], reason: str
) -> None:
    """Version 0 is a version: it is not read as "any"."""
    client.kazoo.create("/x", b"a")
    client.kazoo.set("/x", b"theirs")
    client.kazoo.create("/parent", b"")
    client.kazoo.create("/parent/child", b"")
    before = load_everything(client)
    with pytest.raises(ZnodeChanged, match=reason):
        write(ZookeeperWriter(client))
    assert load_everything(client) == before


def load_everything(client: ZookeeperClient) -> list[Znode | Absent]:
    """The znodes of the tests here."""
    return list(client.data(["/x", "/no", "/none", "/parent", "/parent/child"]))


@pytest.mark.zookeeper
@pytest.mark.parametrize("version", [-1, -2])
def test_an_unconditional_write_cannot_be_asked_for(client: ZookeeperClient, version: int) -> None:
    """A bug in the caller, before anything is sent."""
    client.kazoo.create("/x", b"a")
    writer = ZookeeperWriter(client)
    with pytest.raises(ValueError, match="unconditional"):
        writer.set("/x", b"b", version)
    with pytest.raises(ValueError, match="unconditional"):
        writer.delete("/x", version)
    with pytest.raises(ValueError, match="unconditional"):
        ZookeeperWriter(client, Fence("/x", version)).create("/y", b"")
    assert found(client, "/x") == (b"a", 0)


@pytest.mark.zookeeper
def test_a_fence_lets_the_holder_write_and_stops_everyone_before(client: ZookeeperClient) -> None:
    """The check stands in the same transaction: ZooKeeper refuses, whatever the writer believes."""
    client.kazoo.create("/fence", b"")
    client.kazoo.set("/fence", b"1")
    client.kazoo.set("/fence", b"2")
    old, new = ZookeeperWriter(client, Fence("/fence", 1)), ZookeeperWriter(client, Fence("/fence", 2))
    new.create("/x", b"a")
    writes: list[Callable[[], None]] = [
        lambda: old.create("/y", b""),
        lambda: old.set("/x", b"old", 0),
        lambda: old.delete("/x", 0),
        lambda: ZookeeperWriter(client, Fence("/gone", 0)).set("/x", b"old", 0),
    ]
    for write in writes:
        with pytest.raises(LockLost, match="refused"):
            write()
    assert found(client, "/x") == (b"a", 0)
    assert found(client, "/y") is Absent.MISSING
    with pytest.raises(ZnodeChanged):
        new.set("/x", b"b", 5)
    new.delete("/x", 0)


@pytest.mark.zookeeper
def test_a_znode_may_come_back_at_once_after_its_deletion(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """A ZooKeeper-mode broker claims /controller within milliseconds: that is no failed deletion."""
    client.kazoo.create("/controller", b"kraft")
    chroot = client.kazoo.chroot
    with server.client(chroot) as broker:

        def claim(_: object) -> None:
            broker.kazoo.create_async("/controller", b"broker", ephemeral=True)

        broker.kazoo.get("/controller", watch=claim)
        ZookeeperWriter(client).delete("/controller", 0)
        assert found(client, "/controller") == (b"broker", 0)


@pytest.mark.zookeeper
def test_a_write_without_the_right_is_denied(server: ZookeeperServer, chroot: str) -> None:
    """Named, and nothing changed."""
    acl = make_digest_acl("kafka", "secret", all=True)
    with connect(server.address + chroot, access=ZookeeperAccess(digest="kafka:secret")) as owner:
        owner.kazoo.create("/controller", b"kraft", acl=[acl])
        with server.client(chroot) as foreign, pytest.raises(ZookeeperDenied) as caught:
            ZookeeperWriter(foreign).set("/controller", b"mine", 0)
        assert caught.value.where == "/controller"
        assert found(owner, "/controller") == (b"kraft", 0)


@pytest.mark.zookeeper
def test_a_backup_is_a_write_of_the_port(client: ZookeeperClient, tmp_path: Path) -> None:
    """Through the port that steps use."""
    client.kazoo.create("/x", b"a")
    facts = ZookeeperWriter(client).backup(str(tmp_path / "b.gz"))
    assert facts["znodes"] == "2"
    assert sorted(load_backup(facts["path"]).znodes) == ["/", "/x"]


@pytest.mark.zookeeper
def test_a_write_without_a_connection_is_not_sent(tmp_path: Path) -> None:
    """Once the loss is known; no retry by itself: the world has to be looked at."""
    with running_server(tmp_path) as server, server.client(session=1) as client:
        client.kazoo.create("/x", b"a")
        lost = threading.Event()
        client.kazoo.add_listener(lambda state: lost.set() if state != KazooState.CONNECTED else None)
        server.stop()
        assert lost.wait(30)
        with pytest.raises(ZookeeperSessionLost) as caught:
            ZookeeperWriter(client).set("/x", b"b", 0)
        assert "nothing was sent" in str(caught.value)


@pytest.mark.zookeeper
def test_a_write_without_an_answer_does_not_happen_later(tmp_path: Path) -> None:
    """The server hangs after the request: the session ends, and what was asked is never sent again."""
    with running_server(tmp_path) as server, server.client(session=1) as client:
        client.kazoo.create("/x", b"a")
        server.signal(signal.SIGSTOP)
        with pytest.raises(ZookeeperSessionLost) as caught:
            ZookeeperWriter(client).set("/x", b"b", 0)
        assert "may or may not" in caught.value.why
        client.close()
        server.signal(signal.SIGCONT)
        with server.client() as other:
            assert found(other, "/x") in ((b"a", 0), (b"b", 1))


@pytest.mark.parametrize(
    ("results", "error"),
    [
        ([RolledBackError(), NodeExistsError()], ZnodeChanged),
        ([NoAuthError(), RuntimeInconsistency()], ZookeeperDenied),
        ([RuntimeInconsistency(), RuntimeInconsistency()], WorldError),
        ([True], WorldError),
        ([], WorldError),
    ],
)
def test_every_result_of_a_transaction_is_looked_at(results: list[object], error: type[Exception]) -> None:
    """Kazoo hands exceptions back in a list and raises nothing."""
    with pytest.raises(error):
        check_results(results, 2, "/x")
    check_results([True, "/x"], 2, "/x")
