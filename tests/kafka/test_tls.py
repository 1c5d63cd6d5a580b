"""TLS of our connections on real sockets: the right certificate is let in, and every wrong one is refused by name."""

from __future__ import annotations

import gc
import ssl
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from migrate.errors import (
    AccessRefused,
    AnswerBroken,
    ConnectionClosed,
    MigrateError,
    Retryable,
    SecretUnreadable,
    StoreUnreadable,
    TlsRefused,
)
from migrate.java.find import find_java
from migrate.kafka.connection import Connection, Limits
from migrate.kafka.stores import anchors, authorities, identity, subject, valid_days
from migrate.kafka.tls import client_config, cluster_config, tls_context
from migrate.lab.secured import span
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, Inventory, SecretFile, Store
from migrate.model.outcome import Unknown
from migrate.protocol.messages import DESCRIBE_CLUSTER
from tests.kafka.fake_node import FakeNode
from tests.testing.answering import answering
from tests.testing.certificates import HOSTS, PASSWORD, Pki, secret, stored

LIMITS = Limits(connect_seconds=5, answer_seconds=5)
CLUSTER = {"errorCode": 0, "clusterId": "c", "controllerId": 1, "brokers": [], "throttleTimeMs": 0}


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """One authority for all tests here."""
    return Pki(tmp_path_factory.mktemp("pki"))


def node(tls: object = None) -> FakeNode:
    """A node that answers DescribeCluster."""
    return FakeNode({"DescribeCluster": lambda _version, _body: dict(CLUSTER)}, tls=tls)  # type: ignore[arg-type]


def ask(address: str, access: Access) -> str:
    """One connection, one question."""
    with Connection(address, access, LIMITS) as connection:
        found: str = connection.call(DESCRIBE_CLUSTER, {"endpointType": 2})["clusterId"]
        return found


def test_a_listener_with_a_certificate_of_the_authority_is_spoken_to(pki: Pki) -> None:
    """By its address and by its name: both stand in the certificate."""
    with node(pki.server()) as found:
        access = Access("SSL", truststore=pki.truststore)
        assert ask(found.address, access) == "c"
        assert ask(found.address.replace("127.0.0.1", "localhost"), access) == "c"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("wrong authority", "unable to get local issuer certificate"),
        ("expired", "certificate has expired"),
        ("wrong name", "IP address mismatch"),
    ],
)
def test_a_wrong_certificate_is_refused_by_name(pki: Pki, how: str, message: str) -> None:
    """Nothing was sent, no retry helps, and the reason is told with the address."""
    with node(pki.server(how)) as found:
        with pytest.raises(TlsRefused, match=message) as caught:
            ask(found.address, Access("SSL", truststore=pki.truststore))
        assert caught.value.where == found.address
        assert not isinstance(caught.value, Retryable)
        assert not found.seen


def test_a_wrong_certificate_gets_no_password(pki: Pki, tmp_path: Path) -> None:
    """Over SASL_SSL the certificate comes first."""
    access = Access("SASL_SSL", "PLAIN", "admin", secret(tmp_path), pki.truststore)
    with node(pki.server("wrong authority")) as found:
        with pytest.raises(TlsRefused):
            ask(found.address, access)
        assert not found.seen


def test_without_a_truststore_only_the_hosts_authorities_hold(pki: Pki) -> None:
    """An authority of the operator's own is not among them."""
    with node(pki.server()) as found, pytest.raises(TlsRefused, match="local issuer"):
        ask(found.address, Access("SSL"))


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_a_listener_in_clear_is_told(pki: Pki, said: bytes) -> None:
    """TLS was asked for: it is never given up.  Kafka closes the connection, others answer in clear."""
    with answering(said) as found, pytest.raises(MigrateError) as caught:
        ask(found.address, Access("SSL", truststore=pki.truststore))
    assert ("does not use TLS" if said else "without TLS") in f"{caught.value} {caught.value.why}"
    assert isinstance(caught.value, TlsRefused if said else ConnectionClosed)


