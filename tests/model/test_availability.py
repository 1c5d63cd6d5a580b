"""What must become unavailable when a broker stops is found by topic, whoever sets min.insync.replicas."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.availability import Suffering, not_accepted, of_brokers, of_topics, suffering
from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, NoFile
from tests.testing.clusters import Partition, columns_of, entities_of, topic_id

MIN_ISR = "min.insync.replicas"
NO_ENTITIES = EntityColumns()
TOPIC = ("topic-config", "orders", MIN_ISR, "3")
DEFAULT = ("broker-config", "<default>", MIN_ISR, "3")
OWN = ("broker-config", "1", MIN_ISR, "3")  # "may also be updated as a per-broker value for testing"
FILE = {MIN_ISR: "3"}
BROKERS = (NodeId(0), NodeId(1), NodeId(2))
Files = Mapping[NodeId, ConfigFile | NoFile | Unknown]


def orders(*replicas: int) -> list[Partition]:
    """One topic with one partition."""
    return [Partition("orders", topic_id(7), 0, list(replicas))]


def file_of(node: NodeId, values: Mapping[str, str]) -> ConfigFile:
    """A broker's file with these values."""
    return ConfigFile(node, f"/conf/{node}.properties", b"", "", dict(values))


def files(values: Mapping[str, str], *, also: Files | None = None) -> Files:
    """Broker 1's file with these values; the others say nothing of it."""
    return {**{node: file_of(node, values if node == 1 else {}) for node in BROKERS}, **(also or {})}


def found(
    entities: list[tuple[str, str, str, str]],
    configs: Files | Unknown,
    replicas: tuple[int, ...] = (0, 1, 2),
) -> Suffering:
    """What suffers when broker 0 stops."""
    rows = entities_of(entities)
    return suffering(columns_of(orders(*replicas)), rows, of_brokers(rows, configs, BROKERS), [0])


@pytest.mark.parametrize(
    ("entities", "file"),
    [
        ([TOPIC], {}),
        ([DEFAULT], {}),
        ([], FILE),
        ([TOPIC], {MIN_ISR: "1"}),
        ([OWN], {}),
        ([OWN, (*DEFAULT[:3], "1")], {}),
        ([DEFAULT, (*OWN[:3], "1")], {}),
    ],
    ids=[
        *("topic", "dynamic default", "any broker's file", "topic over file"),
        *("one broker's own", "one broker's own over the default", "the default of the others"),
    ],
)
def test_each_place_of_min_insync_replicas_counts(
    entities: list[tuple[str, str, str, str]], file: dict[str, str]
) -> None:
    """Three replicas, all of them wanted: none may stop."""
    assert found(entities, files(file)) == Suffering({"orders": "3 replicas and min.insync.replicas=3"})


@pytest.mark.parametrize(
    ("entities", "file"),
    [
        ([], {}),
        ([("topic-config", "orders", MIN_ISR, "2"), DEFAULT], FILE),
        ([("broker-config", "<default>", MIN_ISR, "2")], FILE),
        ([("topic-config", "other", MIN_ISR, "3")], {}),
        ([("topic-config", "orders", "retention.ms", "3")], {}),
        ([("broker-config", "7", MIN_ISR, "3")], {}),
        ([(*OWN[:3], "2")], FILE),
        ([("client-quota", "<default>", MIN_ISR, "3")], {}),
    ],
    ids=[
        "nowhere",
        "topic wins",
        "default wins",
        "other topic",
        "other name",
        "another broker's own",
        "own over file",
        "other kind",
    ],
)
def test_the_nearest_place_wins_and_nothing_else_counts(
    entities: list[tuple[str, str, str, str]], file: dict[str, str]
) -> None:
    """Topic, then a broker's own dynamic value, then the cluster's dynamic default, then the files, then 1."""
    assert found(entities, files(file)) == Suffering({})


HIDDEN: list[Files | Unknown] = [
    Unknown("no right"),
    files({}, also={NodeId(2): Unknown("no right")}),
    files({}, also={NodeId(2): NoFile("/conf/2.properties")}),
    files({}, also={NodeId(2): file_of(NodeId(2), {MIN_ISR: "two"})}),
    {node: file for node, file in files({}).items() if node != 2},
]


