"""DIR: replica folders against the assignments: what a KRaft broker would do with each at its first start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.checks.registry import ALWAYS, Hit, Result, check
from migrate.checks.sight import Disks, both, broker_disks, log_dir_answers, remembered, zookeeper
from migrate.model.columns import UNREADABLE_TOPIC_ID, PartitionColumns
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.loader import Fate, Foretold, foretell_all, moves_of
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, Directory, LogDirAnswer, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World

STRAY_RULE: Final = "W-DIR-07"
BROKER: Final = "broker"  # the selector's kind; its name is the broker's id, its field the folder's path
CURRENT, FUTURE, STRAY = "current", "future", "stray"


def entries(world: World, rule: str) -> Iterator[AcceptedDifference]:
    """The playbook's acceptances of that rule, expired ones too."""
    if not isinstance(world.playbook, Unknown):
        yield from (entry for entry in world.playbook.accepted_differences if entry.rule == rule)


IDLE: Final = (  # why, fix and source of an acceptance without effect
    "An entry that has expired has no effect, and one that matches nothing could hide a later finding.",
    "Delete the entry, or agree on a new `expires` with whoever owns the ticket.",
    "kind: AcceptedDifferences",
)


def idle(
    world: World, rule: str, used: Callable[[AcceptedDifference], bool]
) -> Iterator[tuple[AcceptedDifference, str]]:
    """The acceptances of that rule without effect, and why they have none."""
    for entry in entries(world, rule):
        if not holds(entry, world):
            yield entry, f"expired {entry.expires}"
        elif not used(entry):
            yield entry, "excuses nothing"


def holds(entry: AcceptedDifference, world: World) -> bool:
    """Is it in force?  From the day of `expires` on it is not, and neither where the day is not known."""
    return bool(world.today) and world.today < entry.expires


def acceptance(world: World, rule: str, kind: str, name: str, field: str) -> AcceptedDifference | None:
    """The acceptance that holds and names exactly that."""
    found = (entry for entry in entries(world, rule) if (entry.kind, entry.name, entry.field) == (kind, name, field))
    return next((entry for entry in found if holds(entry, world)), None)


def accepted(world: World, rule: str, broker: int, path: str) -> bool:
    """Does an acceptance that holds name exactly that path on that broker?"""
    return acceptance(world, rule, BROKER, str(int(broker)), path) is not None


@dataclass(frozen=True, slots=True)
class Folder:
    """One replica folder; `topic_id` is "" without partition.metadata and "?" where that cannot be read."""

    directory: str
    name: str
    topic: str
    partition: int
    topic_id: str
    size: int


def folder_at(directory: Directory, index: int) -> Folder:
    rows = directory.replicas
    identity = rows.topic[index], rows.partition[index], rows.topic_id[index]
    return Folder(directory.path, rows.folder[index], *identity, rows.size[index])


@remembered
def copies(disks: BrokerDisks) -> dict[tuple[str, int], list[str]]:
    """(topic, partition) -> the directories with a current copy; broken ones are left out."""
    places: dict[tuple[str, int], list[str]] = {}
    for directory in disks.directories:
        rows = directory.replicas
        if not directory.problem:
            for topic, partition, kind in zip(rows.topic, rows.partition, rows.kind, strict=True):
                if kind == CURRENT:
                    places.setdefault((topic, partition), []).append(directory.path)
    return places


@remembered
def assigned(columns: PartitionColumns) -> dict[int, dict[tuple[str, int], str]]:
    """Broker -> (topic, partition) -> topic id, "" where ZooKeeper has none."""
    found: dict[int, dict[tuple[str, int], str]] = {}
    for topic, topic_id, partition, replicas in zip(
        columns.topic, columns.topic_id, columns.partition, columns.replicas, strict=True
    ):
        for broker in replicas:
            found.setdefault(broker, {})[topic, partition] = topic_id
    return found


def out_of_place(view: ZookeeperView, disks: Disks) -> Iterator[tuple[NodeId, Folder, str | None]]:
    """Current folders whose topic id is not the assignment's, with the latter; None where nothing is assigned.

    The many that are in place make no object: replicas come by the hundred thousand.
    """
    wanted = assigned(view.partitions)
    for broker, found in disks.items():
        mine: Mapping[tuple[str, int], str] = wanted.get(int(broker), {})
        for directory in found.directories:
            rows = directory.replicas
            for index, key in enumerate(zip(rows.topic, rows.partition, strict=True)):
                if rows.kind[index] == CURRENT and (mine.get(key) != rows.topic_id[index] or not rows.topic_id[index]):
                    yield broker, folder_at(directory, index), mine.get(key)


def at(broker: NodeId, folder: Folder) -> str:
    """`broker 1: /data/d0/topic-3`."""
    return f"broker {broker}: {folder.directory}/{folder.name}"


