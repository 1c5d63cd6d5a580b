"""What an inventory may say of access: protocols, mechanisms, stores; every secret by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid, DocumentNotTrusted, DocumentUnreadable, MigrateError, SecretUnreadable
from migrate.model.inventory import Access, Kerberos, OAuth, SecretCommand, SecretFile, Store, ZookeeperLogin
from migrate.playbook.load import dump_inventory, load_inventory

INVENTORY = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {name: c}
spec:
  zookeeper: zk:2181/kafka
  controller_listener: CTL
  executor: {kind: manual, inbox: answers}
%(zookeeper)s
  brokers:
    access: %(access)s
%(properties)s
    nodes: [{id: 1, host: b1, address: "b1:9093", config: /b1.properties}]
  controllers:
    access: {protocol: SSL, keystore: {path: tool.pem, type: PEM}}
    nodes: [{id: 3000, host: c0, address: "c0:9094", config: /c0.properties, metadata_directory: /meta}]
"""
SCRAM = """{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: admin, password: {file: pw},
      truststore: {path: trust.jks, type: JKS, password: {file: store}}, keystore: {path: k.pem, type: PEM}}"""


def written(folder: Path, access: str = SCRAM, zookeeper: str = "", properties: str = "") -> Path:
    """An inventory on disk."""
    path = folder / "inventory.yaml"
    path.write_text(INVENTORY % {"access": access, "zookeeper": zookeeper, "properties": properties})
    return path


def test_tls_sasl_and_stores_become_values_with_places(tmp_path: Path) -> None:
    """Relative to the inventory, and only referred to: none of the files is there."""
    found = load_inventory(written(tmp_path))
    near = str(tmp_path)
    assert found.broker_access == Access(
        "SASL_SSL",
        "SCRAM-SHA-512",
        "admin",
        SecretFile(f"{near}/pw"),
        Store(f"{near}/trust.jks", "JKS", SecretFile(f"{near}/store")),
        Store(f"{near}/k.pem", "PEM"),
    )
    assert found.controller_access == Access("SSL", keystore=Store(f"{near}/tool.pem", "PEM"))
    assert found.zookeeper_login == ZookeeperLogin()


def test_zookeepers_login_and_added_properties_are_read(tmp_path: Path) -> None:
    """The properties' file is read here: a plan shows and binds what is in it."""
    added = tmp_path / "added.properties"
    added.write_text("# ours\nssl.keystore.location=/etc/c.p12\n")
    added.chmod(0o600)
    text = (
        "  zookeeper_access: {sasl: {username: kafka, password: {file: zk}}, tls: {truststore: {path: a, type: PEM}}}"
    )
    found = load_inventory(written(tmp_path, SCRAM, text, "    properties: added.properties"))
    near = str(tmp_path)
    login = ZookeeperLogin("kafka", SecretFile(f"{near}/zk"), tls=True, truststore=Store(f"{near}/a", "PEM"))
    assert found.zookeeper_login == login
    assert found.broker_properties is not None
    assert found.broker_properties.values == {"ssl.keystore.location": "/etc/c.p12"}
    assert found.controller_properties is None


def test_tokens_and_principals_are_read_and_written(tmp_path: Path) -> None:
    """Endpoint and client, or a token by reference."""
    text = """{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: tool, oauth: {endpoint: "https://i/token",
      client_id: tool, client_secret: {command: [/bin/word]}, truststore: {path: ca.pem, type: PEM}}}
    principal: User:broker"""
    path = written(tmp_path, text)
    found = load_inventory(path)
    assert (found.broker_principal, found.controller_principal) == ("User:broker", "")
    assert found.broker_access.oauth == OAuth(
        endpoint="https://i/token",
        client_id="tool",
        client_secret=SecretCommand(("/bin/word",)),
        truststore=Store(f"{tmp_path}/ca.pem", "PEM"),
    )
    path.write_text(dump_inventory(found))
    assert load_inventory(path) == found


