"""Configuration of ordinary Kafka clients (confluent-kafka) for a cluster's client listener."""

from __future__ import annotations

from collections.abc import Callable

from migrate.model.inventory import Access, Inventory, SecretFile


def bootstrap_servers(inventory: Inventory) -> str:
    """host:port of every broker's listener that `broker_access` opens, comma separated."""
    return ",".join(broker.address for broker in inventory.brokers)


def client_config(
    bootstrap: str, access: Access, read_secret: Callable[[SecretFile], str]
) -> dict[str, str | int | float | bool]:
    """Librdkafka's settings to reach the listener; the password is in them, so they are never logged or shown.

    `read_secret` is `migrate.playbook.secrets.read_secret`, handed in because this layer lies below it; what it raises
    comes through.
    """
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": access.protocol,
        "client.id": "kraft-migrate",
    }
    if access.mechanism:
        settings["sasl.mechanism"] = access.mechanism
        settings["sasl.username"] = access.username
        if access.password is not None:
            settings["sasl.password"] = read_secret(access.password)
    return settings
