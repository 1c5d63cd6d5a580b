"""A migration is carried out by any number of plans: stage by stage, or anew after any step of an older one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NothingToPlan, PlanStopped
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.plan.build import build
from tests.run.test_engine import PLANNED_ON, plan_for, run
from tests.steps.looks import WRONG
from tests.testing import worlds
from tests.testing.killing import memory_folder
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
        assert planned - {Stage.SOAK} <= {stage, Stage.COPY}  # finalize has the soak in front of it
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


@pytest.mark.parametrize("step", IDS)
def test_a_new_plan_after_any_step_ends_the_same(step: str, reference: SimulatedCluster, tmp_path: Path) -> None:
    """Nothing is done twice, whatever the older plan had done, and its journal is not needed.

    Half a finalize too: once the interlock holds again, controllers without the flag are what a confirmed plan makes.
    """
    cluster = after(step, tmp_path)
    run(cluster, plan_for(cluster), tmp_path)
    assert cluster.finalized
    assert cluster.done == reference.done
    assert cluster.files == reference.files


@pytest.mark.parametrize("step", HALF_FINAL)
def test_half_a_finalize_is_finished_over_no_difference(step: str, tmp_path: Path) -> None:
    """Until one of them is elected there is a way back: a difference is still a reason to stop."""
    cluster = after(step, tmp_path)
    before = list(cluster.done)
    plan = plan_for(cluster)
    wrong = DiffReport(500, 0, {"topic-config": {"DIFFERS": 1}}, (WRONG,))
    cluster.bend = lambda world: replace(world, diff=wrong)
    with pytest.raises(PlanStopped, match=r"retention\.ms"):
        run(cluster, plan, tmp_path)
    assert cluster.done == before


def test_brokers_left_by_an_early_finalize_are_rolled_forward(tmp_path: Path) -> None:
    """The plan says so, needs no comparison any more, and ends with every broker in KRaft mode."""
    cluster = after("kraft-mode/0", tmp_path)
    cluster.modes[3001] = "finalized"
    del cluster.running[3000]
    cluster._elect()
    cluster.start(NodeId(3000))
    assert cluster.finalized
    cluster.modes[3001] = "controller"  # its file still has the flag; what it said when it was elected stays said
    plan = plan_for(cluster)
    rolls = [step.kind for step in plan.steps if step.stage is Stage.KRAFT_MODE]
    assert rolls == ["roll-forward", "roll-forward"]
    assert Stage.SOAK not in {step.stage for step in plan.steps}
    assert "roll them forward" in plan.summary.detected
    run(cluster, plan, tmp_path)
    assert cluster.registered == {0: "kraft", 1: "kraft", 2: "kraft"}
    assert {cluster.modes[node] for node in (3000, 3001, 3002)} == {"finalized"}


def test_a_finalize_of_its_own_goes_around_no_soak() -> None:
    """Planned alone, it has the soak in front of it: what an earlier plan soaked counts, nothing else does."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    whole = [step.id for step in plan_for(cluster).steps]
    assert "soak/soak" in whole
    with memory_folder() as folder:
        run(cluster, plan_for(cluster, Stage.KRAFT_MODE), folder)
    assert stage_plan(cluster, Stage.FINALIZE).steps[0].id == "soak/soak"


def test_a_stage_is_not_planned_before_its_time() -> None:
    """The refusal names the stage that comes first."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    for stage in (Stage.MIGRATION_MODE, Stage.COPY, Stage.KRAFT_MODE, Stage.FINALIZE, Stage.CLEANUP):
        with pytest.raises(NothingToPlan) as caught:
            stage_plan(cluster, stage)
        assert "controllers first" in caught.value.next_step
