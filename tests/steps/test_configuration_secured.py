"""A secured cluster's files: what brokers and controllers need of each other is in them by construction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks.principals import STANDARD_AUTHORIZER, caller, super_users
from migrate.hosts.properties import parse
from migrate.model.broker_modes import with_added
from migrate.model.inventory import Access, AddedProperties, Inventory
from migrate.model.listeners import protocols
from migrate.steps import configuration
from tests.steps.test_configuration import inventory

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BROKER = f"""\
broker.id=1
listeners=INTERNAL://b1:9092,CLIENT://b1:9093
listener.security.protocol.map=INTERNAL:SASL_SSL,CLIENT:SASL_SSL
inter.broker.listener.name=INTERNAL
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.internal.sasl.enabled.mechanisms=PLAIN
listener.name.internal.plain.sasl.jaas.config={PLAIN} username="broker" password="b" user_broker="b";
listener.name.client.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=clients
ssl.keystore.location=/etc/broker.p12
ssl.truststore.location=/etc/ca.pem
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:broker;User:admin
zookeeper.connect=zk1:2181/kafka
zookeeper.set.acl=true
password.encoder.secret=hush
password.encoder.iterations=5000
delegation.token.secret.key=tokens
""".encode()
TO_BROKERS = {
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.ctl.plain.sasl.jaas.config": f'{PLAIN} username="broker" password="b";',
}
TO_CONTROLLERS = {
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.ctl.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.ctl.plain.sasl.jaas.config": f'{PLAIN} username="controller" password="c" user_broker="b";',
    "listener.name.internal.plain.sasl.jaas.config": f'{PLAIN} username="controller" password="c";',
    "ssl.keystore.location": "/etc/controller.p12",
}


def secured() -> Inventory:
    """SASL_SSL on the controller listener, a principal of their own for the controllers."""
    return replace(
        inventory(),
        controller_access=Access("SASL_SSL", "PLAIN", "admin"),
        broker_properties=AddedProperties("/b", TO_BROKERS),
        controller_properties=AddedProperties("/c", TO_CONTROLLERS),
    )


def controller(raw: bytes = BROKER, known: Inventory | None = None) -> dict[str, str]:
    """A rendered controller's values."""
    known = known or secured()
    return parse(configuration.controller(parse(raw), known, known.controllers[0]))


def test_a_controller_can_call_the_brokers_listener() -> None:
    """Name, protocol, mechanism, login: without them its start fails, or it hangs after the copy."""
    found = controller()
    assert found["inter.broker.listener.name"] == "INTERNAL"
    assert protocols(found)["INTERNAL"] == "SASL_SSL"
    assert found["sasl.mechanism.inter.broker.protocol"] == "PLAIN"
    assert found["listener.name.internal.sasl.enabled.mechanisms"] == "PLAIN"
    assert 'username="controller"' in found["listener.name.internal.plain.sasl.jaas.config"]


def test_a_controller_has_its_own_listeners_login_and_store() -> None:
    """What the operator adds wins over what brokers have; the rest is the brokers'."""
    found = controller()
    assert {key: found[key] for key in TO_CONTROLLERS} == TO_CONTROLLERS
    assert protocols(found)["CTL"] == "SASL_SSL"
    assert found["ssl.truststore.location"] == "/etc/ca.pem"


def test_a_controller_gets_nothing_of_the_clients_listener() -> None:
    """It does not serve it, and its passwords are not its business."""
    assert not [key for key in controller() if key.startswith("listener.name.client.")]


def test_a_controller_shares_what_copies_and_znodes_depend_on() -> None:
    """Passwords encoded alike, tokens signed alike, znodes closed alike, ACLs enforced."""
    found = controller()
    for key in ("password.encoder.secret", "password.encoder.iterations", "delegation.token.secret.key"):
        assert found[key] == parse(BROKER)[key]
    assert found["zookeeper.set.acl"] == "true"
    assert found["authorizer.class.name"] == STANDARD_AUTHORIZER


def test_controllers_let_in_brokers_and_each_other() -> None:
    """Left out, every migration-mode broker dies the second such a controller becomes active."""
    assert controller()["super.users"] == "User:broker;User:admin;User:controller"
    without = BROKER.replace(b"super.users=User:broker;User:admin", b"super.users=User:admin")
    assert controller(without)["super.users"] == "User:admin;User:broker;User:controller"
    assert controller(BROKER.replace(b"super.users=User:broker;User:admin\n", b""))["super.users"] == (
        "User:broker;User:controller"
    )


def test_super_users_that_are_added_do_not_push_out_the_brokers() -> None:
    """The file's stay let in."""
    known = secured()
    more = {**TO_CONTROLLERS, "super.users": "User:ops"}
    known = replace(known, controller_properties=AddedProperties("/c", more))
    assert controller(known=known)["super.users"] == "User:ops;User:admin;User:broker;User:controller"


