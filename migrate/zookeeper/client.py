"""A session with ZooKeeper below the cluster's chroot: connect, read in bulk, sync, close.

kazoo's exceptions end here: callers see the typed errors of migrate.errors.  kazoo's own log lines can hold the data of
znodes, so its loggers are kept silent.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Any, Final, Self, TypeVar, cast

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.serialization import int_struct, read_string
from kazoo.retry import KazooRetry
from puresasl import mechanisms
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from migrate.errors import (
    ChrootMissing,
    ConnectStringWrong,
    KerberosRefused,
    MigrateError,
    Retryable,
    WorldError,
    ZookeeperDenied,
    ZookeeperSessionLost,
    ZookeeperUnreachable,
)
from migrate.kafka.gssapi import gssapi
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import handshake, tls_context
from migrate.model.inventory import Kerberos, ZookeeperLogin
from migrate.model.kafka_values import ConnectString, connect_string
from migrate.model.outcome import Unknown
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.multiread import GET_CHILDREN, GET_DATA, MAX_OPERATIONS, Answer, MultiRead, chunks, znode_of
from migrate.zookeeper.rate_limit import Pace

LOG: Final = logging.getLogger("migrate.zookeeper")
IN_FLIGHT: Final = 4  # MultiReads in flight at once
READ_ATTEMPTS: Final = 3
# kazoo waits for an answer to its greeting for session timeout / number of hosts.  With one host, a server that takes
# the connection while it starts and never answers would cost the whole session: so hosts are repeated
LEAST_HOSTS: Final = 4
ONE_LOOK: Final = 1.0  # seconds for a server to say why it grants no session
FEWER: Final = 4  # so many times fewer operations in a request, where the server refuses one for its size
LEAST_OPERATIONS: Final = 4  # with fewer a MultiRead is not worth it
SERVICE: Final = "zookeeper"  # of the server's principal, where the login names no other
PIPELINED: Final = 1024  # single reads in flight at once, where the server has no MultiRead

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
    # kazoo raises RuntimeError for an error code that it does not know, and for answers out of their order
    except (kazoo_errors.KazooException, StructError, ValueError, RuntimeError) as error:
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
        self.sasl_user: str | Unknown = ""  # as whom ZooKeeper's ACLs know us; "" for nobody, or by a certificate
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
        self._lost_hooks.append(hook)

    def wait_connected(self, seconds: float) -> bool:
        return self._connected.wait(seconds)

    @property
    def session(self) -> int:
        """The id of the session now, 0 while there is no connection."""
        identity = self.kazoo.client_id
        return identity[0] if identity and identity[0] else 0

    def close(self) -> None:
        """End the session: its ephemeral znodes go at once, and what another thread still reads ends."""
        if self._over:  # kazoo refuses a second close where the first did not end in time
            return
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

        Raises ZookeeperSessionLost: nothing was sent, or it may or may not have happened.  kazoo keeps unsent requests
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

    def asked_name(self) -> str | Unknown:
        """The SASL name that ZooKeeper's own rules made of our principal, by whoAmI."""

        def ask() -> list[tuple[str, str]] | None:
            try:
                return cast("list[tuple[str, str]]", self._sent(WhoAmI()).get(timeout=3 * self.session_timeout))
            except kazoo_errors.UnimplementedError:
                self.wait_connected(self.session_timeout)  # the server closes the connection after such a request
                return None

        found = self._patiently("/", ask)
        if found is None:
            return Unknown("this ZooKeeper does not say as whom it knows a session (before 3.7)")
        names = [name for scheme, name in found if scheme == "sasl"]
        return names[0] if len(names) == 1 else Unknown(f"ZooKeeper knows this session by {len(names)} SASL names")

    def zxid(self) -> int:
        return int(self.kazoo.last_zxid)

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        return self._read(GET_DATA, paths)

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        return self._read(GET_CHILDREN, paths)

    def acls(self, paths: Sequence[str]) -> Sequence[tuple[tuple[int, str, str], ...] | Absent]:
        """(permissions, scheme, id) of each path's ACL, in order: one request a znode, ZooKeeper has no bulk one."""

        def taken(found: Any) -> tuple[tuple[int, str, str], ...]:
            return tuple((acl.perms, acl.id.scheme, acl.id.id) for acl in found[0])

        def send(path: str) -> Callable[[], Any]:
            return self._send_one(path, self.kazoo.get_acls_async, taken)

        return self._patiently(paths[0] if paths else "/", lambda: self._windowed(paths, PIPELINED, send))

    def _patiently(self, where: str, call: Callable[[], T]) -> T:
        """The call's answer; after a loss of the connection the same read is sent again on the next one."""
        for attempt in Retrying(
            retry=retry_if_exception_type(Retryable), stop=stop_after_attempt(READ_ATTEMPTS), reraise=True
        ):
            with attempt, translated(where):
                if self._over or not self.wait_connected(self.session_timeout):
                    if not self._over and isinstance(
                        known := getattr(self.kazoo.handler, "last_error", None), Retryable
                    ):
                        raise known  # a KDC that does not answer
                    raise ZookeeperSessionLost("there is no connection", where=where)
                return call()
        raise AssertionError  # tenacity answers or raises

    def _read(self, kind: int, paths: Sequence[str]) -> Sequence[Any]:
        """By a window of MultiReads, or of single reads where the server has no MultiRead (before 3.6)."""

        def taken(found: Any) -> Answer:
            return znode_of(*found) if kind == GET_DATA else tuple(sorted(found))

        def send(path: str) -> Callable[[], Any]:
            one = self.kazoo.get_async if kind == GET_DATA else self.kazoo.get_children_async
            return self._send_one(path, one, taken)

        def read() -> Sequence[Any]:
            found = self._in_bulk(kind, paths)
            return self._windowed(paths, PIPELINED, send) if found is None else found

        return self._patiently(paths[0] if paths else "/", read)

    def _in_bulk(self, kind: int, paths: Sequence[str]) -> list[Any] | None:
        """The answers by MultiReads; None: the server takes none."""
        chroot = str(self.kazoo.chroot)
        absolute = [(chroot + path if path != "/" else chroot or path).encode() for path in paths]
        while self.multiread and self.operations >= LEAST_OPERATIONS:
            try:
                most = self.pace.at_once(self.operations)
                sent = (MultiRead(kind, chunk) for chunk in chunks(absolute, most))
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
        result = self._sent(request)
        return lambda: cast("list[Answer]", result.get(timeout=3 * self.session_timeout))

    def _sent(self, request: MultiRead | WhoAmI) -> Any:
        result = self.kazoo.handler.async_result()
        self.kazoo._call(request, result)  # noqa: SLF001 - kazoo has no public seam for a request of one's own
        return result

    def _send_one(self, path: str, ask: Callable[[str], Any], taken: Callable[[Any], T]) -> Callable[[], T | Absent]:
        self.pace.take(1)
        result = ask(path)

        def answer() -> T | Absent:
            try:
                return taken(result.get(timeout=3 * self.session_timeout))
            except kazoo_errors.NoNodeError:
                return Absent.MISSING
            except kazoo_errors.NoAuthError:
                return Absent.DENIED

        return answer


