"""A cluster in which everything is ready for the copy, and what may be missing in it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from migrate.checks.stuck import explain
from migrate.model.findings import NO_CLUES, Clues, Explanation
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    ConfigFile,
    ControllerZnode,
    MigrationZnode,
    NodeAnswer,
    Running,
    ServiceState,
)
from migrate.model.world import World
from tests.testing import worlds

CONTROLLER = NodeAnswer(migration_flag=True, finalized_features={}, apis={62: 4})
BROKER = NodeAnswer(migration_flag=False, finalized_features={}, apis={1: 17})
REFUSED = Unknown("E-KAFKA-01 no connection: Connection refused")


@cache
def due() -> World:
    """Every controller and every broker has registered; each process runs with the current file."""
    world = worlds.world_at(Stage.COPY)
    world = worlds.with_kraft(world, migration_state=ZkMigrationState.PRE_MIGRATION)
    world = worlds.with_zk(
        world,
        migration=MigrationZnode(-1, -1, -1, -1, 0),
        controller=ControllerZnode(0, -1, ephemeral=True, version=0),
    )
    assert not isinstance(world.configs, Unknown)
    states: dict[NodeId, ServiceState] = {}
    for node, file in world.configs.items():
        assert isinstance(file, ConfigFile)
        states[node] = Running(1000 + node, 1.0, file.sha256)
    return replace(world, services=states)


def unregistered(*nodes: int, world: World | None = None) -> World:
    """Those brokers are missing in the metadata."""
    found = due() if world is None else world
    brokers = {node: entry for node, entry in worlds.kraft(found).brokers.items() if node not in nodes}
    return worlds.with_kraft(found, brokers=brokers)


def not_ready(*nodes: int, world: World | None = None, registered: bool = False) -> World:
    """Those controllers are missing in the metadata, or stand there without the flag."""
    found = due() if world is None else world
    entries = dict(worlds.kraft(found).controllers)
    for node in nodes:
        entry = entries.pop(NodeId(node))
        if registered:
            entries[NodeId(node)] = replace(entry, migration_ready=False)
    return worlds.with_kraft(found, controllers=entries)


def state(world: World, node: int, found: ServiceState) -> World:
    """That process in that state."""
    assert not isinstance(world.services, Unknown)
    return replace(world, services={**world.services, NodeId(node): found})


def started_with(world: World, node: int, sha256: str | None) -> World:
    """That process was started with a file of that hash."""
    return state(world, node, Running(1000 + node, 1.0, sha256))


def file(world: World, node: int, found: object) -> World:
    """Something else in the place of a file."""
    assert not isinstance(world.configs, Unknown)
    return replace(world, configs={**world.configs, NodeId(node): found})  # type: ignore[dict-item]


def silent(world: World, *nodes: int) -> World:
    """Those controllers do not answer."""
    answers = {**worlds.live(world).controllers, **dict.fromkeys(map(NodeId, nodes), REFUSED)}
    return worlds.with_live(world, controllers=answers)


def codes(world: World, clues: Clues = NO_CLUES) -> list[str]:
    """What holds, by code."""
    return [entry.code for entry in explain(world, clues)]


def only(world: World, clues: Clues = NO_CLUES) -> Explanation:
    """The one explanation that there is."""
    (found,) = explain(world, clues)
    return found


def cause(found: Explanation) -> str:
    """Its cause, known."""
    assert not isinstance(found.cause, Unknown), found
    return found.cause


def why_unknown(found: Explanation) -> str:
    """Why its cause cannot be determined."""
    assert isinstance(found.cause, Unknown), found
    return found.cause.reason
