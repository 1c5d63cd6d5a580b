"""Values that stand in ZooKeeper unchecked, given to Kafka's own classes on a real ZooKeeper: who refuses which.

No broker runs: one JVM does what a broker of ZooKeeper mode does when it starts (`ZkConfigManager`, `LogConfig`,
`AclAuthorizer`), what a controller does in the copy (`ZkMigrationClient`), and what a broker of KRaft mode does with
the records of it.  `docs/support.md` has the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from py4j.protocol import Py4JJavaError

from migrate.checks.registry import run_all
from migrate.model.secrets import Digester
from migrate.model.stage import Stage
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.read import read_view
from tests.testing import worlds
from tests.testing.kafka_jvm import first_cause, kafka_jvm
from tests.testing.zookeeper_server import running_server

pytestmark = pytest.mark.kafka

SCRAM: Final = "salt=YWJj,stored_key=YWJj,server_key=YWJj,iterations={}"
TOPIC, BROKER, USER, CLIENT, IP = "topics/t", "brokers/0", "users/bob", "clients/c", "ips/192.0.2.1"
ASKED: Final = frozenset({"B-ZKN-10", "B-ZKN-12", "B-ZKN-16", "B-ZKN-17", "B-ZKN-18", "B-ZKN-26", "B-ZKN-27"})


@dataclass(frozen=True, slots=True)
class Bad:
    """A value, who of Kafka refuses it, and the code that names it; "" where nobody does."""

    place: str  # below /config, or a path
    data: str
    refuse: str = ""  # of: start, copy, kraft
    code: str = ""

    @property
    def path(self) -> str:
        """The znode."""
        return self.place if self.place.startswith("/") else f"/config/{self.place}"


def of(place: str, refuse: str, code: str, **values: str) -> Bad:
    """A configuration; a dot of a key is `__`."""
    config = {key.replace("__", "."): value for key, value in values.items()}
    return Bad(place, json.dumps({"version": 1, "config": config}), refuse, code)


def acl(refuse: str, code: str, **values: str) -> Bad:
    """Of topic x."""
    entry = {"principal": "User:bob", "permissionType": "Allow", "operation": "Read", "host": "*"} | values
    return Bad("/kafka-acl/Topic/x", json.dumps({"version": 1, "acls": [entry]}), refuse, code)


def token(refuse: str, code: str, **values: object) -> Bad:
    """A delegation token; None leaves a field out."""
    entry: dict[str, object] = {"version": 3, "owner": "User%3Abob", "tokenRequester": "User%3Aadmin", "tokenId": "id"}
    entry |= {"renewers": [], "issueTimestamp": 1, "maxTimestamp": 2, "expiryTimestamp": 2} | values
    kept = {key: value for key, value in entry.items() if value is not None}
    return Bad("/delegation_token/tokens/id", json.dumps(kept), refuse, code)


BAD: Final = (
    of(TOPIC, "start kraft", "B-ZKN-26", retention__ms="abc"),
    of(TOPIC, "start kraft", "B-ZKN-26", retention__ms=""),
    of(TOPIC, "start kraft", "B-ZKN-26", cleanup__policy="foo"),
    of(TOPIC, "start kraft", "B-ZKN-26", max__message__bytes="-1"),
    of(TOPIC, "start kraft", "B-ZKN-26", min__insync__replicas="0"),
    of(TOPIC, "start kraft", "B-ZKN-26", segment__bytes="99999999999"),
    of(TOPIC, "start kraft", "B-ZKN-26", unclean__leader__election__enable="maybe"),
    of(TOPIC, "start kraft", "B-ZKN-26", compression__type="GZIP"),
    of(TOPIC, "start kraft", "B-ZKN-26", message__format__version="9.9"),
    of(TOPIC, "start kraft", "B-ZKN-26", leader__replication__throttled__replicas="garbage"),
    of(TOPIC, "start", "B-ZKN-26", remote__storage__enable="true"),
    of(TOPIC, "start", "B-ZKN-26", remote__log__copy__disable="TRUE"),
    of(TOPIC, "", "", remote__storage__enable="false", remote__log__copy__disable="false"),
    of(TOPIC, "", "", foo="bar"),
    of(TOPIC, "", "", min__compaction__lag__ms="10", max__compaction__lag__ms="5"),
    of("topics/none", "start", "B-ZKN-26", retention__ms="abc"),
    Bad(TOPIC, '{"version":1,"config":{"retention.ms":null}}', "start copy", "B-ZKN-16"),
    of(BROKER, "", "", log__cleaner__threads="abc"),
    of(BROKER, "", "", num__io__threads="0"),
    of(BROKER, "", "", foo="bar"),
    of(BROKER, "", "", log__dirs="/x"),
    of(BROKER, "", "", leader__replication__throttled__rate="abc"),
    of("brokers/<default>", "", "", message__max__bytes="-1"),
    of("brokers/abc", "start copy", "B-ZKN-18", log__cleaner__threads="1"),
    of(USER, "start copy", "B-ZKN-12", producer_byte_rate="abc"),
    of(USER, "start", "B-ZKN-12", producer_byte_rate="1.5"),
    of(USER, "start", "B-ZKN-12", consumer_byte_rate="1e3"),
    of(USER, "start", "B-ZKN-12", producer_byte_rate="9223372036854775808"),
    of(USER, "", "", producer_byte_rate="-5"),
    of(USER, "", "", request_percentage="0"),
    of(USER, "", "B-ZKN-12", request_percentage="NaN"),
    of(USER, "copy", "B-ZKN-12", foo="bar"),
    of(USER, "", "B-ZKN-27", foo="1"),
    of("users/a%ZZ", "start copy", "B-ZKN-12", producer_byte_rate="1024"),
    of("users/user@x", "", "", producer_byte_rate="1024"),
    of(CLIENT, "start copy", "B-ZKN-12", producer_byte_rate=""),
    of(CLIENT, "", "B-ZKN-27", connection_creation_rate="10"),
    of("users/bob/clients/c", "copy", "B-ZKN-12", foo="bar"),
    of("users/bob/clients/c", "copy", "B-ZKN-12", **{"SCRAM-SHA-256": SCRAM.format(4096)}),
    of(IP, "start", "B-ZKN-12", connection_creation_rate="1.5"),
    of(IP, "", "B-ZKN-27", producer_byte_rate="10"),
    of("ips/no-such-host.invalid", "start kraft", "B-ZKN-27", connection_creation_rate="10"),
    of("ips/%3A%3A1", "start", "B-ZKN-27", connection_creation_rate="10"),
    of("ips/::1", "", "", connection_creation_rate="10"),
    of(USER, "start copy", "B-ZKN-17", **{"SCRAM-SHA-256": "garbage"}),
    of(USER, "copy", "B-ZKN-12", **{"SCRAM-SHA-1": SCRAM.format(4096)}),
    of(USER, "", "", **{"SCRAM-SHA-512": SCRAM.format(1)}),
    acl("start copy", "B-ZKN-10", principal="nocolon"),
    acl("", "B-ZKN-16", operation="Foo"),
    acl("", "B-ZKN-16", permissionType="Maybe"),
    acl("", "", operation="IdempotentWrite"),
    acl("", "", host="no host"),
    acl("", "", principal="User:"),
    acl("", "", principal=":bob"),
    Bad("/kafka-acl/Topic/x", "garbage", "", "B-ZKN-16"),
    Bad("/kafka-acl/Topic/x", '{"version":2,"acls":[]}', "start copy", "B-ZKN-16"),
    Bad("/kafka-acl/Widget/x", '{"version":1,"acls":[]}', "", "B-ZKN-16"),
    token("", ""),
    token("", "", version=1, tokenRequester=None),
    token("", "", owner="User%3A", renewers=["User%3Aa", "Group%3Ab%3Ac"]),
    token("", "", maxTimestamp=-1, expiryTimestamp=-5),
    token("", "", issueTimestamp=-99999),
    token("", "", maxTimestamp=9223372036854775807),
    token("copy", "B-ZKN-16", maxTimestamp=9223372036854775808),
    token("copy", "B-ZKN-16", maxTimestamp="2"),
    token("copy", "B-ZKN-16", maxTimestamp=2.5),
    token("copy", "B-ZKN-16", owner="nocolon"),
    token("copy", "B-ZKN-16", owner=""),
    token("copy", "B-ZKN-16", owner="User:%ZZ"),
    token("copy", "B-ZKN-16", tokenRequester="bob"),
    token("copy", "B-ZKN-16", renewers=["User%3Aa", "b"]),
    token("copy", "B-ZKN-16", renewers=""),
    token("copy", "B-ZKN-16", tokenRequester=None),
    token("copy", "B-ZKN-16", tokenId=None),
    token("copy", "B-ZKN-16", version=4),
    token("", "B-ZKN-16", tokenId="another"),
    Bad("/delegation_token/tokens/id", "garbage", "", "B-ZKN-16"),
    Bad("/delegation_token/tokens/id", "", "", "B-ZKN-16"),
    Bad("/config/client-metrics/m", '{"version":1,"config":{"interval.ms":"abc","foo":"1"}}', "", ""),
    Bad("/config/client-metrics/m", "garbage", "", ""),
    Bad("/config/changes/config_change_0000000007", '{"version":2,"entity_path":"client-metrics/m"}', "", ""),
)


@dataclass
class Taken:
    """What the copy hands on; Java calls it."""

    batches: list[Any] = field(default_factory=list)

    class Java:
        """The interface."""

        implements: ClassVar = ["java.util.function.Consumer"]

    def accept(self, batch: Any) -> None:
        """One batch."""
        self.batches.append(batch)


@dataclass
class Kafka:
    """A JVM with Kafka's classes, and a ZooKeeper with one topic."""

    jvm: Any
    client: ZookeeperClient
    address: str

    def __post_init__(self) -> None:
        jvm, encoder = self.jvm, self.jvm.org.apache.kafka.security.PasswordEncoder
        self.time = jvm.org.apache.kafka.common.utils.Time.SYSTEM
        tls = jvm.org.apache.zookeeper.client.ZKClientConfig()
        self.zk = jvm.kafka.zk.KafkaZkClient.apply(
            self.address, False, 30000, 30000, 10, self.time, "test", tls, "a", "b", False, False
        )
        self.zk.createTopLevelPaths()
        secret = jvm.org.apache.kafka.common.config.types.Password("a secret")
        encoder = encoder.encrypting(secret, None, "AES/CBC/PKCS5Padding", 128, 4096)
        self.copier = jvm.kafka.zk.ZkMigrationClient.apply(self.zk, encoder)
        properties = jvm.java.util.Properties()
        for key, value in (
            ("broker.id", "0"),
            ("zookeeper.connect", self.address),
            ("listeners", "PLAINTEXT://h:1"),
            (
                "delegation.token.secret.key",
                "a key",
            ),
        ):
            properties.setProperty(key, value)
        self.config = jvm.kafka.server.KafkaConfig.fromProps(properties, False)
        self.config.dynamicConfig().initialize(jvm.scala.Option.empty(), jvm.scala.Option.empty())

    def says(self) -> set[str]:
        """Who refuses what stands in ZooKeeper now."""
        return {
            name
            for name, ask in (("start", self._start), ("copy", self._copy), ("kraft", self._kraft))
            if not _takes(ask)
        }

    def _managers(self) -> tuple[Any, Any, Any]:
        metrics = self.jvm.org.apache.kafka.common.metrics.Metrics()
        quotas = self.jvm.kafka.server.QuotaFactory.instantiate(self.config, metrics, self.time, "")
        return metrics, quotas, self.jvm.kafka.network.ConnectionQuotas(self.config, self.time, metrics)

    def _start(self) -> None:
        jvm, server = self.jvm, self.jvm.kafka.server
        _, quotas, connections = self._managers()
        mechanisms = jvm.org.apache.kafka.common.security.scram.internals.ScramMechanism.mechanismNames()
        credentials = jvm.org.apache.kafka.security.CredentialProvider(mechanisms, None)
        handlers = jvm.java.util.HashMap()
        handlers.put("users", server.UserConfigHandler(quotas, credentials))
        handlers.put("clients", server.ClientIdConfigHandler(quotas))
        handlers.put("ips", server.IpConfigHandler(connections))
        handlers.put("brokers", server.BrokerConfigHandler(self.config, quotas))
        made = getattr(jvm.scala.collection.immutable.Map, "from")(
            jvm.scala.jdk.javaapi.CollectionConverters.asScala(handlers)
        )
        manager = server.ZkConfigManager(self.zk, made)
        try:
            manager.startup()
        finally:
            manager.shutdown()
        for topic in jvm.scala.jdk.javaapi.CollectionConverters.asJava(self.zk.getAllEntitiesWithConfig("topics")):
            log = jvm.org.apache.kafka.storage.internals.log.LogConfig
            values = log.fromProps(jvm.java.util.HashMap(), self.zk.getEntityConfigs("topics", topic)).values()
            log.validateRemoteStorageOnlyIfSystemEnabled(values, False, True)
            log.validateNoInvalidRemoteStorageConfigsInZK(values)
        tokens = jvm.org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache(mechanisms)
        holder = server.DelegationTokenManagerZk(self.config, tokens, self.time, self.zk)
        try:
            holder.startup()
        finally:
            holder.shutdown()
        authorizer, settings = jvm.kafka.security.authorizer.AclAuthorizer(), jvm.java.util.HashMap()
        settings.put("zookeeper.connect", self.address)
        settings.put("broker.id", "0")
        try:
            authorizer.configure(settings)
        finally:
            authorizer.close()

    def _copy(self) -> Any:
        image = self.jvm.org.apache.kafka.image
        taken = Taken()
        self.copier.readAllMetadata(taken, Taken())
        delta = getattr(image, "MetadataDelta$Builder")().build()
        for batch in taken.batches:
            for entry in batch:
                delta.replay(entry.message())
        delta.apply(image.MetadataProvenance.EMPTY)
        return delta

    def _kraft(self) -> None:
        """A topic's value ends the start; the others are left out by the publishers, with what is behind them."""
        try:
            delta = self._copy()
        except Py4JJavaError:
            return  # nothing arrives
        metrics, quotas, connections = self._managers()
        changed = delta.clientQuotasDelta()
        if changed is not None:
            self.jvm.kafka.server.metadata.ClientQuotaMetadataManager(quotas, connections).update(changed)
        resource = self.jvm.org.apache.kafka.common.config.ConfigResource
        configs = delta.apply(self.jvm.org.apache.kafka.image.MetadataProvenance.EMPTY).configs()
        topic = resource(getattr(self.jvm.org.apache.kafka.common.config, "ConfigResource$Type").TOPIC, "t")
        self.jvm.org.apache.kafka.storage.internals.log.LogConfig.fromProps(
            self.jvm.java.util.HashMap(), configs.configProperties(topic)
        )
        metrics.close()

    def codes(self) -> set[str]:
        """What the checks say of the same ZooKeeper."""
        view = read_view(self.client, Digester())
        world = replace(worlds.world_at(Stage.ASSESS), zookeeper=view)
        return {one.code for one in run_all(world)} & ASKED


