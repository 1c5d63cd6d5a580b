"""RBK: is a rollback possible, and what does it need?"""

from __future__ import annotations

from typing import Final

from migrate.checks.directories import Disks, every_directory, place
from migrate.checks.phase import Phase
from migrate.checks.registry import Hit, Result, check
from migrate.checks.sight import both, broker_disks, kraft, zookeeper
from migrate.checks.versions import METADATA_VERSION_3_9
from migrate.model.findings import CodeDoc
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ControllerZnode, KraftView, MetaProperties, ZookeeperView
from migrate.model.world import World

DUAL_WRITE: Final = frozenset({Phase.DUAL_WRITE})
METADATA_VERSION: Final = "metadata.version"


@check(
    CodeDoc(
        "I-RBK-02",
        "a rollback must raise /controller_epoch first",
        "Partition states carry the KRaft epoch; a ZooKeeper controller with a lower one refuses them, and after "
        "the next broker's death leaders stay away.",
        "The KRaft controllers' epoch has passed the number in /controller_epoch.",
        "Nothing now. In a rollback: set /controller_epoch to at least the KRaft epoch before deleting /controller.",
        "KAFKA-20488; seen on 3.9.2",
    ),
    sees=zookeeper,
    when=DUAL_WRITE,
)
def epoch_rule(view: ZookeeperView, world: World) -> Result:
    """KraftControllerEpoch of /controller against /controller_epoch."""
    owner, epoch = view.controller, view.controller_epoch
    if isinstance(owner, ControllerZnode) and isinstance(epoch, int) and owner.kraft_epoch > epoch:
        yield Hit("/controller_epoch", f"it is {epoch}, the KRaft controllers are at {owner.kraft_epoch}")


def _kraft_done(world: World) -> bool:
    """Is every registered broker in KRaft mode?"""
    if isinstance(world.kraft, Unknown) or not world.kraft.brokers:
        return False
    return not any(entry.migrating for entry in world.kraft.brokers.values())


def _version_1(disks: Disks) -> Result:
    for node, directory in every_directory(disks):
        if isinstance(directory.meta, MetaProperties) and directory.meta.version != 0:
            version = directory.meta.version
            yield Hit(place(node, directory), f"meta.properties has version {version}, ZooKeeper mode takes 0 only")


@check(
    CodeDoc(
        "B-RBK-03",
        "a broker's meta.properties has a version that ZooKeeper mode refuses",
        "A plain ZooKeeper-mode broker does not start on it: the last step of a rollback would fail.",
        "The directory was formatted with kafka-storage.",
        "Stop the broker and write version=0, broker.id, cluster.id and directory.id (the same id) in its place.",
        "KAFKA-20762; seen on 3.9.2",
    ),
    sees=broker_disks,
    blocks_from=Stage.MIGRATION_MODE,
)
def meta_version(disks: Disks, world: World) -> Result:
    """While brokers are left in ZooKeeper or migration mode."""
    if not _kraft_done(world):
        yield from _version_1(disks)


@check(
    CodeDoc(
        "W-RBK-03",
        "a rollback would first have to rewrite a meta.properties",
        "A plain ZooKeeper-mode broker does not start on version 1.",
        "A disk was replaced and formatted after the second roll.",
        "For a rollback: write version=0, broker.id, cluster.id and directory.id (the same id) in its place.",
        "KAFKA-20762; seen on 3.9.2",
    ),
    sees=broker_disks,
    when=DUAL_WRITE,
)
def meta_version_in_soak(disks: Disks, world: World) -> Result:
    """Once every broker is in KRaft mode."""
    if _kraft_done(world):
        yield from _version_1(disks)


@check(
    CodeDoc(
        "B-RBK-04",
        "metadata.version is not the brokers' protocol version",
        "Migrating brokers are refused unless both are equal, and a higher metadata.version cannot be lowered: a "
        "rollback would fail.",
        "The controllers were formatted with another release, or a feature was upgraded during the migration.",
        "Before the copy: format the controllers anew with --release-version 3.9. After it: change no feature "
        "until finalize.",
        "ClusterControlManager.registerBroker; seen on 3.9.2: range 21 to 21 at protocol version 3.9",
    ),
    sees=kraft,
    blocks_from=Stage.MIGRATION_MODE,
)
def metadata_version(view: KraftView, world: World) -> Result:
    """The finalized level against that of 3.9-IV0."""
    level = view.features.get(METADATA_VERSION)
    if level is None:
        return
    if level != METADATA_VERSION_3_9:
        yield Hit("the KRaft metadata", f"{METADATA_VERSION} is {level}, 3.9 is {METADATA_VERSION_3_9}")


@check(
    CodeDoc(
        "W-RBK-05",
        "brokers of the cluster are not in the inventory's metadata view",
        "A rollback restarts every broker; one that is not registered cannot be brought back in order.",
        "A broker is down.",
        "Start it before anything else is changed.",
        "a rollback rolls each KRaft broker back to migration mode first",
    ),
    sees=both(kraft, zookeeper),
    when=DUAL_WRITE,
)
def brokers_present(seen: tuple[KraftView, ZookeeperView], world: World) -> Result:
    """Every broker of the inventory has a registration."""
    view, _ = seen
    for node in world.inventory.brokers:
        if node.id not in view.brokers:
            yield Hit(f"broker {node.id}", "it has no registration in the metadata")
