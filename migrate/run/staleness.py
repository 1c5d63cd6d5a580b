"""Is the plan still about this world?  Compared are the inputs that decide actions, not what moves by itself."""

from __future__ import annotations

from migrate.errors import PlanIsStale, PredictionFailed
from migrate.model.plan import PlannedStep
from migrate.model.world import World
from migrate.steps import facts


def check_binds(planned: PlannedStep, world: World) -> None:
    """Raise PlanIsStale, saying what changed, where an input of the step is not what the plan was made for."""
    seen = facts.observed(world, planned.binds)
    changed = [f"{key} was {was}, is {seen[key]}" for key, was in planned.binds.items() if seen[key] != was]
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
