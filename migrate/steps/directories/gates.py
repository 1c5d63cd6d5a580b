"""Gates of log directories that KRaft brokers get or give back (pure)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from migrate.hosts.properties import log_dirs, metadata_log_dir
from migrate.model.broker_modes import roles_of
from migrate.model.ids import NodeId
from migrate.model.new_directories import NewDirectory, against_format, alone, unproven, version_too_low
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, MetaProperties
from migrate.model.world import World
from migrate.steps import facts, gates
from migrate.steps.forward import can_be_unfenced
from migrate.steps.gates import requires

# of a stopped broker whose file was written: what its file names is not what it registered last, nobody tells its
# list, and what is new may not be formatted yet
HALF_DONE: Final = frozenset({"B-DIR-10", "B-DIR-20", "B-DIR-24"})
RAISE: Final = (
    "raise it first, with `kafka-features.sh --bootstrap-server HOST:PORT upgrade --metadata 3.9` (it cannot go back "
    "over a change of the metadata's format): we never do"
)


@requires("the cluster is KRaft alone, and so is every node's file")
def kraft_alone(world: World) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return world.kraft
    if not alone(world.kraft, world.inventory.zookeeper):
        return Refused(
            f"the metadata says {world.kraft.migration_state.name}: ZooKeeper is part of this cluster; finish its "
            "migration first, with a MigrationPlaybook"
        )
    expected = {world.inventory.expect_cluster_id}
    expected |= set() if isinstance(world.playbook, Unknown) else {world.playbook.expect_cluster_id}
    if expected - {None, world.kraft.cluster_id}:
        return Refused(f"this is cluster {world.kraft.cluster_id}, expected is {sorted(map(str, expected - {None}))}")
    for broker in facts.brokers(world):
        found = world.kraft.brokers.get(NodeId(broker))
        if found is None or found.migrating:
            was = "is not registered" if found is None else "is registered as a migrating ZooKeeper broker"
            return Refused(f"broker {broker} {was} in the metadata")
    return gates.first(*(kraft_file(world, int(node.id)) for node in world.inventory.nodes))


def kraft_file(world: World, node: int) -> Readiness:
    file = facts.config(world, node)
    if not isinstance(file, ConfigFile):
        return file if isinstance(file, Unknown) else Unknown(f"{file.path} does not exist")
    roles = roles_of(file.values)
    wanted = "broker" if node in facts.brokers(world) else "controller"
    if len(roles) > 1:
        return Refused(
            f"{file.path}: process.roles is {','.join(sorted(roles))}: a node of both roles is not supported, because "
            "its restart takes a voter of the quorum away with the broker",
        )
    if roles != {wanted}:
        return Refused(f"{file.path} is no KRaft {wanted}'s: process.roles is {','.join(roles) or 'not set'}")
    left = [key for key in file.values if key.startswith("zookeeper.")]
    return Refused(f"{file.path} still names ZooKeeper ({left[0]})") if left else Ready()


@requires("the cluster's metadata.version has log directories")
def version_fits(world: World) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return world.kraft
    problem = version_too_low(world.kraft)
    return Refused(f"{problem}; {RAISE}") if problem else Ready()


def entries(world: World, broker: int, wanted: Sequence[str]) -> tuple[NewDirectory, ...] | Unknown:
    if isinstance(world.new_directories, Unknown):
        return world.new_directories
    found = world.new_directories.get(NodeId(broker), Unknown(f"those of broker {broker} were not looked at"))
    if isinstance(found, Unknown):
        return found
    known = {entry.path: entry for entry in found}
    missing = [path for path in wanted if path not in known]
    if missing:
        return Unknown(f"{missing[0]} of broker {broker} was not looked at: the playbook does not name it")
    return tuple(known[path] for path in wanted)


@requires("each new directory can become a log directory of broker {0}")
def fit_to_format(world: World, broker: int, wanted: Sequence[str]) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return world.kraft
    found = entries(world, broker, wanted)
    if isinstance(found, Unknown):
        return found
    for entry in found:
        against = "; ".join(against_format(entry, NodeId(broker), world.kraft.cluster_id))
        if against:
            return Refused(f"{entry.path} cannot become a log directory of broker {broker}: {against}")
        if unproven(entry):
            return Unknown(f"{entry.path}: {unproven(entry)}")
    return Ready()


def formatted(world: World, broker: int, wanted: Sequence[str]) -> bool | Unknown:
    found = entries(world, broker, wanted)
    if isinstance(found, Unknown):
        return found
    return all(isinstance(entry.directory.meta, MetaProperties) and entry.directory.id is not None for entry in found)


def blockers_but_half_done(world: World, stage: Stage, broker: int, paths: Sequence[str]) -> Readiness:
    """No blocker but what half a change of that broker, or of these directories of it, looks like."""
    own = frozenset({f"broker {broker}", *(f"broker {broker}: {path}" for path in paths)})
    return gates.no_blockers(world, stage, down=broker, besides=HALF_DONE, of=own)


def wanted_of(world: World, broker: int) -> tuple[str, ...] | Unknown:
    if isinstance(world.playbook, Unknown):
        return world.playbook
    return tuple(map(os.path.normpath, world.playbook.new_directories.get(NodeId(broker), ())))


def listed(world: World, broker: int) -> tuple[str, ...] | Unknown:
    file = facts.config(world, broker)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {broker} cannot be seen")
    return tuple(map(os.path.normpath, log_dirs(file.values)))


def metadata_log_stays(world: World, broker: int) -> Readiness:
    """The broker's copy of the metadata log lies in one directory, the one that its file makes it lie in."""
    file = facts.config(world, broker)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {broker} cannot be seen")
    disks = facts.disks(world, broker)
    if isinstance(disks, Unknown):
        return Unknown(f"the disks of broker {broker} were not looked at")
    wanted = metadata_place(file)
    every = [*disks.directories, *([disks.metadata_directory] if disks.metadata_directory else [])]
    here = [entry.path for entry in every if entry.holds_metadata_log]
    if [os.path.normpath(path) for path in here] == [wanted]:
        return Ready()
    return Refused(f"the metadata log of broker {broker} is in {here or 'no directory'}, its file says {wanted}")


