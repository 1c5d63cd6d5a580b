"""Removes a lock that its owner will not give back: exactly the one that was looked at, or none."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.errors import LockNotDead, MalformedZnode
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.lock import LockHolder, holder_of
from migrate.zookeeper.znode import Absent, Znode


@dataclass(frozen=True, slots=True)
class SeenLock:
    """A lock as it was looked at: who says to hold it (None: no run of ours), its id, the fence beside it."""

    path: str
    holder: LockHolder | None
    token: int  # czxid of the lock: no other lock ever has it
    session: int
    fence_version: int | None


def look(client: ZookeeperClient, path: str) -> SeenLock | Absent:
    """The lock that stands there now; Absent where there is none."""
    lock, fence = client.data([path, f"{path}-fence"])
    if isinstance(lock, Absent):
        return lock
    try:
        holder = holder_of(path, lock)
    except MalformedZnode:
        holder = None
    version = fence.version if isinstance(fence, Znode) else None
    return SeenLock(path, holder, lock.czxid, lock.ephemeral_owner, version)


def remove(client: ZookeeperClient, seen: SeenLock) -> None:
    """Delete that lock and no later one, and shut its owner's writes out; LockNotDead where it is another by now.

    The fence counts acquisitions: with its version unchanged the lock is the one that was seen.  Its version is raised
    in the same transaction, so that whatever the old owner still has under way is refused by ZooKeeper.
    """
    if seen.fence_version is None:
        raise LockNotDead(
            "there is no fence beside the lock, so it cannot be told from a later one",
            where=seen.path,
            next_step="it is no lock of this tool: find out whose it is, and delete it with ZooKeeper's own shell",
        )
    now = look(client, seen.path)
    if isinstance(now, Absent):
        raise LockNotDead("the lock is gone by itself", where=seen.path, next_step="nothing is to be done")
    if (now.token, now.fence_version) != (seen.token, seen.fence_version):
        raise LockNotDead(f"another run holds the lock by now: id {now.token}", where=seen.path)
    transaction = client.kazoo.transaction()
    transaction.check(f"{seen.path}-fence", seen.fence_version)
    transaction.delete(seen.path, -1)  # bound to the fence's version: no later lock
    transaction.set_data(f"{seen.path}-fence", b"unlocked", seen.fence_version)
    if any(isinstance(result, Exception) for result in client.commit(transaction, seen.path)):
        raise LockNotDead("the lock changed while it was removed; nothing was deleted", where=seen.path)
