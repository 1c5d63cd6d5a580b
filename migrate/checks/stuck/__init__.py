"""Why a migration stands still: from a World, and from what more was looked at, to explanations (pure).

The order is the driver's own: what would empty ZooKeeper first, then the quorum, the controllers, the brokers, the
assignments, the znodes of the takeover.  All that hold are reported: repairing the first would only show the next.
An answer that is empty says that nothing waits, or that nothing has begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from migrate.checks.phase import kraft_holds_controller
from migrate.checks.quorum import voters_of
from migrate.checks.registry import shown
from migrate.checks.sight import of_node
from migrate.checks.stuck import brokers, controllers, reports, znodes
from migrate.checks.stuck.codes import CODES, DOCS
from migrate.checks.stuck.seen import explanation, leader_log, quorum_of, readable, telling
from migrate.model.config_keys import BOOTSTRAP, VOTERS
from migrate.model.findings import NO_CLUES, Clues, Explanation, Wanted
from migrate.model.ids import NodeId
from migrate.model.kafka_values import elements
from migrate.model.new_directories import in_use
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ConfigFile, KraftView, NoZnode, Quorum, Running, ZookeeperView
from migrate.model.world import World

__all__ = ["CODES", "DOCS", "because", "begun", "explain", "next_step", "telling", "wanted"]

DUE: Final = "S-STUCK-69"  # nothing is wrong: it comes by itself
ADDRESSES: Final = 12  # addresses asked at most; a cluster in order has none to ask


def explain(world: World, clues: Clues = NO_CLUES) -> tuple[Explanation, ...]:
    """Every reason why the migration does not go on; () where it does, or where it has not begun or is finalized."""
    return tuple(sorted((_fit(entry) for entry in _found(world, clues)), key=lambda entry: entry.code))


def because(world: World, nodes: frozenset[int] | None = None) -> str:
    """For the line of a wait: `; S-STUCK-33: 1: its file gives ...`, of causes that are known; "" where none is.

    `nodes`: only what is about one of these.
    """
    found = ((entry, ", ".join(map(str, entry.nodes))) for entry in _certain(world, nodes))
    return "".join(f"; {entry.code}: {f'{about}: ' if about else ''}{entry.cause}" for entry, about in found)


def next_step(world: World, nodes: frozenset[int] | None = None) -> str:
    """What to do about the first of these; "" where no cause is known."""
    return next((entry.next_step for entry in _certain(world, nodes)), "")


def wanted(world: World) -> Wanted:
    """What to look at beyond the world: only where something waits."""
    found = explain(world)
    if not found:
        return Wanted()
    quorum = quorum_of(world)
    nodes = dict.fromkeys(NodeId(node) for entry in found for node in entry.nodes)
    if isinstance(quorum, Quorum):
        nodes[quorum.leader] = None
    known = {node.id for node in world.inventory.nodes}
    reporters = tuple(NodeId(node) for entry in found if entry.code == reports.CODE for node in entry.nodes)
    logs = tuple(node for node in nodes if node in known and node not in reporters)
    return Wanted(tuple(_addresses(world, found))[:ADDRESSES], logs, reporters)


def begun(world: World) -> bool:
    """Is it known that controllers were started for this cluster?"""
    if not isinstance(world.kraft, Unknown) or kraft_holds_controller(world):
        return True
    view = readable(world)
    if not isinstance(view, Unknown) and not isinstance(view.migration, NoZnode | Unknown):
        return True
    if isinstance(world.services, Unknown):
        return False
    return any(isinstance(world.services.get(node.id), Running) for node in world.inventory.controllers)


def _certain(world: World, nodes: frozenset[int] | None) -> list[Explanation]:
    """Explanations that name a fault."""
    return [
        entry
        for entry in explain(world)
        if not isinstance(entry.cause, Unknown) and entry.code != DUE and (nodes is None or nodes & set(entry.nodes))
    ]


def _found(world: World, clues: Clues) -> Iterator[Explanation]:
    if not begun(world):
        return
    view, quorum = readable(world), quorum_of(world)
    if not isinstance(view, Unknown):
        yield from znodes.null_migration(view)
    if isinstance(world.kraft, Unknown):
        yield from controllers.no_leader(world, clues)
        return
    if isinstance(quorum, Quorum):
        yield from controllers.nothing_committed(world, clues, quorum)
    elif not isinstance(world.live, Unknown):
        yield from controllers.no_leader(world, clues)
    match world.kraft.migration_state:
        case ZkMigrationState.PRE_MIGRATION:
            yield from _before_copy(world, clues, world.kraft, view)
        case ZkMigrationState.MIGRATION:
            if not isinstance(view, Unknown):
                yield from znodes.copy_not_noted(world, clues, world.kraft, view)
                yield from znodes.claim(world, clues, view)
                yield from znodes.sync_not_done(world, clues, world.kraft, view)
            yield from reports.not_reported(world, clues, world.kraft)
        case ZkMigrationState.NONE if world.kraft.offset >= 0 and not in_use(world.kraft):
            nodes = [node.id for node in world.inventory.controllers]
            cause = f"ZkMigrationState is NONE at offset {world.kraft.offset}"
            yield explanation("S-STUCK-15", "a migration that cannot begin", cause, nodes=nodes)
        case _:
            return


def _before_copy(world: World, clues: Clues, kraft: KraftView, view: ZookeeperView | Unknown) -> Iterator[Explanation]:
    ready = list(controllers.not_ready(world, clues, kraft))
    yield from ready
    if isinstance(view, Unknown):
        return
    found = [*znodes.stale_migration(world, clues, kraft, view)]
    missing = sorted(znodes.missing_brokers(world, view, kraft))
    listed = {int(node.id) for node in world.inventory.brokers}
    alive = {int(node) for node in view.brokers}
    found += brokers.not_registered(world, clues, kraft, [node for node in missing if node in listed])
    for node in (node for node in missing if node not in listed and node in alive):
        why = Unknown("it is in /brokers/ids and not in the inventory, so nothing of it was looked at")
        owner = f"broker {node}"
        found.append(explanation("S-STUCK-40", f"broker {node} to register", why, owner=owner, nodes=[node]))
    found += znodes.dead_ids(world, clues, view, [node for node in missing if node not in listed | alive])
    found += znodes.topics_without_id(world, clues, view)
    found += znodes.malformed(world)
    found += znodes.claim(world, clues, view)
    yield from found
    if not found and not ready:
        cause = "every controller and every broker has registered, and no znode holds it"
        yield explanation(DUE, "the copy to begin", cause, *leader_log(world, clues), owner="the active controller")


def _addresses(world: World, found: tuple[Explanation, ...]) -> Iterator[str]:
    """Addresses in the voters of those brokers' files that the inventory does not have."""
    known = {node.address for node in world.inventory.controllers}
    nodes = {node for entry in found for node in entry.nodes}
    for broker in world.inventory.brokers:
        file = of_node(world.configs, broker.id)
        if int(broker.id) in nodes and isinstance(file, ConfigFile):
            listed = elements(file.values.get(BOOTSTRAP, ""))
            for address in (*voters_of(file.values.get(VOTERS, "")).values(), *listed):
                if address not in known:
                    known.add(address)
                    yield address


def _fit(entry: Explanation) -> Explanation:
    """Fit for a terminal: names and values come from files and znodes of others."""
    cause = Unknown(shown(entry.cause.reason)) if isinstance(entry.cause, Unknown) else shown(entry.cause)
    return replace(
        entry,
        cause=cause,
        waits_for=shown(entry.waits_for),
        owner=shown(entry.owner),
        evidence=tuple(shown(line) for line in entry.evidence),
        next_step="".join(letter if letter.isprintable() else "?" for letter in entry.next_step),
    )
