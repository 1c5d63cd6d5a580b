"""Findings of what a run will write: the checks asked of each stage's files before it begins (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from migrate import checks
from migrate.checks import processes
from migrate.checks.phase import Phase, no_quorum_yet
from migrate.checks.principals import successor
from migrate.checks.registry import run_on_files
from migrate.checks.sight import remembering
from migrate.errors import MigrateError
from migrate.hosts.properties import parse, with_content
from migrate.model.broker_modes import Mode, node_mode
from migrate.model.findings import Finding, Severity, one_per_kind
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, NoFile
from migrate.model.world import World
from migrate.steps import configuration, facts

TO_BE_WRITTEN: Final = "in the file as it will be written"
FIRST_ROLL: Final = "in the file as the first roll will write it"
SECOND_ROLL: Final = "in the file as the second roll will write it"
FINALIZE: Final = "in the file as finalize will write it"


def as_prepared(world: World) -> World:
    """The world with each controller's file that is not there yet as its step would render it."""
    if isinstance(world.configs, Unknown) or not no_quorum_yet(world):
        return world
    configs, first = dict(world.configs), facts.predicted_config(world, Predicted(), world.inventory.brokers[0].id)
    for node in world.inventory.controllers:
        if isinstance(configs.get(node.id), NoFile):
            raw = configuration.rendered(world, first, node)
            if raw is not None:
                configs[node.id] = ConfigFile(node.id, node.config, raw, facts.sha256(raw), parse(raw, node.config))
    return replace(world, configs=configs)


def as_rolled(world: World, goal: Mode) -> World:
    """The world with the file of each broker that is a mode behind as the roll to that mode would write it."""
    before = {Mode.MIGRATION: Mode.ZOOKEEPER, Mode.KRAFT: Mode.MIGRATION}[goal]
    edits: dict[NodeId, Callable[[bytes], bytes]] = {}
    for node in world.inventory.brokers:
        file = facts.config(world, node.id)
        if isinstance(file, ConfigFile) and node_mode(file.values) is before:
            if goal is Mode.KRAFT:
                edits[node.id] = partial(
                    configuration.kraft_mode, inventory=world.inventory, broker=node, kraft=successor(world)
                )
            else:
                edits[node.id] = partial(configuration.migration_mode, inventory=world.inventory)
    return _edited(world, edits)


def as_finalized(world: World) -> World:
    """The world with each controller's file as finalize would write it."""
    return _edited(world, {node.id: configuration.finalized_controller for node in world.inventory.controllers})


def _edited(world: World, edits: Mapping[NodeId, Callable[[bytes], bytes]]) -> World:
    """A file that cannot be edited stays: checks of the file as it is say why."""
    if isinstance(world.configs, Unknown):
        return world
    configs = dict(world.configs)
    for node, edit in edits.items():
        file = configs.get(node)
        if isinstance(file, ConfigFile):
            with suppress(MigrateError, ValueError):
                configs[node] = with_content(file, edit(file.raw))
    return replace(world, configs=configs)


def run(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """`checks.run`, and what the checks would find in the files that the stages to come will write.

    What cannot be seen of a file that is not there is no finding: the run looks when it is.
    """
    with remembering():  # these worlds share their views: what is made of them is made once
        found = {(entry.code, entry.about): entry for entry in checks.run(world, target=target)}
        for later, words in _to_come(world, target):
            if later.severity is not Severity.BLIND_SPOT:
                told = replace(later, evidence=f"{later.evidence}; {words}".removeprefix("; "))
                found.setdefault((later.code, later.about), told)
    return checks.ordered(found.values(), target)


def _to_come(world: World, target: Stage) -> Iterator[tuple[Finding, str]]:
    """What the checks find in the files of each stage to come, and words for those files."""
    rendered = as_prepared(world)
    if rendered.configs != world.configs:
        yield from ((finding, TO_BE_WRITTEN) for finding in checks.run(rendered, target=target))
    first = as_rolled(rendered, Mode.MIGRATION)
    second = as_rolled(first, Mode.KRAFT)
    for before, after, phase, words in (
        (rendered, first, Phase.BEFORE_COPY, FIRST_ROLL),
        (first, second, Phase.DUAL_WRITE, SECOND_ROLL),
        (second, as_finalized(second), Phase.FINALIZED, FINALIZE),
    ):
        if after.configs != before.configs:
            yield from ((finding, words) for finding in run_on_files(after, phase))


def told(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """The same for a reader: those that differ in their node alone are one finding with the list of nodes."""
    return one_per_kind(run(world, target=target), processes.down_behind(world))
