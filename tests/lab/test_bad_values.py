"""Values that stand in ZooKeeper unchecked, met by real processes: the rows of `docs/support.md` that only these show.

One ZooKeeper, one broker, one controller.

- `start`: brokers of ZooKeeper mode that end at their start, or leave values out.
- `copy`: a copy that stops, and goes on.
- `kraft-start`: what was copied is given to a broker of KRaft mode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.exceptions import NoNodeError

from migrate.errors import MigrateError
from migrate.hosts.properties import parse
from migrate.kafka.connection import KeptConnections
from migrate.kafka.live import applied_configs, look
from migrate.kafka.tls import cluster_config
from migrate.kraft.fetch import MetadataReader
from migrate.lab.cluster import Lab
from migrate.lab.topology import Shape
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, NodeAnswer, Running
from migrate.steps import configuration
from migrate.zookeeper.client import ZookeeperClient, connect
from tests.lab.commands import kraft_migrate
from tests.testing.kafka_jvm import kafka_jvm
from tests.testing.kraft_cluster import wait_for
from tests.testing.this_host import LocalFiles, format_storage

pytestmark = pytest.mark.kafka

BROKER: Final = NodeId(0)
CONTROLLER: Final = "controller-3000"


def config(**values: str) -> bytes:
    """A configuration's znode; a dot of a key is `__`."""
    return json.dumps({"version": 1, "config": {key.replace("__", "."): text for key, text in values.items()}}).encode()


def acl(**values: str) -> bytes:
    """One ACL."""
    entry = {"principal": "User:bob", "permissionType": "Allow", "operation": "Read", "host": "*"} | values
    return json.dumps({"version": 1, "acls": [entry]}).encode()


