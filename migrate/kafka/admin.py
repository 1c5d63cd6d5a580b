"""Configuration of ordinary Kafka clients (confluent-kafka) for a cluster's client listener."""

from __future__ import annotations

from migrate.kafka.secret_files import read_secret
from migrate.kafka.stores import authorities, identity
from migrate.model.inventory import Access, Inventory


def bootstrap_servers(inventory: Inventory) -> str:
    """host:port of every broker's listener that `broker_access` opens, comma separated."""
    return ",".join(broker.address for broker in inventory.brokers)


def client_config(bootstrap: str, access: Access) -> dict[str, str | int | float | bool]:
    """The settings of librdkafka that reach the listener; passwords and keys are in them: never log or show them.

    Raises:
        SecretUnreadable: the password's file.
        StoreUnreadable: truststore or keystore.
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
    if access.is_tls:
        settings["ssl.endpoint.identification.algorithm"] = "https"
        if access.truststore is not None:
            settings["ssl.ca.pem"] = authorities(access.truststore).decode("ascii")
        if access.keystore is not None:
            who = identity(access.keystore)
            settings["ssl.certificate.pem"] = who.certificates.decode("ascii")
            settings["ssl.key.pem"] = who.key.decode("ascii")
    return settings
