"""Everything that is known to go wrong in a secured cluster: a wrong file of the secured lab, found before the start.

The files are the lab's own (brokers) and the migration's (controllers, both rolls); each row bends one of them as a
person would, and names the check that must stop the stage in which the process would start. No process is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate import checks
from migrate.checks.registry import CHECKS
from migrate.hosts.properties import edit, parse
from migrate.lab import secured
from migrate.lab.configure import broker_file, inventory_of, make_secrets
from migrate.lab.topology import Shape, plan_topology
from migrate.model.broker_modes import restarted
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties, Inventory
from migrate.model.listeners import StoreFile, stores_named
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZnodeAcl
from migrate.model.world import World
from migrate.steps import configuration
from tests.checks.bends import OPEN_READ, acls, entity, launched
from tests.checks.cases import CLOSED, NO_LOGIN, REFUSED_LOGIN, STRANGE_LOGIN
from tests.testing import worlds
from tests.testing.blocking import blocking
from tests.testing.worlds import config_file, with_zk, world_at

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
AUTHORIZER, SUPER, ANYBODY = "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"
CTL_LOGIN, INNER_LOGIN = "listener.name.ctl.plain.sasl.jaas.config", "listener.name.internal.plain.sasl.jaas.config"
CTL_MECHANISM, INNER_MECHANISM = "sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol"
CONTROLLERS, BROKERS = (3000, 3001, 3002), (0, 1, 2)
Bend = Callable[[World], World]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Inventory, dict[int, bytes]]:
    """The secured lab's inventory, and its brokers' files, as `lab up --secured` writes them."""
    return written(tmp_path_factory.mktemp("rows") / "lab", "PLAIN")


def written(folder: Path, mechanism: str) -> tuple[Inventory, dict[int, bytes]]:
    """The same for a mechanism."""
    topology = plan_topology(folder, Shape(secured=True, mechanism=mechanism))
    topology.folder("conf").mkdir(parents=True)
    passwords = make_secrets(topology)
    for name, text in secured.added_files(topology, passwords).items():
        path = topology.folder("conf", name)
        path.touch(mode=0o600)
        path.write_text(text)
    files = {broker.id: broker_file(topology, broker, passwords).encode() for broker in topology.brokers}
    return inventory_of(topology), files


def secured_world(stage: Stage, rendered: tuple[Inventory, dict[int, bytes]]) -> World:
    """The healthy world of that stage with the secured lab's inventory and files, its znodes the brokers' alone."""
    known, plain = rendered
    known = replace(known, zookeeper=worlds.inventory().zookeeper)
    world = CLOSED(world_at(stage))
    configs = {}
    rolled = {} if stage < Stage.MIGRATION_MODE else dict.fromkeys(BROKERS[:2] if stage < Stage.HYBRID else BROKERS)
    for broker in known.brokers:
        raw = plain[int(broker.id)]
        raw = edit(raw, {"zookeeper.connect": known.zookeeper}, ())
        raw = configuration.migration_mode(raw, known) if int(broker.id) in rolled else raw
        raw = configuration.kraft_mode(raw, known, broker) if stage >= Stage.KRAFT_MODE else raw
        configs[broker.id] = config_file(broker.id, broker.config, raw)
    template = parse(edit(plain[0], {"zookeeper.connect": known.zookeeper}, ()))
    for node in known.controllers:
        configs[node.id] = config_file(node.id, node.config, configuration.controller(template, known, node))
    return replace(
        world, inventory=known, configs=configs, stores={node: stores(known, configs[node]) for node in configs}
    )


def stores(known: Inventory, file: ConfigFile) -> tuple[StoreFile, ...]:
    """What a node starts from: all there, and valid for years."""
    values = restarted(file.values, known.broker_properties)
    keys = stores_named(values, known.controller_listener, known.controller_access.protocol)
    return tuple(StoreFile(key, values[key], "" if "trust" in key else "2099-01-01") for key in keys)


def wrong(*nodes: int, **changed: str | None) -> Bend:
    """Keys (`__` for a dot) of those nodes' files set, or taken out with None, in the file's own bytes."""

    def bend(world: World) -> World:
        assert isinstance(world.configs, Mapping)
        configs = dict(world.configs)
        for node in map(NodeId, nodes):
            file = configs[node]
            assert isinstance(file, ConfigFile)
            given = {name.replace("__", "."): value for name, value in changed.items()}
            put = {name: value for name, value in given.items() if value is not None}
            gone = [name for name, value in given.items() if value is None]
            configs[node] = config_file(node, file.path, edit(file.raw, put, gone))
        return replace(world, configs=configs)

    return bend


def keys(*nodes: int, **changed: str | None) -> Bend:
    """The same with constants as names."""
    return wrong(*nodes, **{globals()[name].replace(".", "__"): value for name, value in changed.items()})


def replaced(*nodes: int, key: str, old: str, new: str) -> Bend:
    """One text in a value of those nodes' files."""

    def bend(world: World) -> World:
        assert isinstance(world.configs, Mapping)
        for node in nodes:
            value = world.configs[NodeId(node)].values[key]  # type: ignore[union-attr]
            assert old in value
            world = wrong(node, **{key.replace(".", "__"): value.replace(old, new)})(world)
        return world

    return bend


