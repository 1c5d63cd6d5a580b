"""An accepted replica is not waited for; everything else is, and no stop takes more than its partition bears."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import NotYet, Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import LiveView, MetadataAnswer, PartitionHealth
from migrate.model.world import World
from migrate.steps import gates
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.clusters import Partition, columns_of, topic_id

DAY, EXPIRES = "2026-06-30", "2026-07-01"
REPLICAS = (0, 1, 2)


def accepting(world: World, *brokers: int, expires: str = EXPIRES, name: str = "orders-0") -> World:
    """On DAY, with acceptances of that partition's replicas on these brokers."""
    assert not isinstance(world.playbook, Unknown)
    entries = tuple(
        AcceptedDifference("W-HLT-03", "partition", name, str(broker), "slow disk", "CHG1", expires)
        for broker in brokers
    )
    return replace(world, today=DAY, playbook=replace(world.playbook, accepted_differences=entries))


def lacking(isr: tuple[int, ...], leader: int = 1, min_isr: str = "1", replicas: tuple[int, ...] = REPLICAS) -> World:
    """Before the first roll every broker says that orders-0 has this ISR."""
    world = worlds.with_zk(
        whole(Stage.CONTROLLERS), partitions=columns_of([Partition("orders", topic_id(7), 0, list(replicas))])
    )
    world = worlds.with_entity(world, "topic-config", "orders", "min.insync.replicas", min_isr)
    live = world.live
    assert isinstance(live, LiveView)
    sick = PartitionHealth("orders", 0, leader, isr, replicas)
    answers = {
        node: replace(answer, unhealthy=(sick,)) if isinstance(answer, MetadataAnswer) else answer
        for node, answer in live.metadata.items()
    }
    return replace(world, live=replace(live, metadata=answers))


def test_exactly_the_named_replica_is_not_waited_for() -> None:
    """The other one of the same partition, another partition and another broker are."""
    world = lacking((0, 1))
    assert isinstance(gates.replicas_full(world), NotYet)
    assert gates.replicas_full(accepting(world, 2)) == Ready()
    assert isinstance(gates.replicas_full(accepting(world, 1)), NotYet)
    assert isinstance(gates.replicas_full(accepting(world, 2, name="orders-1")), NotYet)
    assert isinstance(gates.replicas_full(accepting(lacking((1,)), 2)), NotYet)
    assert gates.replicas_full(accepting(lacking((1,)), 0, 2)) == Ready()


@pytest.mark.parametrize("day", [DAY, "2026-06-29", ""])
def test_an_acceptance_that_has_expired_excuses_nothing(day: str) -> None:
    """From its day on; nor does one whose day cannot be held against a date."""
    world = accepting(lacking((0, 1)), 2, expires=day or EXPIRES)
    assert isinstance(gates.replicas_full(world if day else replace(world, today="")), NotYet)


@pytest.mark.parametrize("leader", [-1, 2])
def test_a_partition_without_a_leader_is_never_excused(leader: int) -> None:
    """Nor one whose leader its ISR lacks: it changes at this moment."""
    assert isinstance(gates.replicas_full(accepting(lacking((0, 1), leader), 2)), NotYet)
    assert isinstance(gates.replicas_full(accepting(lacking((), leader), 0, 1, 2)), NotYet)


def test_a_stop_leaves_as_many_in_sync_as_the_topic_asks_for() -> None:
    """The broker of the accepted replica may stop: it takes nothing of that partition."""
    for min_isr, expected in (("1", Ready), ("2", Refused)):
        world = accepting(lacking((0, 1), min_isr=min_isr), 2)
        assert isinstance(gates.stop_is_accepted(world, 1), expected), min_isr
        assert gates.stop_is_accepted(world, 2) == Ready()
    found = gates.stop_is_accepted(world, 0)
    assert found == Refused("without broker 0 orders-0 has 1 replica in sync, and min.insync.replicas=2", ("B-HLT-07",))


def test_below_min_insync_replicas_the_topic_must_be_accepted_as_well() -> None:
    """By its name, as without any acceptance of a replica."""
    world = accepting(lacking((0, 1), min_isr="2"), 2)
    assert not isinstance(world.playbook, Unknown)
    named = replace(world, playbook=replace(world.playbook, accept_unavailable=("orders",)))
    assert gates.stop_is_accepted(named, 1) == Ready()


def test_the_last_replica_in_sync_is_never_taken() -> None:
    """Whatever else is accepted."""
    world = accepting(lacking((1,)), 0, 2)
    assert not isinstance(world.playbook, Unknown)
    named = replace(world, playbook=replace(world.playbook, accept_unavailable=("orders",)))
    assert gates.stop_is_accepted(named, 1) == Refused(
        "broker 1 has the only replica of orders-0 that is in sync", ("B-HLT-07",)
    )
    assert gates.stop_is_accepted(named, 0) == Ready()


def test_answers_that_were_not_seen_excuse_nothing() -> None:
    """A stop with acceptances needs what brokers say now."""
    world = accepting(lacking((0, 1)), 2)
    assert gates.stop_is_accepted(replace(world, live=Unknown("gone")), 1) == Unknown("gone")
    world = worlds.with_entity(world, "topic-config", "orders", "min.insync.replicas", "some")
    assert isinstance(gates.stop_is_accepted(world, 1), Unknown | Refused)
