"""How the lock is taken and given back, by a tree in memory; a real ZooKeeper is in `test_lock`."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, make_acl

from migrate.errors import LockHeld, LockLost, MalformedZnode, ZnodeChanged, ZookeeperDenied
from migrate.zookeeper.layout import TOPICS, Absent, Znode
from migrate.zookeeper.lock import LOCK_PATH, ZookeeperLock, acquire, describe, holder_of

FENCE = f"{LOCK_PATH}-fence"
OWN, OTHER = 70, 71
CLOSED = ((31, "sasl", "kafka"), (1, "world", "anyone"))
Operation = tuple[str, str, Any]


@dataclass
class Tree:
    """Znodes, their ACLs, and what happens between a transaction and the look behind it."""

    znodes: dict[str, Znode] = field(default_factory=dict)
    acls: dict[str, Any] = field(default_factory=dict)
    czxid: int = 100
    refused: dict[str, Exception] = field(default_factory=dict)  # by operation: what ZooKeeper answers
    behind: Callable[[], None] = lambda: None  # called behind each transaction
    transactions: int = 0

    def make(self, path: str, data: bytes, owner: int, acl: Sequence[ACL] | None) -> None:
        """A new znode."""
        self.czxid += 1
        self.znodes[path] = Znode(data, 0, self.czxid, self.czxid, owner)
        self.acls[path] = acl

    def fault(self, operation: Operation) -> Exception | None:
        """Why the operation cannot be done."""
        name, path, wanted = operation
        if name in self.refused:
            return self.refused[name]
        there = path in self.znodes
        found: Exception | None = None
        if name == "create":
            found = kazoo_errors.NodeExistsError() if there else None
        elif not there:
            found = kazoo_errors.NoNodeError()
        elif (wanted[1] if name == "set" else wanted) not in (-1, self.znodes[path].version):
            found = kazoo_errors.BadVersionError()
        return found

    def commit(self, operations: Sequence[Operation], session: int) -> list[Any]:
        """All or none, as ZooKeeper answers: before a fault all is rolled back, behind it nothing is tried."""
        self.transactions += 1
        for number, operation in enumerate(operations):
            if (fault := self.fault(operation)) is not None:
                before: list[Exception] = [kazoo_errors.RolledBackError() for _ in range(number)]
                return [*before, fault, *[kazoo_errors.RuntimeInconsistency() for _ in operations[number + 1 :]]]
        return [self.act(*operation, session) for operation in operations]

    def act(self, name: str, path: str, what: Any, session: int) -> object:
        """Do one operation; its answer."""
        if name == "create":
            self.make(path, what[0], session if what[2] else 0, what[1])
            return path
        if name == "set":
            now = self.znodes[path]
            self.znodes[path] = now._replace(data=what[0], version=now.version + 1)
            return ZnodeStat(now.czxid, 0, 0, 0, now.version + 1, 0, 0, 0, 0, 0, 0)
        if name == "delete":
            del self.znodes[path]
        return True


class Transaction:
    """As kazoo's."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def create(self, path: str, data: bytes, *, acl: Any, ephemeral: bool) -> None:
        """Create a znode."""
        self.operations.append(("create", path, (data, acl, ephemeral)))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        """Write one."""
        self.operations.append(("set", path, (data, version)))

    def check(self, path: str, version: int) -> None:
        """Hold it to a version."""
        self.operations.append(("check", path, version))

    def delete(self, path: str, version: int) -> None:
        """Delete one."""
        self.operations.append(("delete", path, version))


@dataclass
class Session:
    """A session with the tree; it is kazoo's client and ours in one."""

    tree: Tree = field(default_factory=Tree)
    session: int = OWN
    session_timeout: float = 10.0
    sasl_user: str = ""
    hooks: list[Callable[[], None]] = field(default_factory=list)
    parents: list[Any] = field(default_factory=list)
    unmade: Exception | None = None  # why the parents cannot be made

    @property
    def kazoo(self) -> Session:
        """Itself."""
        return self

    def transaction(self) -> Transaction:
        """A new one."""
        return Transaction()

    def ensure_path_async(self, path: str, acl: Any) -> Session:
        """Asked for."""
        self.parents.append((path, acl))
        return self

    def get(self, timeout: float) -> None:
        """The path and its parents are there; waited for no shorter than a session lives."""
        assert timeout >= self.session_timeout
        if self.unmade is not None:
            raise self.unmade
        path, acl = self.parents[-1]
        if path not in self.tree.znodes:
            self.tree.make(path, b"", 0, acl)

    def commit(self, transaction: Transaction, where: str) -> list[Any]:
        """Send it."""
        assert where == LOCK_PATH
        answers = self.tree.commit(transaction.operations, self.session)
        self.tree.behind()
        return answers

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """What is there."""
        return [self.tree.znodes.get(path, Absent.MISSING) for path in paths]

    def acls(self, paths: Sequence[str]) -> list[Any]:
        """Who may do what."""
        return [self.tree.acls.get(path, Absent.MISSING) for path in paths]

    def on_session_lost(self, hook: Callable[[], None]) -> None:
        """Keep it."""
        self.hooks.append(hook)

    def wait_connected(self, _: float) -> bool:
        """There is a connection."""
        return True

    def sync(self, _: str) -> None:
        """Nothing is behind."""