TOKEN: Final = json.dumps(
    {"version": 3, "owner": "nobody", "tokenRequester": "User:a", "tokenId": "t", "renewers": []}
    | {"issueTimestamp": 1, "maxTimestamp": 2, "expiryTimestamp": 2}
).encode()
TOPICS: Final = ("t", "u", "v", "w")
ENDS: Final = {  # no broker of ZooKeeper mode starts with one of them; the finding
    "/config/topics/t": (config(retention__ms="abc"), "B-ZKN-26"),
    "/config/topics/u": (config(leader__replication__throttled__replicas="garbage"), "B-ZKN-26"),
    "/config/topics/v": (config(remote__storage__enable="true"), "B-ZKN-26"),
    "/config/topics/w": (b'{"version":1,"config":{"retention.ms":null}}', "B-ZKN-16"),
    "/config/topics/none": (config(cleanup__policy="foo"), "B-ZKN-26"),
    "/config/brokers/0": (config(metric__reporters="no.such.Reporter"), "B-CFG-37"),
    "/config/brokers/abc": (config(log__cleaner__threads="1"), "B-ZKN-18"),
    "/config/users/bob": (config(producer_byte_rate="abc"), "B-ZKN-12"),
    "/config/clients/c": (config(producer_byte_rate="1.5"), "B-ZKN-12"),
    "/config/users/a%ZZ": (config(producer_byte_rate="1024"), "B-ZKN-12"),
    "/config/ips/no-such-host.invalid": (config(connection_creation_rate="10"), "B-ZKN-27"),
    "/config/ips/%3A%3A1": (config(connection_creation_rate="10"), "B-ZKN-27"),
    "/config/ips/192.0.2.1": (config(connection_creation_rate="1.5"), "B-ZKN-12"),
    "/config/users/eve": (config(**{"SCRAM-SHA-256": "garbage"}), "B-ZKN-17"),
    "/kafka-acl/Topic/x": (acl(principal="nocolon"), "B-ZKN-10"),
    "/kafka-acl/Topic/y": (b'{"version":2,"acls":[]}', "B-ZKN-16"),
}
STOPS: Final = {  # a start leaves it out, and the copy stops
    "/config/users/rob": (config(foo="bar"), "B-ZKN-12"),
    "/delegation_token/tokens/t": (TOKEN, "B-ZKN-16"),
}
TAKEN: Final = {  # a start leaves it out, or takes it
    "/config/topics/t": config(no__such__key="1"),
    "/config/clients/c": config(producer_byte_rate="-5"),
    "/config/client-metrics/m": b"garbage",
    "/config/brokers/0": config(num__io__threads="0", log__dirs="/x", log__cleaner__backoff__ms="16000"),
    "/config/brokers/<default>": config(message__max__bytes="-1", log__cleaner__delete__retention__ms="777"),
    "/kafka-acl/Topic/v": acl(operation="Foo", permissionType="Maybe"),
    "/kafka-acl/Topic/w": b"garbage",
} | {path: data for path, (data, _) in STOPS.items()}
TOGETHER: Final = {  # what breaks a rule takes all of every entity with it, at a start as in KRaft mode
    **{path: data for path, data in TAKEN.items() if path.startswith("/config/brokers")},
    "/config/brokers/<default>": config(log__retention__ms="0", log__cleaner__delete__retention__ms="777"),
}
COPIED: Final = {  # of values that a copy takes, with what a broker of KRaft mode does at its start
    "/config/topics/t": config(retention__ms="abc"),
    "/config/topics/u": config(remote__storage__enable="true"),
    "/config/topics/v": config(no__such__key="1"),
    "/config/brokers/0": config(metric__reporters="no.such.Reporter", log__cleaner__backoff__ms="16000"),
    "/config/brokers/<default>": config(num__io__threads="64", log__cleaner__delete__retention__ms="777"),
    "/config/clients/c": config(producer_byte_rate="1.5"),
    "/config/ips/no-such-host.invalid": config(connection_creation_rate="10"),
    "/config/ips/192.0.2.1": config(connection_creation_rate="20"),
    "/config/client-metrics/m": b"garbage",
}
NAMED: Final = {
    "/config/topics/t": "B-ZKN-26",
    "/config/topics/u": "B-ZKN-26",
    "/config/brokers/0": "B-CFG-37",
    "broker 0": "B-CFG-38",
    "/config/clients/c": "B-ZKN-12",
    "/config/ips/no-such-host.invalid": "B-ZKN-27",
}
COPIES: Final = {
    ("topic-config", "t", "retention.ms", "abc"),
    ("topic-config", "u", "remote.storage.enable", "true"),
    ("topic-config", "v", "no.such.key", "1"),
    ("broker-config", "0", "metric.reporters", "no.such.Reporter"),
    ("broker-config", "<default>", "num.io.threads", "64"),
    ("client-quota", "client-id=c", "producer_byte_rate", "1.5"),
    ("client-quota", "ip=no-such-host.invalid", "connection_creation_rate", "10.0"),
    ("client-quota", "ip=192.0.2.1", "connection_creation_rate", "20.0"),
}
LEFT_OUT: Final = (  # what a broker of KRaft mode says at its start, and goes on
    "Per-broker configs of 0 could not be applied",
    "Cluster default configs could not be applied",
    "Error updating topic u with new configuration: remote.storage.enable",
    "publishing dynamic client quota changes",
    "Unable to resolve address no-such-host.invalid",
)
BACKOFF, DELETED, IO = "log.cleaner.backoff.ms", "log.cleaner.delete.retention.ms", "num.io.threads"
OWN: Final = {BACKOFF: "15000", DELETED: "86400000", IO: "4"}  # Kafka's defaults, and the lab's file


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """In ZooKeeper mode, with one topic."""
    made = Lab.create(tmp_path / "lab", Shape(brokers=1, directories=2, controllers=1))
    try:
        made.up()
        admin = AdminClient(cluster_config(made.inventory))
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
            future.result(timeout=60)
        yield made
    finally:
        made.down()


@contextmanager
def standing(client: ZookeeperClient, values: Mapping[str, bytes]) -> Iterator[None]:
    """They stand in ZooKeeper meanwhile, as a hand wrote them; what stood there before is back afterwards."""
    tree, before = client.kazoo, dict[str, bytes]()
    for path, data in values.items():
        if tree.exists(path):
            before[path] = tree.get(path)[0]
            tree.set(path, data)
        else:
            tree.create(path, data, makepath=True)
    try:
        yield
    finally:
        for path in values:
            with suppress(NoNodeError):  # a controller may have deleted it
                if path in before:
                    tree.set(path, before[path])
                else:
                    tree.delete(path)


