"""From a World to a Standing: what the stage machine (`tests.oracles.machine`) decides by, read off what was observed.

What is unknown is never read as good: an answer that is missing makes a broker not whole, a comparison that is missing
makes the views not equal.  Only what a standing cannot do without makes it Unknown.
"""

from __future__ import annotations

from typing import Final

from migrate.model.broker_modes import node_mode, position_of
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Refused, Unknown
from migrate.model.rollback_readiness import old_log
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    ControllerZnode,
    LiveView,
    MetadataAnswer,
    MetaProperties,
    MigrationZnode,
    NoFile,
    NoZnode,
    PartitionHealth,
    Quorum,
    Running,
    Stopped,
    ZookeeperView,
)
from migrate.model.world import World
from migrate.steps import facts
from migrate.steps.rollback.control import are_behind
from migrate.steps.rollback.gates import stopped_equal
from tests.oracles.machine import (
    BrokerAt,
    ControllerAt,
    Flag,
    Metadata,
    Mode,
    Owner,
    Registered,
    Standing,
    Views,
    Znode,
)

MODES: Final = {"zookeeper": Mode.ZOOKEEPER, "migration": Mode.MIGRATION, "kraft": Mode.KRAFT}
FLAGS: Final = {"controller": Flag.ON, "finalized": Flag.OFF}
METADATA: Final = {
    ZkMigrationState.NONE: Metadata.NONE,
    ZkMigrationState.PRE_MIGRATION: Metadata.PRE_MIGRATION,
    ZkMigrationState.MIGRATION: Metadata.MIGRATION,
    ZkMigrationState.POST_MIGRATION: Metadata.POST_MIGRATION,
}


def standing_of(world: World, *, finalizing: bool = False) -> Standing | Unknown:
    """Where the cluster stands; Unknown where files, processes or ZooKeeper cannot be seen.

    `finalizing`: the run's journal says that finalize was begun.
    """
    if isinstance(world.services, Unknown):
        return world.services
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    brokers = []
    for node in world.inventory.brokers:
        broker = _broker(world, world.zookeeper, node.id)
        if isinstance(broker, Unknown):
            return broker
        brokers.append(broker)
    controllers = []
    for entry in world.inventory.controllers:
        controller = _controller(world, entry.id)
        if isinstance(controller, Unknown):
            return controller
        controllers.append(controller)
    return Standing(
        brokers=tuple(brokers),
        controllers=tuple(controllers),
        metadata=Metadata.UNKNOWN if isinstance(world.kraft, Unknown) else METADATA[world.kraft.migration_state],
        znode=_znode(world.zookeeper),
        owner=_owner(world.zookeeper),
        views=_views(world),
        epoch_low=_epoch_low(world.zookeeper),
        versions_low=are_behind(world),
        finalizing=finalizing,
        old_log=_old_log(world, world.zookeeper),
    )


# -- brokers -------------------------------------------------------------------------------------------------------
def _broker(world: World, zookeeper: ZookeeperView, node: NodeId) -> BrokerAt | Unknown:
    found = position_of(world, node)
    if isinstance(found.file, Unknown):
        return found.file
    if isinstance(found.process, Unknown):
        return found.process
    process = Mode.DOWN if isinstance(found.process, Stopped) else MODES[found.process.value]
    return BrokerAt(
        file=MODES[found.file.value],
        process=process,
        registered=_registered(world, node),
        whole=process is not Mode.DOWN and _whole(world, node, process),
        verified=_verified(world, node),
        healthy=_healthy(world, node),
        believes_kraft=process in (Mode.ZOOKEEPER, Mode.MIGRATION) and _believes(world, zookeeper, node),
        session_left=process is Mode.DOWN and node in zookeeper.brokers,
    )


def _registered(world: World, node: NodeId) -> Registered:
    found = None if isinstance(world.kraft, Unknown) else world.kraft.brokers.get(node)
    if found is None:
        return Registered.NOT
    return Registered.MIGRATING if found.migrating else Registered.KRAFT


def _whole(world: World, node: NodeId, process: Mode) -> bool:
    """It answers, the others see it, no partition of it lacks it in the ISR; registered and unfenced where due."""
    if isinstance(world.live, Unknown):
        return False
    answer = world.live.metadata.get(node)
    if not isinstance(answer, MetadataAnswer) or any(_out_of_sync(entry, node) for entry in answer.unhealthy):
        return False
    if not all(int(node) in other.brokers for other in _answers(world.live)):
        return False
    if process is Mode.ZOOKEEPER or isinstance(world.kraft, Unknown):
        return process is not Mode.KRAFT
    found = world.kraft.brokers.get(node)
    return found is not None and not found.fenced and found.migrating is (process is Mode.MIGRATION)


