"""What a session asks of ZooKeeper and makes of its answers, by a kazoo client that answers from memory.

A real server is asked in `test_client`, `test_multiread` and `test_pace`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooState
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_acl

from migrate.errors import (
    ChrootMissing,
    TlsRefused,
    WorldError,
    ZookeeperDenied,
    ZookeeperSessionLost,
    ZookeeperUnreachable,
)
from migrate.zookeeper import client as sessions
from migrate.zookeeper.client import LoginHandler, ZookeeperAccess, ZookeeperClient, connect
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.multiread import GET_CHILDREN, GET_DATA, MAX_OPERATIONS, MultiRead
from migrate.zookeeper.rate_limit import Pace

STAT = (7, 8, 0, 0, 3, 0, 0, 70, 0, 2, 0)
TIMEOUT = 10.0


def znode(data: bytes) -> Znode:
    """As STAT says."""
    return Znode(data, version=3, czxid=7, mzxid=8, ephemeral_owner=70, children=2)


class Later:
    """An answer that has come; `timeouts` has how long each one was waited for."""

    def __init__(self, answer: Any, timeouts: list[float]) -> None:
        self.answer, self.timeouts = answer, timeouts

    def set(self, answer: Any) -> None:
        """It comes."""
        self.answer = answer

    def get(self, timeout: float) -> Any:
        """The answer, or its error."""
        self.timeouts.append(timeout)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Kazoo:
    """A kazoo client over a tree in memory.  `refuse` gives the error of a MultiRead, None where it is answered."""

    tree: dict[str, bytes] = field(default_factory=dict)
    chroot: str = ""
    refuse: Callable[[MultiRead], Exception | None] = lambda _: None
    lost: int = 0  # so many single reads end with a loss of the connection
    denied: frozenset[str] = frozenset()
    connected: bool = True
    client_id: tuple[int, bytes] | None = (0x15, b"")
    stops_with: Exception | None = None
    starts_with: Exception | None = None
    when_started: Callable[[], None] = lambda: None
    last_zxid: int = 99
    calls: list[str] = field(default_factory=list)
    bulk: list[int] = field(default_factory=list)  # operations of each MultiRead
    timeouts: list[float] = field(default_factory=list)
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    made_with: dict[str, Any] = field(default_factory=dict)

    @property
    def handler(self) -> Any:
        """What makes an answer that is not there yet."""
        return SimpleNamespace(async_result=lambda: Later(None, self.timeouts))

    def add_listener(self, told: Callable[[str], None]) -> None:
        """Who is told of the connection's state."""
        self.listeners.append(told)

    def become(self, state: str) -> None:
        """The connection is in that state."""
        for told in self.listeners:
            told(state)

    def start(self, timeout: float) -> None:
        """Connect."""
        self.calls.append(f"start {timeout:g}")
        self.when_started()
        if self.starts_with is not None:
            raise self.starts_with

    def stop(self) -> None:
        """End the session."""
        self.calls.append("stop")
        if self.stops_with is not None:
            raise self.stops_with

    def close(self) -> None:
        """Give up what belongs to it."""
        self.calls.append("close")

    # -- reads -------------------------------------------------------------------------------------------------
    def _call(self, request: MultiRead, result: Later) -> None:
        """A request of one's own, with absolute paths."""
        self.bulk.append(len(request.paths))
        error = self.refuse(request)
        found = [self._one(request.kind, path.decode()) for path in request.paths]
        result.set(error or found)

    def _one(self, kind: int, path: str) -> Znode | tuple[str, ...] | Absent:
        if path in self.denied:
            return Absent.DENIED
        if path not in self.tree:
            return Absent.MISSING
        return znode(self.tree[path]) if kind == GET_DATA else self._children(path)

    def _children(self, path: str) -> tuple[str, ...]:
        inside = path.rstrip("/") + "/"
        return tuple(sorted(name[len(inside) :] for name in self.tree if name.startswith(inside) and name != path))

    def _single(self, what: str, path: str, answer: Callable[[str], Any]) -> Later:
        self.calls.append(f"{what} {path}")
        absolute = (self.chroot + path).rstrip("/") or "/" if self.chroot else path
        if self.lost:
            self.lost -= 1
            return Later(kazoo_errors.ConnectionLoss(), self.timeouts)
        if absolute in self.denied:
            return Later(kazoo_errors.NoAuthError(), self.timeouts)
        if absolute not in self.tree:
            return Later(kazoo_errors.NoNodeError(), self.timeouts)
        return Later(answer(absolute), self.timeouts)

    def get_async(self, path: str) -> Later:
        """Data and stat."""
        return self._single("get", path, lambda absolute: (self.tree[absolute], STAT))

    def get_children_async(self, path: str) -> Later:
        """Names, in no order."""
        return self._single("children", path, lambda absolute: [*reversed(self._children(absolute))])

    def get_acls_async(self, path: str) -> Later:
        """The ACL and the stat."""
        return self._single("acl", path, lambda _: ([make_acl("sasl", "kafka", all=True)], STAT))

    def sync_async(self, path: str) -> Later:
        """The server catches up."""
        return self._single("sync", path, lambda absolute: absolute)


