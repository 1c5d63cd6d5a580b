"""What in ZooKeeper holds the driver: /migration, /controller, /controller_epoch, topics without id, dead ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Final

from migrate.checks.sight import NOT_LOOKED, of_node
from migrate.checks.stuck.seen import explanation, leader_log, quorum_of
from migrate.checks.zookeeper import sample
from migrate.model.causes import TRIES_AGAIN, kraft_only
from migrate.model.columns import UNREADABLE_TOPIC_ID
from migrate.model.findings import Clues, Explanation
from migrate.model.outcome import Unknown
from migrate.model.views import (
    ControllerZnode,
    KraftView,
    MigrationZnode,
    NoZnode,
    NullZnode,
    PartlyRead,
    Quorum,
    ZookeeperView,
)
from migrate.model.world import World

MOVED: Final = 5  # partitions in a proposed reassignment; more would be no line any more


def null_migration(view: ZookeeperView) -> Iterator[Explanation]:
    """KAFKA-19480."""
    if isinstance(view.migration, NullZnode):
        version = f"version {view.migration.version}"
        yield explanation("S-STUCK-03", "a readable /migration", "/migration exists and has no data", version)


def stale_migration(world: World, clues: Clues, kraft: KraftView, view: ZookeeperView) -> Iterator[Explanation]:
    """An offset above 0 before this quorum's copy: the most dangerous wait there is."""
    znode = view.copy_note
    if znode is None:
        return
    evidence = (
        f"/migration: kraft_metadata_offset {znode.offset}, kraft_metadata_epoch {znode.epoch}",
        f"the metadata: PRE_MIGRATION at offset {kraft.offset}, epoch {kraft.epoch}",
        *leader_log(world, clues),
    )
    cause = "/migration remembers a copy that this quorum has not made"
    if znode.epoch > kraft.epoch:
        waits = f"metadata of an epoch above {znode.epoch}, which each restart of a controller comes closer to"
        yield explanation("S-STUCK-01", waits, f"{cause}, and of a higher epoch", *evidence)
        return
    left = sorted(missing_brokers(world, view, kraft))
    waits = f"brokers {left} to register" if left else "nothing any more: every broker has registered"
    yield explanation("S-STUCK-02", waits, cause, *evidence, nodes=left)


def missing_brokers(world: World, view: ZookeeperView, kraft: KraftView) -> set[int]:
    """All that the driver waits for: live, assigned (but for topics under deletion) or and not registered."""
    registered = {int(node) for node, entry in kraft.brokers.items() if entry.migrating}
    wanted = {int(node) for node in view.brokers} | {int(node.id) for node in world.inventory.brokers}
    pending, rows = set(view.pending.deletions), view.partitions
    kept = rows.replicas
    if pending:
        kept = [ids for topic, ids in zip(rows.topic, rows.replicas, strict=True) if topic not in pending]
    wanted |= set(map(int, set(chain.from_iterable(kept))))  # one set over all: there may be 200,000 partitions
    return wanted - registered


def copy_not_noted(world: World, clues: Clues, kraft: KraftView, view: ZookeeperView) -> Iterator[Explanation]:
    """MIGRATION in the log, no offset in the znode.  For ever, where the leader is not the one that copied."""
    znode = view.migration
    if isinstance(znode, Unknown | NullZnode) or view.copy_note is not None:
        return
    quorum = quorum_of(world)
    epoch = max(kraft.epoch, quorum.leader_epoch if isinstance(quorum, Quorum) else -1)
    claimed = znode.controller_epoch if isinstance(znode, MigrationZnode) else -1
    has = "does not exist" if isinstance(znode, NoZnode) else f"has kraft_metadata_offset {znode.offset}"
    evidence = (f"/migration {has}", f"the quorum is at epoch {epoch}", *leader_log(world, clues))
    if epoch > claimed:
        cause = f"the metadata says MIGRATION, /migration {has}, and the quorum has another leader since"
        yield explanation("S-STUCK-04", "the update of /migration, which no controller will write", cause, *evidence)
    else:
        waits = "the controller that copied to note it in /migration"
        cause = "the copy is made, and the leader that made it still leads"
        yield explanation("S-STUCK-69", waits, cause, *evidence, owner="the active controller")


def sync_not_done(world: World, clues: Clues, kraft: KraftView, view: ZookeeperView) -> Iterator[Explanation]:
    """The leader has claimed dual write and ZooKeeper has nothing of its epoch: what of the metadata stops its sync?

    A sync in progress looks the same, but for what stops it: where none of that is in the metadata, nothing is claimed.
    """
    znode = view.migration
    if not isinstance(znode, MigrationZnode) or not znode.sync_pending(kraft.epoch):
        return
    waits = "the active controller to make ZooKeeper what KRaft is"
    stands = (
        f"/migration: claimed in epoch {znode.controller_epoch}, written up to offset {znode.offset} of epoch "
        f"{znode.epoch}; the metadata is at offset {kraft.offset}, epoch {kraft.epoch}"
    )
    evidence = (stands, *leader_log(world, clues))
    found = kraft_only(kraft.entities)
    for entry in found:
        code = "S-STUCK-06" if entry.kind == "acl" else "S-STUCK-05"
        cause = f"the metadata holds {entry.about}, which Kafka cannot write to ZooKeeper"
        step = f"note it, and delete it until the migration is finalized: {entry.remove}"
        step += f"; then {TRIES_AGAIN}. This is not S-STUCK-01: stop no controller, and delete no znode"
        yield explanation(code, waits, cause, *evidence, next_step=step)
    if not found:
        why = Unknown("nothing in the metadata is known to stop the sync; it may be in progress")
        yield explanation("S-STUCK-07", waits, why, *evidence, owner="the active controller")


