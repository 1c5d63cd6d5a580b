"""Blocking connections to brokers and controllers: TLS, SASL, a request, its answer, and a typed error for all else.

A connection is used by one thread.  After any error it is closed: what may still arrive belongs to a request that
nobody waits for.  SASL (KIP-43, KIP-152) speaks PLAIN, SCRAM, GSSAPI and OAUTHBEARER.  Where a listener ends sessions
(`connections.max.reauth.ms`, or a token's end), a connection logs in again before the next request (KIP-368).

`KeptConnections` saves TLS handshakes and logins, which cost a node more than a request.  Before a kept connection is
used its node is asked for its versions again; any failure of that is resolved by a new connection.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import itertools
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from migrate import __version__
from migrate.errors import (
    AccessRefused,
    AccessUnsupported,
    AnswerBroken,
    AnswerTimeout,
    ConnectionClosed,
    DecodeError,
    KafkaRefused,
    MigrateError,
    NodeUnreachable,
)
from migrate.kafka.gssapi import gssapi
from migrate.kafka.oauth import SHARE, bearer, forget, token_of
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import CLOSED, PROTOCOL, handshake, last_word, tls_context, tls_error
from migrate.model.inventory import Access
from migrate.model.rights import REQUESTS
from migrate.model.views import NodeAnswer
from migrate.protocol.loader import Values
from migrate.protocol.messages import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    Code,
    decode_response,
    encode_request,
    error_name,
)

CLIENT_ID: Final = "kraft-migrate"  # Kafka allows letters, digits, dots and dashes in a client's name and version
TLS_ALERT: Final = 0x1503  # how an alert of a TLS listener begins
_PART: Final = 1 << 20
# a node closes each new connection while it logs in to its KDC again (SaslServerAuthenticator: "this may be a transient
# failure due to Kerberos re-login"), usually for some milliseconds
RELOGIN_ATTEMPTS: Final = 3
RELOGIN_SECONDS: Final = 0.3
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NO_RIGHT: Final = (Code.CLUSTER_AUTHORIZATION_FAILED, Code.TOPIC_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much: seconds to connect, seconds for one answer, bytes of one answer."""

    connect_seconds: float = 1.0
    answer_seconds: float = 2.0
    answer_bytes: int = 128 * 2**20


DEFAULT_LIMITS: Final = Limits()


