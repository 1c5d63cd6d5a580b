"""Where the cluster stands in the copy, and the ledger by the pure rule."""

from __future__ import annotations

from migrate.model import facts as ledger_facts
from migrate.model.ledger import Ledger
from migrate.model.new_directories import alone
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.unswept import unswept
from migrate.model.views import NoZnode
from migrate.model.world import World


def stands(world: World) -> tuple[bool, bool]:
    """(after the copy, finalized), as the committed metadata says.

    Where the metadata cannot be read, only a ZooKeeper without /migration proves that nothing was copied; everything
    else counts as after the copy, so that rows which need the metadata become UNKNOWN and not MIGRATING.
    """
    if isinstance(world.kraft, Unknown):
        untouched = not isinstance(world.zookeeper, Unknown) and isinstance(world.zookeeper.migration, NoZnode)
        return not untouched, False
    state = world.kraft.migration_state
    finalized = alone(world.kraft, world.inventory.zookeeper)
    return finalized or state is ZkMigrationState.MIGRATION, finalized


def pure_ledger(world: World) -> Ledger | Unknown:
    """The ledger by the pure rule."""
    after_copy, finalized = stands(world)
    if isinstance(world.zookeeper, Unknown) and not finalized:
        return Unknown(f"the ledger is seeded from ZooKeeper: {world.zookeeper.reason}")
    with unswept():
        return ledger_facts.build(world.zookeeper, world.kraft, world.disks, after_copy=after_copy, finalized=finalized)
