"""The run's lock: an ephemeral znode that names its holder, with its czxid as fencing token.

The lock goes with its session: ZooKeeper frees it some seconds after its process died, or hangs.
Beside it is a persistent znode whose version counts acquisitions: writes that check that version in their own
transaction are refused by ZooKeeper once another run has acquired the lock, even if the old run has not noticed.
Where Kafka's znodes are closed (zookeeper.set.acl), these are closed as well: else anybody could block a run.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, make_acl

from migrate.errors import (
    LockHeld,
    LockLost,
    LockNotDead,
    MalformedZnode,
    ZnodeChanged,
    ZookeeperDenied,
    ZookeeperSessionLost,
)
from migrate.model.outcome import Unknown
from migrate.model.views import ZookeeperSession
from migrate.zookeeper.client import ZookeeperClient, address_of, parse_connect_string, translated
from migrate.zookeeper.fields import JsonZnode
from migrate.zookeeper.layout import TOPICS, Absent, Znode

LOCK_PATH: Final = "/kraft-migrate/lock"
CHANGES: Final = 2 | 4 | 8  # WRITE, CREATE, DELETE
ATTEMPTS: Final = 5  # the lock may go between the refusal and our look at its holder


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the lock: `since` is ISO 8601 (for people), `session_seconds` how long it outlives its process."""

    owner: str
    host: str
    pid: int
    since: str
    plan: str
    session_seconds: float


@dataclass(frozen=True, slots=True)
class Fence:
    """The znode and version that a guarded write checks in its own transaction."""

    path: str
    version: int


class ZookeeperLock:
    """An acquired lock.  `token` is the lock znode's czxid: greater for each later holder."""

    def __init__(self, client: ZookeeperClient, path: str, znode: Znode, fence: Fence) -> None:
        self.client = client
        self.path = path
        self.token = znode.czxid
        self.session = znode.ephemeral_owner
        self.fence = fence
        self._lost = threading.Event()
        client.on_session_lost(self._lost.set)

    def still_ours(self) -> None:
        """Return only if ZooKeeper confirms that the lock is held; wait out a brief loss of the connection.

        Raises LockLost: the session ended, the znode is another one or gone, or nobody could be asked for as long as a
        session lives.
        """
        if self._lost.is_set():
            raise self._loss("the ZooKeeper session ended")
        if not self.client.wait_connected(self.client.session_timeout):
            raise self._loss("ZooKeeper could not be asked for as long as the session lives")
        try:
            self.client.sync(self.path)
            (znode,) = self.client.data([self.path])
        except ZookeeperSessionLost as error:
            raise self._loss("ZooKeeper could not be asked") from error
        if self._lost.is_set():
            raise self._loss("the ZooKeeper session ended")
        if isinstance(znode, Absent):
            raise self._loss(f"the lock znode is {znode.value}")
        if znode.czxid != self.token or znode.ephemeral_owner != self.session:
            raise self._loss(f"another run holds it: {describe(self.path, znode)}")

    def release(self) -> None:
        """Give the lock back; LockLost if it is not ours (nothing is deleted then)."""
        self.still_ours()
        transaction = self.client.kazoo.transaction()
        transaction.check(self.fence.path, self.fence.version)
        transaction.delete(self.path, 0)
        if self.client.commit(transaction, self.path) != [True, True]:
            raise self._loss("the lock changed while it was released")

    def _loss(self, reason: str) -> LockLost:
        self._lost.set()
        return LockLost(
            f"the lock is lost: {reason}",
            where=self.path,
            why="another run may be acting on this cluster: this one does nothing more",
        )


