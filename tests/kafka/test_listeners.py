"""Listeners as a stranger meets them, on real sockets: what is presented, and who is not there."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtensionOID, NameOID

from migrate.kafka.connection import Limits
from migrate.kafka.listeners import _read, meet
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.listeners import Certificate, Served
from migrate.protocol.loader import Values
from tests.kafka.fake_node import Close, FakeNode, Script
from tests.testing.answering import answering
from tests.testing.certificates import Pki

LIMITS = Limits(connect_seconds=5, answer_seconds=5)
MECHANISMS = ("SCRAM-SHA-512", "PLAIN")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """One authority for all tests here."""
    return Pki(tmp_path_factory.mktemp("pki"))


def sasl(_version: int, body: Values) -> Values:
    """SaslHandshake: the mechanisms are told with the error, too."""
    return {"errorCode": 0 if body["mechanism"] in MECHANISMS else 33, "mechanisms": [*MECHANISMS]}


def met(address: str, protocol: str, more: Mapping[str, str] | None = None) -> Served:
    """One listener of a broker that the inventory reaches at another port."""
    values = {"listeners": f"L://{address}", "listener.security.protocol.map": f"L:{protocol}", **(more or {})}
    return meet(BrokerNode(NodeId(1), "here", "127.0.0.1:1", "/f"), values, LIMITS)["L"]


def test_a_listener_in_clear_answers_for_its_versions() -> None:
    """Nothing more is asked."""
    with FakeNode() as node:
        assert met(node.address, "PLAINTEXT") == Served("PLAINTEXT", node.address)
        assert [name for name, _, _ in node.seen] == ["ApiVersions"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["good", "expired", "wrong name", "wrong authority"])
def test_a_certificate_is_looked_at_whoever_signed_it(pki: Pki, how: str) -> None:
    """Nothing is verified: what counts is whether it stays."""
    with FakeNode(tls=pki.server(how)) as node:
        found = met(node.address, "SSL")
    assert found.serves
    assert found.certificate is not None
    assert found.certificate.subject == "CN=node"
    assert found.certificate.issuer == ("CN=other" if how == "wrong authority" else "CN=authority")
    names = ("127.0.0.2", "another.example") if how == "wrong name" else ("127.0.0.1", "localhost")
    assert found.certificate.names == names


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["", "PLAIN"])
def test_mechanisms_are_those_of_the_handshake(pki: Pki, mechanism: str) -> None:
    """Asked for with one that the file enables, told in any case, and no credential is sent."""
    script: Script = sasl
    with FakeNode({"SaslHandshake": script}, tls=pki.server()) as node:
        found = met(node.address, "SASL_SSL", {"listener.name.l.sasl.enabled.mechanisms": mechanism})
        assert [name for name, _, _ in node.seen] == ["ApiVersions", "SaslHandshake"]
    assert found.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert found.certificate is not None


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_listener_that_wants_a_certificate_serves_those_who_have_one(pki: Pki, version: ssl.TLSVersion) -> None:
    """TLS 1.3 shows its own certificate before it says so; TLS 1.2 says nothing that tells it from a fault, here."""
    context = pki.server(clients=True)
    context.maximum_version = version
    with FakeNode(tls=context) as node:
        found = met(node.address, "SSL")
    if version is ssl.TLSVersion.TLSv1_3:
        assert found.guarded
        assert found.certificate is not None
        assert found.serves
    else:
        assert found.guarded or found.refused  # OpenSSL says handshake failure where Java says bad certificate


def test_a_listener_without_a_key_store_serves_nothing() -> None:
    """As Java's: it has no cipher that fits, and says handshake failure."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with FakeNode(tls=context) as node:
        found = met(node.address, "SSL")
    assert found.refused.startswith("the listener refuses us: ")
    assert not found.serves


def test_a_listener_in_clear_that_should_speak_tls_serves_nothing() -> None:
    """It answers a hello with what is no TLS."""
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as node:
        assert met(node.address, "SSL").refused == "the listener does not use TLS"


@pytest.mark.slow
def test_who_closes_and_who_is_not_there_may_come_back(pki: Pki) -> None:
    """Silence, not a refusal."""
    with FakeNode({"ApiVersions": lambda _version, _body: Close()}, tls=pki.server()) as node:
        found = met(node.address, "SSL")
    assert found.silent
    assert not found.refused
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert met(f"127.0.0.1:{port}", "PLAINTEXT").silent.startswith("no connection")


def test_where_a_listener_is_advertised_it_is_met(tmp_path: Path) -> None:
    """Else where it is bound; an address that is every host's own is called where the inventory calls this broker."""
    with FakeNode() as node:
        port = node.address.rpartition(":")[2]
        told = {"advertised.listeners": f"L://{node.address}"}
        assert met("0.0.0.0:9", "PLAINTEXT", told) == Served("PLAINTEXT", node.address)
        here = BrokerNode(NodeId(1), "here", node.address, "/f")
        values = {"listeners": f"L://:{port}", "listener.security.protocol.map": "L:PLAINTEXT"}
        assert meet(here, values, LIMITS)["L"] == Served("PLAINTEXT", node.address)
        away = replace(here, address="broker.example:1")
        assert meet(away, {**values, "listeners": f"L://localhost:{port}"}, LIMITS)["L"].silent.startswith("no address")
        mapped = replace(here, address="127.0.0.1:1")  # its ports are others outside
        assert meet(mapped, values, LIMITS)["L"].silent.startswith("no address")


def test_a_certificate_with_names_of_a_rare_kind_is_looked_at() -> None:
    """An X.400 address, which no library here decodes."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    names = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex("3002a300"))
    made = x509.CertificateBuilder(who, who, key.public_key(), 1, begins, begins + timedelta(days=1))
    shown = made.add_extension(names, critical=False).sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
    assert _read(shown) == Certificate("CN=a", "CN=a")


def test_a_certificate_without_names_has_none() -> None:
    """Not an error."""
    assert Certificate("CN=a", "CN=b").names == ()
