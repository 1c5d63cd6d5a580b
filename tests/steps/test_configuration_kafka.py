"""Every file that the tool edits or renders, read by Kafka's own `KafkaConfig`: what it took before, it takes after.

And a file that Kafka refuses is named by a check, with the key.  One JVM reads them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from migrate.checks.config_sources import refusals
from migrate.checks.forms import READERS, definitions
from migrate.checks.registry import CHECKS, Hit
from migrate.hosts.properties import parse, restore_keys
from migrate.model import config_keys
from migrate.model.config_keys import Fate, Moment
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, Inventory
from migrate.model.kafka_values import connect_string
from migrate.model.stage import Stage
from migrate.steps import configuration
from tests.golden.test_answers import GIVEN
from tests.testing import worlds
from tests.testing.kafka_config import KafkaReads, Reading, kafka_reads

pytestmark = pytest.mark.kafka

PLAIN = {
    "broker.id": "1",
    "zookeeper.connect": "zk1:2181/kafka",
    "inter.broker.protocol.version": "3.9",
    "listeners": "INTERNAL://b1:9092,CLIENT://b1:9093",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "log.dirs": "/d0,/d1,/d2",
}
MAP, LISTENERS, ADVERTISED = "listener.security.protocol.map", "listeners", "advertised.listeners"
BETWEEN, PROTOCOL, CONNECT = "inter.broker.listener.name", "security.inter.broker.protocol", "zookeeper.connect"
MECHANISM, SASL = "sasl.mechanism.inter.broker.protocol", "INTERNAL:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT"
Change = dict[str, str | None]
DEFAULTS: Change = {MAP: None, BETWEEN: None, LISTENERS: None}

ODD: dict[str, Change] = {  # what Kafka takes, beside the plain values; None: without the key
    "map: comma at the end": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,"},
    "map: commas and blanks at the end": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT, ,,"},
    "map: small letters": {MAP: "internal:plaintext,client:sasl_plaintext"},
    "map: blanks everywhere": {MAP: " INTERNAL : PLAINTEXT ,\\tCLIENT\\t:\\tSASL_PLAINTEXT "},
    "map: one entry a line": {MAP: "INTERNAL:PLAINTEXT,\\\n    CLIENT:SASL_PLAINTEXT,\\\n    "},
    "map: a name with a colon": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:X:SSL"},
    "map: an entry twice": {MAP: "INTERNAL:SSL,CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT"},
    "map: unused entries": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,OLD:SSL,CONTROLLER:SSL"},
    "map: the controllers' entry": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,ctl:plaintext,"},
    "map: the controllers' entry with blanks": {MAP: "CTL : PLAINTEXT , INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT"},
    "map: a no-break space in a name": {MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,\xa0CTL:SSL"},
    "map: control characters around names": {MAP: "\\u0001INTERNAL:PLAINTEXT\\u001f,\\u001cCLIENT:SASL_PLAINTEXT"},
    "map: none": DEFAULTS,
    "listeners: comma at the end": {LISTENERS: "INTERNAL://b1:9092,CLIENT://b1:9093,"},
    "listeners: empty entries and blanks": {LISTENERS: ", INTERNAL://b1:9092 ,, CLIENT://b1:9093 ,"},
    "listeners: small letters": {LISTENERS: "internal://b1:9092,client://b1:9093", BETWEEN: "Internal"},
    "listeners: IPv6": {LISTENERS: "INTERNAL://[::1]:9092,CLIENT://[fe80::1]:9093"},
    "listeners: one port for IPv4 and IPv6": {LISTENERS: "INTERNAL://127.0.0.1:9092,CLIENT://[::1]:9092"},
    "listeners: any port, twice": {LISTENERS: "INTERNAL://b1:0,CLIENT://b1:0"},
    "listeners: no host": {LISTENERS: "INTERNAL://:9092,CLIENT://:9093"},
    "listeners: everywhere, advertised": {
        LISTENERS: "INTERNAL://0.0.0.0:9092,CLIENT://0.0.0.0:9093",
        ADVERTISED: " INTERNAL://b1:9092 , CLIENT://b1:19093 ,",
    },
    "listeners: not all advertised": {ADVERTISED: "internal://b1.example.com:9092"},
    "listeners: names with dots, dashes and lines": {
        LISTENERS: "in-ter.nal://b1:9092,CLIENT_2://b1:9093",
        MAP: "in-ter.nal:PLAINTEXT,CLIENT_2:SSL",
        BETWEEN: "in-ter.nal",
        "listener.name.in-ter.nal.ssl.client.auth": "requested",
    },
    "listeners: one of the control plane": {
        LISTENERS: "INTERNAL://b1:9092,CLIENT://b1:9093,CONTROLLER://b1:9094",
        MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "control.plane.listener.name": "controller",
    },
    "listeners: Kafka's default": {**DEFAULTS, ADVERTISED: "PLAINTEXT://b1:9092"},
    "listeners: by protocol": {
        LISTENERS: "SASL_SSL://b1:9092,PLAINTEXT://b1:9093",
        MAP: None,
        BETWEEN: None,
        PROTOCOL: "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN , SCRAM-SHA-512",
    },
    "early start of listeners": {"early.start.listeners": "INTERNAL , CLIENT,"},
    "between brokers: small letters and blanks": {BETWEEN: "  internal\\t "},
    "version: of a patch release": {"inter.broker.protocol.version": "3.9.2"},
    "version: with words behind it": {"inter.broker.protocol.version": " 3.9.x "},
    "version: its long name": {"inter.broker.protocol.version": "3.9-IV0"},
    "version: its long name with a patch": {"inter.broker.protocol.version": "3.9-IV0.1"},
    "version: of messages": {"log.message.format.version": "2.8"},
    "directories: comma at the end": {"log.dirs": "/d0,/d1,"},
    "directories: blanks and empty entries": {"log.dirs": " /d0 , ,/d1\\t,\\u001f/d2 "},
    "directories: a no-break space": {"log.dirs": "/d0,\xa0/d1"},
    "directories: doubled and last slashes": {"log.dirs": "/d0/,//d1,/x/../d2/."},
    "directories: log.dir with commas": {"log.dirs": None, "log.dir": "/d0, /d1,"},
    "directories: both keys": {"log.dir": "/elsewhere"},
    "directories: Kafka's default": {"log.dirs": None},
    "id: with a sign": {"broker.id": "+1"},
    "id: with zeros": {"broker.id": "0001"},
    "id: Arabic digits": {"broker.id": "\\u0661"},
    "id: by its new name": {"broker.id": None, "node.id": "1"},
    "id: by both names": {"node.id": "01"},
    "id: above those that are made": {"broker.id": "1001", "broker.id.generation.enable": "FALSE"},
    "roles: none": {"process.roles": " "},
    "booleans: capitals and blanks": {"auto.create.topics.enable": " FALSE ", "delete.topic.enable": "True\\t"},
    "flag: False": {"zookeeper.metadata.migration.enable": " False "},
    "quorum: half of it is there": {"controller.quorum.voters": " 3000@c0:9090 , +3001@c1:9090"},
    "quorum: no controller listener": {"controller.listener.names": ""},
    "ZooKeeper: chroot behind every server": {CONNECT: "zk1:2181/kafka,zk2:2181/kafka"},
    "ZooKeeper: blanks and no ports": {CONNECT: " zk1 , zk2:2182,\\tzk3/kafka "},
    "ZooKeeper: empty entries": {CONNECT: ",zk1:2181,,zk2:,/kafka"},
    "ZooKeeper: slash and no chroot": {CONNECT: "zk1:2181/"},
    "ZooKeeper: IPv6": {CONNECT: "[::1]:2181,[fe80::2]/a/b"},
    "ZooKeeper: IPv6 with a zone": {CONNECT: "[fe80::1%eth0]:2181,[fe80::2%2]/a"},
    "listeners: IPv6 with a zone": {LISTENERS: "INTERNAL://[fe80::1%eth0]:9092,CLIENT://[fe80::1%25en-1.2]:9093"},
    "ZooKeeper: a chroot with a blank": {CONNECT: "zk1:2181/ka fka"},
    "super users: empty entries": {"super.users": "User:a;User:b;;"},
    "lists: blanks": {"log.cleanup.policy": "compact , delete", "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256"},
    "lists: a comma at the end": {"sasl.enabled.mechanisms": "PLAIN,", "metric.reporters": ""},
    "numbers: signs and zeros": {
        "num.io.threads": "+016",
        "log.retention.ms": "-1",
        "log.segment.bytes": " 1073741824",
    },
    "keys of others, twice": {"custom.key": "a\ncustom.key=b"},
    "an authorizer, and none named": {"authorizer.class.name": ""},
    "Kafka's authorizer, blanks": {
        "authorizer.class.name": " kafka.security.authorizer.AclAuthorizer ",
        "super.users": "",
    },
    "letters beyond Latin-1": {"broker.rack": "\\u4e2d\\u6587", "super.users": "User:CN=\\u0142"},
    "a comma in a value of one": {"broker.rack": "a, b,"},
    "limits for single addresses": {"max.connections.per.ip.overrides": "127.0.0.1:10,"},
    "no connections but those": {
        "max.connections.per.ip": "0",
        "max.connections.per.ip.overrides": "::1 : 5, h:1,,",
    },
    "no bootstrap servers": {"controller.quorum.bootstrap.servers": ""},
    "words in any case": {"group.consumer.migration.policy": "upgrade"},
    "a level in any case": {"metrics.recording.level": " Debug\\t"},
    "a mechanism that one listener has": {
        MAP: SASL,
        MECHANISM: "PLAIN ",
        "listener.name.internal.sasl.enabled.mechanisms": " PLAIN ,",
    },
    "a key with an escape": {"log.dirs": None, "log\\u002edirs": "/d0,/d1"},
    "hosts with lines and capitals": {LISTENERS: "INTERNAL://B_1.Example.:9092,CLIENT://b1:9093"},
    "minutes that ms replace": {"log.retention.ms": "5", "log.retention.minutes": "0", "log.retention.hours": "0"},
    "limits below none": {"connections.max.idle.ms": "-1", "queued.max.request.bytes": "0"},
    "an early start in capitals": {"early.start.listeners": "CLIENT"},
    "values of no listener": {"listener.name.other.num.network.threads": "none"},
}

REFUSED: dict[str, tuple[Change, str]] = {  # what Kafka refuses, and what a check must name
    "map: comma at the begin": ({MAP: ",INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT"}, MAP),
    "map: comma in the middle": ({MAP: "INTERNAL:PLAINTEXT,,CLIENT:SASL_PLAINTEXT"}, MAP),
    "map: no colon": ({MAP: "INTERNAL:PLAINTEXT,CLIENT"}, MAP),
    "map: no name": ({MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,:SSL"}, MAP),
    "map: no protocol of Kafka's": ({MAP: "INTERNAL:PLAINTEXT,CLIENT:SASL_TLS"}, MAP),
    "map: empty": ({MAP: ""}, MAP),
    "map: a listener is missing": ({MAP: "INTERNAL:PLAINTEXT"}, MAP),
    "listeners: no protocol's name": ({LISTENERS: "INTERNAL://b1:9092,CLIENT//b1:9093"}, LISTENERS),
    "listeners: no port": ({LISTENERS: "INTERNAL://b1:9092,CLIENT://b1"}, LISTENERS),
    "listeners: empty": ({LISTENERS: " , "}, LISTENERS),
    "listeners: a blank in a name": ({LISTENERS: "INTERNAL ://b1:9092,CLIENT://b1:9093"}, LISTENERS),
    "listeners: a name twice": ({LISTENERS: "INTERNAL://b1:9092,internal://b1:9093"}, LISTENERS),
    "advertised: everywhere": ({ADVERTISED: "INTERNAL://0.0.0.0:9092"}, ADVERTISED),
    "advertised: empty": ({ADVERTISED: ""}, ADVERTISED),
    "advertised: no such listener": ({ADVERTISED: "INTERNAL://b1:9092,PLAINTEXT://b1:1"}, ADVERTISED),
    "advertised: not between brokers": ({ADVERTISED: "CLIENT://b1:9093"}, "the inter-broker listener"),
    "between brokers: empty": ({BETWEEN: ""}, BETWEEN),
    "between brokers: unknown": ({BETWEEN: "OTHER"}, "the inter-broker listener"),
    "between brokers: by both keys": ({PROTOCOL: "PLAINTEXT"}, PROTOCOL),
    "between brokers: small letters": ({**DEFAULTS, PROTOCOL: "plaintext"}, PROTOCOL),
    "control plane: empty": ({"control.plane.listener.name": ""}, "control.plane.listener.name"),
    "version: a dot at the end": ({"inter.broker.protocol.version": "3.9."}, "inter.broker.protocol.version"),
    "version: small letters": ({"inter.broker.protocol.version": "3.9-iv0"}, "inter.broker.protocol.version"),
    "version: to come": ({"inter.broker.protocol.version": "3.10"}, "inter.broker.protocol.version"),
    "version: empty": ({"inter.broker.protocol.version": ""}, "inter.broker.protocol.version"),
    "directories: empty": ({"log.dirs": "", "log.dir": "/d0"}, "log.dirs"),
    "directories: a comma": ({"log.dirs": " , "}, "log.dirs"),
    "id: empty": ({"broker.id": ""}, "broker.id"),
    "id: two signs": ({"broker.id": "--1"}, "broker.id"),
    "id: a fraction": ({"broker.id": "1.0"}, "broker.id"),
    "id: too large": ({"broker.id": "4294967297"}, "broker.id"),
    "id: two that differ": ({"node.id": "2"}, "node.id"),
    "flag: empty": ({"zookeeper.metadata.migration.enable": ""}, "zookeeper.metadata.migration.enable"),
    "boolean: yes": ({"auto.create.topics.enable": "yes"}, "auto.create.topics.enable"),
    "boolean: 1": ({"controlled.shutdown.enable": "1"}, "controlled.shutdown.enable"),
    "number: with a unit": ({"log.segment.bytes": "1g"}, "log.segment.bytes"),
    "number: empty": ({"num.partitions": ""}, "num.partitions"),
    "number: a factor that is too large": ({"offsets.topic.replication.factor": "70000"}, "offsets.topic"),
    "roles: a comma at the end": ({"process.roles": "broker,"}, "process.roles"),
    "roles: a capital": ({"process.roles": "Broker"}, "process.roles"),
    "quorum: no id": (
        {"controller.quorum.voters": "c0:9090", "process.roles": "broker"},
        "controller.quorum.voters",
    ),
    "number: below its bound": ({"num.network.threads": "0"}, "num.network.threads"),
    "number: beside another": ({"replica.lag.time.max.ms": "100"}, "replica.lag.time.max.ms"),
    "number: beside another's default": ({"socket.request.max.bytes": "2", "queued.max.request.bytes": "1"}, "queued"),
    "number: a short life of connections": ({"connections.max.idle.ms": "100"}, "connections.max.idle.ms"),
    "number: a session that is too short": ({"group.consumer.session.timeout.ms": "6000"}, "session.timeout.ms"),
    "number: no cleaner": ({"log.cleaner.threads": "0"}, "log.cleaner.threads"),
    "number: a small buffer": ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
    "number: nothing is kept": ({"log.retention.minutes": "0"}, "log.retention.minutes"),
    "number: rolled at once": ({"log.roll.ms": "0"}, "log.roll.ms"),
    "number: more acks than replicas": ({"offsets.commit.required.acks": "5"}, "offsets.commit.required.acks"),
    "number: no such codec": ({"offsets.topic.compression.codec": "5"}, "offsets.topic.compression.codec"),
    "number: of a listener": ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
    "number: no limit of an address": ({"max.connections.per.ip.overrides": "h:"}, "max.connections.per.ip.overrides"),
    "number: of an address in brackets": ({"max.connections.per.ip.overrides": "[::1]:5"}, "per.ip.overrides"),
    "word: capitals": ({"compression.type": "ZSTD"}, "compression.type"),
    "word: of a client": ({"ssl.client.auth": "REQUIRED"}, "ssl.client.auth"),
    "number: of one listener": ({"listener.name.internal.num.network.threads": "0"}, "listener.name.internal.num"),
    "word: of one listener": ({"listener.name.client.ssl.client.auth": "REQUIRED"}, "listener.name.client.ssl"),
    "word: a level that is none": ({"metrics.recording.level": "LOUD"}, "metrics.recording.level"),
    "word: no level": ({"metrics.recording.level": ""}, "metrics.recording.level"),
    "mechanism: of no listener": ({MAP: SASL, MECHANISM: "PLAIN"}, MECHANISM),
    "mechanism: of another listener": (
        {MAP: SASL, MECHANISM: "PLAIN", "listener.name.client.sasl.enabled.mechanisms": "PLAIN"},
        MECHANISM,
    ),
    "mechanism: an empty list": ({MAP: SASL, "listener.name.internal.sasl.enabled.mechanisms": ""}, MECHANISM),
    "word: in a list": ({"log.cleanup.policy": "compact,"}, "log.cleanup.policy"),
    "word: no classic groups": ({"group.coordinator.rebalance.protocols": "consumer"}, "rebalance.protocols"),
    "class: empty": ({"principal.builder.class": ""}, "principal.builder.class"),
    "listeners: a port twice": ({LISTENERS: "INTERNAL://b1:9092,CLIENT://[::1]:9092"}, LISTENERS),
    "listeners: a port twice of one address family": ({LISTENERS: "INTERNAL://[::1]:1,CLIENT://[::2]:1"}, LISTENERS),
    "control plane: between brokers": ({"control.plane.listener.name": "INTERNAL"}, "control.plane.listener.name"),
    "control plane: not advertised": (
        {"control.plane.listener.name": "CLIENT", ADVERTISED: "INTERNAL://b1:9092"},
        "control.plane.listener.name",
    ),
    "control plane: not in the map": ({"control.plane.listener.name": "OTHER"}, "OTHER"),
    "early start: no such listener": ({"early.start.listeners": "OTHER"}, "early.start.listeners"),
    "bootstrap: no port": ({"controller.quorum.bootstrap.servers": "c0"}, "controller.quorum.bootstrap.servers"),
    "ZooKeeper: none": ({CONNECT: None}, CONNECT),
    "ZooKeeper: slash behind the chroot": ({CONNECT: "zk1:2181/kafka/"}, CONNECT),
    "ZooKeeper: two slashes": ({CONNECT: "zk1:2181//kafka"}, CONNECT),
    "ZooKeeper: a port that is none": ({CONNECT: "zk1:99999/kafka"}, CONNECT),
}


def file_of(change: Change) -> bytes:
    """The plain file with that change; values stand as they are written in a file."""
    values = {key: value for key, value in (PLAIN | change).items() if value is not None}
    return "".join(f"{key}={value}\n" for key, value in values.items()).encode("latin-1")


def known(raw: bytes, listener: str = "CTL", protocol: str = "PLAINTEXT") -> Inventory:
    """An inventory whose second broker has that file, and its ZooKeeper."""
    found = replace(worlds.inventory(), zookeeper=parse(raw).get(CONNECT, ""))
    node = int(parse(raw).get("broker.id") or parse(raw).get("node.id") or 1)
    brokers = tuple(replace(broker, id=NodeId(node)) if broker.id == 1 else broker for broker in found.brokers)
    return replace(found, brokers=brokers, controller_listener=listener, controller_access=Access(protocol=protocol))


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaReads]:
    """Kafka's classes."""
    with kafka_reads() as reads:
        yield reads


