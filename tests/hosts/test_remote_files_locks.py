"""The lock of a host: held by its kernel while our command there lives, by the real OpenSSH client and without one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DirectoriesRefused, HostCommandRefused, HostCommandUnknown, LockLost, RunLocked
from migrate.hosts.commands import HostAccess
from migrate.hosts.remote_files import LOCK_SUFFIX, HostLock, is_held, owner_of
from migrate.hosts.runner import Holder, LocalRunner, ProgramHolder
from migrate.model.ids import NodeId
from migrate.run.locks import HOST_SUFFIX, HostLocks, LockFile, of_brokers
from tests.hosts.test_about import on_hosts
from tests.testing import worlds
from tests.testing.host_program import broker, here, installed
from tests.testing.ssh_server import SshServer, ssh_server

NODE = NodeId(1)
SECONDS = 30


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshServer, Holder]]:
    """A host behind the real client."""
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on this machine")
    with ssh_server(tmp_path_factory.mktemp("ssh")) as (server, connections):
        yield server, connections.runner("kafka-1")


@pytest.fixture
def access(tmp_path: Path) -> HostAccess:
    """The program of a host with three brokers, their configurations in the test's folder."""
    return installed(tmp_path / "program", [broker(node, tmp_path / f"{node}.properties") for node in range(3)])


@pytest.fixture(params=["local", "ssh"])
def holder(request: pytest.FixtureRequest, access: HostAccess) -> Holder:
    """The program of this host, or of one behind SSH."""
    found: Holder = LocalRunner() if request.param == "local" else request.getfixturevalue("ssh")[1]
    return ProgramHolder(found, access)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the lock file comes to lie."""
    return str(tmp_path / f"1.properties{LOCK_SUFFIX}")


@pytest.mark.slow
def test_it_is_held_until_it_is_given_back(holder: Holder, path: str) -> None:
    """Asked as often as one likes; the next one is told who holds it, and has it afterwards."""
    lock = HostLock(holder, NODE, path, "run 1")
    assert all(lock.still_there() for _ in range(3))
    assert is_held(holder, NODE, path)
    with pytest.raises(RunLocked, match="another process holds this run: run 1") as caught:
        HostLock(holder, NODE, path, "run 2")
    assert caught.value.where.endswith(path)
    assert lock.still_there(), "who is refused takes nothing away"
    lock.release()
    assert not is_held(holder, NODE, path)
    HostLock(holder, NODE, path, "run 2").release()
    assert owner_of(holder, NODE, path) == "run 2"


@pytest.mark.slow
def test_it_is_the_lock_of_a_process_on_that_host(holder: Holder, path: str) -> None:
    """A run there, and one from elsewhere: one of them is refused."""
    here = LockFile(Path(path))
    with pytest.raises(RunLocked, match=f'"pid": {os.getpid()}'):
        HostLock(holder, NODE, path, "run 2")
    here.release()
    lock = HostLock(holder, NODE, path, "run 2")
    with pytest.raises(RunLocked, match="run 2"):
        LockFile(Path(path))
    lock.release()


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_lost(holder: Holder, path: str, replaced: bool) -> None:
    """The kernel's lock is on the old file."""
    lock = HostLock(holder, NODE, path, "run 1")
    Path(path).unlink()
    if replaced:
        other = HostLock(holder, NODE, path, "run 2")
        assert not lock.still_there()
        assert other.still_there()
        other.release()
    assert not lock.still_there()
    lock.release()


