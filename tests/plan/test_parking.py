"""After which stages and steps a run may be asked to stop; any other name is refused with those that there are."""

from __future__ import annotations

import pytest

from migrate.errors import UsageWrong
from migrate.plan.parking import last_before, may_park_before
from tests.run.test_gatekeeper_rules import planned

STEPS = planned().steps


@pytest.mark.parametrize("until", sorted({step.id for step in STEPS} | {step.stage.label for step in STEPS}))
def test_a_run_stops_after_each_name_or_is_told_which_one_is_next(until: str) -> None:
    """Where the next step may be parked before, or the plan ends; else the name that is offered is such a one."""
    last = max(index for index, step in enumerate(STEPS) if until in (step.id, step.stage.label))
    if last + 1 == len(STEPS) or may_park_before(STEPS, last + 1):
        assert last_before(STEPS, until) == last
        return
    with pytest.raises(UsageWrong) as caught:
        last_before(STEPS, until)
    assert "nothing was done" in caught.value.why
    offered = caught.value.next_step.removeprefix("--until ")
    assert last_before(STEPS, offered) > last


def test_where_only_the_plans_end_is_left_the_option_is_to_be_left_out() -> None:
    """Half a quorum without the flag is no state to leave."""
    end = max(index for index, step in enumerate(STEPS) if step.kind == "finalize-controller") + 1
    with pytest.raises(UsageWrong) as caught:
        last_before(STEPS[:end], "finalize/1-of-3")
    assert caught.value.next_step == "leave --until out"


@pytest.mark.parametrize("until", ["hybird", "kraft-mode/9", "", "copy/", "KRAFT-MODE"])
def test_a_name_to_stop_after_that_the_plan_has_not_is_refused_with_those_it_has(until: str) -> None:
    """Each stage; thirty brokers have hundreds of steps, which the plan's text names."""
    with pytest.raises(UsageWrong, match="has no stage and no step") as caught:
        last_before(STEPS, until)
    for step in STEPS:
        assert step.stage.label in caught.value.next_step
    assert "plan.txt" in caught.value.next_step
    assert STEPS[-1].id in caught.value.next_step
