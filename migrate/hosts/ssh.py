"""Hosts reached by the OpenSSH client, with the operator's own configuration: keys, agent, ProxyJump, known hosts.

One connection a host is opened and kept (ControlMaster); every command is a session on it.  A host key that is not
known, or another than the known one, ends the matter: nothing here accepts keys.  What became of a command when the
connection broke is unknown, and is said so; whoever asked looks at the world again.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from migrate.errors import (
    HostCommandUnknown,
    HostDenied,
    HostKeyNotTrusted,
    HostPrintsText,
    HostUnreachable,
    MigrateError,
    SshMissing,
)
from migrate.hosts.commands import destination, quote
from migrate.hosts.runner import COMMAND_SECONDS, Completed, HeldCommand, environment, stream

CONNECT_SECONDS: Final = 10
ALIVE_SECONDS: Final = 5  # a half-open connection is given up after four of these
CONNECTION_BROKE: Final = 255  # ssh(1): "or with 255 if an error occurred"
OPTIONS: Final = (
    "BatchMode=yes",  # never a prompt: who types at 03:00 is not the one who started the run
    "StrictHostKeyChecking=yes",
    f"ConnectTimeout={CONNECT_SECONDS}",
    f"ServerAliveInterval={ALIVE_SECONDS}",
    "ServerAliveCountMax=3",
    "ForwardAgent=no",
    "ForwardX11=no",
    "GSSAPIDelegateCredentials=no",
    "UpdateHostKeys=no",  # nothing here adds keys to known_hosts
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RequestTTY=no",
    "EscapeChar=none",
    "SendEnv=-LC_*",  # messages of the programs there are read: they must be in their own English
    "SendEnv=-LANG",
    "LogLevel=ERROR",
)
_UNTRUSTED: Final = ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED", "No matching host key")
_DENIED: Final = ("Permission denied (", "Too many authentication failures", "no mutual signature")


class SshConnections:
    """The kept connections of one run, in a folder of mode 0700; `close` ends them."""

    def __init__(self, configuration: str | None = None) -> None:
        self._configuration = configuration
        self._program = shutil.which("ssh")
        self._folder: Path | None = None
        self._hosts: set[str] = set()
        self._lock = threading.Lock()

    def runner(self, host: str) -> SshRunner:
        """Return a runner for that host; it connects on first use."""
        return SshRunner(self, destination(host))

    def argv(self, host: str) -> list[str]:
        """The client with all its options, up to the host.  Raises SshMissing."""
        client = self._client()
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="kraft-migrate-ssh-"))  # mode 0700
            self._hosts.add(host)
        kept = ("ControlMaster=auto", f"ControlPath={_socket(self._folder, host)}", "ControlPersist=60")
        return [*client, *(word for option in (*OPTIONS, *kept) for word in ("-o", option)), "--", host]

    def _client(self) -> list[str]:
        if self._program is None:
            raise SshMissing("there is no `ssh` on this host", next_step="install the OpenSSH client")
        return [self._program, *(["-F", self._configuration] if self._configuration else [])]

    def account(self, host: str) -> str:
        """The login user of ssh's configuration for that host, without connecting.  SshMissing, HostDenied."""
        argv = [*self._client(), "-G", "--", destination(host)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        found = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("user ")]
        if done.returncode or not found:
            raise HostDenied(f"ssh -G prints no user: {done.stderr.strip() or done.returncode}", where=host)
        return found[0]

    def close(self) -> None:
        """End the kept connections and remove their folder; a second call does nothing."""
        with self._lock:
            folder, hosts, self._folder, self._hosts = self._folder, self._hosts, None, set()
        if folder is None:
            return
        for host in hosts:
            asked = [*self._client(), "-o", f"ControlPath={_socket(folder, host)}", "-O", "exit", "--", host]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(asked, capture_output=True, timeout=CONNECT_SECONDS, check=False)
        shutil.rmtree(folder, ignore_errors=True)


class SshRunner:
    def __init__(self, connections: SshConnections, host: str) -> None:
        self.host = host
        self._connections = connections
        self._first = threading.Lock()  # two sessions at once would open two connections
        self._opened = False

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """Run to its end.

        Raises:
            HostUnreachable, HostKeyNotTrusted, HostDenied, HostPrintsText: it never began.
            HostCommandUnknown: the connection broke, or there was no end in time.
            SshMissing: no OpenSSH client here.
            WordRefused: a word that no command of ours has.
        """
        self._open()
        done = self._session(quote(words), stdin, seconds, words[0])
        if done.code == CONNECTION_BROKE:
            self._opened = False
            raise HostCommandUnknown(
                f"the connection broke while `{words[0]}` ran, and its outcome is unknown: "
                f"{done.says or 'ssh itself said nothing'}",
                where=self.host,
            )
        return done

    def hold(self, words: Sequence[str]) -> HeldCommand:
        self._open()
        argv = [*self._connections.argv(self.host), quote(words)]
        try:
            return HeldCommand(argv, self.host, environment())
        except OSError as error:
            raise HostUnreachable(f"ssh did not start: {error.strerror or error}", where=self.host) from error

    def _open(self) -> None:
        """Open the kept connection, proven by a command that does nothing: a failure here has changed nothing."""
        with self._first:
            if self._opened:
                return
            done = self._session("true", b"", CONNECT_SECONDS * 3, "true")
            if done.code or done.output:
                raise why_not(self.host, done)
            self._opened = True

    def _session(self, text: str, stdin: bytes, seconds: float, name: str) -> Completed:
        argv = [*self._connections.argv(self.host), text]
        try:
            return stream(argv, f"{self.host}: {name}", stdin, seconds, env=environment())
        except TimeoutError as error:
            self._opened = False
            raise HostCommandUnknown(f"`{name}` came to no end in {seconds:.0f} s", where=self.host) from error
        except OSError as error:
            raise HostUnreachable(f"ssh did not start: {error.strerror or error}", where=self.host) from error


def _socket(folder: Path, host: str) -> Path:
    """Named by the host of the inventory: ssh's own %C is the same for two hosts with equal HostName and Port.

    Two such hosts differ only by their ProxyCommand or ProxyJump, and one would be given the other's commands.
    """
    return folder / hashlib.sha256(host.encode()).hexdigest()[:20]


def why_not(host: str, done: Completed) -> MigrateError:
    """Classify why a connection was not opened, by ssh's messages (pure)."""
    if any(text in done.errors for text in _UNTRUSTED):
        return HostKeyNotTrusted(f"its host key is not the known one, or not known at all: {done.says}", where=host)
    if any(text in done.errors for text in _DENIED):
        return HostDenied(f"ssh was refused: {done.says}", where=host)
    if done.code == CONNECTION_BROKE:
        return HostUnreachable(f"no connection: {done.says}", where=host)
    if not done.code:
        text = " ".join(done.output.decode(errors="replace").split())
        return HostPrintsText(f"a command that prints nothing printed: {text[:200]!r}", where=host)
    return HostDenied(f"a command that does nothing ended with {done.code}: {done.says}", where=host)
