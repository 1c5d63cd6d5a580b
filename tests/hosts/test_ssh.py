"""The real OpenSSH client against a real server on loopback: outcomes are known, or said to be unknown."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.errors import HostCommandUnknown, HostDenied, HostKeyNotTrusted, HostPrintsText, HostUnreachable
from migrate.hosts.runner import Completed
from migrate.hosts.ssh import SshConnections, why_not
from migrate.lab import ssh_hosts
from tests.testing.ssh_server import SshServer, ssh_server

RELAY = """\
import os, socket, sys, threading
wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def back():
    while part := wire.recv(65536):
        os.write(1, part)
    os._exit(0)
threading.Thread(target=back).start()
while part := os.read(0, 65536):
    wire.sendall(part)
os._exit(0)
"""
pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshServer, SshConnections]]:
    """A server for the tests that do not harm it."""
    with ssh_server(tmp_path_factory.mktemp("ssh")) as both:
        yield both


@pytest.mark.slow
def test_words_output_errors_and_exit_code_are_the_commands_own(up: tuple[SshServer, SshConnections]) -> None:
    """Quoting survives two shells; stdin is bytes; the code is not the connection's."""
    runner = up[1].runner("kafka-1")
    done = runner.run(["sh", "-c", 'cat; printf %s "$1" >&2; exit 7', "x", "a b'$(id)"], stdin=b"\x00\xff\n")
    assert (done.code, done.output, done.errors) == (7, b"\x00\xff\n", "a b'$(id)")


@pytest.mark.slow
def test_a_megabyte_goes_both_ways(up: tuple[SshServer, SshConnections]) -> None:
    """As a collector's answer does."""
    content = os.urandom(1 << 20)
    assert up[1].runner("kafka-2").run(["cat"], stdin=content).output == content


@pytest.mark.slow
def test_one_connection_is_kept_in_a_folder_of_ours(up: tuple[SshServer, SshConnections]) -> None:
    """A second command finds the control socket of the first; nobody else may open it."""
    connections = SshConnections(str(up[0].config))
    try:
        runner = connections.runner("kafka-3")
        for _ in range(3):
            assert runner.run(["true"]).code == 0
        folder = Path(next(word for word in connections.argv("kafka-3") if "ControlPath" in word).split("=")[1]).parent
        sockets = [entry for entry in folder.iterdir() if stat.S_ISSOCK(entry.stat().st_mode)]
        assert len(sockets) == 1
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        connections.close()
    assert not folder.exists()


@pytest.mark.slow
def test_hosts_of_one_address_have_a_connection_each(tmp_path: Path) -> None:
    """Names that only their ProxyCommand tells apart: no command for one goes where the other's went."""
    (tmp_path / "relay.py").write_text(RELAY)
    servers = [SshServer(tmp_path / name, (name,)) for name in ("kafka-1", "kafka-2")]
    shutil.copy(servers[0].folder / "user_key.pub", servers[1].folder / "user_key.pub")
    parts = []
    for server in servers:
        (server.folder / ssh_hosts.BIN / "hostname").write_text(f"#!/bin/sh\necho {server.folder.name}\n")
        (server.folder / ssh_hosts.BIN / "hostname").chmod(0o755)
        text = server.config.read_text().replace(f"Port {server.port}", "Port 22")
        text = text.replace(str(server.folder / "user_key"), str(servers[0].folder / "user_key"))
        parts.append(f"{text}  ProxyCommand {sys.executable} {tmp_path}/relay.py {server.port}\n")
        server.start()
    (tmp_path / "config").write_text("".join(parts))
    connections = SshConnections(str(tmp_path / "config"))
    try:
        said = [connections.runner(host).run(["hostname"]).output for host in ("kafka-1", "kafka-2", "kafka-1")]
    finally:
        connections.close()
        for server in servers:
            server.stop()
    assert said == [b"kafka-1\n", b"kafka-2\n", b"kafka-1\n"]


