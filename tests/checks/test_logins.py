"""Logins of both sides: what is the same passes, what differs is named without a password."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.model.findings import Severity
from migrate.model.inventory import Access, AddedProperties, SecretFile, ZookeeperLogin
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ZnodeAcl
from migrate.model.world import World
from tests.checks.bends import CALLED_BACK, OPEN_READ, SECURED, acls, called_back, login, of, then, values
from tests.testing.worlds import world_at

PREPARED = Stage.CONTROLLERS


def test_a_secured_cluster_whose_sides_agree_has_no_finding() -> None:
    """Nothing is cried at what is right."""
    for bend in (SECURED, CALLED_BACK):
        found = bend(world_at(PREPARED))
        assert of(found, "B-SEC-16") == of(found, "B-SEC-17") == of(found, "B-SEC-07") == []


def test_the_inventorys_additions_count_before_the_first_restart() -> None:
    """A broker's file lacks the login until the migration adds it."""
    bare = then(
        SECURED,
        values(1, sasl__mechanism__controller__protocol=None, listener__name__ctl__plain__sasl__jaas__config=None),
    )(world_at(PREPARED))
    assert [entry.severity for entry in of(bare, "B-SEC-16")] == [Severity.BLOCKER]
    jaas = 'X required username="broker" password="p";'
    added = {"sasl.mechanism.controller.protocol": "PLAIN", "listener.name.ctl.plain.sasl.jaas.config": jaas}
    known = replace(bare.inventory, broker_properties=AddedProperties("/b", added))
    assert of(replace(bare, inventory=known), "B-SEC-16") == []
    wrong = {**added, "listener.name.ctl.plain.sasl.jaas.config": jaas.replace('"p"', '"q"')}
    known = replace(bare.inventory, broker_properties=AddedProperties("/b", wrong))
    assert {entry.about for entry in of(replace(bare, inventory=known), "B-SEC-17")} == {
        f"controller {node}: /conf/c{node}.properties" for node in (3000, 3001, 3002)
    }


def test_a_login_outside_the_file_is_a_blind_spot() -> None:
    """A JAAS file of the process may have it: unknown, and not fine."""
    bare = then(SECURED, values(1, listener__name__ctl__plain__sasl__jaas__config=None))(world_at(PREPARED))
    (found,) = of(bare, "B-SEC-16")
    assert found.severity is Severity.BLIND_SPOT


@pytest.mark.parametrize("bend", [login(1, "broker", "canary"), called_back(3000, "canary"), called_back(0, "canary")])
def test_no_password_stands_in_a_finding(bend: object) -> None:
    """Neither the wrong one nor the right one."""
    assert callable(bend)
    found = checks.run(then(CALLED_BACK, bend)(world_at(PREPARED)), target=Stage.CLEANUP)
    assert not [entry for entry in found if "canary" in repr(entry) or '"p"' in repr(entry)]


def test_a_password_of_a_configuration_provider_is_not_compared() -> None:
    """Only the node can resolve it."""
    for user, password in (("broker", "${file:/x:y}"), ("${file:/x:y}", "p")):
        found = of(then(SECURED, login(1, user, password))(world_at(PREPARED)), "B-SEC-17")
        assert {entry.severity for entry in found} == {Severity.BLIND_SPOT}


def test_our_identity_in_zookeeper_is_held_against_the_znodes() -> None:
    """The brokers' is silent, another or none is told before the night."""
    closed = acls({"/config": (OPEN_READ, ZnodeAcl(31, "sasl", "kafka"))})(world_at(Stage.ASSESS))
    for user, expected in (("kafka", 0), ("other", 1), ("", 1)):
        password = SecretFile("/pw") if user else None
        known = replace(closed.inventory, zookeeper_login=ZookeeperLogin(user, password))
        assert len(of(replace(closed, inventory=known), "W-SEC-18")) == expected
    certificates = acls({"/config": (OPEN_READ, ZnodeAcl(31, "x509", "CN=k"))})(world_at(Stage.ASSESS))
    assert [entry.severity for entry in of(certificates, "W-SEC-18")] == [Severity.WARNING]


def test_two_passwords_that_differ_behind_a_quote_are_two() -> None:
    """A quote within is escaped: what stands behind it belongs to the password."""
    same, other = 'a\\"b', 'a\\"c'  # as they stand in the configuration's value
    for first, second, expected in ((same, same, 0), (same, other, 3)):
        jaas = f'X required username="broker" password="{first}" user_broker="{first}";'
        late = f'X required username="broker" password="{second}";'
        both = then(
            SECURED,
            *(values(node, listener__name__ctl__plain__sasl__jaas__config=jaas) for node in (3000, 3001, 3002)),
            *(values(node, listener__name__ctl__plain__sasl__jaas__config=late) for node in (0, 1, 2)),
        )
        found = [entry for entry in of(both(world_at(PREPARED)), "B-SEC-17") if "user broker" in entry.message]
        assert len({entry.about for entry in found}) == expected


