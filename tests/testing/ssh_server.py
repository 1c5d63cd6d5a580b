"""A real SSH server on loopback for tests, reached by the real OpenSSH client."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrate.hosts.ssh import SshConnections
from migrate.lab import ssh_hosts
from migrate.lab.topology import free_ports

HOSTS = ("kafka-1", "kafka-2", "kafka-3")


class SshServer:
    """One server process that answers for several host names; it can be stopped, started again, paused and resumed."""

    def __init__(self, folder: Path, hosts: tuple[str, ...] = HOSTS) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self.config = ssh_hosts.prepare(folder, hosts, self.port)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it greets."""
        words = [sys.executable, "-m", "migrate.lab.ssh_hosts", str(self.folder), str(self.port)]
        self._process = subprocess.Popen(words)
        while True:
            assert self._process.poll() is None, "the SSH server ended"
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                    if connection.recv(3) == b"SSH":
                        return
            except ConnectionRefusedError:
                continue

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None
        return self._process.pid

    def pause(self) -> None:
        """It takes connections and answers nothing: a half-open connection."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """SIGKILL, as a host that loses power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def ssh_server(folder: Path) -> Iterator[tuple[SshServer, SshConnections]]:
    """A server that runs, and connections to it."""
    server = SshServer(folder)
    server.start()
    connections = SshConnections(str(server.config))
    try:
        yield server, connections
    finally:
        connections.close()
        server.stop()
