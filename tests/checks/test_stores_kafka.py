"""What a start of Kafka's listener says of stores whose certificates have ended, by Kafka's own SslFactory.

`SslFactory` makes each listener of a broker and of a controller.  Where brokers call each other it also shakes hands
with itself: `keystoreVerifiableUsingTruststore`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from py4j.protocol import Py4JJavaError

from migrate.java.run import java_argv
from migrate.lab.secured import Authority, Issued, Span, span
from migrate.lab.topology import free_ports
from migrate.model.ids import NodeId
from migrate.model.launch import JAAS_FILE, Launch
from migrate.model.secrets import is_password_config
from migrate.observe.identities import stores_of
from tests.testing import worlds
from tests.testing.kafka_jvm import first_cause, kafka_jvm
from tests.testing.this_host import LocalFiles, disks_here
from tests.testing.zookeeper_server import running_server

pytestmark = pytest.mark.kafka

PASSWORD = "of-the-store"
VALID, ENDED = span(), span(-5)
TO_COME: Final = (datetime.now(UTC) + timedelta(days=3), datetime.now(UTC) + timedelta(days=30))
FORMS: Final = ("PKCS12", "PEM", "inline")
GOOD, OLD = Authority.make("authority"), Authority.make("old authority", ENDED)
# what is presented, what is trusted, and whether a listener by which brokers call each other begins so
CASES: Final[dict[str, tuple[Issued, bytes, bool]]] = {
    "all valid": (GOOD.issue("b", ("localhost",)), GOOD.pem, True),
    "its certificate has ended": (GOOD.issue("b", ("localhost",), ENDED), GOOD.pem, False),
    "its certificate is not valid yet": (GOOD.issue("b", ("localhost",), TO_COME), GOOD.pem, False),
    "its authority has ended": (OLD.issue("b", ("localhost",)), OLD.pem, True),
    "an authority that nobody needs has ended": (GOOD.issue("b", ("localhost",)), GOOD.pem + OLD.pem, True),
}


def authority(
    above: Authority | None = None, valid: Span = VALID, key: ec.EllipticCurvePrivateKey | None = None
) -> Authority:
    """A root, or one below it, which may have the key of another."""
    own = key or ec.generate_private_key(ec.SECP256R1())
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("between", "root")]
    begun = x509.CertificateBuilder(named[1], named[0 if above else 1], own.public_key(), x509.random_serial_number())
    begun = begun.not_valid_before(valid[0]).not_valid_after(valid[1])
    begun = begun.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Authority(own, begun.sign(above.key if above else own, hashes.SHA256()))


ROOT = authority()
OF_ROOT = authority(ROOT)
OVER, EARLY = authority(ROOT, ENDED), authority(ROOT, TO_COME)
CHAINS: Final[dict[str, tuple[Issued, bytes, bool]]] = {
    "all valid": (OF_ROOT.issue("b", ("localhost",)), ROOT.pem, True),
    "the authority between has ended": (OVER.issue("b", ("localhost",)), ROOT.pem, False),
    "the authority between is not valid yet": (EARLY.issue("b", ("localhost",)), ROOT.pem, False),
    "it is trusted before its first day": (EARLY.issue("b", ("localhost",)), ROOT.pem + EARLY.pem, True),
    "it is trusted itself": (OVER.issue("b", ("localhost",)), ROOT.pem + OVER.pem, True),
    "it is trusted as it was issued anew": (OVER.issue("b", ("localhost",)), authority(ROOT, key=OVER.key).pem, True),
}


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Kafka's classes."""
    with kafka_jvm() as gateway:
        yield gateway.jvm


def said(jvm: Any, values: Mapping[str, str], *, between_brokers: bool) -> str:
    """What a listener's start says of them; "" where it begins."""
    given = jvm.java.util.HashMap()
    for key, value in {"ssl.protocol": "TLSv1.3", **values}.items():
        secret = is_password_config(key) or not key.endswith(("type", "location", "protocol"))
        given.put(key, jvm.org.apache.kafka.common.config.types.Password(value) if secret else value)
    server = jvm.org.apache.kafka.common.network.ConnectionMode.SERVER
    factory = jvm.org.apache.kafka.common.security.ssl.SslFactory(server, None, between_brokers)
    try:
        factory.configure(given)
    except Py4JJavaError as error:
        return first_cause(error)
    return ""


