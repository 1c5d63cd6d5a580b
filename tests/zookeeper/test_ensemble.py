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
from migrate.zookeeper.ensemble import look_at_ensemble, parse_members
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


def test_members_outside_the_connect_string_are_asked_too(tmp_path: Path) -> None:
    """Three participants and an observer; the connect string names two, and a stranger is at the observer."""
    with ensemble(tmp_path, observers=1, ports_told=True) as servers:
        with servers[3].client() as stranger:
            create(stranger, "/config")
            create(stranger, "/config/otherapp")
            create(stranger, "/consumers")
            create(stranger, "/consumers/legacy")
            seen = look(*servers[:2])
            assert sorted(server.address for server in seen.servers) == sorted(server.address for server in servers)
            (observer,) = [server for server in seen.servers if server.role == "observer"]
            assert (observer.address, observer.clients) == (servers[3].address, 1)
        assert seen.unasked == ()
        assert seen.strangers == ("/config/otherapp", "/consumers/legacy")


def test_a_member_whose_client_port_nobody_tells_is_named(tmp_path: Path) -> None:
    """A static configuration names no other server's client port: whoever was not asked is no proof."""
    with ensemble(tmp_path, observers=1) as servers:
        assert look(*servers).unasked == ()
        unasked = look(*servers[:2]).unasked
        assert isinstance(unasked, tuple)
        assert len(unasked) == 2
        assert all("127.0.0.1" in name for name in unasked)


@pytest.mark.parametrize(
    ("line", "host", "client"),
    [
        ("server.1=zk1:2888:3888:participant;0.0.0.0:2181", "zk1", "zk1:2181"),
        ("server.1=zk1:2888:3888:participant;0.0.0.0:2181;0.0.0.0:2281", "zk1", "zk1:2181"),
        ("server.1=zk1:2888:3888:participant;;0.0.0.0:2281", "zk1", ""),
        ("server.2=zk2:2888:3888:observer;2182", "zk2", "zk2:2182"),
        ("server.3=[fd00::3]:2888:3888;[::]:2181", "fd00::3", "[fd00::3]:2181"),
        ("server.4=a:1:2|b:1:2:participant;10.0.0.4:2181", "a", "10.0.0.4:2181"),
        ("server.5=zk5:2888:3888", "zk5", ""),
    ],
)
def test_a_members_line_is_read_in_each_of_its_forms(line: str, host: str, client: str) -> None:
    """QuorumPeer.QuorumServer: with several addresses, of version 6, with a client port alone, and without one."""
    (member,) = parse_members(f"version=0\n{line}\nclientPort=2181\n")
    assert (member.hosts[0], member.client) == (host, client)


@contextmanager
def ensemble(folder: Path, *, observers: int = 0, ports_told: bool = False) -> Iterator[list[ZookeeperServer]]:
    """Three servers that elect a leader, and observers; `ports_told`: their lines have their client ports."""
    count = 3 + observers
    ports = iter(free_ports(2 * count))
    servers = [
        ZookeeperServer(folder / str(n), "initLimit=10\nsyncLimit=5\n", main=QUORUM) for n in range(1, count + 1)
    ]
    peers = ""
    for n, server in enumerate(servers, 1):
        role = "observer" if n > 3 else "participant"
        told = f";{server.address}" if ports_told else ""
        peers += f"server.{n}=127.0.0.1:{next(ports)}:{next(ports)}:{role}{told}\n"
    for n, server in enumerate(servers, 1):
        with (server.folder / "zoo.cfg").open("a") as configuration:
            configuration.write(peers)
        (server.folder / "data").mkdir()
        (server.folder / "data" / "myid").write_text(f"{n}\n")
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
            server.launch()
        for server in servers:
            server.client(timeout=60).close()
        yield servers
