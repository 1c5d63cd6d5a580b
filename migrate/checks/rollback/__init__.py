"""Where a rollback would start: what has to be taken back, by `migrate.model.broker_modes` (pure).

Readiness and the rollback plan both ask here, so that they name the same brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from migrate.model.broker_modes import Mode, has_flag, positions, roles_of
from migrate.model.ids import NodeId
from migrate.model.new_directories import alone
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ConfigFile, NoZnode
from migrate.model.world import World


class Start(IntEnum):
    """The entries of the one procedure, by how much of it is needed."""

    NOTHING = 0
    CONTROLLERS = 1
    MIGRATION = 2
    KRAFT = 3
    FINALIZED = 4


@dataclass(frozen=True, slots=True)
class Origin:
    """What has to be taken back.

    `migration` also has brokers whose file was changed since their process started: only a restart proves what runs.
    `unknown` maps each broker whose mode cannot be determined to the reason.
    """

    start: Start
    migration: tuple[NodeId, ...]
    kraft: tuple[NodeId, ...]
    unknown: Mapping[NodeId, str]
    brokers: int
    copied: bool
    seen: bool = True  # could ZooKeeper or the metadata be asked whether anything was begun?

    @property
    def changed(self) -> tuple[NodeId, ...]:
        """Brokers that a rollback restarts."""
        return tuple(sorted((*self.migration, *self.kraft)))

    @property
    def label(self) -> str:
        match self.start:
            case Start.NOTHING:
                return "nothing was begun"
            case Start.CONTROLLERS:
                return "controllers" if self.seen else "unknown"
            case Start.MIGRATION:
                half = "" if len(self.migration) == self.brokers else "half of "
                return "hybrid" if self.copied else f"{half}migration-mode"
            case Start.KRAFT:
                return "kraft-mode" if len(self.kraft) == self.brokers else "half of kraft-mode"
            case _:
                return "finalize"


def origin(world: World) -> Origin:
    found = positions(world)
    kraft = tuple(one.broker for one in found if one.furthest is Mode.KRAFT)
    migration = tuple(one.broker for one in found if one.furthest is Mode.MIGRATION)
    unknown = {one.broker: one.furthest.reason for one in found if isinstance(one.furthest, Unknown)}
    start = Start.KRAFT if kraft else Start.MIGRATION if migration else Start.CONTROLLERS
    if start is Start.CONTROLLERS and not _controllers_began(world):
        start = Start.NOTHING
    if _finalized(world, kraft):
        start = Start.FINALIZED
    if start is not Start.NOTHING:
        unproven = {one.broker for one in found if one.furthest is Mode.ZOOKEEPER and one.changed}
        migration = tuple(one.broker for one in found if one.broker in unproven.union(migration))
    seen = not (isinstance(world.kraft, Unknown) and isinstance(world.zookeeper, Unknown))
    return Origin(start, migration, kraft, unknown, len(found), _copied(world), seen)


def _controllers_began(world: World) -> bool:
    """Did a controller ever start, or may it have?  It leaves /migration; what cannot be seen counts as begun."""
    if not isinstance(world.kraft, Unknown) or isinstance(world.zookeeper, Unknown):
        return True
    return not isinstance(world.zookeeper.migration, NoZnode)


def _copied(world: World) -> bool:
    """Does the metadata lead, by its own word or by ZooKeeper's record of a copied offset?"""
    if not isinstance(world.kraft, Unknown):
        return world.kraft.migration_state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION)
    return not isinstance(world.zookeeper, Unknown) and world.zookeeper.copy_note is not None


def _finalized(world: World, kraft: tuple[NodeId, ...]) -> bool:
    """By the metadata; where it cannot be read, by files that know no ZooKeeper any more."""
    if not isinstance(world.kraft, Unknown):
        state = world.kraft.migration_state  # Kafka 4 forgets that there was a migration
        forgotten = state is ZkMigrationState.NONE and alone(world.kraft, world.inventory.zookeeper)
        return forgotten or state is ZkMigrationState.POST_MIGRATION
    if isinstance(world.configs, Unknown) or len(kraft) != len(world.inventory.brokers):
        return False
    files = [world.configs.get(node.id) for node in world.inventory.controllers]
    return bool(files) and all(
        isinstance(file, ConfigFile) and roles_of(file.values) and not has_flag(file.values) for file in files
    )
