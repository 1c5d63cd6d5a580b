"""The keys that change in each stage, on files such as operators have."""

from dataclasses import replace
from typing import Final

import pytest

from migrate.checks.principals import STANDARD_AUTHORIZER
from migrate.hosts.properties import edit, parse
from migrate.model import config_keys
from migrate.model.broker_modes import node_mode
from migrate.model.config_keys import Fate, Moment
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, KraftAuthorizer
from migrate.model.listeners import DEFAULT_PROTOCOL_MAP
from migrate.steps import configuration

BROKER = b"""# the broker of rack a
broker.id=1
listeners=INTERNAL://b1:9092,CLIENT://b1:9093

# where the data is
log.dirs=/d0,/d1,/d2
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT
zookeeper.connect=zk1:2181/kafka
zookeeper.session.timeout.ms=6000
inter.broker.protocol.version=3.9
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:ANONYMOUS;User:admin
password.encoder.secret=hush
min.insync.replicas=2
broker.id.generation.enable=false
control.plane.listener.name=CONTROL
listener.name.client.plain.sasl.jaas.config=secret-of-clients
custom.key=kept
"""


def inventory() -> Inventory:
    """One broker, three controllers."""
    controllers = tuple(
        ControllerNode(NodeId(3000 + n), f"c{n}", f"c{n}:9090", f"/etc/c{n}.properties", f"/meta/{n}") for n in range(3)
    )
    return Inventory(
        name="t",
        path="i.yaml",
        zookeeper="zk1:2181/kafka",
        brokers=(BrokerNode(NodeId(1), "b1", "b1:9093", "/etc/b1.properties"),),
        controllers=controllers,
        controller_listener="CTL",
        broker_access=Access(),
        controller_access=Access(),
        password_encoder_secret=None,
        executor="none",
    )


def test_migration_mode_adds_four_things_and_takes_nothing() -> None:
    """The broker still serves from ZooKeeper."""
    before, after = parse(BROKER), parse(configuration.migration_mode(BROKER, inventory()))
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert changed == {
        "zookeeper.metadata.migration.enable",
        "controller.quorum.voters",
        "controller.listener.names",
        "listener.security.protocol.map",
    }
    assert after["controller.quorum.voters"] == "3000@c0:9090,3001@c1:9090,3002@c2:9090"
    assert after["listener.security.protocol.map"].endswith(",CTL:PLAINTEXT")
    assert node_mode(after) == "migration"


def test_kraft_mode_leaves_nothing_of_zookeeper_and_keeps_what_is_the_operators() -> None:
    """No flag, no connect string, no protocol version; the authorizer is KRaft's."""
    migrating = configuration.migration_mode(BROKER, inventory())
    raw = configuration.kraft_mode(migrating, inventory(), inventory().brokers[0])
    after = parse(raw)
    assert not [key for key in after if key.startswith("zookeeper.")]
    assert not config_keys.removed(after, Moment.SECOND_ROLL)
    assert after["process.roles"] == "broker"
    assert after["node.id"] == "1"
    assert after["authorizer.class.name"] == STANDARD_AUTHORIZER
    assert after["custom.key"] == "kept"
    assert b"# the broker of rack a" in raw
    assert b"# where the data is" in raw
    assert node_mode(after) == "kraft"


def test_an_authorizer_of_the_operators_own_is_left_alone() -> None:
    """Only AclAuthorizer has a known successor."""
    own = BROKER.replace(b"kafka.security.authorizer.AclAuthorizer", b"com.example.OwnAuthorizer")
    raw = configuration.kraft_mode(own, inventory(), inventory().brokers[0])
    assert parse(raw)["authorizer.class.name"] == "com.example.OwnAuthorizer"


@pytest.mark.parametrize(
    "written", ["kafka.security.authorizer.AclAuthorizer ", "kafka.security.authorizer.AclAuthorizer\t"]
)
def test_a_blank_behind_the_authorizers_name_does_not_keep_it(written: str) -> None:
    """Kafka trims the value; left in a KRaft file, AclAuthorizer has no ZooKeeper and the broker dies at its start."""
    own = BROKER.replace(b"kafka.security.authorizer.AclAuthorizer", written.encode())
    migrating = configuration.migration_mode(own, inventory())
    assert f"authorizer.class.name={written}\n".encode() in migrating, "a line that does not change keeps its bytes"
    raw = configuration.kraft_mode(migrating, inventory(), inventory().brokers[0])
    assert parse(raw)["authorizer.class.name"] == STANDARD_AUTHORIZER