def test_a_listener_with_tls_that_is_asked_in_clear_is_told() -> None:
    """Java answers with an alert, whose first bytes look like a size."""
    with answering(bytes.fromhex("15030300020250")) as found, pytest.raises(AnswerBroken) as caught:
        ask(found.address, Access())
    assert caught.value.why == "it uses TLS, and the request was not encrypted"


def refused(address: str, access: Access) -> str:
    """What a listener that wants a client's certificate answers: its alert, or a reset that overtook the alert."""
    with pytest.raises((TlsRefused, ConnectionClosed)) as caught:
        ask(address, access)
    return f"{caught.value} {caught.value.why}"


def test_a_client_without_a_certificate_is_told_that_one_is_wanted(pki: Pki) -> None:
    """TLS 1.3 tells so only with the first answer."""
    with node(pki.server(clients=True)) as found:
        said = refused(found.address, Access("SSL", truststore=pki.truststore))
    assert "certificate required" in said or "ssl.client.auth" in said
    assert not found.seen


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_client_with_its_certificate_is_let_in(pki: Pki, tmp_path: Path, kind: str) -> None:
    """Mutual TLS, from either format."""
    issued = pki.authority.issue("tool", HOSTS)
    content = issued.pem if kind == "PEM" else issued.pkcs12(PASSWORD)
    keystore = stored(tmp_path, "tool", content, kind, None if kind == "PEM" else secret(tmp_path))
    with node(pki.server(clients=True)) as found:
        assert ask(found.address, Access("SSL", truststore=pki.truststore, keystore=keystore)) == "c"


def test_a_client_certificate_of_another_authority_is_refused(pki: Pki, tmp_path: Path) -> None:
    """The listener's own word is told."""
    keystore = stored(tmp_path, "tool.pem", pki.other.issue("tool", HOSTS).pem)
    with node(pki.server(clients=True)) as found:
        said = refused(found.address, Access("SSL", truststore=pki.truststore, keystore=keystore))
    assert "refuses us" in said or "ssl.client.auth" in said
    assert not found.seen


def test_a_store_that_cannot_be_used_is_told_before_connecting(pki: Pki, tmp_path: Path) -> None:
    """The inventory is wrong, not the world."""
    with node(pki.server()) as found:
        with pytest.raises(StoreUnreadable, match="No such file"):
            ask(found.address, Access("SSL", truststore=Store(str(tmp_path / "none"), "PEM")))
        assert found.connections == 0


def test_what_openssl_does_not_take_is_a_store_that_cannot_be_used(pki: Pki, tmp_path: Path) -> None:
    """An authority before the key's certificate, a file that is half renewed, a key that is too short."""
    issued = pki.authority.issue("tool", HOSTS)
    with pytest.raises(StoreUnreadable, match="TLS cannot use") as caught:
        tls_context(None, stored(tmp_path, "mixed.pem", pki.authority.pem + issued.pem))
    assert "key values mismatch" in caught.value.why
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tool")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, *span(5)).sign(key, hashes.SHA256())
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + made.public_bytes(Encoding.PEM)
    with pytest.raises(StoreUnreadable, match="TLS cannot use"):
        tls_context(None, stored(tmp_path, "short.pem", content))


