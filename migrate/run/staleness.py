"""Is the plan still about this world?  Compared are the inputs that decide actions, not what moves by itself."""

from __future__ import annotations

from collections.abc import Mapping

from migrate.errors import PlanIsStale, PlanUnreadable, PredictionFailed
from migrate.model.plan import PlannedStep
from migrate.model.step import Step
from migrate.model.world import World
from migrate.steps import facts
from migrate.steps.registry import rebuild


def own_step(planned: PlannedStep) -> Step:
    """The step that a plan describes.

    PlanUnreadable where the plan calls it by another name or puts it into another stage than its kind says: neither is
    part of the fingerprint, and by the stage a reader and `--confirm` know the point of no return.
    """
    step = rebuild(planned.kind, planned.params)
    if (step.id, step.stage) != (planned.id, planned.stage):
        raise PlanUnreadable(
            f"the plan calls a step {planned.id} of stage {planned.stage.label}, it is {step.id} of {step.stage.label}"
        )
    return step


def check_files(planned: PlannedStep, would: Mapping[str, str]) -> None:
    """Raise PlanIsStale where the step would now write, or start with, another file than the plan shows.

    Asked before every act, of a half-done step too: its file may have been changed while nobody looked.
    """
    wanted = {key: want for key, want in planned.expects.items() if key.startswith("config:")}
    now = {key: would.get(key, facts.UNKNOWN) for key in wanted}
    wrong = [f"{key} would become {now[key]}, planned is {want}" for key, want in wanted.items() if now[key] != want]
    if wrong:
        raise PlanIsStale(
            f"step {planned.id} would do other than planned: {'; '.join(wrong)}",
            where=planned.id,
            why="its file or the inventory is not what the plan was made from",
            next_step="put the file back to what the plan shows; or make a new plan once the node runs",
        )


def check_binds(planned: PlannedStep, world: World) -> None:
    """Raise PlanIsStale, saying what changed, where an input of the step is not what the plan was made for."""
    seen = facts.observed(world, planned.binds)
    changed = [
        f"{facts.shown(world, key)} was {was}, is {seen[key]}"
        for key, was in planned.binds.items()
        if seen[key] != was or was == facts.UNKNOWN
    ]
    if changed:
        raise PlanIsStale(
            f"step {planned.id} was planned for another world: {'; '.join(changed)}",
            where=planned.id,
            why="its actions were decided by what changed",
        )


def check_expectations(planned: PlannedStep, world: World) -> None:
    """Raise PredictionFailed where what happened is not what the step predicted."""
    seen = facts.observed(world, planned.expects)
    wrong = [f"{key} should be {want}, is {seen[key]}" for key, want in planned.expects.items() if seen[key] != want]
    if wrong:
        raise PredictionFailed(f"step {planned.id} did not do what it predicted: {'; '.join(wrong)}", where=planned.id)
