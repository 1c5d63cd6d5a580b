"""The controllers' logins for ZooKeeper, from real JAAS files, tried at a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from migrate.errors import IssuerUnreachable, KerberosUnusable
from migrate.hosts.properties import parse
from migrate.java.find import find_java
from migrate.kafka.stores import as_java, subject
from migrate.lab.secured import Authority
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, AddedProperties, Inventory, Kerberos, OAuth, SecretVariable, ZookeeperLogin
from migrate.model.launch import JAAS_FILE, KRB5, JaasLogin, Launch, NoZookeeperClient, ZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile
from migrate.observe.identities import KRB5_MODULE, Issuers, with_logins, with_subjects, with_zookeeper_clients
from migrate.zookeeper.client import ZookeeperAccess
from tests.testing import worlds
from tests.testing.certificates import PASSWORD, stored
from tests.testing.secured_zookeeper import MODULE, login, sasl_server
from tests.testing.this_host import LocalFiles
from tests.testing.zookeeper_server import ZookeeperServer

NODE = NodeId(3000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """It knows `kafka`."""
    with sasl_server(tmp_path_factory.mktemp("zookeeper"), {"kafka": "right", "tool": "t"}) as found:
        yield found


def known(server: ZookeeperServer, ours: ZookeeperLogin | None = None) -> Inventory:
    """An inventory with that ZooKeeper."""
    return replace(worlds.inventory(), zookeeper=server.address, zookeeper_login=ours or ZookeeperLogin())


def looked(launch: Launch | Unknown, inventory: Inventory) -> object:
    """What is known of controller 3000's login."""
    found = with_zookeeper_clients({NODE: launch}, inventory, LocalFiles())[NODE]
    return found.zookeeper_client if isinstance(found, Launch) else found


def jaas(folder: Path, options: str, section: str = "Client", module: str = MODULE) -> str:
    """A JAAS file on disk."""
    path = folder / "kafka.jaas"
    path.write_text(f"{section} {{ {module} required {options}; }};\n")
    return str(path)


def test_a_password_is_tried_by_itself_where_the_tool_logs_in_by_kerberos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session by our own ticket says nothing of it."""
    tried: list[ZookeeperAccess] = []

    def connect(_: str, *, access: ZookeeperAccess) -> MagicMock:
        tried.append(access)
        return MagicMock()

    monkeypatch.setattr("migrate.observe.identities.connect", connect)
    ours = ZookeeperLogin(kerberos=Kerberos("tool@LAB.TEST"))
    inventory = replace(worlds.inventory(), zookeeper="zk:2181", zookeeper_login=ours)
    path = jaas(tmp_path, 'username="kafka" password="w"')
    assert looked(Launch("/c", files={JAAS_FILE: path}), inventory) == ZookeeperClient("kafka", accepted=True)
    assert tried == [ZookeeperAccess("kafka", "w")]


@pytest.mark.zookeeper
@pytest.mark.parametrize(("password", "accepted"), [("right", True), ("canary-wrong", False)])
def test_a_login_is_tried_at_zookeeper_itself(
    server: ZookeeperServer, tmp_path: Path, password: str, accepted: bool
) -> None:
    """Told by user and answer; the password stays in the file."""
    path = jaas(tmp_path, f'username="kafka" password="{password}"')
    found = looked(Launch("/c", files={JAAS_FILE: path}), known(server, login(tmp_path, "tool", "t")))
    assert found == ZookeeperClient("kafka", accepted)
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        (Launch("/c"), "no -Djava.security.auth.login.config"),
        (Launch("/c", files={JAAS_FILE: "/nowhere/jaas"}), "does not exist"),
        (Launch("/c", files={JAAS_FILE: "{file}"}, zookeeper_section="Other"), "no section Other"),
        (Launch("/c", files={JAAS_FILE: "{file}"}, zookeeper_section=""), "sasl.client=false"),
        (Launch("/c", files={JAAS_FILE: "{broken}"}), "word 1 begins no section"),
        (Launch("/c", files={JAAS_FILE: "{nameless}"}), "names no username"),
    ],
)
def test_a_process_without_a_login_is_told_by_what_it_lacks(tmp_path: Path, launch: Launch, says: str) -> None:
    """Known, not unknown: such a controller would wait for ever."""
    (tmp_path / "broken").write_text("canary")
    (tmp_path / "nameless").write_text(f"Client {{ {MODULE} required password=canary; }};")
    places = {"{file}": jaas(tmp_path, 'username="u" password="canary"')}
    places |= {"{broken}": str(tmp_path / "broken"), "{nameless}": str(tmp_path / "nameless")}
    launch = replace(launch, files={name: places.get(path, path) for name, path in launch.files.items()})
    found = looked(launch, worlds.inventory())
    assert isinstance(found, NoZookeeperClient)
    assert says in found.reason
    assert "canary" not in repr(found)


def test_what_cannot_be_read_or_spoken_is_unknown(tmp_path: Path) -> None:
    """A folder in the file's place; Kerberos without a principal, or without its realm."""
    kerberos = jaas(tmp_path, "useKeyTab=true", module="com.sun.security.auth.module.Krb5LoginModule")
    for launch in (
        Launch("/c", files={JAAS_FILE: str(tmp_path)}),
        Launch("/c", files={JAAS_FILE: kerberos}),
        Unknown("not seen"),
    ):
        assert isinstance(looked(launch, worlds.inventory()), Unknown)
    launch = Launch("/c", files={JAAS_FILE: jaas(tmp_path, 'principal="kafka/c"', module=KRB5_MODULE)})
    assert isinstance(looked(launch, worlds.inventory()), Unknown)
    told = looked(replace(launch, realm="LAB.TEST"), worlds.inventory())
    assert isinstance(told, ZookeeperClient)
    assert told.principal == "kafka/c@LAB.TEST"