def owned(moment: Moment) -> set[str]:
    """The keys that a stage sets or removes, of all that Kafka knows; super users may be added."""
    rows = {row.name for row in config_keys.TABLE if row.at(moment) in (Fate.SET, Fate.REMOVED)}
    every = {
        key
        for key in (*definitions()["file"], *READERS, *PLAIN)
        if config_keys.fate(key, moment) in (Fate.SET, Fate.REMOVED)
    }
    return rows | every | {"super.users"}


@dataclass(frozen=True, slots=True)
class Edits:
    """All files that become of a broker's, by what made them."""

    migration: bytes
    kraft: bytes
    back: bytes
    controller: bytes
    finalized: bytes
    more: bytes
    fewer: bytes


def edits(raw: bytes, asked: Inventory) -> Edits:
    """Every edit that a run makes."""
    migration = configuration.migration_mode(raw, asked)
    kraft = configuration.kraft_mode(migration, asked, asked.brokers[1])
    ours = {
        *(owned(Moment.FIRST_ROLL) | owned(Moment.SECOND_ROLL)),
        *config_keys.removed(parse(raw), Moment.SECOND_ROLL),
    }
    controller = configuration.controller(parse(raw), asked, asked.controllers[0])
    more = configuration.with_directories(kraft, ["/new/a", "/new/b"])
    return Edits(
        migration=migration,
        kraft=kraft,
        back=restore_keys(kraft, raw, ours),
        controller=controller,
        finalized=configuration.finalized_controller(controller),
        more=more,
        fewer=configuration.without_directories(more, ["/new/a", "/new/b"]),
    )


