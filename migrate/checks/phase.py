"""Which of the two metadata stores leads: what is a fault before the copy may be right after it."""

from __future__ import annotations

from enum import Enum

from migrate.model.new_directories import alone
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import NoZnode, Running
from migrate.model.world import World


class Phase(Enum):
    """ZooKeeper alone; both, KRaft leading; KRaft alone."""

    BEFORE_COPY = "before the copy"
    DUAL_WRITE = "dual write"
    FINALIZED = "finalized"


def phase_of(world: World) -> Phase:
    """By the metadata's state; where no controller can be read, by who holds /controller."""
    if not isinstance(world.kraft, Unknown):
        if alone(world.kraft, world.inventory.zookeeper):
            return Phase.FINALIZED
        return Phase.DUAL_WRITE if world.kraft.migration_state is ZkMigrationState.MIGRATION else Phase.BEFORE_COPY
    return Phase.DUAL_WRITE if kraft_holds_controller(world) else Phase.BEFORE_COPY


def kraft_holds_controller(world: World) -> bool:
    """Is /controller known to be a KRaft controller's?"""
    return not isinstance(world.zookeeper, Unknown) and world.zookeeper.kraft_owns


def no_quorum_yet(world: World) -> bool:
    """Is it known that no KRaft controller runs?  Then there is nothing to see, rather than something unseen.

    Any controller with the flag creates /migration; one that was stopped leaves it, so its process is asked for too.
    """
    if not isinstance(world.kraft, Unknown) or isinstance(world.zookeeper, Unknown) or kraft_holds_controller(world):
        return False
    if isinstance(world.zookeeper.migration, NoZnode):
        return True
    if isinstance(world.services, Unknown):
        return False
    states = [world.services.get(node.id) for node in world.inventory.controllers]
    return bool(states) and not any(state is None or isinstance(state, Running | Unknown) for state in states)


def lost_at_the_end(world: World) -> frozenset[int]:
    """Brokers outside KRaft mode that went away after a finalize that came too early: their own roll makes them whole.

    The controllers take no registration of theirs any more (BROKER_ID_NOT_REGISTERED), so the old one stays, fenced,
    and they see nobody: what forbids to continue elsewhere is here what continuing repairs (seen).
    """
    if isinstance(world.kraft, Unknown) or not world.finalized:
        return frozenset()
    return frozenset(int(node) for node, entry in world.kraft.brokers.items() if entry.migrating and entry.fenced)
