"""What `still_ours` asks before it says yes, by a session that answers from memory; a real one is in `test_lock`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from migrate.errors import LockLost, ZookeeperSessionLost
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.lock import Fence, ZookeeperLock

PATH = "/kraft-migrate/lock"


def znode(czxid: int = 7, owner: int = 70) -> Znode:
    """The lock's znode."""
    return Znode(data=b"{}", czxid=czxid, mzxid=czxid, version=0, ephemeral_owner=owner)


@dataclass
class Session:
    """A session that answers from memory.  `meanwhile` is called as the lock is read."""

    found: Znode | Absent = field(default_factory=znode)
    connected: bool = True
    session_timeout: float = 10.0
    meanwhile: Callable[[], None] = lambda: None
    asked: list[str] = field(default_factory=list)
    hooks: list[Callable[[], None]] = field(default_factory=list)

    def on_session_lost(self, hook: Callable[[], None]) -> None:
        """Keep it."""
        self.hooks.append(hook)

    def wait_connected(self, seconds: float) -> bool:
        """Is there a connection?"""
        assert seconds == self.session_timeout
        return self.connected

    def sync(self, path: str) -> None:
        """Note it."""
        self.asked.append(f"sync {path}")

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """The znode, whatever happens meanwhile."""
        self.asked.append(f"data {' '.join(paths)}")
        self.meanwhile()
        return [self.found]

    def expire(self) -> None:
        """The session is known to be lost."""
        for hook in self.hooks:
            hook()


def held(session: Session) -> ZookeeperLock:
    """The lock, as it was taken: czxid 7, by session 70."""
    client: Any = session
    return ZookeeperLock(client, PATH, znode(), Fence(f"{PATH}-fence", 3))


def lost(lock: ZookeeperLock) -> str:
    """Why it is no longer ours."""
    with pytest.raises(LockLost) as caught:
        lock.still_ours()
    return caught.value.what


def test_the_server_catches_up_before_the_lock_is_read() -> None:
    """A follower that is behind would show a lock that another run holds by now as ours."""
    session = Session()
    held(session).still_ours()
    assert session.asked == [f"sync {PATH}", f"data {PATH}"]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (znode(czxid=8), "another run holds it"),
        (znode(owner=71), "another run holds it"),
        (znode(czxid=8, owner=71), "another run holds it"),
        (Absent.MISSING, "the lock znode is missing"),
        (Absent.DENIED, "the lock znode is"),
    ],
    ids=["created again by us", "another session's", "another's", "gone", "hidden"],
)
def test_another_creation_and_another_session_are_each_another_lock(found: Znode | Absent, says: str) -> None:
    """One of the two alone is enough, and once lost it stays lost."""
    session = Session(found)
    lock = held(session)
    assert says in lost(lock)
    session.found = znode()
    assert "the ZooKeeper session ended" in lost(lock)


def test_a_session_that_ends_between_the_question_and_the_answer_holds_no_lock() -> None:
    """The answer was right when it was given."""
    session = Session()
    session.meanwhile = session.expire
    assert "the ZooKeeper session ended" in lost(held(session))


def test_a_session_that_ended_before_is_not_asked() -> None:
    """Kazoo makes a new one by itself, and that one holds nothing."""
    session = Session()
    lock = held(session)
    session.expire()
    assert "the ZooKeeper session ended" in lost(lock)
    assert session.asked == []


def test_a_server_that_cannot_be_asked_holds_no_lock() -> None:
    """Neither without a connection nor where it goes in the middle."""
    assert "could not be asked for as long as the session lives" in lost(held(Session(connected=False)))
    session = Session()

    def gone() -> None:
        raise ZookeeperSessionLost("gone", where=PATH)

    session.meanwhile = gone
    assert "could not be asked" in lost(held(session))
