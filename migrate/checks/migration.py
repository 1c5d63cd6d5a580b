"""MIG and RBK: the state of the migration, what would end it too early, and what would hinder a rollback."""

from __future__ import annotations

from typing import Final

from migrate.checks import processes
from migrate.checks.directories import every_directory, place
from migrate.checks.phase import Phase, lost_at_the_end
from migrate.checks.registry import ALWAYS, BEFORE_COPY, Hit, Result, check
from migrate.checks.releases import METADATA_VERSION_3_9
from migrate.checks.replicas import IDLE
from migrate.checks.sight import Disks, both, broker_disks, controller_answers, diff, inventory, kraft, zookeeper
from migrate.model.broker_modes import flag_of
from migrate.model.causes import kraft_only
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.new_directories import alone, in_use
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import KraftView, MetaProperties, MigrationZnode, NodeAnswer, ZookeeperView
from migrate.model.world import World

DUAL_WRITE: Final = frozenset({Phase.DUAL_WRITE})
LAG: Final = 1000  # records


@check(
    "B-MIG-01",
    "the metadata says that the copy is done, ZooKeeper says that it is not",
    "The driver stays inactive on every later leader: 'KRaft controller indicates an active migration, but the ZK "
    "state does not.' The migration is stuck for good. The active controller was killed between the end of the copy "
    "and its note in /migration.",
    "If it lasts: `kraft-migrate rollback plan PLAYBOOK --copy-again`, which stops the controllers, deletes "
    "/controller and /migration, formats and starts the controllers again, then restarts every broker. All topics "
    "stay.",
    "KRaftMigrationDriver; seen on 3.9.2",
).sees(both(zookeeper, kraft), blocks_from=Stage.HYBRID, when=DUAL_WRITE)
def stuck_after_copy(seen: tuple[ZookeeperView, KraftView], world: World) -> Result:
    znode = seen[0].migration
    if seen[0].copy_note is None:
        found = f"kraft_metadata_offset {znode.offset}" if isinstance(znode, MigrationZnode) else "no znode"
        yield Hit("/migration", f"the metadata log is at MIGRATION, /migration has {found}")