def differences(kafka: KafkaReads, raw: bytes, asked: Inventory) -> list[str]:
    """What Kafka's reading of the edited files says against them."""
    before, found = kafka.read(raw), edits(raw, asked)
    assert before.taken, before.said
    wrong: list[str] = []

    def same(what: str, one: Reading, other: Reading, *fields: str) -> None:
        if not other.taken:
            wrong.append(f"{what}: {other.said}")
        wrong.extend(
            f"{what}: {field}: {getattr(one, field)} -> {getattr(other, field)}"
            for field in fields
            if other.taken and getattr(one, field) != getattr(other, field)
        )

    shared = ("values", "given", "listeners", "between_brokers", "log_dirs")
    plain = ("advertised",) if b"control.plane" not in raw else ()  # whose listener ends with the second roll
    protocols = {**before.protocols, asked.controller_listener.upper(): asked.controller_access.protocol}
    number = before.mode.split()[2]
    readings = {name: kafka.read(getattr(found, name)) for name in Edits.__slots__}
    for what, moment, mode, more in (
        ("migration", Moment.FIRST_ROLL, f"Set() True {number}", ("version", "zookeeper", "advertised")),
        ("kraft", Moment.SECOND_ROLL, f"Set(broker) False {number}", plain),
    ):
        ours, reading = owned(moment), readings[what]
        same(what, before.besides(ours), reading.besides(ours), *shared, *more)
        same(what, replace(before, protocols=protocols, mode=mode), reading, "protocols", "mode")
    same("back", before, readings["back"], "values", "given", "listeners", "zookeeper", "mode")
    taken, controller = set(config_keys.taken(parse(raw))) - {"super.users"}, readings["controller"]
    same("controller", before.of(taken), controller.of(taken), "values", "zookeeper", "between_brokers")
    mode = f"Set(controller) True {int(asked.controllers[0].id)}"
    same("controller", replace(before, protocols=protocols, mode=mode), controller, "protocols", "mode")
    same("finalized", controller, readings["finalized"], "listeners", "between_brokers", "log_dirs", "protocols")
    kraft = readings["kraft"].besides(["log.dirs"])
    same("fewer", kraft, readings["fewer"].besides(["log.dirs"]), *shared, "mode", "protocols")
    grown = replace(kraft, log_dirs=(*kraft.log_dirs, "/new/a", "/new/b"))
    same("more", grown, readings["more"].besides(["log.dirs"]), *shared, "mode")
    return list(dict.fromkeys(wrong))