def runs(lab: Lab) -> bool:
    """Is the broker's process alive?"""
    return isinstance(lab.supervisor.state(BROKER), Running)


def answers(lab: Lab) -> bool:
    """Does it answer?"""
    assert runs(lab), "\n".join(lab.supervisor.last_words(BROKER, 30))
    return isinstance(look(lab.inventory).brokers[BROKER], NodeAnswer)


def ends(lab: Lab) -> bool:
    """Does a start of the broker end by itself?"""
    mark = len(log(lab))
    lab.supervisor.start(BROKER)
    wait_for("a broker that ends, or serves", lambda: not runs(lab) or "started (kafka.server" in log(lab)[mark:])
    return not runs(lab)


def log(lab: Lab, node: str = "broker-0") -> str:
    """What that process wrote."""
    return lab.topology.log(node).read_text(errors="replace")


def applied(lab: Lab) -> dict[str, str]:
    """What the broker says that it runs with, of the keys of this story."""
    with closing(KeptConnections()) as kept:
        said = applied_configs(lab.inventory, kept)[BROKER]
    assert not isinstance(said, Unknown), said
    return {key: said[key] for key in OWN}


def named(lab: Lab, wanted: Mapping[str, str]) -> None:
    """`assess` has each of these codes, with that place."""
    ended = kraft_migrate("assess", "--inventory", str(lab.inventory_path), "--output", "json")
    said = {(one["code"], one["about"]) for one in json.loads(ended.stdout)["findings"]}
    assert not {
        path for path, code in wanted.items() if not any(one == code and at(path, place) for one, place in said)
    }


def at(path: str, about: str) -> bool:
    """Does a finding speak of that znode?"""
    if "Reporter" in about:
        return path == "/config/brokers/0"
    return path[:26] in about  # the name of a token's znode is not shown


def write(lab: Lab, node: NodeId, made: Callable[[bytes], bytes]) -> None:
    """Its file, as a stage edits it."""
    path = Path(lab.inventory.node(node).config)
    LocalFiles().write(node, str(path), made(path.read_bytes()))


def controller_starts(lab: Lab) -> None:
    """With its file as `prepare` renders it."""
    node, values = lab.inventory.controllers[0], parse(Path(lab.inventory.node(BROKER).config).read_bytes())
    LocalFiles().make_directory(node.id, node.metadata_directory)
    LocalFiles().write(node.id, node.config, configuration.controller(values, lab.inventory, node))
    with connect(lab.inventory.zookeeper) as client:
        cluster = json.loads(client.kazoo.get("/cluster/id")[0])["id"]
    format_storage(lab.inventory, node.id, cluster, "3.9")
    lab.supervisor.start(node.id)


def metadata(reader: MetadataReader) -> KraftView | None:
    """None while it cannot be read."""
    try:
        return reader.view()
    except MigrateError:
        return None


def copied(reader: MetadataReader) -> bool:
    """Is the copy done?"""
    view = metadata(reader)
    return view is not None and view.migration_state is ZkMigrationState.MIGRATION


def delete(lab: Lab, topic: str, key: str) -> None:
    """By a controller, as no broker runs; not by kafka-configs, which reads the configuration first, and fails."""
    with kafka_jvm() as gateway:
        config, admin = gateway.jvm.org.apache.kafka.common.config, gateway.jvm.org.apache.kafka.clients.admin
        client = admin.Admin.create(
            gateway.jvm.java.util.HashMap({"bootstrap.controllers": lab.inventory.controllers[0].address})
        )
        change = admin.AlterConfigOp(admin.ConfigEntry(key, ""), getattr(admin, "AlterConfigOp$OpType").DELETE)
        asked = gateway.jvm.java.util.HashMap()
        asked.put(config.ConfigResource(getattr(config, "ConfigResource$Type").TOPIC, topic), [change])
        client.incrementalAlterConfigs(asked).all().get()
        client.close()