def test_logins_of_a_jaas_file_are_told_without_their_passwords(tmp_path: Path) -> None:
    """With Kerberos' default realm by the host's krb5.conf; what cannot be read is unknown."""
    path, conf = tmp_path / "jaas", tmp_path / "krb5.conf"
    path.write_text(
        f'KafkaServer {{ {KRB5_MODULE} required principal="kafka/b@R" serviceName=kafka; }};\n'
        f"ctl.KafkaServer {{ {MODULE} required username=u password=canary; }};\n"
    )
    conf.write_text("[libdefaults]\n default_realm = LAB.TEST\n")

    def told(**files: str) -> Launch:
        found = with_logins(Launch("/c", files=files), NODE, LocalFiles())
        assert isinstance(found, Launch)
        return found

    known = told(**{JAAS_FILE: str(path), KRB5: str(conf)})
    assert known.logins == {
        "KafkaServer": (JaasLogin(KRB5_MODULE, principal="kafka/b@R", service="kafka"),),
        "ctl.KafkaServer": (JaasLogin(MODULE, username="u"),),
    }
    assert (known.realm, "canary" in repr(known)) == ("LAB.TEST", False)
    assert isinstance(told(**{JAAS_FILE: str(path), KRB5: str(tmp_path)}).realm, Unknown)
    assert isinstance(told(**{JAAS_FILE: str(conf)}).logins, Unknown)
    assert told().logins == {}
    assert told(**{KRB5: str(conf)}).realm == "LAB.TEST"  # logins of Kafka's own may stand in its properties


MAP = "listener.security.protocol.map=INTERNAL:SSL,CTL:SASL_SSL\n"
CONTROLLERS = ("CTL", "SSL")


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Who issues."""
    return Authority.make("authority")


def file_of(text: str) -> ConfigFile:
    """A node's file."""
    return ConfigFile(NodeId(1), "/c", text.encode(), "", parse(text.encode()))


def jks(folder: Path, content: bytes) -> Path:
    """The same as a JKS store, by the JDK's keytool."""
    given, made = folder / "given.p12", folder / "store.jks"
    given.write_bytes(content)
    words: list[str | Path] = [
        "-importkeystore",
        "-noprompt",
        "-srckeystore",
        given,
        "-srcstoretype",
        "PKCS12",
        "-srcstorepass",
        PASSWORD,
    ]
    words += ["-destkeystore", made, "-deststoretype", "JKS", "-deststorepass", PASSWORD]
    subprocess.run([find_java().keytool, *words], check=True, capture_output=True, timeout=60)
    return made


@pytest.mark.slow
def test_stores_of_every_kind_tell_their_subject(authority: Authority, tmp_path: Path) -> None:
    """PEM, PKCS12 under its name and under JKS (as Java opens it), JKS."""
    issued = authority.issue("broker", ("localhost",))
    p12 = issued.pkcs12(PASSWORD)
    assert subject(issued.pem, "PEM", "") == "CN=broker"
    assert subject(p12, "PKCS12", PASSWORD) == subject(p12, "JKS", PASSWORD) == "CN=broker"
    assert subject(jks(tmp_path, p12).read_bytes(), "JKS", PASSWORD) == "CN=broker"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "kind", "password"),
    [
        (b"nothing", "PKCS12", PASSWORD),
        (b"nothing", "JKS", PASSWORD),
        (b"nothing", "PEM", ""),
        (b"", "PKCS12", "canary"),
    ],
)
def test_what_is_no_store_is_unknown(content: bytes, kind: str, password: str) -> None:
    """Without a word of the password."""
    found = subject(content, kind, password)
    assert isinstance(found, Unknown)
    assert password not in found.reason or not password


