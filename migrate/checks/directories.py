"""DIR: log directories: health, identity, file systems, and what a running broker says of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.registry import AFTER_COPY, ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import (
    Configs,
    Disks,
    both,
    broker_configs,
    broker_disks,
    every_disk,
    kraft,
    ledger,
    log_dir_answers,
)
from migrate.model.disk_trouble import NO_REPLICA
from migrate.model.ids import NodeId
from migrate.model.kafka_start import Fault, Kind, faults, shared_ids
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, Directory, KraftView, LogDirAnswer
from migrate.model.words import plural
from migrate.model.world import NOT_ASKED, World

VOLATILE: Final = ("tmpfs", "ramfs", "overlay")
NO_FILE: Final = "there is no meta.properties"


def every_directory(disks: Disks) -> Iterator[tuple[NodeId, Directory]]:
    """All directories of all brokers, metadata.log.dir too where it lies apart."""
    for node, found in disks.items():
        for directory in found.directories:
            yield node, directory
        if found.metadata_directory is not None:
            yield node, found.metadata_directory


def place(node: NodeId, directory: Directory) -> str:
    """`broker 1: /data/d0`."""
    return f"broker {node}: {directory.path}"


def told_by_a_start(
    disks: Disks, world: World, *kinds: Kind, configs: Configs | None = None
) -> Iterator[tuple[NodeId, Directory, Fault]]:
    """What a start of Kafka would find in each directory of each broker; where its metadata belongs by `configs`."""
    cluster_id = cluster_id_of(world)
    for node, directory in every_directory(disks):
        wanted = None
        if configs is not None and node in configs and disks[node].directories:
            wanted = disks[node].metadata_place(configs[node].values)
            if os.path.normpath(wanted) == os.path.normpath(directory.path):
                wanted = directory.path  # in another spelling
        for fault in faults(directory, int(node), cluster_id, wanted):
            if fault.kind in kinds:
                yield node, directory, fault


@check(
    "B-DIR-01",
    "a log directory is broken",
    "In migration mode one failing directory stops the whole broker; its replicas stay MIGRATING and are not failed "
    "over when the broker comes back as KRaft.",
    "Repair or replace the disk and let its replicas catch up; then check again. It cannot be accepted: its replicas "
    "could never be proven (docs/directories.md).",
    "KAFKA-16431; DirectoryId.isOnline takes MIGRATING for online",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def broken_directory(disks: Disks, world: World) -> Result:
    for node, directory in every_directory(disks):
        if directory.problem:
            yield Hit(place(node, directory), f"the directory {directory.problem}", directory.mount)
        elif directory.unproven:
            yield Blind(place(node, directory), directory.unproven)
    for node, directory, fault in told_by_a_start(disks, world, Kind.UNREADABLE):
        if not directory.problem:
            yield Hit(place(node, directory), f"meta.properties {fault.words}")


@check(
    "B-DIR-17",
    "a broker reports a log directory as offline",
    "The broker itself has given that directory up: one failing directory stops it in migration mode.",
    "Repair or replace the disk, restart the broker, let its replicas catch up; then check again.",
    "DescribeLogDirs error 56, KAFKA_STORAGE_ERROR; KAFKA-16431",
).sees(log_dir_answers, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def offline_directory(answers: dict[NodeId, tuple[LogDirAnswer, ...]], world: World) -> Result:
    for node, found in answers.items():
        for answer in found:
            if answer.error:
                yield Hit(f"broker {node}: {answer.path}", f"DescribeLogDirs answers {answer.error_name}")


@check(
    "B-DIR-02",
    "two directories have one directory.id, or a reserved one",
    "A broker refuses to start on two directories of one id, as a cloned disk or a restored image has it; over two "
    "brokers only the controller notices, and refuses the registration while the broker says 'started'.",
    "Take directory.id out of the copy's meta.properties while the broker is stopped: a new one is made at its start.",
    "MetaPropertiesEnsemble.verify; ClusterControlManager: INVALID_REGISTRATION; seen on 3.9.2",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def duplicate_directory(disks: Disks, world: World) -> Result:
    """Ids over the whole cluster, the controllers' directories included where they were looked at."""
    assert not isinstance(world.disks, Unknown)  # the brokers' are of it
    seen = disks | {node: found for node, found in world.disks.items() if not isinstance(found, Unknown)}
    for node, directory, fault in told_by_a_start(seen, world, Kind.RESERVED):
        yield Hit(place(node, directory), f"meta.properties {fault.words}")
    named = ((f"node {node}: {directory.path}", directory.id) for node, directory in every_directory(seen))
    for directory_id, found in shared_ids(named).items():
        yield Hit(found[1], f"its directory.id {directory_id} is that of {found[0]} too", ", ".join(found))


