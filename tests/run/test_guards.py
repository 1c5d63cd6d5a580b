"""What an interrupted run may not do when it goes on, and what no run may pass for having seen nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from migrate.errors import NoProgress, PlanIsStale, PlanStopped, PlanUnreadable
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import NotYet, Ready, Refused, Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.step import NotBegun
from migrate.model.views import MetaBroken, MetaMissing, MigrationZnode, NodeAnswer
from migrate.model.world import Need, World
from migrate.run import guards
from migrate.run import journal as journals
from migrate.steps import gates
from migrate.steps.controllers import FormatControllers
from migrate.steps.forward import RollToMigrationMode
from tests.run.test_engine import plan_for, run
from tests.steps.looks import WRONG, Remembered, answer, registration, whole
from tests.testing import worlds
from tests.testing.simulated import KillAt, Killed, SimulatedCluster
from tests.testing.worlds import kraft, live

STALE = MigrationZnode(900, 3, 3000, 2, 7)
Change = Callable[[SimulatedCluster], None]


class KillLabel(KillAt):
    """Kills at the point with that label, within that step."""

    def __init__(self, label: str, after: int = 0) -> None:
        super().__init__()
        self.label, self.left = label, after

    def reach(self, label: str) -> None:
        """Die at the point, after so many of the same name."""
        if label == self.label:
            if self.left == 0:
                raise Killed
            self.left -= 1


def killed(folder: Path, label: str, after: int = 0) -> tuple[SimulatedCluster, Plan]:
    """A cluster whose run was killed at that point."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    with pytest.raises(Killed):
        run(cluster, plan, folder, KillLabel(label, after))
    return cluster, plan


# -- going on after a kill -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_last_broker_that_was_stopped_is_not_started_over_a_stale_migration_znode(tmp_path: Path) -> None:
    """Its registration would start the wipe; what was checked before its stop is long ago."""
    cluster, plan = killed(tmp_path, "after:stop:2")
    done = list(cluster.done)
    cluster.bend = lambda world: worlds.with_zk(world, migration=STALE)
    with pytest.raises(PlanStopped, match="B-ZKN-01"):
        run(cluster, plan, tmp_path)
    assert cluster.done == done


@pytest.mark.slow
def test_a_last_broker_that_was_stopped_is_not_started_beside_a_topic_without_id(tmp_path: Path) -> None:
    """All blockers are checked again, but for those that its own stop makes."""
    cluster, plan = killed(tmp_path, "before:start:2")
    done = list(cluster.done)
    cluster.bend = lambda world: worlds.with_zk(world, topics_without_id=("orders",))
    with pytest.raises(PlanStopped, match="orders"):
        run(cluster, plan, tmp_path)
    assert cluster.done == done
    assert not cluster.copied


@pytest.mark.slow
def test_a_broker_that_was_stopped_is_not_started_into_kraft_on_a_dead_disk(tmp_path: Path) -> None:
    """A replica that is MIGRATING there would not be failed over."""
    cluster, plan = killed(tmp_path, "before:start:1", after=1)
    done = list(cluster.done)
    cluster.bend = lambda world: worlds.with_directory(world, 1, 2, lambda entry: replace(entry, problem="gone"))
    with pytest.raises(PlanStopped):
        run(cluster, plan, tmp_path)
    assert cluster.done == done


@pytest.mark.slow
@pytest.mark.parametrize("label", ["after:stop:3001", "after:write-config:3001", "before:start:3001"])
def test_the_gates_hold_until_the_first_start_without_the_flag(label: str, tmp_path: Path) -> None:
    """A stopped controller is no proof of anything: a ledger that went back since refuses the start."""
    after = 1 if "stop" not in label else 0  # it was rendered and started once before
    cluster, plan = killed(tmp_path, label, after)
    done = list(cluster.done)
    cluster.bend = lambda world: replace(world, disks=Unknown("no mount"))
    with pytest.raises(PlanStopped):
        run(cluster, plan, tmp_path)
    assert cluster.done == done
    cluster.bend = lambda world: world
    run(cluster, plan, tmp_path)
    assert cluster.finalized