def test_a_wrong_password_is_unknown_and_not_told(authority: Authority) -> None:
    """Neither the right one nor the wrong one."""
    found = subject(authority.issue("b", ("h",)).pkcs12(PASSWORD), "PKCS12", "canary-wrong")
    assert isinstance(found, Unknown)
    assert "canary" not in found.reason


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """In the certificate's order: the most general first."""
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def test_names_are_spelled_as_java_spells_them_or_not_at_all() -> None:
    """RFC 2253: the most specific first; what Java would write in hex or escape is not guessed."""
    whole = name((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "Org X"), (NameOID.COMMON_NAME, "b-1.x"))
    assert as_java(whole) == "CN=b-1.x,O=Org X,C=DE"
    for odd in ((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "a,b"), (NameOID.COMMON_NAME, "ä")):
        assert isinstance(as_java(name(odd)), Unknown)


def test_the_stores_that_a_file_names_and_will_name_are_read(authority: Authority, tmp_path: Path) -> None:
    """Its own, a listener's, those of the inventory's additions, and ours."""
    for who in ("one", "two", "three"):
        (tmp_path / who).write_bytes(authority.issue(who, ("h",)).pkcs12(PASSWORD))
    own = stored(tmp_path, "tool.pem", authority.issue("tool", ("h",)).pem)
    text = MAP + f"ssl.keystore.location={tmp_path}/one\nssl.keystore.password={PASSWORD}\nssl.keystore.type=PKCS12\n"
    text += f"listener.name.ctl.ssl.keystore.location={tmp_path}/two\nzookeeper.ssl.keystore.location=/none\n"
    added = AddedProperties("/b", {"listener.name.x.ssl.keystore.location": f"{tmp_path}/three"})
    found = with_subjects(file_of(text), added, LocalFiles(), [own], CONTROLLERS).subjects
    told = {Path(path).name: said for path, said in found.items()}
    assert isinstance(told.pop("none"), Unknown)
    assert told == {"one": "CN=one", "two": "CN=two", "three": "CN=three", "tool.pem": "CN=tool"}


def test_what_cannot_be_read_is_unknown_and_no_store_is_read_without_need() -> None:
    """A missing file, a reference; and a node without a listener of certificates."""
    text = "ssl.keystore.location=/none\n"
    assert with_subjects(file_of(text), None, LocalFiles(), (), ("CTL", "SASL_SSL")).subjects == {}
    missing = with_subjects(file_of(MAP + text), None, LocalFiles(), (), CONTROLLERS).subjects
    assert isinstance(missing["/none"], Unknown)
    referred = with_subjects(
        file_of(MAP + text + "ssl.keystore.password=${file:/a:b}\n"), None, LocalFiles(), (), CONTROLLERS
    )
    assert isinstance(referred.subjects["/none"], Unknown)


@pytest.mark.parametrize(
    ("lines", "controllers"),
    [
        ("listeners=SSL://h:9093\nsecurity.inter.broker.protocol=SSL\n", ("CTL", "SASL_SSL")),
        ("listener.security.protocol.map=PLAINTEXT:PLAINTEXT\n", ("CTL", "SSL")),
    ],
    ids=["by Kafka's default map", "the controllers' listener, before the first roll writes it"],
)
def test_a_certificate_is_read_where_the_map_of_the_file_does_not_name_its_listener(
    authority: Authority, tmp_path: Path, lines: str, controllers: tuple[str, str]
) -> None:
    """Else the broker's name for the controllers would be unknown for ever, and no controller started."""
    (tmp_path / "one").write_bytes(authority.issue("one", ("h",)).pkcs12(PASSWORD))
    text = f"ssl.keystore.location={tmp_path}/one\nssl.keystore.password={PASSWORD}\nssl.keystore.type=PKCS12\n"
    found = with_subjects(file_of(lines + text), None, LocalFiles(), (), controllers).subjects
    assert found == {f"{tmp_path}/one": "CN=one"}