@check(
    "B-DIR-03",
    "a log directory belongs to another cluster or node",
    "The broker refuses to start on it, or starts with a stranger's replicas. The disk is another broker's, moved, "
    "cloned or restored, or log.dirs has the wrong path.",
    "Put the right disk in its place; do not edit ids over data you have not looked at.",
    "MetaPropertiesEnsemble.verify: 'Stored node id 1 doesn't match previous node id 0'",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def other_owner(disks: Disks, world: World) -> Result:
    for node, directory, fault in told_by_a_start(disks, world, Kind.OTHER_CLUSTER, Kind.OTHER_NODE):
        yield Hit(place(node, directory), f"meta.properties {fault.words}")


def cluster_id_of(world: World) -> str | None:
    """As ZooKeeper, the metadata or the inventory says; None where none of them can."""
    if not isinstance(world.zookeeper, Unknown):
        return world.zookeeper.cluster_id
    if not isinstance(world.kraft, Unknown) and world.kraft.cluster_id:
        return world.kraft.cluster_id
    return world.inventory.expect_cluster_id


@check(
    "B-DIR-04",
    "a log directory's meta.properties lacks an id",
    "A KRaft broker does not start on a directory without node id and cluster id: 'have you run kafka-storage.sh'. A "
    "separate metadata.log.dir that is new has none either.",
    "Restart the broker while it is in ZooKeeper mode: it writes the file itself. Later, write it by hand with "
    "version=0, broker.id, cluster.id and directory.id.",
    "MetaPropertiesEnsemble.verify; seen on 3.9.2",
).sees(broker_disks, blocks_from=Stage.KRAFT_MODE, when=ALWAYS)
def no_ids(disks: Disks, world: World) -> Result:
    """Without an id that KRaft asks for; metadata.log.dir has none where a ZooKeeper-mode broker never used it."""
    for node, directory, fault in told_by_a_start(disks, world, Kind.NO_ID, Kind.MISSING):
        if fault.kind is Kind.NO_ID:
            yield Hit(place(node, directory), f"meta.properties {fault.words}")
        elif directory is disks[node].metadata_directory and not directory.problem:
            yield Hit(place(node, directory), NO_FILE)


@check(
    "B-DIR-24",
    "a log directory has no meta.properties: emptied, new, or not mounted",
    "Restarted in ZooKeeper or migration mode, the broker uses the folder as a new disk, and replicas that were there "
    "alone are lost; in KRaft mode it does not start. A running broker need not have noticed.",
    "`status` says what this disk needs at this stage: the old one mounted, or the right file on the new one.",
    "KafkaRaftServer.initializeLogDirs: 'No `meta.properties` found'; seen on 3.9.2",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def no_identity(disks: Disks, world: World) -> Result:
    """Every broker in ZooKeeper or migration mode writes it into each of log.dirs when it starts."""
    for node, directory, _ in told_by_a_start(disks, world, Kind.MISSING):
        if directory is not disks[node].metadata_directory and not directory.problem:
            yield Hit(place(node, directory), NO_FILE)


@check(
    "B-DIR-05",
    "a local copy of the metadata log is in a wrong or a second directory",
    "A KRaft broker refuses to start: 'Found unexpected metadata location'. A change of metadata.log.dir, or of the "
    "order of log.dirs, leads to it.",
    "Stop the broker and move the misplaced __cluster_metadata-0 aside; the broker fetches what it needs.",
    "KafkaRaftServer.scala; KAFKA-16463",
).sees(both(broker_disks, broker_configs), blocks_from=Stage.KRAFT_MODE, when=ALWAYS)
def misplaced_metadata(seen: tuple[Disks, Configs], world: World) -> Result:
    """One in metadata.log.dir that lies apart is where it belongs."""
    disks, configs = seen
    for node, directory, fault in told_by_a_start(disks, world, Kind.METADATA_LOG, configs=configs):
        yield Hit(place(node, directory), fault.words)


@check(
    "B-DIR-08",
    "a replica's directory is not proven",
    "A replica that is MIGRATING, UNASSIGNED or misplaced in the metadata is not failed over when its disk dies. The "
    "broker's report has not arrived yet, or the replica moved.",
    "Wait for the broker's report, or see `kraft-migrate directories verify` for the rows.",
    "KIP-858; DirectoryId.isOnline",
).sees(ledger, blocks_from=Stage.FINALIZE, when=AFTER_COPY, proof=True)
def unproven_replica(found: Ledger, world: World) -> Result:
    """Rows of KRaft brokers that are not VERIFIED; before its second roll a broker owes nothing."""
    if isinstance(world.kraft, Unknown):
        yield Blind("the KRaft metadata", world.kraft.reason)
        return
    done = {int(node) for node, entry in world.kraft.brokers.items() if not entry.migrating}
    for row in found.rows:
        if row.broker in done and row.state is not ReplicaState.VERIFIED:
            message = f"its row is {row.state.value}"
            yield Hit(f"broker {row.broker}: {row.topic}-{row.partition}", message, row.state.value)


def _on_volatile(disks: Disks, world: World, *, accepted: bool) -> Iterator[Hit]:
    """A line a node, by the types of its file systems that the playbook accepts, or does not."""
    known = () if isinstance(world.playbook, Unknown) else world.playbook.accept_volatile
    brokers = {node.id for node in world.inventory.brokers}
    for node, found in disks.items():
        volatile = [
            entry
            for _, entry in every_directory({node: found})
            if entry.filesystem in VOLATILE and (entry.filesystem in known) is accepted
        ]
        if volatile:
            kinds = ", ".join(sorted({entry.filesystem for entry in volatile}))
            whose = "broker" if node in brokers else "controller"
            message = f"{plural(len(volatile), 'directory', 'directories')} on {kinds}"
            yield Hit(f"{whose} {node}", message, volatile[0].path)


@check(
    "B-DIR-09",
    "a directory does not outlive its host",
    "Data on such a file system (tmpfs, ramfs, a container's own layer) is gone with the host or the container, and a "
    "migration restarts every broker.",
    "Use a volume that stays. In a laboratory, name the type in policy.directories.accept_volatile.",
    "strimzi-kafka-operator #10187",
).sees(every_disk, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def volatile_directory(disks: Disks, world: World) -> Result:
    yield from _on_volatile(disks, world, accepted=False)


@check(
    "W-DIR-09",
    "a directory does not outlive its host, as was accepted",
    "Data on such a file system (tmpfs, ramfs, a container's own layer) is gone with the host or the container.",
    "Use a volume that stays. In a laboratory, ignore this.",
    "strimzi-kafka-operator #10187",
).sees(every_disk, when=ALWAYS)
def accepted_volatile(disks: Disks, world: World) -> Result:
    yield from _on_volatile(disks, world, accepted=True)


@check(
    "B-DIR-10",
    "a broker's registered directories are not those on its disks",
    "The metadata can only name directories that are registered: replicas elsewhere are never proven. A "
    "directory that was added, replaced or failed at the broker's start is not registered.",
    "Restart the broker with all its directories healthy: it registers again.",
    "RegisterBrokerRequest.LogDirs; BrokerLifecycleManager",
).sees(both(kraft, broker_disks), blocks_from=Stage.KRAFT_MODE, when=ALWAYS)
def registered_directories(seen: tuple[KraftView, Disks], world: World) -> Result:
    view, disks = seen
    for node, found in disks.items():
        registration = view.brokers.get(node)
        here = {str(entry.id) for entry in found.directories if entry.id is not None}
        if registration is None:
            continue
        there = {str(entry) for entry in registration.log_dirs}
        if here - there:
            yield Hit(f"broker {node}", f"on its disks and not registered: {', '.join(sorted(here - there))}")
        if there - here:
            yield Hit(f"broker {node}", f"registered and not on its disks: {', '.join(sorted(there - here))}")


@check(
    "B-DIR-26",
    "a log directory holds a folder on which Kafka does not start",
    "A running broker does not look, and its restart ends: the roll would stop with that broker down. lost+found is "
    "one, which mkfs makes, and fsck again.",
    "Remove an empty lost+found (`rm -df DIR/lost+found`); move anything else out of the log directory.",
    "LogManager.loadLogs: 'Found directory ... is not in the form of topic-partition'; seen on 3.9.2 after fsck",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def strange(disks: Disks, world: World) -> Result:
    """In log.dirs alone: a metadata.log.dir that lies apart may hold it."""
    for node, directory, fault in told_by_a_start(disks, world, Kind.FOLDERS):
        if directory is not disks[node].metadata_directory:
            yield Hit(place(node, directory), fault.words)


@check(
    "W-DIR-18",
    "a log directory contains something unexpected",
    "Kafka follows links to folders, which we do not: what is behind one is not known. It fails on files that it may "
    "not write. Links, files of another owner and leftovers of other tools are such.",
    "Look at it; move away what is not Kafka's while the broker is stopped.",
    "LogManager.loadLogs",
).sees(broker_disks, when=ALWAYS)
def oddities(disks: Disks, world: World) -> Result:
    for node, directory in every_directory(disks):
        if odd := [one for one in directory.oddities if not one.startswith(NO_REPLICA)]:
            yield Hit(place(node, directory), "; ".join(odd))


Answers = dict[NodeId, tuple[LogDirAnswer, ...]]


@check(
    "B-DIR-20",
    "a broker runs with other log directories than its file names",
    "Its next restart would lose directories, or find new ones: replicas would go missing in the middle of the "
    "migration. log.dirs was edited since its start, or the inventory names the wrong file.",
    "Find out which list is right; correct the file (or restart the broker with it) before the migration.",
    "DescribeLogDirs; log.dirs",
).sees(both(log_dir_answers, broker_disks), blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def other_directories(seen: tuple[Answers, Disks], world: World) -> Result:
    """Paths as sets; a directory that is offline is still told by the broker (B-DIR-17)."""
    answers, disks = seen
    for node in sorted(answers.keys() & disks.keys()):
        told = {os.path.normpath(entry.path) for entry in answers[node]}
        here = {os.path.normpath(entry.path) for entry in disks[node].directories}
        if told - here:
            yield Hit(f"broker {node}", f"it uses, and its file does not name: {', '.join(sorted(told - here))}")
        if here - told:
            yield Hit(f"broker {node}", f"its file names, and it does not use: {', '.join(sorted(here - told))}")


@check(
    "W-DIR-25",
    "several log directories of a broker are on one file system",
    "They fail together and fill up together, and Kafka, which places replicas by their number in each directory, "
    "takes them for disks of their own. In migration mode one disk is one broker all the same. A disk is not mounted, "
    "or the folders were made on one disk.",
    "Mount a disk for each, or leave it if that is intended. A directory that a DirectoryPlaybook is to add is "
    "better left out until its disk is mounted.",
    "KIP-112 (JBOD); LogManager.nextLogDirs",
).sees(broker_disks, when=ALWAYS)
def shared_file_system(disks: dict[NodeId, BrokerDisks], world: World) -> Result:
    """Those that a broker has, and those that a playbook gives it, by mount; a broken one lies nowhere."""
    for node, found in disks.items():
        new = _new(world, node)
        if isinstance(new, Unknown):
            yield Blind(f"the new directories of broker {node}", new.reason)
            new = ()
        mounts: dict[str, dict[str, None]] = {}
        for entry in (*found.directories, *new):
            if entry.mount and not entry.problem:
                mounts.setdefault(entry.mount, {})[entry.path] = None
        for mount, paths in mounts.items():
            if len(paths) > 1:
                added = {entry.path for entry in new} & set(paths) - {entry.path for entry in found.directories}
                told = f"; new among them: {', '.join(sorted(added))}" if added else ""
                message = f"{len(paths)} of its log directories are on {mount}{told}"
                yield Hit(f"broker {node}", message, ", ".join(paths))


def _new(world: World, node: NodeId) -> tuple[Directory, ...] | Unknown:
    """What a DirectoryPlaybook gives the broker; () where there is no such playbook, or it was not looked for."""
    known = world.new_directories
    if known is NOT_ASKED:
        return ()
    found = known.get(node, ()) if isinstance(known, Mapping) else known
    return found if isinstance(found, Unknown) else tuple(entry.directory for entry in found)
