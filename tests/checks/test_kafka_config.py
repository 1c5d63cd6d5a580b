"""What Kafka's own classes say of files that checks refuse or pass, so that a check never rests on a belief."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError

from migrate.lab.secured import Authority
from migrate.model.config_keys import AT_ANY_TIME, AT_START, DEFAULT_ENTITY, is_at_start, left_out
from migrate.model.kafka_values import trim
from tests.testing.kafka_jvm import first_cause, kafka_jvm

pytestmark = pytest.mark.kafka

QUORUM = {"controller.quorum.voters": "3000@c:9090", "controller.listener.names": "CTL"}
MIGRATION = QUORUM | {
    "broker.id": "0",
    "zookeeper.connect": "zk:2181",
    "zookeeper.metadata.migration.enable": "true",
    "inter.broker.protocol.version": "3.9",
}
KRAFT = QUORUM | {"node.id": "0", "process.roles": "broker"}
MAP = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTL:PLAINTEXT"}
BOTH = MAP | {"listeners": "PLAINTEXT://b:9092,CTL://b:9091"}


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Kafka's classes."""
    with kafka_jvm() as gateway:
        yield gateway.jvm


def config(jvm: Any, values: Mapping[str, str]) -> Any:
    """A KafkaConfig of those values."""
    given = jvm.java.util.Properties()
    for key, value in values.items():
        given.setProperty(key, value)
    return jvm.kafka.server.KafkaConfig.fromProps(given, False)


def test_a_broker_in_migration_mode_stops_advertising_a_listener_with_the_controllers_name(jvm: Any) -> None:
    """B-CFG-30: it is accepted without a word, and the listener's clients lose the broker."""
    before = config(jvm, {"broker.id": "0", "zookeeper.connect": "zk:2181", **BOTH})
    after = config(jvm, MIGRATION | BOTH)
    assert "ListenerName(CTL)" in before.effectiveAdvertisedBrokerListeners().toString()
    assert "ListenerName(CTL)" not in after.effectiveAdvertisedBrokerListeners().toString()


def test_a_kraft_broker_refuses_a_listener_with_the_controllers_name(jvm: Any) -> None:
    """B-CFG-30: the first broker of the second roll would not start."""
    with pytest.raises(Py4JJavaError) as caught:
        config(jvm, KRAFT | BOTH)
    assert "must not contain a value appearing in the 'listeners' configuration" in first_cause(caught.value)
    config(jvm, KRAFT | MAP | {"listeners": "PLAINTEXT://b:9092"})