def _takes(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Py4JJavaError:
        return False
    return True


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Kafka's classes and one topic that is well."""
    folder: Path = tmp_path_factory.mktemp("zookeeper")
    with running_server(folder) as server, kafka_jvm(callbacks=True) as gateway:
        client = server.client()
        made = Kafka(gateway.jvm, client, server.address)
        topic = {"partitions": {"0": [0]}, "topic_id": "AAAAAAAAAAAAAAAAAAAAQQ", "version": 3}
        state = {"controller_epoch": 1, "leader": 0, "version": 1, "leader_epoch": 0, "isr": [0]}
        topic |= {"adding_replicas": {}, "removing_replicas": {}}
        cluster = {"version": "1", "id": "Ywp1Vkq3QkSSZ6aK2mGPdQ"}
        states = "/brokers/topics/t/partitions/0/state"
        for path, value in (("/cluster/id", cluster), ("/brokers/topics/t", topic), (states, state)):
            client.kazoo.create(path, json.dumps(value).encode(), makepath=True)
        for kind in ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken"):
            client.kazoo.ensure_path(f"/kafka-acl/{kind}")
            client.kazoo.ensure_path(f"/kafka-acl-extended/prefixed/{kind}")
        assert made.says() == set()
        yield made
        client.close()


@pytest.mark.parametrize("bad", BAD, ids=[f"{one.place} {one.data[24:70]}" for one in BAD])
def test_what_kafka_cannot_take_is_a_finding(kafka: Kafka, bad: Bad) -> None:
    """Before anything is restarted, by a code that says so; what Kafka takes is none."""
    tree = kafka.client.kazoo
    tree.create(bad.path, bad.data.encode(), makepath=True)
    try:
        assert (kafka.says(), kafka.codes()) == (set(bad.refuse.split()), {bad.code} - {""})
    finally:
        if tree.exists(bad.path):  # a start deletes old notifications
            tree.delete("/config/users/bob" if bad.place.startswith(USER) else bad.path, recursive=True)
        if "Widget" in bad.path:
            tree.delete("/kafka-acl/Widget", recursive=True)


@pytest.mark.parametrize(
    ("kind", "key", "value", "says"),
    [
        ("client-id", "producer_byte_rate", 1.5, "must be a LONG value"),
        ("ip", "connection_creation_rate", 1.5, "must be a INT value"),
        ("user", "foo", 1.0, "Invalid configuration key foo"),
    ],
)
def test_what_the_copy_takes_and_dual_write_cannot_write_back(
    kafka: Kafka, kind: str, key: str, value: float, says: str
) -> None:
    """The controllers stay in SYNC_KRAFT_TO_ZK with it: they write every quota that differs from the metadata's."""
    state = kafka.jvm.org.apache.kafka.metadata.migration.ZkMigrationLeadershipState.EMPTY
    with pytest.raises(Py4JJavaError) as caught:
        kafka.copier.configClient().writeClientQuotas({kind: "192.0.2.1"}, {key: value}, {}, state)
    assert says in first_cause(caught.value)
