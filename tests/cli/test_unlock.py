"""`unlock` on a real ZooKeeper: shows whose the lock is, never robs a living owner, removes the one that was named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import LockHeld, LockNotDead, MigrateError
from migrate.model.outcome import Unknown
from migrate.observe.sources import Sources
from migrate.playbook.load import dump_inventory, load_inventory
from migrate.run import locks
from migrate.run.carry_out import acting_alone
from migrate.run.locks import LockFile
from migrate.zookeeper import lock
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.lock import LOCK_PATH, acquire
from migrate.zookeeper.write import ZookeeperWriter
from tests.cli.commands import inventory_in, kraft_migrate
from tests.testing.zookeeper_server import ZookeeperServer, running_server

pytestmark = pytest.mark.zookeeper

OWNER = """
import sys
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
client = connect(sys.argv[1], session_timeout=40.0)
print(acquire(client, "alice", "plan-1").token, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """One real ZooKeeper."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as found:
        yield found


@pytest.fixture
def client(server: ZookeeperServer) -> Iterator[ZookeeperClient]:
    """A session of ours; the lock is gone afterwards."""
    with connect(server.address) as found:
        yield found
        seen = lock.look_at_lock(found, LOCK_PATH)
        if not isinstance(seen, Absent):
            lock.remove_lock(found, seen)


@pytest.fixture
def inventory(server: ZookeeperServer, tmp_path: Path) -> Path:
    """An inventory of a cluster on that ZooKeeper."""
    path = inventory_in(tmp_path)
    path.write_text(dump_inventory(replace(load_inventory(path), zookeeper=server.address)), encoding="utf-8")
    return path


def owner(server: ZookeeperServer) -> subprocess.Popen[str]:
    """Another process that holds the lock, with a session that outlives it by far."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, server.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdecimal()
    return process


def killed(process: subprocess.Popen[str]) -> None:
    """As a crash would end it: its session stays."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_without_a_lock_it_says_so(client: ZookeeperClient, inventory: Path) -> None:
    """Both places are named."""
    answer = kraft_migrate("unlock", "--inventory", inventory)
    assert (answer.code, answer.err) == (0, "")
    assert f"znode    {LOCK_PATH}: nobody holds it" in answer.out
    assert answer.out.rstrip().endswith("lock: nobody")


def test_a_living_owner_is_shown_and_never_robbed(
    server: ZookeeperServer, client: ZookeeperClient, inventory: Path
) -> None:
    """Running or stopped by a signal: the process lives, its id or not."""
    process = owner(server)
    try:
        seen = lock.look_at_lock(client, LOCK_PATH)
        assert isinstance(seen, lock.SeenLock)
        for number in (signal.SIGCONT, signal.SIGSTOP):
            process.send_signal(number)
            answer = kraft_migrate("unlock", "--inventory", inventory, "--id", seen.token)
            assert (answer.code, answer.err.split(":")[0]) == (7, "E-LOCK-03")
            assert f"process {process.pid}" in answer.out
            assert "the process lives" in answer.out
        assert not isinstance(lock.look_at_lock(client, LOCK_PATH), Absent)
    finally:
        killed(process)


def test_a_dead_owners_lock_goes_by_its_id_alone(
    server: ZookeeperServer, client: ZookeeperClient, inventory: Path
) -> None:
    """Shown without one, refused with another, removed with its own; the lock file's text goes with it."""
    killed(owner(server))
    shown = kraft_migrate("unlock", "--inventory", inventory, "-o", "json")
    found = json.loads(shown.out)["znode"]
    assert (found["owner"], found["alive"], found["plan"]) == ("alice", "is dead", "plan-1")
    assert "nothing was removed" in shown.err
    wrong = kraft_migrate("unlock", "--inventory", inventory, "--id", found["id"] + 1)
    assert (wrong.code, "is not the id of this lock" in wrong.err) == (7, True)
    file = Path(load_inventory(inventory).runs) / "lock"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"pid": 1}')
    right = kraft_migrate("unlock", "--inventory", inventory, "--id", found["id"])
    assert (right.code, f"removed: the lock with id {found['id']}" in right.out) == (0, True)
    assert isinstance(lock.look_at_lock(client, LOCK_PATH), Absent)
    assert file.read_text() == ""
    acquire(client, "bob", "plan-2").release()


def test_a_held_lock_file_is_a_living_owner(client: ZookeeperClient, inventory: Path) -> None:
    """The kernel says so, whatever ZooKeeper does."""
    lock = LockFile(Path(load_inventory(inventory).runs) / "lock")
    try:
        assert kraft_migrate("unlock", "--inventory", inventory).code == 7
    finally:
        lock.release()
    assert locks.file_owner(lock.path) == locks.FileOwner(lock.path.read_text(), held=False)


def test_a_later_lock_is_not_removed_in_place_of_the_one_that_was_seen(
    server: ZookeeperServer, client: ZookeeperClient
) -> None:
    """The dead owner's goes by itself, and another run takes it, between the look and the removal."""
    killed(owner(server))
    seen = lock.look_at_lock(client, LOCK_PATH)
    assert isinstance(seen, lock.SeenLock)
    lock.remove_lock(client, seen)
    with connect(server.address) as other:
        mine = acquire(other, "bob", "plan-2")
        with pytest.raises(LockNotDead, match="another run holds the lock by now"):
            lock.remove_lock(client, seen)
        mine.still_ours()
        mine.release()


def test_the_old_owners_writes_are_refused_after_an_unlock(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """A paused one that wakes holds an old fence."""
    with connect(server.address) as other:
        mine = acquire(other, "alice", "plan-1")
        other.kazoo.ensure_path("/written")
        writer = ZookeeperWriter(other, mine.fence)
        writer.set("/written", b"before", 0)
        seen = lock.look_at_lock(client, LOCK_PATH)
        assert isinstance(seen, lock.SeenLock)
        lock.remove_lock(client, seen)
        with pytest.raises(MigrateError):
            writer.set("/written", b"after", 1)
        assert other.kazoo.get("/written")[0] == b"before"


def test_a_lock_that_no_run_of_ours_wrote_is_held(server: ZookeeperServer, inventory: Path) -> None:
    """Whatever stands there: a run that meets it says that the lock is held (exit code 7), and waits for nobody."""
    with connect(server.address) as foreign:
        foreign.kazoo.create(LOCK_PATH, b"{}", ephemeral=True, makepath=True)
        sources = Sources(load_inventory(inventory), Unknown("none was named"), None)
        with pytest.raises(LockHeld, match="not a run of this tool"), acting_alone(sources, "assign"):
            pytest.fail("it is somebody else's")
        sources.close()


def test_processes_of_other_hosts_cannot_be_seen() -> None:
    """And are not called dead."""
    assert locks.process_alive("elsewhere.example", 1) is locks.Alive.UNSEEN
    assert locks.process_alive(os.uname().nodename, os.getpid()) is locks.Alive.LIVES
    assert locks.process_alive(os.uname().nodename, 1 << 64) is locks.Alive.UNSEEN