def test_a_truststore_that_openssl_does_not_take_is_told(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other store."""
    monkeypatch.setattr("migrate.kafka.stores.authorities", lambda _: b"-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(StoreUnreadable, match="TLS cannot use"):
        tls_context(replace(pki.truststore, path=f"{pki.truststore.path}-not-yet"), None)


RSA, NO_KEY = bytes.fromhex("06092a864886f70d010101"), bytes.fromhex("06092a864886f70d01017f")


def damaged(content: bytes, label: str, before: bytes, after: bytes) -> bytes:
    """The PEM block of that label with these bytes changed."""
    raw = ssl.PEM_cert_to_DER_cert(content.decode().replace(label, "CERTIFICATE")).replace(before, after)
    return ssl.DER_cert_to_PEM_cert(raw).replace("CERTIFICATE", label).encode()


def test_keys_and_names_that_nobody_can_read_are_told(tmp_path: Path) -> None:
    """Algorithms that are not known, and a name that is none: cryptography reads names when they are asked for."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tool")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, *span(5)).sign(key, hashes.SHA256())
    certificate = made.public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    content = damaged(private, "PRIVATE KEY", RSA, NO_KEY) + certificate
    with pytest.raises(StoreUnreadable, match="private key cannot be opened"):
        identity(stored(tmp_path, "key.pem", content))
    nameless = damaged(certificate, "CERTIFICATE", b"\x0c\x04tool", b"\x0c\x04\xff\xff\xff\xff")
    for wrong in (nameless, damaged(certificate, "CERTIFICATE", RSA, NO_KEY)):
        assert isinstance(anchors(wrong, "PEM", ""), Unknown)
        assert isinstance(subject(wrong, "PEM", ""), Unknown)
        assert isinstance(valid_days(wrong, "PEM", "", lambda: Unknown("no")), Unknown)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_store_of_an_unknown_algorithm_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no ValueError."""

    def unsupported(*_: object) -> None:
        raise UnsupportedAlgorithm("of tomorrow")

    monkeypatch.setattr("migrate.kafka.stores.load_pkcs12", unsupported)
    monkeypatch.setattr("migrate.kafka.stores.to_pkcs12", lambda _path, word: (b"", word))
    with pytest.raises(StoreUnreadable, match="cannot be opened"):
        identity(stored(tmp_path, "store", b"", kind, secret(tmp_path)))
    assert isinstance(subject(b"", kind, PASSWORD), Unknown)


def test_a_store_that_changes_is_read_again(pki: Pki, tmp_path: Path) -> None:
    """What was read is kept only as long as the file is the same."""
    store = stored(tmp_path, "trust.pem", pki.other.pem)
    with node(pki.server()) as found:
        with pytest.raises(TlsRefused):
            ask(found.address, Access("SSL", truststore=store))
        Path(store.path).write_bytes(pki.authority.pem + pki.other.pem)
        assert ask(found.address, Access("SSL", truststore=store)) == "c"
    assert tls_context(store, None) is tls_context(store, None)


@pytest.mark.slow
def test_no_key_is_left_on_the_disk(pki: Pki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's ssl reads it from a file, which is gone when the context is made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    keystore = stored(tmp_path, "tool.pem", pki.authority.issue("tool", HOSTS).pem)
    tls_context(pki.truststore, keystore)
    gc.collect()
    assert not list((tmp_path / "temporary").rglob("*"))


def test_a_password_that_is_refused_over_tls_is_told(pki: Pki, tmp_path: Path) -> None:
    """The same errors as in clear."""
    with node(pki.server()) as found:
        found.scripts["SaslHandshake"] = lambda _version, _body: {"errorCode": 0, "mechanisms": ["PLAIN"]}
        found.scripts["SaslAuthenticate"] = lambda _version, _body: {
            "errorCode": 58,
            "errorMessage": "no",
            "authBytes": b"",
            "sessionLifetimeMs": 0,
        }
        with pytest.raises(AccessRefused, match="user admin was refused"):
            ask(found.address, Access("SASL_SSL", "PLAIN", "admin", secret(tmp_path), pki.truststore))


def keytool(*words: str) -> None:
    """Java's own tool, as operators use it."""
    subprocess.run([str(find_java().keytool), *words], check=True, capture_output=True, timeout=120)


def imported(pki: Pki, folder: Path, kind: str) -> Store:
    """A truststore made by `keytool -importcert`."""
    place = folder / f"trust.{kind.lower()}"
    words = ("-importcert", "-noprompt", "-alias", "ca", "-file", pki.truststore.path)
    keytool(*words, "-keystore", str(place), "-storetype", kind, "-storepass", PASSWORD)
    return Store(str(place), kind, secret(folder))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_truststore_of_javas_tool_gives_its_certificates(pki: Pki, tmp_path: Path, kind: str) -> None:
    """The same certificate as in PEM."""
    assert authorities(imported(pki, tmp_path, kind)) == authorities(pki.truststore)


