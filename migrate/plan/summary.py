"""What a plan's reader wants to know about the cluster: counts, disks, what suffers, what a rollback costs (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks import parity
from migrate.checks.parity import Row, table_rows, unset
from migrate.hosts.properties import parse
from migrate.model import availability
from migrate.model.detect import Detected
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import PlanSummary
from migrate.model.step import Predicted
from migrate.model.views import BrokerDisks, ConfigFile, MetaProperties, NoFile
from migrate.model.world import World
from migrate.steps.prepare import RenderController


def rows_of(world: World) -> tuple[Row, ...]:
    """The matrix; no row where no broker's file, or no controller's, can be seen or rendered."""
    if isinstance(world.configs, Unknown):
        return ()
    found = {node: entry.values for node, entry in world.configs.items() if isinstance(entry, ConfigFile)}
    brokers = {node.id: found[node.id] for node in world.inventory.brokers if node.id in found}
    controllers: dict[NodeId, Mapping[str, str]] = {}
    for node in world.inventory.controllers:
        if node.id in found:
            controllers[node.id] = found[node.id]
        elif brokers and isinstance(world.configs.get(node.id), NoFile):
            content = RenderController(int(node.id)).target(world, Predicted())
            if content is not None:
                controllers[node.id] = parse(content)
    return parity.matrix(brokers, controllers) if brokers and controllers else ()


ROLLBACK: Final = (
    ("prepare", "nothing to undo", "0", "none"),
    ("controllers", "stop the controllers, delete /migration", "0", "none"),
    ("migration-mode", "stop the controllers, repair the znodes, roll the brokers to ZooKeeper mode", "1", "seconds"),
    ("hybrid", "stop the controllers, repair the znodes, roll the brokers to ZooKeeper mode", "1", "seconds"),
    ("kraft-mode", "roll KRaft brokers to migration mode first, then as from hybrid", "2", "seconds"),
    ("soak", "roll all brokers to migration mode first, then as from hybrid", "2", "seconds"),
    ("finalize", "none: no rollback is possible once a controller has run without the flag", "-", "-"),
)


def summarize(world: World, playbook: Playbook, here: Detected) -> PlanSummary:
    """The summary of one observation."""
    rows = rows_of(world)
    return PlanSummary(
        detected=f"{here.words} ({here.how})",
        inventory=_inventory(world),
        disks=tuple(_disks(world)),
        availability=tuple(_availability(world, playbook)),
        blind_spots=tuple(_blind_spots(world)),
        rollback=tuple(
            {"stage": stage, "procedure": procedure, "rolls": rolls, "controller_gap": gap}
            for stage, procedure, rolls, gap in ROLLBACK
        ),
        parity=tuple(table_rows(rows)),
        parity_unset=unset(rows) if rows else 0,
    )


def _inventory(world: World) -> dict[str, int]:
    view = world.zookeeper if not isinstance(world.zookeeper, Unknown) else world.kraft
    if isinstance(view, Unknown):
        return {}
    topics = len(set(view.partitions.topic))
    counts = {"topics": topics, "partitions": len(view.partitions), "replicas": view.partitions.replica_count()}
    return {**counts, **{kind: number for kind, number in view.entities.counts().items() if kind != "topic"}}


def _disks(world: World) -> Iterator[Mapping[str, str]]:
    if isinstance(world.disks, Unknown):
        return
    brokers = {int(node.id) for node in world.inventory.brokers}
    for node, disks in sorted(world.disks.items()):
        if int(node) in brokers:
            yield from _rows(int(node), disks)


def _rows(broker: int, disks: BrokerDisks | Unknown) -> Iterator[Mapping[str, str]]:
    if isinstance(disks, Unknown):
        yield {"broker": str(broker), "path": "?", "health": f"unknown: {disks.reason}"}
        return
    for entry in disks.directories:
        meta = f"V{entry.meta.version}" if isinstance(entry.meta, MetaProperties) else type(entry.meta).__name__
        yield {
            "broker": str(broker),
            "path": entry.path,
            "health": entry.health,
            "meta": meta,
            "directory.id": str(entry.id or "-"),
            "replicas": str(sum(kind == "current" for kind in entry.replicas.kind)),
            "bytes": str(sum(entry.replicas.size)),
            "free": str(entry.free_bytes),
        }


def _availability(world: World, playbook: Playbook) -> Iterator[str]:
    view = world.zookeeper if not isinstance(world.zookeeper, Unknown) else world.kraft
    if isinstance(view, Unknown):
        return
    brokers = [node.id for node in world.inventory.brokers]
    default = availability.of_brokers(view.entities, world.configs, brokers)
    found = availability.suffering(view.partitions, view.entities, default, map(int, brokers))
    accepted = ", ".join(playbook.accept_unavailable) or "none"
    if found.unknown is not None:
        yield f"topics without a {availability.MIN_ISR} of their own: not known, {found.unknown}"
    for topic, why in sorted(found.topics.items()):
        yield f"{topic}: {why}; unavailable while its broker restarts (accepted patterns: {accepted})"


def _blind_spots(world: World) -> Iterator[str]:
    parts = (
        ("ZooKeeper", world.zookeeper),
        ("disks", world.disks),
        ("live answers", world.live),
        ("files", world.configs),
    )
    for name, part in parts:
        if isinstance(part, Unknown) and (world.inventory.zookeeper or part is not world.zookeeper):
            yield f"{name}: {part.reason}"
    if not isinstance(world.zookeeper, Unknown):
        yield from world.zookeeper.blind_spots
