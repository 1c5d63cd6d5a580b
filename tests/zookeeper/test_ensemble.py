"""Servers of real ZooKeepers asked one by one: their roles, their clients, and whose data they hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from migrate.lab.topology import free_ports
from migrate.model.ensemble import Ensemble
from migrate.model.outcome import Unknown
from migrate.zookeeper.client import ZookeeperAccess
from migrate.zookeeper.ensemble import look_at_ensemble
from tests.testing.answering import answering
from tests.testing.zookeeper_server import ZookeeperServer, create, running_server

pytestmark = pytest.mark.zookeeper
QUORUM = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
LOCK = "/kraft-migrate/lock"


def look(*servers: ZookeeperServer, chroot: str = "") -> Ensemble:
    """As a run does."""
    addresses = [server.address for server in servers]
    return look_at_ensemble(",".join(addresses) + chroot, addresses, ZookeeperAccess(), LOCK)


def test_nobody_is_a_client_but_who_is_connected(server: ZookeeperServer) -> None:
    """This look's own connections are not counted, however often it is made."""
    for _ in range(5):
        (seen,) = look(server).servers
        assert (seen.listens, seen.role, seen.clients, seen.hosts) == (True, "standalone", 0, ())
    with server.client():
        (seen,) = look(server).servers
        assert (seen.clients, seen.hosts) == (1, ("127.0.0.1",))


def test_the_default_whitelist_is_enough_to_count(tmp_path: Path) -> None:
    """Every server answers `srvr`, whatever its list says: zkServer.sh needs it."""
    with running_server(tmp_path, "4lw.commands.whitelist=ruok\n") as server, server.client():
        (seen,) = look(server).servers
        assert (seen.clients, seen.hosts) == (1, ())


def test_znodes_of_others_are_named_on_every_level(tmp_path: Path) -> None:
    """Beside the chroot, beside its parents, and among Kafka's own."""
    with running_server(tmp_path) as server:
        with server.client() as client:
            for path in ("/a", "/a/kafka", "/a/kafka/brokers", "/a/kafka/kraft-migrate", "/a/kafka/solr", "/a/x", "/y"):
                create(client, path)
        assert look(server, chroot="/a/kafka").strangers == ("/y", "/a/x", "/a/kafka/solr")
        assert look(server, chroot="/a").strangers == ("/y", "/a/kafka", "/a/x")
        missing = look(server, chroot="/nowhere").strangers
        assert isinstance(missing, Unknown)


@pytest.mark.parametrize(("said", "why"), [(b"", "TLS"), (b"HTTP/1.1 400 Bad Request\r\n", "names no connections")])
def test_a_port_that_does_not_count_is_unknown(said: bytes, why: str) -> None:
    """A TLS port closes the connection; another service says something else."""
    with answering(said) as found:
        (seen,) = look_at_ensemble(found.address, [found.address], ZookeeperAccess(), LOCK).servers
    assert seen.listens is True
    assert isinstance(seen.clients, Unknown)
    assert why in seen.clients.reason


def test_the_leader_of_an_ensemble_is_the_last_one(tmp_path: Path) -> None:
    """Stopped one by one: the others are seen to be stopped, and without a quorum nothing is read."""
    with ensemble(tmp_path) as servers:
        seen = look(*servers)
        assert [server.role for server in seen.servers] == ["follower", "follower", "leader"]
        assert seen.strangers == ()
        by_address = {server.address: server for server in servers}
        for count, one in enumerate(seen.servers, 1):
            by_address[one.address].stop()
            left = look(*servers)
            assert sum(server.listens is False for server in left.servers) == count
            assert all(server.clients == 0 for server in left.servers)
        assert isinstance(left.strangers, Unknown)


@contextmanager
def ensemble(folder: Path) -> Iterator[list[ZookeeperServer]]:
    """Three servers that elect a leader."""
    ports = iter(free_ports(6))
    peers = "".join(f"server.{n}=127.0.0.1:{next(ports)}:{next(ports)}\n" for n in range(1, 4))
    servers = []
    for n in range(1, 4):
        server = ZookeeperServer(folder / str(n), f"initLimit=10\nsyncLimit=5\n{peers}", main=QUORUM)
        (server.folder / "data").mkdir()
        (server.folder / "data" / "myid").write_text(f"{n}\n")
        servers.append(server)
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
            server.launch()
        for server in servers:
            server.client(timeout=60).close()
        yield servers
