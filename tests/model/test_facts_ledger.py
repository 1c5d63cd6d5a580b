"""The pure ledger stands where the committed metadata stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.facts import migration_state, pure_ledger
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MigrationZnode, NullZnode
from migrate.model.world import World
from tests.testing import worlds
from tests.testing.worlds import world_at


@pytest.mark.parametrize(
    ("world", "wanted"),
    [
        (world_at(Stage.ASSESS), (False, False)),
        (world_at(Stage.CONTROLLERS), (False, False)),
        (world_at(Stage.COPY), (True, False)),
        (world_at(Stage.SOAK), (True, False)),
        (world_at(Stage.FINALIZE), (True, True)),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=MigrationZnode(-1, -1, -1, -1, 0)), (True, False)),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=MigrationZnode(400, 1, 3000, 2, 7)), (True, False)),
        (worlds.with_zk(world_at(Stage.ASSESS), migration=NullZnode(0)), (True, False)),
        (replace(world_at(Stage.ASSESS), zookeeper=Unknown("gone")), (True, False)),
    ],
)
def test_before_or_after_the_copy_is_said_by_committed_metadata(world: World, wanted: tuple[bool, bool]) -> None:
    """Where it cannot be read, only a ZooKeeper without /migration proves that nothing was copied."""
    assert migration_state(world) == wanted


@pytest.mark.parametrize("state", ZkMigrationState)
def test_every_state_of_the_metadata_has_its_place(state: ZkMigrationState) -> None:
    """NONE and PRE_MIGRATION: nothing was copied."""
    after = state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION)
    finalized = state is ZkMigrationState.POST_MIGRATION
    assert migration_state(worlds.with_kraft(world_at(Stage.COPY), migration_state=state)) == (after, finalized)


def test_before_the_copy_every_healthy_replica_is_migrating() -> None:
    """The ledger stands nowhere yet."""
    found = pure_ledger(world_at(Stage.ASSESS))
    assert isinstance(found, Ledger)
    assert (found.offset, found.counts()) == (-1, {"MIGRATING": 18})


def test_without_zookeeper_there_is_a_ledger_after_finalize_alone() -> None:
    """It is seeded from ZooKeeper's replica lists until then."""
    gone = replace(world_at(Stage.COPY), zookeeper=Unknown("no session"))
    assert pure_ledger(gone) == Unknown("the ledger is seeded from ZooKeeper: no session")
    final = pure_ledger(world_at(Stage.CLEANUP))
    assert isinstance(final, Ledger)
    assert final.counts() == {"VERIFIED": 18}


def test_a_metadata_version_of_kafka_4_says_that_zookeeper_is_gone() -> None:
    """Kafka 4.x forgets that there was a migration; 3.9 knows 4.0-IV0 and 4.0-IV1 too, as unstable ones."""
    gone = replace(world_at(Stage.CLEANUP), zookeeper=Unknown("no session"))
    for level in (21, 23, 24, 33):
        forgotten = worlds.with_kraft(gone, migration_state=ZkMigrationState.NONE, features={"metadata.version": level})
        assert isinstance(pure_ledger(forgotten), Ledger) == (level >= 24)


def test_metadata_that_cannot_be_read_after_the_copy_leaves_no_row_migrating() -> None:
    """MIGRATING would be a statement."""
    found = pure_ledger(replace(world_at(Stage.COPY), kraft=Unknown("no controller answers")))
    assert isinstance(found, Ledger)
    assert found.counts() == {"UNKNOWN": 18}
    assert found.unknown == ("kraft: no controller answers",)
