"""What stands over a file, twice in it, or in another place: told with what becomes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks import NEVER
from migrate.checks.config_sources import in_kraft
from migrate.hosts.collect_disks import HIDDEN
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties
from migrate.model.launch import UnitNotes
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from tests.checks.bends import launched, of, unit_of, written_twice
from tests.testing.worlds import with_entity, with_values, world_at

PLAIN = world_at(Stage.ASSESS)


@pytest.mark.parametrize(
    ("name", "fate"),
    [
        ("log.cleaner.threads", ""),
        ("listener.name.client.ssl.keystore.location", "by the file"),
        ("listener.name.client.ssl.client.auth", "by the file"),
        ("listener.name.client.max.connections", ""),
        ("max.connections", ""),
        ("listener.name.client.plain.sasl.jaas.config", "lost"),
        ("sasl.jaas.config", "lost"),
        ("listeners", "refused"),
        ("advertised.listeners", "refused"),
        ("listener.security.protocol.map", "refused"),
    ],
)
def test_what_becomes_of_a_dynamic_configuration(name: str, fate: str) -> None:
    """Goes on, is lost, or takes all others of its broker with it."""
    assert in_kraft("1", name).partition(":")[0] == fate


def test_a_reference_for_zookeepers_tls_stays_a_reference() -> None:
    """The second roll takes the key out, and nothing is decided by it; whether there is TLS at all is."""
    secret = with_values(PLAIN, 1, zookeeper__ssl__keystore__password="${file:/etc/secrets:zk}")
    assert not of(secret, "B-CFG-21")
    assert of(with_values(PLAIN, 1, zookeeper__ssl__client__enable="${env:TLS}"), "B-CFG-21")


LOGIN = {
    "sasl__mechanism__inter__broker__protocol": "PLAIN",
    "listener__name__internal__plain__sasl__jaas__config": 'x required username="controllers" password="p";',
}


def test_what_a_roll_adds_to_a_brokers_file_stands_there_once() -> None:
    """Super users where there are rights, and the inventory's properties: the edit refuses a second line."""
    sasl = {"listener__security__protocol__map": "INTERNAL:SASL_PLAINTEXT", **LOGIN}
    secured = with_values(written_twice(1, "super.users")(PLAIN), 1, **sasl)
    assert of(secured, "B-CFG-18")
    assert not of(with_values(secured, 1, super__users="User:controllers"), "B-CFG-18")
    added = AddedProperties("", {"min.insync.replicas": "1"})
    inventory = replace(PLAIN.inventory, broker_properties=added)
    assert of(replace(written_twice(1, "min.insync.replicas")(PLAIN), inventory=inventory), "B-CFG-18")


@pytest.mark.parametrize(
    ("key", "file", "says"),
    [
        ("1", "4", "log.cleaner.threads=2 overrides the file's 4"),
        ("1", None, "log.cleaner.threads=2 is the only value: no file has the key"),
        ("<default>", "4", "log.cleaner.threads=2 overrides the file's 4"),
        ("9", "4", "log.cleaner.threads=2 overrides files that cannot be seen"),
    ],
)
def test_a_dynamic_configuration_is_shown_beside_the_files_value(key: str, file: str | None, says: str) -> None:
    """Of that broker, or of all for a default; a broker that nobody listed has a file that nobody saw."""
    world = with_entity(
        with_values(PLAIN, 1, log__cleaner__threads=file), "broker-config", key, "log.cleaner.threads", "2"
    )
    (found,) = [finding for finding in of(world, "I-CFG-19") if finding.message.startswith("log.cleaner.threads")]
    assert found.about == f"/config/brokers/{key}"
    assert found.message == says


def test_files_that_cannot_be_seen_are_said_so() -> None:
    """Nothing is claimed about a file that nobody read."""
    world = replace(with_entity(PLAIN, "broker-config", "1", "a", "2"), configs=Unknown("no way there"))
    assert of(world, "I-CFG-19")[-1].message == "a=2 overrides the files, which cannot be seen"


