"""Certificates of a lab: an authority of its own, and what it issues."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS: Final = 3650  # a lab may stand parked for long
ROUNDS: Final = 100  # of the password's derivation
Span = tuple[dt.datetime, dt.datetime]


def span(days: int = DAYS) -> Span:
    """From yesterday, for so many days; a negative number has ended already."""
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=1 + max(0, -2 * days))
    return start, start + dt.timedelta(days=abs(days))


@dataclass(frozen=True, slots=True)
class Issued:
    """A key, its certificate and its authority's."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate
    authority: x509.Certificate

    @property
    def pem(self) -> bytes:
        """Key and certificate, the key in clear."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + self.certificate.public_bytes(Encoding.PEM)

    def pkcs12(self, password: str) -> bytes:
        """A key store as Java and Kafka read it, its secret a random one: stretching that would only cost time.

        A broker reads its store several times before it is up; the usual rounds cost it 0.15 s of CPU each time.
        """
        secret = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(ROUNDS).build(password.encode())
        return serialize_key_and_certificates(b"key", self.key, self.certificate, [self.authority], secret)


@dataclass(frozen=True, slots=True)
class Authority:
    """Who issues; its certificate is what all trust."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str) -> Self:
        """A new one."""
        key = ec.generate_private_key(ec.SECP256R1())
        begun = _builder(name, name, key.public_key(), span())
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        begun = begun.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        begun = begun.add_extension(usage, critical=True)
        begun = begun.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(key, begun.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, hosts: Sequence[str], valid: Span | None = None) -> Issued:
        """A certificate for servers and clients on those hosts (names and addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        begun = _builder(name, str(issuer), key.public_key(), valid or span())
        begun = begun.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        begun = begun.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        begun = begun.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        begun = begun.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        return Issued(key, begun.sign(self.key, hashes.SHA256()), self.certificate)


def _builder(name: str, issuer: str, key: ec.EllipticCurvePublicKey, valid: Span) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