@dataclass(frozen=True, slots=True)
class ZookeeperAccess:
    """A digest or SASL (DIGEST-MD5 or Kerberos) identity, and a TLS context.  Empty: neither."""

    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    digest: str = field(default="", repr=False)  # user:password
    context: ssl.SSLContext | None = field(default=None, repr=False)
    kerberos: Kerberos | None = None

    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.sasl_username:
            options["sasl_options"] = {
                "mechanism": "DIGEST-MD5",
                "username": self.sasl_username,
                "password": self.sasl_password,
            }
        if self.digest:
            options["auth_data"] = [("digest", self.digest)]
        if self.context is not None:
            options["use_ssl"] = True
        return options


def access_of(login: ZookeeperLogin) -> ZookeeperAccess:
    """Read the login's secrets.  Raises SecretUnreadable, StoreUnreadable."""
    return ZookeeperAccess(
        sasl_username=login.username,
        sasl_password=read_secret(login.password) if login.password else "",
        context=tls_context(login.truststore, login.keystore) if login.tls else None,
        kerberos=login.kerberos,
    )


class LoginHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with this tool's TLS and Kerberos: kazoo gives no reasons.

    The KDC is asked before each connection: while it is away there is no connection, and kazoo tries again.
    """

    def __init__(self, context: ssl.SSLContext | None, kerberos: Kerberos | None = None) -> None:
        super().__init__()
        self._context = context
        self._kerberos = kerberos
        self.last_error: MigrateError | None = None  # why no session came about, where TLS or Kerberos was why
        self.begun: tuple[bytes, Generator[bytes, bytes, None]] | None = None  # the first token, and what follows

    def begin(self, servers: Sequence[str]) -> None:
        """Ask for a ticket of any of these servers, and begin the login by it.  Raises what `gssapi` raises."""
        refused, login = None, self._kerberos
        if login is None:
            return
        for server in servers:
            tokens = gssapi(login, login.service or SERVICE, address_of(server)[0], server)
            try:
                self.begun = next(tokens), tokens
            except KerberosRefused as error:
                refused = error
            else:
                return
        if refused is not None:
            raise refused

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> socket.socket:
        where = f"{hostname}:{address[1]}"
        try:
            self.begin([where])
        except MigrateError as error:
            self.last_error = error
            raise OSError("no ticket") from error
        found = socket.create_connection(address, timeout)
        if self._context is not None:
            try:
                found = handshake(found, hostname, where, self._context)
            except MigrateError as error:
                if not isinstance(error, Retryable):
                    self.last_error = error
                raise OSError("no TLS session") from error
        self.last_error = None
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.settimeout(None)
        return found


class BegunLogin(mechanisms.Mechanism):  # type: ignore[misc]  # pure-sasl has no types
    """The login that its handler has begun, as one of pure-sasl's mechanisms, by which kazoo logs in."""

    name = "GSSAPI by kraft-migrate"  # ZooKeeper is not told a mechanism's name

    def __init__(self, sasl: object, handler: LoginHandler) -> None:
        super().__init__(sasl)
        if handler.begun is None:
            raise ValueError("no login was begun")
        self._handler, self._first, self._tokens = handler, *handler.begun
        handler.begun = None

    def process(self, challenge: bytes | None = None) -> bytes | None:
        if self._first:
            token, self._first = self._first, b""
            return token
        try:
            return self._tokens.send(challenge or b"")
        except StopIteration:
            self.complete = True
        except MigrateError as error:
            self._handler.last_error = error
            raise
        return None