@pytest.mark.parametrize("name", ODD)
def test_what_kafka_takes_it_takes_after_every_edit(kafka: KafkaReads, name: str) -> None:
    """With every value that no stage owns as it was, by Kafka's own reading."""
    raw = file_of(ODD[name])
    assert differences(kafka, raw, known(raw)) == []


@pytest.mark.parametrize("name", ODD)
def test_no_check_refuses_what_kafka_takes(kafka: KafkaReads, name: str) -> None:
    """Of the checks that are about forms of values."""
    assert kafka.read(file_of(ODD[name])).taken
    assert findings(file_of(ODD[name])) == []


NOT_HERE = {  # what the files of other tests name, and Kafka would look for
    b"control.plane.listener.name=CONTROL\n": b"",
    b"control.plane.listener.name = CONTROL\n": b"",
    b"control.plane.listener.name=CONTROL\r\n": b"",
    b"principal.builder.class=com.example.Principals\n": b"",
    b"${file:/etc/kafka/secrets:keystore}": b"hush",
}


@pytest.mark.parametrize("name", [name for name in GIVEN if name != "written-twice"])
def test_the_files_of_other_tests_are_taken_after_every_edit(kafka: KafkaReads, name: str) -> None:
    """Those of them that Kafka takes."""
    raw = GIVEN[name]
    for text, other in NOT_HERE.items():
        raw = raw.replace(text, other)
    if kafka.read(raw).taken:
        raw = configuration.with_protocol(raw)
        assert kafka.read(raw).version == "3.9-IV0"
        assert differences(kafka, raw, known(raw)) == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_kafka_refuses_is_named_before_anything_is_edited(kafka: KafkaReads, name: str) -> None:
    """By a blocker of `prepare` that names the key."""
    change, wanted = REFUSED[name]
    raw = file_of(change)
    assert not kafka.read(raw).taken
    assert any(wanted in message for message in findings(raw)), findings(raw)
    if set(change) & {"broker.id", "node.id"} == set():  # edits of what is refused end in a file, not in a traceback
        edits(raw, worlds.inventory())