def test_an_unknown_host_key_is_not_accepted(up: tuple[SshServer, SshConnections], tmp_path: Path) -> None:
    """Never accept-new: the first connection is the one to be careful with."""
    with _other_known_hosts(up[0], tmp_path, b"") as connections, pytest.raises(HostKeyNotTrusted) as caught:
        connections.runner("kafka-1").run(["true"])
    assert caught.value.exit_code == 1
    assert "known_hosts" in caught.value.next_step


def test_a_changed_host_key_is_not_accepted(up: tuple[SshServer, SshConnections], tmp_path: Path) -> None:
    """Another machine answers at that address, or somebody in between."""
    other = (up[0].folder / "user_key.pub").read_bytes()
    with (
        _other_known_hosts(up[0], tmp_path, b"kraft-migrate-lab " + other) as connections,
        pytest.raises(HostKeyNotTrusted),
    ):
        connections.runner("kafka-1").run(["true"])


def test_a_key_that_the_host_does_not_know_is_denied(up: tuple[SshServer, SshConnections], tmp_path: Path) -> None:
    """Told apart from a host that is not there."""
    text = up[0].config.read_text().replace(str(up[0].folder / ssh_hosts.USER_KEY), str(up[0].folder / "host_key"))
    (tmp_path / "config").write_text(text)
    connections = SshConnections(str(tmp_path / "config"))
    try:
        with pytest.raises(HostDenied):
            connections.runner("kafka-1").run(["true"])
    finally:
        connections.close()


def test_text_of_a_login_file_is_no_commands_answer() -> None:
    """A .bashrc that greets everybody would stand before each answer."""
    assert isinstance(why_not("kafka-1", Completed(0, b"Welcome to kafka-1\n", "")), HostPrintsText)


@pytest.mark.slow
def test_a_host_that_is_down_is_unreachable_and_found_again(tmp_path: Path) -> None:
    """The command never began, so asking again is safe; a connection that broke in a command is not that."""
    with ssh_server(tmp_path / "ssh") as (server, connections):
        runner = connections.runner("kafka-1")
        assert runner.run(["true"]).code == 0
        server.stop()
        with pytest.raises(HostCommandUnknown):
            runner.run(["true"])
        with pytest.raises(HostUnreachable):
            runner.run(["true"])
        server.start()
        assert runner.run(["true"]).code == 0


@pytest.mark.slow
def test_a_connection_that_breaks_in_a_command_leaves_its_outcome_unknown(tmp_path: Path) -> None:
    """The command did its work: nobody may say that it failed."""
    with ssh_server(tmp_path / "ssh") as (server, connections):
        runner = connections.runner("kafka-1")
        assert runner.run(["true"]).code == 0
        with pytest.raises(HostCommandUnknown, match="outcome is unknown") as caught:
            runner.run(["sh", "-c", f'echo done > "{tmp_path}/mark"; kill -9 {server.pid}; sleep 60'], seconds=60)
        assert not isinstance(caught.value, HostUnreachable)
        assert (tmp_path / "mark").read_text() == "done\n"


@pytest.mark.slow
def test_a_command_without_end_is_given_up_and_unknown(up: tuple[SshServer, SshConnections]) -> None:
    """A hanging disk hangs the command that looks at it."""
    with pytest.raises(HostCommandUnknown, match="no end in 1 s"):
        up[1].runner("kafka-2").run(["sleep", "60"], seconds=1)


class _other_known_hosts:  # noqa: N801 - reads as a function
    """Connections with the server's configuration but for the known hosts."""

    def __init__(self, server: SshServer, folder: Path, known: bytes) -> None:
        (folder / "known").write_bytes(known)
        text = server.config.read_text().replace(str(server.folder / ssh_hosts.KNOWN), str(folder / "known"))
        (folder / "config").write_text(text)
        self._connections = SshConnections(str(folder / "config"))

    def __enter__(self) -> SshConnections:
        return self._connections

    def __exit__(self, *_: object) -> None:
        self._connections.close()