@pytest.mark.slow
def test_a_keystore_of_javas_tool_gives_key_and_chain(pki: Pki, tmp_path: Path) -> None:
    """JKS: only Java opens its keys."""
    issued = pki.authority.issue("tool", HOSTS)
    source = tmp_path / "tool.p12"
    source.write_bytes(issued.pkcs12(PASSWORD))
    place = tmp_path / "tool.jks"
    words = ("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12")
    ends = ("-srcstorepass", PASSWORD, "-destkeystore", str(place), "-deststoretype", "JKS", "-deststorepass", PASSWORD)
    keytool(*words, *ends)
    found = identity(Store(str(place), "JKS", secret(tmp_path)))
    own, issuer = x509.load_pem_x509_certificates(found.certificates)
    assert (own, issuer) == (issued.certificate, pki.authority.certificate)
    key = load_pem_private_key(found.key, None)
    assert key.public_key() == own.public_key()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password_is_told_without_it(pki: Pki, tmp_path: Path, kind: str) -> None:
    """Neither the right nor the wrong one stands in the error."""
    store = imported(pki, tmp_path, kind)
    wrong = Store(store.path, kind, secret(tmp_path, "canary-wrong", "wrong"))
    with pytest.raises(StoreUnreadable, match="cannot be opened") as caught:
        authorities(wrong)
    assert caught.value.where == store.path
    assert "canary" not in f"{caught.value!r}{vars(caught.value)}{caught.value.__cause__!r}"


@pytest.mark.slow
def test_a_store_without_what_is_needed_is_told(pki: Pki, tmp_path: Path) -> None:
    """No key in a truststore, no certificate in an empty file, no password, nonsense, an unknown type."""
    password = secret(tmp_path)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: identity(pki.truststore), "lacks a private key"),
        (lambda: authorities(stored(tmp_path, "empty", b"")), "holds no certificate"),
        (lambda: identity(imported(pki, tmp_path, "PKCS12")), "lacks a private key"),
        (lambda: authorities(stored(tmp_path, "a", b"x", "PKCS12")), "password is not given"),
        (lambda: authorities(stored(tmp_path, "b", b"x", "PKCS12", password)), "cannot be opened"),
        (lambda: authorities(stored(tmp_path, "c", b"x", "BKS", password)), "'BKS' cannot be read"),
        (lambda: authorities(Store(str(tmp_path / "none"), "PEM")), "No such file"),
        (lambda: authorities(stored(tmp_path, "d", b"-----BEGIN CERTIFICATE-----\nx")), "certificate cannot be read"),
        (lambda: authorities(stored(tmp_path, "e", b"x" * (9 << 20))), "larger than 8 MiB"),
    ]
    for call, message in cases:
        with pytest.raises(StoreUnreadable, match=message):
            call()


def test_the_password_of_a_store_is_a_secret_like_others(tmp_path: Path) -> None:
    """Mode 0600, or it is not read."""
    password = secret(tmp_path)
    Path(password.path).chmod(0o644)
    with pytest.raises(SecretUnreadable, match="mode 0644"):
        authorities(stored(tmp_path, "trust.p12", b"x", "PKCS12", password))


def test_an_encrypted_pem_key_is_opened_by_its_password(pki: Pki, tmp_path: Path) -> None:
    """Without it, it is told."""
    plain = identity(stored(tmp_path, "plain.pem", pki.authority.issue("tool", HOSTS).pem))
    content = plain.encrypted(PASSWORD) + plain.certificates
    assert identity(stored(tmp_path, "tool.pem", content, "PEM", secret(tmp_path))).key == plain.key
    with pytest.raises(StoreUnreadable, match="private key cannot be opened"):
        identity(stored(tmp_path, "tool.pem", content))
    with pytest.raises(StoreUnreadable, match="private key cannot be opened"):
        identity(stored(tmp_path, "tool.pem", content, "PEM", secret(tmp_path, "another", "other")))