@check(
    "B-DIR-06",
    "a replica on disk has another topic id than its topic",
    "KRaft loads by topic id: at the broker's next restart the folder is renamed -stray, and the replica starts empty. "
    "The topic was deleted and created again while this replica was away.",
    "Make sure that another replica has the data; then stop the broker, move the folder away, and start it again.",
    "KAFKA-16814; isStrayKraftReplica in LogManager.scala; linkedin/kafka #543",
).sees(both(zookeeper, broker_disks), blocks_from=Stage.MIGRATION_MODE)
def other_topic_id(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    """partition.metadata of assigned replicas; one that cannot be read, wherever it lies."""
    view, disks = seen
    for broker, folder, topic_id in out_of_place(*seen):
        if topic_id and folder.topic_id not in ("", UNREADABLE_TOPIC_ID, topic_id):
            message = f"partition.metadata has topic id {folder.topic_id}, topic {folder.topic} is {topic_id}"
            yield Hit(at(broker, folder), f"{message}: it would become -stray", f"{folder.size} bytes")
    for broker, foretold in _foretold(view, disks):
        for fate in foretold.of(Fate.UNREADABLE):
            message = (
                "partition.metadata cannot be read (links are not followed): the directory, or the start, may fail"
            )
            yield Hit(f"broker {broker}: {fate.path}", message, f"{fate.size} bytes")


@remembered
def _foretold(view: ZookeeperView, disks: Disks) -> tuple[tuple[NodeId, Foretold], ...]:
    found = foretell_all({int(broker): entry for broker, entry in disks.items()}, view.partitions)
    return tuple((NodeId(broker), foretold) for broker, foretold in found)


@check(
    "B-DIR-07",
    "a replica on disk has no partition.metadata",
    "A broker in migration mode throws on a log without a topic id: the KRaft controller's whole request fails, for a "
    "folder that nothing assigns to it, too; a KRaft broker renames it -stray. Folders that were copied by hand, or "
    "date from before 2.8, have none.",
    "Write partition.metadata (version: 0, topic_id: ...) while the broker is stopped, or let the broker fetch the "
    "replica "
    "again from another broker. Move away a folder that is not assigned to this broker, while the broker is stopped.",
    "KAFKA-16814; ReplicaManager.becomeLeaderOrFollower, LogManager.findStrayReplicas",
).sees(both(zookeeper, broker_disks), blocks_from=Stage.MIGRATION_MODE)
def no_partition_metadata(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    for broker, folder, topic_id in out_of_place(*seen):
        if not folder.topic_id:
            what = "nothing assigns it" if topic_id is None else f"topic {folder.topic} is {topic_id or 'without id'}"
            yield Hit(at(broker, folder), f"there is no partition.metadata, {what}", f"{folder.size} bytes")


def strays(seen: tuple[ZookeeperView, Disks]) -> Iterator[tuple[NodeId, Folder, str]]:
    """Folders that a KRaft start would set aside and that nothing assigns to their broker, with their paths.

    Future copies among them.  Those whose topic is assigned have codes of their own: B-DIR-06 and B-DIR-07.
    """
    view, disks = seen
    names = assigned(view.partitions)
    for broker, foretold in _foretold(view, disks):
        mine = names.get(int(broker), {})
        for fate in foretold.strays:
            if (fate.topic, fate.partition) not in mine:
                folder = Folder(fate.directory, fate.folder, fate.topic, fate.partition, fate.topic_id, fate.size)
                yield broker, folder, fate.path


@check(
    "B-DIR-21",
    "a folder on disk would be renamed -stray, and nobody accepted it",
    "A KRaft broker renames what is not assigned to it at its start, one in migration mode when the copy is done and a "
    "KRaft controller's full request comes; the data stays on disk and is not served. A reassignment or a deletion "
    "happened while the broker was away, or a topic was made or deleted while we looked.",
    "Look again; then see whether anybody needs the data, and delete the folder while the broker is stopped, or accept "
    "it as W-DIR-07 in an AcceptedDifferences file (kind: broker, name: the id, field: the folder's path).",
    "KAFKA-15605; isStrayKraftReplica and findStrayReplicas in LogManager.scala",
).sees(both(zookeeper, broker_disks), blocks_from=Stage.MIGRATION_MODE)
def would_be_stray(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    """Those that no acceptance names; without a playbook nothing is accepted."""
    for broker, folder, path in strays(seen):
        if not accepted(world, STRAY_RULE, broker, path):
            message = f"{folder.topic}-{folder.partition} is not assigned to this broker: it would become -stray"
            yield Hit(at(broker, folder), message, f"{folder.size} bytes")


@check(
    "W-DIR-07",
    "a folder on disk would be renamed -stray, as was accepted",
    "A KRaft broker renames what is not assigned to it; the data stays on disk and is not served. A reassignment or a "
    "deletion happened while the broker was away.",
    "Nothing, if the acceptance is right; the folder can be deleted while the broker is stopped.",
    "KAFKA-15605; isStrayKraftReplica in LogManager.scala",
).sees(both(zookeeper, broker_disks))
def accepted_stray(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    for broker, folder, path in strays(seen):
        if accepted(world, STRAY_RULE, broker, path):
            message = f"{folder.topic}-{folder.partition} is not assigned to this broker: it will become -stray"
            yield Hit(at(broker, folder), message, "accepted by the playbook")


@check("W-DIR-22", "an accepted stray folder is not there, or its acceptance has expired", *IDLE).sees(
    both(zookeeper, broker_disks)
)
def idle_acceptance(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    """Only of brokers whose disks were seen."""
    known = {str(int(broker)) for broker in seen[1]}
    there = {(str(int(broker)), path) for broker, _, path in strays(seen)}
    for entry, why in idle(world, STRAY_RULE, lambda entry: (entry.name, entry.field) in there):
        if entry.name in known:
            yield Hit(f"broker {entry.name}: {entry.field}", f"the acceptance {entry.ticket} {why}")


@check(
    "B-DIR-11",
    "a replica is in two directories of one broker",
    "The broker refuses to start: 'Duplicate log directories for ...'. A move between directories was interrupted, or "
    "a folder was copied by hand.",
    "Find out which copy is whole, and move the other one away while the broker is stopped.",
    "LogManager.loadLog",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def two_copies(disks: Disks, world: World) -> Result:
    for broker, looked_at in disks.items():
        for (topic, partition), found in copies(looked_at).items():
            if len(found) > 1:
                yield Hit(f"broker {broker}: {topic}-{partition}", f"current copies are in {' and '.join(found)}")


@check(
    "B-DIR-12",
    "a replica is moving between directories",
    "At its first KRaft start a broker may promote the unfinished copy and delete the whole one. "
    "kafka-reassign-partitions with log directories, or Cruise Control's disk balancing, is working.",
    "Wait until every move is done, or cancel it; start no more until finalize. With policy.directories.moves: wait a "
    "run waits by itself.",
    "KAFKA-16082: LogManager.recoverAbandonedFutureLogs",
).sees(broker_disks, blocks_from=Stage.MIGRATION_MODE)
def future_copy(disks: Disks, world: World) -> Result:
    if not _waited_for(world):
        yield from _moving(disks)


@check(
    "W-DIR-23",
    "a replica is moving between directories: the rolls will wait for it",
    "A run waits before the next broker until the move is done; it says how far the move is. kafka-reassign-partitions "
    "with log directories, or Cruise Control's disk balancing, is working.",
    "Nothing, if it may take that long; else raise the throttle of the move, or cancel it.",
    "policy.directories.moves: wait; KAFKA-16082",
).sees(broker_disks)
def future_copy_waited_for(disks: Disks, world: World) -> Result:
    if _waited_for(world):
        yield from _moving(disks)


def _waited_for(world: World) -> bool:
    return not isinstance(world.playbook, Unknown) and world.playbook.wait_for_moves


def _moving(disks: Disks) -> Iterator[Hit]:
    for broker, looked_at in disks.items():
        for move in moves_of(looked_at):
            yield Hit(f"broker {broker}: {move.target}/{move.folder}", f"a future copy is being made: {move}")


@check(
    "W-DIR-19",
    "a broker says that replicas are moving between its directories",
    "Moves must be done before the brokers restart (B-DIR-12 says why).",
    "Wait until every move is done, or cancel it.",
    "DescribeLogDirs: isFutureKey; KAFKA-16082",
).sees(log_dir_answers)
def future_reported(answers: dict[NodeId, tuple[LogDirAnswer, ...]], world: World) -> Result:
    for node, found in answers.items():
        for answer in found:
            if answer.future_replicas:
                names = ", ".join(answer.future_replicas[:5])
                message = f"{plural(len(answer.future_replicas), 'future replica')}: {names}"
                yield Hit(f"broker {node}: {answer.path}", message)


@check(
    "B-DIR-13",
    "an assigned replica is on no directory of its broker",
    "A broker may restart into KRaft only with one current copy of each of its replicas. Its disk died or was "
    "replaced, or the replica has not been created yet.",
    "Let the broker fetch it (see under-replicated partitions); for one replica alone, restore it or delete the topic.",
    "KIP-858; the ledger's NOT ON DISK",
).sees(both(zookeeper, broker_disks), blocks_from=Stage.KRAFT_MODE)
def not_on_disk(seen: tuple[ZookeeperView, Disks], world: World) -> Result:
    view, disks = seen
    wanted = assigned(view.partitions)
    for broker, found in disks.items():
        for topic, partition in sorted(wanted.get(int(broker), {}).keys() - copies(found).keys()):
            if topic not in view.pending.deletions:
                yield Hit(f"broker {broker}: {topic}-{partition}", "no healthy log directory holds a current copy")


@check(
    "W-DIR-14",
    "a folder was renamed -stray",
    "It contains a former replica, which the metadata does not assign to that broker: it is not served and takes "
    "space.",
    "Look whether anybody needs the data, then delete it.",
    "KAFKA-15605",
).sees(broker_disks, when=ALWAYS)
def stray_folders(disks: Disks, world: World) -> Result:
    for broker, found in disks.items():
        for directory in found.directories:
            for index in (index for index, kind in enumerate(directory.replicas.kind) if kind == STRAY):
                folder = folder_at(directory, index)
                message = f"{folder.topic}-{folder.partition} was set aside as stray"
                yield Hit(at(broker, folder), message, f"{folder.size} bytes")