def test_a_dynamic_password_is_never_shown() -> None:
    """Nor the file's."""
    name = "listener.name.client.ssl.keystore.password"
    bent = with_values(PLAIN, 1, listener__name__client__ssl__keystore__password="canary-1")
    found = of(with_entity(bent, "broker-config", "1", name, "canary-2"), "I-CFG-19")
    assert f"{name}=(sensitive) overrides the file's (sensitive)" in [finding.message for finding in found]
    assert "canary" not in repr(found)


def test_lost_and_refused_ones_are_told_by_their_own_code_alone() -> None:
    """Once each."""
    jaas = "listener.name.client.plain.sasl.jaas.config"
    world = with_entity(
        with_entity(PLAIN, "broker-config", "1", jaas, "h"), "broker-config", "1", "listeners", "A://a:1"
    )
    assert len(of(world, "W-SEC-09")) == len(of(world, "W-CFG-20")) == 1
    assert not [
        finding for finding in of(world, "I-CFG-19") if "jaas" in finding.message or "listeners=" in finding.message
    ]


@pytest.mark.parametrize("key", ["min.insync.replicas", "log.dirs", "super.users"])
def test_keys_that_no_stage_changes_may_stand_twice(key: str) -> None:
    """What a person wrote twice and nobody edits is the person's affair."""
    assert of(written_twice(1, key)(PLAIN), "B-CFG-18") == []


def test_a_password_by_reference_is_fine_and_told_as_work_for_the_controllers_hosts() -> None:
    """Honoured: the text is carried, the node resolves it."""
    world = with_values(PLAIN, 1, ssl__key__password="${file:/run/secrets:key}", config__providers="file")
    assert of(world, "B-CFG-21") == []
    (found,) = of(world, "W-CFG-22")
    assert "references in ssl.key.password" in found.message
    assert found.evidence == "config.providers=file"
    assert "/run/secrets" not in repr(found)


@pytest.mark.parametrize(
    ("key", "value", "hits"),
    [
        ("zookeeper__connect", "${env:ZK}", 1),
        ("super__users", "User:a;${file:/a:b}", 1),
        ("broker__id", "${directory:/etc/kafka:id}", 1),
        ("num__io__threads", "${env:N}", 0),
        ("super__users", "User:${a}", 0),
        ("super__users", HIDDEN, 0),
    ],
)
def test_references_in_what_the_tool_decides_by_are_refused(key: str, value: str, hits: int) -> None:
    """As Kafka's ConfigTransformer recognises them, and no other text in braces."""
    assert len(of(with_values(PLAIN, 1, **{key: value}), "B-CFG-21")) == hits


