"""One number over JMX: from a real process, or Unknown with the reason, and never 0 for what was not seen."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from migrate.java import jmx
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import java_argv
from migrate.lab.configure import jmx_options
from migrate.lab.ready import port_answers
from migrate.lab.topology import free_ports
from migrate.model.outcome import Unknown

THREADS = "java.lang:type=Threading"
NEW = "kafka.server:type=AssignmentsManager,name=QueuedReplicaToDirAssignments"
OLD = f"org.apache.{NEW}"


@pytest.mark.parametrize(
    ("output", "errors", "found"),
    [
        (f"time=1\n{OLD}:Value=118\n", "Trying to connect", 118),
        (f"{OLD}:Value=0\n", "", 0),
        (f"{NEW}:Value=7.0\n", "", 7),
        (f"{NEW}:Value=7\n{OLD}:Value=7\n", "", 7),
    ],
)
def test_the_number_is_read_from_what_the_tool_says(output: str, errors: str, found: int) -> None:
    """A line of properties."""
    assert jmx.read(output, errors, "Value", "h:1") == found


@pytest.mark.parametrize(
    ("output", "errors", "why"),
    [
        ("", "No matched attributes for the queried objects [x].", "in KRaft mode alone"),
        ("", "java.lang.SecurityException: Authentication failed! Credentials required", "asks for a password"),
        ("", "Could not connect to JMX url service:jmx:...", "did not answer"),
        ("", "", "has no Value"),
        ("a:Value=NaN\n", "", "has no Value"),
        ("a:OtherValue=3\n", "", "has no Value"),
        ("a:Value=\n", "", "has no Value"),
    ],
)
def test_what_is_no_number_is_unknown_with_its_reason(output: str, errors: str, why: str) -> None:
    """An absent MBean is no empty queue."""
    found = jmx.read(output, errors, "Value", "h:1")
    assert isinstance(found, Unknown)
    assert why in found.reason


def test_where_nobody_listens_no_java_is_started() -> None:
    """Unknown at once, with the address."""
    (port,) = free_ports(1)
    for address in (f"127.0.0.1:{port}", "127.0.0.1:", "nonsense"):
        found = jmx.number(address, THREADS)
        assert isinstance(found, Unknown)
        assert address in found.reason


def test_an_ipv6_address_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are for the URL; the resolver knows no such name."""
    monkeypatch.setattr(jmx, "cached_jars", lambda: None)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        found = jmx.number(f"[::1]:{server.getsockname()[1]}", THREADS)
    assert isinstance(found, Unknown)
    assert "not in the cache of jars" in found.reason


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ZooKeeper with the lab's JMX options: the address."""
    port, client = free_ports(2)
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    words = (str(client), str(tmp_path_factory.mktemp("zookeeper")))
    argv = java_argv(find_java(), kafka_jars().classpath, main, words, (*jmx_options(port), "-Xmx64m"))
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while port_answers(port) or port_answers(client):  # never bound by us: it would be taken from the process
            assert process.poll() is None
            assert time.monotonic() < deadline
        yield f"127.0.0.1:{port}"
        process.kill()


@pytest.mark.zookeeper
def test_a_real_process_is_asked(offered: str) -> None:
    """A number that it has, an MBean that it has not, an attribute that is none."""
    threads = jmx.number(offered, THREADS, "ThreadCount")
    assert not isinstance(threads, Unknown)
    assert threads > 3
    absent = jmx.number(offered, jmx.QUEUED)
    assert isinstance(absent, Unknown)
    assert "in KRaft mode alone" in absent.reason
    assert isinstance(jmx.number(offered, THREADS, "Nothing"), Unknown)
