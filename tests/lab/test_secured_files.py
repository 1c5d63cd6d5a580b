"""The files of a secured lab: nobody without a name, each part with its own, no password where it does not belong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509

from migrate.errors import LabRefused
from migrate.hosts.properties import parse
from migrate.kafka.stores import identity
from migrate.kafka.tls import tls_context
from migrate.lab import kdc, secured
from migrate.lab.configure import (
    broker_file,
    client_access,
    clients_inventory,
    inner_access,
    inventory_of,
    make_secrets,
    secret_path,
    write_inventory,
    zookeeper_file,
)
from migrate.lab.load import client_properties
from migrate.lab.topology import Shape, Topology, load_topology, plan_topology, save_topology
from migrate.model.inventory import SecretFile, Store
from migrate.playbook.load import load_inventory


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """A secured lab, laid out as far as its secrets, stores and added properties."""
    found = plan_topology(tmp_path / "lab", Shape(secured=True))
    found.folder("conf").mkdir(parents=True)
    passwords = make_secrets(found)
    secured.make_stores(found, passwords)
    for name, text in {**secured.added_files(found, passwords), **secured.jaas_files(found, passwords)}.items():
        path = found.folder("conf", name)
        path.touch(mode=0o600)
        path.write_text(text)
    return found


def test_it_is_remembered_that_a_lab_is_secured(topology: Topology) -> None:
    """Another call finds the same lab; one made before this was known is in clear."""
    save_topology(topology)
    assert load_topology(Path(topology.directory)) == topology
    plain = plan_topology(Path(topology.directory))
    assert not plain.secured
    assert client_access(plain).protocol == "SASL_PLAINTEXT"
    assert inner_access(plain).protocol == "PLAINTEXT"


def test_a_brokers_file_lets_nobody_in_without_a_name(topology: Topology) -> None:
    """Every listener is SASL_SSL, and the controllers are not known yet: the migration adds them."""
    passwords = make_secrets(topology)
    found = parse(broker_file(topology, topology.brokers[0], passwords).encode())
    assert found["listener.security.protocol.map"] == "INTERNAL:SASL_SSL,CLIENT:SASL_SSL"
    assert found["super.users"] == "User:broker;User:admin"
    assert found["zookeeper.set.acl"] == "true"
    assert not [key for key in found if ".ctl." in key]
    assert "SASLAuthenticationProvider" in zookeeper_file(topology)


def test_a_lab_in_clear_has_none_of_it(tmp_path: Path) -> None:
    """Its files stay as they were."""
    plain = plan_topology(tmp_path / "lab")
    found = parse(broker_file(plain, plain.brokers[0], make_secrets(plain)).encode())
    assert found["super.users"] == "User:ANONYMOUS;User:admin"
    assert not [key for key in found if key.startswith(("ssl.", "zookeeper.set.acl"))]
    assert "authProvider" not in zookeeper_file(plain)
    assert sorted(path.name for path in secret_path(plain, "").iterdir()) == [
        "admin",
        "alice",
        "bob",
        "carol",
        "encoder",
        "keystore",
        "tokens",
    ]


def test_every_file_with_a_secret_is_closed(topology: Topology) -> None:
    """Mode 0600, stores among them."""
    files = [*topology.folder("secrets").iterdir(), *topology.folder("conf").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_stores_open_and_name_this_host(topology: Topology) -> None:
    """Brokers and controllers have a key each, of one authority, for both spellings of loopback."""
    password = SecretFile(str(secret_path(topology, secured.KEYSTORE)))
    names = set()
    for who in (secured.BROKER, secured.CONTROLLERS):
        store = Store(str(secured.store_path(topology, f"{who}.p12")), "PKCS12", password)
        own, issuer = x509.load_pem_x509_certificates(identity(store).certificates)
        own.verify_directly_issued_by(issuer)
        names.add(own.subject.rfc4514_string())
        hosts = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert hosts.get_values_for_type(x509.DNSName) == ["localhost"]
        assert [str(address) for address in hosts.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
        tls_context(inner_access(topology).truststore, store)
    assert names == {"CN=broker", "CN=controller"}


def test_stores_are_made_once(topology: Topology) -> None:
    """A second `lab up` must not replace what running processes hold."""
    path = secured.store_path(topology, secured.AUTHORITY)
    before = path.read_bytes()
    secured.make_stores(topology, make_secrets(topology))
    assert path.read_bytes() == before


def test_the_inventory_of_a_secured_lab_is_read_as_it_was_meant(topology: Topology) -> None:
    """Written, read, equal; the text names files, and holds no secret."""
    write_inventory(inventory_of(topology))
    found = load_inventory(topology.inventory)
    assert found == inventory_of(topology)
    assert found.broker_access.protocol == found.controller_access.protocol == "SASL_SSL"
    assert found.zookeeper_login.username == "kafka"
    assert found.controller_properties is not None
    assert 'username="controller"' in found.controller_properties.values["listener.name.ctl.plain.sasl.jaas.config"]
    text = topology.inventory.read_text()
    assert not [word for word in make_secrets(topology).values() if word in text]


def test_the_load_is_told_where_the_truststore_is(topology: Topology) -> None:
    """In the file that Kafka's clients read; the authority of the lab is PEM, without a password."""
    make_secrets(topology)
    values = parse(client_properties(client_access(topology)).encode())
    assert values["security.protocol"] == "SASL_SSL"
    assert values["ssl.truststore.type"] == "PEM"
    assert Path(values["ssl.truststore.location"]).parent == topology.folder("secrets")
    assert 'username="admin"' in values["sasl.jaas.config"]


