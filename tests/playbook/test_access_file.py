"""A login to ZooKeeper from a file of its own, and the inventory that is proposed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid
from migrate.model.inventory import SecretFile, Store
from migrate.playbook.access import load_zookeeper_access
from migrate.playbook.load import load_inventory
from migrate.playbook.proposal import propose_inventory
from tests.playbook.test_proposal import filled, real

ACCESS = """\
sasl: {username: migrator, password: {file: secrets/zk}}
tls:
  truststore: {path: ca.pem, type: PEM}
"""


def test_it_is_read_by_the_inventorys_own_rules(tmp_path: Path) -> None:
    """Paths are relative to the file; no secret is opened."""
    (tmp_path / "access.yaml").write_text(ACCESS)
    found = load_zookeeper_access(tmp_path / "access.yaml")
    assert (found.username, found.password, found.tls) == ("migrator", SecretFile(f"{tmp_path}/secrets/zk"), True)
    assert found.truststore == Store(f"{tmp_path}/ca.pem", "PEM", None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sasl: {username: migrator}\n", "sasl.password"),
        ("sasl: {username: migrator, password: open-text}\n", "sasl.password"),
        ("tls: {truststore: {path: ca.jks, type: JKS}}\n", "truststore.password is missing"),
        ("zookeeper_access: {}\n", "zookeeper_access"),
    ],
)
def test_what_is_no_login_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """A password itself is none of its values."""
    path = tmp_path / "access.yaml"
    path.write_text(text)
    with pytest.raises(DocumentInvalid) as caught:
        load_zookeeper_access(path)
    assert says in caught.value.what
    assert str(path) in caught.value.where
    assert "open-text" not in str(caught.value)


@pytest.mark.parametrize("text", [ACCESS, "kerberos: {principal: kafka/tool@REALM, keytab: k, service: zk}\n"])
def test_the_proposed_inventory_has_the_same_login(tmp_path: Path, text: str) -> None:
    """Wherever it is written to."""
    (tmp_path / "access.yaml").write_text(text)
    login = load_zookeeper_access(tmp_path / "access.yaml")
    path = tmp_path / "elsewhere" / "inventory.yaml"
    path.parent.mkdir()
    path.write_text(filled(propose_inventory(real(), "payments", "manual", login)))
    assert load_inventory(path).zookeeper_login == login


@pytest.mark.parametrize("kind", ["local", "ssh", "manual"])
def test_an_executors_own_keys_are_among_the_gaps(tmp_path: Path, kind: str) -> None:
    """Filled in, the file loads; its units are those of the nodes."""
    path = tmp_path / "inventory.yaml"
    text = filled(propose_inventory(real(), "payments", kind))
    for key in ("kafka_home", "config", "metadata_directory", "unit"):
        text = "\n".join(
            f"{line.partition(':')[0]}: {'kafka.service' if key == 'unit' else f'/x{number}'}"
            if line.strip().startswith(f"{key}:")
            else line
            for number, line in enumerate(text.splitlines())
        )
    path.write_text(text)
    found = load_inventory(path)
    assert found.executor == kind
    assert all(bool(node.unit) == (kind != "manual") for node in found.nodes)
    assert ("inbox" in found.executor_options) == (kind == "manual")