def metadata_place(file: ConfigFile) -> str:
    """metadata.log.dir, else the first of log.dirs (`KafkaConfig.metadataLogDir`)."""
    apart = metadata_log_dir(file.values) or file.values.get("metadata.log.dir", "").strip()
    return os.path.normpath(apart or log_dirs(file.values)[0])


@requires("every log directory is healthy, every replica VERIFIED, and each metadata log where its file says")
def all_proven(world: World) -> Readiness:
    return gates.first(
        *(gates.disks_healthy(world, broker) for broker in facts.brokers(world)),
        *(can_be_unfenced(world, broker) for broker in facts.brokers(world)),
        *(metadata_log_stays(world, broker) for broker in facts.brokers(world)),
    )


@requires("no replica is in the directories that are taken away, and none is assigned to them")
def holds_nothing(world: World, broker: int, wanted: Sequence[str]) -> Readiness:
    """No replica lies in them, none is assigned to them; one that is being deleted is waited for."""
    found = entries(world, broker, wanted)
    if isinstance(found, Unknown):
        return found
    if isinstance(world.kraft, Unknown):
        return world.kraft
    for entry in found:
        rows = entry.directory.replicas
        folders = [name for name, kind in zip(rows.folder, rows.kind, strict=True) if kind != "deleted"]
        if entry.directory.problem:
            return Unknown(f"{entry.path} of broker {broker} {entry.directory.problem}")
        if folders or assigned(world, broker, str(entry.directory.id or "")):
            names = folders or assigned(world, broker, str(entry.directory.id or ""))
            return Refused(f"{entry.path} of broker {broker} holds {len(names)} replicas: {', '.join(names[:5])}")
        if rows.folder:
            return NotYet(
                f"{entry.path} of broker {broker} to be without deleted replicas ({rows.folder[0]})",
                f"broker {broker}",
                "nothing: they go by themselves after log.segment.delete.delay.ms",
                progress=str(len(rows.folder)),
            )
    return Ready()


def assigned(world: World, broker: int, directory: str) -> list[str]:
    if isinstance(world.kraft, Unknown) or not directory:
        return []
    columns = world.kraft.partitions
    rows = ((row, columns.replicas[row].index(broker)) for row in columns.rows_of(broker))
    return [
        f"{columns.topic[row]}-{columns.partition[row]}"
        for row, place in rows
        if columns.directories[row][place : place + 1] == [directory]
    ]


@requires("broker {0} keeps a log directory, and that of its metadata log")
def not_metadata(world: World, broker: int, wanted: Sequence[str]) -> Readiness:
    file = facts.config(world, broker)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {broker} cannot be seen")
    gone = set(map(os.path.normpath, wanted))
    if metadata_place(file) in gone:
        return Refused(f"{metadata_place(file)} holds the metadata log of broker {broker}: it cannot be taken away")
    left = [path for path in log_dirs(file.values) if os.path.normpath(path) not in gone]
    return Ready() if left else Refused(f"broker {broker} would be left without a log directory")
