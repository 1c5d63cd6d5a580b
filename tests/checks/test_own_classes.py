"""Classes that are not Kafka's: named with their keys, and asked about until the playbook answers (B-CFG-37)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.findings import Severity
from migrate.model.inventory import KraftAuthorizer
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import PartlyRead
from migrate.model.world import World
from tests.checks.bends import of, then, values
from tests.steps.looks import whole
from tests.testing import worlds

OPA = "org.openpolicyagent.kafka.OpaAuthorizer"
SUCCESSOR = KraftAuthorizer("org.example.KraftAuthorizer", {"example.url": "https://policies"})
REPORTER = "com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter"


def of_opa() -> World:
    """Two brokers with an authorizer of somebody else's and a reporter, one key of each, and a secret."""
    keys = {"opa__authorizer__url": "https://opa/v1", "opa__token": "hunter2", "metric__reporters": f"a.B,{REPORTER}"}
    bend = then(*(values(node, authorizer__class__name=OPA, **keys) for node in (0, 1)))
    return bend(whole(Stage.ASSESS))


def test_each_class_is_one_question_with_the_brokers_and_the_keys_that_a_controller_would_lack() -> None:
    """Values are not shown; keys that controllers get, or that Kafka defines, are not listed."""
    found = of(of_opa(), "B-CFG-37")
    assert [entry.about for entry in found] == ["class a.B", f"class {REPORTER}", f"class {OPA}"]
    assert "authorizer.class.name of broker 0, 1" in found[2].message
    assert found[2].evidence.endswith(": opa.authorizer.url, opa.token")
    assert "hunter2" not in str(found)


def test_the_playbook_answers_by_name() -> None:
    """Each class for itself."""
    world = of_opa()
    assert not isinstance(world.playbook, Unknown)
    answered = replace(world, playbook=replace(world.playbook, own_classes=("a.B", OPA, "never.Used")))
    assert [entry.about for entry in of(answered, "B-CFG-37")] == [f"class {REPORTER}"]


def test_keys_that_controllers_get_and_that_brokers_have_otherwise_are_named() -> None:
    """The first broker's would count for all (W-CFG-17); of a secret only who has it."""
    assert not [entry for entry in of(values(2, opa__token=None)(of_opa()), "W-CFG-17") if "opa.url" in entry.message]
    found = of(then(values(1, opa__authorizer__url="https://other"), values(0, opa__token="x"))(of_opa()), "W-CFG-17")
    assert [entry.message.partition(": ")[0] for entry in found if "opa." in entry.message] == [
        "opa.authorizer.url",
        "opa.token",
    ]
    assert "hunter2" not in str(found)


def with_successor(world: World) -> World:
    """The playbook names the class that decides about rights in KRaft mode."""
    assert not isinstance(world.playbook, Unknown)
    return replace(world, playbook=replace(world.playbook, kraft_authorizer=SUCCESSOR))


def test_an_authorizer_with_a_successor_is_no_question() -> None:
    """It is replaced; other classes are asked about as before."""
    assert [entry.about for entry in of(with_successor(of_opa()), "B-CFG-37")] == ["class a.B", f"class {REPORTER}"]


def test_controllers_have_the_successor_of_the_brokers_class() -> None:
    """From their start on; who has another one is named (B-SEC-19), and without a playbook nobody knows."""
    bend = then(*(values(node, authorizer__class__name=OPA) for node in (0, 1, 2)))
    ours = then(*(values(node, authorizer__class__name=SUCCESSOR.name) for node in (3000, 3001, 3002)))
    world = ours(bend(whole(Stage.HYBRID)))
    assert not of(with_successor(world), "B-SEC-19")
    assert not of(with_successor(values(2, authorizer__class__name=SUCCESSOR.name)(world)), "B-SEC-19")
    assert {entry.severity for entry in of(world, "B-SEC-19")} == {Severity.BLOCKER}
    unseen = of(replace(world, playbook=Unknown("none was given")), "B-SEC-19")
    assert {entry.severity for entry in unseen} == {Severity.BLIND_SPOT}
    stranger = with_successor(values(3001, authorizer__class__name=OPA)(world))
    assert [entry.about.partition(":")[0] for entry in of(stranger, "B-SEC-19")] == ["controller 3001"]


def test_a_successor_of_no_authorizer_is_named() -> None:
    """Controllers would ask for rights where brokers let in everybody."""
    world = with_successor(
        then(*(values(node, authorizer__class__name=None) for node in (0, 1, 2)))(whole(Stage.PREPARE))
    )
    assert "broker 2" in [entry.about for entry in of(world, "B-SEC-19")]
    assert any(
        "policy.authorizer.kraft is org.example.KraftAuthorizer" in entry.message for entry in of(world, "B-SEC-19")
    )


def test_a_class_is_named_beside_znodes_that_cannot_be_read() -> None:
    """And it is said that there may be more."""
    world = worlds.with_entity(whole(Stage.ASSESS), "broker-config", "0", "metric.reporters", REPORTER)
    found = of(replace(world, zookeeper=PartlyRead("a quota is none", worlds.zk(world))), "B-CFG-37")
    assert {(entry.about, entry.severity) for entry in found} == {
        (f"class {REPORTER}", Severity.BLOCKER),
        ("the malformed parts of ZooKeeper", Severity.BLIND_SPOT),
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("authorizer__class__name", "kafka.security.authorizer.AclAuthorizer"),
        ("metric__reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("sasl__login__callback__handler__class", "org.apache.kafka.common.security.oauthbearer.X"),
        ("security__providers", "sun.security.provider.Sun"),
        ("metric__reporters", ""),
        ("opa__plugin__class", "com.example.Plugin"),
        ("group__consumer__assignors", "uniform,range"),
    ],
)
def test_kafkas_and_javas_classes_are_no_question(key: str, value: str) -> None:
    """Nor what stands in keys that Kafka does not read."""
    assert not of(values(1, **{key: value})(whole(Stage.ASSESS)), "B-CFG-37")