@pytest.mark.slow
def test_a_controller_that_fell_meanwhile_is_not_taken_for_a_half_finalized_one(tmp_path: Path) -> None:
    """Killed after the intent alone; another controller crashed; the comparison is not empty any more."""
    cluster, plan = killed(tmp_path, "before:stop:3001")
    del cluster.running[3002]
    done = list(cluster.done)
    wrong = DiffReport(500, 0, {"topic-config": {"DIFFERS": 1}}, (WRONG,))
    cluster.bend = lambda world: replace(world, diff=wrong)
    with pytest.raises(PlanStopped, match=r"retention\.ms"):
        run(cluster, plan, tmp_path)
    assert cluster.done == done


def other_file(cluster: SimulatedCluster) -> None:
    """Another hand wrote a key into broker 1's file."""
    cluster.files[1, "/conf/b1.properties"] += b"num.io.threads=9\n"


@pytest.mark.slow
@pytest.mark.parametrize("label", ["before:stop:1", "after:stop:1", "after:write-config:1", "before:start:1"])
@pytest.mark.parametrize("roll", [0, 1])
def test_a_file_changed_between_kill_and_going_on_is_refused_before_anything(
    label: str, roll: int, tmp_path: Path
) -> None:
    """Not written over, and no process is started with it; put back, the run goes on."""
    cluster, plan = killed(tmp_path, label, roll)
    before, done = dict(cluster.files), list(cluster.done)
    other_file(cluster)
    with pytest.raises(
        PlanIsStale, match=r"/conf/b1\.properties (of broker 1 on b1|is not as planned)|config:1 would become"
    ):
        run(cluster, plan, tmp_path)
    assert cluster.done == done
    cluster.files = before
    run(cluster, plan, tmp_path)
    assert cluster.finalized


@pytest.mark.slow
def test_controllers_are_not_started_over_a_copy_that_appeared_meanwhile(tmp_path: Path) -> None:
    """One of three runs; the others would make the quorum that empties ZooKeeper."""
    cluster, plan = killed(tmp_path, "before:start:3001")
    done = list(cluster.done)
    cluster.bend = lambda world: worlds.with_zk(world, migration=STALE)
    with pytest.raises(PlanStopped, match="/migration"):
        run(cluster, plan, tmp_path)
    assert cluster.done == done


# -- what a plan says of itself --------------------------------------------------------------------------------------
def test_a_step_in_another_stage_than_its_own_is_no_plan() -> None:
    """The stage is no part of the fingerprint, and by it the point of no return is known."""
    plan = plan_for(SimulatedCluster.in_zookeeper_mode())
    final = next(step for step in plan.steps if step.stage is Stage.FINALIZE)
    hidden = replace(final, stage=Stage.SOAK)
    assert replace(plan, steps=(hidden,)).fingerprint == replace(plan, steps=(final,)).fingerprint
    with pytest.raises(PlanUnreadable, match="soak"):
        guards.own_step(hidden)
    with pytest.raises(PlanUnreadable):
        guards.own_step(replace(final, id="finalize/one"))


