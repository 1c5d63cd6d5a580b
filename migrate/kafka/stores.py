"""Key stores and truststores, and the subjects of their certificates, spelled as Kafka does.

`DefaultKafkaPrincipalBuilder` takes `X500Principal.getName()`, which is RFC 2253.  Imported where a store is read:
cryptography loads slowly, and few commands need it.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12
from cryptography.x509.oid import NameOID

from migrate.errors import JavaToolFailed, MigrateError, StoreUnreadable
from migrate.java.run import to_pkcs12
from migrate.kafka.secrets import read_secret
from migrate.model import limits
from migrate.model.inventory import Store
from migrate.model.outcome import Unknown

KINDS: Final = ("PEM", "PKCS12", "JKS")
ILLEGIBLE: Final = (ValueError, UnsupportedAlgorithm)  # what cryptography says of bytes that it cannot read
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
        except (*ILLEGIBLE, TypeError) as error:
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
    except ILLEGIBLE as error:
        raise StoreUnreadable("the store cannot be opened", where=store.path, why=str(error)[:200]) from None


def _pem_certificates(store: Store, content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE-----" in content else []
    except ILLEGIBLE as error:
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
    """The subject of the key's certificate in that store (PEM, PKCS12, JKS), or why it is unknown."""
    found = certificates(content, kind, password)
    return found if isinstance(found, Unknown) else as_java(found[0].subject)


Anchors = frozenset[tuple[bytes, bytes]]  # subject and key of what is trusted: a certificate issued anew is the same


def anchors(content: bytes, kind: str, password: str) -> Anchors | Unknown:
    """What a truststore trusts."""
    found = certificates(content, kind, password, own=False)
    return found if isinstance(found, Unknown) else frozenset(map(_anchor, found))


def valid_days(
    content: bytes, kind: str, password: str, trusted: Callable[[], Anchors | Unknown]
) -> tuple[str, str] | Unknown:
    """The ISO dates (UTC) between which a caller takes all that it must take of what the store presents.

    The first one is "" where it has come.  What must be taken are the key's certificate, and those of its authorities
    below what is trusted, which is asked where one of them is valid for less than the key's.  Java asks no day of what
    it trusts.
    """
    found = certificates(content, kind, password)
    if isinstance(found, Unknown):
        return found
    chain, others = [found[0]], list(found[1:])
    while above := next((one for one in others if one.subject == chain[-1].issuer != one.issuer), None):
        chain.append(above)
        others.remove(above)
    now = datetime.now(UTC)
    days = [(_yet_to_come(one, now), one.not_valid_after_utc.date().isoformat()) for one in chain]
    if (whole := _narrowest(days)) == days[0]:
        return whole
    known = trusted()
    if isinstance(known, Unknown):
        what = f"is valid from {whole[0]} on" if whole[0] > days[0][0] else f"ends on {whole[1]}"
        return Unknown(f"an authority in it {what}; what callers trust is not known: {known.reason}")
    below = list(itertools.takewhile(lambda one: _anchor(one) not in known, chain))
    return _narrowest(days[: max(1, len(below))])


def _yet_to_come(one: x509.Certificate, now: datetime) -> str:
    begins = one.not_valid_before_utc
    return begins.date().isoformat() if begins > now else ""


def _narrowest(days: Sequence[tuple[str, str]]) -> tuple[str, str]:
    return max(begins for begins, _ in days), min(ends for _, ends in days)


def _anchor(one: x509.Certificate) -> tuple[bytes, bytes]:
    key = one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return one.subject.public_bytes(), key


def certificates(
    content: bytes, kind: str, password: str, *, own: bool = True
) -> tuple[x509.Certificate, ...] | Unknown:
    """The certificates in that store (PEM, PKCS12, JKS), with `own` the key's first; or why they are unknown.

    Java opens a PKCS12 store under the type JKS, too (keystore.type.compat), which is what Kafka's default type means.
    """
    if kind.upper() == "PEM":
        try:
            return _legible(x509.load_pem_x509_certificates(content))
        except ILLEGIBLE:
            return Unknown("the store holds no certificate that can be read")
    try:
        return _of_pkcs12(content, password, own=own)
    except ILLEGIBLE as error:
        if kind.upper() != "JKS":
            return Unknown(f"the store cannot be opened: {str(error)[:100]}")
    # by the JDK's keytool, on a copy in a folder of mode 0700
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        path = Path(folder, "store.jks")
        path.touch(mode=0o600)
        path.write_bytes(content)
        try:
            return _of_pkcs12(*to_pkcs12(str(path), password), own=own)
        except JavaToolFailed:
            return Unknown("keytool does not open the store with the password of the node's file")
        except (MigrateError, *ILLEGIBLE) as error:
            return Unknown(f"the store cannot be opened: {type(error).__name__}")


def _of_pkcs12(content: bytes, password: str, *, own: bool) -> tuple[x509.Certificate, ...] | Unknown:
    opened = load_pkcs12(content, password.encode())
    if own and opened.cert is None:
        return Unknown("the store lacks a private key or its certificate")
    return _legible([one.certificate for one in (opened.cert, *opened.additional_certs) if one is not None])


def _legible(found: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Those certificates; raises one of ILLEGIBLE: names and keys are read when they are asked for."""
    for one in found:
        _ = one.issuer, _anchor(one)
    return tuple(found)


def as_java(name: x509.Name) -> str | Unknown:
    """The name in RFC 2253 as Java writes it; Unknown where the two might spell it otherwise."""
    for attribute in name:
        if attribute.oid not in JAVAS or not PLAIN.fullmatch(str(attribute.value)):
            return Unknown(f"how Java spells {attribute.rfc4514_string()!r} is not known")
    return name.rfc4514_string()
