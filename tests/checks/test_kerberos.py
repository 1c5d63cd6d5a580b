"""Principals of Kerberos, as the called node's rules read them: from the file, and from the process's JAAS file."""

from __future__ import annotations

from dataclasses import replace

from migrate import checks
from migrate.checks.principals import Called, caller, kerberos_user
from migrate.checks.registry import Blind
from migrate.model.findings import Finding, Severity
from migrate.model.inventory import Access, AddedProperties, Kerberos
from migrate.model.launch import NOT_RUNNING, JaasLogin, Launch
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import NOT_ASKED, World
from tests.checks.bends import KRB5, kerberized, launched, of, then, values
from tests.testing.worlds import world_at

CODES = ("B-SEC-03", "B-SEC-06", "B-SEC-13", "B-SEC-16", "B-SEC-22", "B-SEC-29")
RULES = "sasl.kerberos.principal.to.local.rules"
LOGIN = JaasLogin("com.sun.security.auth.module.Krb5LoginModule", principal="kafka/b1.x@REALM", service="kafka")
NODES = (3000, 3001, 3002)
NO_JAAS = {"listener__name__ctl__gssapi__sasl__jaas__config": None}


def found(world: World) -> list[Finding]:
    """What stops the controllers' start for reasons of logins."""
    tool = Access("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("kafka/tool.x@REALM"))
    world = replace(world, inventory=replace(world.inventory, controller_access=tool))
    return [one for one in checks.run(world, target=Stage.CLEANUP) if one.code in CODES]


def test_a_cluster_with_kerberos_on_the_controllers_listener_is_not_refused() -> None:
    """Each node, and the tool, is User:kafka by Kafka's own rule."""
    assert found(kerberized()(world_at(Stage.PREPARE))) == []


def test_rules_on_the_brokers_alone_leave_the_controllers_with_another_name() -> None:
    """Super users of the rules' name do not let in who comes without it."""
    bent = then(
        kerberized(super__users="User:brokers"),
        values(0, sasl__kerberos__principal__to__local__rules="RULE:[2:$1](kafka)s/.*/brokers/"),
    )
    codes = {(one.code, one.severity) for one in found(bent(world_at(Stage.PREPARE)))}
    assert codes == {("B-SEC-06", Severity.BLOCKER), ("B-SEC-22", Severity.BLOCKER)}


def test_a_login_of_the_jaas_file_counts_where_the_file_has_none() -> None:
    """Of the listener's own section first; a process without any is told, one that was not seen is a blind spot."""
    for logins, expected in (
        ({"KafkaServer": (LOGIN,)}, set()),
        ({"ctl.KafkaServer": (LOGIN,), "KafkaServer": ()}, set()),
        ({}, {"B-SEC-06", "B-SEC-29"}),
        (Unknown("denied"), {"B-SEC-06"}),
    ):
        world = then(kerberized(**NO_JAAS), launched(3000, logins=logins))(world_at(Stage.PREPARE))
        assert {one.code for one in found(world)} <= expected | {"B-SEC-06"}
        assert bool(found(world)) is bool(expected)
    unseen = replace(then(kerberized(**NO_JAAS))(world_at(Stage.PREPARE)), launches=NOT_ASKED)
    assert found(unseen) == []


def test_a_controller_that_does_not_run_yet_is_asked_before_the_first_broker_is_restarted() -> None:
    """Its command line is seen once it runs; where a broker follows controllers already, no controller is started."""
    unseen = then(kerberized(**NO_JAAS), *(launched(node, logins=NOT_RUNNING, realm=NOT_RUNNING) for node in NODES))
    early = found(unseen(world_at(Stage.PREPARE)))
    assert {one.code for one in early} == {"B-SEC-06", "B-SEC-22"}
    assert {one.blocks_from for one in early if one.code == "B-SEC-06"} == {Stage.MIGRATION_MODE}
    late = found(then(unseen, values(1, zookeeper__metadata__migration__enable="true"))(world_at(Stage.PREPARE)))
    assert {one.blocks_from for one in late if one.code == "B-SEC-06"} == {Stage.CONTROLLERS}


def test_brokers_lack_controllers_of_another_principal_before_the_first_restart() -> None:
    """It adds to super.users what files alone say: neither a user of Kerberos nor one of a JAAS file is among it."""
    key = "listener__name__internal__{}__sasl__jaas__config"
    other = replace(LOGIN, principal="kraft/c@REALM")
    spoken = "INTERNAL:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT"
    for mechanism, jaas, user, missed in (
        ("GSSAPI", f'{KRB5} principal="kraft/c@REALM";', None, True),
        ("GSSAPI", f'{KRB5} principal="kafka/c@REALM";', None, False),
        ("GSSAPI", None, other, True),
        ("PLAIN", None, JaasLogin("PlainLoginModule", username="kraft"), True),
        ("PLAIN", 'PlainLoginModule required username="kraft" password="p";', None, False),
    ):
        logins = {"KafkaServer": (user,)} if user else {}
        keys = {key.format(mechanism.lower()): jaas, "sasl__mechanism__inter__broker__protocol": mechanism}
        bent = then(
            kerberized(),
            *(values(node, listener__security__protocol__map=spoken) for node in (0, 1, 2, *NODES)),
            *(values(node, **keys) for node in NODES),
            *(launched(node, realm="REALM", logins=logins) for node in NODES),
        )
        told = of(bent(world_at(Stage.CONTROLLERS)), "B-SEC-07")
        assert {one.about[:8] for one in told} == ({"broker 0", "broker 1", "broker 2"} if missed else set()), jaas
        assert all("lacks User:kraft" in one.message for one in told)


def test_a_broker_needs_the_services_name_before_its_first_restart() -> None:
    """The controllers' listener and its protocol are the inventory's: a file in ZooKeeper mode names neither."""
    fresh = values(
        1,
        listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT",
        controller__listener__names=None,
        sasl__kerberos__service__name=None,
    )
    world = then(kerberized(), fresh)(world_at(Stage.PREPARE))
    told = [one.message for one in found(world) if one.code == "B-SEC-29" and one.about.startswith("broker 1")]
    assert told == ["no sasl.kerberos.service.name, and no serviceName in its login for listener CTL"]
    added = AddedProperties("/b", {"sasl.kerberos.service.name": "kafka"})
    assert found(replace(world, inventory=replace(world.inventory, broker_properties=added))) == []


def test_options_for_zookeeper_are_missed_as_long_as_a_controller_calls_it() -> None:
    """A finalized one does not, and is started without them; the KDC's stay."""
    option, kdc = "-Dzookeeper.sasl.client.username=zk", "-Djava.security.krb5.conf"
    bent = then(kerberized(), launched(0, zookeeper_sasl=(option,), files={kdc: "/k"}))
    for connect, expected in (("zk1:2181", {option, kdc}), (None, {kdc})):
        ended = then(bent, *(values(node, zookeeper__connect=connect) for node in NODES))(world_at(Stage.PREPARE))
        told = [one.message for one in found(ended) if one.about.startswith("controller 3000")]
        assert {word.strip(",") for text in told for word in text.split() if word.startswith("-D")} == expected


def test_who_cannot_be_named_is_a_blind_spot() -> None:
    """No default realm, rules that are not read, a principal that no rule is for, no principal."""
    for principal, rules, realm in (
        ("kafka/b1@REALM", "DEFAULT", Unknown("no default_realm")),
        ("kafka/b1@REALM", "nonsense", "REALM"),
        ("kafka/b1@OTHER", "DEFAULT", "REALM"),
        ("", "DEFAULT", "REALM"),
    ):
        assert isinstance(kerberos_user(principal, Called({RULES: rules}, realm), "CTL"), Blind)
    assert kerberos_user("kafka/b1@REALM", Called({f"listener.name.ctl.{RULES}": "RULE:[2:$1]/U"}, "REALM"), "CTL") == (
        "User:KAFKA"
    )


def test_a_password_login_of_a_jaas_file_has_its_users_name() -> None:
    """Several modules in one section name nobody."""
    plain = JaasLogin("PlainLoginModule", username="broker")
    for modules, expected in (((plain,), "User:broker"), ((plain, LOGIN), None)):
        launch = Launch("/c", logins={"KafkaServer": modules})
        said = caller({"m": "PLAIN"}, "CTL", "SASL_SSL", "m", launch)
        assert said == expected if expected else isinstance(said, Blind)
