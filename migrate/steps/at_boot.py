"""Units that the host's boot starts: enabled by a run once controllers lead.

Brokers are enabled at the cleanup alone: until then a broker whose host comes back without a disk must not start by
itself.  A rollback disables what a run enabled before the controllers stop: a controller that its host's boot starts
while /controller is deleted would claim it again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.hosts.manual.commands import unit_disable, unit_enable
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.launch import ENABLED_BY_RUNS, Unit
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.base import BaseStep


def enabling(world: World, playbook: Playbook, stage: Stage) -> Iterator[EnableAtBoot]:
    if world.inventory.executor not in ("local", "ssh") or not playbook.enable_units:
        return
    step = EnableAtBoot(stage.label)
    units = {} if isinstance(world.units, Unknown) else world.units
    found = [units.get(node) for node in step.nodes(world)]
    if not all(isinstance(unit, Unit) and unit.starts_at_boot is True for unit in found):
        yield step


@dataclass(frozen=True, slots=True)
class EnableAtBoot(BaseStep):
    """Enable the units of one stage: controllers' once they lead, every node's at the cleanup."""

    of: str

    kind = "enable-at-boot"
    needs = frozenset({Need.UNITS})
    proof_needs = frozenset({Need.UNITS})
    undo = "`systemctl disable`; a rollback does it for the controllers that a run enabled"
    proof = "`systemctl is-enabled` and default.target say which units a boot starts"

    @property
    def stage(self) -> Stage:
        return Stage.from_label(self.of)

    @property
    def title(self) -> str:
        return f"let the boot of a host start its {'controllers' if self.stage is Stage.CONTROLLERS else 'nodes'}"

    def nodes(self, world: World) -> tuple[NodeId, ...]:
        found = world.inventory.controllers if self.stage is Stage.CONTROLLERS else world.inventory.nodes
        return tuple(node.id for node in found if node.service is None)  # what is no unit cannot be enabled

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        found = []
        for node in self.nodes(world):
            unit = Unknown("it was not seen") if isinstance(world.units, Unknown) else world.units.get(node)
            if not isinstance(unit, Unit):
                found.append(Action("~", f"node {int(node)}", "systemctl enable, where its unit is disabled"))
            elif unit.may_be_enabled:
                found.append(Action("~", where(node, unit), shlex.join(unit_enable(unit.name))))
            elif unit.starts_at_boot is not True:
                found.append(Action("=", where(node, unit), f"{unit.name} is left {unit.word}: see W-OPS-07"))
        return tuple(found)

    def check(self, world: World) -> Readiness:
        return all_seen(world, self.nodes(world))

    def do(self, world: World, effects: Effects) -> None:
        for node, unit in units_of(world, self.nodes(world)):
            if unit.may_be_enabled:
                effects.enable_unit(node, unit.name)

    def verify(self, world: World) -> Outcome:
        """None of them is disabled any more; what else keeps one from starting is said, and is W-OPS-07's."""
        units = list(units_of(world, self.nodes(world)))
        left = [f"{unit.name} of {where(node, unit)} is {unit.word}" for node, unit in units if unit.may_be_enabled]
        seen = all_seen(world, self.nodes(world))
        found = Refused(f"`systemctl enable` was given, and {'; '.join(left)}", ("W-OPS-07",)) if left else seen
        return gates.as_outcome(found, *(told(node, unit) for node, unit in units))


def units_of(world: World, nodes: tuple[NodeId, ...]) -> Iterator[tuple[NodeId, Unit]]:
    known = {} if isinstance(world.units, Unknown) else world.units
    for node in nodes:
        unit = known.get(node)
        if isinstance(unit, Unit):
            yield node, unit


def all_seen(world: World, nodes: tuple[NodeId, ...]) -> Readiness:
    if isinstance(world.units, Unknown):
        return world.units
    for node in nodes:
        unit = world.units.get(node, Unknown("it was not looked at"))
        if isinstance(unit, Unknown):
            return Unknown(f"the unit of node {int(node)}: {unit.reason}")
    return Ready()


def where(node: NodeId, unit: Unit) -> str:
    return f"node {int(node)} on {unit.host}"


def told(node: NodeId, unit: Unit) -> str:
    starts = unit.starts_at_boot
    word = "not known" if isinstance(starts, Unknown) else "yes" if starts else "no"
    return f"{where(node, unit)}: {unit.name} is {unit.word}; a boot starts it: {word}"


@dataclass(frozen=True, slots=True)
class DisableAtBoot(BaseStep):
    nodes: str  # ids, as a fact told them when the plan was made

    kind = "disable-at-boot"
    stage_is = Stage.HYBRID
    titled = "let no boot start the controllers that a run enabled"
    needs = frozenset({Need.UNITS})
    proof_needs = frozenset({Need.UNITS})
    undo = "`systemctl enable`"
    proof = "`systemctl is-enabled` says of none of them that it is enabled"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return tuple(
            Action("~", where(node, unit), shlex.join(unit_disable(unit.name)))
            for node, unit in units_of(world, _ids(self.nodes))
        )

    def check(self, world: World) -> Readiness:
        return all_seen(world, _ids(self.nodes))

    def progress(self, world: World) -> Progress:
        seen = all_seen(world, _ids(self.nodes))
        if isinstance(seen, Unknown):
            return seen
        left = [unit for _, unit in units_of(world, _ids(self.nodes)) if unit.word == "enabled"]
        return NotBegun() if left else AlreadyDone("none of them is enabled")

    def do(self, world: World, effects: Effects) -> None:
        for node, unit in units_of(world, _ids(self.nodes)):
            if unit.word == "enabled":
                effects.disable_unit(node, unit.name)

    def verify(self, world: World) -> Outcome:
        evidence = (told(node, unit) for node, unit in units_of(world, _ids(self.nodes)))
        return gates.proven_by(self.progress(world), "`systemctl disable` was given, and one is enabled", *evidence)


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
