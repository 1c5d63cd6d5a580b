"""A migration is carried out by any number of plans: stage by stage, or anew after any step of an older one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import NothingToPlan, PlanIsStale, PlanStopped
from migrate.model.detect import Detected, detect
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import MIGRATION, Stage
from migrate.model.world import World
from migrate.plan.build import build
from migrate.report.plan_verdict import may_begin
from migrate.run.carry_out import gone_back, what_is_found
from migrate.run.past_runs import by_journals
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


@pytest.mark.slow
def test_stage_by_stage_it_ends_as_in_one_go(reference: SimulatedCluster, tmp_path: Path) -> None:
    """Each stage planned when the one before it is complete, and carried out with a journal of its own."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    for stage in MIGRATION:
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


@pytest.mark.slow
@pytest.mark.parametrize("step", IDS)
def test_a_new_plan_after_any_step_ends_the_same(step: str, reference: SimulatedCluster, tmp_path: Path) -> None:
    """Nothing is done twice, whatever the older plan had done, and its journal is not needed.

    Half a finalize too: once its gates hold again, controllers without the flag are what a confirmed plan makes.
    """
    cluster = after(step, tmp_path)
    run(cluster, plan_for(cluster), tmp_path)
    assert cluster.finalized
    assert cluster.done == reference.done
    assert cluster.files == reference.files


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in IDS if step.partition("/")[0] in ("migration-mode", "kraft-mode")])
def test_a_plan_half_through_a_roll_may_begin(step: str, tmp_path: Path) -> None:
    """The brokers that it is about are no reason against it (B-MIG-04)."""
    plan = plan_for(after(step, tmp_path))
    assert may_begin(plan), plan.findings


@pytest.mark.slow
@pytest.mark.parametrize("step", HALF_FINAL)
def test_half_a_finalize_is_finished_over_no_difference(step: str, tmp_path: Path) -> None:
    """Until one of them is elected there is a rollback: a difference is still a reason to stop."""
    cluster = after(step, tmp_path)
    before = list(cluster.done)
    plan = plan_for(cluster)
    wrong = DiffReport(500, 0, {"topic-config": {"DIFFERS": 1}}, (WRONG,))
    cluster.bend = lambda world: replace(world, diff=wrong)
    with pytest.raises(PlanStopped, match=r"retention\.ms"):
        run(cluster, plan, tmp_path)
    assert cluster.done == before


@pytest.mark.slow
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


def finalized_by_accident(folder: Path) -> SimulatedCluster:
    """All in migration mode; a controller without the flag was elected."""
    cluster = after("copy/copy", folder)
    cluster.modes[3001] = "finalized"
    del cluster.running[3000]
    cluster._elect()
    cluster.start(NodeId(3000))
    assert cluster.finalized
    cluster.modes[3001] = "controller"
    return cluster


def restarted(cluster: SimulatedCluster, broker: int) -> None:
    """A broker in migration mode that was restarted since: refused, it never becomes whole (KAFKA-20960)."""

    def bend(world: World) -> World:
        kraft, live = world.kraft, world.live
        if isinstance(kraft, Unknown) or isinstance(live, Unknown) or cluster.modes[broker] == "kraft":
            return world
        fenced = {**kraft.brokers, NodeId(broker): replace(kraft.brokers[NodeId(broker)], fenced=True)}
        metadata = {**live.metadata, NodeId(broker): Unknown("connection refused")}
        return replace(world, kraft=replace(kraft, brokers=fenced), live=replace(live, metadata=metadata))

    cluster.bend = bend


@pytest.mark.slow
@pytest.mark.parametrize("broker", [0, 1, 2])
def test_a_broker_that_was_restarted_after_an_early_finalize_is_rolled_first(broker: int, tmp_path: Path) -> None:
    """Nothing but its own roll makes it whole: the others would wait for ever, or stop beside it."""
    cluster = finalized_by_accident(tmp_path)
    restarted(cluster, broker)
    cluster.done.clear()
    run(cluster, plan_for(cluster), tmp_path)
    stops = [act for act in cluster.done if act in ("stop 0", "stop 1", "stop 2")]
    assert stops == [f"stop {node}" for node in sorted((0, 1, 2), key=lambda node: (node != broker, node))]
    assert cluster.registered == {0: "kraft", 1: "kraft", 2: "kraft"}


@pytest.mark.slow
def test_none_is_stopped_beside_a_broker_that_was_lost_after_the_plan(tmp_path: Path) -> None:
    """The plan's order was right when it was made: a new one begins with the lost one."""
    cluster = finalized_by_accident(tmp_path)
    plan = plan_for(cluster)
    restarted(cluster, 2)
    cluster.done.clear()
    with pytest.raises(PlanStopped, match=r"brokers \[2\] were restarted or are down"):
        run(cluster, plan, tmp_path)
    assert cluster.done == []