TREE = {"/": b"", "/a": b"1", "/a/x": b"", "/a/y": b"", "/b": b"2", **{f"/n{number:03}": b"n" for number in range(300)}}
NUMBERED = [f"/n{number:03}" for number in range(300)]


def session(kazoo: Kazoo, pace: Pace | None = None) -> ZookeeperClient:
    """A session of it."""
    asked: Any = kazoo
    return ZookeeperClient(asked, "h:2181", TIMEOUT, pace)


def none_in_bulk(_: MultiRead) -> Exception:
    """A server before 3.6."""
    error: Exception = kazoo_errors.UnimplementedError()
    return error


def over(most: int) -> Callable[[MultiRead], Exception | None]:
    """A server that refuses more operations at once than these."""
    return lambda request: kazoo_errors.BadArgumentsError() if len(request.paths) > most else None


# -- the session itself ----------------------------------------------------------------------------------------------
def test_a_session_follows_its_connection_and_tells_its_loss_once_it_is_known() -> None:
    """A connection that is only interrupted is no lost session: nobody is told, and nothing is read meanwhile."""
    kazoo, told = Kazoo(TREE), list[str]()
    client = session(kazoo)
    client.on_session_lost(lambda: told.append("lost"))
    assert client.wait_connected(0)
    kazoo.become(KazooState.SUSPENDED)
    assert not client.wait_connected(0)
    assert told == []
    kazoo.become(KazooState.CONNECTED)
    assert client.wait_connected(0)
    assert told == []
    kazoo.become(KazooState.LOST)
    assert not client.wait_connected(0)
    assert told == ["lost"]


def test_without_a_connection_there_is_no_session() -> None:
    """0 is no session's id: nothing of ours can be compared with it."""
    for identity, number in (((0x15, b""), 0x15), ((0, b""), 0), (None, 0)):
        assert session(Kazoo(client_id=identity)).session == number


def test_a_session_that_is_not_connected_when_it_is_made_waits() -> None:
    """It reads from the moment on at which a connection is there."""
    kazoo = Kazoo(TREE, connected=False)
    client = session(kazoo)
    assert not client.wait_connected(0)
    kazoo.become(KazooState.CONNECTED)
    assert client.data(["/a"]) == [znode(b"1")]


def test_a_session_is_closed_whatever_its_connection_does() -> None:
    """A connection that goes at that moment is given up; a thread that does not end is left to itself."""
    for error, calls in (
        (None, ["stop", "close"]),
        (OSError(), ["stop", "close"]),
        (kazoo_errors.WriterNotClosedException(), ["stop"]),
    ):
        kazoo = Kazoo(TREE, stops_with=error)
        with session(kazoo) as client:
            assert client.data(["/a"])
        client.close()
        assert kazoo.calls == calls
        with pytest.raises(ZookeeperSessionLost, match="there is no connection"):
            client.data(["/a"])


# -- reads -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("refuse", [lambda _: None, none_in_bulk, over(3)], ids=["bulk", "before 3.6", "too large"])
@pytest.mark.parametrize("chroot", ["", "/kafka"])
def test_every_way_to_read_gives_the_same_answers_in_order(
    refuse: Callable[[MultiRead], Exception | None], chroot: str
) -> None:
    """In bulk, one by one, and where the server refuses requests for their size; below a chroot as well."""
    tree = {(chroot + path).rstrip("/") or "/": data for path, data in TREE.items()}
    client = session(Kazoo(tree, chroot, refuse, denied=frozenset({f"{chroot}/b"})))
    root = znode(b"")
    assert [*client.data(["/a", "/none", "/b", "/"])] == [
        znode(b"1"),
        Absent.MISSING,
        Absent.DENIED,
        root,
    ]
    assert [*client.children(["/a", "/none", "/b"])] == [("x", "y"), Absent.MISSING, Absent.DENIED]
    assert [*client.data(NUMBERED)] == [znode(b"n")] * 300
    assert client.data([]) == []
    acl = ((31, "sasl", "kafka"),)
    assert [*client.acls(["/a", "/none", "/b"])] == [acl, Absent.MISSING, Absent.DENIED]
    assert client.acls([]) == []


