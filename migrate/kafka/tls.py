"""TLS of connections to nodes: stores, contexts, certificate subjects, and librdkafka's settings.

Always TLS 1.2 or newer, chain and host name always verified.  A certificate's subject is spelled as Kafka does:
`DefaultKafkaPrincipalBuilder` takes `X500Principal.getName()`, which is RFC 2253.
"""

from __future__ import annotations

import re
import secrets
import socket
import ssl
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12
from cryptography.x509.oid import NameOID

from migrate.errors import ConnectionClosed, JavaToolFailed, MigrateError, NodeUnreachable, StoreUnreadable, TlsRefused
from migrate.java.run import to_pkcs12
from migrate.kafka.secrets import read_secret
from migrate.model import limits
from migrate.model.inventory import Access, Inventory, Store
from migrate.model.outcome import Unknown

KINDS: Final = ("PEM", "PKCS12", "JKS")
MAX_BYTES: Final = limits.most("store")
KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key (PEM, PKCS8, in clear: never log it) and its certificates, its own first (PEM)."""

    key: bytes = field(repr=False)
    certificates: bytes

    def encrypted(self, password: str) -> bytes:
        """The key, encrypted with that password, for a short-lived file."""
        key = load_pem_private_key(self.key, None)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))


def authorities(store: Store) -> bytes:
    """The certificates of a truststore, PEM.  Raises StoreUnreadable, SecretUnreadable."""
    if store.kind == "PEM":
        found = _pem_certificates(store, _content(store))
    else:
        opened = _opened(store)
        found = [entry.certificate for entry in opened.additional_certs]
        found += [opened.cert.certificate] if opened.cert else []
    if not found:
        raise StoreUnreadable("the truststore holds no certificate", where=store.path)
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in found)


def identity(store: Store) -> Identity:
    """The key of a keystore with its certificates.  Raises StoreUnreadable, SecretUnreadable."""
    lacks = StoreUnreadable("the keystore lacks a private key or its certificate", where=store.path)
    if store.kind == "PEM":
        content = _content(store)
        block, certificates = KEY.search(content), _pem_certificates(store, content)
        if block is None or not certificates:
            raise lacks
        password = read_secret(store.password).encode() if store.password else None
        try:
            key = load_pem_private_key(block[0], password)
        except (ValueError, TypeError) as error:
            raise StoreUnreadable("the private key cannot be opened", where=store.path, why=str(error)[:200]) from None
    else:
        opened = _opened(store)
        if opened.key is None or opened.cert is None:
            raise lacks
        key, certificates = opened.key, [entry.certificate for entry in (opened.cert, *opened.additional_certs)]
    chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
    return Identity(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), chain)


def _opened(store: Store) -> PKCS12KeyAndCertificates:
    if store.kind not in KINDS:
        raise StoreUnreadable(f"a store of type {store.kind!r} cannot be read: {', '.join(KINDS)}", where=store.path)
    if store.password is None:
        raise StoreUnreadable("the store's password is not given", where=store.path)
    content, password = _content(store), read_secret(store.password)
    try:
        if store.kind == "JKS":
            content, password = to_pkcs12(store.path, password)
        return load_pkcs12(content, password.encode())
    except JavaToolFailed as error:
        raise StoreUnreadable("the store cannot be opened", where=store.path, why=error.why) from None
    except ValueError as error:
        raise StoreUnreadable("the store cannot be opened", where=store.path, why=str(error)[:200]) from None


def _pem_certificates(store: Store, content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE-----" in content else []
    except ValueError as error:
        raise StoreUnreadable("a certificate cannot be read", where=store.path, why=str(error)[:200]) from None


def _content(store: Store) -> bytes:
    try:
        with Path(store.path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StoreUnreadable(f"the store cannot be read: {error.strerror}", where=store.path) from None
    if len(content) > MAX_BYTES:
        raise StoreUnreadable(f"the store is larger than {MAX_BYTES >> 20} MiB", where=store.path)
    return content


LAST_WORD_SECONDS: Final = 0.2
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
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return ConnectionClosed(
            "the connection was closed within the TLS handshake",
            where=where,
            why="a listener that does not speak TLS does so, and so does a stopping node",
            next_step=f"if the node is not stopping, {PROTOCOL}",
        )
    reason = error.reason or ""
    if reason in NO_TLS:
        return TlsRefused("the listener does not speak TLS", where=where, why=reason, next_step=PROTOCOL)
    if "ALERT" in reason:
        told = reason.replace("_", " ").lower()
        return TlsRefused(
            f"the listener refuses us: {told}",
            where=where,
            why="it wants a client's certificate that it trusts, or another version of TLS",
        )
    return TlsRefused(f"no TLS session: {reason or error}", where=where)


# keywords of RFC 2253 in Java; another attribute is spelled in hex there
JAVAS: Final = frozenset(
    {
        NameOID.COMMON_NAME,
        NameOID.COUNTRY_NAME,
        NameOID.LOCALITY_NAME,
        NameOID.STATE_OR_PROVINCE_NAME,
        NameOID.ORGANIZATION_NAME,
        NameOID.ORGANIZATIONAL_UNIT_NAME,
        NameOID.STREET_ADDRESS,
        NameOID.DOMAIN_COMPONENT,
        NameOID.USER_ID,
    }
)
PLAIN: Final = re.compile(r"[A-Za-z0-9._@:/'()?*&-](?:[A-Za-z0-9 ._@:/'()?*&-]*[A-Za-z0-9._@:/'()?*&-])?")


def subject(content: bytes, kind: str, password: str) -> str | Unknown:
    """The subject of the key's certificate in that store (PEM, PKCS12, JKS), or why it is unknown.

    Java opens a PKCS12 store under the type JKS, too (keystore.type.compat), which is what Kafka's default type means.
    """
    if kind.upper() == "PEM":
        try:
            found = x509.load_pem_x509_certificates(content)
        except ValueError:
            return Unknown("the store holds no certificate that can be read")
        return as_java(found[0].subject)
    try:
        return _of_pkcs12(content, password)
    except ValueError as error:
        if kind.upper() != "JKS":
            return Unknown(f"the store cannot be opened: {str(error)[:100]}")
    # by the JDK's keytool, on a copy in a folder of mode 0700
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        path = Path(folder, "store.jks")
        path.touch(mode=0o600)
        path.write_bytes(content)
        try:
            return _of_pkcs12(*to_pkcs12(str(path), password))
        except JavaToolFailed:
            return Unknown("keytool does not open the store with the password of the node's file")
        except (MigrateError, ValueError) as error:
            return Unknown(f"the store cannot be opened: {type(error).__name__}")


def _of_pkcs12(content: bytes, password: str) -> str | Unknown:
    opened = load_pkcs12(content, password.encode())
    if opened.cert is None:
        return Unknown("the store lacks a private key or its certificate")
    return as_java(opened.cert.certificate.subject)


def as_java(name: x509.Name) -> str | Unknown:
    """The name in RFC 2253 as Java writes it; Unknown where the two might spell it otherwise."""
    for attribute in name:
        if attribute.oid not in JAVAS or not PLAIN.fullmatch(str(attribute.value)):
            return Unknown(f"how Java spells {attribute.rfc4514_string()!r} is not known")
    return name.rfc4514_string()


def bootstrap_servers(inventory: Inventory) -> str:
    return ",".join(broker.address for broker in inventory.brokers)


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
        settings["sasl.username"] = access.username
        if access.password is not None:
            settings["sasl.password"] = read_secret(access.password)
    if access.is_tls:
        settings["ssl.endpoint.identification.algorithm"] = "https"
        if access.truststore is not None:
            settings["ssl.ca.pem"] = authorities(access.truststore).decode("ascii")
        if access.keystore is not None:
            who = identity(access.keystore)
            settings["ssl.certificate.pem"] = who.certificates.decode("ascii")
            settings["ssl.key.pem"] = who.key.decode("ascii")
    return settings