@pytest.mark.parametrize(
    ("name", "protocol", "found"),
    [
        ("listener.name.client.ssl.keystore.location", "SASL_PLAINTEXT", False),
        ("listener.name.client.ssl.keystore.location", "SSL", True),
        ("listener.name.client.plain.sasl.jaas.config", "SSL", False),
        ("listener.name.client.plain.sasl.jaas.config", "SASL_SSL", True),
        ("listener.name.gone.ssl.keystore.location", "SSL", False),
        ("listener.name.client.max.connections", "SSL", False),
        ("log.cleaner.threads", "SSL", False),
    ],
)
def test_what_no_listener_uses_blocks_nothing(name: str, protocol: str, found: bool) -> None:
    """A store of a listener without TLS, a login of one without SASL, a listener that the file does not have."""
    bent = with_values(PLAIN, 1, listener__security__protocol__map=f"INTERNAL:PLAINTEXT,CLIENT:{protocol}")
    assert bool(of(with_entity(bent, "broker-config", "1", name, "x"), "B-SEC-20")) is found


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.client.ssl.principal.mapping.rules",
        "listener.name.client.plain.connections.max.reauth.ms",
        "listener.name.client.oauthbearer.sasl.oauthbearer.expected.audience",
    ],
)
def test_whatever_is_set_for_one_listener_decides_about_its_start(name: str) -> None:
    """Of no list: SslChannelBuilder and SaslChannelBuilder read it when they make the listener, and never again."""
    bent = with_values(PLAIN, 1, listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:SASL_SSL")
    assert bool(of(with_entity(bent, "broker-config", "1", name, "x"), "B-SEC-20"))


@pytest.mark.parametrize(
    ("entity", "name"),
    [
        ("<default>", "listener.name.client.ssl.keystore.location"),
        ("<default>", "listener.name.client.plain.sasl.jaas.config"),
        ("<default>", "ssl.client.auth"),
        ("<default>", "listeners"),
        ("1", "ssl.keystore.location"),
        ("1", "ssl.truststore.password"),
        ("1", "plain.sasl.jaas.config"),
    ],
)
def test_what_kafka_leaves_out_blocks_nothing_and_is_told_as_such(entity: str, name: str) -> None:
    """No broker runs with it now, and none will: I-CFG-19 says so, and no finding calls it lost or refused."""
    bent = with_values(PLAIN, 1, listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:SASL_SSL")
    stored = with_entity(bent, "broker-config", entity, name, "x")
    assert not [hit for code in ("B-SEC-20", "W-SEC-09", "W-CFG-20") for hit in of(stored, code)]
    (told,) = of(stored, "I-CFG-19")
    assert "overrides nothing" in told.message
    assert "left out, as brokers do now" in told.evidence


def test_a_dynamic_protocol_map_needs_the_controllers_listener_although_the_file_has_the_same_text() -> None:
    """The first roll adds the listener to the file, and the dynamic map overrides the file."""
    name, known = "listener.security.protocol.map", "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT"
    (hit,) = of(with_entity(PLAIN, "broker-config", "1", name, known), "B-SEC-20")
    assert "--delete-config listener.security.protocol.map" in hit.fix
    both = with_values(PLAIN, 1, listener__security__protocol__map=f"{known},CTL:PLAINTEXT")
    assert not of(with_entity(both, "broker-config", "1", name, f"{known},CTL:PLAINTEXT"), "B-SEC-20")


def test_lists_are_compared_as_lists() -> None:
    """Blanks behind commas are nothing."""
    own, name = with_values(PLAIN, 1, ssl__enabled__protocols="TLSv1.2, TLSv1.3"), "ssl.enabled.protocols"
    assert not of(with_entity(own, "broker-config", "1", name, "TLSv1.2,TLSv1.3"), "B-SEC-20")
    assert of(with_entity(own, "broker-config", "1", name, "TLSv1.3"), "B-SEC-20")


@pytest.mark.parametrize(("digest", "found"), [("hmac:1", False), ("hmac:2", True)])
def test_a_stores_password_is_compared_by_the_runs_digest(digest: str, found: bool) -> None:
    """A password that was changed dynamically alone does not open the file's store: the broker would not start."""
    name = "listener.name.client.ssl.keystore.password"
    bent = with_values(
        PLAIN,
        1,
        listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:SSL",
        listener__name__client__ssl__keystore__password="old-one",
    )
    assert not isinstance(bent.configs, Unknown)
    file = bent.configs[NodeId(1)]
    assert isinstance(file, ConfigFile)
    read = replace(bent, configs={**bent.configs, NodeId(1): replace(file, passwords={name: digest})})
    hits = of(with_entity(read, "broker-config", "1", name, "hmac:1"), "B-SEC-20")
    assert bool(hits) is found
    assert "old-one" not in str(hits)


def test_a_brokers_own_number_of_threads_counts_before_the_clusters() -> None:
    """The file's 8 is not far from its own 8, whatever the others have."""
    bent = with_entity(PLAIN, "broker-config", "<default>", "num.io.threads", "32")
    assert len(of(bent, "B-CFG-38")) == 3
    assert len(of(with_entity(bent, "broker-config", "1", "num.io.threads", "8"), "B-CFG-38")) == 2


@pytest.mark.parametrize("url", ["zk1:2181/kafka", "zk1/kafka", " zk1:2181/kafka"])
def test_acls_of_the_same_zookeeper_are_copied(url: str) -> None:
    """However it is written."""
    assert not of(with_values(PLAIN, 1, authorizer__zookeeper__url=url), "B-SEC-27")


# -- what processes were started with ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("log.dirs", "B-CFG-23"),
        ("zookeeper.connect", "B-CFG-23"),
        ("zookeeper.session.timeout.ms", "B-CFG-23"),
        ("broker.id", "B-CFG-23"),
        ("listener.security.protocol.map", "B-CFG-23"),
        ("inter.broker.protocol.version", "B-CFG-23"),
        ("num.io.threads", "W-CFG-24"),
        ("ssl.key.password", "W-CFG-24"),
    ],
)
def test_an_override_of_what_is_ours_stops_and_of_others_is_told(key: str, code: str) -> None:
    """By the table of keys."""
    world = launched(1, overrides={key: "(sensitive)"})(PLAIN)
    assert {
        finding.code for finding in checks.run(world, target=Stage.PREPARE) if "command line" in finding.message
    } == {code}


