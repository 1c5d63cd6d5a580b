"""The name in a node's certificate, as Kafka spells it: a node is known by it where a listener asks for certificates.

Source: `DefaultKafkaPrincipalBuilder` takes `X500Principal.getName()`, which is RFC 2253.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
from cryptography.x509.oid import NameOID

from migrate.errors import JavaToolFailed, MigrateError
from migrate.java.keytool import to_pkcs12
from migrate.model.outcome import Unknown

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
    """The subject of the key's certificate in that store (PEM, PKCS12, JKS), or why it cannot be told.

    Java opens a PKCS12 store under the type JKS, too (keystore.type.compat), which is what Kafka's default type means.
    """
    if kind.upper() == "PEM":
        return _of_pem(content)
    try:
        return _of_pkcs12(content, password)
    except ValueError as error:
        if kind.upper() != "JKS":
            return Unknown(f"the store cannot be opened: {str(error)[:100]}")
    return _of_jks(content, password)


def _of_pem(content: bytes) -> str | Unknown:
    try:
        found = x509.load_pem_x509_certificates(content)
    except ValueError:
        return Unknown("the store holds no certificate that can be read")
    return as_java(found[0].subject)


def _of_pkcs12(content: bytes, password: str) -> str | Unknown:
    opened = load_pkcs12(content, password.encode())
    if opened.cert is None:
        return Unknown("the store lacks a private key or its certificate")
    return as_java(opened.cert.certificate.subject)


def _of_jks(content: bytes, password: str) -> str | Unknown:
    """By the JDK's keytool, on a copy in a folder that only we can enter."""
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


def as_java(name: x509.Name) -> str | Unknown:
    """The name in RFC 2253 as Java writes it; Unknown where the two might spell it otherwise."""
    for attribute in name:
        if attribute.oid not in JAVAS or not PLAIN.fullmatch(str(attribute.value)):
            return Unknown(f"how Java spells {attribute.rfc4514_string()!r} is not known")
    return name.rfc4514_string()