def test_a_protocol_map_with_another_protocol_for_the_controllers_is_accepted(jvm: Any) -> None:
    """B-CFG-30: Kafka does not notice it, so a check has to."""
    config(jvm, MIGRATION | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTL:SSL"})


@pytest.mark.parametrize("kind", ["STRING", "PASSWORD", "LIST", "BOOLEAN", "INT", "CLASS"])
def test_kafka_trims_values_of_every_type_as_we_do(jvm: Any, kind: str) -> None:
    """ConfigDef.parseType, with blanks, tabs and control characters at both ends, and a no-break space that stays."""
    definition = jvm.org.apache.kafka.common.config.ConfigDef
    (wanted,) = (
        entry
        for entry in jvm.java.lang.Class.forName("org.apache.kafka.common.config.ConfigDef$Type").getEnumConstants()
        if str(entry) == kind
    )
    plain = {"BOOLEAN": "true", "INT": "7", "CLASS": "kafka.Kafka"}.get(kind, "a b\xa0")
    given = f"\x01\t {plain} \t\n"
    assert trim(given) == plain
    read = [definition.parseType("key", text, wanted) for text in (given, plain)]
    assert read[0] == read[1]
    if kind == "STRING":
        assert read[0] == plain


@pytest.mark.parametrize("base", [MIGRATION, KRAFT], ids=["migration", "kraft"])
def test_tiered_storage_with_several_log_directories_is_accepted(jvm: Any, base: Mapping[str, str]) -> None:
    """No check refuses it: Kafka does not from 3.8 on (KAFKA-16399)."""
    tiered = {"remote.log.storage.system.enable": "true", "remote.log.metadata.manager.listener.name": "PLAINTEXT"}
    config(jvm, {**base, **MAP, **tiered, "listeners": "PLAINTEXT://b:9092", "log.dirs": "/d0,/d1"})


def test_values_that_a_start_decides_by_are_kafkas_list(jvm: Any) -> None:
    """B-SEC-20: all that a listener is made from, but for what is applied to living ones (limits, threads)."""
    listeners = set(jvm.kafka.server.DynamicListenerConfig.ReconfigurableConfigs().mkString(" ").split())
    stores = set(jvm.org.apache.kafka.common.config.SslConfigs.RECONFIGURABLE_CONFIGS)
    assert (listeners | stores) - {"max.connections", "max.connection.creation.rate", "num.network.threads"} == AT_START


EVERY: Final = sorted(AT_START | AT_ANY_TIME)
TAKEN: Final = {
    "listeners": "CLIENT://b:1",
    "listener.security.protocol.map": "CLIENT:SSL",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "ssl.client.auth": "none",
    "ssl.engine.factory.class": "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
}


@pytest.mark.parametrize("prefix", ["", "listener.name.client."])
@pytest.mark.parametrize("entity", ["0", DEFAULT_ENTITY])
def test_dynamic_values_that_kafka_leaves_out_decide_about_no_start(jvm: Any, entity: str, prefix: str) -> None:
    """B-SEC-20: what stands for all brokers, or a store without a listener, is no value that a broker runs with."""
    zookeeper = {"broker.id": "0", "zookeeper.connect": "zk:2181", "password.encoder.secret": "s"}
    dynamic, one = config(jvm, zookeeper).dynamicConfig(), entity != DEFAULT_ENTITY
    for name in EVERY:
        given = jvm.java.util.Properties()
        given.setProperty(prefix + name, TAKEN.get(name, "1"))
        stored = dynamic.toPersistentProps(given, True) if one else given
        dropped = dynamic.fromPersistentProps(stored, one).isEmpty()
        assert dropped is left_out(entity, prefix + name), name
        assert is_at_start(entity, prefix + name) is (not dropped and name in AT_START)


def test_a_login_without_a_listener_is_nobodys(jvm: Any) -> None:
    """B-SEC-20: what the listener is made from has it with the prefix alone."""
    (method,) = (
        found
        for found in jvm.java.lang.Class.forName("org.apache.kafka.common.network.ChannelBuilders").getDeclaredMethods()
        if found.getName() == "channelBuilderConfigs"
    )
    method.setAccessible(True)
    for prefix, acts in (("listener.name.client.", True), ("", False)):
        name = "plain.sasl.jaas.config"
        values = {"broker.id": "0", "zookeeper.connect": "zk:2181", prefix + name: "x required;"}
        words = jvm.java.util.ArrayList(
            [config(jvm, values), jvm.org.apache.kafka.common.network.ListenerName("CLIENT")]
        )
        assert method.invoke(None, words.toArray()).containsKey(name) is acts
        assert is_at_start("0", prefix + name) is acts


def test_a_dynamic_protocol_map_without_the_controllers_listener_ends_the_first_roll(jvm: Any) -> None:
    """B-SEC-20: it is laid over the file's map before the broker looks for its controllers."""
    broker, name = config(jvm, MIGRATION | MAP), "listener.security.protocol.map"
    broker.dynamicConfig().initialize(jvm.scala.Option.apply(None), jvm.scala.Option.apply(None))
    stored = jvm.java.util.Properties()
    stored.setProperty(name, "PLAINTEXT:PLAINTEXT")
    broker.dynamicConfig().updateBrokerConfig(0, stored, True)
    assert broker.getString(name) == "PLAINTEXT:PLAINTEXT"
    with pytest.raises(Py4JJavaError) as caught:
        jvm.kafka.server.RaftControllerNodeProvider.apply(None, broker)
    assert "No enum constant" in first_cause(caught.value)


def test_a_listener_that_began_without_a_store_takes_none(jvm: Any, tmp_path: Path) -> None:
    """B-SEC-20, KAFKA-17431: in ZooKeeper mode it began with the dynamic one."""
    authority = Authority.make("tests")
    stores = {"keystore": authority.issue("b1", ["b1"]).pem, "truststore": authority.pem}
    for kind, pem in stores.items():
        (tmp_path / kind).write_bytes(pem)
        factory = jvm.org.apache.kafka.common.security.ssl.SslFactory(
            jvm.org.apache.kafka.common.network.ConnectionMode.SERVER
        )
        kinds = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
        values = {"ssl.protocol": "TLSv1.3", **kinds}
        factory.configure(jvm.java.util.HashMap(values))
        with pytest.raises(Py4JJavaError) as caught:
            factory.validateReconfiguration(
                jvm.java.util.HashMap(values | {f"ssl.{kind}.location": str(tmp_path / kind)})
            )
        assert f"Cannot add SSL {kind} to an existing listener" in first_cause(caught.value)