def ours(values: Mapping[str, str]) -> bool:
    """Does B-SEC-25 let a broker of those stores start today?"""
    tls = {"listeners": "SSL://h:1", "inter.broker.listener.name": "SSL", **values}
    found = stores_of(NodeId(1), tls, Launch("/c"), worlds.inventory(), LocalFiles(), disks_here().told)
    ends = [store.ends for store in found if isinstance(store.ends, str)]
    assert len(ends) == len(found)
    today = datetime.now(UTC).date().isoformat()
    return not any((store.ends and str(store.ends) < today) or store.begins for store in found)


def stores(folder: Path, form: str, presented: Issued, trusted: bytes) -> dict[str, str]:
    """Both stores in that form."""
    values = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
    pem = presented.pem + presented.authority.public_bytes(Encoding.PEM)
    if form == "inline":
        key, _, chain = pem.decode().partition("-----BEGIN CERTIFICATE")
        values |= {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE{chain}"}
        return {**values, "ssl.truststore.certificates": trusted.decode()}
    (folder / "ca.pem").write_bytes(trusted)
    (folder / "store").write_bytes(pem if form == "PEM" else presented.pkcs12(PASSWORD))
    values |= {"ssl.truststore.location": f"{folder}/ca.pem", "ssl.keystore.location": f"{folder}/store"}
    return values if form == "PEM" else values | {"ssl.keystore.type": form, "ssl.keystore.password": PASSWORD}


def between_brokers(jvm: Any, folder: Path, form: str, case: tuple[Issued, bytes, bool]) -> str:
    """What Kafka says of a listener between brokers: our verdict is its own, and of other listeners it says nothing."""
    presented, trusted, begins = case
    values = stores(folder, form, presented, trusted)
    assert ours(values) is begins
    assert said(jvm, values, between_brokers=False) == ""
    return said(jvm, values, between_brokers=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_presented_certificate_that_is_not_valid_stops_a_start_and_a_trusted_one_does_not(
    jvm: Any, tmp_path: Path, case: str, form: str
) -> None:
    """B-SEC-25 asks for the days of what is presented, in every form, and of no truststore."""
    begins = CASES[case][2]
    answer = between_brokers(jvm, tmp_path, form, CASES[case])
    assert ("SSLHandshakeException: PKIX path validation failed" in answer) is not begins, answer
    assert bool(answer) is not begins


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CHAINS)
def test_an_authority_in_the_chain_that_is_not_valid_stops_a_start_where_it_is_not_trusted(
    jvm: Any, tmp_path: Path, case: str, form: str
) -> None:
    """By its subject and its key: one that was issued anew takes its place."""
    assert (between_brokers(jvm, tmp_path, form, CHAINS[case]) == "") is CHAINS[case][2]


@pytest.mark.parametrize("which", ["keystore", "truststore"])
def test_a_store_that_is_gone_stops_every_start(jvm: Any, tmp_path: Path, which: str) -> None:
    """B-SEC-25: also of a listener that clients alone call, as is the controllers'."""
    values = stores(tmp_path, "PEM", *CASES["all valid"][:2])
    Path(values[f"ssl.{which}.location"]).unlink()
    assert f"Failed to load PEM SSL keystore {tmp_path}" in said(jvm, values, between_brokers=False)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="root gives up its way past modes")
