"""The small readers behind the checks: what a file, a world or a part of it comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks import availability, config, phase, principals, quorum, registry, sight
from migrate.checks.phase import Phase
from migrate.checks.registry import Blind
from migrate.checks.sight import Sight
from migrate.model import kafka_values
from migrate.model.broker_modes import FLAG, Mode, mode_of
from migrate.model.ids import NodeId
from migrate.model.listeners import inter_broker_listener
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MigrationZnode, NoFile, Running, Stopped
from migrate.model.world import NOT_ASKED, World
from tests.testing import worlds
from tests.testing.worlds import with_entity, with_zk, world_at

HIDDEN = Unknown("hidden")


# -- phase -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (Stage.ASSESS, Phase.BEFORE_COPY),
        (Stage.CONTROLLERS, Phase.BEFORE_COPY),
        (Stage.MIGRATION_MODE, Phase.BEFORE_COPY),
        (Stage.COPY, Phase.DUAL_WRITE),
        (Stage.SOAK, Phase.DUAL_WRITE),
        (Stage.FINALIZE, Phase.FINALIZED),
        (Stage.CLEANUP, Phase.FINALIZED),
    ],
)
def test_the_phase_is_the_metadatas_own_word(stage: Stage, expected: Phase) -> None:
    """By ZkMigrationState."""
    assert phase.phase_of(world_at(stage)) is expected


def test_without_the_metadata_the_owner_of_controller_decides() -> None:
    """A persistent znode with an epoch is a KRaft controller's."""
    assert phase.phase_of(replace(world_at(Stage.HYBRID), kraft=HIDDEN)) is Phase.DUAL_WRITE
    assert phase.phase_of(replace(world_at(Stage.CONTROLLERS), kraft=HIDDEN)) is Phase.BEFORE_COPY
    assert phase.phase_of(replace(world_at(Stage.HYBRID), kraft=HIDDEN, zookeeper=HIDDEN)) is Phase.BEFORE_COPY


WAITING = MigrationZnode(-1, -1, -1, -1, 0)


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(world_at(Stage.ASSESS), True, id="no /migration"),
        pytest.param(world_at(Stage.CONTROLLERS), False, id="the metadata is read"),
        pytest.param(replace(world_at(Stage.ASSESS), zookeeper=HIDDEN), False, id="ZooKeeper is not seen"),
        pytest.param(replace(world_at(Stage.HYBRID), kraft=HIDDEN), False, id="KRaft owns /controller"),
        pytest.param(replace(world_at(Stage.CONTROLLERS), kraft=HIDDEN), False, id="controllers run"),
        pytest.param(
            replace(with_zk(world_at(Stage.ASSESS), migration=WAITING), services=HIDDEN), False, id="processes not seen"
        ),
        pytest.param(
            replace(
                with_zk(world_at(Stage.ASSESS), migration=WAITING),
                services={node: Stopped() for node in worlds.CONTROLLERS},
            ),
            True,
            id="all stopped",
        ),
        pytest.param(
            replace(
                with_zk(world_at(Stage.ASSESS), migration=WAITING),
                services={node: Stopped() if node != 3002 else Running(1, 1.0, None) for node in worlds.CONTROLLERS},
            ),
            False,
            id="one runs",
        ),
    ],
)
def test_that_there_is_no_quorum_must_be_known(world: World, expected: bool) -> None:
    """Otherwise what is unseen would count as not there."""
    assert phase.no_quorum_yet(world) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Mode.ZOOKEEPER),
        ({FLAG: "false"}, Mode.ZOOKEEPER),
        ({FLAG: " TRUE "}, Mode.MIGRATION),
        ({"process.roles": "broker", FLAG: "true"}, Mode.KRAFT),
        ({"process.roles": " , "}, Mode.ZOOKEEPER),
    ],
)
def test_a_brokers_mode_is_that_of_its_file(values: dict[str, str], expected: Mode) -> None:
    """As Kafka reads the two keys."""
    assert mode_of(values) is expected


# -- sight -------------------------------------------------------------------------------------------------------
def test_a_part_of_some_nodes_gives_the_known_ones_and_names_the_others() -> None:
    """Unknown, not looked at, and not there are three things."""
    world = world_at(Stage.HYBRID)
    assert not isinstance(world.configs, Unknown)
    configs = {**world.configs, NodeId(0): HIDDEN, NodeId(3000): NoFile("/conf/c")}
    del configs[NodeId(1)]
    bent = replace(world, configs=configs)
    found = sight.broker_configs(bent)
    assert list(found.value or ()) == [2]
    assert found.missing == (
        ("the configuration of broker 0", "hidden"),
        ("the configuration of broker 1", "it was not read"),
    )
    everything = sight.node_configs(bent)
    assert sorted(everything.value or ()) == [2, 3001, 3002]
    (said,) = (reason for part, reason in everything.missing if part == "the configuration of controller 3000")
    assert said.startswith("/conf/c does not exist; where it was there, `apply`")


def test_two_parts_are_decided_only_where_both_are_known() -> None:
    """And what is missing of either is told once."""
    look = sight.both(sight.zookeeper, sight.zookeeper)
    assert look(World(inventory=worlds.inventory())) == Sight(None, (("ZooKeeper", NOT_ASKED.reason),))
    assert look(world_at(Stage.ASSESS)).value is not None


def test_before_a_quorum_there_is_nothing_to_miss() -> None:
    """No blind spot for what cannot exist yet."""
    world = world_at(Stage.ASSESS)
    for look in (sight.kraft, sight.live_quorum, sight.controller_answers, sight.controller_configs):
        assert look(world) == Sight(None)


