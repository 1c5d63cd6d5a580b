"""One run at a time: the lock is taken by one, lost with the session, and a run that lost it can write no more."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kazoo.security import make_digest_acl

from migrate.errors import LockHeld, LockLost, MalformedZnode, ZookeeperDenied
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, connect
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.lock import LOCK_PATH, ZookeeperLock, acquire, describe, holder_of
from migrate.zookeeper.write import ZookeeperWriter
from tests.testing.zookeeper_server import ZookeeperServer, running_server

pytestmark = pytest.mark.zookeeper

HOLDER = """
import sys
from migrate.errors import LockHeld, LockLost
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
client = connect(sys.argv[1], session_timeout=float(sys.argv[2]))
try:
    lock = acquire(client, "other", "plan-2")
except LockHeld:
    print("held", flush=True)
    sys.exit(7)
print("mine", lock.token, flush=True)
for line in sys.stdin:
    try:
        lock.still_ours()
        print("ours", flush=True)
    except LockLost as error:
        print("lost", error, flush=True)
"""


@contextmanager
def other_process(address: str, session: float = 10.0) -> Iterator[subprocess.Popen[str]]:
    """Another process that takes the lock and answers each line on its stdin with what it believes."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, address, str(session)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """The next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ask(process: subprocess.Popen[str]) -> str:
    """Is the lock still that process's?"""
    assert process.stdin is not None
    process.stdin.write("?\n")
    process.stdin.flush()
    return said(process)