@pytest.mark.parametrize("path", ["/conf/b1.properties", "/conf//b1.properties", "/conf/./b1.properties"])
def test_one_path_has_many_spellings(path: str) -> None:
    """Doubled slashes are no other file."""
    assert of(launched(1, config=path)(PLAIN), "B-CFG-27") == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"config": "config/server.properties"}, "relative path"), ({"main_class": None, "config": None}, "no class")],
)
def test_a_command_line_that_does_not_tell_its_file_is_a_blind_spot(changed: dict[str, object], says: str) -> None:
    """Neither a fault nor a pass."""
    (found,) = of(launched(1, **changed)(PLAIN), "B-CFG-27")
    assert found.severity is Severity.BLIND_SPOT
    assert says in found.evidence


def test_many_variables_are_not_a_page() -> None:
    """Six names, and how many more."""
    names = tuple(f"KAFKA_CFG_{letter}" for letter in "ABCDEFGH")
    (found,) = of(launched(1, environment=names)(PLAIN), "B-CFG-26")
    assert found.message.endswith("KAFKA_CFG_F and 2 more")


def test_what_was_not_looked_at_is_told_and_does_not_stop_a_run_on_hosts() -> None:
    """An executor that cannot read an environment says so under the code."""
    world = launched(1, environment=Unknown("not read"), unit=UnitNotes((), ()))(PLAIN)
    (found,) = of(world, "B-CFG-26")
    assert (found.severity, found.evidence, found.blocks_from) == (Severity.BLIND_SPOT, "not read", NEVER)
    old = unit_of(1, reload_due=Unknown("old systemd"))(PLAIN)
    (found,) = of(old, "B-CFG-29")
    assert (found.severity, found.evidence, found.blocks_from) == (Severity.BLIND_SPOT, "old systemd", NEVER)


def test_a_broker_that_is_down_is_a_blind_spot_of_its_own() -> None:
    """The others are judged."""
    assert not isinstance(PLAIN.launches, Unknown)
    down = {**PLAIN.launches, NodeId(2): Unknown("it does not run")}
    world = launched(0, config="/x")(replace(PLAIN, launches=down))
    assert [(found.about, found.severity) for found in of(world, "B-CFG-27")] == [
        ("broker 0", Severity.BLOCKER),
        ("how broker 2 was started", Severity.BLIND_SPOT),
    ]


def test_a_process_without_a_unit_has_no_unit_to_judge() -> None:
    """The lab's own, or a script's."""
    world = launched(1, unit=None)(PLAIN)
    assert of(world, "I-CFG-28") == []
