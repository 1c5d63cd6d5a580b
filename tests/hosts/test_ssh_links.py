"""Slow, cut and half-open connections with the real OpenSSH client: what is not known is soon said to be unknown."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate.errors import HostCommandUnknown, HostUnreachable
from migrate.hosts import ssh
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import ProgramHolder
from migrate.hosts.ssh import SshConnections, SshRunner
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks
from tests.testing.host_program import broker, installed
from tests.testing.ssh_server import SshServer, ssh_server
from tests.testing.tcp_link import Link, link_to

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
NODE = NodeId(1)
MEANWHILE = 20.0  # seconds for a busy machine on top of what the client itself waits


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """One that nothing is done to."""
    with ssh_server(tmp_path_factory.mktemp("ssh")) as (found, _):
        yield found


@pytest.fixture
def wire(server: SshServer) -> Iterator[Link]:
    """What the client reaches the server by."""
    with link_to(server.port) as link:
        yield link


@contextmanager
def over(wire: Link, server: SshServer, folder: Path) -> Iterator[SshRunner]:
    """Commands over that wire."""
    text = server.config.read_text().replace(f"Port {server.port}", f"Port {wire.port}")
    (folder / "ssh_config").write_text(text)
    connections = SshConnections(str(folder / "ssh_config"))
    try:
        yield connections.runner("kafka-1")
    finally:
        wire.heal()
        wire.cut()
        connections.close()


@pytest.fixture
def runner(server: SshServer, wire: Link, tmp_path: Path) -> Iterator[SshRunner]:
    """The same, for one wire."""
    with over(wire, server, tmp_path) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own waits: four seconds and two, instead of twenty and ten."""
    shorter = {"ServerAliveInterval=5": "ServerAliveInterval=1", "ConnectTimeout=10": "ConnectTimeout=2"}
    assert set(shorter) < set(ssh.OPTIONS)
    assert "ServerAliveCountMax=3" in ssh.OPTIONS
    monkeypatch.setattr(ssh, "OPTIONS", tuple(shorter.get(option, option) for option in ssh.OPTIONS))


def program(runner: SshRunner, folder: Path) -> ProgramHolder:
    """The host program at its end."""
    return ProgramHolder(runner, installed(folder / "program", [broker(1, folder / "server.properties")]))


# -- slow --------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_slow_connection_is_waited_for_and_loses_nothing(wire: Link, runner: SshRunner, tmp_path: Path) -> None:
    """A narrow line with a tenth of a second: the look at a broker's disks is whole."""
    (tmp_path / "d0/t-0").mkdir(parents=True)
    (tmp_path / "d0/meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=REh233dFSJKhrlnVHSnalQ\n")
    wire.slow(60_000, 0.05)
    disks = CollectorDisks({NODE: program(runner, tmp_path)}).look(NODE, [str(tmp_path / "d0")], None)
    assert isinstance(disks, BrokerDisks)
    assert list(disks.directories[0].replicas.topic) == ["t"]


# -- cut ---------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_connection_that_is_cut_in_a_command_leaves_its_outcome_unknown(
    wire: Link, runner: SshRunner, tmp_path: Path
) -> None:
    """The command did its work, and its answer is lost; the next command has a connection of its own."""
    assert runner.run(["true"]).code == 0
    mark = tmp_path / "mark"
    wire.cut_once(mark.exists)
    with pytest.raises(HostCommandUnknown, match="outcome is unknown") as caught:
        runner.run(["sh", "-c", f'echo done > "{mark}"; echo; cat /dev/zero'])
    assert not isinstance(caught.value, HostUnreachable)
    assert runner.run(["cat", str(mark)]).output == b"done\n"


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1500, 20_000])
def test_a_file_is_old_or_new_wherever_its_writing_was_cut(
    wire: Link, runner: SshRunner, tmp_path: Path, count: int
) -> None:
    """And the same write afterwards makes it new, with nothing left beside it."""
    path = tmp_path / "server.properties"
    old, new = b"broker.id=1\n" * 500, b"node.id=1\n" * 3000
    path.write_bytes(old)
    path.chmod(0o640)
    files = RemoteFiles({NODE: program(runner, tmp_path)})
    assert runner.run(["true"]).code == 0
    wire.cut_after(count)
    with contextlib.suppress(HostCommandUnknown):  # cut before it began, the client connects anew
        files.write(NODE, str(path), new)
    assert path.read_bytes() in (old, new)
    wire.heal()
    files.write(NODE, str(path), new)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (new, 0o640)
    assert [entry.name for entry in tmp_path.iterdir() if "server.properties" in entry.name] == [path.name]


# -- half-open ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_half_open_connection_is_noticed_and_its_command_unknown(server: SshServer, tmp_path: Path) -> None:
    """Nothing ends it, whichever way is silent: no reset, no end of file.  The client asks for a sign of life."""

    def one(ways: tuple[str, ...]) -> float:
        folder = tmp_path / "-".join(ways)
        folder.mkdir()
        with link_to(server.port) as wire, over(wire, server, folder) as runner:
            assert runner.run(["true"]).code == 0
            wire.hold(*ways)
            begun = time.monotonic()
            with pytest.raises(HostCommandUnknown, match="outcome is unknown"):
                runner.run(["true"], seconds=120)
            took = time.monotonic() - begun
            wire.cut()
            wire.heal()
            assert runner.run(["true"]).code == 0
            return took

    with ThreadPoolExecutor(3) as pool:
        took = list(pool.map(one, (("out", "back"), ("out",), ("back",))))
    assert max(took) < 4 + 2 + MEANWHILE


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_host_that_takes_connections_and_says_nothing_is_unreachable(wire: Link, runner: SshRunner) -> None:
    """Nothing began: asking again is safe."""
    wire.hold()
    begun = time.monotonic()
    with pytest.raises(HostUnreachable):
        runner.run(["true"])
    assert time.monotonic() - begun < 2 + MEANWHILE
    wire.cut()
    wire.heal()
    assert runner.run(["true"]).code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_disks_behind_a_half_open_connection_are_unknown(wire: Link, runner: SshRunner, tmp_path: Path) -> None:
    """Neither healthy nor failed, with the error's id."""
    disks = CollectorDisks({NODE: program(runner, tmp_path)})
    assert runner.run(["true"]).code == 0
    wire.hold("back")
    found = disks.look(NODE, [str(tmp_path)], None)
    assert isinstance(found, Unknown)
    assert "E-HOST-21" in found.reason


@pytest.mark.long
def test_a_half_open_connection_is_noticed_after_twenty_seconds(wire: Link, runner: SshRunner) -> None:
    """As the page says: four unanswered questions, then ten seconds for a new connection."""
    assert runner.run(["true"]).code == 0
    wire.hold()
    begun = time.monotonic()
    with pytest.raises(HostCommandUnknown, match="outcome is unknown"):
        runner.run(["true"], seconds=120)
    assert 15 < time.monotonic() - begun < 20 + 10 + MEANWHILE