def without_added(world: World) -> World:
    """The inventory names no file to be added to brokers."""
    return replace(world, inventory=replace(world.inventory, broker_properties=None))


def added_wrongly(key: str, value: str | None) -> Bend:
    """One key of what is added to brokers."""

    def bend(world: World) -> World:
        given = world.inventory.broker_properties
        assert given is not None
        found = {name: text for name, text in given.values.items() if name != key}
        found |= {} if value is None else {key: value}
        return replace(world, inventory=replace(world.inventory, broker_properties=AddedProperties(given.path, found)))

    return bend


def tokens(world: World) -> World:
    """ZooKeeper holds a delegation token."""
    return entity("delegation-token", "hmac:1", "owner", "User:a")(world)


PREPARED, HYBRID, KRAFT = Stage.PREPARE, Stage.HYBRID, Stage.KRAFT_MODE


@dataclass(frozen=True)
class Row:
    """What is left out or wrong, in which files; the check, the stage that it must stop, and the object it names."""

    what: str
    bend: Bend
    code: str
    stops: Stage | None  # None: told before that stage, and nothing is stopped
    about: str
    seen_at: Stage = PREPARED
    blind: bool = False  # a JAAS file might have it: not seeing it stops the stage all the same


ROWS = (
    Row(
        "controllers do not let in the brokers",
        keys(*CONTROLLERS, SUPER="User:controller;User:admin"),
        "B-SEC-06",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "one controller alone does not let in the brokers, in hybrid",
        keys(3002, SUPER="User:controller;User:admin"),
        "B-SEC-06",
        Stage.CONTROLLERS,
        "controller 3002",
        HYBRID,
    ),
    Row(
        "controllers do not let in each other",
        keys(*CONTROLLERS, SUPER="User:broker;User:admin"),
        "B-SEC-06",
        Stage.CONTROLLERS,
        "controller 3001",
    ),
    Row(
        "everybody is allowed where no ACL speaks, instead of super users",
        keys(*CONTROLLERS, SUPER=None, ANYBODY="true"),
        "B-SEC-06",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row("no authorizer", keys(*CONTROLLERS, AUTHORIZER=None), "B-SEC-01", Stage.CONTROLLERS, "controller 3000"),
    Row("no authorizer, in hybrid", keys(3001, AUTHORIZER=None), "B-SEC-01", Stage.CONTROLLERS, "3001", HYBRID),
    Row(
        "brokers do not let in the controllers",
        keys(1, SUPER="User:broker;User:admin"),
        "B-SEC-07",
        Stage.MIGRATION_MODE,
        "broker 1",
        HYBRID,
    ),
    Row(
        "AclAuthorizer on a controller",
        keys(3000, AUTHORIZER=ACL_AUTHORIZER),
        "B-SEC-02",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "AclAuthorizer in a KRaft broker's file",
        keys(1, AUTHORIZER=ACL_AUTHORIZER),
        "B-SEC-02",
        Stage.CONTROLLERS,
        "broker 1",
        KRAFT,
    ),
    Row(
        "AclAuthorizer and zookeeper.connect in a KRaft broker's file",
        wrong(1, authorizer__class__name=ACL_AUTHORIZER, zookeeper__connect="zk1:2181/kafka"),
        "B-SEC-02",
        Stage.CONTROLLERS,
        "broker 1",
        KRAFT,
    ),
    Row(
        "zookeeper.connect in a KRaft broker's file",
        wrong(1, zookeeper__connect="zk1:2181/kafka"),
        "B-CFG-12",
        Stage.FINALIZE,
        "broker 1",
        KRAFT,
    ),
    Row(
        "no password.encoder.secret on a controller",
        wrong(3001, password__encoder__secret=None),
        "B-SEC-04",
        Stage.CONTROLLERS,
        "node 3001",
    ),
    Row(
        "another password.encoder.secret on a controller",
        wrong(3001, password__encoder__secret="another"),
        "B-SEC-04",
        Stage.CONTROLLERS,
        "node 3001",
    ),
    Row(
        "a password that the secret does not open",
        lambda world: with_zk(world, undecodable=("/config/brokers/1 ssl.keystore.password",)),
        "B-SEC-15",
        Stage.CONTROLLERS,
        "/config/brokers/1",
        Stage.ASSESS,
    ),
    Row(
        "a dynamic login that will be lost",
        entity("broker-config", "1", "listener.name.client.plain.sasl.jaas.config", "hmac:1"),
        "W-SEC-09",
        None,
        "/config/brokers/1",
    ),
    Row(
        "the ACLs are in another ZooKeeper",
        wrong(1, authorizer__zookeeper__url="zkacl:2181/acl"),
        "B-SEC-27",
        Stage.PREPARE,
        "broker 1",
    ),
    Row(
        "a dynamic login that stands in no file",
        entity("broker-config", "1", "listener.name.client.scram-sha-256.sasl.jaas.config", "hmac:1"),
        "B-SEC-20",
        Stage.MIGRATION_MODE,
        "broker 1",
        HYBRID,
    ),
    Row(
        "the brokers' mechanism is not enabled on a controller",
        wrong(3000, listener__name__internal__sasl__enabled__mechanisms="SCRAM-SHA-512"),
        "B-SEC-13",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "no mechanism for the brokers' listener on a controller",
        keys(3000, INNER_MECHANISM=None),
        "B-SEC-13",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "no login for the brokers' listener on a controller",
        keys(3000, INNER_LOGIN=None),
        "B-SEC-13",
        Stage.CONTROLLERS,
        "controller 3000",
        blind=True,
    ),
    Row(
        "no mechanism for the controller listener on brokers",
        added_wrongly(CTL_MECHANISM, None),
        "B-SEC-16",
        Stage.MIGRATION_MODE,
        "broker 0",
    ),
    Row(
        "no login for the controller listener on brokers",
        added_wrongly(CTL_LOGIN, None),
        "B-SEC-16",
        Stage.MIGRATION_MODE,
        "broker 0",
        blind=True,
    ),
    Row("nothing is added to brokers", without_added, "B-SEC-16", Stage.MIGRATION_MODE, "broker 2"),
    Row(
        "brokers' password for the controller listener is mistyped",
        added_wrongly(CTL_LOGIN, 'X required username="broker" password="mistyped";'),
        "B-SEC-17",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "brokers come as somebody whom controllers do not know",
        added_wrongly(CTL_LOGIN, 'X required username="stranger" password="x";'),
        "B-SEC-17",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "the controllers' password for the brokers' listener is mistyped",
        replaced(3001, key=INNER_LOGIN, old='password="', new='password="mistyped'),
        "B-SEC-17",
        Stage.CONTROLLERS,
        "broker 0",
    ),
    Row(
        "zookeeper.set.acl and no login for ZooKeeper on a controller's process",
        launched(3000, zookeeper_client=NO_LOGIN),
        "B-SEC-21",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "another ZooKeeper identity on a controller's process",
        launched(3001, zookeeper_client=STRANGE_LOGIN),
        "B-SEC-21",
        Stage.CONTROLLERS,
        "controller 3001",
    ),
    Row(
        "a wrong ZooKeeper password on a controller's process",
        launched(3002, zookeeper_client=REFUSED_LOGIN),
        "B-SEC-21",
        Stage.CONTROLLERS,
        "controller 3002",
    ),
    Row(
        "znodes of two identities",
        acls({"/config": (OPEN_READ, ZnodeAcl(31, "sasl", "a")), "/brokers": (ZnodeAcl(31, "sasl", "b"),)}),
        "B-SEC-05",
        Stage.CONTROLLERS,
        "ZooKeeper's ACLs",
    ),
    Row(
        "zookeeper.set.acl is not set on a controller",
        wrong(3001, zookeeper__set__acl=None),
        "W-SEC-11",
        None,
        "controller 3001",
    ),
    Row(
        "the brokers' listener has no protocol on a controller",
        replaced(3002, key="listener.security.protocol.map", old="INTERNAL:SASL_SSL,", new=""),
        "B-CFG-06",
        Stage.CONTROLLERS,
        "controller 3002",
    ),
    Row(
        "no delegation.token.secret.key on a controller, and there are tokens",
        lambda world: tokens(wrong(3000, delegation__token__secret__key=None)(world)),
        "B-SEC-10",
        Stage.CONTROLLERS,
        "node 3000",
    ),
    Row(
        "another delegation.token.secret.key on a controller",
        wrong(3000, delegation__token__secret__key="another"),
        "B-SEC-10",
        Stage.CONTROLLERS,
        "node 3000",
    ),
    Row("users made in hybrid can be read by everybody", lambda world: world, "W-SEC-12", None, "/config/users"),
    *(
        Row(
            "the brokers call each other without TLS",
            replaced(
                *BROKERS,
                key="listener.security.protocol.map",
                old="INTERNAL:SASL_SSL",
                new="INTERNAL:SASL_PLAINTEXT",
            ),
            code,
            None,
            "the network",
        )
        for code in ("W-SEC-23", "I-SEC-24")
    ),
    Row(
        "SCRAM among the controllers",
        keys(*CONTROLLERS, CTL_MECHANISM="SCRAM-SHA-512"),
        "B-SEC-03",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    *(
        Row(
            f"a {role}'s listener takes tokens that nobody signed",
            wrong(node, **{f"listener__name__{listener}__sasl__enabled__mechanisms": "PLAIN,OAUTHBEARER"}),
            "B-SEC-28",
            Stage.PREPARE,
            f"{role} {node}",
        )
        for role, node, listener in (("controller", 3000, "ctl"), ("broker", 1, "client"))
    ),
    Row(
        "a broker would call the controllers with a token that nobody signed",
        keys(1, CTL_MECHANISM="OAUTHBEARER"),
        "B-SEC-30",
        Stage.HYBRID,
        "broker 1",
        Stage.HYBRID,
    ),
    Row(
        "this tool is no super user of a controller",
        keys(3001, SUPER="User:broker;User:controller"),
        "B-SEC-22",
        Stage.CONTROLLERS,
        "controller 3001",
    ),
    Row(
        "an authorizer on the controllers alone",
        keys(*BROKERS, AUTHORIZER=None),
        "B-SEC-19",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
    Row(
        "a class of the brokers' own, and Kafka's on the controllers",
        keys(*BROKERS, AUTHORIZER="org.example.Authorizer"),
        "B-SEC-19",
        Stage.CONTROLLERS,
        "controller 3000",
    ),
)
ALWAYS_TOLD = {"W-SEC-12", "I-SEC-24"}  # with zookeeper.set.acl, and of connections that are not encrypted


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_a_wrong_file_is_found_before_the_process_that_would_suffer(
    row: Row, rendered: tuple[Inventory, dict[int, bytes]]
) -> None:
    """By its code, with the object; silent before; what is to start is stopped; no secret is told."""
    world = secured_world(row.seen_at, rendered)
    entry = CHECKS[row.code]
    if row.code not in ALWAYS_TOLD:
        assert entry.look(world).missing == ()
        assert list(entry.decide(entry.look(world).value, world)) == []
    wanted = Severity.BLIND_SPOT if row.blind else Severity(row.code[0])
    bent = row.bend(world)
    every = checks.run(bent, target=Stage.CLEANUP)
    found = [one for one in every if one.code == row.code and one.severity is wanted]
    assert [one for one in found if row.about in one.about], found
    assert all(one.fix and one.message for one in found)
    if row.stops is not None:
        assert blocking(found, row.stops) == tuple(found)
    assert not [word for word in secrets(bent) if word in repr(every)]


@pytest.mark.parametrize("stage", [Stage.PREPARE, Stage.MIGRATION_MODE, Stage.HYBRID, Stage.KRAFT_MODE])
def test_files_with_tokens_are_rendered_whole(stage: Stage, tmp_path: Path) -> None:
    """In every stage; controllers log in as themselves, and have none of the brokers' secrets."""
    world = secured_world(stage, written(tmp_path / "lab", "OAUTHBEARER"))
    found = [one for one in checks.run(world, target=Stage.CLEANUP) if "-SEC-" in one.code and one.code[0] == "B"]
    assert [one for one in found if one.code not in ("B-SEC-25", "B-SEC-29", "B-SEC-30")] == []
    assert [one for one in found if one.severity is Severity.BLOCKER] == []
    word = (tmp_path / "lab/secrets" / secured.BROKER).read_text().strip()
    assert isinstance(world.configs, Mapping)
    for node in CONTROLLERS:
        values = world.configs[NodeId(node)].values  # type: ignore[union-attr]
        assert 'clientId="controller"' in values["listener.name.internal.oauthbearer.sasl.jaas.config"]
        assert not [key for key, value in values.items() if word in value]
        assert {"User:broker", "User:controller", "User:admin"} == set(values["super.users"].split(";"))


def secrets(world: World) -> set[str]:
    """Passwords of the files."""
    assert isinstance(world.configs, Mapping)
    found = {"mistyped"}
    for file in world.configs.values():
        for key, value in getattr(file, "values", {}).items():
            if key.endswith((".password", ".secret", "secret.key")):
                found.add(value)
            elif key.endswith("jaas.config"):
                found |= {part.split('"')[0] for part in value.split('="')[1:] if len(part.split('"')[0]) > 12}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stage", [Stage.PREPARE, Stage.CONTROLLERS, HYBRID, KRAFT], ids=lambda stage: stage.label)
def test_what_the_migration_renders_for_a_secured_cluster_has_no_finding_about_its_security(
    stage: Stage, rendered: tuple[Inventory, dict[int, bytes]]
) -> None:
    """Right by construction, at every stage; only what is true of every such cluster is told."""
    found = checks.run(secured_world(stage, rendered), target=Stage.CLEANUP)
    about = [entry for entry in found if "-SEC-" in entry.code]
    assert {entry.code for entry in about if entry.severity is not Severity.INFO} <= {"W-SEC-12", "W-SEC-14"}


def test_every_security_check_has_a_row() -> None:
    """A check about secured clusters that no wrong file makes fire is one that nobody has seen."""
    ours = {code for code in checks.CODES if "-SEC-" in code}
    told_once = {"W-SEC-14", "W-SEC-18", "B-SEC-25", "W-SEC-26", "B-SEC-29"}  # ACLs, stores, Kerberos: cases.py
    assert ours - {row.code for row in ROWS} == told_once