def acquire(client: ZookeeperClient, owner: str, plan: str, path: str = LOCK_PATH) -> ZookeeperLock:
    """Take the lock, or raise LockHeld at once (it never waits).

    `owner` is a person or system, `plan` the plan's fingerprint; `path` is relative to the chroot, its parents are made
    persistent.
    """
    fence_path = f"{path}-fence"
    holder = LockHolder(
        owner=owner,
        host=socket.gethostname(),
        pid=os.getpid(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        plan=plan,
        session_seconds=client.session_timeout,
    )
    acl = _acl(client)
    _prepare(client, path, fence_path, acl)
    for _ in range(ATTEMPTS):
        fence = _try(client, (path, fence_path), holder, acl)
        (znode,) = client.data([path])
        if isinstance(znode, Absent):
            continue
        if znode.ephemeral_owner != client.session:
            raise LockHeld(describe(path, znode), where=path)
        if fence is None:  # an answer was lost: the lock is ours, its fence is read
            (found,) = client.data([fence_path])
            if isinstance(found, Absent):
                raise LockLost("the fence next to the lock is gone", where=fence_path)
            fence = Fence(fence_path, found.version)
        return ZookeeperLock(client, path, znode, fence)
    raise LockHeld("the lock comes and goes: another run is starting or ending", where=path)


def _acl(client: ZookeeperClient) -> list[ACL] | None:
    """All for this identity, read for everybody, as brokers with zookeeper.set.acl do; None: as open as Kafka's are.

    A certificate's identity is not known by a name here: what it makes stays open.  `auth` is this session's own.
    """
    (theirs,) = client.acls([TOPICS])
    is_open = isinstance(theirs, Absent) or any(who == "anyone" and bits & CHANGES for bits, _, who in theirs)
    if is_open or not client.sasl_user:
        return None
    name = client.sasl_user
    mine = make_acl("auth", "", all=True) if isinstance(name, Unknown) else make_acl("sasl", name, all=True)
    return [mine, make_acl("world", "anyone", read=True)]


def _prepare(client: ZookeeperClient, path: str, fence_path: str, acl: list[ACL] | None) -> None:
    with translated(path):
        try:
            client.kazoo.ensure_path_async(fence_path, acl).get(timeout=3 * client.session_timeout)
        except kazoo_errors.NoNodeError as error:
            raise ZookeeperDenied("the lock's parent cannot be made", where=path) from error
        except kazoo_errors.NoAuthError as error:
            raise ZookeeperDenied(
                "this identity may not make the lock's parent: it needs CREATE on the last znode above that exists",
                where=path,
            ) from error


def _try(client: ZookeeperClient, paths: tuple[str, str], holder: LockHolder, acl: list[ACL] | None) -> Fence | None:
    """Create the lock and count the acquisition in one transaction; None if it exists already."""
    path, fence_path = paths
    transaction = client.kazoo.transaction()
    data = {name: getattr(holder, name) for name in LockHolder.__slots__}
    transaction.create(path, json.dumps({"version": 1, **data}).encode(), acl=acl, ephemeral=True)
    transaction.set_data(fence_path, str(holder.pid).encode(), -1)  # bound to the creation: no write of its own
    match client.commit(transaction, path):
        case [str(), ZnodeStat(version=version)]:
            return Fence(fence_path, version)
        case [kazoo_errors.NodeExistsError(), *_]:
            return None
        case [kazoo_errors.NoAuthError(), *_]:
            raise ZookeeperDenied("this identity may not create the lock: it needs CREATE on its parent", where=path)
        case [_, kazoo_errors.NoAuthError()]:
            raise ZookeeperDenied("this identity may not count the lock: it needs WRITE on it", where=fence_path)
        case answers:
            failures = ", ".join(type(each).__name__ for each in answers)
            raise ZnodeChanged(f"the lock cannot be made ({failures})", where=path)


def holder_of(path: str, znode: Znode) -> LockHolder:
    fields = JsonZnode.parse(path, znode.data)
    fields.version((1,))
    return LockHolder(
        owner=fields.text("owner"),
        host=fields.text("host"),
        pid=fields.integer("pid", low=1),
        since=fields.text("since"),
        plan=fields.text("plan"),
        session_seconds=fields.number("session_seconds"),
    )


def describe(path: str, znode: Znode) -> str:
    try:
        holder = holder_of(path, znode)
    except MalformedZnode:
        return f"held by session 0x{znode.ephemeral_owner:x}, which is not a run of this tool"
    return (
        f"held by {holder.owner} on {holder.host} (pid {holder.pid}) since {holder.since}, plan {holder.plan or '-'}; "
        f"if that process is dead, ZooKeeper frees it {holder.session_seconds:g} s after its last sign of life"
    )


SECONDS: Final = 3.0  # a server, to connect and to answer
WHOLE: Final = 10  # times as long for all of an answer, which may be long and come in pieces
MOST_BYTES: Final = 4 << 20
NOT_ALLOWED: Final = "is not in the whitelist"
LINE: Final = re.compile(r"^ ?/?(?P<address>.+):(?P<port>[0-9]+)\[[0-9]*\]\((?P<facts>.*)\)$")
SESSION: Final = re.compile(r"\bsid=0x(?P<id>[0-9a-f]+)\b")


def sessions(connect: str, *, seconds: float = SECONDS) -> tuple[ZookeeperSession, ...] | Unknown:
    """The sessions of every server, sorted; Unknown where one does not answer (each knows only its own clients).

    A server allows the word by 4lw.commands.whitelist; the default allows none but `srvr`.
    """
    found: set[ZookeeperSession] = set()
    for server in parse_connect_string(connect).servers:
        answer = ask_server(server, b"cons", seconds)
        if isinstance(answer, Unknown):
            return answer
        found.update(parse_sessions(answer))
    return tuple(sorted(found, key=lambda entry: (entry.host, entry.session)))


def ask_server(server: str, word: bytes, seconds: float = SECONDS) -> str | Unknown:
    """The answer to a four-letter word."""
    try:
        return answer_of(server, word, seconds)
    except OSError as error:
        return Unknown(f"{server} does not answer {word.decode()}: {error}")


def answer_of(server: str, word: bytes, seconds: float = SECONDS) -> str | Unknown:
    """The same; OSError where nobody answers, ConnectionRefusedError where nothing listens."""
    name, deadline = word.decode(), time.monotonic() + WHOLE * seconds
    with socket.create_connection(address_of(server), timeout=seconds) as connection:
        connection.sendall(word)
        data = b""
        while len(data) <= MOST_BYTES and (part := connection.recv(1 << 16)):
            data += part
            if time.monotonic() > deadline:
                raise TimeoutError("its answer does not end")
    if len(data) > MOST_BYTES:
        return Unknown(f"{server} answers {name} with more than {MOST_BYTES:,} bytes")
    text = data.decode("utf-8", "replace")
    if NOT_ALLOWED in text:
        return Unknown(f"{server} does not allow {name} (4lw.commands.whitelist)")
    if not text.strip():
        return Unknown(f"{server} answers {name} with nothing (TLS, or another service)")
    return text


def parse_sessions(text: str) -> list[ZookeeperSession]:
    """Parse the sessions in an answer, without this request's connection, which has none (pure)."""
    found = []
    for line in text.splitlines():
        match = LINE.match(line.rstrip())
        session = match and SESSION.search(match["facts"])
        if match and session:
            host = match["address"].strip("[]").partition("%")[0]
            number = int(session["id"], 16)
            found.append(ZookeeperSession(host, number - (1 << 64) if number >= 1 << 63 else number))
    return found


@dataclass(frozen=True, slots=True)
class SeenLock:
    """An observed lock: its holder (None: not a run's), its id, the fence beside it."""

    path: str
    holder: LockHolder | None
    token: int  # czxid of the lock: no other lock ever has it
    session: int
    fence_version: int | None


def look_at_lock(client: ZookeeperClient, path: str) -> SeenLock | Absent:
    lock, fence = client.data([path, f"{path}-fence"])
    if isinstance(lock, Absent):
        return lock
    try:
        holder = holder_of(path, lock)
    except MalformedZnode:
        holder = None
    version = fence.version if isinstance(fence, Znode) else None
    return SeenLock(path, holder, lock.czxid, lock.ephemeral_owner, version)


def remove_lock(client: ZookeeperClient, seen: SeenLock) -> None:
    """Delete that lock and no later one, and fence its owner's writes; LockNotDead where it is another by now.

    The fence counts acquisitions: with its version unchanged the lock is the one that was seen.  Its version is raised
    in the same transaction, so that whatever the old owner still has in progress is refused by ZooKeeper.
    """
    if seen.fence_version is None:
        raise LockNotDead(
            "there is no fence next to the lock, so it cannot be distinguished from a later one",
            where=seen.path,
            next_step="it is no lock of this tool: find out whose it is, and delete it with ZooKeeper's own shell",
        )
    now = look_at_lock(client, seen.path)
    if isinstance(now, Absent):
        raise LockNotDead("the lock is gone already", where=seen.path, next_step="nothing to do")
    if (now.token, now.fence_version) != (seen.token, seen.fence_version):
        raise LockNotDead(f"another run holds the lock by now: id {now.token}", where=seen.path)
    transaction = client.kazoo.transaction()
    transaction.check(f"{seen.path}-fence", seen.fence_version)
    transaction.delete(seen.path, -1)  # bound to the fence's version: no later lock
    transaction.set_data(f"{seen.path}-fence", b"unlocked", seen.fence_version)
    if any(isinstance(result, Exception) for result in client.commit(transaction, seen.path)):
        raise LockNotDead("the lock changed while it was removed; nothing was deleted", where=seen.path)