def claim(world: World, clues: Clues, view: ZookeeperView) -> Iterator[Explanation]:
    """Can the active controller take /controller?"""
    if isinstance(view.controller_epoch, NoZnode):
        cause = "/controller_epoch does not exist"
        yield explanation("S-STUCK-60", "the claim of /controller", cause, *leader_log(world, clues))
    owner, quorum = view.controller, quorum_of(world)
    if not isinstance(owner, ControllerZnode) or owner.ephemeral or not isinstance(quorum, Quorum):
        return
    own = owner.id == quorum.leader and owner.kraft_epoch == quorum.leader_epoch
    if owner.kraft_epoch >= quorum.leader_epoch and not own:
        holder = f"/controller belongs to controller {owner.id} with kraftControllerEpoch {owner.kraft_epoch}"
        cause = f"{holder}, the leader {int(quorum.leader)} has epoch {quorum.leader_epoch}"
        yield explanation("S-STUCK-61", "the claim of /controller", cause, *leader_log(world, clues))


def dead_ids(world: World, clues: Clues, view: ZookeeperView, dead: list[int]) -> Iterator[Explanation]:
    """Ids that stand in assignments alone: which partitions carry them, and where these could go."""
    rows, pending, alive = view.partitions, set(view.pending.deletions), sorted(int(node) for node in view.brokers)
    for node in dead:
        found = [
            (topic, int(partition), [int(replica) for replica in replicas])
            for topic, partition, replicas in zip(rows.topic, rows.partition, rows.replicas, strict=True)
            if node in replicas and topic not in pending
        ]
        names = [f"{topic}-{partition}" for topic, partition, _ in found]
        alone = [f"{topic}-{partition}" for topic, partition, replicas in found if not set(replicas) & set(alive)]
        lost = f"no living broker has a replica of {sample(alone)}" if alone else ""
        waits = f"broker {node}, found in assignments, to register"
        assigned = f"partitions assigned to it: {len(names)} ({sample(names)})"
        cause = f"broker {node} is neither in /brokers/ids nor in the inventory; {assigned}"
        evidence = f"/brokers/ids has {alive}", lost, *leader_log(world, clues)
        step = _move(found, node, alive)
        yield explanation("S-STUCK-50", waits, cause, *evidence, nodes=[node], next_step=step)


def _move(found: list[tuple[str, int, list[int]]], dead: int, alive: list[int]) -> str:
    """The reassignment, ready to be used: a living broker takes the dead one's place, or it is left out."""
    moved = []
    for topic, partition, replicas in found[:MOVED]:
        free = [node for node in alive if node not in replicas]
        place = free[partition % len(free) : partition % len(free) + 1] if free else []
        kept = [new for replica in replicas for new in (place if replica == dead else [replica])]
        moved.append({"topic": topic, "partition": partition, "replicas": kept})
    more = f" (the first {MOVED} of {len(found)}; the others in the same way)" if len(found) > MOVED else ""
    file = json.dumps({"version": 1, "partitions": moved}, separators=(",", ":"))
    return f"if it is gone for good, move its replicas with kafka-reassign-partitions{more}: {file}"


def topics_without_id(world: World, clues: Clues, view: ZookeeperView) -> Iterator[Explanation]:
    """Which topics, and which id their folders carry: that one, and no other, belongs into the znode."""
    for topic in view.topics_without_id:
        on_disk = _ids_on_disk(world, topic)
        step, evidence = "", ""
        if isinstance(on_disk, Unknown):
            evidence = f"the id in its replicas' folders was not seen: {on_disk.reason}"
        elif len(on_disk) == 1:
            (topic_id,) = on_disk
            evidence = f"its replicas' folders carry topic id {topic_id}"
            step = f'write "topic_id":"{topic_id}" into /brokers/topics/{topic}, which its folders carry'
            step += ": a new id would make strays of them"
        elif on_disk:
            evidence = f"its replicas' folders carry different topic ids: {', '.join(sorted(on_disk))}"
        else:
            evidence = "no folder of it carries a topic id"
        waits, cause = f"topic {topic} to get a topic_id", f"/brokers/topics/{topic} has no topic_id"
        yield explanation("S-STUCK-51", waits, cause, evidence, *leader_log(world, clues), next_step=step)


def _ids_on_disk(world: World, topic: str) -> set[str] | Unknown:
    """Of its replicas' folders: those that were set aside or deleted may be of another topic of that name."""
    found: set[str] = set()
    for node in world.inventory.brokers:
        disks = of_node(world.disks, node.id)
        if disks is NOT_LOOKED:
            return Unknown(f"the disks of broker {int(node.id)} were not looked at")
        if isinstance(disks, Unknown):
            return disks
        for entry in disks.directories:
            rows = entry.replicas
            ids = {
                topic_id
                for name, topic_id, kind in zip(rows.topic, rows.topic_id, rows.kind, strict=True)
                if name == topic and kind in ("current", "future")
            }
            if UNREADABLE_TOPIC_ID in ids:
                return Unknown(f"partition.metadata of {entry.path}/{topic}-* cannot be read")
            found |= ids
    return found - {""}


def malformed(world: World) -> Iterator[Explanation]:
    """Znodes that do not parse: the driver reads them too."""
    if isinstance(world.zookeeper, PartlyRead):
        for entry in world.zookeeper.view.malformed:
            yield explanation("S-STUCK-52", f"{entry.path} to be readable", f"{entry.path}: {entry.problem}")
