"""Truststores and keystores of our own connections, as PEM: from PEM, PKCS12 and JKS files alike."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
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

from migrate.errors import JavaToolFailed, StoreUnreadable
from migrate.java.keytool import to_pkcs12
from migrate.kafka.secret_files import read_secret
from migrate.model import limits
from migrate.model.inventory import Store

KINDS: Final = ("PEM", "PKCS12", "JKS")
MAX_BYTES: Final = limits.most("store")
KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key (PEM, PKCS8, in clear: never log it) and its certificates, its own first (PEM)."""

    key: bytes = field(repr=False)
    certificates: bytes

    def encrypted(self, password: str) -> bytes:
        """The key under that password: as it may lie in a file for a moment."""
        key = load_pem_private_key(self.key, None)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))


def authorities(store: Store) -> bytes:
    """The certificates of a truststore, PEM.

    Raises:
        StoreUnreadable, SecretUnreadable.
    """
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
    """The key of a keystore with its certificates.

    Raises:
        StoreUnreadable, SecretUnreadable.
    """
    return _pem_identity(store) if store.kind == "PEM" else _stored_identity(store)


def _pem_identity(store: Store) -> Identity:
    content = _content(store)
    block = KEY.search(content)
    certificates = _pem_certificates(store, content)
    if block is None or not certificates:
        raise StoreUnreadable("the keystore lacks a private key or its certificate", where=store.path)
    password = read_secret(store.password).encode() if store.password else None
    try:
        key = load_pem_private_key(block[0], password)
    except (ValueError, TypeError) as error:
        raise StoreUnreadable("the private key cannot be opened", where=store.path, why=_why(error)) from None
    chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
    return Identity(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), chain)


def _stored_identity(store: Store) -> Identity:
    opened = _opened(store)
    if opened.key is None or opened.cert is None:
        raise StoreUnreadable("the keystore lacks a private key or its certificate", where=store.path)
    chain = [opened.cert.certificate, *(entry.certificate for entry in opened.additional_certs)]
    return Identity(
        opened.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain),
    )


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
        raise StoreUnreadable("the store cannot be opened", where=store.path, why=_why(error)) from None


def _pem_certificates(store: Store, content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE-----" in content else []
    except ValueError as error:
        raise StoreUnreadable("a certificate cannot be read", where=store.path, why=_why(error)) from None


def _content(store: Store) -> bytes:
    try:
        with Path(store.path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise StoreUnreadable(f"the store cannot be read: {error.strerror}", where=store.path) from None
    if len(content) > MAX_BYTES:
        raise StoreUnreadable(f"the store is larger than {MAX_BYTES >> 20} MiB", where=store.path)
    return content


def _why(error: Exception) -> str:
    return str(error)[:200]