def expire(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """End the client's session for good: another connection with the same session id and password closes it.

    The first connection may take its session back before the closing is read: then once more.
    """
    lost = threading.Event()
    client.on_session_lost(lost.set)
    session, password = client.kazoo.client_id
    greeting = struct.pack("!iqiqi16sB", 0, 0, 10_000, session, 16, password, 0)
    closing = struct.pack("!ii", 1, -11)
    packets = b"".join(struct.pack("!i", len(packet)) + packet for packet in (greeting, closing))
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as thief, suppress(ConnectionError):
            thief.sendall(packets)
            while thief.recv(4096):
                pass
        if lost.wait(1):
            return
    raise AssertionError("the session lives on")


def wait_until_gone(client: ZookeeperClient, path: str, seconds: float) -> bool:
    """Wait for the znode's deletion by a watch."""
    gone = threading.Event()
    if not client.kazoo.exists(path, watch=lambda _: gone.set()):
        return True
    return gone.wait(seconds)


def test_a_lock_says_who_holds_it_and_frees_itself_when_released(client: ZookeeperClient) -> None:
    """Ephemeral, of our session, with owner, host, process, start and plan; the parents stay."""
    lock = acquire(client, "ticket-17", "abc123")
    (znode,) = client.data([LOCK_PATH])
    assert isinstance(znode, Znode)
    assert (znode.ephemeral_owner, znode.czxid) == (client.session, lock.token)
    holder = holder_of(LOCK_PATH, znode)
    assert (holder.owner, holder.plan, holder.pid, holder.session_seconds) == ("ticket-17", "abc123", os.getpid(), 10.0)
    lock.still_ours()
    lock.release()
    assert client.data([LOCK_PATH]) == [Absent.MISSING]
    assert isinstance(client.data(["/kraft-migrate"])[0], Znode)
    with pytest.raises(LockLost):
        lock.still_ours()


def test_a_held_lock_is_refused_at_once_with_its_holder(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """Another process holds it: who, where, since when, and how long it can outlive that process."""
    with other_process(client.connect_string) as other:
        assert said(other).startswith("mine")
        with pytest.raises(LockHeld) as caught:
            acquire(client, "me", "plan-1")
        assert caught.value.exit_code == 7
        for part in ("other", f"pid {other.pid}", "plan plan-2", "since 20", "10 s after its last sign of life"):
            assert part in str(caught.value)
        assert ask(other) == "ours"


def test_of_many_at_once_exactly_one_gets_it(server: ZookeeperServer, chroot: str) -> None:
    """Sessions race for the lock; tokens and fences grow from holder to holder."""
    clients = [server.client(chroot) for _ in range(4)]
    before: ZookeeperLock | None = None
    try:
        for _ in range(10):
            start = threading.Barrier(len(clients))
            results: list[object] = []

            def race(
                client: ZookeeperClient, start: threading.Barrier = start, results: list[object] = results
            ) -> None:
                start.wait()
                try:
                    results.append(acquire(client, "racer", ""))
                except LockHeld as error:
                    results.append(error)

            threads = [threading.Thread(target=race, args=(client,)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=30)
            (winner,) = [result for result in results if isinstance(result, ZookeeperLock)]
            assert len(results) == len(clients)
            if before is not None:
                assert winner.token > before.token
                assert winner.fence.version == before.fence.version + 1
            winner.release()
            before = winner
    finally:
        for client in clients:
            client.close()


def test_a_killed_holder_frees_the_lock_when_its_session_ends(client: ZookeeperClient) -> None:
    """Nothing is waited for: the lock is refused until then, and free after."""
    with other_process(client.connect_string, session=1.0) as other:
        assert said(other).startswith("mine")
        other.kill()
        with pytest.raises(LockHeld):
            acquire(client, "me", "")
        assert wait_until_gone(client, LOCK_PATH, 20)
        acquire(client, "me", "").still_ours()


def test_a_paused_holder_that_wakes_knows_that_it_lost(client: ZookeeperClient) -> None:
    """SIGSTOP past the session, another run takes over, SIGCONT: the first does nothing more."""
    with other_process(client.connect_string, session=1.0) as other:
        token = int(said(other).split()[1])
        other.send_signal(signal.SIGSTOP)
        assert wait_until_gone(client, LOCK_PATH, 20)
        lock = acquire(client, "me", "plan-3")
        assert lock.token > token
        other.send_signal(signal.SIGCONT)
        assert ask(other).startswith("lost")
        assert ask(other).startswith("lost")
        lock.still_ours()


def test_the_end_of_the_session_is_the_end_of_the_lock(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """Known at once by the session's event; a new session does not bring it back."""
    lock = acquire(client, "me", "")
    expire(server, client)
    with pytest.raises(LockLost, match="session ended"):
        lock.still_ours()
    assert client.wait_connected(20)
    with pytest.raises(LockLost):
        lock.still_ours()
    with pytest.raises(LockLost):
        lock.release()
    again = acquire(client, "me", "")
    assert again.token > lock.token
    again.still_ours()


def test_writes_of_a_run_that_lost_the_lock_are_refused_by_zookeeper(
    server: ZookeeperServer, chroot: str, client: ZookeeperClient
) -> None:
    """Even if it never asks: its fence is of an earlier acquisition."""
    client.kazoo.create("/x", b"a")
    lock = acquire(client, "first", "")
    writer = ZookeeperWriter(client, lock.fence)
    writer.set("/x", b"b", 0)
    expire(server, client)
    assert client.wait_connected(20)
    with server.client(chroot) as other:
        new = ZookeeperWriter(other, acquire(other, "second", "").fence)
        new.set("/x", b"c", 1)
        with pytest.raises(LockLost):
            writer.set("/x", b"late", 2)
        new.set("/x", b"d", 2)
    (znode,) = client.data(["/x"])
    assert isinstance(znode, Znode)
    assert znode.data == b"d"


def test_a_lock_that_was_deleted_or_replaced_is_lost(server: ZookeeperServer, chroot: str) -> None:
    """By an operator's hand, or by another run after that."""
    for replaced in (False, True):
        with server.client(chroot) as mine, server.client(chroot) as other:
            lock = acquire(mine, "me", "")
            other.kazoo.delete(LOCK_PATH)
            if replaced:
                acquire(other, "thief", "")
            with pytest.raises(LockLost, match="held by thief" if replaced else "missing"):
                lock.still_ours()
            with pytest.raises(LockLost):
                lock.release()
            assert isinstance(other.data([LOCK_PATH])[0], Znode) == replaced


def test_a_brief_loss_of_the_connection_is_survived(tmp_path: Path) -> None:
    """The server restarts within the session: the lock is asked for again, and is ours."""
    with running_server(tmp_path) as server, server.client(session=30) as client:
        lock = acquire(client, "me", "")
        server.stop()
        server.start()
        lock.still_ours()
        (found,) = client.data([LOCK_PATH])
        assert isinstance(found, Znode), "the session was not lost, nor the znode with it"
        lock.release()
        assert client.data([LOCK_PATH]) == [Absent.MISSING]


def test_a_server_that_cannot_be_asked_is_a_lock_that_is_lost(tmp_path: Path) -> None:
    """After as long as the session lives: nobody could say that it is still ours."""
    with running_server(tmp_path) as server, server.client(session=1) as client:
        lock = acquire(client, "me", "")
        server.stop()
        with pytest.raises(LockLost):
            lock.still_ours()
        server.start()
        assert client.wait_connected(20)
        with pytest.raises(LockLost):
            lock.still_ours()


def test_a_lock_path_of_ones_own(client: ZookeeperClient) -> None:
    """Where the operator made a place for it; two paths are two locks."""
    acquire(client, "me", "", path="/ops/locks/kafka").still_ours()
    acquire(client, "me", "").still_ours()
    assert client.children(["/ops/locks"]) == [("kafka", "kafka-fence")]


def test_a_place_without_rights_is_denied(server: ZookeeperServer, chroot: str) -> None:
    """As inside a chroot with zookeeper.set.acl."""
    acl = make_digest_acl("kafka", "secret", all=True)
    with connect(server.address + chroot, access=ZookeeperAccess(digest="kafka:secret")) as owner:
        owner.kazoo.create("/closed", b"", acl=[acl])
    with server.client(chroot) as foreign, pytest.raises(ZookeeperDenied):
        acquire(foreign, "me", "", path="/closed/lock")


def test_a_foreign_znode_at_the_locks_path_is_held(server: ZookeeperServer, chroot: str) -> None:
    """It is not ours to take; what it says is described as far as it can be."""
    with server.client(chroot) as other, server.client(chroot) as mine:
        other.kazoo.create(LOCK_PATH, b"{}", ephemeral=True, makepath=True)
        with pytest.raises(LockHeld, match="not a run of this tool"):
            acquire(mine, "me", "")
        (znode,) = mine.data([LOCK_PATH])
        assert isinstance(znode, Znode)
        with pytest.raises(MalformedZnode):
            holder_of(LOCK_PATH, znode)
        assert json.dumps(f"0x{znode.ephemeral_owner:x}").strip('"') in describe(LOCK_PATH, znode)
