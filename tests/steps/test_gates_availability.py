"""The gate before a stop: what must become unavailable was accepted by topic, or the broker is not stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.outcome import Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import NoFile
from migrate.model.world import World
from migrate.steps import gates
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.clusters import Partition, columns_of, topic_id
from tests.testing.worlds import kraft


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


def test_a_file_that_cannot_be_read_is_unknown_only_where_it_decides() -> None:
    """Any broker may lead, so that any file may decide; a topic that has a setting of its own needs none."""
    world = worlds.with_zk(
        whole(Stage.CONTROLLERS), partitions=columns_of([Partition("orders", topic_id(7), 0, [0, 1])])
    )
    assert not isinstance(world.configs, Unknown)
    for hidden in (Unknown("no right"), NoFile("/conf/2.properties")):
        blind = replace(world, configs={**world.configs, NodeId(2): hidden})
        found = gates.stop_is_accepted(blind, 0)
        assert isinstance(found, Unknown)
        assert "which topics suffer is not known" in found.reason
        assert gates.stop_is_accepted(blind, 2) == Ready()
        own = worlds.with_entity(blind, "topic-config", "orders", "min.insync.replicas", "1")
        assert gates.stop_is_accepted(own, 0) == Ready()
