"""The parity matrix of a plan: the brokers' files beside the controllers', rendered or as they lie there."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.checks import parity
from migrate.checks.parity import Row
from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, NoFile
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