def test_a_lab_with_kerberos_has_names_and_no_passwords_of_nodes(tmp_path: Path) -> None:
    """Nodes log in by one keytab, this tool by its own; clients without Kerberos by a password."""
    topology = plan_topology(tmp_path / "lab", Shape(secured=True, mechanism="GSSAPI"))
    topology.folder("conf").mkdir(parents=True)
    passwords = make_secrets(topology)
    save_topology(topology)
    assert load_topology(Path(topology.directory)) == topology
    assert topology.ports()[topology.kdc_port] == "kdc"
    assert topology.zookeeper.startswith("localhost:")
    assert {node.address.partition(":")[0] for node in inventory_of(topology).nodes} == {"localhost"}
    found = parse(broker_file(topology, topology.brokers[0], passwords).encode())
    assert found["listener.name.internal.sasl.enabled.mechanisms"] == "GSSAPI"
    assert found["super.users"] == "User:kafka;User:admin"
    assert not [name for name in found if name.startswith("listener.name.internal.gssapi")]
    assert "kerberos.removeHostFromPrincipal=true" in zookeeper_file(topology)
    files = secured.jaas_files(topology, passwords)
    assert files["kafka.jaas"].count('principal="kafka/localhost@LAB.TEST"') == 2
    assert not [word for text in files.values() for word in passwords.values() if word in text]
    write_inventory(inventory_of(topology))
    known = load_inventory(topology.inventory)
    assert known == inventory_of(topology)
    assert known.zookeeper_login.kerberos is not None
    assert known.zookeeper_login.kerberos.principal == "kafka/tool@LAB.TEST"
    assert clients_inventory(topology).broker_access.mechanism == "PLAIN"


def test_what_a_kdc_lacks_is_said_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made; a program that fails is told in its own words."""
    monkeypatch.setattr(kdc, "PATHS", str(tmp_path))
    with pytest.raises(LabRefused, match=r"a KDC needs krb5kdc, kdb5_util, kadmin\.local") as caught:
        kdc.Kdc(tmp_path / "kdc", 1).make({})
    assert "apt install" in (caught.value.next_step or "")
    assert not (tmp_path / "kdc").exists()
    for name, text in (("krb5kdc", ""), ("kdb5_util", "echo no >&2; exit 3"), ("kadmin.local", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(LabRefused, match="kdb5_util ended with 3") as caught:
        kdc.Kdc(tmp_path / "kdc", 1).make({})
    assert caught.value.why == "no"
    (tmp_path / "kdb5_util").write_text("#!/bin/sh\n")
    with pytest.raises(LabRefused, match="wrote no keytab"):
        kdc.Kdc(tmp_path / "kdc", 1).make({tmp_path / "k": ("a",)})