# -- files -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3000@c0:9090,3001@c1:9090", {3000: "c0:9090", 3001: "c1:9090"}),
        (" 1@[::1]:9 , 2@b:1 ", {1: "[::1]:9", 2: "b:1"}),
        ("", {}),
        ("x@y,7,@z", {}),
    ],
)
def test_voters_are_read_as_kafka_writes_them(text: str, expected: dict[int, str]) -> None:
    """Malformed ones are left out, and so differ from the inventory's."""
    assert quorum.voters_of(text) == expected


@pytest.mark.parametrize(
    ("connect", "expected"),
    [("a:1", "/"), ("a:1,b:2/", "/"), ("a:1,b:2/kafka", "/kafka"), ("a:1/x/y ", "/x/y"), ("a:1/x/", None)],
)
def test_the_chroot_follows_the_last_server(connect: str, expected: str | None) -> None:
    """Once, for all servers; Kafka refuses one that ends with a slash."""
    assert config.chroot_of(connect) == expected


@pytest.mark.parametrize(
    ("values", "listener", "protocol"),
    [
        ({}, "PLAINTEXT", "PLAINTEXT"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL", "SSL"),
        (
            {"inter.broker.listener.name": "INT", "listener.security.protocol.map": "ext:SSL, int : SASL_SSL"},
            "INT",
            "SASL_SSL",
        ),
    ],
)
def test_the_inter_broker_listener_has_a_name_and_a_protocol(
    values: dict[str, str], listener: str, protocol: str
) -> None:
    """Kafka's defaults included; names count in any case."""
    assert (inter_broker_listener(values), config.protocol_of(values)) == (listener, protocol)


@pytest.mark.parametrize("text", ["", "x", "1.0", "9" * 40, "--1", "--", "-", "1_0"])
def test_what_is_no_number_is_none(text: str) -> None:
    """No exception: Kafka refuses them, too."""
    assert kafka_values.number(text) is None


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        ('X required username="broker" password="p";', "User:broker"),
        ("X required username='bro ker' password=p;", "User:bro ker"),
        ("X required username=broker;", "User:broker"),
        ('X required serviceusername="no" user_a="b";', None),
        ("", None),
    ],
)
def test_the_principal_of_a_login_is_its_username(jaas: str, expected: str | None) -> None:
    """In the forms that JAAS allows; without one nothing is guessed."""
    values = {"m": "PLAIN", "listener.name.ctl.plain.sasl.jaas.config": jaas}
    found = principals.caller(values, "CTL", "SASL_SSL", "m")
    assert found == expected if expected else isinstance(found, Blind)
    assert "password" not in repr(found)


def test_principals_that_only_kafka_can_tell_are_blind_spots() -> None:
    """TLS subjects, Kerberos, and builders of one's own."""
    for values, protocol in (({}, "SSL"), ({}, "SASL_PLAINTEXT"), ({"principal.builder.class": "x"}, "PLAINTEXT")):
        assert isinstance(principals.caller(values, "CTL", protocol, "m"), Blind)
    assert principals.caller({}, "CTL", "PLAINTEXT", "m") == "User:ANONYMOUS"
    of_one = {"listener.name.ctl.principal.builder.class": "x"}
    assert isinstance(principals.caller(of_one, "CTL", "PLAINTEXT", "m"), Blind)
    called = principals.Called(of_one, Unknown("no realm"))
    assert isinstance(principals.caller({}, "CTL", "PLAINTEXT", "m", called=called), Blind)


def test_kafkas_own_builder_makes_the_principals_that_it_makes_unnamed() -> None:
    """A file that writes the default out has the default; a listener of another name has none of that builder."""
    for values in (
        {principals.BUILDER: principals.DEFAULT_BUILDER},
        {"listener.name.client.principal.builder.class": "x"},
    ):
        assert principals.caller(values, "CTL", "PLAINTEXT", "m") == "User:ANONYMOUS"


# -- availability ------------------------------------------------------------------------------------------------
def test_topics_suffer_by_the_nearest_setting_and_an_unreadable_file_is_a_blind_spot() -> None:
    """The rule itself: tests/model/test_availability.py."""
    world = world_at(Stage.ASSESS)
    dynamic = with_entity(world, "broker-config", "<default>", "min.insync.replicas", "3")
    assert set(availability.suffering(worlds.zk(dynamic), dynamic).topics) == {"t0", "t1"}
    own = with_entity(dynamic, "topic-config", "t1", "min.insync.replicas", "1")
    assert set(availability.suffering(worlds.zk(own), own).topics) == {"t0"}
    hidden = replace(world, configs=HIDDEN)
    for check in (availability.unavailable_in_restarts, availability.unavailable_unaccepted):
        (blind,) = [hit for hit in check(worlds.zk(hidden), hidden) if isinstance(hit, Blind)]
        assert blind.about == "min.insync.replicas of the brokers"


def test_once_every_broker_is_kraft_no_acceptance_is_asked_for() -> None:
    """There is no restart ahead that would take a topic away."""
    world = with_entity(world_at(Stage.SOAK), "topic-config", "t0", "min.insync.replicas", "3")
    assert [entry for entry in registry.run_all(world) if entry.code == "B-HLT-02"] == []
    earlier = with_entity(world_at(Stage.HYBRID), "topic-config", "t0", "min.insync.replicas", "3")
    assert [entry.about for entry in registry.run_all(earlier) if entry.code == "B-HLT-02"] == ["topic t0"]
