"""A session with ZooKeeper below the cluster's chroot: connect, read in bulk, sync, close.

kazoo's exceptions end here: callers see the typed errors of migrate.errors.  kazoo's own log lines can hold the data of
znodes, so its loggers are kept silent.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Any, Final, Self, TypeVar, cast

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from migrate.errors import (
    ChrootMissing,
    ConnectStringWrong,
    MigrateError,
    Retryable,
    WorldError,
    ZookeeperDenied,
    ZookeeperSessionLost,
    ZookeeperUnreachable,
)
from migrate.zookeeper.login import TlsHandler, ZookeeperAccess
from migrate.zookeeper.multiread import GET_CHILDREN, GET_DATA, MAX_OPERATIONS, Answer, MultiRead, chunks, znode_of
from migrate.zookeeper.rate_limit import Pace
from migrate.zookeeper.znode import Absent, Znode

LOG: Final = logging.getLogger("migrate.zookeeper")
IN_FLIGHT: Final = 4  # MultiReads under way at once
READ_ATTEMPTS: Final = 3
LEAST_HOSTS: Final = 4
FEWER: Final = 4  # so many times fewer operations in a request, where the server refuses one for its size
LEAST_OPERATIONS: Final = 4  # with fewer a MultiRead is not worth it
PIPELINED: Final = 1024  # single reads under way at once, where the server has no MultiRead

SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:(?P<port>[0-9]{1,5}))?")

T = TypeVar("T")
P = TypeVar("P")

LOST: Final = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.ConnectionClosedError,
    kazoo_errors.SessionExpiredError,
    kazoo_errors.SessionMovedError,
    kazoo_errors.OperationTimeoutError,
    KazooTimeoutError,
)


def _quiet() -> logging.Logger:
    """A logger for kazoo that says nothing: what matters reaches callers as errors, and its lines can hold secrets."""
    for name in ("kazoo", "migrate.zookeeper.kazoo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return logging.getLogger("migrate.zookeeper.kazoo")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn kazoo's exceptions into ours; NoNode, NodeExists and BadVersion pass: callers know what they mean."""
    try:
        yield
    except MigrateError:
        raise
    except LOST as error:
        raise ZookeeperSessionLost(
            f"the session or connection ended ({type(error).__name__})",
            where=where,
            why="what was being asked has no answer, and a write may or may not have happened",
        ) from error
    except (kazoo_errors.NoAuthError, kazoo_errors.AuthFailedError) as error:
        raise ZookeeperDenied("ZooKeeper refuses this identity", where=where) from error
    except (kazoo_errors.NoNodeError, kazoo_errors.NodeExistsError, kazoo_errors.BadVersionError):
        raise
    except (kazoo_errors.KazooException, StructError, ValueError) as error:
        raise WorldError(f"ZooKeeper's answer cannot be used ({type(error).__name__})", where=where) from error