def test_a_plan_is_for_one_cluster(tmp_path: Path) -> None:
    """Whatever binds its steps: another cluster's id is refused before the first act."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = replace(plan_for(cluster), cluster_id="another")
    with pytest.raises(PlanIsStale, match="another"):
        run(cluster, plan, tmp_path)
    assert not cluster.done


def test_what_could_not_be_seen_when_it_was_planned_is_bound_to_nothing() -> None:
    """Unknown then and unknown now are not the same."""
    plan = plan_for(SimulatedCluster.in_zookeeper_mode())
    step = next(step for step in plan.steps if step.id == "migration-mode/1")
    blind = replace(step, binds={"config:1": "unknown"})
    with pytest.raises(PlanIsStale, match=r"/conf/b1\.properties of broker 1 on b1|config:1 would become"):
        guards.check_binds(plan, blind, replace(worlds.world_at(Stage.CONTROLLERS), configs=Unknown("hidden")))


# -- the first roll --------------------------------------------------------------------------------------------------
FIRST = RollToMigrationMode(1, "no")


def test_the_registration_of_the_process_that_was_stopped_is_no_proof() -> None:
    """Unfenced for as long as its session lives, although the new process never came through."""
    world = whole(Stage.MIGRATION_MODE)
    old = kraft(world).brokers[NodeId(1)].incarnation
    assert "notyet" not in answer(FIRST.verify(world))
    found = FIRST.verify(replace(world, facts={"ended:migration-mode/1": old}))
    assert isinstance(found, NotYet)
    assert "register again" in found.what
    assert "notyet" not in answer(FIRST.verify(replace(world, facts={"ended:migration-mode/1": "older"})))


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"fenced": True}, "broker 0 to register"), ({"log_dirs": frozenset({"X" * 22})}, "broker 0 registered")],
)
def test_the_next_broker_waits_for_the_proof_of_those_before(changes: dict[str, object], says: str) -> None:
    """Whoever rolled them, and however long ago: a new plan leaves them out."""
    last = RollToMigrationMode(2, "yes")
    world = whole(Stage.MIGRATION_MODE)
    assert last.check(world) == Ready()
    assert says in answer(last.check(registration(0, **changes)(world)))


def test_a_broker_in_migration_mode_without_registration_holds_the_next() -> None:
    """It says `started` and is retried for ever."""
    world = whole(Stage.MIGRATION_MODE)
    left = {node: entry for node, entry in kraft(world).brokers.items() if node != 0}
    found = RollToMigrationMode(2, "yes").check(worlds.with_kraft(world, brokers=left))
    assert isinstance(found, NotYet)


def test_a_file_of_the_mode_that_lacks_its_other_keys_is_still_written() -> None:
    """The flag alone makes no migration mode: the voters are missing."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    path = "/conf/b1.properties"
    cluster.files[1, path] += b"zookeeper.metadata.migration.enable=true\n"
    world = replace(cluster.observe(frozenset(), {}), kraft=whole(Stage.CONTROLLERS).kraft)
    assert FIRST.progress(world) == NotBegun()
    effects = Remembered()
    FIRST.do(world, effects)
    assert b"controller.quorum.voters" in effects.written[1]


# -- nothing seen is nothing proven ----------------------------------------------------------------------------------
def test_brokers_that_tell_of_fewer_partitions_than_there_are_have_not_shown_full_isrs() -> None:
    """Kafka leaves out topics that the principal may not describe."""
    world = whole(Stage.COPY)
    told = {
        node: entry if isinstance(entry, Unknown) else replace(entry, partitions=0)
        for node, entry in live(world).metadata.items()
    }
    found = gates.replicas_full(worlds.with_live(world, metadata=told))
    assert isinstance(found, NotYet)
    assert "DESCRIBE" in found.next_step


def test_full_isrs_need_a_number_of_partitions_and_a_list_of_brokers() -> None:
    """Neither view known, or no broker listed: that is no cluster whose ISRs are full."""
    world = whole(Stage.COPY)
    blind = replace(world, kraft=Unknown("hidden"), zookeeper=Unknown("hidden"))
    assert isinstance(gates.replicas_full(blind), Unknown)
    assert isinstance(gates.replicas_full(replace(world, inventory=replace(world.inventory, brokers=()))), Unknown)
    assert gates.replicas_full(replace(world, zookeeper=Unknown("stopped"))) == Ready()


def test_an_empty_ledger_and_an_empty_comparison_prove_nothing() -> None:
    """So looks a cluster whose metadata was wiped: both stores are equal, and no replica is wrong."""
    world = whole(Stage.COPY)
    assert isinstance(gates.ledger_is(replace(world, ledger=Ledger((), 5, "spark")), ReplicaState.VERIFIED), Unknown)
    assert isinstance(world.ledger, Ledger)
    blind = Ledger(world.ledger.rows, 5, "pure", ("disks: hidden",))
    assert isinstance(gates.ledger_is(replace(world, ledger=blind), *ReplicaState), Unknown)
    assert isinstance(gates.views_equal(replace(world, diff=DiffReport(5, 0, {}, ()))), Unknown)
    assert isinstance(gates.views_equal(replace(world, diff=DiffReport(5, 0, {"topic": {"EQUAL": 0}}, ()))), Unknown)


