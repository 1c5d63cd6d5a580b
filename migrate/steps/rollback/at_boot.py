"""Units that a run enabled are disabled again before the controllers stop.

A controller that its host's boot starts while /controller is deleted would claim it again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from migrate.hosts.manual.commands import unit_disable
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.units import ENABLED_BY_RUNS, Unit
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.at_boot import all_seen, told, units_of, where
from migrate.steps.base import BaseStep


@dataclass(frozen=True, slots=True)
class DisableAtBoot(BaseStep):
    """Before the controllers stop: those that a run enabled start at no boot, so that none comes back by itself."""

    nodes: str  # ids, as a fact told them when the plan was made

    kind: ClassVar[str] = "disable-at-boot"
    stage_is: ClassVar[Stage] = Stage.HYBRID
    title: ClassVar[str] = "let no boot start the controllers that a run enabled"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.UNITS})
    proof_needs: ClassVar[frozenset[Need]] = frozenset({Need.UNITS})
    undo: ClassVar[str] = "`systemctl enable`"
    proof: ClassVar[str] = "`systemctl is-enabled` says of none of them that it is enabled"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """The commands."""
        return tuple(
            Action("~", where(node, unit), shlex.join(unit_disable(unit.name)))
            for node, unit in units_of(world, _ids(self.nodes))
        )

    def check(self, world: World) -> Readiness:
        """Their units are seen."""
        return all_seen(world, _ids(self.nodes))

    def progress(self, world: World) -> Progress:
        """By what systemd says."""
        seen = all_seen(world, _ids(self.nodes))
        if isinstance(seen, Unknown):
            return seen
        left = [unit for _, unit in units_of(world, _ids(self.nodes)) if unit.word == "enabled"]
        return NotBegun() if left else AlreadyDone("none of them is enabled")

    def do(self, world: World, effects: Effects) -> None:
        """Those that are enabled still."""
        for node, unit in units_of(world, _ids(self.nodes)):
            if unit.word == "enabled":
                effects.disable_unit(node, unit.name)

    def verify(self, world: World) -> Outcome:
        """None is enabled."""
        found = self.progress(world)
        if isinstance(found, AlreadyDone):
            return gates.as_outcome(Ready(), *(told(node, unit) for node, unit in units_of(world, _ids(self.nodes))))
        return found if isinstance(found, Unknown) else Refused("`systemctl disable` was given, and one is enabled")


def disabling(world: World) -> Iterator[DisableAtBoot]:
    """The step for the controllers that a run has enabled; a unit that its operator enabled stays as it is."""
    by_runs = world.facts.get(ENABLED_BY_RUNS, "")
    controllers = {node.id for node in world.inventory.controllers}
    nodes = [node for node in _ids(by_runs) if node in controllers]
    units = {} if isinstance(world.units, Unknown) else world.units
    due = [node for node in nodes if not isinstance(unit := units.get(node), Unit) or unit.word == "enabled"]
    if due:
        yield DisableAtBoot(",".join(str(int(node)) for node in due))


def _ids(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(word)) for word in text.split(",") if word)
