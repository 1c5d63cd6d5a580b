"""Settings of ordinary clients follow from the inventory, and the secret only from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import SecretUnreadable
from migrate.kafka.admin import bootstrap_servers, client_config
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, Inventory, SecretFile


def test_every_broker_is_a_way_in() -> None:
    """One stopped broker does not shut the client out."""
    brokers = tuple(BrokerNode(NodeId(node), "host", f"127.0.0.1:909{node}", "/c") for node in (1, 2))
    inventory = Inventory("i", "/i", "z", brokers, (), "CONTROLLER", Access(), Access(), None, "supervisor")
    assert bootstrap_servers(inventory) == "127.0.0.1:9091,127.0.0.1:9092"


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