def test_an_authorizer_without_a_value_is_none() -> None:
    """The controllers have one exactly where the brokers have one."""
    bare = parse(BROKER.replace(b"kafka.security.authorizer.AclAuthorizer", b" "))
    rendered = parse(configuration.controller(bare, inventory(), inventory().controllers[0]))
    assert "authorizer.class.name" not in rendered


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("INTERNAL:PLAINTEXT, CTL : PLAINTEXT ", "INTERNAL:PLAINTEXT, CTL : PLAINTEXT"),
        ("INTERNAL:PLAINTEXT,ctl:plaintext", "INTERNAL:PLAINTEXT,ctl:plaintext"),
        ("CTL:SSL,INTERNAL:PLAINTEXT", "INTERNAL:PLAINTEXT,CTL:PLAINTEXT"),
        (" ctl : SSL ,INTERNAL:PLAINTEXT", "INTERNAL:PLAINTEXT,CTL:PLAINTEXT"),
    ],
)
def test_the_controller_listeners_protocol_is_the_inventorys(given: str, written: str) -> None:
    """An equal entry keeps its spelling; one with another protocol is never kept."""
    raw = f"broker.id=1\nzookeeper.connect=zk:2181\nlistener.security.protocol.map={given}\n".encode()
    after = parse(configuration.migration_mode(raw, inventory()))
    assert after["listener.security.protocol.map"] == written


def test_a_file_without_a_protocol_map_gets_kafkas_default_and_the_controllers_listener() -> None:
    """Setting the map replaces the default as a whole."""
    bare = b"broker.id=1\nzookeeper.connect=zk:2181\n"
    after = parse(configuration.migration_mode(bare, inventory()))
    assert after["listener.security.protocol.map"] == DEFAULT_PROTOCOL_MAP + ",CTL:PLAINTEXT"


def test_a_second_edit_changes_nothing() -> None:
    """Each edit is idempotent, byte for byte."""
    once = configuration.migration_mode(BROKER, inventory())
    assert configuration.migration_mode(once, inventory()) == once
    kraft = configuration.kraft_mode(once, inventory(), inventory().brokers[0])
    assert configuration.kraft_mode(kraft, inventory(), inventory().brokers[0]) == kraft


def test_a_controller_has_the_flag_the_authorizer_and_the_brokers_secrets() -> None:
    """Each of these, left out, takes the cluster down or opens it."""
    node = inventory().controllers[1]
    after = parse(configuration.controller(parse(BROKER), inventory(), node))
    assert after["zookeeper.metadata.migration.enable"] == "true"
    assert after["zookeeper.connect"] == "zk1:2181/kafka"
    assert after["authorizer.class.name"] == STANDARD_AUTHORIZER
    assert after["super.users"] == "User:ANONYMOUS;User:admin"
    assert after["password.encoder.secret"] == "hush"
    assert after["inter.broker.listener.name"] == "INTERNAL"
    assert after["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:PLAINTEXT"
    assert after["listeners"] == "CTL://c1:9090"
    assert after["metadata.log.dir"] == "/meta/1"
    assert after["min.insync.replicas"] == "2"
    assert "broker.id" not in after
    assert "listener.name.client.plain.sasl.jaas.config" not in after
    assert node_mode(after) == "controller"


def test_a_controller_has_no_authorizer_where_brokers_have_none() -> None:
    """It would deny everything."""
    open_cluster = {key: value for key, value in parse(BROKER).items() if key != "authorizer.class.name"}
    after = parse(configuration.controller(open_cluster, inventory(), inventory().controllers[0]))
    assert "authorizer.class.name" not in after


def test_a_finalized_controller_has_neither_flag_nor_zookeeper() -> None:
    """All else stays."""
    before = configuration.controller(parse(BROKER), inventory(), inventory().controllers[0])
    after = parse(configuration.finalized_controller(before))
    assert not [key for key in after if key.startswith("zookeeper.")]
    assert after == {key: value for key, value in parse(before).items() if not key.startswith("zookeeper.")}
    assert node_mode(after) == "finalized"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("zookeeper.connect=z", "zookeeper"),
        ("zookeeper.metadata.migration.enable=TRUE", "migration"),
        ("process.roles=broker", "kraft"),
        ("process.roles=broker\nzookeeper.metadata.migration.enable=true", "kraft"),
        ("process.roles=controller\nzookeeper.metadata.migration.enable=true", "controller"),
        ("process.roles=controller", "finalized"),
        ("process.roles=broker,controller", "combined"),
    ],
)
def test_a_nodes_mode_is_told_by_its_file(text: str, mode: str) -> None:
    """The flag means something else on brokers and controllers."""
    assert node_mode(parse(text.encode())) == mode


