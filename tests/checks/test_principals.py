"""As whom a certificate is known to a listener: held against Kafka's own mapper, and told before anybody is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from migrate.checks.principals import caller, certificates_name, known_as
from migrate.checks.registry import Blind
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, AddedProperties, Store
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from migrate.model.world import World
from tests.checks.bends import of
from tests.testing import worlds
from tests.testing.blocking import blocking
from tests.testing.kafka_jvm import kafka_jvm
from tests.testing.worlds import with_values, world_at

NAMES = (
    "CN=kafka-1.example.org,OU=ServiceUsers,O=Org,L=Berlin,ST=BE,C=DE",
    "CN=adminUser,OU=Admin,O=Org,C=DE",
    "CN=Broker",
    "UID=7,DC=example,DC=org",
)
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=([^,]*).*$/$1@x/U",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.-]*).*$/$1/L,DEFAULT",
    r"RULE:^CN=([^,]+).*$/a\/$1/,DEFAULT",
    "RULE:^cn=none$/x/",
    "RULE:(UID)=(7).*/$2-$1/U",
    "RULE:.*/x/",  # replaceAll finds the empty rest, too
    "RULE:^CN=(.*?)(,.*)?/$1;$0;$3/",  # found piece by piece, lazily
    "RULE:(?:CN|UID)=(.*?),[^=]*=(\\w+).*/\\$1$2/L,DEFAULT",
)


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """A JVM with Kafka's classes."""
    with kafka_jvm() as gateway:
        yield gateway.jvm


@pytest.mark.kafka
@pytest.mark.parametrize("rules", RULES)
def test_names_are_what_kafkas_own_mapper_makes_of_them(rules: str, java: Any) -> None:
    """SslPrincipalMapper of the same release, for each name; where it throws, we do not know."""
    mapper = java.org.apache.kafka.common.security.ssl.SslPrincipalMapper.fromRules(rules)
    for name in NAMES:
        assert java.javax.security.auth.x500.X500Principal(name).getName() == name
        try:
            wanted: str | None = "User:" + mapper.getName(name)
        except Exception:  # noqa: BLE001 - whatever Java throws
            wanted = None
        found = known_as(name, {"ssl.principal.mapping.rules": rules}, "CTL")
        assert found == wanted if wanted else isinstance(found, Blind), (rules, name)


@pytest.mark.parametrize(
    "rules", ["nonsense", "RULE:(/x/", "RULE:a", "DEFAULT DEFAULT", "RULE:(?=a)/x/", "RULE:(C|CN=(a|aa|a*)+)+b/x/"]
)
def test_rules_that_kafka_would_refuse_are_not_guessed(rules: str) -> None:
    """Such a node does not start; we say nothing of its callers."""
    assert isinstance(known_as("CN=a", {"ssl.principal.mapping.rules": rules}, "CTL"), Blind)


@pytest.mark.parametrize("pattern", ["(C|CN=(a|aa|a+)+)+b", "(.*)(.*)(.*)(.*)(.*)(.*)b", "(?:.*z|a)(?:.*y)?(?:.*x)?"])
def test_rules_of_any_pattern_are_answered_with_bounded_work(pattern: str) -> None:
    """A broker's file in a bundle is a foreign hand's; Kafka itself would take years for some of them."""
    begun = time.monotonic()
    known_as("CN=" + "a" * 4000, {"ssl.principal.mapping.rules": f"RULE:{pattern}/$1/"}, "CTL")
    assert time.monotonic() - begun < 20
    assert isinstance(known_as("CN=" + "a" * 5000, {"ssl.principal.mapping.rules": "RULE:.*/x/"}, "CTL"), Blind)


@pytest.mark.parametrize("letter", ["\n", "\r", "\v", "\x85", "\u2028"])
def test_a_name_with_a_line_end_is_not_guessed(letter: str) -> None:
    """Java's dot stops at other line ends than RE2's."""
    assert isinstance(known_as(f"CN=a{letter}b", {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}, "CTL"), Blind)


def test_a_listeners_own_settings_go_before_the_nodes() -> None:
    """Keystore, rules and whether a certificate is asked for at all."""
    called = {"ssl.client.auth": "none", "listener.name.ctl.ssl.client.auth": "required"}
    caller = {"ssl.keystore.location": "/a", "listener.name.ctl.ssl.keystore.location": "/b"}
    subjects: dict[str, str | Unknown] = {"/a": "CN=a", "/b": "CN=b"}
    assert certificates_name(caller, subjects, called, "CTL") == "User:CN=b"
    assert certificates_name(caller, subjects, called, "OTHER") == "User:ANONYMOUS"
    for values, seen in (({}, subjects), (caller, {}), ({"ssl.keystore.certificate.chain": "x"}, subjects)):
        assert isinstance(certificates_name(values, seen, called, "CTL"), Blind)