def test_a_store_that_is_closed_to_its_user_stops_every_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-SEC-25: by its own mode, and by that of a folder above it."""
    drop = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
    monkeypatch.setattr("tests.testing.kafka_jvm.java_argv", lambda *words: (*drop, *java_argv(*words)))
    values = stores(tmp_path, "PEM", *CASES["all valid"][:2])
    with kafka_jvm() as gateway:
        assert said(gateway.jvm, values, between_brokers=True) == ""
        for closed, opened in ((tmp_path / "store", 0o600), (tmp_path / "ca.pem", 0o600), (tmp_path, 0o700)):
            closed.chmod(0)
            assert "Failed to load PEM SSL keystore" in said(gateway.jvm, values, between_brokers=False)
            closed.chmod(opened)


def logins_said(jvm: Any, path: str) -> str:
    """The answer of what every node with zookeeper.connect asks first, started with that JAAS file; "" for none."""
    jvm.java.lang.System.setProperty(JAAS_FILE.removeprefix("-D"), path)
    jvm.javax.security.auth.login.Configuration.setConfiguration(None)
    try:
        jvm.org.apache.kafka.common.security.JaasUtils.isZkSaslEnabled()
        jvm.javax.security.auth.login.LoginContext("KafkaServer").login()
    except Py4JJavaError as error:
        return first_cause(error)
    return ""


@pytest.mark.parametrize("sasl", ["true", "false"])
def test_a_node_does_not_start_without_its_jaas_file_or_a_keytab_that_it_names(tmp_path: Path, sasl: str) -> None:
    """B-SEC-25: also where ZooKeeper is called without SASL.  Without an = the path is the same."""
    jaas = tmp_path / "jaas"
    plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=True storeKey=true doNotPrompt=true"
    with kafka_jvm() as gateway:
        jvm = gateway.jvm
        jvm.java.lang.System.setProperty("zookeeper.sasl.client", sasl)
        for name in ("realm", "kdc"):
            jvm.java.lang.System.setProperty(f"java.security.krb5.{name}", "localhost")
        for spelled in (str(jaas), f"={jaas}"):
            assert "Exception while loading Zookeeper JAAS login context" in logins_said(jvm, spelled)
            jaas.write_text(f"KafkaServer {{ {plain} }};")
            assert logins_said(jvm, spelled) == ""
            jaas.write_text(f'KafkaServer {{ {kerberos} keyTab="{tmp_path}/gone" principal="k@localhost"; }};')
            assert "Unable to obtain password" in logins_said(jvm, spelled)
            jaas.unlink()


@dataclass
class Zookeeper:
    """With TLS: where it is, and what Kafka's own session with it says; "" where it has one."""

    jvm: Any
    folder: Path
    place: str

    def said(self, keystore: Issued | None, *, trusts: bool = True) -> str:
        """The answer to a broker with that key store, whose truststore may be gone."""
        prefix, stored = "zookeeper.ssl.", self.folder / "client.p12"
        stored.unlink(missing_ok=True)
        if keystore is not None:
            stored.write_bytes(keystore.pkcs12(PASSWORD))
        values = {
            "zookeeper.connect": self.place,
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            f"{prefix}client.enable": "true",
            f"{prefix}protocol": "TLSv1.3",
            f"{prefix}keystore.location": str(stored),
            f"{prefix}keystore.password": PASSWORD,
            f"{prefix}truststore.location": f"{self.folder}/{'ca' if trusts else 'gone'}.pem",
        }
        given, server = self.jvm.java.util.HashMap(values), self.jvm.kafka.server
        config = server.KafkaServer.zkClientConfigFromKafkaConfig(server.KafkaConfig(given, False), False)
        clock, waits = self.jvm.org.apache.kafka.common.utils.Time.SYSTEM, (10_000, 8_000, 10)
        try:
            self.jvm.kafka.zookeeper.ZooKeeperClient(self.place, *waits, clock, "g", "t", config, "n").close()
        except Py4JJavaError as error:
            return first_cause(error)
        return ""


@contextlib.contextmanager
def zookeeper(jvm: Any, folder: Path, clients: str) -> Iterator[Zookeeper]:
    """One whose ssl.clientAuth is that."""
    (folder / "ca.pem").write_bytes(GOOD.pem + OLD.pem)
    (folder / "server.p12").write_bytes(GOOD.issue("zookeeper", ("localhost", "127.0.0.1")).pkcs12(PASSWORD))
    (port,) = free_ports(1)
    extra = (
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth={clients}\n"
        f"ssl.keyStore.location={folder}/server.p12\nssl.keyStore.password={PASSWORD}\nssl.keyStore.type=PKCS12\n"
        f"ssl.trustStore.location={folder}/ca.pem\nssl.trustStore.type=PEM\n"
    )
    with running_server(folder / "server", extra):
        yield Zookeeper(jvm, folder, f"127.0.0.1:{port}")


@pytest.mark.zookeeper
def test_a_broker_has_no_session_with_zookeeper_without_its_stores(jvm: Any, tmp_path: Path) -> None:
    """B-SEC-25: gone, or a presented certificate that has ended; an authority that has ended is nothing."""
    good, ended, _, by_old = (CASES[name][0] for name in list(CASES)[:4])
    with zookeeper(jvm, tmp_path, "need") as server:
        assert server.said(good) == server.said(by_old) == ""
        for answer in (server.said(ended), server.said(None), server.said(good, trusts=False)):
            assert "ZooKeeperClientTimeoutException" in answer


@pytest.mark.zookeeper
def test_a_zookeeper_that_asks_no_client_for_a_certificate_takes_one_that_has_ended(jvm: Any, tmp_path: Path) -> None:
    """It is no default; a store that is gone gives no session there either."""
    with zookeeper(jvm, tmp_path, "none") as server:
        assert server.said(CASES["its certificate has ended"][0]) == ""
        assert "ZooKeeperClientTimeoutException" in server.said(None)