FORM_CODES = {"B-CFG-03", "B-CFG-04", "B-CFG-10", "B-CFG-11", "B-CFG-13", "B-CFG-21", "B-VER-02", "B-VER-03"}


def findings(raw: bytes) -> list[str]:
    """What the checks of forms say of that file, as the only one that is seen."""
    world = worlds.world_at(Stage.ASSESS)
    inventory, node = world.inventory, world.inventory.brokers[1]
    with contextlib.suppress(ValueError):
        text = parse(raw).get(CONNECT, "")
        connect_string(text)
        inventory = replace(inventory, zookeeper=text)
    file = worlds.config_file(node.id, node.config, raw)
    world = replace(world, inventory=inventory, configs={node.id: file})
    looked = [(code, CHECKS[code].decide(CHECKS[code].look(world).value, world)) for code in sorted(FORM_CODES)]
    return [f"{code} {hit.message}" for code, hits in looked for hit in hits if isinstance(hit, Hit)]


NAMES = st.sampled_from(["A", "b", "In.ner", "C-1", "d_2"])
CASES: list[Callable[[str], str]] = [str.upper, str.lower, str]
BLANKS = st.sampled_from(["", "", " ", "\\t", "  "])


@st.composite
def listed(draw: st.DrawFn, parts: list[str], *, first: bool = False) -> str:
    """Entries with commas as Kafka takes them: blanks around them, and empty ones at the end (`first`: anywhere)."""
    inner = [f"{draw(BLANKS)}{part}{draw(BLANKS)}" for part in parts]
    if first:
        for _ in range(draw(st.integers(0, 2))):
            inner.insert(draw(st.integers(0, len(inner))), draw(BLANKS))
    return ",".join(inner) + draw(st.sampled_from(["", "", ",", ", ,", " , "]))


