"""A migration is carried out by any number of plans: stage by stage, or anew after any step of an older one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NothingToPlan, PlanStopped
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.plan.build import build
from tests.run.test_engine import PLANNED_ON, plan_for, run
from tests.testing import worlds
from tests.testing.simulated import SimulatedCluster


def stage_plan(cluster: SimulatedCluster, stage: Stage) -> Plan:
    """The plan of that stage alone."""
    world = cluster.observe(PLANNED_ON, {})
    return build(world, worlds.playbook(), target=stage, only=True, created=1.0)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> SimulatedCluster:
    """A cluster that one plan took through everything."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    run(cluster, plan_for(cluster), tmp_path_factory.mktemp("reference"))
    return cluster


def test_stage_by_stage_it_ends_as_in_one_go(reference: SimulatedCluster, tmp_path: Path) -> None:
    """Each stage planned when the one before it is complete, and carried out with a journal of its own."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    for stage in Stage:
        folder = tmp_path / stage.label
        folder.mkdir()
        plan = stage_plan(cluster, stage)
        # the copy runs by itself with the last broker's registration: whoever rolls watches it, later nothing is left
        planned = {step.stage for step in plan.steps}
        assert planned <= {stage, Stage.COPY}
        assert (stage in planned) is (stage is not Stage.COPY)
        run(cluster, plan, folder)
    assert cluster.finalized
    assert cluster.done == reference.done
    assert cluster.files == reference.files


IDS = [step.id for step in plan_for(SimulatedCluster.in_zookeeper_mode()).steps]
HALF_FINAL = ("finalize/1-of-3", "finalize/2-of-3")


def after(step: str, folder: Path) -> SimulatedCluster:
    """A cluster that a plan took to the end of that step, and whose journal is lost."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    (folder / "lost").mkdir()
    run(cluster, replace(plan, steps=plan.steps[: IDS.index(step) + 1]), folder / "lost")
    return cluster


@pytest.mark.parametrize("step", [step for step in IDS if step not in HALF_FINAL])
def test_a_new_plan_after_any_step_ends_the_same(step: str, reference: SimulatedCluster, tmp_path: Path) -> None:
    """Nothing is done twice, whatever the older plan had done, and its journal is not needed."""
    cluster = after(step, tmp_path)
    run(cluster, plan_for(cluster), tmp_path)
    assert cluster.finalized
    assert cluster.done == reference.done
    assert cluster.files == reference.files


@pytest.mark.parametrize("step", HALF_FINAL)
def test_a_half_finalized_quorum_is_finished_by_its_own_run_alone(step: str, tmp_path: Path) -> None:
    """For anybody else, a controller without the flag is an accident about to happen (KAFKA-20960): nothing is done."""
    cluster = after(step, tmp_path)
    before = list(cluster.done)
    with pytest.raises(PlanStopped, match="B-MIG-07"):
        run(cluster, plan_for(cluster), tmp_path)
    assert cluster.done == before


def test_a_stage_is_not_planned_before_its_time() -> None:
    """The refusal names the stage that comes first."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    for stage in (Stage.MIGRATION_MODE, Stage.COPY, Stage.KRAFT_MODE, Stage.FINALIZE, Stage.CLEANUP):
        with pytest.raises(NothingToPlan) as caught:
            stage_plan(cluster, stage)
        assert "controllers first" in caught.value.next_step
