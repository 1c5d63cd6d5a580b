"""The beginning of a run without a journal: what was found is said, and a plan that began elsewhere is refused.

A lost journal is no reason to act again: where the cluster stands is asked from the cluster, and a plan made anew from
there leaves out what is done.
"""

from __future__ import annotations

import logging
from typing import Final

from migrate.errors import PlanIsStale
from migrate.model.detect import detect
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.ports import Observer
from migrate.model.stage import Stage
from migrate.model.world import Need, World

LOG: Final = logging.getLogger("migrate.run")
LOOK: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.CONFIGS})


def found_by(plan: Plan, observer: Observer) -> str:
    """Where the cluster stands as the plan first runs; PlanIsStale where that is beyond the plan's beginning."""
    text = what_is_found(plan, observer.observe(LOOK, {}))
    LOG.info("no journal of plan %s yet; found: %s", plan.short, text)
    return text


def gone_back(plan: Plan, done: frozenset[str], world: World) -> None:
    """PlanIsStale where the cluster stands before what this plan's own journal concluded: it was rolled back (pure).

    Only a known place counts; where it cannot be told, the steps' own gates decide.
    """
    here = detect(world)
    reached = max((step.stage for step in plan.steps if step.id in done), default=Stage.DISCOVER)
    if plan.kind.rolls_back or isinstance(here, Unknown) or reached < Stage.CONTROLLERS or here.stage > Stage.PREPARE:
        return
    if any(step.stage is Stage.CONTROLLERS and step.id not in done for step in plan.steps):
        return  # its own controllers are half done: they wait, and have said nothing yet
    raise PlanIsStale(
        f"this plan had reached stage {reached.label}, and the cluster stands at {here.stage.label} ({here.how})",
        where=f"plan {plan.short}",
        why="it was rolled back since: what the plan's journal calls done is undone",
        next_step="make a new plan: it goes on from what is found",
    )


def what_is_found(plan: Plan, world: World) -> str:
    """The same, of a world (pure)."""
    if not plan.kind.migrates:
        return "a cluster of KRaft alone: which broker has which directories stands in its file"
    here = detect(world)
    if isinstance(here, Unknown):
        return f"where the cluster stands cannot be told: {here.reason}"
    first = next((step.stage for step in plan.steps if step.stage > Stage.ASSESS), None)
    text = f"stage {here.words} ({here.how})"
    if first is not None and not plan.kind.rolls_back and here.stage >= first:
        raise PlanIsStale(
            f"the plan begins with stage {first.label}, the cluster stands at {text}, and it has no journal here",
            where=f"plan {plan.short}",
            why="it was carried out elsewhere, or its journal is lost: what it did already cannot be told from it",
            next_step="put the journal back into the run's folder; or make a new plan: it goes on from what is found",
        )
    return text