def start(lab: Lab) -> None:
    """ZooKeeper mode, and the copy."""
    with connect(lab.inventory.zookeeper) as client:
        with standing(client, {path: data for path, (data, _) in (ENDS | STOPS).items()}):
            named(lab, {path: code for path, (_, code) in (ENDS | STOPS).items()})
        lab.supervisor.stop(BROKER, 120)
        for path, (data, _) in ENDS.items():
            with standing(client, {path: data}):
                assert ends(lab), path
        with standing(client, TOGETHER):
            assert not ends(lab)
            assert "Cluster default configs could not be applied" in log(lab)
            assert applied(lab) == OWN
            named(lab, {"broker 0": "B-CFG-38"})
            lab.supervisor.stop(BROKER, 120)
        with standing(client, TAKEN):
            assert not ends(lab)
            assert applied(lab) == OWN | {BACKOFF: "16000", DELETED: "777"}
            lab.supervisor.stop(BROKER, 120)


def copy(lab: Lab) -> None:
    """The controller ends with the copy; it goes on when the value is gone, and the controller is started again."""
    lab.supervisor.stop(BROKER, 120)
    with (
        connect(lab.inventory.zookeeper) as client,
        standing(client, {path: data for path, (data, _) in STOPS.items()}),
    ):
        controller_starts(lab)
        write(lab, BROKER, lambda raw: configuration.migration_mode(raw, lab.inventory))
        assert not ends(lab)
        for path, says in (("/config/users/rob", "foo -> bar"), ("/delegation_token/tokens/t", "but got nobody")):
            wait_for("a copy that stops", lambda: not isinstance(lab.supervisor.state(CONTROLLER), Running))
            assert says in log(lab, CONTROLLER)
            client.kazoo.delete(path)
            lab.supervisor.start(CONTROLLER)
        with MetadataReader(lab.inventory, Digester(), patience=60) as reader:
            wait_for("the copy", lambda: copied(reader), 120)
            rows = reader.view().entities
        assert "foo" not in rows.name


def kraft(lab: Lab) -> None:
    """What was copied is given to a broker of KRaft mode."""
    lab.supervisor.stop(BROKER, 120)
    write(lab, BROKER, lambda raw: configuration.migration_mode(raw, lab.inventory))
    assert not ends(lab)
    with connect(lab.inventory.zookeeper) as client, standing(client, COPIED):
        named(lab, NAMED)
        controller_starts(lab)
        with MetadataReader(lab.inventory, Digester(), patience=60) as reader:
            wait_for("the copy", lambda: copied(reader), 120)
            rows = reader.view().entities
        have = set(zip(rows.kind, rows.key, rows.name, rows.value, strict=True))
        assert have >= COPIES
        assert not [kind for kind, *_ in have if "metrics" in kind]
        wait_for("a sync that fails", lambda: "producer_byte_rate must be a LONG value" in log(lab, CONTROLLER))
        lab.supervisor.stop(BROKER, 120)
        write(lab, BROKER, lambda raw: configuration.kraft_mode(raw, lab.inventory, lab.inventory.brokers[0]))
        assert ends(lab)
        assert "Invalid value abc for configuration retention.ms" in log(lab)
        delete(lab, "t", "retention.ms")
        mark = len(log(lab))
        assert not ends(lab)
        for text in LEFT_OUT:
            wait_for(text, lambda text=text: text in log(lab)[mark:])  # type: ignore[misc]
        assert applied(lab) == OWN
        assert "to DUAL_WRITE state" not in log(lab, CONTROLLER)


PARTS: Final[dict[str, Callable[[Lab], Any]]] = {"start": start, "copy": copy, "kraft-start": kraft}


@pytest.mark.long
@pytest.mark.parametrize("part", tuple(PARTS))
def test_processes_do_with_bad_values_what_the_table_says(part: str, lab: Lab) -> None:
    """And `assess` names each before."""
    PARTS[part](lab)