def test_a_key_is_not_shown(pki: Pki, tmp_path: Path) -> None:
    """Neither by repr nor by str."""
    found = identity(stored(tmp_path, "plain.pem", pki.authority.issue("tool", HOSTS).pem))
    assert "PRIVATE" not in f"{found!r}{found}"


def test_ordinary_clients_get_the_same_stores_and_verify_names(pki: Pki, tmp_path: Path) -> None:
    """As PEM in the settings: librdkafka reads no Java store."""
    keystore = stored(
        tmp_path, "tool.p12", pki.authority.issue("tool", HOSTS).pkcs12(PASSWORD), "PKCS12", secret(tmp_path)
    )
    settings = client_config("b:1", Access("SSL", truststore=pki.truststore, keystore=keystore))
    assert settings["ssl.ca.pem"] == pki.authority.pem.decode()
    assert settings["ssl.endpoint.identification.algorithm"] == "https"
    assert str(settings["ssl.key.pem"]).startswith("-----BEGIN PRIVATE KEY-----")
    assert str(settings["ssl.certificate.pem"]).count("BEGIN CERTIFICATE") == 2
    assert not [name for name in client_config("b:1", Access()) if name.startswith("ssl")]


def test_a_password_file_that_is_missing_is_told(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(SecretUnreadable, match="No such file"):
        authorities(stored(tmp_path, "t.p12", b"x", "PKCS12", SecretFile(str(tmp_path / "none"))))


def test_every_broker_is_a_way_in() -> None:
    """One stopped broker does not shut the client out; one with an access of its own is no way in for the others'."""
    brokers = tuple(BrokerNode(NodeId(node), "host", f"127.0.0.1:909{node}", "/c") for node in (1, 2, 3))
    inventory = Inventory("i", "/i", "z", brokers, (), "CONTROLLER", Access(), Access(), None, "none")
    assert cluster_config(inventory)["bootstrap.servers"] == "127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093"
    own = replace(inventory, brokers=(replace(brokers[0], access=Access("SSL")), *brokers[1:]))
    assert cluster_config(own)["bootstrap.servers"] == "127.0.0.1:9092,127.0.0.1:9093"
    assert cluster_config(own)["security.protocol"] == "PLAINTEXT"
    most = replace(own, brokers=(replace(brokers[1], access=Access("SSL")), *own.brokers[:1], brokers[2]))
    assert cluster_config(most)["bootstrap.servers"] == "127.0.0.1:9092,127.0.0.1:9091"
    assert cluster_config(most)["security.protocol"] == "SSL"


def test_a_plain_listener_needs_no_credentials() -> None:
    """No sasl setting is given at all: librdkafka would complain of them."""
    settings = client_config("b:1", Access())
    assert settings["security.protocol"] == "PLAINTEXT"
    assert not [name for name in settings if name.startswith("sasl")]


def test_the_password_comes_from_its_file(tmp_path: Path) -> None:
    """Stripped, and read when the client is made."""
    file = tmp_path / "secret"
    file.write_text("pw\n")
    file.chmod(0o600)
    access = Access("SASL_PLAINTEXT", "PLAIN", "admin", SecretFile(str(file)))
    settings = client_config("b:1", access)
    names = ("sasl.mechanism", "sasl.username", "sasl.password")
    assert [settings[name] for name in names] == ["PLAIN", "admin", "pw"]


def test_a_missing_password_is_told_with_its_path(tmp_path: Path) -> None:
    """Not as a client that cannot log in."""
    access = Access("SASL_PLAINTEXT", "PLAIN", "admin", SecretFile(str(tmp_path / "none")))
    with pytest.raises(SecretUnreadable) as raised:
        client_config("b:1", access)
    assert raised.value.where == str(tmp_path / "none")