class ZookeeperClient:
    """A session; all paths are relative to the chroot.  Use it as a context manager, or call `close`."""

    def __init__(
        self, kazoo: KazooClient, connect_string: str, session_timeout: float, pace: Pace | None = None
    ) -> None:
        self.kazoo = kazoo
        self.pace = pace or Pace()
        self.connect_string = connect_string
        self.session_timeout = session_timeout
        self.multiread = True  # until the server says that it has none
        self.sasl_user = ""  # as whom ZooKeeper's ACLs know this session; "" for nobody, or by a certificate
        self.operations = MAX_OPERATIONS  # of a MultiRead; fewer once the server refuses that many
        self._connected = threading.Event()
        self._over = False  # has it been closed by us?
        self._lost_hooks: list[Callable[[], None]] = []
        kazoo.add_listener(self._state_changed)
        if kazoo.connected:
            self._connected.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ZookeeperClient({self.connect_string})"

    # -- session ---------------------------------------------------------------------------------------------
    def _state_changed(self, state: str) -> None:
        """Called in kazoo's connection thread: sets flags only."""
        if state == KazooState.CONNECTED:
            self._connected.set()
            return
        self._connected.clear()
        if state == KazooState.LOST:
            for hook in self._lost_hooks:
                hook()

    def on_session_lost(self, hook: Callable[[], None]) -> None:
        """Have `hook` called (in another thread) as soon as the session is known to be lost."""
        self._lost_hooks.append(hook)

    def wait_connected(self, seconds: float) -> bool:
        """Wait until there is a connection; False if there is none in that time."""
        return self._connected.wait(seconds)

    @property
    def session(self) -> int:
        """The id of the session now, 0 while there is no connection."""
        identity = self.kazoo.client_id
        return identity[0] if identity and identity[0] else 0

    def close(self) -> None:
        """End the session: its ephemeral znodes go at once, and what another thread still reads ends."""
        self._over = True
        try:
            self.kazoo.stop()
        except OSError:  # the connection was going at the same moment
            LOG.debug("the connection was closed while stopping")
        except kazoo_errors.WriterNotClosedException:  # its thread ends when the operating system gives the socket up
            LOG.debug("the connection did not end in time")
            return
        self.kazoo.close()

    # -- writing ---------------------------------------------------------------------------------------------
    def commit(self, transaction: TransactionRequest, where: str) -> list[Any]:
        """Send a transaction once; its results, exceptions among them: look at each.

        Raises:
            ZookeeperSessionLost: nothing was sent, or it may or may not have happened.  kazoo keeps unsent requests
                for the next connection: a request without an answer ends the session, so that nothing happens later.
        """
        with translated(where):
            if not self.wait_connected(self.session_timeout):
                raise ZookeeperSessionLost("there is no connection: nothing was sent", where=where)
            try:
                return cast("list[Any]", transaction.commit_async().get(timeout=2 * self.session_timeout))
            except KazooTimeoutError:
                self.close()
                raise

    # -- reading ---------------------------------------------------------------------------------------------
    def sync(self, path: str = "/") -> None:
        """Let the server we speak to catch up with the leader: later reads see all writes completed before."""
        self.pace.take(1)
        self._patiently(path, lambda: self.kazoo.sync_async(path).get(timeout=3 * self.session_timeout))

    def zxid(self) -> int:
        """The newest transaction that an answer of this session named."""
        return int(self.kazoo.last_zxid)

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """Data and stat of each path, in order."""
        return cast("Sequence[Znode | Absent]", self._answers(GET_DATA, paths))

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""
        return cast("Sequence[tuple[str, ...] | Absent]", self._answers(GET_CHILDREN, paths))

    def acls(self, paths: Sequence[str]) -> Sequence[tuple[tuple[int, str, str], ...] | Absent]:
        """(permissions, scheme, id) of each path's ACL, in order: one request a znode, ZooKeeper has no bulk one."""
        return self._patiently(paths[0] if paths else "/", lambda: self._windowed(paths, PIPELINED, self._send_acl))

    def _answers(self, kind: int, paths: Sequence[str]) -> Sequence[Answer]:
        return self._patiently(paths[0] if paths else "/", lambda: self._answers_once(kind, paths))

    def _patiently(self, where: str, call: Callable[[], T]) -> T:
        """The call's answer; after a loss of the connection the same read is sent again on the next one."""
        for attempt in Retrying(
            retry=retry_if_exception_type(Retryable), stop=stop_after_attempt(READ_ATTEMPTS), reraise=True
        ):
            with attempt, translated(where):
                if self._over or not self.wait_connected(self.session_timeout):
                    raise ZookeeperSessionLost("there is no connection", where=where)
                return call()
        raise AssertionError  # tenacity answers or raises

    def _answers_once(self, kind: int, paths: Sequence[str]) -> Sequence[Answer]:
        """A window of MultiReads, or of single reads where the server has no MultiRead (before 3.6)."""
        found = None
        if self.multiread:
            absolute = self._absolute(paths)
            found = self._in_bulk(lambda most: (MultiRead(kind, chunk) for chunk in chunks(absolute, most)))
        return self._windowed(paths, PIPELINED, lambda path: self._send_one(kind, path)) if found is None else found

    def _in_bulk(self, requests: Callable[[int], Iterable[MultiRead]]) -> list[Any] | None:
        """The answers to requests of at most so many operations each; None: the server takes no MultiRead."""
        while self.multiread and self.operations >= LEAST_OPERATIONS:
            try:
                sent = requests(self.pace.at_once(self.operations))
                return [*chain.from_iterable(self._windowed(sent, IN_FLIGHT, self._send_many))]
            except kazoo_errors.BadArgumentsError:
                self.operations //= FEWER
                LOG.debug("the server refuses a MultiRead for its size: %d operations from now on", self.operations)
            except kazoo_errors.UnimplementedError:
                LOG.info("this ZooKeeper has no MultiRead (before 3.6): reading one by one")
                self.multiread = False
                self.wait_connected(self.session_timeout)  # the server closes the connection after such a request
        return None

    def _windowed(self, work: Iterable[P], window: int, send: Callable[[P], Callable[[], T]]) -> list[T]:
        """Send all of `work`, at most `window` at once; answers in order."""
        under_way: deque[Callable[[], T]] = deque()
        answers: list[T] = []
        for entry in work:
            under_way.append(send(entry))
            if len(under_way) >= window:
                answers.append(under_way.popleft()())
        answers.extend(answer() for answer in under_way)
        return answers

    def _send_many(self, request: MultiRead) -> Callable[[], list[Answer]]:
        self.pace.take(len(request.paths))
        result = self.kazoo.handler.async_result()
        self.kazoo._call(request, result)  # noqa: SLF001 - kazoo has no public seam for a request of one's own
        return lambda: cast("list[Answer]", result.get(timeout=3 * self.session_timeout))

    def _send_one(self, kind: int, path: str) -> Callable[[], Answer]:
        self.pace.take(1)
        result = self.kazoo.get_async(path) if kind == GET_DATA else self.kazoo.get_children_async(path)

        def answer() -> Answer:
            found = _or_absent(result, 3 * self.session_timeout)
            if isinstance(found, Absent):
                return found
            return znode_of(*found) if kind == GET_DATA else tuple(sorted(found))

        return answer

    def _send_acl(self, path: str) -> Callable[[], tuple[tuple[int, str, str], ...] | Absent]:
        self.pace.take(1)
        result = self.kazoo.get_acls_async(path)

        def answer() -> tuple[tuple[int, str, str], ...] | Absent:
            found = _or_absent(result, 3 * self.session_timeout)
            if isinstance(found, Absent):
                return found
            return tuple((acl.perms, acl.id.scheme, acl.id.id) for acl in found[0])

        return answer

    def _absolute(self, paths: Sequence[str]) -> list[bytes]:
        """As they stand in a request."""
        chroot = str(self.kazoo.chroot)
        return [(chroot + path if path != "/" else chroot or path).encode() for path in paths]