class Connection:
    """An open, authenticated connection; `versions` are the api keys that the other side serves here."""

    def __init__(
        self, address: str, access: Access, limits: Limits = DEFAULT_LIMITS, opened: socket.socket | None = None
    ) -> None:
        """Connect, ask for the versions, authenticate; with `opened` on a socket that is connected already.

        Raises:
            NodeUnreachable, ConnectionClosed, AnswerTimeout: Retryable.
            AnswerBroken, AccessRefused, AccessUnsupported, TlsRefused, StoreUnreadable, SecretUnreadable: not.
            KdcUnreachable, KerberosRefused, KerberosUnusable: by GSSAPI; the first is retryable.
        """
        self.address = address
        self._access = access
        self._limits = limits
        self._renew_at: float | None = None
        self._ids = itertools.count(1)
        attempts = RELOGIN_ATTEMPTS if access.mechanism == "GSSAPI" and opened is None else 1
        for attempt in Retrying(
            retry=retry_if_exception_type(ConnectionClosed),
            stop=stop_after_attempt(attempts),
            wait=wait_fixed(RELOGIN_SECONDS),
            reraise=True,
        ):
            with attempt:
                self._socket = opened or _open(address, access, limits)
                self._begin(access)

    def _begin(self, access: Access) -> None:
        try:
            self.ask_again()
            if access.protocol.startswith("SASL_"):
                self._begin_session()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_session(self) -> None:
        """Log in; the listener closes the connection at the first request after a session's end (KIP-368)."""
        begun = time.monotonic()
        seconds = authenticate(self, self._access)
        # a listener takes no two logins within a second (SaslServerAuthenticator)
        self._renew_at = begun + max(seconds * SHARE, 1.0) if seconds else None

    def _renew(self) -> None:
        if self._renew_at is not None and time.monotonic() >= self._renew_at:
            self._renew_at = None
            try:
                self._begin_session()
            except BaseException:
                self.close()
                raise

    def ask_again(self) -> None:
        """ApiVersions v4 (shows kraft.version too), which needs no authentication; updates `about`.

        Raises what `exchange`, `refuse` and a login raise.
        """
        self._renew()
        software = {"clientSoftwareName": CLIENT_ID, "clientSoftwareVersion": __version__}
        self.about = self.exchange(API_VERSIONS, API_VERSIONS.versions.high, software)
        old = self.about["errorCode"] == Code.UNSUPPORTED_VERSION
        self.refuse(API_VERSIONS, self.about["errorCode"], "the node is older than Kafka 3.9" if old else None)
        self.versions: Mapping[int, tuple[int, int]] = {
            entry["apiKey"]: (entry["minVersion"], entry["maxVersion"]) for entry in self.about["apiKeys"]
        }

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def close(self) -> None:
        self._socket.close()

    def call(self, api: Api, body: Values | bytes, *, seconds: float | None = None) -> Values:
        """Send the request in the highest version that both support; return the answer's body, error codes included.

        `body` may be encoded already, for an API of one version.

        Raises:
            KafkaRefused: this listener does not serve that request.
            ConnectionClosed, AnswerTimeout: Retryable.
            AnswerBroken: what came is no answer.
            What a login raises, where the session was near its end.
        """
        self._renew()
        low, high = self.versions.get(api.key, (0, -1))
        version = api.best(low, high)
        if version is None:
            raise KafkaRefused(
                f"{api.name} is not served on this listener",
                where=self.address,
                why="brokers and controllers each serve their own requests, and in ZooKeeper mode fewer",
            )
        return self.exchange(api, version, body, seconds=seconds)

    def exchange(self, api: Api, version: int, body: Values | bytes, *, seconds: float | None = None) -> Values:
        """As `call`, in exactly that version."""
        deadline = time.monotonic() + (self._limits.answer_seconds if seconds is None else seconds)
        correlation_id = next(self._ids)
        payload = encode_request(api, version, correlation_id, CLIENT_ID, body)
        try:
            self._send(len(payload).to_bytes(4, "big") + payload, api, deadline)
            raw = self._receive(api, deadline)
            found, answer = decode_response(api, version, raw)
        except DecodeError as error:
            self.close()
            raise AnswerBroken(f"the answer to {api.name} cannot be decoded: {error}", where=self.address) from error
        except BaseException:
            self.close()
            raise
        if found != correlation_id:
            self.close()
            raise AnswerBroken(f"an answer to request {found} came for {correlation_id}", where=self.address)
        return answer

    def refuse(self, api: Api, code: int, message: str | None = None) -> None:
        """Raise for an error code that no caller handles; nothing for NONE.

        Raises:
            AccessRefused: the principal lacks the right.
            KafkaRefused: any other.
        """
        if code == Code.NONE:
            return
        text = f"{api.name} was answered with {error_name(code)}"
        if code in _NO_RIGHT:
            needed = f": it needs {REQUESTS[api.name]}" if api.name in REQUESTS else ""
            raise AccessRefused(f"{text}{needed}", where=self.address, why=message or "")
        raise KafkaRefused(text, where=self.address, why=message or "")

    # -- bytes ---------------------------------------------------------------------------------------------------
    def _send(self, raw: bytes, api: Api, deadline: float) -> None:
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._socket.sendall(raw)
        except TimeoutError as error:
            raise AnswerTimeout(f"{api.name} could not be sent in time", where=self.address) from error
        except OSError as error:
            raise self._broken(error, api) from error

    def _receive(self, api: Api, deadline: float) -> bytes:
        size = int.from_bytes(self._exactly(4, api, deadline), "big", signed=True)
        if not 4 <= size <= self._limits.answer_bytes:
            if size >> 16 == TLS_ALERT:
                raise AnswerBroken(
                    f"the listener answers {api.name} with a TLS alert: it expects TLS",
                    where=self.address,
                    why="it uses TLS, and the request was not encrypted",
                    next_step=f"{PROTOCOL}, such as `protocol: SSL` or `protocol: SASL_SSL`",
                )
            raise AnswerBroken(f"the answer to {api.name} says it has {size} bytes", where=self.address)
        return bytes(self._exactly(size, api, deadline))

    def _exactly(self, size: int, api: Api, deadline: float) -> bytearray:
        found = bytearray()
        while len(found) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AnswerTimeout(f"no answer to {api.name} in time", where=self.address)
            self._socket.settimeout(left)
            try:
                part = self._socket.recv(min(size - len(found), _PART))
            except TimeoutError:
                continue
            except OSError as error:
                raise self._broken(error, api) from error
            if not part:
                raise self._closed(api)
            found += part
        return found

    def _broken(self, error: OSError, api: Api) -> MigrateError:
        """TLS 1.3 reports a refused client certificate only with the first answer: read the last alert."""
        if isinstance(self._socket, ssl.SSLSocket):
            if not isinstance(error, ssl.SSLError):
                with contextlib.suppress(TimeoutError):
                    error = last_word(self._socket) or error
            if isinstance(error, ssl.SSLError) and not isinstance(error, CLOSED):
                return tls_error(error, self.address)
        return self._closed(api)

    def _closed(self, api: Api) -> ConnectionClosed:
        text = f"the connection was closed instead of an answer to {api.name}"
        tls = isinstance(self._socket, ssl.SSLSocket)
        why = "a listener that wants another certificate of its clients (ssl.client.auth) does so" if tls else ""
        return ConnectionClosed(text, where=self.address, why=why)


