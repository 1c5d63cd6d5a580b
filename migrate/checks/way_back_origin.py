"""From where a way back would start: what each broker is, by its registration and by its file (pure).

A half-done step leaves a file ahead of the process, or a process ahead of the file: the further of the two counts,
because both have to be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from migrate.checks.phase import FLAG, Mode, mode_of, roles_of, truth
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ConfigFile, MigrationZnode, NoZnode, Running
from migrate.model.world import World

ORDER: Final = (Mode.ZOOKEEPER, Mode.MIGRATION, Mode.KRAFT)


class Start(IntEnum):
    """The entries of the one procedure, by how much of it is needed."""

    NOTHING = 0
    CONTROLLERS = 1
    MIGRATION = 2
    KRAFT = 3
    FINALIZED = 4


@dataclass(frozen=True, slots=True)
class Origin:
    """What has to be taken back.  `unknown` are brokers of which neither file nor registration says what they are."""

    start: Start
    migration: tuple[NodeId, ...]
    kraft: tuple[NodeId, ...]
    unknown: tuple[NodeId, ...]
    brokers: int
    copied: bool
    seen: bool = True  # could ZooKeeper or the metadata be asked whether anything was begun?

    @property
    def changed(self) -> tuple[NodeId, ...]:
        """Brokers that a rollback restarts."""
        return tuple(sorted((*self.migration, *self.kraft)))

    @property
    def label(self) -> str:
        """Where that is, for a person."""
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
    """Where the way back would start."""
    modes = {node.id: _mode(world, node.id) for node in world.inventory.brokers}
    migration = tuple(node for node, mode in modes.items() if mode is Mode.MIGRATION)
    kraft = tuple(node for node, mode in modes.items() if mode is Mode.KRAFT)
    unknown = tuple(node for node, mode in modes.items() if mode is None)
    start = Start.KRAFT if kraft else Start.MIGRATION if migration else Start.CONTROLLERS
    if start is Start.CONTROLLERS and not _controllers_began(world):
        start = Start.NOTHING
    if _finalized(world, kraft):
        start = Start.FINALIZED
    seen = not (isinstance(world.kraft, Unknown) and isinstance(world.zookeeper, Unknown))
    return Origin(start, migration, kraft, unknown, len(modes), _copied(world), seen)


def _mode(world: World, broker: NodeId) -> Mode | None:
    found = []
    file = world.configs if isinstance(world.configs, Unknown) else world.configs.get(broker)
    if isinstance(file, ConfigFile):
        found.append(mode_of(file.values))
    entry = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(broker)
    # PRE_MIGRATION keeps the registration of a broker that was taken back already: its file alone says so
    stale = found == [Mode.ZOOKEEPER] and not _registered_now(world, broker)
    if entry is not None and not (entry.migrating and stale):
        found.append(Mode.MIGRATION if entry.migrating else Mode.KRAFT)
    return max(found, key=ORDER.index, default=None)


def _registered_now(world: World, broker: NodeId) -> bool:
    """Is the registration of a process that may still run?  Not if the process was started with the file that is."""
    if isinstance(world.services, Unknown) or isinstance(world.configs, Unknown):
        return True
    state, file = world.services.get(broker), world.configs.get(broker)
    if not isinstance(state, Running) or not isinstance(file, ConfigFile):
        return True
    return state.config_sha256 is None or state.config_sha256 != file.sha256


def _controllers_began(world: World) -> bool:
    """Did a controller ever start, or may it have?  It leaves /migration; what cannot be seen counts as begun."""
    if not isinstance(world.kraft, Unknown) or isinstance(world.zookeeper, Unknown):
        return True
    return not isinstance(world.zookeeper.migration, NoZnode)


def _copied(world: World) -> bool:
    """Does the metadata lead, by its own word or by ZooKeeper's record of a copied offset?"""
    if not isinstance(world.kraft, Unknown):
        return world.kraft.migration_state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION)
    if isinstance(world.zookeeper, Unknown):
        return False
    znode = world.zookeeper.migration
    return isinstance(znode, MigrationZnode) and znode.offset > 0


def _finalized(world: World, kraft: tuple[NodeId, ...]) -> bool:
    """By the metadata; where it cannot be read, by files that know no ZooKeeper any more."""
    if not isinstance(world.kraft, Unknown):
        return world.kraft.migration_state is ZkMigrationState.POST_MIGRATION
    if isinstance(world.configs, Unknown) or len(kraft) != len(world.inventory.brokers):
        return False
    files = [world.configs.get(node.id) for node in world.inventory.controllers]
    return bool(files) and all(
        isinstance(file, ConfigFile) and roles_of(file.values) and not truth(file.values, FLAG) for file in files
    )