def taken(session: Session, owner: str = "ticket-17") -> ZookeeperLock:
    """The lock, taken by that session."""
    client: Any = session
    return acquire(client, owner, "plan-1")


def test_a_free_lock_is_taken_by_an_ephemeral_znode_that_names_its_holder() -> None:
    """It goes with the session; the fence beside it stays, and has counted once."""
    session = Session()
    lock = taken(session)
    znode = session.tree.znodes[LOCK_PATH]
    assert (znode.ephemeral_owner, lock.session, lock.token) == (OWN, OWN, znode.czxid)
    holder = holder_of(LOCK_PATH, znode)
    assert (holder.owner, holder.host, holder.pid) == ("ticket-17", socket.gethostname(), os.getpid())
    assert (holder.plan, holder.session_seconds) == ("plan-1", 10.0)
    fence = session.tree.znodes[FENCE]
    assert (fence.ephemeral_owner, fence.version, lock.fence.path, lock.fence.version) == (0, 1, FENCE, 1)
    lock.still_ours()


def test_each_holder_has_another_fence_than_the_one_before() -> None:
    """A write under the earlier one is refused by ZooKeeper itself."""
    tree = Tree()
    first = taken(Session(tree))
    first.release()
    second = taken(Session(tree, OTHER))
    assert (first.fence.version, second.fence.version) == (1, 2)
    assert second.token > first.token


def test_the_fence_is_the_one_that_this_acquisition_counted() -> None:
    """One that was counted behind it is another run's: writes under it would pass."""
    session = Session()

    def counted() -> None:
        fence = session.tree.znodes[FENCE]
        session.tree.znodes[FENCE] = fence._replace(version=fence.version + 1)

    session.tree.behind = counted
    assert taken(session).fence.version == 1


def test_a_lock_that_another_session_holds_is_refused_at_once() -> None:
    """With its holder, and without a second try; the fence is not counted."""
    tree = Tree()
    taken(Session(tree, OTHER), "somebody")
    tree.transactions = 0
    with pytest.raises(LockHeld, match="held by somebody on ") as caught:
        taken(Session(tree))
    assert caught.value.where == LOCK_PATH
    assert tree.transactions == 1
    assert tree.znodes[FENCE].version == 1


def test_a_lock_that_this_session_took_already_is_ours_with_its_fence() -> None:
    """The answer to the first request may have been lost; without a fence there is no safe write."""
    session = Session()
    first, again = taken(session), taken(session)
    assert (again.token, again.fence) == (first.token, first.fence)
    session.tree.behind = lambda: session.tree.znodes.pop(FENCE, None) and None
    with pytest.raises(LockLost, match="the fence next to the lock is gone") as caught:
        taken(session)
    assert caught.value.where == FENCE


def test_a_lock_that_goes_while_it_is_looked_at_is_tried_again() -> None:
    """Its holder was about to end."""
    tree = Tree()
    taken(Session(tree, OTHER))

    def ends() -> None:
        if tree.znodes.get(LOCK_PATH, Znode(None, 0, 0, 0, OWN)).ephemeral_owner == OTHER:
            del tree.znodes[LOCK_PATH]

    tree.behind = ends
    lock = taken(Session(tree))
    assert tree.znodes[LOCK_PATH].ephemeral_owner == OWN
    assert lock.fence.version == tree.znodes[FENCE].version


def test_a_lock_that_never_stays_is_given_up() -> None:
    """It does not wait for another run's end."""
    tree = Tree()
    tree.behind = lambda: tree.znodes.pop(LOCK_PATH, None) and None
    with pytest.raises(LockHeld, match="comes and goes"):
        taken(Session(tree))
    assert 1 < tree.transactions < 10


@pytest.mark.parametrize(
    ("operation", "error", "expected", "says"),
    [
        ("create", kazoo_errors.NoAuthError(), ZookeeperDenied, "may not create the lock"),
        ("set", kazoo_errors.NoAuthError(), ZookeeperDenied, "may not count the lock"),
        ("create", kazoo_errors.NoNodeError(), ZnodeChanged, "cannot be made"),
        ("set", kazoo_errors.NoNodeError(), ZnodeChanged, "cannot be made"),
    ],
)
def test_a_lock_that_cannot_be_made_whole_is_not_made(
    operation: str, error: Exception, expected: type[Exception], says: str
) -> None:
    """Znode and fence in one transaction: neither alone is a lock."""
    session = Session()
    session.tree.refused[operation] = error
    with pytest.raises(expected, match=says):
        taken(session)
    assert LOCK_PATH not in session.tree.znodes