LOOKED = [name for name in IDS if name.startswith(("discover", "assess", "prepare/back"))]


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in IDS if step not in LOOKED])
def test_the_same_plan_without_its_journal_does_nothing_again(step: str, tmp_path: Path) -> None:
    """What it did is unknown from it: refused with what was found, or with the file that is not as planned."""
    whole = plan_for(SimulatedCluster.in_zookeeper_mode())
    cluster = after(step, tmp_path)
    before, files = list(cluster.done), dict(cluster.files)

    def again() -> None:
        what_is_found(whole, cluster.observe(PLANNED_ON, {}))
        run(cluster, whole, tmp_path)

    with pytest.raises((PlanIsStale, PlanStopped)) as caught:
        again()
    assert cluster.done == before
    assert cluster.files == files
    assert caught.value.next_step


@pytest.mark.slow
def test_a_plan_that_was_rolled_back_since_is_stale(tmp_path: Path) -> None:
    """Its journal calls done what is undone: refused at once, and only where the cluster's place is known."""
    plan = plan_for(SimulatedCluster.in_zookeeper_mode())
    done = frozenset(step.id for step in plan.steps if step.stage <= Stage.HYBRID)
    back = SimulatedCluster.in_zookeeper_mode()
    with pytest.raises(PlanIsStale, match="had reached stage hybrid, and the cluster is at assess") as caught:
        gone_back(plan, done, back.observe(PLANNED_ON, {}))
    assert "rolled back" in caught.value.why
    gone_back(plan, done, replace(back.observe(PLANNED_ON, {}), zookeeper=Unknown("gone"), kraft=Unknown("gone")))
    gone_back(plan, done - {"controllers/start-controllers"}, back.observe(PLANNED_ON, {}))
    gone_back(plan, frozenset(), back.observe(PLANNED_ON, {}))
    ahead = after("copy/copy", tmp_path)
    gone_back(plan, done, ahead.observe(PLANNED_ON, {}))


@pytest.mark.slow
def test_what_is_found_is_told_with_the_next_step(tmp_path: Path) -> None:
    """A journal that was lost in hybrid: the stage of the cluster, and that a new plan goes on from there."""
    plan = plan_for(SimulatedCluster.in_zookeeper_mode())
    cluster = SimulatedCluster.in_zookeeper_mode()
    assert "stage assess" in what_is_found(plan, cluster.observe(PLANNED_ON, {}))
    cluster = after("hybrid/hybrid", tmp_path)
    with pytest.raises(PlanIsStale, match="begins with stage prepare, the cluster is at stage copy") as caught:
        what_is_found(plan, cluster.observe(PLANNED_ON, {}))
    assert "new plan" in caught.value.next_step
    again = plan_for(cluster)
    assert "stage copy" in what_is_found(again, cluster.observe(PLANNED_ON, {}))
    blind = replace(cluster.observe(PLANNED_ON, {}), kraft=Unknown("x"), zookeeper=Unknown("y"))
    assert "cannot be determined" in what_is_found(plan, blind)


@pytest.mark.slow
def test_status_knows_by_the_journals_that_hybrid_was_proven(tmp_path: Path) -> None:
    """The cluster has no trace of it: until the next step is concluded the last word of the runs counts."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    folder = tmp_path / "runs" / plan.short
    folder.mkdir(parents=True)
    known = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
    assert by_journals(known) == {}
    upto = IDS.index("hybrid/hybrid")
    run(cluster, replace(plan, steps=plan.steps[:upto]), folder)
    assert by_journals(known) == {}
    run(cluster, replace(plan, steps=plan.steps[: upto + 1]), folder)
    facts = by_journals(known)
    assert detect(cluster.observe(PLANNED_ON, facts)) != detect(cluster.observe(PLANNED_ON, {}))
    here = detect(cluster.observe(PLANNED_ON, facts))
    assert isinstance(here, Detected)
    assert (here.stage, here.half) == (Stage.HYBRID, None)
    run(cluster, plan, folder)
    cleaned = detect(cluster.observe(PLANNED_ON, by_journals(known)))
    assert isinstance(cleaned, Detected)
    assert (cleaned.stage, cleaned.half) == (Stage.CLEANUP, None)
    here = detect(cluster.observe(PLANNED_ON, {}))
    assert isinstance(here, Detected)
    assert here.stage is Stage.FINALIZE
    (folder / "journal.jsonl").write_bytes(b"not a journal\n")
    assert by_journals(known) == {}


@pytest.mark.slow
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
        assert "--stage controllers` first" in caught.value.next_step