@check(
    "B-MIG-02",
    "the controllers were once started without the flag",
    "Their log is at NONE for good: the migration never starts, and the flag added later crashes them.",
    "Stop the controllers, set their metadata directories aside, put the flag into every file, format them again.",
    "'Should not have ZK migrations enabled on a cluster that was created in KRaft mode.'",
).sees(kraft, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def never_in_migration(view: KraftView, world: World) -> Result:
    if view.migration_state is ZkMigrationState.NONE and view.offset >= 0 and not in_use(view):
        yield Hit("the KRaft metadata", "ZkMigrationState is NONE", view.source)


@check(
    "B-MIG-17",
    "the inventory names a ZooKeeper, and the metadata holds a cluster in KRaft mode",
    "What is planned for a ZooKeeper-mode cluster would stop and format controllers that hold all there is. Either the "
    "migration was finished and the software is Kafka 4, whose snapshots do not say that there was one, or the "
    "controllers of another cluster are named.",
    "Stop and format nothing. If the migration was finished, remove `zookeeper` from the inventory; else name this "
    "cluster's own controllers.",
    "QuorumController of Kafka 4: there is no ZkMigrationStateRecord; seen on 4.4.0",
).sees(kraft, blocks_from=Stage.ASSESS, when=ALWAYS)
def kraft_cluster_with_zookeeper(view: KraftView, world: World) -> Result:
    if in_use(view) and not alone(view, world.inventory.zookeeper):
        count = f"{len(view.partitions)} partitions and {len(view.brokers)} brokers"
        yield Hit("the KRaft metadata", f"ZkMigrationState is NONE, with {count}", view.source)


@check(
    "W-MIG-03",
    "the migration is finalized and a broker is still in migration mode",
    "It will be refused after a restart (BROKER_ID_NOT_REGISTERED, 102), yet its log will say 'started'. A controller "
    "without the flag was elected too early (KAFKA-20960).",
    "No rollback is possible. Roll every remaining broker forward to KRaft without delay.",
    "KAFKA-20960; seen on 3.9.2",
).sees(kraft, when=frozenset({Phase.FINALIZED}))
def finalized_too_early(view: KraftView, world: World) -> Result:
    for node, entry in view.brokers.items():
        if entry.migrating:
            message = "it is registered as a migrating ZooKeeper broker after the end of the migration"
            yield Hit(f"broker {node}", message)


@check(
    "B-MIG-04",
    "a broker that no roll takes to KRaft mode",
    "Finalizing leaves ZooKeeper-mode brokers behind without a controller; Kafka does not check this. A broker that is "
    "down may still count as migrating.",
    "Add the broker to the inventory, so that the second roll takes it as well. Only one that is gone for good is "
    "unregistered (`kafka-cluster.sh unregister --id N`).",
    "KAFKA-20960; MigratingZkBrokerCount",
).sees(kraft, blocks_from=Stage.FINALIZE, when=DUAL_WRITE)
def brokers_left(view: KraftView, world: World) -> Result:
    """Registrations with isMigratingZkBroker outside the inventory, once the second roll has begun; and none at all.

    A broker of the inventory is rolled by every plan that reaches finalize, whose gate asks for each once more.
    """
    if all(entry.migrating for entry in view.brokers.values()):
        return
    known = {broker.id for broker in world.inventory.brokers}
    for node, entry in view.brokers.items():
        if entry.migrating and node not in known:
            message = "its registration says isMigratingZkBroker, and the inventory does not have it"
            yield Hit(f"broker {node}", message)
    for broker in sorted(known - set(view.brokers)):
        fix = "Start it, with its file as it is; its log says why it does not register."
        yield Hit(f"broker {broker}", "it has no registration", fix=fix)


@check(
    "B-MIG-05",
    "a broker is fenced",
    "A fenced broker serves no clients, and its replicas cannot be verified. It is down, cut off, or still catching up "
    "with the metadata.",
    "Start it, or wait; look at its log if it stays fenced.",
    "BrokerHeartbeatManager",
).sees(kraft, blocks_from=Stage.FINALIZE, when=ALWAYS)
def fenced_broker(view: KraftView, world: World) -> Result:
    """Registrations that are fenced, but for those that their own roll forward makes anew."""
    lost = lost_at_the_end(world)
    for node, entry in view.brokers.items():
        if entry.fenced and int(node) not in lost:
            yield Hit(f"broker {node}", "it is fenced in the metadata", fix=processes.start_those(world, [int(node)]))


@check(
    "B-MIG-06",
    "ZooKeeper and KRaft differ",
    "What differs now was lost or changed by the copy, or by someone who wrote past Kafka.",
    "Find out which side is right; excuse a wanted difference by name in an AcceptedDifferences file.",
    "KIP-866",
).sees(diff, blocks_from=Stage.KRAFT_MODE, when=DUAL_WRITE, proof=True)
def stores_differ(report: DiffReport, world: World) -> Result:
    for entry in report.unexcused:
        message = f"{entry.cls} {entry.field}"
        yield Hit(f"{entry.kind} {entry.key}", message, f"ZooKeeper {entry.zookeeper}, KRaft {entry.kraft}")


@check("W-MIG-11", "an accepted difference excuses nothing", *IDLE).sees(diff, when=DUAL_WRITE)
def idle_acceptance(report: DiffReport, world: World) -> Result:
    for idle in report.idle:
        entry = idle.entry
        message = f"the acceptance {entry.ticket} of {entry.rule} {entry.field} is {idle.why}"
        yield Hit(f"{entry.kind} {entry.name}", message, f"it expires {entry.expires}")


@check(
    "W-MIG-12",
    "something changed each time it was compared",
    "It is neither known to be equal nor to be different; gates that ask the comparison wait for it. A client or a "
    "controller changes it several times a second.",
    "See what changes it, and let it rest while the comparison runs.",
    "docs/comparison.md",
).sees(diff, when=DUAL_WRITE)
def never_settled(report: DiffReport, world: World) -> Result:
    for row in report.unsettled:
        yield Hit(f"{row.kind} {row.key}", f"{row.field} changed in each of {report.looks} looks")


@check(
    "B-MIG-07",
    "a running controller has not the migration flag",
    "As soon as it is elected it finalizes the migration, whatever mode the brokers are in; no rollback then.",
    "Stop it, put the flag into its file, start it again. Until then restart no other controller.",
    "KAFKA-20960, open; ApiVersions tag ZkMigrationReady; RegisterControllerRecord.zkMigrationReady",
).sees(both(kraft, controller_answers), blocks_from=Stage.MIGRATION_MODE)
def accidental_finalize(seen: tuple[KraftView, dict[NodeId, NodeAnswer]], world: World) -> Result:
    view, answers = seen
    for node in dict.fromkeys((*answers, *view.controllers)):
        flag = flag_of(world, node)
        if flag.answer is False:
            yield Hit(f"controller {node}", "it answers without ZkMigrationReady")
        elif flag.registered is False:
            more = ", and answers with the flag now" if flag.answer is True else ""
            yield Hit(f"controller {node}", f"it is registered with zkMigrationReady=false{more}")


@check(
    "I-MIG-08",
    "the state of the migration",
    "The metadata's own word, with what it rests on.",
    "-",
    "ZkMigrationStateRecord",
).sees(kraft, when=ALWAYS)
def standing(view: KraftView, world: World) -> Result:
    migrating = sum(entry.migrating for entry in view.brokers.values())
    yield Hit(
        "the KRaft metadata",
        f"ZkMigrationState {view.migration_state.name} at offset {view.offset}",
        f"{len(view.brokers)} brokers registered, {migrating} of them as migrating",
    )


@check(
    "W-MIG-09",
    "the metadata image is not proven committed",
    "Records that no majority has may still disappear; no gate accepts such an image. It was read from one directory "
    "alone, or the high watermark could not be read.",
    "Let the tool ask the quorum's leader.",
    "KIP-595: high watermark",
).sees(kraft, when=ALWAYS)
def tail_unproven(view: KraftView, world: World) -> Result:
    if not view.committed and view.offset >= 0:
        why = (
            view.high_watermark.reason
            if isinstance(view.high_watermark, Unknown)
            else f"high watermark {view.high_watermark}"
        )
        yield Hit("the KRaft metadata", f"offset {view.offset} is not known to be committed", why)


@check(
    "W-MIG-10",
    "the dual write to ZooKeeper lags",
    "A rollback would lose what ZooKeeper has not got yet. ZooKeeper is slow, or a new active controller writes "
    "everything again.",
    "Wait until it has caught up; look at the active controller's log if it does not.",
    "/migration: kraft_metadata_offset; ZkWriteBehindLag",
).sees(both(zookeeper, kraft), when=DUAL_WRITE)
def dual_write_lag(seen: tuple[ZookeeperView, KraftView], world: World) -> Result:
    view, image = seen
    if isinstance(view.migration, MigrationZnode) and 0 < view.migration.offset < image.offset - LAG:
        behind = image.offset - view.migration.offset
        yield Hit("/migration", f"ZooKeeper is {behind} records behind the metadata")


@check(
    "B-MIG-14",
    "an object of the metadata that Kafka cannot write to ZooKeeper",
    "It is missing in ZooKeeper, and other ACLs of the same request may be missing with it. A new active controller "
    "repeats SYNC_KRAFT_TO_ZK: brokers in ZooKeeper mode are then not informed of new topics and leaders. Such objects "
    "are ACLs whose resource name contains `/`, is `.` or `..`, or has a character that ZooKeeper refuses, and "
    "client-metrics configurations: ZooKeeper mode refuses them, a KRaft controller does not.",
    "Note the object and delete it with the command that is named. If ZooKeeper still lacks other ACLs, restart the "
    "active controller. Create the object again when the migration is finalized.",
    "KRaftMigrationZkWriter.handleConfigsSnapshot; ZooKeeper's PathUtils.validatePath; KIP-714; seen on 3.9.2",
).sees(kraft, blocks_from=Stage.HYBRID, when=DUAL_WRITE)
def never_written(view: KraftView, world: World) -> Result:
    for entry in kraft_only(view.entities):
        yield Hit(entry.about, entry.told)


@check(
    "I-MIG-15",
    "what must not be created before the migration is finalized",
    "Requests that ZooKeeper mode refuses succeed from the copy on, and harm (B-MIG-14): what retries one for years, "
    "or a new Flink or Spark job with `/` in its transactional id, creates such an ACL in the first minute.",
    "Stop automation that creates such ACLs or client-metrics configurations until the migration is finalized.",
    "AclAuthorizer: 'Failed to create ACL'; KIP-714; seen on 3.9.2",
).sees(inventory, when=BEFORE_COPY)
def never_to_be_created(known: Inventory, world: World) -> Result:
    """Say it before there is anything to find: nothing in ZooKeeper mode shows such a request that fails."""
    message = "create no ACL whose resource name contains `/`, and no client-metrics configuration"
    yield Hit("the time from the copy to finalize", message)


@check(
    "I-MIG-16",
    "the logger of the migration",
    "The controllers' logs are where Kafka says why a migration waits and which writes to ZooKeeper failed; Apache and "
    "Confluent recommend TRACE for it. This tool neither reads nor writes log4j files. The log4j.properties that come "
    "with Kafka have no line for it.",
    "Add `log4j.logger.org.apache.kafka.metadata.migration=TRACE` to every controller's log4j.properties before its "
    "first start. Until its restart a running one takes it by `kafka-configs --bootstrap-controller HOST:PORT --alter "
    "--entity-type broker-loggers --entity-name ID --add-config "
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver=TRACE`.",
    "Apache Kafka 3.9, ZooKeeper to KRaft Migration; KIP-412; KIP-919; seen on 3.9.2",
).sees(inventory, when=BEFORE_COPY)
def migration_logger(known: Inventory, world: World) -> Result:
    nodes = ", ".join(str(int(node.id)) for node in known.controllers)
    yield Hit(
        f"controllers {nodes}",
        "put `log4j.logger.org.apache.kafka.metadata.migration=TRACE` into their log4j.properties before they start",
    )


METADATA_VERSION: Final = "metadata.version"


@check(
    "I-RBK-02",
    "a rollback must raise /controller_epoch first",
    "Partition states carry the KRaft epoch; a ZooKeeper controller with a lower one refuses them, and after the next "
    "broker's death leaders stay away.",
    "Nothing now. In a rollback: set /controller_epoch to at least the KRaft epoch before deleting /controller.",
    "KAFKA-20488; seen on 3.9.2",
).sees(zookeeper, when=DUAL_WRITE)
def epoch_rule(view: ZookeeperView, world: World) -> Result:
    if view.epoch_below is not None:
        epoch, kraft_epoch = view.epoch_below
        yield Hit("/controller_epoch", f"it is {epoch}, the KRaft controllers are at {kraft_epoch}")


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
    "B-RBK-03",
    "a broker's meta.properties has a version that ZooKeeper mode refuses",
    "A plain ZooKeeper-mode broker does not start on it: the last step of a rollback would fail. kafka-storage format "
    "writes that version.",
    "Stop the broker and write version=0, broker.id, cluster.id and directory.id (the same id) in its place.",
    "KAFKA-20762; seen on 3.9.2",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE)
def meta_version(disks: Disks, world: World) -> Result:
    if not _kraft_done(world):
        yield from _version_1(disks)


@check(
    "W-RBK-03",
    "a rollback would first have to rewrite a meta.properties",
    "A plain ZooKeeper-mode broker does not start on version 1, which a disk has that was formatted after the second "
    "roll.",
    "For a rollback: write version=0, broker.id, cluster.id and directory.id (the same id) in its place.",
    "KAFKA-20762; seen on 3.9.2",
).sees(broker_disks, when=DUAL_WRITE)
def meta_version_in_soak(disks: Disks, world: World) -> Result:
    if _kraft_done(world):
        yield from _version_1(disks)


@check(
    "B-RBK-04",
    "metadata.version is not the brokers' protocol version",
    "Migrating brokers are refused unless both are equal, and a higher metadata.version cannot be lowered: a rollback "
    "would fail. The controllers were formatted with another release, or a feature was upgraded during the migration.",
    "Before the copy: format the controllers again with --release-version 3.9. After it: change no feature until "
    "finalize.",
    "ClusterControlManager.registerBroker; seen on 3.9.2: range 21 to 21 at protocol version 3.9",
).sees(kraft, blocks_from=Stage.MIGRATION_MODE)
def metadata_version(view: KraftView, world: World) -> Result:
    level = view.features.get(METADATA_VERSION)
    if level is None:
        return
    if level != METADATA_VERSION_3_9:
        yield Hit("the KRaft metadata", f"{METADATA_VERSION} is {level}, 3.9 is {METADATA_VERSION_3_9}")


@check(
    "W-RBK-05",
    "brokers of the cluster are not in the inventory's metadata view",
    "A rollback restarts every broker; one that is not registered cannot be brought back in order.",
    "Start it before anything else is changed.",
    "a rollback rolls each KRaft broker back to migration mode first",
).sees(both(kraft, zookeeper), when=DUAL_WRITE)
def brokers_present(seen: tuple[KraftView, ZookeeperView], world: World) -> Result:
    view, _ = seen
    for node in world.inventory.brokers:
        if node.id not in view.brokers:
            yield Hit(f"broker {node.id}", "it has no registration in the metadata")