def test_brokers_files_of_a_real_cluster_become_what_worked_there() -> None:
    """The values that matter equal those of a cluster that went through every stage."""
    text = b"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:19010\nzookeeper.connect=127.0.0.1:19000\n"
    text += b"inter.broker.protocol.version=3.9\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT\n"
    after = parse(configuration.kraft_mode(text, inventory(), inventory().brokers[0]))
    assert set(after) == {
        "listeners",
        "listener.security.protocol.map",
        "process.roles",
        "node.id",
        "controller.quorum.voters",
        "controller.listener.names",
    }


def test_a_controller_takes_the_settings_of_the_listeners_that_it_has_or_calls() -> None:
    """Those of clients' listeners, with their passwords, stay with the brokers."""
    values = {
        **parse(BROKER),
        "listener.name.internal.plain.sasl.jaas.config": "calls brokers",
        "listener.name.ctl.plain.sasl.jaas.config": "calls controllers",
        "listener.name.client.ssl.keystore.password": "of clients",
        "listener.name.internal2.ssl.keystore.password": "of others",
    }
    after = parse(configuration.controller(values, inventory(), inventory().controllers[0]))
    assert {key for key in after if key.startswith("listener.name.")} == {
        "listener.name.internal.plain.sasl.jaas.config",
        "listener.name.ctl.plain.sasl.jaas.config",
    }


OWN: Final = {
    "authorizer.class.name": "org.example.Own",
    "own.url": "https://policies",
    "own.token": "hush",
    "metric.reporters": "org.example.Reporter",
    "confluent.metrics.reporter.topic": "m",
    "ssl.key.password": "k",
}
SUCCESSOR: Final = KraftAuthorizer("org.example.Kraft", {"kraft.url": "https://new"})


@pytest.mark.parametrize(
    ("brokers", "inventorys", "controllers"),
    [
        ("localhost:2181/kafka", "zk1:2181/kafka", "zk1:2181/kafka"),
        ("127.0.0.1:2181,zk2:2181/kafka", "zk1:2181/kafka", "zk1:2181/kafka"),
        ("zk2:2181/kafka", "zk1:2181/kafka", "zk2:2181/kafka"),
        ("localhost:2181", "localhost:2181", "localhost:2181"),
        ("localhost:2181", "", "localhost:2181"),
    ],
)
def test_a_controller_calls_no_zookeeper_of_its_own_host_because_a_broker_does(
    brokers: str, inventorys: str, controllers: str
) -> None:
    """ZooKeeper beside each broker: on a controller's host there is none, or another cluster's."""
    known = replace(inventory(), zookeeper=inventorys)
    values = parse(configuration.controller({"zookeeper.connect": brokers}, known, known.controllers[0]))
    assert values["zookeeper.connect"] == controllers


def test_a_controller_has_the_providers_that_open_the_brokers_kind_of_stores() -> None:
    """Without them ssl.keystore.type=BCFKS ends its start."""
    fips = {"security.providers": "org.example.Fips", "ssl.keystore.type": "BCFKS"}
    known = inventory()
    assert fips.items() <= parse(configuration.controller(fips, known, known.controllers[0])).items()


def test_a_class_of_somebody_elses_comes_to_the_controllers_with_what_it_alone_knows() -> None:
    """Its keys, and a listener that opens before its policies are there; what Kafka defines goes by the table."""
    broker = {**parse(BROKER), **OWN}
    after = parse(configuration.controller(broker, inventory(), inventory().controllers[0]))
    assert {key: after[key] for key in OWN if key in after} == {
        key: OWN[key] for key in ("authorizer.class.name", "own.url", "own.token", "ssl.key.password")
    }
    assert after["early.start.listeners"] == inventory().controller_listener
    plain = parse(configuration.controller(parse(BROKER), inventory(), inventory().controllers[0]))
    assert "early.start.listeners" not in plain