def _open(address: str, access: Access, limits: Limits) -> socket.socket:
    if access.protocol not in PROTOCOLS:
        raise AccessUnsupported(f"security protocol {access.protocol!r} is not spoken", where=address)
    context = tls_context(access.truststore, access.keystore) if access.is_tls else None
    return reach(address, context, limits)


def reach(address: str, context: ssl.SSLContext | None, limits: Limits = DEFAULT_LIMITS) -> socket.socket:
    """A socket that is connected, with TLS where there is a context.

    Raises NodeUnreachable, ConnectionClosed, AccessUnsupported, TlsRefused.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise AccessUnsupported(f"{address!r} is no host:port", where=address)
    host = host.strip("[]")
    try:
        found = socket.create_connection((host, int(port)), timeout=limits.connect_seconds)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NodeUnreachable(f"no connection: {reason}", where=address) from error
    if context is None:
        return found
    found.settimeout(limits.answer_seconds)
    return handshake(found, host, address, context)


HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST: Final = 4096  # ScramMechanism.minIterations: fewer would make the proof cheap to guess
MOST: Final = 10_000_000  # a listener cannot keep us busy for ever
NO_BINDING: Final = "n,,"


class ScramBroken(Exception):
    """The other side broke the protocol, or does not know the password."""


def scram(mechanism: str, username: str, password: str, nonce: str = "") -> Generator[bytes, bytes, None]:
    """Yields the client's messages, is sent the server's; ends once the server has proven that it knows the password.

    Raises ScramBroken: it has not.
    """
    digest = HASHES[mechanism]
    nonce = nonce or secrets.token_urlsafe(24)
    first = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = (yield f"{NO_BINDING}{first}".encode()).decode("utf-8", "replace")
    said = _attributes(server_first)
    salt, iterations, whole_nonce = _decoded(said.get("s", "")), _number(said.get("i", "")), said.get("r", "")
    if not whole_nonce.startswith(nonce) or whole_nonce == nonce:
        raise ScramBroken("its nonce does not begin with ours")
    if not FEWEST <= iterations <= MOST:
        raise ScramBroken(f"it asks for {iterations} iterations, {FEWEST} to {MOST} are accepted")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    bare = f"c={base64.b64encode(NO_BINDING.encode()).decode()},r={whole_nonce}"
    message = f"{first},{server_first},{bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    last = (yield f"{bare},p={base64.b64encode(proof).decode()}".encode()).decode("utf-8", "replace")
    wanted = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(_decoded(_attributes(last).get("v", "")), wanted):
        raise ScramBroken("it has not proven that it knows the password: it may be another server")


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramBroken("its message is not base64 where it should be") from None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1


HANDSHAKE_VERSION: Final = 1  # from this version on tokens travel in SaslAuthenticate requests
AUTHENTICATE_VERSION: Final = 2
Tokens = Generator[bytes, bytes, None]


def tokens_of(access: Access, where: str) -> Tokens:
    """The client's tokens, in exchange for the server's."""
    if access.mechanism == "GSSAPI" and access.kerberos is not None:
        login = access.kerberos
        yield from gssapi(login, login.service or "kafka", where.rpartition(":")[0].strip("[]"), where)
        return
    if access.mechanism == "OAUTHBEARER" and access.oauth is not None:
        yield from bearer(token_of(access))
        return
    if access.mechanism not in ("PLAIN", *HASHES):
        raise AccessUnsupported(f"SASL mechanism {access.mechanism!r} is not spoken yet", where=where)
    if access.password is None:
        raise AccessUnsupported(f"{access.mechanism} needs the password's file", where=access.username)
    password = read_secret(access.password)
    if access.mechanism == "PLAIN":  # RFC 4616: no authorization id, user, password
        yield b"\0".join((b"", access.username.encode(), password.encode()))
    else:  # RFC 5802: the password is never sent
        yield from scram(access.mechanism, access.username, password)


def authenticate(connection: Connection, access: Access) -> float:
    """Go through handshake and tokens; how many seconds the session then has, 0 where it does not end.

    Raises:
        AccessUnsupported: a mechanism that we do not speak, or no password for one that needs it.
        AccessRefused: the listener does not offer the mechanism, or refuses user or password.
        SecretUnreadable: the password's file, or the keytab.
        KerberosUnusable, KerberosRefused, KdcUnreachable: no ticket for the listener's service.
        TokenUnusable, TokenRefused, IssuerUnreachable: no token to log in with.
    """
    where, tokens = connection.address, tokens_of(access, connection.address)
    token = next(tokens)
    answer = connection.exchange(SASL_HANDSHAKE, HANDSHAKE_VERSION, {"mechanism": access.mechanism})
    if answer["errorCode"] != Code.NONE:
        raise _no_such_login(answer["mechanisms"], access, where)
    while True:
        answer = connection.exchange(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, {"authBytes": token})
        if answer["errorCode"] != Code.NONE:
            raise _login_refused(answer, access, where)
        try:
            token = tokens.send(answer["authBytes"])
        except StopIteration:
            lifetime: int = answer["sessionLifetimeMs"]
            return lifetime / 1000
        except ScramBroken as error:
            raise AccessRefused(f"{access.mechanism} with the listener failed: {error}", where=where) from None


def _login_refused(answer: Values, access: Access, where: str) -> AccessRefused:
    why, step = answer["errorMessage"] or "", "correct `username` and `password` of the inventory's access, or create "
    step += f"the user for {access.mechanism} on this cluster"
    if access.kerberos is not None:
        step = "compare `service`, and the host's name in `address`, with the principal in the node's keytab; Kerberos "
        step += "asks for the host's canonical name unless krb5.conf has dns_canonicalize_hostname = false"
    if access.oauth is not None:
        why += forget(access)
        step = "compare issuer, audience and times with the listener's sasl.oauthbearer.expected.issuer and "
        step += "expected.audience, its clock, and the keys at its jwks.endpoint.url"
    return AccessRefused(
        f"user {access.user} was refused: {error_name(answer['errorCode'])}",
        where=where,
        why=why,
        next_step=step,
    )


def _no_such_login(offered: list[str], access: Access, where: str) -> AccessRefused:
    """A listener without SASL answers with no mechanism at all (ILLEGAL_SASL_STATE)."""
    if not offered:
        right = "SSL" if access.is_tls else "PLAINTEXT"
        return AccessRefused(
            "the listener takes no SASL login",
            where=where,
            why=f"it is a listener of PLAINTEXT or SSL, and was asked by {access.protocol}",
            next_step=f"{PROTOCOL}, here `protocol: {right}` without `mechanism`",
        )
    spoken = [name for name in offered if name in ("PLAIN", *HASHES, "GSSAPI", "OAUTHBEARER")]
    change = f"change `mechanism` of the inventory's access to {' or '.join(spoken)}, which its user must have"
    return AccessRefused(
        f"the listener offers {', '.join(offered)}, not {access.mechanism}",
        where=where,
        next_step=change if spoken else "name a listener that offers PLAIN, SCRAM, GSSAPI or OAUTHBEARER in `address`",
    )


def answer(connection: Connection) -> NodeAnswer:
    """The node's answer to ApiVersions, from when the connection was opened.

    Without `zookeeper.metadata.migration.enable=true` the tag is absent, which is False (KIP-866).
    """
    return NodeAnswer(
        migration_flag=connection.about.get("zkMigrationReady", False),
        finalized_features={
            entry["name"]: entry["maxVersionLevel"] for entry in connection.about.get("finalizedFeatures", [])
        },
        apis={entry["apiKey"]: entry["maxVersion"] for entry in connection.about["apiKeys"]},
    )


def cluster_id(connection: Connection, *, controller: bool) -> str:
    """The cluster's id by DescribeCluster (on a controller this needs ALTER on Cluster).

    Raises AccessRefused, KafkaRefused, ConnectionClosed, AnswerTimeout, AnswerBroken.
    """
    found = connection.call(DESCRIBE_CLUSTER, {"endpointType": 2 if controller else 1})
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    text: str = found["clusterId"]
    return text


Key = tuple[str, Access, Limits]


class KeptConnections:
    """Keeps at most one connection for each address, access and limits; safe for several threads."""

    def __init__(self) -> None:
        self._idle: dict[Key, Connection] = {}
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self, address: str, access: Access, limits: Limits = DEFAULT_LIMITS) -> Iterator[Connection]:
        """Yield a connection with a fresh `about`; afterwards it is kept, unless an error closed it.

        Raises:
            What opening a `Connection` raises.
        """
        key = (address, access, limits)
        with self._lock:
            found = self._idle.pop(key, None)
        if found is not None:
            try:
                found.ask_again()
            except MigrateError:  # its process may have ended, or closed what was idle: a new connection tells
                found.close()
                found = None
        found = found or Connection(address, access, limits)
        try:
            yield found
        finally:
            with self._lock:
                keep = not self._closed and found.is_open and key not in self._idle
                if keep:
                    self._idle[key] = found
            if not keep:
                found.close()

    def close(self) -> None:
        """Close all; one that is in use is closed when it is returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connection in idle.values():
            connection.close()
