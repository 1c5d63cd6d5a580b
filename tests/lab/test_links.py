"""The proxy between brokers and controllers: what it holds back, cuts and lets go, on real sockets."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from migrate.lab.configure import inventory_of, process_specs
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import HOST, Shape, Topology, load_topology, plan_topology, save_topology
from tests.lab.faults import write_rules
from tests.lab.links import (
    LINKS,
    NAME,
    PASS_ON,
    LinkRule,
    hosts_file,
    link_address,
    proxy_spec,
    read_rules,
    write_links,
)
from tests.lab.test_configure import JARS, JAVA

ASSIGN = 73
HEARTBEAT = 63


def frame(key: int, body: bytes = b"") -> bytes:
    """A request as far as the proxy reads it."""
    return (2 + len(body)).to_bytes(4, "big") + key.to_bytes(2, "big") + body


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """One broker, one controller, between them a proxy."""
    found = plan_topology(tmp_path / "lab", Shape(brokers=2, controllers=1, controller_host=NAME))
    Path(found.directory).mkdir()
    save_topology(found)
    return found


@pytest.fixture
def controller(topology: Topology) -> Iterator[list[bytes]]:
    """A controller that answers every request with its own bytes; what it was sent."""
    received: list[bytes] = []
    server = socket.create_server((HOST, topology.controllers[0].port))

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                received.append(data)
                connection.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield received
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(10)


@pytest.fixture
def proxy(topology: Topology, controller: list[bytes]) -> Iterator[Topology]:
    """The proxy as the lab runs it."""
    spec = proxy_spec(topology)
    process = subprocess.Popen(spec.argv, env=spec.environment, cwd=spec.directory)
    try:
        until(lambda: reachable(topology))
        yield topology
    finally:
        process.kill()
        process.wait(10)


def reachable(topology: Topology) -> bool:
    """Does the proxy listen?"""
    with contextlib.suppress(OSError), connected(topology):
        return True
    return False


def connected(topology: Topology, broker: int = 0) -> socket.socket:
    """A connection as that broker makes it."""
    return socket.create_connection((link_address(broker), topology.controllers[0].port), 10)


def until(reached: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not reached():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def answered(connection: socket.socket, size: int, seconds: float = 10) -> bytes:
    """So many bytes of answers, or what came within that time."""
    connection.settimeout(seconds)
    found = b""
    with contextlib.suppress(TimeoutError):
        while len(found) < size and (piece := connection.recv(size - len(found))):
            found += piece
    return found


@pytest.mark.slow
def test_requests_and_answers_pass_unchanged_whatever_their_size(proxy: Topology) -> None:
    """Small, empty, and larger than any piece."""
    sent = frame(HEARTBEAT) + frame(ASSIGN, b"x" * 300_000) + frame(1, bytes(range(256)))
    with connected(proxy) as connection:
        connection.sendall(sent)
        assert answered(connection, len(sent)) == sent


@pytest.mark.slow
def test_a_key_is_held_back_for_one_broker_alone_and_passed_on_when_let_go(proxy: Topology) -> None:
    """Other keys of that broker pass, and that key of another broker."""
    write_rules(proxy, {0: LinkRule(hold=frozenset({ASSIGN}))})
    held, other, elsewhere = frame(ASSIGN, b"held"), frame(HEARTBEAT, b"beat"), frame(ASSIGN, b"free")
    with connected(proxy) as assigning, connected(proxy) as beating, connected(proxy, 1) as free:
        until(lambda: holds(proxy))
        assigning.sendall(held)
        beating.sendall(other)
        free.sendall(elsewhere)
        assert answered(beating, len(other)) == other
        assert answered(free, len(elsewhere)) == elsewhere
        assert answered(assigning, len(held), 0.5) == b""
        write_rules(proxy, {})
        assert answered(assigning, len(held)) == held


def holds(topology: Topology) -> bool:
    """Has the proxy read the rule?  A request of its own is not answered then."""
    probe = frame(ASSIGN)
    with connected(topology) as connection:
        connection.sendall(probe)
        return not answered(connection, len(probe), 0.3)


@pytest.mark.slow
def test_a_cut_link_ends_what_is_open_and_lets_nobody_in_until_it_is_mended(proxy: Topology) -> None:
    """As a network that is gone; the other broker's stays."""
    beat = frame(HEARTBEAT)
    with connected(proxy) as old, connected(proxy, 1) as other:
        old.sendall(beat)
        assert answered(old, len(beat)) == beat
        write_rules(proxy, {0: LinkRule(cut=True)})
        with contextlib.suppress(ConnectionError):
            assert answered(old, 1, 30) == b""
        assert not passes(proxy)
        other.sendall(beat)
        assert answered(other, len(beat)) == beat
    write_rules(proxy, {})
    until(lambda: passes(proxy))


def passes(topology: Topology) -> bool:
    """Is a request answered?"""
    beat = frame(HEARTBEAT)
    with contextlib.suppress(OSError), connected(topology) as connection:
        connection.sendall(beat)
        return answered(connection, len(beat), 0.5) == beat
    return False


def test_rules_are_kept_and_a_broker_without_one_has_none(topology: Topology) -> None:
    """What passes everything on is not written."""
    assert read_rules(topology) == {}
    rule = LinkRule(hold=frozenset({ASSIGN, HEARTBEAT}))
    write_rules(topology, {0: rule, 1: PASS_ON})
    assert read_rules(topology) == {0: rule}


def test_only_the_names_in_javas_hosts_file_lead_to_the_proxy(topology: Topology) -> None:
    """No file of Kafka's knows of it: the controllers are localhost to everybody."""
    inventory = inventory_of(topology)
    assert inventory.voters == f"3000@localhost:{topology.controllers[0].port}"
    assert len({link_address(broker) for broker in range(1000)}) == 1000
    assert hosts_file(link_address(1)).startswith("127.0.1.2 localhost\n")
    Path(topology.processes).mkdir(parents=True)
    topology.folder("conf").mkdir()
    write_links(topology, process_specs(topology, JAVA, JARS, {}))
    specs = Supervisor(topology.processes).specs()
    assert specs.pop(LINKS).argv[-1] == topology.directory
    for name, argv in ((spec.name, spec.argv) for spec in specs.values()):
        assert f"-Djdk.net.hosts.file={topology.folder('conf', f'{name}.hosts')}" in argv


def test_a_lab_without_proxy_is_as_it_always_was(tmp_path: Path) -> None:
    """Addresses and options."""
    topology = plan_topology(tmp_path / "lab", Shape(brokers=1, controllers=1))
    assert inventory_of(topology).voters.startswith("3000@127.0.0.1:")
    assert not any("hosts.file" in word for spec in process_specs(topology, JAVA, JARS, {}) for word in spec.argv)
    Path(topology.directory).mkdir()
    save_topology(topology)
    assert load_topology(Path(topology.directory)) == topology


def test_the_proxy_is_our_own_python_and_holds_no_secret(topology: Topology) -> None:
    """Its environment has what Python needs to find the package."""
    spec = proxy_spec(topology)
    assert spec.argv[0] == sys.executable
    assert set(spec.environment) == {"PATH", "PYTHONPATH"}