@pytest.mark.parametrize("configs", HIDDEN, ids=["no files", "one hidden", "one absent", "no number", "one unread"])
def test_what_a_file_would_say_is_never_taken_for_the_default(configs: Files | Unknown) -> None:
    """The topic is neither suffering nor safe, unless something nearer decides or its only replica does."""
    unjudged = found([], configs)
    assert not unjudged.topics
    assert unjudged.unknown
    assert found([TOPIC], configs) == Suffering({"orders": "3 replicas and min.insync.replicas=3"})
    assert found([("broker-config", "<default>", MIN_ISR, "2")], configs) == Suffering({})
    assert found([], configs, replicas=(0,)) == Suffering({"orders": "one replica"})
    assert found([], configs, replicas=(1, 2)) == Suffering({})


def test_a_setting_that_is_no_number_is_not_passed_over() -> None:
    """Of a topic it names the topic; of all brokers nothing can be judged."""
    assert found([(*TOPIC[:3], "all")], files({})).topics == {
        "orders": "3 replicas and a min.insync.replicas that cannot be read"
    }
    assert found([(*DEFAULT[:3], "")], files({})) == Suffering({}, "min.insync.replicas is no number")


@pytest.mark.parametrize("value", ["9" * 4301, "9" * 11])
def test_a_setting_of_thousands_of_digits_is_no_number(value: str) -> None:
    """In a topic's znode, in a broker's, and in a broker's file."""
    no_number = "min.insync.replicas is no number"
    assert found([(*TOPIC[:3], value)], files({})).topics == {
        "orders": "3 replicas and a min.insync.replicas that cannot be read"
    }
    assert found([(*DEFAULT[:3], value)], files({})) == Suffering({}, no_number)
    assert found([], files({MIN_ISR: value})) == Suffering({}, f"broker 1: {no_number}")


def test_a_single_replica_suffers_whatever_is_wanted_and_only_with_its_own_broker() -> None:
    """No setting saves it; another broker's stop does not touch it."""
    assert found([], files({}), replicas=(0,)) == Suffering({"orders": "one replica"})
    assert found([TOPIC], files(FILE), replicas=(1,)) == Suffering({})
    assert found([TOPIC], files(FILE), replicas=(1, 2)) == Suffering({})


def test_one_bad_partition_is_enough_and_one_replica_is_the_reason_that_stays() -> None:
    """Reasons of a topic's partitions: the worse one is told."""
    partitions = columns_of([*orders(0, 1), Partition("orders", topic_id(7), 1, [0])])
    assert suffering(partitions, entities_of([TOPIC]), 1, [0]).topics == {"orders": "one replica"}


def test_patterns_accept_whole_names_only() -> None:
    """`scratch` does not name `scratch-2`, and a dot is a dot only where it is escaped."""
    topics = ["scratch", "scratch-2", "my-scratch", "orders"]
    assert not_accepted(topics, ["scratch"]) == ("my-scratch", "orders", "scratch-2")
    assert not_accepted(topics, ["scratch.*", "orders|my-.*"]) == ()
    assert not_accepted(topics, []) == tuple(sorted(topics))


replica_sets = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True)


@pytest.mark.slow
@given(st.lists(replica_sets, max_size=6), st.integers(1, 4), st.sets(st.integers(0, 4)))
def test_a_topic_suffers_exactly_where_a_stopping_replica_is_needed(
    sets: list[list[int]], wanted: int, stopping: set[int]
) -> None:
    """Against the sentence itself: with one of the brokers down, fewer are left than are wanted, or none."""
    partitions = columns_of(Partition(f"t{n}", topic_id(n), 0, replicas) for n, replicas in enumerate(sets))
    expected = {
        f"t{n}"
        for n, replicas in enumerate(sets)
        if stopping.intersection(replicas) and len(replicas) - 1 < max(1, wanted)
    }
    assert set(suffering(partitions, NO_ENTITIES, wanted, stopping).topics) == expected


def test_the_readers_of_each_place() -> None:
    """Numbers, by topic and as the default."""
    entities = entities_of([TOPIC, DEFAULT, ("topic-config", "other", MIN_ISR, "1")])
    assert of_topics(entities) == {"orders": 3, "other": 1}
    assert of_brokers(entities, files({MIN_ISR: "2"}), BROKERS) == 3
    assert of_brokers(NO_ENTITIES, files({MIN_ISR: "2"}), BROKERS) == 2
    assert of_brokers(NO_ENTITIES, files({}), BROKERS) == 1