mechanisms.mechanisms[BegunLogin.name] = BegunLogin


class WhoAmI:
    """The request whoAmI (opcode 107, ZOOKEEPER-3969, since 3.7), in the shape of kazoo's own."""

    type = 107

    def serialize(self) -> bytes:
        return b""

    def deserialize(self, raw: bytes, offset: int) -> list[tuple[str, str]]:
        """Scheme and name of each identity of the session."""
        (count,) = int_struct.unpack_from(raw, offset)
        offset += int_struct.size
        found = []
        for _ in range(count):
            scheme, offset = read_string(raw, offset)
            name, offset = read_string(raw, offset)
            found.append((str(scheme), str(name)))
        return found


def parse_connect_string(text: str) -> ConnectString:
    """Servers and chroot of zookeeper.connect.  Raises ConnectStringWrong."""
    try:
        found = connect_string(text)
        for server in found.servers:
            server.rpartition(":")[0].encode("idna")  # as Python's sockets do: a label has 63 letters at most
    except ValueError as error:
        raise ConnectStringWrong(f"{text!r} is no zookeeper.connect: {error}", where="connect string") from error
    return found


def address_of(server: str) -> tuple[str, int]:
    """Host and port of one server of a connect string."""
    host, _, port = parse_connect_string(server).servers[0].rpartition(":")
    return host.strip("[]"), int(port)


