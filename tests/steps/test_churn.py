"""Topics in creation or deletion: what lasts holds a step by its name, what comes and goes does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Ready, Refused
from migrate.model.stage import Stage
from migrate.model.views import ZookeeperView
from migrate.model.world import World
from migrate.steps import churn, gates
from tests.checks.bends import pending
from tests.steps.looks import broken_disk, row_in, whole
from tests.testing import worlds
from tests.testing.worlds import with_zk

BEFORE = whole(Stage.CONTROLLERS)
Look = Callable[[World], object]


def seen(world: World, gate: str, *names: str) -> World:
    """The world of a later look of a wait, in whose looks so far those objects were there."""
    return replace(world, facts={**world.facts, churn.PASSING + gate: "\n".join(names)})


def no_blockers(world: World) -> object:
    """The gate of the first roll."""
    return gates.no_blockers(world, Stage.MIGRATION_MODE)


def test_a_topic_that_is_being_deleted_is_waited_for_by_its_name() -> None:
    """A second later it is gone; refusing it would end an unattended run."""
    found = no_blockers(pending(deletions=("orders",))(BEFORE))
    assert isinstance(found, NotYet)
    assert "B-ZKN-06 /admin/delete_topics/orders" in found.what
    assert found.objects == {"B-ZKN-06 /admin/delete_topics/orders"}


def test_a_deletion_that_lasts_makes_no_progress_however_many_others_come_and_go() -> None:
    """What the wait is judged by names that one alone, so that no_progress_timeout ends it."""
    orders = "B-ZKN-06 /admin/delete_topics/orders"
    looks = [
        no_blockers(seen(pending(deletions=("orders", f"t{number}"))(BEFORE), "findings", orders, "B-ZKN-06 other"))
        for number in range(3)
    ]
    told = {(look.what, look.progress) for look in looks if isinstance(look, NotYet)}
    assert len(told) == 1
    assert all("t1" not in what for what, _ in told)


def test_the_gate_opens_when_all_that_the_first_look_saw_is_gone() -> None:
    """A client that creates and deletes topics all the time never leaves a look without one."""
    world = pending(deletions=("another",))(BEFORE)
    assert no_blockers(seen(world, "findings", "B-ZKN-06 /admin/delete_topics/orders")) == Ready()


def test_a_reassignment_is_waited_for_until_none_is_left() -> None:
    """A new one counts as well: the roll must not begin beside it."""
    world = pending(reassignments=("orders-1",))(BEFORE)
    found = no_blockers(seen(world, "findings", "B-ZKN-07 partition other-0"))
    assert isinstance(found, NotYet)
    assert "reassignment: orders-1" in found.what


def test_a_partition_without_a_state_is_waited_for_even_where_it_is_new() -> None:
    """The copy would invent its state: the roll begins in a look without one."""

    def bend(world: World) -> World:
        assert isinstance(world.zookeeper, ZookeeperView)
        return with_zk(world, partitions_without_state=("orders-0",))

    assert isinstance(no_blockers(bend(BEFORE)), NotYet)
    assert isinstance(no_blockers(seen(bend(BEFORE), "findings", "B-ZKN-06 x")), NotYet)


def test_another_blocker_beside_a_deletion_refuses_at_once() -> None:
    """Waiting would not help."""
    found = no_blockers(pending(deletions=("orders",))(with_zk(BEFORE, topics_without_id=("old",))))
    assert isinstance(found, Refused)
    assert "B-ZKN-03" in found.codes


SOAK = whole(Stage.SOAK)


def verified(world: World) -> object:
    """The ledger's gate."""
    return gates.ledger_is(world, ReplicaState.VERIFIED)


def test_a_new_topics_replica_without_a_directory_is_not_waited_for_again_and_again() -> None:
    """Its broker reports it; those that the first look saw must be VERIFIED or gone."""
    world = row_in(ReplicaState.UNASSIGNED)(SOAK)
    first = verified(world)
    assert isinstance(first, NotYet)
    assert verified(seen(world, "replicas", "another")) == Ready()
    assert isinstance(verified(seen(world, "replicas", *first.objects)), NotYet)


@pytest.mark.parametrize("state", [ReplicaState.LOST, ReplicaState.MISMATCH, ReplicaState.TWO_COPIES])
def test_a_replica_that_no_new_topic_looks_like_refuses(state: ReplicaState) -> None:
    """At once, and however new it is."""
    world = row_in(state)(SOAK)
    assert isinstance(verified(world), Refused)
    assert isinstance(verified(seen(world, "replicas", "another")), Refused)


def test_a_replica_on_no_disk_is_waited_for_and_refused_where_a_disk_is_sick() -> None:
    """A folder comes a moment after its topic; none comes to a dead disk."""
    world = row_in(ReplicaState.NOT_ON_DISK)(SOAK)
    assert isinstance(verified(world), NotYet)
    assert isinstance(verified(seen(world, "replicas", "another")), NotYet), "never passed over: a disk may be empty"
    assert isinstance(verified(broken_disk(0)(world)), Refused)


def test_worlds_without_churn_are_ready() -> None:
    """Nothing is waited for where nothing is seen."""
    assert no_blockers(BEFORE) == verified(SOAK) == Ready()
    assert worlds.zk(BEFORE).pending.deletions == ()
