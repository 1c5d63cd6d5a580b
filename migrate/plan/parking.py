"""Parking points: between which steps a run may stop of its own accord, and leave the cluster as it is (pure).

|             | may it stop before the step?                                                                      |
|---|---|
| copy        | no: it begins by itself with the last broker's registration; while it is watched: when asked to     |
| finalize    | before its first controller only: half of a quorum without the flag is no state to leave            |
| rollback    | not while the cluster has no controller: from the controllers' stop until a step restores one       |
| all others  | yes; between the brokers of a roll no longer than the playbook's `hybrid_max_age`                   |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from migrate.errors import UsageWrong
from migrate.model.history import Event
from migrate.model.plan import PlannedStep
from migrate.steps.registry import KINDS

NEVER_BEFORE: Final = frozenset({"copy"})
ONLY_BEFORE_THE_FIRST: Final = frozenset({"finalize-controller", "finish-finalize"})
GOES_ON: Final = {  # what Kafka goes on with by itself when a run leaves the step
    "copy": "the controllers make the copy by themselves, whether it is watched or not",
}
HYBRID_BEGINS: Final = "roll-to-migration-mode"
HYBRID_ENDS: Final = "roll-to-kraft"


def may_park_before(steps: Sequence[PlannedStep], index: int) -> bool:
    """May a run stop before that step of a plan?  Where the plan begins with it, nothing was done: always."""
    if index == 0:
        return True
    kind = steps[index].kind
    if kind in ONLY_BEFORE_THE_FIRST and steps[index - 1].kind == kind:
        return False
    return kind not in NEVER_BEFORE and not without_controller(steps, index)


def last_before(steps: Sequence[PlannedStep], until: str) -> int:
    """The number of the last step of that stage, or with that id: `apply --until` stops after it.

    Raises UsageWrong, with the names that there are, where no step has it, and where a run may not stop after it.
    """
    stages = list(dict.fromkeys(step.stage.label for step in steps))
    last = max((index for index, step in enumerate(steps) if until in (step.id, step.stage.label)), default=None)
    if last is None:
        raise UsageWrong(
            f"the plan has no stage and no step {until!r}",
            why="nothing was done",
            next_step=f"its stages: {', '.join(stages)}; plan.txt beside it names the steps, such as {steps[-1].id}",
        )
    end = last + len(block(steps, last))
    if end > last + 1:
        later = f"--until {steps[end - 1].id}" if end < len(steps) else "leave --until out"
        raise UsageWrong(
            f"a run may not stop after {until}",
            why=f"from there it goes on to the end of {steps[end - 1].id}; nothing was done",
            next_step=later,
        )
    return last


def without_controller(steps: Sequence[PlannedStep], index: int) -> bool:
    """Does the cluster have no controller before that step, by what the steps from there on restore?

    Looking ahead also finds a plan that was made while the controllers were down: it has no step that stops them.
    """
    for step in steps[index:]:
        kind = KINDS[step.kind]
        if kind.stops_controller or kind.restores_controller:
            return bool(kind.restores_controller)
    return False


def may_lack_controller(steps: Sequence[PlannedStep], done: Collection[str], begun: Collection[str]) -> bool:
    """May the cluster be without a controller, by the ids of the steps that are done, and of those that are begun?"""
    index = next((index for index, step in enumerate(steps) if step.id not in done), None)
    if index is None:
        return False
    stopping = KINDS[steps[index].kind].stops_controller and steps[index].id in begun
    return bool(stopping) or (index > 0 and without_controller(steps, index))


def may_leave_while_waiting(steps: Sequence[PlannedStep], index: int) -> bool:
    """May a run stop while it waits for that step's proof?

    Only where the step changes nothing, and the cluster has a controller before and after it.
    """
    if steps[index].actions:
        return False
    return not (without_controller(steps, index) or without_controller(steps, index + 1))


def block(steps: Sequence[PlannedStep], index: int) -> Sequence[PlannedStep]:
    """The steps from that one up to the next parking point: whoever begins it must have time for all of them."""
    end = index + 1
    while end < len(steps) and not may_park_before(steps, end):
        end += 1
    return steps[index:end]


def half_rolled_since(steps: Sequence[PlannedStep], events: Iterable[Event]) -> float | None:
    """When the first step of the first roll began, by this plan's own journal; None where it did not."""
    rolls = {step.id for step in steps if step.kind == HYBRID_BEGINS}
    return next((event.time for event in events if event.name == "intend" and event.data["step"] in rolls), None)


def in_between(steps: Sequence[PlannedStep], index: int) -> bool:
    """Would stopping before that step leave the cluster half rolled or hybrid, by what this plan did?"""
    before = any(step.kind == HYBRID_BEGINS for step in steps[:index])
    return (before or steps[0].kind in (HYBRID_ENDS, "hybrid", "assign-directories")) and any(
        step.kind == HYBRID_ENDS for step in steps[index:]
    )