@pytest.mark.parametrize("answers", [[], [LOCK_PATH], [LOCK_PATH, True], [LOCK_PATH, True, True]])
def test_answers_that_do_not_fit_the_question_are_no_lock(
    answers: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy, or another server: what cannot be read is not taken for a yes."""
    session = Session()
    monkeypatch.setattr(session, "commit", lambda *_: answers)
    with pytest.raises(ZnodeChanged):
        taken(session)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (kazoo_errors.NoNodeError(), "the lock's parent cannot be made"),
        (kazoo_errors.NoAuthError(), "may not make the lock's parent"),
    ],
)
def test_a_lock_without_a_place_is_denied(error: Exception, says: str) -> None:
    """Before anything is written."""
    session = Session(unmade=error)
    with pytest.raises(ZookeeperDenied, match=says):
        taken(session)
    assert session.tree.transactions == 0


# -- rights ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("theirs", "user", "closed"),
    [
        (CLOSED, "kafka", True),
        (CLOSED, "", False),
        (None, "kafka", False),
        (((31, "world", "anyone"),), "kafka", False),
        (((31, "sasl", "kafka"), (1, "world", "anyone"), (2, "world", "anyone")), "kafka", False),
        (((31, "sasl", "kafka"), (4, "world", "anyone")), "kafka", False),
        (((31, "sasl", "kafka"), (8, "world", "anyone")), "kafka", False),
    ],
    ids=["closed", "no name", "no topics", "open", "anyone writes", "anyone creates", "anyone deletes"],
)
def test_the_lock_is_as_open_as_kafkas_own_znodes(theirs: Any, user: str, closed: bool) -> None:
    """Closed, only its own identity changes it, and everybody reads it: else anybody could shut out a run."""
    session = Session(sasl_user=user)
    if theirs is not None:
        session.tree.acls[TOPICS] = theirs
    taken(session)
    expected = [make_acl("sasl", "kafka", all=True), make_acl("world", "anyone", read=True)] if closed else None
    assert session.tree.acls[LOCK_PATH] == session.tree.acls[FENCE] == expected


# -- release ---------------------------------------------------------------------------------------------------------
def test_a_released_lock_is_gone_and_is_never_ours_again() -> None:
    """Its fence stays for the next one."""
    session = Session()
    lock = taken(session)
    lock.release()
    assert LOCK_PATH not in session.tree.znodes
    assert session.tree.znodes[FENCE].version == 1
    session.tree.make(LOCK_PATH, b"", OWN, None)
    with pytest.raises(LockLost):
        lock.still_ours()


@pytest.mark.parametrize("changed", [LOCK_PATH, FENCE])
def test_a_lock_that_changes_while_it_is_released_is_lost_and_stays(changed: str) -> None:
    """Between the question and the transaction another run may have taken it."""
    session = Session()
    lock = taken(session)
    before = session.tree.znodes[changed]
    session.tree.znodes[changed] = before._replace(version=before.version + 1)
    with pytest.raises(LockLost, match="changed while it was released"):
        lock.release()
    assert LOCK_PATH in session.tree.znodes
    with pytest.raises(LockLost):
        lock.still_ours()


def test_a_lock_that_somebody_made_anew_is_not_deleted() -> None:
    """By hand, say: its version is the same, and it is not ours."""
    session = Session()
    lock = taken(session)
    session.tree.make(LOCK_PATH, b"", OTHER, None)
    with pytest.raises(LockLost, match="another run holds it"):
        lock.release()
    assert session.tree.znodes[LOCK_PATH].ephemeral_owner == OTHER


# -- what a znode says -----------------------------------------------------------------------------------------------
HOLDER = {"version": 1, "owner": "o", "host": "h", "pid": 1, "since": "s", "plan": "", "session_seconds": 6.5}


def test_a_holder_is_read_from_its_znode() -> None:
    """The first process of a container has the id 1."""
    znode = Znode(json.dumps(HOLDER).encode(), 0, 7, 7, OWN)
    found = holder_of(LOCK_PATH, znode)
    assert (found.owner, found.host, found.pid, found.session_seconds) == ("o", "h", 1, 6.5)
    assert "plan -; if that process is dead, ZooKeeper frees it 6.5 s after" in describe(LOCK_PATH, znode)


@pytest.mark.parametrize("changes", [{"version": 0}, {"version": 2}, {"pid": 0}, {"pid": -1}, {"owner": None}])
def test_a_znode_that_no_run_wrote_names_nobody(changes: dict[str, object]) -> None:
    """It is held all the same."""
    znode = Znode(json.dumps(HOLDER | changes).encode(), 0, 7, 7, OWN)
    with pytest.raises(MalformedZnode):
        holder_of(LOCK_PATH, znode)
    assert describe(LOCK_PATH, znode) == "held by session 0x46, which is not a run of this tool"