@st.composite
def drawn(draw: st.DrawFn) -> tuple[bytes, str, str]:
    """A file that Kafka takes, and the controllers' listener with its protocol."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.upper))
    cased = {name: draw(st.sampled_from(CASES)) for name in names}
    protocols = {name: draw(st.sampled_from(["PLAINTEXT", "SSL", "sasl_ssl", "Sasl_Plaintext"])) for name in names}
    ports = {name: 9000 + place for place, name in enumerate(names)}
    ends = draw(st.permutations([f"{cased[name](name)}://{{}}:{ports[name]}" for name in names]))
    spelled = [f"{name}{draw(BLANKS)}:{draw(BLANKS)}{protocols[name]}" for name in draw(st.permutations(names))]
    change: Change = {
        MAP: draw(listed(spelled)),
        LISTENERS: draw(listed([one.format(draw(st.sampled_from(["", "h", "[::1]"]))) for one in ends], first=True)),
        BETWEEN: draw(st.sampled_from(CASES))(names[0]),
        "log.dirs": draw(listed(draw(st.lists(st.sampled_from(["/a", "/b/", "//c", "/d e"]), min_size=1)), first=True)),
        CONNECT: draw(listed(["z1", "z2:2182", "[::2]:1"], first=True))
        + draw(st.sampled_from(["", "/", "/k", "/k,z:1/k"])),
        "broker.id": draw(st.sampled_from(["1", "+1", "01"])),
        "auto.create.topics.enable": draw(st.sampled_from(["true", "TRUE", "False "])),
        "num.io.threads": draw(st.sampled_from(["8", "+8", "008"])),
    }
    if draw(st.booleans()):
        change[ADVERTISED] = draw(listed([one.format("adv.example") for one in ends], first=True))
    return file_of(change), "CTL", draw(st.sampled_from(["PLAINTEXT", "SASL_SSL"]))


@given(drawn())
@settings(max_examples=40, phases=(Phase.generate,))
def test_drawn_files_are_taken_after_every_edit(kafka: KafkaReads, case: tuple[bytes, str, str]) -> None:
    """The forms mixed: case, blanks, empties, orders."""
    raw, listener, protocol = case
    assert differences(kafka, raw, known(raw, listener, protocol)) == []
    assert list(refusals(parse(raw))) == []
