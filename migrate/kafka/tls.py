"""TLS of connections to nodes: contexts, handshakes and their errors, and librdkafka's settings.

Always TLS 1.2 or newer, chain and host name always verified.
"""

from __future__ import annotations

import secrets
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from migrate.errors import ConnectionClosed, MigrateError, NodeUnreachable, StoreUnreadable, TlsRefused
from migrate.kafka.secrets import read_secret
from migrate.model.inventory import Access, Inventory, Store

if TYPE_CHECKING:
    from migrate.kafka.stores import Identity

LAST_WORD_SECONDS: Final = 0.2
CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)  # without an alert; Python 3.11.2 raises the second
PROTOCOL: Final = "change `protocol` of the inventory's access, or `address` to another listener"
UNTRUSTED: Final = "name the authority that signed it in `truststore` of the inventory's access"
OTHERWISE_WRONG: Final = {  # by OpenSSL's X509_V_ERR
    10: "renew the listener's certificate",
    62: "name the node in `address` as its certificate does, or have it issued for this name",
    64: "name the node in `address` as its certificate does, or have it issued for this address",
}
NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")


def tls_context(truststore: Store | None, keystore: Store | None) -> ssl.SSLContext:
    """A client's TLS context; without a truststore it trusts the authorities of this host.

    Raises StoreUnreadable, SecretUnreadable.
    """
    return _context(truststore, keystore, (_stamp(truststore), _stamp(keystore)))


def _stamp(store: Store | None) -> tuple[int, int] | None:
    """A value that changes with the file: what was read is cached until then."""
    try:
        found = None if store is None else Path(store.path).stat()
    except OSError:
        return None  # whoever reads it says why it cannot be read
    return None if found is None else (found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _context(
    truststore: Store | None,
    keystore: Store | None,
    stamps: tuple[tuple[int, int] | None, ...],  # noqa: ARG001 - part of the key alone
) -> ssl.SSLContext:
    from migrate.kafka.stores import authorities, identity  # noqa: PLC0415 - cryptography

    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and host name
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    if truststore is None:
        found.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        with _usable(truststore):
            found.load_verify_locations(cadata=authorities(truststore).decode("ascii"))
    if keystore is not None:
        with _usable(keystore):
            _present(found, identity(keystore))
    return found


@contextmanager
def _usable(store: Store) -> Iterator[None]:
    """Raises StoreUnreadable for what OpenSSL refuses, as of a store that is being renewed."""
    try:
        yield
    except ssl.SSLError as error:
        raise StoreUnreadable(
            "TLS cannot use what the store holds",
            where=store.path,
            why=(error.reason or str(error)).replace("_", " ").lower(),
            next_step="put the key's own certificate first; where a key is too short, have a longer one issued",
        ) from None


def _present(context: ssl.SSLContext, who: Identity) -> None:
    """Python's ssl loads keys from files only: it is in one for a moment, under a password that is not written."""
    password = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        file = Path(folder, "identity.pem")
        file.touch(mode=0o600)
        file.write_bytes(who.encrypted(password) + who.certificates)
        context.load_cert_chain(file, password=password)


def handshake(plain: socket.socket, host: str, where: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Start TLS on the socket; it is closed where that fails.

    Raises:
        TlsRefused: chain, host name or validity do not hold, or the other side speaks no TLS.
        ConnectionClosed, NodeUnreachable: Retryable.
    """
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except OSError as error:
        plain.close()
        raise tls_error(error, where) from error


def last_word(connection: ssl.SSLSocket) -> OSError | None:
    """The alert that the other side sent before it closed; None where there is none."""
    try:
        connection.settimeout(LAST_WORD_SECONDS)
        connection.recv(1)
    except OSError as error:
        return error
    return None


def tls_error(error: OSError, where: str) -> MigrateError:
    if isinstance(error, TimeoutError):
        return NodeUnreachable("the TLS handshake did not end in time", where=where)
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsRefused(
            f"the listener's certificate is not accepted: {error.verify_message}",
            where=where,
            why="the chain must end at an authority of the truststore, hold today, and name this very host",
            next_step=OTHERWISE_WRONG.get(error.verify_code, UNTRUSTED),
        )
    if isinstance(error, CLOSED) or not isinstance(error, ssl.SSLError):
        return ConnectionClosed(
            "the connection was closed within the TLS handshake",
            where=where,
            why="a listener without TLS does so, and so does a stopping node",
            next_step=f"if the node is not stopping, {PROTOCOL}",
        )
    reason = error.reason or ""
    if reason in NO_TLS:
        return TlsRefused("the listener does not use TLS", where=where, why=reason, next_step=PROTOCOL)
    if "ALERT" in reason:
        told = reason.replace("_", " ").lower()
        return TlsRefused(
            f"the listener refuses us: {told}",
            where=where,
            why="it wants a client's certificate that it trusts, or another version of TLS",
        )
    return TlsRefused(f"no TLS session: {reason or error}", where=where)


def cluster_config(inventory: Inventory) -> dict[str, str | int | float | bool]:
    """`client_config` for a whole cluster: by way of the brokers that have one access in common."""
    brokers, access = inventory.cluster_access
    return client_config(",".join(broker.address for broker in brokers), access)


def client_config(bootstrap: str, access: Access) -> dict[str, str | int | float | bool]:
    """The settings of librdkafka that reach the listener; passwords and keys are in them: never log or show them.

    Raises:
        SecretUnreadable: the password's file.
        StoreUnreadable: truststore or keystore.
    """
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": access.protocol,
        "client.id": "kraft-migrate",
    }
    if access.mechanism:
        settings["sasl.mechanism"] = access.mechanism
        if access.oauth is None:
            settings["sasl.username"] = access.username
        elif access.oauth.client_secret is not None:
            settings["sasl.oauthbearer.method"] = "oidc"
            settings["sasl.oauthbearer.token.endpoint.url"] = access.oauth.endpoint or ""
            settings["sasl.oauthbearer.client.id"] = access.oauth.client_id
            settings["sasl.oauthbearer.client.secret"] = read_secret(access.oauth.client_secret)
        if access.password is not None:
            settings["sasl.password"] = read_secret(access.password)
    if access.is_tls:
        from migrate.kafka.stores import authorities, identity  # noqa: PLC0415 - cryptography

        settings["ssl.endpoint.identification.algorithm"] = "https"
        if access.truststore is not None:
            settings["ssl.ca.pem"] = authorities(access.truststore).decode("ascii")
        if access.keystore is not None:
            who = identity(access.keystore)
            settings["ssl.certificate.pem"] = who.certificates.decode("ascii")
            settings["ssl.key.pem"] = who.key.decode("ascii")
    return settings