@pytest.mark.parametrize(("ending", "kind"), [("pem", ""), ("p12", ""), ("store", "PKCS12")])
def test_the_store_for_zookeeper_is_read_by_its_own_keys(
    ending: str, kind: str, authority: Authority, tmp_path: Path
) -> None:
    """Also where no listener asks for certificates; a listener's type and password are not its."""
    issued = authority.issue("zk-client", ("h",))
    path = tmp_path / f"zk.{ending}"
    path.write_bytes(issued.pem if ending == "pem" else issued.pkcs12(PASSWORD))
    text = f"zookeeper.ssl.keystore.location={path}\nzookeeper.ssl.keystore.password={PASSWORD}\n"
    text += "ssl.keystore.type=JKS\nssl.keystore.password=another\n"
    text += f"zookeeper.ssl.keystore.type={kind}\n" if kind else ""
    assert with_subjects(file_of(text), None, LocalFiles(), (), ("CTL", "PLAINTEXT")).subjects == {
        str(path): "CN=zk-client"
    }


def test_whoever_issues_a_nodes_login_is_asked_once_and_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A KDC where the tool has a login by Kerberos, endpoints by their URLs; nobody for mechanisms that need nobody."""
    asked: list[object] = []

    def answers(issuer: object) -> None:
        asked.append(issuer)
        if issuer in ("https://away/jwks", "https://[wrong/"):
            raise IssuerUnreachable("https://away/jwks does not answer", where="here", why="Connection refused")
        if isinstance(issuer, Kerberos) and issuer.principal.startswith("blind"):
            raise KerberosUnusable("no credentials", where="here")

    monkeypatch.setattr("migrate.observe.identities.ask_endpoint", answers)
    monkeypatch.setattr("migrate.observe.identities.ask_kdc", answers)
    login = Kerberos("tool@LAB.TEST")
    inventory = replace(worlds.inventory(), broker_access=Access("SASL_SSL", "GSSAPI", kerberos=login))
    base = {"listeners": "A://:1", "listener.security.protocol.map": "A:SASL_SSL", "inter.broker.listener.name": "A"}
    by_kerberos = {**base, "sasl.kerberos.service.name": "kafka"}  # GSSAPI is Kafka's own default
    by_tokens = {
        **base,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://there/token",
        "listener.name.a.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": "https://away/jwks",
    }
    by_password = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
    reached = {"https://away/jwks"}
    issuers = Issuers(inventory, reached)
    for _ in range(2):
        assert issuers.away({**base, **by_password}) == ()
        assert issuers.away(by_kerberos) == ()
        assert issuers.away(by_tokens) == ("https://away/jwks does not answer (Connection refused)",)
    assert asked == [login, "https://away/jwks", "https://there/token"]
    assert reached == {"https://away/jwks", "https://there/token"}
    assert Issuers(inventory, set()).away(by_tokens) == ()  # nodes may reach what this host may not
    wrong = {**by_tokens, "sasl.oauthbearer.token.endpoint.url": "https://[wrong/"}
    assert Issuers(inventory, set()).away(wrong) == ()
    ours = OAuth(endpoint="https://away/token", client_id="tool", client_secret=SecretVariable("S"))
    own = replace(inventory, broker_access=Access("SASL_SSL", "OAUTHBEARER", oauth=ours))
    assert Issuers(own, set()).away(by_tokens) == ("https://away/jwks does not answer (Connection refused)",)
    assert Issuers(worlds.inventory(), set()).away(by_kerberos) == ()  # there is nothing to ask with
    blind = replace(inventory, broker_access=Access("SASL_SSL", "GSSAPI", kerberos=Kerberos("blind@LAB.TEST")))
    assert isinstance(Issuers(blind, set()).away(by_kerberos), Unknown)
    at_zookeeper = replace(worlds.inventory(), zookeeper_login=ZookeeperLogin(kerberos=Kerberos("zk@LAB.TEST")))
    asked.clear()
    assert Issuers(at_zookeeper, set()).away({**base, "zookeeper.set.acl": "true"}) == ()
    assert Issuers(at_zookeeper, set()).away({**base, **by_password}) == ()
    assert asked == [Kerberos("zk@LAB.TEST")]
    asked.clear()
    calls = replace(inventory, controller_access=Access("SASL_SSL", "GSSAPI", kerberos=login))
    for mechanism, wanted in (("GSSAPI", [login]), ("OAUTHBEARER", ["https://away/jwks", "https://there/token"])):
        Issuers(calls, set()).away({**by_tokens, **by_password, "sasl.mechanism.controller.protocol": mechanism})
        assert asked == wanted  # by the controllers' listener alone, which a broker calls
        asked.clear()
