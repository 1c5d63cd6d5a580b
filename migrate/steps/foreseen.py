"""Findings of what a run will write: the checks asked of the files as `prepare` would leave them (pure)."""

from __future__ import annotations

from dataclasses import replace

from migrate import checks
from migrate.checks.phase import no_quorum_yet
from migrate.checks.sight import remembering
from migrate.hosts.properties import parse
from migrate.model.findings import Finding, Severity, one_per_kind
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import World
from migrate.steps import facts
from migrate.steps.prepare import RenderController

TO_BE_WRITTEN = "in the file as it will be written"


def as_prepared(world: World) -> World:
    """The world with each controller's file that is not there yet as its step would render it."""
    if isinstance(world.configs, Unknown) or not no_quorum_yet(world):
        return world
    configs = dict(world.configs)
    for node in world.inventory.controllers:
        if isinstance(configs.get(node.id), NoFile):
            raw = RenderController(int(node.id)).target(world, Predicted())
            if raw is not None:
                configs[node.id] = ConfigFile(node.id, node.config, raw, facts.sha256(raw), parse(raw, node.config))
    return replace(world, configs=configs)


def run(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """`checks.run`, and what the same checks would find once `prepare` has written the controllers' files.

    What cannot be seen of a file that is not there is no finding: the run looks when it is.
    """
    later = as_prepared(world)
    with remembering():  # both worlds share their views: what is made of these is made once
        now = checks.run(world, target=target)
        if later.configs == world.configs:
            return now
        known = {(finding.code, finding.about) for finding in now}
        new = [
            replace(finding, evidence=f"{finding.evidence}; {TO_BE_WRITTEN}".removeprefix("; "))
            for finding in checks.run(later, target=target)
            if finding.severity is not Severity.BLIND_SPOT and (finding.code, finding.about) not in known
        ]
    return checks.ordered((*now, *new), target)


def told(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """The same for a reader: those that differ in their node alone are one finding with the list of nodes."""
    return one_per_kind(run(world, target=target))