def _or_absent(result: Any, timeout: float) -> Any:
    """The answer of one of kazoo's asynchronous calls, or why there is none."""
    try:
        return result.get(timeout=timeout)
    except kazoo_errors.NoNodeError:
        return Absent.MISSING
    except kazoo_errors.NoAuthError:
        return Absent.DENIED


def parse_connect_string(text: str) -> tuple[str, str]:
    """(hosts, chroot) of zookeeper.connect; the chroot is "" or starts with / and does not end with one."""
    hosts, slash, chroot = text.strip().partition("/")
    chroot = (slash + chroot).rstrip("/")
    servers = [SERVER.fullmatch(server) for server in hosts.split(",")]
    usable = all(server and 0 < int(server["port"] or 2181) < 65536 for server in servers)
    if not usable or any(part in ("", ".", "..") for part in chroot.split("/")[1:]) or any(map(str.isspace, text)):
        raise ConnectStringWrong(f"{text!r} is no zookeeper.connect", where="connect string")
    return hosts, chroot


def connect(
    connect_string: str,
    *,
    timeout: float = 10.0,
    session_timeout: float = 10.0,
    access: ZookeeperAccess | None = None,
    pace: Pace | None = None,
) -> ZookeeperClient:
    """A session with the ensemble, below the chroot of the connect string, which must exist.

    Waits at most `timeout` seconds for the session; reads at that pace (None: as fast as it answers).  Raises
    ConnectStringWrong, ZookeeperUnreachable, ChrootMissing, ZookeeperDenied.
    """
    hosts, chroot = parse_connect_string(connect_string)
    quiet = _quiet()
    access = access or ZookeeperAccess()
    handler = TlsHandler(access.context) if access.context is not None else None
    kazoo = KazooClient(
        handler=handler,
        hosts=_patient_hosts(hosts) + chroot,
        timeout=session_timeout,
        logger=quiet,
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0),
        **access.options(),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kazoo warns of a missing chroot; here it is an error
            kazoo.start(timeout)
    except KazooTimeoutError as error:
        _give_up(kazoo)
        if handler is not None and handler.last_error is not None:
            raise handler.last_error from error
        raise ZookeeperUnreachable(f"no session within {timeout:g} s", where=hosts) from error
    except (kazoo_errors.AuthFailedError, kazoo_errors.NoAuthError) as error:
        _give_up(kazoo)
        said = "authentication failed" if isinstance(error, kazoo_errors.AuthFailedError) else "the chroot needs READ"
        user = f" for SASL user {access.sasl_username}" if access.sasl_username else ""
        raise ZookeeperDenied(f"{said}{user}", where=connect_string.strip()) from error
    client = ZookeeperClient(kazoo, connect_string.strip(), float(session_timeout), pace)
    client.sasl_user = access.sasl_username
    try:
        _require_chroot(client, hosts, chroot)
    except BaseException:
        client.close()
        raise
    return client


def _give_up(kazoo: KazooClient) -> None:
    kazoo.stop()
    kazoo.close()


def _patient_hosts(hosts: str) -> str:
    """The hosts, repeated until there are enough of them.

    kazoo waits for an answer to its greeting for session timeout / number of hosts.  With one host, a server that takes
    the connection while it starts and never answers would cost the whole session.
    """
    servers = hosts.split(",")
    return ",".join(servers * -(-LEAST_HOSTS // len(servers)))


def _require_chroot(client: ZookeeperClient, hosts: str, chroot: str) -> None:
    if chroot and client.data(["/"])[0] is Absent.MISSING:
        raise ChrootMissing(f"the chroot {chroot} does not exist", where=hosts)