def connect(
    asked: str,
    *,
    timeout: float = 10.0,
    session_timeout: float = 10.0,
    access: ZookeeperAccess | None = None,
    pace: Pace | None = None,
) -> ZookeeperClient:
    """A session with the ensemble, below the chroot of the connect string, which must exist.

    Waits at most `timeout` seconds for the session; reads at that pace (None: as fast as it answers).  Raises
    ConnectStringWrong, ZookeeperUnreachable, ChrootMissing, ZookeeperDenied; by Kerberos what `gssapi` raises.
    """
    servers, chroot = (wanted := parse_connect_string(asked)).servers, wanted.chroot
    hosts = ",".join(servers)
    for name in ("kazoo", "migrate.zookeeper.kazoo"):  # its lines can hold secrets; what matters is an error here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    access = access or ZookeeperAccess()
    handler, options = None, access.options()
    if access.context is not None or access.kerberos is not None:
        handler = LoginHandler(access.context, access.kerberos)
        handler.begin(servers)  # what is wrong with tickets is reported at once
    if access.kerberos is not None:
        options["sasl_options"] = {"mechanism": BegunLogin.name, "handler": handler}
    kazoo = KazooClient(
        handler=handler,
        hosts=",".join(servers * -(-LEAST_HOSTS // len(servers))) + chroot,
        timeout=session_timeout,
        logger=logging.getLogger("migrate.zookeeper.kazoo"),
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0),
        **options,
    )
    client = ZookeeperClient(kazoo, asked.strip(), float(session_timeout), pace)
    client.sasl_user = access.sasl_username
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kazoo warns of a missing chroot; here it is an error
            kazoo.start(timeout)
    except (kazoo_errors.KazooException, KazooTimeoutError) as error:
        if not isinstance(error, kazoo_errors.WriterNotClosedException):  # by its own stop: see `close`
            client.close()
        if handler is not None and handler.last_error is not None:
            raise handler.last_error from error
        if isinstance(error, KazooTimeoutError | kazoo_errors.WriterNotClosedException):
            raise ZookeeperUnreachable(
                f"no session within {timeout:g} s",
                where=hosts,
                why="; ".join(f"{server} {_does(server, access)}" for server in servers),
            ) from error
        if isinstance(error, kazoo_errors.AuthFailedError | kazoo_errors.NoAuthError):
            denied = isinstance(error, kazoo_errors.NoAuthError)
            said = "the chroot needs READ" if denied else "authentication failed"
            user = f" for SASL user {access.sasl_username}" if access.sasl_username else ""
            user = f" for {access.kerberos.principal}" if access.kerberos is not None else user
            raise ZookeeperDenied(f"{said}{user}", where=asked.strip()) from error
        with translated(hosts):  # kazoo asks for the chroot, and the connection went
            raise
    try:
        if access.kerberos is not None:
            client.sasl_user = client.asked_name()
        root = client.data(["/"])[0] if chroot else None
    except BaseException:
        client.close()
        raise
    if root is Absent.MISSING:
        client.close()
        raise ChrootMissing(f"the chroot {chroot} does not exist", where=hosts)
    return client


def _does(server: str, access: ZookeeperAccess) -> str:
    """What that server does instead of granting a session: `refuses connections`.

    By its name, a connection, and the four-letter word that every server answers; a TLS port is not asked.
    """
    try:
        with socket.create_connection(address_of(server), ONE_LOOK) as connection:
            if access.context is not None:
                return "accepts connections, but grants no session"
            connection.settimeout(ONE_LOOK)
            connection.sendall(b"srvr")
            said = connection.recv(100)
    except socket.gaierror:
        return "does not resolve: no such host name"
    except ConnectionRefusedError:
        return "refuses connections: nothing listens there"
    except TimeoutError:
        return "is silent: a firewall, another program's port, or ZooKeeper hangs"
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    if said.startswith(b"This ZooKeeper instance is not currently serving"):
        return "is a ZooKeeper server without a quorum"
    if said.startswith((b"Zookeeper version", b"srvr is not")):
        return "is a ZooKeeper server, but grants no session: see its log"
    return "answers, but is not a ZooKeeper server, or it expects TLS"