def test_a_server_that_refuses_a_request_for_its_size_gets_a_quarter_until_it_takes_it() -> None:
    """And is asked so from then on; where four are too many, it is read one by one."""
    kazoo = Kazoo(TREE, refuse=over(MAX_OPERATIONS // 16))
    client = session(kazoo)
    client.data(NUMBERED * 10)
    assert client.operations == MAX_OPERATIONS // 16
    assert client.multiread
    del kazoo.bulk[:]
    client.data(NUMBERED)
    assert max(kazoo.bulk) <= MAX_OPERATIONS // 16
    four = session(Kazoo(TREE, refuse=over(4)))
    four.operations = 16
    four.data(NUMBERED)
    assert four.operations == 4
    kazoo = Kazoo(TREE, refuse=over(3))
    three = session(kazoo)
    three.operations = 16
    three.data(NUMBERED[:5])
    assert kazoo.calls == [f"get {path}" for path in NUMBERED[:5]]
    assert kazoo.bulk == [5, 4, 1]


def test_a_server_without_multireads_is_asked_for_one_only_once() -> None:
    """It closes the connection after such a request."""
    kazoo = Kazoo(TREE, refuse=none_in_bulk)
    client = session(kazoo)
    for _ in range(3):
        assert client.children(["/a"]) == [("x", "y")]
    assert kazoo.bulk == [1]
    assert not client.multiread


def test_a_read_is_sent_again_after_a_loss_and_not_without_end() -> None:
    """Twice; the third loss is told, as one that a retry may repair."""
    for lost, answered in ((2, True), (3, False)):
        kazoo = Kazoo(TREE, lost=lost)
        client = session(kazoo)
        if answered:
            client.sync("/a")
        else:
            with pytest.raises(ZookeeperSessionLost, match="ConnectionLoss"):
                client.sync("/a")
        assert kazoo.calls == ["sync /a"] * 3


def test_a_refusal_is_not_asked_again() -> None:
    """It would be the same; the identity is named as the cause, and a missing node stays one."""
    kazoo = Kazoo(TREE, denied=frozenset({"/a"}))
    with pytest.raises(ZookeeperDenied):
        session(kazoo).sync("/a")
    with pytest.raises(kazoo_errors.NoNodeError):
        session(kazoo).sync("/none")
    assert kazoo.calls == ["sync /a", "sync /none"]
    damaged = Kazoo(TREE, refuse=lambda _: kazoo_errors.MarshallingError())
    with pytest.raises(WorldError, match="cannot be used"):
        session(damaged).data(["/a"])
    assert damaged.bulk == [1]


def test_an_answer_is_waited_for_three_times_as_long_as_the_session_lives() -> None:
    """A read outlives one loss of the connection; none waits without end."""
    for refuse in (lambda _: None, none_in_bulk):
        kazoo = Kazoo(TREE, refuse=refuse)
        client = session(kazoo)
        client.sync()
        client.data(["/a"])
        client.children(["/a"])
        client.acls(["/a"])
        assert set(kazoo.timeouts) == {3 * TIMEOUT}


@pytest.mark.parametrize("bulk", [True, False])
def test_every_operation_is_counted(bulk: bool) -> None:
    """A request by what it carries, a sync as one."""
    pace = Pace()
    client = session(Kazoo(TREE), pace)
    client.multiread = bulk
    counts = []
    reads: Sequence[Callable[[], object]] = (
        client.sync,
        lambda: client.data(NUMBERED),
        lambda: client.children(["/a", "/b"]),
        lambda: client.acls(["/a", "/b", "/none"]),
    )
    for read in reads:
        before = pace.operations
        read()
        counts.append(pace.operations - before)
    assert counts == [1, 300, 2, 3]


def test_a_pace_bounds_what_one_request_carries() -> None:
    """A tenth of a second's worth."""
    kazoo = Kazoo(TREE)
    client = session(kazoo, Pace(1000, monotonic=lambda: 0.0, sleep=lambda _: None))
    client.data(NUMBERED)
    assert max(kazoo.bulk) == 100


def test_a_read_is_named_by_its_first_path() -> None:
    """So that a person knows what was being asked."""
    client = session(Kazoo(TREE))
    client.close()
    reads: Sequence[tuple[Callable[[], object], str]] = (
        (lambda: client.data(["/a", "/b"]), "/a"),
        (lambda: client.acls(["/b", "/a"]), "/b"),
        (lambda: client.sync("/a"), "/a"),
    )
    for read, where in reads:
        with pytest.raises(ZookeeperSessionLost) as caught:
            read()
        assert caught.value.where == where


def test_the_newest_transaction_is_the_one_that_an_answer_named() -> None:
    """As kazoo keeps it."""
    assert session(Kazoo(last_zxid=0x1_0000_0001)).zxid() == 0x1_0000_0001


# -- connecting ------------------------------------------------------------------------------------------------------
@pytest.fixture
def kazoo(monkeypatch: pytest.MonkeyPatch) -> Kazoo:
    """The client that `connect` makes."""
    made = Kazoo(dict(TREE))

    def make(**options: Any) -> Kazoo:
        made.made_with = options
        made.chroot = "/" + options["hosts"].partition("/")[2] if "/" in options["hosts"] else ""
        return made

    monkeypatch.setattr(sessions, "KazooClient", make)
    return made


def test_a_session_is_had_below_a_chroot_that_exists(kazoo: Kazoo) -> None:
    """Its own words are kept; few hosts are repeated, so that a server that hangs does not cost the whole session."""
    with connect("a:1,b:2/a", timeout=7.0, session_timeout=20.0) as client:
        assert (client.connect_string, client.session_timeout, client.sasl_user) == ("a:1,b:2/a", 20.0, "")
        assert kazoo.made_with["hosts"] == "a:1,b:2,a:1,b:2/a"
        assert kazoo.made_with["timeout"] == 20.0
        assert kazoo.made_with["handler"] is None
        assert kazoo.calls == ["start 7"]
        assert len(kazoo.bulk) == 1
    assert kazoo.calls[1:] == ["stop", "close"]


def test_without_a_chroot_nothing_is_read_to_have_a_session(kazoo: Kazoo) -> None:
    """The root is always there, and an identity may not be allowed to read it."""
    kazoo.tree.clear()
    assert connect("a:1,b:1,c:1,d:1,e:1").session
    assert kazoo.made_with["hosts"] == "a:1,b:1,c:1,d:1,e:1"
    assert kazoo.bulk == []


def test_a_chroot_that_is_missing_ends_the_session(kazoo: Kazoo) -> None:
    """Nothing of it stays open."""
    with pytest.raises(ChrootMissing, match="/none"):
        connect("a:1/none")
    assert kazoo.calls[-2:] == ["stop", "close"]


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (KazooTimeoutError(), ZookeeperUnreachable, "no session within 3 s"),
        (kazoo_errors.AuthFailedError(), ZookeeperDenied, "authentication failed for SASL user tool"),
        (kazoo_errors.NoAuthError(), ZookeeperDenied, "the chroot needs READ for SASL user tool"),
        (kazoo_errors.ConnectionLoss(), ZookeeperSessionLost, "connection ended .ConnectionLoss"),
        (kazoo_errors.SessionExpiredError(), ZookeeperSessionLost, "connection ended .SessionExpiredError"),
        (kazoo_errors.MarshallingError(), WorldError, "cannot be used .MarshallingError"),
    ],
)
def test_a_session_that_is_not_had_is_given_up_with_its_reason(
    kazoo: Kazoo, error: Exception, raised: type[Exception], says: str
) -> None:
    """No connection is tried behind our back."""
    kazoo.starts_with = error
    with pytest.raises(raised, match=says):
        connect("a:1/a", timeout=3.0, access=ZookeeperAccess(sasl_username="tool"))
    assert kazoo.calls == ["start 3", "stop", "close"]


