"""What a plan's reader wants to know about the cluster: counts, disks, what suffers, what a rollback costs (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks import parity
from migrate.checks.availability import ISR_RULE
from migrate.checks.parity import Row, table_rows, unset
from migrate.checks.replicas import entries, holds
from migrate.hosts.properties import parse
from migrate.model import availability
from migrate.model.detect import Detected
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, ControllerNode, Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import PlanSummary
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import World
from migrate.steps.prepare import RenderController


def rows_of(world: World) -> tuple[Row, ...]:
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


_OUT: Final = "stop the controllers, repair the znodes, roll the brokers to ZooKeeper mode"
_THEN: Final = "then as from hybrid"
_LOST: Final = "only differences discarded by name"  # `--discard-differences`
ROLLBACK: Final = (
    ("prepare", "nothing to undo", "0", "none", "nothing"),
    ("controllers", "stop the controllers, delete /migration", "0", "none", "nothing"),
    ("migration-mode", _OUT, "1", "seconds", "nothing"),
    ("hybrid", _OUT, "1", "seconds", _LOST),
    ("kraft-mode", f"roll KRaft brokers to migration mode first, {_THEN}", "2", "seconds", _LOST),
    ("soak", f"roll all brokers to migration mode first, {_THEN}", "2", "seconds", _LOST),
    ("finalize", "none: no rollback is possible once a controller has run without the flag", "-", "-", "-"),
)


def summarize(world: World, playbook: Playbook, here: Detected) -> PlanSummary:
    rows = rows_of(world)
    return PlanSummary(
        detected=f"{here.words} ({here.how})",
        inventory=_inventory(world),
        disks=tuple(_disks(world)),
        availability=tuple(_availability(world, playbook)),
        blind_spots=tuple(_blind_spots(world)),
        rollback=tuple(
            {
                "stage": stage,
                "procedure": procedure,
                "rolls": rolls,
                "restarts": str(int(rolls) * len(world.inventory.brokers)) if rolls.isdecimal() else "-",
                "controller_gap": gap,
                "lost": lost,
            }
            for stage, procedure, rolls, gap, lost in ROLLBACK
        ),
        parity=tuple(table_rows(rows)),
        parity_unset=unset(rows) if rows else 0,
        own=tuple(_own(world.inventory)),
    )


def _inventory(world: World) -> dict[str, int]:
    view = world.zookeeper if not isinstance(world.zookeeper, Unknown) else world.kraft
    if isinstance(view, Unknown):
        return {}
    topics = len(set(view.partitions.topic))
    counts = {"topics": topics, "partitions": len(view.partitions), "replicas": view.partitions.replica_count()}
    return {**counts, **{kind: number for kind, number in view.entities.counts().items() if kind != "topic"}}


def _own(inventory: Inventory) -> Iterator[Mapping[str, str]]:
    """Say of each node that is not worked or reached as the others are, how it is; `-`: as they are."""
    for node in inventory.nodes:
        own = node.executor
        executor = [] if own is None else [own.kind, own.host_program]
        if own is not None and own.sudo is not None:
            executor.append("with sudo" if own.sudo else "without sudo")
        told = (node.kafka_home, _access(node.access), ", ".join(filter(None, executor)))
        if any(told):
            home, access, how = (text or "-" for text in told)
            kind = "controller" if isinstance(node, ControllerNode) else "broker"
            yield {"node": f"{kind} {int(node.id)}", "kafka_home": home, "access": access, "executor": how}


def _access(access: Access | None) -> str:
    """Its protocol, user and stores; of a secret nothing."""
    if access is None:
        return ""
    stores = {"truststore": access.truststore, "keystore": access.keystore}
    told = [access.protocol, access.mechanism, access.user and f"user {access.user}"]
    told += [f"{name} {store.path}" for name, store in stores.items() if store is not None]
    return ", ".join(filter(None, told))


def _disks(world: World) -> Iterator[Mapping[str, str]]:
    brokers = {node.id for node in world.inventory.brokers}
    for node, disks in {} if isinstance(world.disks, Unknown) else sorted(world.disks.items()):
        if node not in brokers:
            continue
        if isinstance(disks, Unknown):
            yield {"broker": str(int(node)), "path": "?", "health": f"unknown: {disks.reason}"}
            continue
        for entry in disks.directories:
            counted = sum(kind == "current" for kind in entry.replicas.kind), sum(entry.replicas.size)
            replicas, size = ("?", "?") if entry.unread else map(str, counted)
            yield {
                "broker": str(int(node)),
                "path": entry.path,
                "health": entry.health,
                "meta": entry.meta_words,
                "directory.id": str(entry.id or ("?" if entry.unread else "-")),
                "replicas": replicas,
                "bytes": size,
                "free": str(entry.free_bytes) if entry.free_bytes >= 0 else "unknown",
            }


def _availability(world: World, playbook: Playbook) -> Iterator[str]:
    view = world.zookeeper if not isinstance(world.zookeeper, Unknown) else world.kraft
    if isinstance(view, Unknown):
        return
    brokers = [node.id for node in world.inventory.brokers]
    default = availability.of_brokers(view.entities, world.configs, brokers)
    found = availability.suffering(view.partitions, view.entities, default, map(int, brokers))
    accepted = ", ".join(playbook.accept_unavailable) or "none"
    for one in entries(world, ISR_RULE):
        words = f"accepted by {one.ticket} until {one.expires} ({one.reason})" if holds(one, world) else "expired"
        yield f"{one.name}: the replica on broker {one.field} may be out of sync, {words}"
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