@pytest.mark.slow
def test_a_command_that_was_killed_on_the_host_is_a_lost_lock(holder: Holder, path: str) -> None:
    """By whoever has the right to."""
    lock = HostLock(holder, NODE, path, "run 1")
    found = subprocess.run(
        ["pgrep", "-f", rf"^\S*python\S* -IS \S+ lock 1 {path}$"], capture_output=True, text=True, check=True
    )
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    assert not lock.still_there()
    lock.release()
    HostLock(holder, NODE, path, "run 2").release()


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    """No folder is made: the configuration is there, or the inventory is wrong."""
    program = here(installed(tmp_path / "program", [broker(1, tmp_path / "none" / "x")]))
    with pytest.raises(HostCommandRefused, match=r"cannot be held: .*No such file"):
        HostLock(program, NODE, str(tmp_path / "none" / f"x{LOCK_SUFFIX}"), "run 1")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """What it leads to would be emptied."""
    program = here(installed(tmp_path / "program", [broker(1, tmp_path / "x")]))
    (tmp_path / "victim").write_text("precious")
    (tmp_path / f"x{LOCK_SUFFIX}").symlink_to(tmp_path / "victim")
    with pytest.raises(HostCommandRefused, match="symbolic link"):
        HostLock(program, NODE, str(tmp_path / f"x{LOCK_SUFFIX}"), "run 1")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_nothing_held(ssh: tuple[SshServer, Holder], access: HostAccess, path: str) -> None:
    """SIGKILL: its pipes end, the client ends the session, the command's input ends, and the kernel frees the file."""
    program = f"""
        import os, signal
        from migrate.hosts.commands import HostAccess
        from migrate.hosts.runner import ProgramHolder
        from migrate.hosts.remote_files import HostLock
        from migrate.hosts.ssh import SshConnections
        runner = SshConnections({str(ssh[0].config)!r}).runner("kafka-1")
        lock = HostLock(ProgramHolder(runner, HostAccess({access.program!r}, sudo=False)), 1, {path!r}, "killed")
        assert lock.still_there()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with tempfile.TemporaryDirectory() as short:  # for its kept connection, which a killed process cannot remove
        environment = {**os.environ, "TMPDIR": short}
        words = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(words, check=False, timeout=SECONDS, env=environment)
    assert done.returncode == -9
    waited = subprocess.run(["flock", "-w", str(SECONDS), path, "true"], check=False, timeout=2 * SECONDS)
    assert waited.returncode == 0
    program_there = ProgramHolder(ssh[1], access)
    assert owner_of(program_there, NODE, path) == "killed"
    HostLock(program_there, NODE, path, "next").release()


@pytest.mark.slow
def test_a_connection_that_breaks_is_a_lost_lock(tmp_path: Path, access: HostAccess, path: str) -> None:
    """The host goes away: who holds it there now cannot be known."""
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on this machine")
    with ssh_server(tmp_path / "ssh") as (server, connections):
        lock = HostLock(ProgramHolder(connections.runner("kafka-1"), access), NODE, path, "run 1")
        server.stop()
        with pytest.raises(HostCommandUnknown) if _still_there(lock) else pytest.raises(LockLost):
            HostLocks([lock]).still_ours()
        lock.release()


def _still_there(lock: HostLock) -> bool:
    """Does what holds it answer?  The client notices at once, or with the next command."""
    try:
        return lock.still_there()
    except HostCommandUnknown:
        return True


# -- all brokers -------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_broker_is_locked_on_its_host_or_none(holder: Holder, tmp_path: Path) -> None:
    """Two runs of two folders, from two machines: the second one is refused, and leaves nothing locked."""
    inventory = on_hosts(str(tmp_path))
    places = [node.config + HOST_SUFFIX for node in inventory.brokers]

    def take(node: NodeId, place: str, owner: str) -> HostLock:
        return HostLock(holder, node, place, owner)

    last = HostLock(holder, NodeId(2), places[2], "somebody")
    with pytest.raises(RunLocked, match="somebody"):
        of_brokers(inventory, take)
    assert [is_held(holder, NodeId(node), place) for node, place in enumerate(places)] == [False, False, True]
    last.release()
    ours = of_brokers(inventory, take)
    ours.still_ours()
    with pytest.raises(RunLocked, match=f'"pid": {os.getpid()}'):
        of_brokers(inventory, take)
    Path(places[1]).unlink()
    with pytest.raises(LockLost, match="deleted or replaced") as caught:
        ours.still_ours()
    assert caught.value.where.endswith(places[1])
    ours.release()
    owner = json.loads(Path(places[0]).read_text().splitlines()[0])
    assert owner["pid"] == os.getpid()
    assert len(owner["token"]) >= 16


@pytest.mark.slow
def test_an_executor_that_reaches_no_host_locks_none_of_this_one() -> None:
    """A path of another host means nothing here."""
    inventory = replace(worlds.inventory(), executor="by hand")
    with pytest.raises(DirectoriesRefused, match="executor by hand reaches no host"):
        of_brokers(inventory, None)
