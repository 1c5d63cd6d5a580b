"""A step that asks whether a check finds a blocker looks at all that the checks of its stage cannot do without."""

from __future__ import annotations

import inspect

import pytest

from migrate.model.stage import Stage
from migrate.steps.base import BaseStep
from migrate.steps.gates import FOR_BLOCKERS
from migrate.steps.registry import KINDS

OTHERWISE = {  # why: their own check asks for none, or their first position looks at everything
    *("keep-zookeeper", "finalize-controller", "finish-finalize"),
}


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - OTHERWISE))
def test_it_looks_at_units_while_a_controller_must_start_at_boot(kind: str) -> None:
    """B-OPS-17 blocks from `prepare` until the migration is finalized: not asked for, the step ends as unknown."""
    step = KINDS[kind]
    owners = [owner for owner in step.__mro__ if issubclass(owner, BaseStep) and owner is not BaseStep]
    asks = any("no_blockers(" in inspect.getsource(owner) for owner in owners)
    stage = getattr(step, "stage_is", None)
    if asks and stage is not None and Stage.PREPARE <= stage <= Stage.FINALIZE:
        assert step.needs >= FOR_BLOCKERS


def test_a_proof_by_the_checks_looks_at_them_too() -> None:
    """`assess` proves that nothing blocks."""
    assert KINDS["assess"].proof_needs >= FOR_BLOCKERS
