"""ZooKeeper with SASL and with TLS, on a real server: who is let in, who is not, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.security import make_acl

from migrate.errors import SecretUnreadable, StoreUnreadable, TlsRefused, ZookeeperDenied
from migrate.kafka.stores import subject
from migrate.lab.topology import free_ports
from migrate.model.inventory import SecretFile, Store, ZookeeperLogin
from migrate.zookeeper.client import ZookeeperClient, access_of, connect
from migrate.zookeeper.layout import Absent
from tests.cli.commands import kraft_migrate
from tests.testing.certificates import HOSTS, PASSWORD, Pki, secret, stored
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, load_tree, running_server

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


@dataclass(frozen=True)
class Secured:
    """A server with a SASL identity `kafka`, and a port with TLS that wants a client's certificate."""

    server: ZookeeperServer
    pki: Pki
    secure: str  # host:port of the TLS port
    folder: Path

    def login(self, password: str = "right") -> ZookeeperLogin:
        """As `kafka`, in clear."""
        return ZookeeperLogin("kafka", secret(self.folder, password, f"kafka-{password}"))

    def tls(self, who: str = "authority") -> ZookeeperLogin:
        """By TLS, with a certificate of `authority` or `other`, or none."""
        issuer = {"authority": self.pki.authority, "other": self.pki.other}.get(who)
        keystore = None if issuer is None else stored(self.folder, f"{who}.pem", issuer.issue("tool", HOSTS).pem)
        return ZookeeperLogin(tls=True, truststore=self.pki.truststore, keystore=keystore)

    def to(self, address: str, login: ZookeeperLogin, timeout: float = 6.0) -> ZookeeperClient:
        """A session."""
        return connect(address, timeout=timeout, session_timeout=6.0, access=access_of(login))

    def refused(self, address: str, login: ZookeeperLogin) -> None:
        """No session, however long it is tried."""
        self.to(address, login, timeout=3.0)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One server for all tests here."""
    folder = tmp_path_factory.mktemp("zookeeper")
    pki = Pki(folder)
    keys = stored(folder, "server.p12", pki.authority.issue("zookeeper", HOSTS).pkcs12(PASSWORD))
    (port,) = free_ports(1)
    extra = (
        "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n"
        f"ssl.keyStore.location={keys.path}\nssl.keyStore.password={PASSWORD}\nssl.keyStore.type=PKCS12\n"
        f"ssl.trustStore.location={pki.truststore.path}\nssl.trustStore.type=PEM\nssl.clientAuth=need\n"
    )
    jaas = folder / "jaas.conf"
    jaas.write_text(f'Server {{ {MODULE} required user_kafka="right"; }};\n')
    with running_server(folder / "server", extra, [f"-Djava.security.auth.login.config={jaas}"]) as server:
        yield Secured(server, pki, f"127.0.0.1:{port}", folder)


@pytest.mark.zookeeper
def test_the_brokers_identity_reads_what_others_may_not(secured: Secured) -> None:
    """zookeeper.set.acl: what `kafka` made is closed to an anonymous session."""
    with secured.to(secured.server.address, secured.login()) as client:
        client.kazoo.create("/closed", b"x", acl=[make_acl("sasl", "kafka", all=True)])
        found = client.data(["/closed"])[0]
        assert not isinstance(found, Absent)
        assert found.data == b"x"
    with secured.server.client() as anonymous:
        assert anonymous.data(["/closed"]) == [Absent.DENIED]


@pytest.mark.zookeeper
def test_a_wrong_sasl_password_is_an_error_that_names_the_user(secured: Secured) -> None:
    """Not a session that sees less."""
    with (
        pytest.raises(ZookeeperDenied, match=r"refuses|kafka") as caught,
        secured.to(secured.server.address, secured.login("canary-wrong")) as client,
    ):
        client.data(["/"])
    assert "canary" not in f"{caught.value!r}{vars(caught.value)}"


@pytest.mark.zookeeper
def test_a_session_over_tls_reads(secured: Secured) -> None:
    """With our own handshake: chain and host name verified, our certificate presented."""
    with secured.to(secured.secure, secured.tls()) as client:
        assert client.data(["/zookeeper"])[0] is not Absent.MISSING


@pytest.mark.zookeeper
def test_zookeeper_calls_a_certificate_as_its_subject_is_spelled_here(secured: Secured) -> None:
    """What is said of a node's keystore (B-SEC-21) is what its znodes will carry."""
    login = secured.tls()
    assert login.keystore is not None
    with secured.to(secured.secure, login) as client:
        client.kazoo.create("/certified", b"", acl=[make_acl("auth", "", all=True)])
        acl = client.acls(["/certified"])[0]
    assert acl == ((31, "x509", subject(Path(login.keystore.path).read_bytes(), "PEM", "")),)


@pytest.mark.zookeeper
def test_a_server_of_another_authority_is_refused_by_name(secured: Secured) -> None:
    """Not as one that does not answer."""
    trust = stored(secured.folder, "other-ca.pem", secured.pki.other.pem)
    login = ZookeeperLogin(tls=True, truststore=trust, keystore=secured.tls().keystore)
    with pytest.raises(TlsRefused, match="certificate is not accepted"):
        secured.refused(secured.secure, login)


@pytest.mark.zookeeper
def test_tls_on_a_port_in_clear_gives_no_session(secured: Secured) -> None:
    """It never falls back."""
    with pytest.raises(Exception, match=r"TLS|no session"):
        secured.refused(secured.server.address, secured.tls())


@pytest.mark.zookeeper
@pytest.mark.parametrize("who", ["other", "none"])
def test_without_an_accepted_certificate_there_is_no_session(secured: Secured, who: str) -> None:
    """ssl.clientAuth=need."""
    with pytest.raises(Exception, match=r"refuses us|no session"):
        secured.refused(secured.secure, secured.tls(who))


def test_secrets_and_stores_are_read_before_anything_is_asked(tmp_path: Path) -> None:
    """What is wrong with them is told by path."""
    with pytest.raises(SecretUnreadable, match="No such file"):
        access_of(ZookeeperLogin("kafka", SecretFile(str(tmp_path / "none"))))
    with pytest.raises(StoreUnreadable, match="No such file"):
        access_of(ZookeeperLogin(tls=True, truststore=Store(str(tmp_path / "none"), "PEM")))
    assert access_of(ZookeeperLogin()).options() == {}


@pytest.mark.zookeeper
def test_an_inventory_is_proposed_through_a_login(secured: Secured, tmp_path: Path) -> None:
    """Where the cluster's znodes are closed to others, and nobody wrote an inventory yet."""
    address = f"{secured.server.address}/proposed"
    with secured.to(secured.server.address, secured.login()) as root:
        root.kazoo.ensure_path("/proposed")
    with secured.to(address, secured.login()) as client:
        load_tree(client, golden("zk-before"))
        client.kazoo.set_acls("/cluster/id", [make_acl("sasl", "kafka", all=True)])
    password = secured.login().password
    assert isinstance(password, SecretFile)
    access = tmp_path / "access.yaml"
    access.write_text(f"sasl: {{username: kafka, password: {{file: {password.path}}}}}\n")
    words = ("inventory", "init", "--zookeeper", address)
    assert kraft_migrate(*words).code == 1
    answer = kraft_migrate(*words, "--zookeeper-access", access)
    assert answer.code == 0, answer.err
    assert f'"sasl": {{"username": "kafka", "password": {{"file": "{password.path}"}}}}' in answer.out
