"""Parking points: between which steps a run may stop of its own accord, and leave the cluster as it is (pure).

|             | may it stop before the step?                                                                      |
|---|---|
| copy        | no: it begins by itself with the last broker's registration, and must be watched                    |
| finalize    | before its first controller only: half of a quorum without the flag is no state to leave            |
| hand-back   | no: between the stop of the controllers and /controller's deletion the cluster has no controller    |
| all others  | yes; between the brokers of a roll no longer than the playbook's `hybrid_max_age`                   |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from migrate.model.plan import PlannedStep

NEVER_BEFORE: Final = frozenset({"copy", "hand-back-control"})
ONLY_BEFORE_THE_FIRST: Final = frozenset({"finalize-controller", "finish-finalize"})
WATCHED: Final = frozenset({"copy"})  # looks only, and must not be left
HYBRID_BEGINS: Final = "roll-to-migration-mode"
HYBRID_ENDS: Final = "roll-to-kraft"


def may_park_before(steps: Sequence[PlannedStep], index: int) -> bool:
    """May a run stop before that step of a plan?  Where the plan begins with it, nothing was done: always."""
    if index == 0:
        return True
    kind = steps[index].kind
    if kind in ONLY_BEFORE_THE_FIRST and steps[index - 1].kind == kind:
        return False
    return kind not in NEVER_BEFORE


def may_leave_while_waiting(step: PlannedStep) -> bool:
    """May a run stop while it waits for that step's proof?  Where the step changes nothing, and need not be watched."""
    return not step.actions and step.kind not in WATCHED


def block(steps: Sequence[PlannedStep], index: int) -> Sequence[PlannedStep]:
    """The steps from that one up to the next parking point: whoever begins it must have time for all of them."""
    end = index + 1
    while end < len(steps) and not may_park_before(steps, end):
        end += 1
    return steps[index:end]


def in_between(steps: Sequence[PlannedStep], index: int) -> bool:
    """Would stopping before that step leave the cluster half rolled or hybrid, by what this plan did?"""
    before = any(step.kind == HYBRID_BEGINS for step in steps[:index])
    return (before or steps[0].kind in (HYBRID_ENDS, "hybrid", "assign-directories")) and any(
        step.kind == HYBRID_ENDS for step in steps[index:]
    )
