"""What must become unavailable when a broker stops is found by topic, whoever sets min.insync.replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.columns import EntityColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.steps import gates
from migrate.steps.availability import default_min_isr, min_isr_by_topic, not_accepted, unavoidable
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.clusters import Partition, columns_of, entities_of, topic_id
from tests.testing.worlds import kraft

NO_ENTITIES = EntityColumns()
TOPIC = ("topic-config", "orders", "min.insync.replicas", "3")
DEFAULT = ("broker-config", "<default>", "min.insync.replicas", "3")
FILE = {"min.insync.replicas": "3"}


def orders(*replicas: int) -> list[Partition]:
    """One topic with one partition."""
    return [Partition("orders", topic_id(7), 0, list(replicas))]


def suffering(
    entities: list[tuple[str, str, str, str]], file: Mapping[str, str], replicas: tuple[int, ...] = (0, 1, 2)
) -> dict[str, str]:
    """What suffers when broker 0 stops."""
    return unavoidable(columns_of(orders(*replicas)), entities_of(entities), file, [0])


@pytest.mark.parametrize(
    ("entities", "file"),
    [([TOPIC], {}), ([DEFAULT], {}), ([], FILE), ([TOPIC], {"min.insync.replicas": "1"})],
    ids=["topic", "dynamic default", "file", "topic over file"],
)
def test_each_place_of_min_insync_replicas_counts(
    entities: list[tuple[str, str, str, str]], file: dict[str, str]
) -> None:
    """Three replicas, all of them wanted: none may stop."""
    assert suffering(entities, file) == {"orders": "3 replicas and min.insync.replicas=3"}


@pytest.mark.parametrize(
    ("entities", "file"),
    [
        ([], {}),
        ([("topic-config", "orders", "min.insync.replicas", "2"), DEFAULT], FILE),
        ([("broker-config", "<default>", "min.insync.replicas", "2")], FILE),
        ([("topic-config", "other", "min.insync.replicas", "3")], {}),
        ([("topic-config", "orders", "retention.ms", "3")], {}),
        ([("broker-config", "1", "min.insync.replicas", "3")], {}),
        ([("client-quota", "<default>", "min.insync.replicas", "3")], {}),
    ],
    ids=["nowhere", "topic wins", "default wins", "other topic", "other name", "one broker's own", "other kind"],
)
def test_the_nearest_place_wins_and_nothing_else_counts(
    entities: list[tuple[str, str, str, str]], file: dict[str, str]
) -> None:
    """Topic, then the cluster's dynamic default, then the file, then 1."""
    assert suffering(entities, file) == {}


def test_a_single_replica_suffers_whatever_is_wanted_and_only_with_its_own_broker() -> None:
    """No setting saves it; another broker's stop does not touch it."""
    assert suffering([], {}, replicas=(0,)) == {"orders": "one replica"}
    assert suffering([TOPIC], FILE, replicas=(1,)) == {}
    assert suffering([TOPIC], FILE, replicas=(1, 2)) == {}


def test_one_bad_partition_is_enough_and_one_replica_is_the_reason_that_stays() -> None:
    """Reasons of a topic's partitions: the worse one is told."""
    partitions = columns_of([*orders(0, 1), Partition("orders", topic_id(7), 1, [0])])
    assert unavoidable(partitions, entities_of([TOPIC]), {}, [0]) == {"orders": "one replica"}


def test_patterns_accept_whole_names_only() -> None:
    """`scratch` does not name `scratch-2`, and a dot is a dot only where it is escaped."""
    topics = ["scratch", "scratch-2", "my-scratch", "orders"]
    assert not_accepted(topics, ["scratch"]) == ("my-scratch", "orders", "scratch-2")
    assert not_accepted(topics, ["scratch.*", "orders|my-.*"]) == ()
    assert not_accepted(topics, []) == tuple(sorted(topics))


replica_sets = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True)


@given(st.lists(replica_sets, max_size=6), st.integers(1, 4), st.sets(st.integers(0, 4)))
def test_a_topic_suffers_exactly_where_a_stopping_replica_is_needed(
    sets: list[list[int]], wanted: int, stopping: set[int]
) -> None:
    """Against the sentence itself: with one of the brokers down, fewer are left than are wanted, or none."""
    partitions = columns_of(Partition(f"t{n}", topic_id(n), 0, replicas) for n, replicas in enumerate(sets))
    found = unavoidable(partitions, NO_ENTITIES, {"min.insync.replicas": str(wanted)}, stopping)
    expected = {
        f"t{n}"
        for n, replicas in enumerate(sets)
        if stopping.intersection(replicas) and len(replicas) - 1 < max(1, wanted)
    }
    assert set(found) == expected


def test_the_readers_of_each_place() -> None:
    """Numbers, by topic and as the default."""
    entities = entities_of([TOPIC, DEFAULT, ("topic-config", "other", "min.insync.replicas", "1")])
    assert min_isr_by_topic(entities) == {"orders": 3, "other": 1}
    assert default_min_isr(entities, {"min.insync.replicas": "2"}) == 3
    assert default_min_isr(NO_ENTITIES, {"min.insync.replicas": "2"}) == 2
    assert default_min_isr(NO_ENTITIES, {}) == 1


# -- the gate ------------------------------------------------------------------------------------------------------
def with_single(world: World, name: str) -> World:
    """With a topic of one replica on broker 1, in the metadata after the copy and in ZooKeeper before."""
    partition = [Partition(name, topic_id(7), 0, [1])]
    if isinstance(world.kraft, Unknown) or not len(world.kraft.partitions):
        return worlds.with_zk(world, partitions=columns_of(partition))
    return worlds.with_kraft(world, partitions=columns_of(partition))


@pytest.mark.parametrize("stage", [Stage.CONTROLLERS, Stage.COPY])
def test_a_named_loss_is_accepted_and_any_other_is_refused_by_name(stage: Stage) -> None:
    """Before the copy by ZooKeeper, after it by the metadata."""
    named, unnamed = with_single(whole(stage), "single-a"), with_single(whole(stage), "orders")
    assert gates.stop_is_accepted(named, 1) == Ready()
    found = gates.stop_is_accepted(unnamed, 1)
    assert isinstance(found, Refused)
    assert "orders (one replica)" in found.reason
    assert "accept_unavailable" in found.reason
    assert gates.stop_is_accepted(unnamed, 0) == Ready()


def test_an_unseen_zookeeper_is_no_empty_one() -> None:
    """Before the copy the metadata holds no partition: ZooKeeper must be seen."""
    world = whole(Stage.CONTROLLERS)
    assert len(kraft(world).partitions) == 0
    assert gates.stop_is_accepted(replace(world, zookeeper=Unknown("gone")), NodeId(1)) == Unknown("gone")
