"""What is said about each state, and what a broker's own answer says against its disks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, DirectoryId, NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.remedies import Remedy, remedy_of, told_otherwise
from migrate.model.stage import Stage
from migrate.model.views import LogDirAnswer
from migrate.model.world import World
from migrate.observe.ledgers import pure_ledger
from tests.model.test_rescue import DEAD, healthy, killed, named
from tests.testing import worlds
from tests.testing.clusters import directory_id, uuid


def row(state: ReplicaState, *, on_disk: str = str(directory_id(0, 1)), named_id: str = "") -> LedgerRow:
    """A row of broker 0."""
    return LedgerRow("t", uuid(1), 0, 0, state, on_disk, named_id)


def rows_of(world: World) -> list[tuple[LedgerRow, Remedy]]:
    """What the ledger says of broker 0, with what to do."""
    ledger = pure_ledger(world)
    assert isinstance(ledger, Ledger)
    mends = [(entry, remedy_of(entry, world)) for entry in ledger.of(0)]
    return [(entry, mend) for entry, mend in mends if mend is not None]


def test_nothing_is_to_be_done_about_a_verified_row_and_something_about_every_other() -> None:
    """No state is left without words."""
    for state in ReplicaState:
        assert (remedy_of(row(state), healthy()) is None) is (state is ReplicaState.VERIFIED)
    assert rows_of(healthy()) == []


@pytest.mark.parametrize("value", [LOST, DirectoryId(uuid(77)), directory_id(0, 0), directory_id(1, 1)])
def test_a_wrong_value_is_recognised_under_a_full_isr_and_the_disks_id_is_to_be_sent(value: str) -> None:
    """LOST, random, the broker's own other directory, another broker's."""
    world = named(healthy(), 0, value)
    rows = worlds.kraft(world).partitions
    assert [sorted(isr) for isr in rows.isr] == [sorted(replicas) for replicas in rows.replicas]
    found = rows_of(world)
    assert found
    assert all(mend.send == entry.on_disk and "directories rescue" in mend.words for entry, mend in found)
    assert {entry.state for entry, _ in found} <= {ReplicaState.LOST, ReplicaState.MISMATCH}


@pytest.mark.parametrize("value", [MIGRATING, UNASSIGNED])
def test_what_is_not_reported_yet_is_waited_for_or_assigned(value: str) -> None:
    """In KRaft mode it is odd after a second, in migration mode it is right."""
    found = rows_of(named(healthy(), 0, value))
    assert found
    assert all(mend.send == entry.on_disk and "reports it within a second" in mend.words for entry, mend in found)
    before = rows_of(worlds.world_at(Stage.HYBRID))
    assert before
    assert all("as it must be" in mend.words for _, mend in before)


def test_a_replica_of_a_dead_directory_leads_to_the_rescue() -> None:
    """It is on no healthy disk, and the broker says why."""
    found = rows_of(killed(named(healthy(), 0, MIGRATING), DEAD))
    (mend,) = {mend.words for entry, mend in found if entry.state is ReplicaState.NOT_ON_DISK}
    assert "directories rescue" in mend
    quiet = remedy_of(row(ReplicaState.NOT_ON_DISK, on_disk=""), healthy())
    assert quiet is not None
    assert "look again" in quiet.words


def test_nothing_is_to_be_sent_for_a_directory_that_is_not_registered() -> None:
    """Kafka would take the id, and the replica would leave the ISR."""
    for state in (ReplicaState.MISMATCH, ReplicaState.MIGRATING):
        mend = remedy_of(row(state, on_disk=uuid(99), named_id=uuid(98)), healthy())
        assert mend is not None
        assert mend.send == ""
        assert "not registered" in mend.words


# -- DescribeLogDirs -------------------------------------------------------------------------------------------------
def with_answer(world: World, *answers: LogDirAnswer) -> World:
    """Broker 0 says that."""
    return worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(0): answers})


def said_by_broker_0() -> tuple[LogDirAnswer, ...]:
    """Its answer while all is well."""
    answer = worlds.live(healthy()).log_dirs[NodeId(0)]
    assert not isinstance(answer, Unknown)
    return answer


def test_a_broker_that_tells_what_lies_on_its_disks_is_not_mentioned() -> None:
    """None of three."""
    assert list(told_otherwise(healthy())) == []


def test_each_difference_between_answer_and_disk_is_told() -> None:
    """Offline, unknown to either side, another count, a broken disk not yet noticed."""
    first, second, third = said_by_broker_0()
    world = healthy()
    assert "offline to the broker (error 56) and healthy" in next(
        told_otherwise(with_answer(world, first, replace(second, error=56), third))
    )
    assert "does not know it" in next(told_otherwise(with_answer(world, first, third)))
    assert "the broker tells of 99" in next(
        told_otherwise(with_answer(world, first, replace(second, replicas=99), third))
    )
    more = with_answer(world, first, second, third, LogDirAnswer("/data/b0/d9", 0, 0, ()))
    assert list(told_otherwise(more)) == ["/data/b0/d9 is a directory of broker 0, and not in its file"]
    broken = worlds.with_directory(world, 0, 1, lambda entry: replace(entry, problem="is no folder"))
    assert "has not noticed yet" in next(told_otherwise(broken))
    assert "is dead" in next(told_otherwise(killed(world, DEAD)))


def test_a_broker_that_does_not_answer_is_told() -> None:
    """Nothing is known of it then."""
    live = worlds.live(healthy())
    world = worlds.with_live(healthy(), log_dirs={**live.log_dirs, NodeId(2): Unknown("timed out")})
    assert list(told_otherwise(world)) == ["broker 2 does not tell its log directories: timed out"]
