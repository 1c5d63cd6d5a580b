"""What a round must not leave is found; what it may leave is not held against it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.lab.topology import plan_topology
from migrate.zookeeper.backup import Standing, ZnodeDifference
from migrate.zookeeper.layout import Znode
from tests.long.soak import leaks
from tests.long.soak.znodes import unexplained

MADE = "made-in-dual-write"


def difference(
    path: str, standing: Standing, why: str = "", live: bytes | None = None, kept: bytes = b"{}"
) -> ZnodeDifference:
    """One znode that is not as it was."""
    now = None if live is None else Znode(live, 1, 1, 1, 0)
    return ZnodeDifference(path, standing, why, Znode(kept, 1, 1, 1, 0), now, (), ())


CONFIG = b'{"version":1,"config":{"num.replica.fetchers":"2"}}'
CONFIG_MADE = b'{"version":1,"config":{"background.threads":"3","num.replica.fetchers":"2"}}'


def test_a_process_of_the_round_is_found_by_its_words_and_by_its_place(tmp_path: Path) -> None:
    """And not another's, nor ourselves."""
    wait = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with (
        subprocess.Popen([*wait, f"{tmp_path}/lab"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as named,
        subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as placed,
        subprocess.Popen([*wait, f"{tmp_path}-other"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
    ):
        for process in (named, placed, other):
            assert process.stdout is not None
            assert process.stdout.readline()  # its command may be read: the kernel sets it after the start was told
        found = {pid for pid, _ in leaks.processes_of(tmp_path)}
        assert {named.pid, placed.pid} <= found
        assert not found & {other.pid, os.getpid()}


def test_a_listening_port_is_found_and_a_connected_one_is_not() -> None:
    """By the kernel's own table."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in leaks.listening()
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert client.getsockname()[1] not in leaks.listening()
    assert leaks.ports_in("head\n 0: 0100007F:1F90 00000000:0000 0A 0\n 1: 0100007F:1F91 0:0 01 0\nodd\n") == {8080}


def test_everything_that_is_left_is_told(tmp_path: Path) -> None:
    """Drafts, temporary files, ports; nothing where nothing is left."""
    topology = plan_topology(tmp_path / "lab")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    assert leaks.left(tmp_path, topology, [scratch, tmp_path / "absent"]) == []
    (tmp_path / ".plan.json.0123.new").touch()
    (scratch / "spark-1").mkdir()
    with socket.create_server(("127.0.0.1", topology.zookeeper_port)):
        assert leaks.left(tmp_path, topology, [scratch]) == [
            f"port {topology.zookeeper_port} of zookeeper is open",
            f"temporary file left: {scratch / 'spark-1'}",
            "draft left: .plan.json.0123.new",
        ]


@pytest.mark.slow
def test_descriptors_are_counted() -> None:
    """One more while a file is open."""
    before = leaks.descriptors()
    with Path("/dev/null").open():
        assert leaks.descriptors() == before + 1
    assert leaks.descriptors() == before


def test_a_znode_that_has_a_reason_to_differ_is_not_told() -> None:
    """States and epochs go forward, sessions are others, what was made meanwhile is there."""
    fine = (
        difference("/brokers/topics/a", Standing.SAME),
        difference("/controller_epoch", Standing.NEVER, "an epoch goes forward only"),
        difference(f"/brokers/topics/{MADE}/partitions/0", Standing.LIVE_ONLY),
        difference("/config/changes/config_change_0000000009", Standing.LIVE_ONLY),
        difference("/kraft-migrate", Standing.LIVE_ONLY),
        difference("/kraft-migrate/lock-fence", Standing.LIVE_ONLY),
        difference("/brokers/topics/__consumer_offsets/partitions/7/state", Standing.LIVE_ONLY),
        difference("/config/brokers/2", Standing.DIFFERS, live=CONFIG_MADE, kept=CONFIG),
        difference("/kafka-acl/Topic/x", Standing.DIFFERS, live=b'{"acls":[{"principal":"User:made-in-dual-write"}]}'),
    )
    assert unexplained(fine, MADE) == []


def test_a_znode_without_a_reason_is_told() -> None:
    """Missing, another, new, or a topic that was deleted and created again."""
    wrong = (
        difference("/config/topics/a", Standing.MISSING),
        difference("/config/users/b", Standing.DIFFERS, live=b"{}"),
        difference("/config/brokers/2", Standing.DIFFERS, live=CONFIG_MADE.replace(b'"2"', b'"3"'), kept=CONFIG),
        difference("/kraft-migrate/lock", Standing.LIVE_ONLY),
        difference("/migration", Standing.LIVE_ONLY),
        difference("/odd", Standing.LIVE_ONLY),
        difference(
            "/brokers/topics/a", Standing.NEVER, "the topic was deleted and created again since: it has another id"
        ),
        difference("/config/users/c", Standing.DENIED),
    )
    assert len(unexplained(wrong, MADE)) == len(wrong)
