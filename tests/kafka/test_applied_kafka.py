"""A real KRaft broker that lost its dynamic configuration says so when it is asked."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from migrate.checks.stored_values import not_applied
from migrate.kafka.connection import KeptConnections
from migrate.kafka.live import applied_configs
from migrate.kraft.fetch import MetadataReader
from migrate.model.inventory import Access, SecretFile
from migrate.model.outcome import Denied, Unknown
from migrate.model.secrets import Digester
from tests.testing.kraft_cluster import BROKER, KraftCluster, seen, wait_for

pytestmark = pytest.mark.kafka

STORED = {"num.io.threads": "16", "log.cleaner.backoff.ms": "16000", "listener.name.client.max.connections": "77"}


def altered(cluster: KraftCluster, how: AlterConfigOpType) -> None:
    """Each key of the broker's dynamic configuration set or deleted, as kafka-configs does it."""
    entries = [ConfigEntry(name, value, incremental_operation=how) for name, value in STORED.items()]
    resource = ConfigResource(ResourceType.BROKER, str(BROKER), incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": cluster.inventory.brokers[0].address})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def lost(cluster: KraftCluster) -> list[str] | None:
    """The keys that the broker does not run with; None while nobody knows."""
    with closing(KeptConnections()) as kept, MetadataReader(cluster.inventory, Digester()) as reader:
        said = applied_configs(cluster.inventory, kept)[BROKER]
        return None if isinstance(said, Unknown) else [one.key for one in not_applied(seen(reader), BROKER, said)]


def restarted(cluster: KraftCluster, lines: str) -> None:
    """With these lines in its file, too."""
    cluster.stop(BROKER)
    file = cluster.config(BROKER)
    file.write_text(file.read_text().partition("# more\n")[0] + "# more\n" + lines)
    cluster.start(BROKER)
    cluster.wait_until_ready()


def test_a_number_of_threads_beyond_double_takes_the_others_with_it(kraft_cluster: KraftCluster) -> None:
    """And is applied with them where the file has it (B-CFG-38 says so before a migration)."""
    cluster = kraft_cluster
    altered(cluster, AlterConfigOpType.SET)
    try:
        wait_for("the values to be applied", lambda: lost(cluster) == [])
        restarted(cluster, "num.io.threads=4\n")
        wait_for("the answer of a broker that lost them", lambda: lost(cluster) == sorted(STORED))
        assert "Per-broker configs of 7 could not be applied" in (cluster.folder / f"{BROKER}.log").read_text()
        restarted(cluster, "num.io.threads=16\n")
        wait_for("the values to be applied again", lambda: lost(cluster) == [])
    finally:
        altered(cluster, AlterConfigOpType.DELETE)
        restarted(cluster, "")


def test_a_broker_says_nothing_of_it_without_the_right(kraft_cluster: KraftCluster) -> None:
    """And the answer names the right to give: no proof rests on a question that was refused."""
    password = kraft_cluster.folder / "nobodys-password"
    password.write_text("x\n")
    password.chmod(0o600)
    access = Access("SASL_PLAINTEXT", "PLAIN", "none", SecretFile(str(password)))
    with closing(KeptConnections()) as kept:
        said = applied_configs(kraft_cluster.inventory_with(f"127.0.0.1:{kraft_cluster.sasl_port}", access), kept)
    found = said[BROKER]
    assert isinstance(found, Denied)
    assert "DESCRIBE_CONFIGS on Cluster" in found.reason