def _out_of_sync(entry: PartitionHealth, node: NodeId) -> bool:
    return node in entry.replicas and node not in entry.isr


def _answers(live: LiveView) -> list[MetadataAnswer]:
    return [answer for answer in live.metadata.values() if isinstance(answer, MetadataAnswer)]


def _verified(world: World, node: NodeId) -> bool:
    if isinstance(world.ledger, Unknown) or world.ledger.unknown:
        return False
    rows = world.ledger.of(node)
    return bool(rows) and all(row.state is ReplicaState.VERIFIED for row in rows)


def _healthy(world: World, node: NodeId) -> bool:
    disks = Unknown("") if isinstance(world.disks, Unknown) else world.disks.get(node)
    return isinstance(disks, BrokerDisks) and not any(entry.problem for entry in disks.directories)


def _believes(world: World, zookeeper: ZookeeperView, node: NodeId) -> bool:
    """Does it name anybody but the ZooKeeper-mode owner of /controller?  Before the takeover there is no such doubt."""
    owner = zookeeper.controller
    if isinstance(world.live, Unknown) or not isinstance(owner, ControllerZnode) or not owner.ephemeral:
        return True
    answer = world.live.metadata.get(node)
    return not isinstance(answer, MetadataAnswer) or set(answer.controller_ids) != {owner.id}


# -- controllers and znodes ----------------------------------------------------------------------------------------
def _controller(world: World, node: NodeId) -> ControllerAt | Unknown:
    assert not isinstance(world.services, Unknown)
    file = facts.config(world, node)
    if isinstance(file, Unknown):
        return file
    flag = Flag.GONE if isinstance(file, NoFile) else FLAGS.get(node_mode(file.values))
    if flag is None:
        return Unknown(f"what controller {node} is cannot be determined by its file")
    state = world.services.get(node, Unknown(f"node {node} was not looked at"))
    if isinstance(state, Unknown):
        return state
    process = Flag.GONE
    if isinstance(state, Running):
        same = isinstance(file, ConfigFile) and state.config_sha256 in (None, file.sha256)
        process = flag if same else Flag.ON  # its file was changed since: it is what the planned change began with
    return ControllerAt(flag, process, _formatted(world, node), leads=_leads(world, node))


def _formatted(world: World, node: NodeId) -> bool:
    disks = None if isinstance(world.disks, Unknown) else world.disks.get(node)
    if not isinstance(disks, BrokerDisks):
        return False
    return any(isinstance(entry.meta, MetaProperties) for entry in disks.directories)


def _leads(world: World, node: NodeId) -> bool:
    if isinstance(world.live, Unknown) or not isinstance(world.live.quorum, Quorum):
        return False
    return world.live.quorum.leader == node


def _znode(view: ZookeeperView) -> Znode:
    match view.migration:
        case NoZnode():
            return Znode.ABSENT
        case MigrationZnode(offset=offset):
            return Znode.COPIED if offset > 0 else Znode.WAITING
        case _:
            return Znode.NULL


def _owner(view: ZookeeperView) -> Owner:
    if not isinstance(view.controller, ControllerZnode):
        return Owner.NOBODY
    return Owner.ZOOKEEPER if view.controller.ephemeral else Owner.KRAFT


def _old_log(world: World, view: ZookeeperView) -> bool:
    """Is it known that controllers which do not run have the metadata of a quorum that was given up?"""
    return not isinstance(world.metadata_logs, Unknown) and old_log(view, world.metadata_logs) is not None


def _views(world: World) -> Views:
    """A comparison that was not made is none that found nothing; stopped controllers' logs are compared, too."""
    if isinstance(world.kraft, Unknown):
        return Views.BEHIND if isinstance(stopped_equal(world, ()), Refused) else Views.UNSEEN
    if isinstance(world.diff, Unknown) or world.diff.unsettled:
        return Views.UNSEEN
    return Views.DIFFER if world.diff.unexcused else Views.EQUAL


def _epoch_low(view: ZookeeperView) -> bool:
    owner, epoch = view.controller, view.controller_epoch
    if not isinstance(owner, ControllerZnode) or owner.ephemeral:
        return False
    return not isinstance(epoch, int) or epoch < owner.kraft_epoch