@pytest.mark.slow
@pytest.mark.parametrize("text", ["hmac:0123", "${file:/secrets:jaas}", 'X required username="broker'])
def test_a_login_that_cannot_be_read_is_a_blind_spot(text: str) -> None:
    """A digest of the collector, a provider's reference, a quote without its end: nothing of it is guessed."""
    bent = values(1, listener__name__ctl__plain__sasl__jaas__config=text)
    found = then(SECURED, bent)(world_at(PREPARED))
    assert Severity.BLIND_SPOT in {entry.severity for entry in of(found, "B-SEC-17")}
    assert Severity.BLIND_SPOT in {entry.severity for entry in of(found, "B-SEC-06")}
    assert bool(of(found, "B-SEC-16")) is not text.startswith("${")  # there is a login, whatever it says
    assert text not in repr(checks.run(found, target=Stage.CLEANUP))


def test_a_login_by_a_delegation_token_has_its_owners_name() -> None:
    """The user name is the token's id there: super.users has the owner."""
    token = 'org.X required username="id" password="p" tokenauth="true";'
    bent = values(
        1,
        sasl__mechanism__controller__protocol="SCRAM-SHA-512",
        **{"listener__name__ctl__scram-sha-512__sasl__jaas__config": token},
    )
    found = of(then(SECURED, bent)(world_at(PREPARED)), "B-SEC-06")
    assert Severity.BLIND_SPOT in {entry.severity for entry in found}
    assert "User:id" not in repr(found)


# -- what is not encrypted ---------------------------------------------------------------------------------------------
def told(world: World, code: str) -> list[str]:
    """The messages of that code."""
    return [entry.message for entry in checks.run(world, target=Stage.CLEANUP) if entry.code == code]


def test_every_connection_without_tls_is_named_by_its_listener_in_one_finding() -> None:
    """Between the nodes by their files, ours by the inventory and the port; ZooKeeper as long as there is one."""
    assert told(world_at(Stage.PREPARE), "I-SEC-24") == [
        (
            "not encrypted: the brokers' listener INTERNAL (PLAINTEXT); the controllers' listener CTL (PLAINTEXT); "
            "this tool to the brokers at listener INTERNAL (PLAINTEXT); "
            "this tool to the controllers at listener CTL (PLAINTEXT); this tool to ZooKeeper (no TLS)"
        )
    ]
    (after,) = told(world_at(Stage.CLEANUP), "I-SEC-24")
    assert "ZooKeeper" not in after


def test_a_credential_in_clear_is_a_warning_and_a_challenge_is_none() -> None:
    """PLAIN and OAUTHBEARER send it; SCRAM and GSSAPI, and Kafka's default where no mechanism is named, do not."""
    world = SECURED(world_at(Stage.PREPARE))
    assert told(world, "W-SEC-23") == [
        "a credential is sent in clear: the controllers' listener CTL (SASL_PLAINTEXT, PLAIN)"
    ]
    (all_of_them,) = told(world, "I-SEC-24")
    assert "the controllers' listener CTL (SASL_PLAINTEXT, PLAIN)" in all_of_them
    for mechanism, clear in (("PLAIN", 1), ("OAUTHBEARER", 1), ("SCRAM-SHA-512", 0), ("GSSAPI", 0), (None, 0)):
        bend = then(
            *(
                values(
                    node,
                    listener__security__protocol__map="INTERNAL:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT,CTL:SSL",
                    sasl__mechanism__inter__broker__protocol=mechanism,
                )
                for node in (0, 1, 2)
            )
        )
        assert len(told(bend(world_at(Stage.ASSESS)), "W-SEC-23")) == clear, mechanism


def test_the_tools_own_password_in_clear_is_told_with_the_listener_that_its_port_is_of() -> None:
    """By the inventory's access, to brokers and to controllers."""
    access = Access("SASL_PLAINTEXT", "PLAIN", "tool", SecretFile("p"))
    world = world_at(Stage.ASSESS)
    ours = replace(world, inventory=replace(world.inventory, broker_access=access, controller_access=access))
    assert told(ours, "W-SEC-23") == [
        (
            "a credential is sent in clear: this tool to the brokers at listener INTERNAL (SASL_PLAINTEXT, PLAIN); "
            "this tool to the controllers at listener CTL (SASL_PLAINTEXT, PLAIN)"
        )
    ]
    unseen = replace(ours, configs=Unknown("no host may be reached"))
    assert "this tool to the brokers (SASL_PLAINTEXT, PLAIN)" in told(unseen, "W-SEC-23")[-1]


def test_where_everything_has_tls_nothing_is_told() -> None:
    """Nor is a client's listener that no node and not this tool uses."""
    world = world_at(Stage.PREPARE)
    inventory = replace(
        world.inventory,
        broker_access=Access("SSL"),
        controller_access=Access("SASL_SSL", "PLAIN", "tool", SecretFile("p")),
        zookeeper_login=ZookeeperLogin(tls=True),
    )
    mapped = "INTERNAL:SSL,CLIENT:SASL_PLAINTEXT,CTL:SASL_SSL"
    bend = then(
        *(
            values(node, listener__security__protocol__map=mapped, sasl__mechanism__controller__protocol="PLAIN")
            for node in (0, 1, 2, 3000, 3001, 3002)
        )
    )
    found = checks.run(bend(replace(world, inventory=inventory)), target=Stage.CLEANUP)
    assert [entry for entry in found if entry.code in ("W-SEC-23", "I-SEC-24")] == []