@pytest.mark.parametrize(
    ("meta", "log"), [(MetaBroken("two versions"), False), (MetaMissing(), True)], ids=["broken", "a log without it"]
)
def test_only_a_directory_that_holds_nothing_is_formatted(meta: MetaBroken | MetaMissing, log: bool) -> None:
    """What cannot be understood is somebody's."""
    world = worlds.with_directory(
        whole(Stage.CONTROLLERS), 3001, 0, lambda entry: replace(entry, meta=meta, holds_metadata_log=log)
    )
    assert isinstance(FormatControllers("3.9").check(world), Refused)


@pytest.mark.slow
def test_a_run_says_at_which_point_it_was_refused(tmp_path: Path) -> None:
    """NoProgress and refusals alike end in the journal."""
    cluster, plan = killed(tmp_path, "after:stop:2")
    cluster.bend = lambda world: worlds.with_live(world, quorum=Unknown("no controller leads"))
    with pytest.raises((NoProgress, PlanStopped)):
        run(cluster, plan, tmp_path)
    assert journals.read(tmp_path / "journal.jsonl").events[-1].name == "stop"
    assert "start 2 migration" not in cluster.done


def test_a_broker_stopped_in_migration_mode_is_excused_its_own_znode_and_nothing_else() -> None:
    """Seen on real Kafka: its znode goes with its session, its registration stays, and the comparison says so."""
    gone = Difference("broker", "1", "endpoints", DifferenceClass.ONLY_KRAFT, None, "CLIENT://b1:9093")
    other = Difference("broker", "2", "endpoints", DifferenceClass.ONLY_KRAFT, None, "CLIENT://b2:9093")
    topic = Difference("topic-config", "1", "retention.ms", DifferenceClass.DIFFERS, "1", "2")
    world = worlds.world_at(Stage.HYBRID)

    def found(*differences: Difference) -> World:
        return replace(world, diff=DiffReport(500, 0, {"broker": {"EQUAL": 2, "ONLY_KRAFT": 1}}, differences))

    assert isinstance(gates.views_equal(found(gone), down=1), Ready)
    assert isinstance(gates.views_equal(found(gone)), Refused)
    assert isinstance(gates.views_equal(found(gone, other), down=1), Refused)
    assert isinstance(gates.views_equal(found(topic), down=1), Refused)
    assert "B-MIG-06" not in str(gates.no_blockers(found(gone), Stage.KRAFT_MODE, down=1))
    assert "B-MIG-06" in str(gates.no_blockers(found(gone, other), Stage.KRAFT_MODE, down=1))


@dataclass(slots=True)
class Looks(SimulatedCluster):
    """A cluster whose looks are kept, by what they asked for."""

    asked: list[frozenset[Need]] = field(default_factory=list)

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """Look, and keep what was asked."""
        self.asked.append(needs)
        return SimulatedCluster.observe(self, needs, facts)


@pytest.mark.slow
def test_what_a_guard_forbids_is_said_before_spark_is_waited_for(tmp_path: Path) -> None:
    """A controller runs without the flag in hybrid: no comparison is asked for, and the refusal is the guard's."""
    cluster = Looks.in_zookeeper_mode()
    run(cluster, plan_for(cluster, Stage.HYBRID), tmp_path)
    plan, folder = plan_for(cluster, Stage.KRAFT_MODE), tmp_path / "second"
    folder.mkdir()
    unflagged = NodeAnswer(migration_flag=False, finalized_features={})

    def unflag(world: World) -> World:
        return worlds.with_live(world, controllers={**live(world).controllers, NodeId(3001): unflagged})

    cluster.bend, cluster.asked = unflag, []
    kept = [step.id for step in plan.steps if step.stage is Stage.KRAFT_MODE]
    with pytest.raises(PlanStopped, match="3001 runs without the flag") as caught:
        run(cluster, replace(plan, steps=tuple(step for step in plan.steps if step.id in kept)), folder)
    assert caught.value.where == "step kraft-mode/0"
    assert len(cluster.asked) == 1
    assert not cluster.asked[0] & {Need.DIFF, Need.DISKS, Need.LEDGER}
    cluster.bend, cluster.asked = lambda world: world, []
    run(cluster, plan, folder)
    assert any(Need.DIFF in needs for needs in cluster.asked), "what no guard forbids is compared as before"
