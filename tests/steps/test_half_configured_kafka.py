"""Keys of the migration that stand already in a file of ZooKeeper mode, read by Kafka's own `KafkaConfig`.

What Kafka ignores there is replaced, or kept, as the stage says, and blocks nothing; what would act too early does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from migrate.checks.registry import run_all
from migrate.hosts.properties import parse
from migrate.model.findings import Severity
from migrate.model.stage import Stage
from migrate.steps import configuration
from tests.steps.test_configuration_kafka import Change, differences, file_of, known
from tests.testing import worlds
from tests.testing.kafka_config import KafkaReads, kafka_reads

pytestmark = pytest.mark.kafka

FLAG, VOTERS, LISTENER = "zookeeper.metadata.migration.enable", "controller.quorum.voters", "controller.listener.names"
MAP, ROLES, SERVERS = "listener.security.protocol.map", "process.roles", "controller.quorum.bootstrap.servers"
OURS = worlds.inventory().voters
WITH = "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT,{}"
WHOLE: Change = {FLAG: "true", LISTENER: "CTL", VOTERS: OURS, MAP: WITH.format("CTL:PLAINTEXT")}

IGNORED: dict[str, Change] = {  # what a broker of ZooKeeper mode starts with, and does not read
    "the id by both names": {"node.id": "1"},
    "the id by its new name": {"broker.id": None, "node.id": "1"},
    "no roles": {ROLES: ""},
    "voters: ours": {VOTERS: OURS},
    "voters: others": {VOTERS: "1@localhost:9093"},
    "voters: the broker itself": {VOTERS: "1@b1:9093,2@b2:9093,3@b3:9093"},
    "voters: more than ours": {VOTERS: f"{OURS},9@c9:9090"},
    "voters: none": {VOTERS: ""},
    "bootstrap servers": {SERVERS: "localhost:9093"},
    "bootstrap servers and voters": {SERVERS: "c9:9093,c8:9093", VOTERS: "9@c9:9093"},
    "no controller listener": {LISTENER: ""},
    "the flag is false": {FLAG: "false"},
    "the flag is FALSE with blanks": {FLAG: " FALSE "},
    "map: the documentation's name": {MAP: WITH.format("CONTROLLER:PLAINTEXT")},
    "map: our name": {MAP: WITH.format("CTL:PLAINTEXT")},
    "map: our name with another protocol": {MAP: WITH.format("CTL:SASL_SSL")},
    "map: our name in small letters with another protocol": {MAP: WITH.format("ctl:ssl,CONTROLLER:SSL")},
    "another place for the metadata": {"metadata.log.dir": "/meta"},
    "timeouts of the quorum": {"controller.quorum.election.timeout.ms": "2000"},
    "sizes of the metadata": {"metadata.log.segment.bytes": "1073741824", "metadata.max.idle.interval.ms": "500"},
    "the controllers' mechanism": {"sasl.mechanism.controller.protocol": "PLAIN"},
    "the session of KRaft": {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"},
    "limits of the first registration": {"initial.broker.registration.timeout.ms": "60000"},
    "half of it": {
        "node.id": "1",
        ROLES: "",
        VOTERS: "1@localhost:9093",
        FLAG: "false",
        MAP: WITH.format("CONTROLLER:PLAINTEXT"),
        "metadata.log.dir": "/meta",
    },
}
EARLY: dict[str, tuple[Change, str]] = {  # what acts at the next start, by the code that must name it
    "a controller listener alone": ({LISTENER: "CONTROLLER"}, "B-CFG-11"),
    "a controller listener, and the flag is false": ({LISTENER: "CTL", FLAG: "false"}, "B-CFG-11"),
    "the flag alone": ({FLAG: "true"}, "B-CFG-10"),
    "the flag alone, early": ({FLAG: " True"}, "B-CFG-11"),
    "the flag and all that it needs": (WHOLE, "B-CFG-11"),
    "the flag and another quorum": (WHOLE | {VOTERS: "9@c9:9093"}, "B-QRM-01"),
    "a role": (WHOLE | {FLAG: None, ROLES: "broker"}, "B-CFG-11"),
    "a role and ZooKeeper's flag": (WHOLE | {ROLES: "broker"}, "B-CFG-11"),
    "the other role": (WHOLE | {ROLES: "controller"}, "B-CFG-11"),
    "both roles": (WHOLE | {ROLES: "broker, controller"}, "B-CFG-02"),
    "voters that are none": ({VOTERS: "localhost:9093"}, "B-CFG-21"),
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaReads]:
    """Kafka's classes."""
    with kafka_reads() as reads:
        yield reads


def said(change: Change) -> Mapping[str, list[str]]:
    """What all checks say, by code, of the healthy cluster with that file for its broker 1, and not without it."""
    world = worlds.world_at(Stage.ASSESS)
    values = {key: value for key, value in change.items() if "\\" not in (value or "")}
    before = {(one.code, one.message) for one in run_all(world)}
    found: dict[str, list[str]] = {}
    for one in run_all(worlds.with_values(world, 1, **values)):
        if (one.code, one.message) not in before:
            found.setdefault(one.code, []).append(one.message)
    return found


@pytest.mark.parametrize("name", IGNORED)
def test_what_kafka_ignores_is_replaced_or_kept_as_the_stage_says(kafka: KafkaReads, name: str) -> None:
    """In every file that becomes of it, by Kafka's own reading; and the rolls leave none of it that they own."""
    raw = file_of(IGNORED[name])
    asked = known(raw)
    assert differences(kafka, raw, asked) == []
    first = configuration.migration_mode(raw, asked)
    second = configuration.kraft_mode(first, asked, asked.brokers[1])
    for edited in (parse(first), parse(second)):
        assert SERVERS not in edited
        assert edited[VOTERS] == asked.voters
        assert edited[LISTENER] == asked.controller_listener
    assert parse(second)[ROLES] == "broker"
    assert FLAG not in parse(second)


@pytest.mark.parametrize("name", IGNORED)
def test_what_kafka_ignores_blocks_nothing_and_is_told(name: str) -> None:
    """I-CFG-36 names each key; an entry of the map is no key of KRaft."""
    found = said(IGNORED[name])
    assert [code for code in found if code.startswith(Severity.BLOCKER.value)] == []
    for key in IGNORED[name]:
        if key not in {MAP, "broker.id"}:
            assert any(key in message for message in found["I-CFG-36"])


@pytest.mark.parametrize("name", EARLY)
def test_what_would_act_too_early_blocks(kafka: KafkaReads, name: str) -> None:
    """Kafka refuses the file, or starts something else than a broker of ZooKeeper mode with it."""
    change, code = EARLY[name]
    reading = kafka.read(file_of(change))
    assert not reading.taken or reading.mode != "Set() False 1"
    assert code in said(change), said(change)