def test_a_session_that_is_not_had_and_whose_thread_does_not_end_is_left_to_itself(kazoo: Kazoo) -> None:
    """The client stops by itself when time is over, and refuses to be closed while its thread runs."""
    kazoo.starts_with = kazoo_errors.WriterNotClosedException()
    with pytest.raises(ZookeeperUnreachable, match="no session within 3 s"):
        connect("a:1/a", timeout=3.0)
    assert kazoo.calls == ["start 3"]


def test_a_session_that_tls_refuses_is_told_as_that(kazoo: Kazoo) -> None:
    """Not as a server that does not answer."""
    kazoo.starts_with = KazooTimeoutError()
    with pytest.raises(ZookeeperUnreachable):
        connect("a:1", access=ZookeeperAccess(context=ssl.create_default_context()))
    handler = kazoo.made_with["handler"]
    assert isinstance(handler, LoginHandler)
    refused = TlsRefused("the certificate is not trusted", where="a:1")

    kazoo.when_started = lambda: setattr(kazoo.made_with["handler"], "last_error", refused)
    with pytest.raises(TlsRefused, match="not trusted"):
        connect("a:1", access=ZookeeperAccess(context=ssl.create_default_context()))


def test_a_connection_is_tried_again_at_least_each_second_and_without_a_limit(kazoo: Kazoo) -> None:
    """A server that comes back is found as long as the session may live."""
    connect("a:1")
    assert (kazoo.calls, kazoo.made_with["timeout"]) == (["start 10"], 10.0)
    retry = kazoo.made_with["connection_retry"]
    assert (retry.max_tries, retry.delay, retry.max_delay) == (-1, 0.1, 1.0)


def test_children_are_read_in_bulk_by_their_own_request() -> None:
    """Not as data."""
    seen: list[int] = []

    def note(request: MultiRead) -> None:
        seen.append(request.kind)

    client = session(Kazoo(TREE, refuse=note))
    client.children(["/a"])
    client.data(["/a"])
    assert seen == [GET_CHILDREN, GET_DATA]