@pytest.mark.parametrize("kraft", [SUCCESSOR, KraftAuthorizer(STANDARD_AUTHORIZER, {})], ids=["own", "kafkas"])
def test_its_successor_is_written_in_the_second_roll_and_into_controllers_at_once(
    kraft: KraftAuthorizer,
) -> None:
    """Migration mode keeps the brokers' class; each edit once more changes nothing."""
    raw = edit(BROKER, {"authorizer.class.name": "org.example.Own", "own.url": "x"}, ())
    first = configuration.migration_mode(raw, inventory())
    assert parse(first)["authorizer.class.name"] == "org.example.Own"
    second = configuration.kraft_mode(first, inventory(), inventory().brokers[0], kraft)
    assert configuration.kraft_mode(second, inventory(), inventory().brokers[0], kraft) == second
    rendered = configuration.controller(parse(raw), inventory(), inventory().controllers[0], None, kraft)
    for values in (parse(second), parse(rendered)):
        assert values["authorizer.class.name"] == kraft.name
        assert kraft.properties.items() <= values.items()


def test_where_nobody_asks_for_rights_no_successor_is_written() -> None:
    """B-SEC-19 says that it stands in the playbook for nothing."""
    bare = edit(BROKER, {}, ["authorizer.class.name"])
    for raw in (
        configuration.kraft_mode(bare, inventory(), inventory().brokers[0], SUCCESSOR),
        configuration.controller(parse(bare), inventory(), inventory().controllers[0], None, SUCCESSOR),
    ):
        assert not {"authorizer.class.name", *SUCCESSOR.properties} & {*parse(raw)}


def test_overrides_of_the_playbook_stand_in_a_controllers_file_and_never_replace_what_is_ours() -> None:
    """Those of the operator's own keys alone, whoever asks for more."""
    wanted = {"num.io.threads": "3", "ssl.keystore.location": "/c.p12", "node.id": "7", "min.insync.replicas": "1"}
    after = parse(configuration.controller(parse(BROKER), inventory(), inventory().controllers[0], wanted))
    assert (after["num.io.threads"], after["ssl.keystore.location"]) == ("3", "/c.p12")
    assert (after["node.id"], after["min.insync.replicas"]) == ("3000", "2")


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("log.dirs=/d0,/d1", "/d0,/d1,/d2"),
        ("log.dirs= /d0/ , /d1, ", "/d0/,/d1,/d2"),
        ("log.dirs=/d2,/d0", None),
        ("log.dirs=/d0,/d2/", None),
        ("log.dirs= /d0 , /d2", None),
        ("log.dir=/d2", None),
        ("log.dir=/d0", "/d0,/d2"),
        ("log.dirs=/d0\nlog.dir=/other", "/d0,/d2"),
        ("log.dirs=\nlog.dir=/d0", "/d0,/d2"),
        ("num.io.threads=8", "/tmp/kafka-logs,/d2"),
    ],
)
def test_a_new_directory_stands_behind_those_that_the_broker_has(given: str, after: str | None) -> None:
    """As they are spelled; one that is there already leaves the file as it is, to the byte."""
    raw = given.encode() + b"\n"
    made = configuration.with_directories(raw, ["/d2"])
    assert parse(made).get("log.dirs") == after if after else made == raw


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("log.dirs= /d0/ ,/d1,/d2,", "/d0/,/d1"),
        ("log.dirs=/d0,/d2/", "/d0"),
        ("log.dirs=/d0,/d1", None),
        ("log.dir=/d0", None),
    ],
)
def test_a_directory_that_is_taken_out_leaves_the_others_as_they_are_spelled(given: str, after: str | None) -> None:
    """And the file to the byte where it was none of them."""
    raw = given.encode() + b"\n"
    made = configuration.without_directories(raw, ["/d2"])
    assert parse(made).get("log.dirs") == after if after else made == raw


def test_a_key_that_the_table_does_not_announce_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents and the plan are made from the table: another key would reach a file unseen."""
    monkeypatch.setattr(config_keys, "fate", lambda *_: Fate.KEPT)
    with pytest.raises(AssertionError, match="the table of keys does not say so"):
        configuration.migration_mode(BROKER, inventory())


def test_a_listeners_name_may_have_dots() -> None:
    """Its keys are in the controllers' file, and those of a listener whose name only begins alike are not."""
    values = {
        "zookeeper.connect": "zk1:2181",
        "inter.broker.listener.name": "in.ner",
        "listener.name.in.ner.ssl.client.auth": "required",
        "listener.name.in.ssl.client.auth": "none",
    }
    found = parse(configuration.controller(values, inventory(), inventory().controllers[0]))
    assert [key for key in found if key.startswith("listener.name.")] == ["listener.name.in.ner.ssl.client.auth"]