# -- the checks ------------------------------------------------------------------------------------------------------
def mutual(stage: Stage) -> World:
    """TLS with certificates on both listeners: every node has its own, all of them are super users everywhere."""
    world = world_at(stage)
    everybody = ";".join(["User:CN=tool", *(f"User:CN=n{node}" for node in (*worlds.BROKERS, *worlds.CONTROLLERS))])
    for node in (*worlds.BROKERS, *worlds.CONTROLLERS):
        world = with_values(
            world,
            node,
            listener__security__protocol__map="INTERNAL:SSL,CLIENT:SASL_SSL,CTL:SSL",
            ssl__client__auth="required",
            ssl__keystore__location=f"/tls/n{node}.p12",
            super__users=everybody,
        )
    access = Access("SSL", keystore=Store("/our.p12", "PKCS12"))
    world = replace(world, inventory=replace(world.inventory, controller_access=access, broker_access=access))
    return with_subjects(world, {})


def with_subjects(world: World, other: dict[int, str | Unknown]) -> World:
    """Each node's certificate; `other` says what is another's."""
    assert not isinstance(world.configs, Unknown)
    configs = {}
    for node, file in world.configs.items():
        assert isinstance(file, ConfigFile)
        own = other.get(int(node), f"CN=n{node}")
        configs[node] = replace(file, subjects={f"/tls/n{node}.p12": own, "/our.p12": "CN=tool"})
    return replace(world, configs=configs)


def test_a_cluster_of_certificates_whose_names_are_all_let_in_has_no_finding() -> None:
    """Nothing is a blind spot any more."""
    world = mutual(Stage.PREPARE)
    for code in ("B-SEC-06", "B-SEC-07", "B-SEC-22"):
        assert of(world, code) == []


def test_who_is_not_let_in_is_named_by_the_certificate() -> None:
    """A broker's on the controllers, a controller's on the brokers: before anything starts."""
    found = of(with_subjects(mutual(Stage.PREPARE), {1: "CN=renewed,O=X"}), "B-SEC-06")
    assert {entry.about for entry in found} == {f"controller {n}: /conf/c{n}.properties" for n in worlds.CONTROLLERS}
    assert all("User:CN=renewed,O=X, as which broker 1" in entry.message for entry in found)
    (told,) = {entry.message for entry in of(with_subjects(mutual(Stage.PREPARE), {3001: "CN=new"}), "B-SEC-07")}
    assert "User:CN=new, as which controller 3001" in told


def test_what_the_inventory_adds_to_brokers_lets_controllers_in() -> None:
    """super.users of brokers.properties, which each broker gets at its first restart."""
    world = with_subjects(mutual(Stage.PREPARE), {3001: "CN=new"})
    added = AddedProperties("/b", {"super.users": "User:CN=new;User:CN=n3000;User:CN=n3002"})
    assert of(replace(world, inventory=replace(world.inventory, broker_properties=added)), "B-SEC-07") == []


def test_a_certificate_that_cannot_be_read_is_a_blind_spot() -> None:
    """And stops what it might bring down."""
    found = of(with_subjects(mutual(Stage.PREPARE), {0: Unknown("no such file")}), "B-SEC-06")
    assert {(entry.severity, entry.evidence) for entry in found} == {(Severity.BLIND_SPOT, "no such file")}
    assert set(blocking(found, Stage.CONTROLLERS)) == set(found)


def test_our_own_principal_must_be_a_super_user_of_the_controllers() -> None:
    """By its certificate; by its user; nobody without either."""
    world = mutual(Stage.PREPARE)
    world = with_values(world, 3002, super__users="User:CN=n0;User:CN=n1;User:CN=n2")
    world = with_subjects(world, {})
    (found,) = of(world, "B-SEC-22")
    assert "User:CN=tool" in found.message
    login = replace(world.inventory, controller_access=Access("SASL_SSL", "PLAIN", "ops"))
    assert {entry.about[:15] for entry in of(replace(world, inventory=login), "B-SEC-22")} == {
        f"controller {node}" for node in worlds.CONTROLLERS
    }
    builder = with_values(world, NodeId(3000), principal__builder__class="org.X")
    assert Severity.BLIND_SPOT in {entry.severity for entry in of(builder, "B-SEC-22")}


def test_a_user_that_only_the_node_resolves_is_what_the_inventory_says() -> None:
    """The whole login or its name comes from a configuration provider: neither is guessed, a plain name goes first."""
    for text, user in (
        ('X required username="${file:/s:user}" password="p";', None),
        ("${file:/s:jaas}", None),
        ('X required username="broker" password="${file:/s:password}";', "User:broker"),
    ):
        values = {"m": "PLAIN", "listener.name.ctl.plain.sasl.jaas.config": text}
        unsaid = caller(values, "CTL", "SASL_SSL", "m")
        assert unsaid == user or (isinstance(unsaid, Blind) and "configuration provider" in unsaid.reason)
        assert caller(values, "CTL", "SASL_SSL", "m", stated="User:stated") == (user or "User:stated")


def test_what_the_inventory_says_answers_for_a_certificate_that_cannot_be_read() -> None:
    """On each controller, which must let it in."""
    world = with_subjects(mutual(Stage.PREPARE), {0: Unknown("no such file")})
    for stated, told in (("User:CN=renewed,O=X", {Severity.BLOCKER}), ("", {Severity.BLIND_SPOT})):
        inventory = replace(world.inventory, broker_principal=stated)
        assert {one.severity for one in of(replace(world, inventory=inventory), "B-SEC-06")} == told
