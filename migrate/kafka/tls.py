"""TLS of our own connections: always TLS 1.2 or newer, the chain and the host name always verified."""

from __future__ import annotations

import secrets
import socket
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from migrate.errors import ConnectionClosed, MigrateError, NodeUnreachable, TlsRefused
from migrate.kafka.stores import Identity, authorities, identity
from migrate.model.inventory import Store

LAST_WORD_SECONDS: Final = 0.2
NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")


def tls_context(truststore: Store | None, keystore: Store | None) -> ssl.SSLContext:
    """What a client trusts and who it is; without a truststore the authorities of this host.

    Raises:
        StoreUnreadable, SecretUnreadable.
    """
    return _context(truststore, keystore, (_stamp(truststore), _stamp(keystore)))


def _stamp(store: Store | None) -> tuple[int, int] | None:
    """Changes with the file: what was read of it is kept as long as it does not."""
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
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and host name
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    if truststore is None:
        found.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        found.load_verify_locations(cadata=authorities(truststore).decode("ascii"))
    if keystore is not None:
        _present(found, identity(keystore))
    return found


def _present(context: ssl.SSLContext, who: Identity) -> None:
    """Python's ssl takes a key from files only: it lies there for a moment, under a password that is not written."""
    password = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        file = Path(folder, "identity.pem")
        file.touch(mode=0o600)
        file.write_bytes(who.encrypted(password) + who.certificates)
        context.load_cert_chain(file, password=password)


def handshake(plain: socket.socket, host: str, where: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The socket with TLS on it; the plain one is closed where that fails.

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
    """The alert that the other side sent before it closed; None where there is none to be read."""
    try:
        connection.settimeout(LAST_WORD_SECONDS)
        connection.recv(1)
    except OSError as error:
        return error
    return None


def tls_error(error: OSError, where: str) -> MigrateError:
    """What went wrong, by name."""
    if isinstance(error, TimeoutError):
        return NodeUnreachable("the TLS handshake did not end in time", where=where)
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsRefused(
            f"the listener's certificate is not accepted: {error.verify_message}",
            where=where,
            why="the chain must end at an authority of the truststore, hold today, and name this very host",
        )
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return ConnectionClosed(
            "the connection was closed within the TLS handshake",
            where=where,
            why="a listener that does not speak TLS does so, and so does a stopping node",
        )
    reason = error.reason or ""
    if reason in NO_TLS:
        return TlsRefused("the listener does not speak TLS", where=where, why=reason)
    if "ALERT" in reason:
        told = reason.replace("_", " ").lower()
        return TlsRefused(
            f"the listener refuses us: {told}",
            where=where,
            why="it wants a client's certificate that it trusts, or another version of TLS",
        )
    return TlsRefused(f"no TLS session: {reason or error}", where=where)
