"""A step is refused when its inputs changed, and fails when it became something else than it predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.errors import PlanIsStale, PredictionFailed
from migrate.model.ids import NodeId
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.views import NoFile
from migrate.model.world import Need, World
from migrate.plan.build import build
from migrate.run.guards import check_binds, check_expectations, check_files
from migrate.run.snapshots import needed_for
from tests.steps.looks import whole, without
from tests.steps.test_finalize import file_of, with_file
from tests.testing import worlds


def plan(stage: Stage) -> Plan:
    """The whole plan from there."""
    return build(whole(stage), worlds.playbook(), target=Stage.CLEANUP, only=False, created=1.0)


def planned(name: str) -> PlannedStep:
    """One step of the whole plan."""
    return next(step for step in WHOLE.steps if step.id == name)


WHOLE = plan(Stage.ASSESS)
FIRST, SECOND = planned("migration-mode/1"), planned("kraft-mode/1")


def test_the_world_that_was_planned_on_is_not_stale() -> None:
    """Before it acts, and for a later step in the world that the one before it left."""
    check_binds(WHOLE, FIRST, whole(Stage.CONTROLLERS))
    check_binds(WHOLE, SECOND, whole(Stage.COPY))


def other_directories(world: World) -> World:
    """Broker 1's file names other log directories."""
    return worlds.with_values(world, 1, log__dirs="/data/elsewhere")


@pytest.mark.parametrize(
    ("world", "says"),
    [
        (whole(Stage.COPY), "of broker 1 on b1 was"),
        (other_directories(whole(Stage.CONTROLLERS)), "log_dirs:1 was /data/b1/d0,/data/b1/d1,/data/b1/d2, is /data/e"),
        (worlds.with_zk(whole(Stage.CONTROLLERS), cluster_id="O" * 22), f"is {'O' * 22}"),
        (without("configs")(whole(Stage.CONTROLLERS)), "is unknown"),
        (replace(whole(Stage.CONTROLLERS), configs={NodeId(1): NoFile("/x")}), "is absent"),
    ],
    ids=["file", "directories", "cluster", "unseen", "gone"],
)
def test_a_changed_input_is_told_with_both_values(world: World, says: str) -> None:
    """What is unseen has changed, too: nobody can say that it has not."""
    with pytest.raises(PlanIsStale) as caught:
        check_binds(WHOLE, FIRST, world)
    assert says in str(caught.value)
    assert caught.value.exit_code == 6
    assert f"make a new plan: `{WHOLE.plan_again}`" in caught.value.next_step
    assert caught.value.where == "migration-mode/1"


@pytest.mark.parametrize(
    ("name", "stage", "node"),
    [
        ("controllers/start-controllers", Stage.CONTROLLERS, 3001),
        ("finalize/1-of-3", Stage.SOAK, 3002),
        ("finalize/2-of-3", Stage.SOAK, 3002),
    ],
)
def test_no_step_starts_a_node_with_a_file_that_the_plan_does_not_show(name: str, stage: Stage, node: int) -> None:
    """Not a half-done one either, that writes no file or writes the files of all controllers one by one."""
    step, world = planned(name), whole(stage)
    check_files(WHOLE, step, world)
    with pytest.raises(PlanIsStale, match=f"would do other than planned: config:{node} would become ") as caught:
        check_files(WHOLE, step, with_file(world, node, file_of(world, node).raw + b"num.io.threads=99\n"))
    assert caught.value.where == name


def test_what_was_predicted_is_what_a_healthy_roll_shows() -> None:
    """File, mode and registration."""
    check_expectations(FIRST, whole(Stage.COPY))
    check_expectations(SECOND, whole(Stage.KRAFT_MODE))
    check_expectations(planned("finalize/3-of-3"), whole(Stage.FINALIZE))


def test_what_was_not_predicted_is_told_with_both_values() -> None:
    """All that is wrong, in one message."""
    with pytest.raises(PredictionFailed) as caught:
        check_expectations(SECOND, whole(Stage.COPY))
    assert "mode:1 should be kraft, is migration" in str(caught.value)
    assert "registered:1 should be kraft, is migration" in str(caught.value)
    with pytest.raises(PredictionFailed, match="is unknown"):
        check_expectations(SECOND, without("kraft")(whole(Stage.KRAFT_MODE)))


def test_predictions_are_held_against_the_views_that_they_speak_of() -> None:
    """What must be looked at for it, and no more."""
    assert needed_for(FIRST) == {Need.CONFIGS, Need.KRAFT}
    assert needed_for(planned("copy/copy")) == {Need.KRAFT, Need.ZOOKEEPER}
    assert needed_for(planned("hybrid/hybrid")) == frozenset()
    for step in plan(Stage.ASSESS).steps:
        needed_for(step)