@pytest.mark.parametrize("mode", ["migration", "kraft"])
def test_brokers_let_in_the_controllers_and_can_call_them(mode: str) -> None:
    """From the first restart on, before any controller calls a broker."""
    known = secured()
    raw = configuration.migration_mode(BROKER, known)
    if mode == "kraft":
        raw = configuration.kraft_mode(raw, known, known.brokers[0])
    found = parse(raw)
    assert found["super.users"] == "User:broker;User:admin;User:controller"
    assert {key: found[key] for key in TO_BROKERS} == TO_BROKERS
    assert protocols(found)["CTL"] == "SASL_SSL"
    assert found["ssl.keystore.location"] == "/etc/broker.p12"


def test_both_sides_hold_against_the_checks() -> None:
    """The checks' own reading of who calls whom finds nobody missing."""
    known = secured()
    broker, own = parse(configuration.migration_mode(BROKER, known)), controller()
    calls = [
        (own, caller(broker, "CTL", "SASL_SSL", "sasl.mechanism.controller.protocol")),
        (own, caller(own, "CTL", "SASL_SSL", "sasl.mechanism.controller.protocol")),
        (broker, caller(own, "INTERNAL", "SASL_SSL", "sasl.mechanism.inter.broker.protocol")),
    ]
    for called, principal in calls:
        assert principal in super_users(called)


def test_nobody_without_a_name_is_ever_let_in() -> None:
    """User:ANONYMOUS among super.users opens a cluster to anyone: a person must write it."""
    raw = BROKER.replace(b"INTERNAL:SASL_SSL", b"INTERNAL:PLAINTEXT")
    known = replace(secured(), controller_access=Access(), controller_properties=None, broker_properties=None)
    assert "ANONYMOUS" not in controller(raw, known)["super.users"]
    assert "ANONYMOUS" not in parse(configuration.migration_mode(raw, known))["super.users"]


def test_a_user_that_only_the_node_resolves_is_never_written() -> None:
    """A reference in super.users lets in nobody; what the inventory says of that user does."""
    login = f'{PLAIN} username="${{file:/s:user}}" password="c";'
    more = {**TO_CONTROLLERS, "listener.name.internal.plain.sasl.jaas.config": login}
    known = replace(secured(), controller_properties=AddedProperties("/c", more))
    for stated, added in (("", ""), ("User:kraft", ";User:kraft")):
        raw = configuration.migration_mode(BROKER, replace(known, controller_principal=stated))
        assert parse(raw)["super.users"] == f"User:broker;User:admin{added}"


def test_without_an_authorizer_no_super_users_are_written() -> None:
    """There is nobody to let in."""
    raw = b"\n".join(line for line in BROKER.split(b"\n") if b"authorizer" not in line and b"super" not in line)
    assert "super.users" not in controller(raw)
    assert "super.users" not in parse(configuration.migration_mode(raw, secured()))


def test_a_second_edit_changes_nothing() -> None:
    """What was added is there already."""
    known = secured()
    once = configuration.migration_mode(BROKER, known)
    assert configuration.migration_mode(once, known) == once
    twice = configuration.kraft_mode(once, known, known.brokers[0])
    assert configuration.kraft_mode(twice, known, known.brokers[0]) == twice
    assert parse(configuration.kraft_mode(BROKER, known, known.brokers[0])) == parse(twice)


def test_a_finalized_controller_keeps_its_logins() -> None:
    """Only ZooKeeper's keys go."""
    known = secured()
    raw = configuration.controller(parse(BROKER), known, known.controllers[0])
    before, after = parse(raw), parse(configuration.finalized_controller(raw))
    assert {key for key in before if key not in after} == {key for key in before if key.startswith("zookeeper.")}


def test_what_is_added_is_not_shown() -> None:
    """By repr of the inventory."""
    assert "PlainLoginModule" not in repr(secured())


@pytest.mark.parametrize("mode", ["migration", "kraft"])
def test_super_users_that_are_added_to_brokers_join_those_that_are_there(mode: str) -> None:
    """Left out, brokers would refuse each other; the checks read the file as it will be."""
    more = {**TO_BROKERS, "super.users": "User:CN=controller,O=X; User:broker"}
    known = replace(secured(), broker_properties=AddedProperties("/b", more))
    raw = configuration.migration_mode(BROKER, known)
    if mode == "kraft":
        raw = configuration.kraft_mode(raw, known, known.brokers[0])
    assert parse(raw)["super.users"] == "User:broker;User:admin;User:CN=controller,O=X;User:controller"
    assert super_users(with_added(parse(BROKER), more)) == {
        "User:broker",
        "User:admin",
        "User:CN=controller,O=X",
    }
    assert configuration.migration_mode(raw, known) == raw or mode == "kraft"