def test_what_was_read_can_be_written_and_read_again(tmp_path: Path) -> None:
    """Equal values, paths relative, and nothing of a secret in the text."""
    added = tmp_path / "added.properties"
    added.write_text("sasl.jaas.config=canary\n")
    added.chmod(0o600)
    text = "  zookeeper_access: {sasl: {username: kafka, password: {file: zk}}, tls: {keystore: {path: a, type: PEM}}}"
    login = "{protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {principal: a/b@C, keytab: k, service: s}}"
    path = written(tmp_path, SCRAM, text, "    properties: added.properties")
    path.write_text(path.read_text().replace("{protocol: SSL, keystore: {path: tool.pem, type: PEM}}", login))
    found = load_inventory(path)
    assert found.controller_access.kerberos == Kerberos("a/b@C", keytab=f"{tmp_path}/k", service="s")
    dumped = dump_inventory(found)
    assert "canary" not in dumped
    assert str(tmp_path) not in dumped
    path.write_text(dumped)
    assert load_inventory(path) == found


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ("{protocol: SASL_SSL, mechanism: PLAIN, username: a}", "password is missing"),
        ("{protocol: SSL, mechanism: PLAIN}", "mechanism without SASL"),
        ("{protocol: PLAINTEXT, truststore: {path: a, type: PEM}}", "truststore without TLS"),
        ("{protocol: SSL, truststore: {path: a, type: JKS}}", "truststore.password is missing"),
        ("{protocol: SSL, keystore: {path: a, type: BKS}}", "BKS"),
        ("{protocol: SSL, keystore: {path: a, type: PKCS12, password: hunter2}}", "password"),
        ("{protocol: SSL, verify_host: false}", "verify_host"),
        ("{protocol: SASL_SSL, mechanism: GSSAPI}", "kerberos is missing"),
        ("{protocol: SASL_SSL, mechanism: GSSAPI, username: a, kerberos: {principal: a@B}}", "username with kerberos"),
        ("{protocol: SASL_SSL, mechanism: PLAIN, kerberos: {principal: a@B}}", "kerberos without GSSAPI"),
        ("{protocol: SSL, mechanism: GSSAPI, kerberos: {principal: a@B}}", "mechanism without SASL"),
        ("{protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {principal: a}}", "a principal with its realm"),
        ("{protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {principal: a@B, keytab: k, ccache: c}}", "one of keytab"),
        ("{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: a, password: {file: p}}", "oauth is missing"),
        (
            "{protocol: SASL_SSL, mechanism: PLAIN, username: a, password: {file: p}, oauth: {token: {file: t}}}",
            "oauth with PLAIN",
        ),
        ("{protocol: SSL, oauth: {token: {file: t}}}", "oauth without SASL"),
        ("{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: a, oauth: {}}", "either token is expected"),
        (
            "{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: a, oauth: {endpoint: 'https://i/t', client_id: a}}",
            "all of endpoint, client_id and client_secret",
        ),
        (
            "{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: a, oauth: {endpoint: 'https://u:p@i/t'}}",
            "a URL is expected",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, access: str, message: str) -> None:
    """And there is no key that turns the check of host names off."""
    with pytest.raises(MigrateError, match=message) as caught:
        load_inventory(written(tmp_path, access))
    assert "hunter2" not in str(caught.value)
    assert isinstance(caught.value, DocumentInvalid) or "NotSupported" in type(caught.value).__name__


@pytest.mark.parametrize(
    ("content", "mode", "kind", "message"),
    [
        ("node.id=7\na=b\n", 0o600, DocumentUnreadable, "node.id cannot be added"),
        ("control.plane.listener.name=C\n", 0o600, DocumentUnreadable, "control.plane.listener.name cannot be added"),
        ("a=\\u00zz\n", 0o600, DocumentUnreadable, "no properties"),
        ("ssl.key.password=b\n", 0o640, SecretUnreadable, "mode 0640"),
        ("opa.bearer.token=b\n", 0o644, SecretUnreadable, "mode 0644"),
        ("opa.url=https://kafka:b@opa/v1\n", 0o644, SecretUnreadable, "mode 0644"),
        ("opa.url=https://opa/v1\n", 0o646, DocumentNotTrusted, "everybody"),
    ],
)
def test_properties_that_may_not_be_added_are_refused(
    tmp_path: Path, content: str, mode: int, kind: type[MigrateError], message: str
) -> None:
    """Our own keys follow from the inventory; passwords lie in files that nobody else reads."""
    added = tmp_path / "added.properties"
    added.write_text(content)
    added.chmod(mode)
    with pytest.raises(kind, match=message) as caught:
        load_inventory(written(tmp_path, SCRAM, "", "    properties: added.properties"))
    assert caught.value.where == str(added)


@pytest.mark.parametrize("content", ["opa.url=https://opa/v1\nnum.io.threads=8\n", "ssl.key.password=${file:/k:p}\n"])
def test_properties_without_secrets_may_be_read_by_others(tmp_path: Path, content: str) -> None:
    """A reference that a configuration provider resolves is no secret."""
    (tmp_path / "added.properties").write_text(content)
    (tmp_path / "added.properties").chmod(0o644)
    found = load_inventory(written(tmp_path, SCRAM, "", "    properties: added.properties")).broker_properties
    assert found is not None
    assert len(found.values) == content.count("\n")


def test_properties_may_stand_in_the_inventory_and_come_back_as_they_stood(tmp_path: Path) -> None:
    """As a mapping of texts, without a file."""
    path = written(tmp_path, SCRAM, "", '    properties: {opa.url: "https://opa/v1", num.io.threads: "8"}')
    found = load_inventory(path)
    assert found.broker_properties is not None
    assert found.broker_properties.values == {"opa.url": "https://opa/v1", "num.io.threads": "8"}
    again = tmp_path / "again.yaml"
    again.write_text(dump_inventory(found))
    assert load_inventory(again).broker_properties == found.broker_properties


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{node.id: '7'}", "node.id cannot be added"),
        ("{controller.quorum.bootstrap.servers: 'c0:9090'}", "controller.quorum.bootstrap.servers cannot be added"),
        ("{listener.security.protocol.map: 'A:SSL'}", "listener.security.protocol.map cannot be added"),
        ("{zookeeper.session.timeout.ms: '9000'}", "zookeeper.session.timeout.ms cannot be added"),
        ("{inter.broker.protocol.version: '3.9'}", "inter.broker.protocol.version cannot be added"),
        ("{ssl.key.password: hunter2}", "ssl.key.password holds a secret"),
        ("{opa.bearer.token: hunter2}", "opa.bearer.token holds a secret"),
        ("{opa.url: 'https://kafka:hunter2@opa/v1'}", "opa.url holds a secret"),
        ("[a]", "properties"),
    ],
)
def test_neither_a_secret_nor_a_key_of_ours_stands_in_the_inventory(tmp_path: Path, text: str, message: str) -> None:
    """The message has the key, never the value."""
    with pytest.raises(DocumentInvalid, match=message) as caught:
        load_inventory(written(tmp_path, SCRAM, "", f"    properties: {text}"))
    assert "hunter2" not in str(caught.value)
