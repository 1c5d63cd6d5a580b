"""The rollback on a cluster in memory: from every state, killed at every effect, and forward again to the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from migrate import checks
from migrate.errors import MigrateError, NothingToPlan, PlanIsStale, PlanStopped, RestoreRefused
from migrate.model.causes import LOST_LOGS, cause_of
from migrate.model.difference import Difference, DifferenceClass, DifferenceName, DiffReport
from migrate.model.findings import Finding, Severity, Word
from migrate.model.history import Event, concluded
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.outcome import Ready, Refused, Unknown, Verified
from migrate.model.plan import Plan
from migrate.model.rollback_readiness import Growing
from migrate.model.world import Need, World
from migrate.plan import rollback
from migrate.report.plan_json import plan_from_json, plan_to_json
from migrate.report.plan_text import plan_html, plan_text
from migrate.report.plan_verdict import judge
from migrate.steps import configuration
from migrate.steps.controllers import StartControllers
from migrate.steps.rollback.control import StopControllers
from tests.run.test_engine import Labels, plan_for, run
from tests.testing import worlds
from tests.testing.blocking import blocking
from tests.testing.killing import memory_folder
from tests.testing.simulated import KillAt, Killed
from tests.testing.simulated_back import MADE_IN_DUAL_WRITE, TwoWay, two_way
from tests.testing.worlds import BROKERS, CONTROLLERS

ONLY_KRAFT, ONLY_ZK = DifferenceClass.ONLY_KRAFT, DifferenceClass.ONLY_ZK


def forward(cluster: TwoWay, folder: Path, upto: str | None = None) -> None:
    """Migrate, up to before the step of that id; to finalized without one."""
    plan = plan_for(cluster)
    if upto is not None:
        last = next(number for number, step in enumerate(plan.steps) if step.id == upto)
        plan = replace(plan, steps=plan.steps[:last])
    folder.mkdir(exist_ok=True)
    run(cluster, plan, folder)


def rollback_plan(cluster: TwoWay, *, copy_again: bool = False, playbook: Playbook | None = None) -> Plan:
    """The plan of the rollback from the stage of the cluster."""
    world = cluster.observe(rollback.PLANNED_ON, {})
    return rollback.build(world, playbook or worlds.playbook(), created=2.0, copy_again=copy_again)


ENTRIES: Final[dict[str, str]] = {  # name -> the step that is not begun
    "controllers up": "migration-mode/0",
    "half of the first roll": "migration-mode/2",
    "hybrid": "kraft-mode/0",
    "half of the second roll": "kraft-mode/assign-2",
    "all brokers KRaft": "soak/soak",
    "soak": "finalize/1-of-3",
}


TAKEN: Final[dict[str, TwoWay]] = {}


def at(entry: str, folder: Path) -> TwoWay:
    """A cluster that was taken there: once, then a copy of that one."""
    if entry not in TAKEN:
        cluster = two_way()
        forward(cluster, folder, ENTRIES[entry])
        TAKEN[entry] = cluster
    return deepcopy(TAKEN[entry])


def copy_held(folder: Path) -> TwoWay:
    """Every broker in migration mode, and the copy held open by a dead id in an assignment."""
    cluster = at("half of the first roll", folder)
    cluster.hold_copy = True
    file = worlds.inventory().node(NodeId(2)).config
    rolled = configuration.migration_mode(cluster.files[2, file], worlds.inventory())
    cluster.stop(NodeId(2), 1.0)
    cluster.write(NodeId(2), file, rolled)
    cluster.start(NodeId(2))
    assert set(cluster.registered) == {0, 1, 2}
    assert not cluster.copied
    cluster.done.clear()
    return cluster


def go_back(cluster: TwoWay, folder: Path, kill: KillAt | None = None) -> tuple[Event, ...]:
    """Plan the rollback from where it stands now, and carry it out with a journal of its own."""
    folder.mkdir()
    return run(cluster, rollback_plan(cluster), folder, kill)


def is_back(cluster: TwoWay) -> None:
    """The one end state."""
    assert cluster.harms == []
    assert cluster.modes == {**cluster.modes, 0: "zookeeper", 1: "zookeeper", 2: "zookeeper"}
    assert set(cluster.running) == set(map(int, BROKERS))
    assert cluster.migration is None
    assert cluster.owner is not None
    assert cluster.owner[0] == "zookeeper"
    assert cluster.epoch > cluster.highest_epoch
    assert cluster.formatted == set()
    for node in worlds.inventory().brokers:
        original = two_way().files[int(node.id), node.config]
        assert cluster.files[int(node.id), node.config] == original


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_from_every_state_the_rollback_ends_the_same_and_the_cluster_migrates_again(tmp_path: Path, entry: str) -> None:
    """Rolled back, proven, and migrated to the end by a second migration."""
    cluster = at(entry, tmp_path / "forward")
    plan = rollback_plan(cluster)
    events = go_back(cluster, tmp_path / "back")
    assert concluded(events) == {step.id for step in plan.steps}
    is_back(cluster)
    forward(cluster, tmp_path / "again")
    assert cluster.finalized
    assert cluster.harms == []


@pytest.mark.slow
def test_before_the_copy_the_brokers_controller_keeps_its_znode(tmp_path: Path) -> None:
    """/controller is a ZooKeeper-mode broker's until the copy: only /migration goes."""
    cluster = copy_held(tmp_path / "forward")
    before = cluster.owner_version
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    assert "delete /controller" not in cluster.done
    assert "delete /migration" in cluster.done
    assert cluster.owner_version > before  # by the rolls alone: each owner's restart hands it on


def test_with_nothing_to_undo_the_plan_only_looks(tmp_path: Path) -> None:
    """A cluster that never began."""
    cluster = two_way()
    plan = rollback_plan(cluster)
    assert [step.id for step in plan.steps] == ["assess/prove-zookeeper-mode"]
    go_back(cluster, tmp_path / "back")
    assert cluster.done == []


@pytest.mark.slow
def test_a_prepared_cluster_loses_only_the_rendered_files(tmp_path: Path) -> None:
    """They are set aside; no process is touched."""
    cluster = two_way()
    forward(cluster, tmp_path / "forward", "controllers/format-controllers")
    cluster.done.clear()
    go_back(cluster, tmp_path / "back")
    assert cluster.done == [f"aside {node} /conf/c{node}.properties" for node in (3000, 3001, 3002)]


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["half of the first roll", "hybrid", "half of the second roll", "all brokers KRaft"])
def test_a_file_that_was_put_back_by_hand_under_a_running_broker_is_rolled_as_well(tmp_path: Path, entry: str) -> None:
    """The broker runs in another mode than its file says: the rollback restarts it, and ends as any other."""
    cluster = at(entry, tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    cluster.files[1, file] = two_way().files[1, file]
    plan = rollback_plan(cluster)
    assert "migration-mode/back-1" in [step.id for step in plan.steps]
    mode = cluster.modes[1]
    said = [
        action.what for step in plan.steps for action in step.actions if "its file says ZooKeeper mode" in action.what
    ]
    assert len(said) == 1
    assert f"runs in {mode.replace('kraft', 'KRaft')} mode" in said[0]
    go_back(cluster, tmp_path / "back")
    is_back(cluster)


EXTRA: Final = b"# by hand\nlog.cleaner.threads=2\n"


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["half of the first roll", "hybrid", "half of the second roll", "all brokers KRaft"])
def test_a_file_that_was_edited_since_is_restored_key_by_key_and_keeps_what_was_edited(
    tmp_path: Path, entry: str
) -> None:
    """The plan shows both differences; the end is proven, and a second migration goes to its end."""
    cluster = at(entry, tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    cluster.files[1, file] += EXTRA
    plan = rollback_plan(cluster)
    (step,) = [step for step in plan.steps if step.id == "migration-mode/back-1"]
    (restored,) = [action for action in step.actions if action.what.startswith(f"restore {file}")]
    assert "key by key: " in restored.what
    (kept,) = [action for action in step.actions if "was edited since" in action.what]
    assert "log.cleaner.threads" in kept.what
    assert "+log.cleaner.threads=2" in kept.diff
    go_back(cluster, tmp_path / "back")
    assert cluster.files[1, file] == two_way().files[1, file] + EXTRA
    assert cluster.harms == []
    assert {cluster.modes[int(node)] for node in BROKERS} == {"zookeeper"}
    forward(cluster, tmp_path / "again")
    assert cluster.finalized


def test_a_file_that_is_edited_after_the_plan_was_made_makes_it_stale(tmp_path: Path) -> None:
    """The fingerprint covers the file as it is and the file as it will be: nothing is written that was not shown."""
    cluster = at("hybrid", tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    plan = rollback_plan(cluster)
    cluster.files[1, file] += EXTRA
    assert rollback_plan(cluster).fingerprint != plan.fingerprint
    (tmp_path / "back").mkdir()
    with pytest.raises(PlanIsStale):
        run(cluster, plan, tmp_path / "back")
    assert "write 1 zookeeper" not in cluster.done


@pytest.mark.slow
def test_a_file_that_is_edited_while_its_broker_is_down_is_not_overwritten(tmp_path: Path) -> None:
    """Killed between the stop and the write, edited, and gone on with: the plan is stale, a new one keeps the edit."""
    cluster = at("hybrid", tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    plan = rollback_plan(cluster)
    folder = tmp_path / "back"
    folder.mkdir()
    with pytest.raises(Killed):
        run(cluster, plan, folder, KillAtLabel("after:stop:1"))
    cluster.files[1, file] += EXTRA
    with pytest.raises(PlanIsStale):
        run(cluster, plan, folder)
    go_back(cluster, tmp_path / "anew")
    assert cluster.files[1, file] == two_way().files[1, file] + EXTRA
    assert cluster.harms == []


class KillAtLabel(KillAt):
    """Dies at the crash point of that name."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    def reach(self, label: str) -> None:
        """Die there."""
        if label == self.label:
            raise Killed


def test_a_third_value_of_a_migrations_own_key_refuses_the_plan_before_anything_is_touched(tmp_path: Path) -> None:
    """By broker and key, and with what to do."""
    cluster = at("hybrid", tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    cluster.files[1, file] = cluster.files[1, file].replace(b"CTL:PLAINTEXT", b"CTL:SSL")
    with pytest.raises(RestoreRefused, match=r"broker 1: .*listener.security.protocol.map has neither"):
        rollback_plan(cluster)


# -- a copy that is stuck ------------------------------------------------------------------------------------------
def stuck(folder: Path) -> TwoWay:
    """The active controller was killed between the end of the copy and its note in /migration."""
    cluster = at("hybrid", folder)
    cluster.migration = -1
    return cluster


@pytest.mark.slow
def test_a_stuck_copy_is_called_by_its_name_and_the_rollback_leads_out_of_it(tmp_path: Path) -> None:
    """Back to ZooKeeper mode, and forward again."""
    cluster = stuck(tmp_path / "forward")
    assert "a copy that is stuck" in rollback_plan(cluster).summary.detected
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    forward(cluster, tmp_path / "again")
    assert cluster.finalized


@pytest.mark.slow
def test_a_stuck_copy_is_made_again_with_a_fresh_quorum(tmp_path: Path) -> None:
    """Every broker is restarted once, no file changes, and the migration continues from hybrid."""
    cluster = stuck(tmp_path / "forward")
    files = dict(cluster.files)
    plan = rollback_plan(cluster, copy_again=True)
    (tmp_path / "again").mkdir()
    cluster.done.clear()
    run(cluster, plan, tmp_path / "again")
    assert cluster.copied
    assert cluster.migration is not None
    assert cluster.migration > 0
    assert cluster.harms == []
    assert cluster.files == files
    assert [act for act in cluster.done if act in ("stop 0", "stop 1", "stop 2")] == ["stop 0", "stop 1", "stop 2"]
    assert [act for act in cluster.done if act.startswith("format")] == ["format 3000", "format 3001", "format 3002"]
    forward(cluster, tmp_path / "end")
    assert cluster.finalized


def test_a_copy_is_not_made_again_with_a_broker_whose_file_is_of_another_mode(tmp_path: Path) -> None:
    """It would be restarted with that file, out of migration mode; the rollback itself can be planned."""
    cluster = stuck(tmp_path / "forward")
    file = worlds.inventory().node(NodeId(1)).config
    cluster.files[1, file] = two_way().files[1, file]
    with pytest.raises(NothingToPlan, match="broker 1 runs in migration mode; its file says ZooKeeper mode"):
        rollback_plan(cluster, copy_again=True)
    assert rollback_plan(cluster).steps


def test_a_copy_that_is_not_stuck_is_not_made_again(tmp_path: Path) -> None:
    """Neither planned, nor done by a plan that was made a moment too early."""
    with pytest.raises(NothingToPlan, match="not stuck"):
        rollback_plan(at("hybrid", tmp_path / "hybrid"), copy_again=True)
    cluster = stuck(tmp_path / "forward")
    plan = rollback_plan(cluster, copy_again=True)
    cluster.migration = 500
    (tmp_path / "back").mkdir()
    with pytest.raises(PlanStopped, match="it is not stuck"):
        run(cluster, plan, tmp_path / "back")
    assert "stop 3001" not in cluster.done[-3:]


# -- the order -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_order_is_the_one_that_was_seen_to_work(tmp_path: Path) -> None:
    """KRaft brokers first, the leader last among controllers, /controller before /migration, then the brokers."""
    cluster = at("half of the second roll", tmp_path / "forward")
    cluster.done.clear()
    go_back(cluster, tmp_path / "back")
    mode = {0: "migration", 1: "migration"}
    assert cluster.done == [
        *(act for node in (0, 1) for act in (f"stop {node}", f"write {node} {mode[node]}", f"start {node} migration")),
        "stop 3001",
        "stop 3002",
        "stop 3000",
        f"raise ['{MADE_IN_DUAL_WRITE}']",
        "delete /controller",
        "delete /migration",
        *(act for node in (0, 1, 2) for act in (f"stop {node}", f"write {node} zookeeper", f"start {node} zookeeper")),
        *(
            act
            for node in (3000, 3001, 3002)
            for act in (f"aside {node} /data/c{node}", f"aside {node} /conf/c{node}.properties")
        ),
    ]


@pytest.mark.slow
def test_the_epoch_is_raised_before_the_znode_goes(tmp_path: Path) -> None:
    """Partition states carry KRaft's epoch: a ZooKeeper controller with a lower one is refused by its own data."""
    cluster = at("hybrid", tmp_path / "forward")
    cluster.kraft_epoch = cluster.highest_epoch = 40
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    assert cluster.done.index("set /controller_epoch 40") < cluster.done.index("delete /controller")
    assert cluster.epoch > 40


# -- what is down or lost --------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_with_the_active_controller_dead(tmp_path: Path, entry: str) -> None:
    """Another leads: a single dead controller bars no rollback."""
    cluster = at(entry, tmp_path / "forward")
    assert cluster.leader is not None
    cluster.kill(cluster.leader)
    go_back(cluster, tmp_path / "back")
    is_back(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("broker", [0, 1, 2])
@pytest.mark.parametrize("entry", ENTRIES)
def test_with_one_broker_down(tmp_path: Path, entry: str, broker: int) -> None:
    """It has its turn first, after its old session, and no other one is stopped before it is back."""
    cluster = at(entry, tmp_path / "forward")
    cluster.kill(broker)
    cluster.done.clear()
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    started = next(act for act in cluster.done if act.startswith("start"))
    assert started.startswith(f"start {broker} ")


@pytest.mark.slow
def test_killed_after_any_effect_a_new_plan_without_the_journal_ends_the_same(tmp_path: Path) -> None:
    """What is left is found from the cluster itself."""
    start, points = at("half of the second roll", tmp_path / "forward"), Labels()
    go_back(deepcopy(start), tmp_path / "count", points)
    behind = [number for number, label in enumerate(points.labels, 1) if label.startswith("after:")]
    assert len(behind) > 10
    with memory_folder() as memory:
        for point in (1, *behind):
            cluster = deepcopy(start)
            with pytest.raises(Killed):
                go_back(cluster, memory / f"{point}", KillAt(point))
            go_back(cluster, memory / f"{point}-anew")
            is_back(cluster)


# -- what ZooKeeper lacks although /migration has passed it ----------------------------------------------------------
LOST_ACL: Final = Difference("acl", "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW", "", ONLY_KRAFT, None, "acl")
KEPT_QUOTA: Final = Difference("client-quota", "client-id=app", "producer_byte_rate", ONLY_ZK, "1000", None)


def differing(cluster: TwoWay, *rows: Difference) -> TwoWay:
    """Each comparison finds these rows."""
    counts: dict[str, dict[str, int]] = {"topic": {"EQUAL": 3}}
    for row in rows:
        counts[row.kind] = {row.cls.value: 1}
    report = DiffReport(500, 0, counts, rows)
    cluster.bend = lambda world: world if isinstance(world.kraft, Unknown) else replace(world, diff=report)
    return cluster


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["hybrid", "half of the second roll", "all brokers KRaft", "soak"])
def test_a_difference_stops_the_rollback_before_any_controller(tmp_path: Path, entry: str) -> None:
    """/migration has passed the metadata all the time: the plan is blocked, and its run is refused by name."""
    cluster = differing(at(entry, tmp_path / "forward"), LOST_ACL, KEPT_QUOTA)
    plan = rollback_plan(cluster)
    assert judge(plan).word is Word.BLOCKED
    assert [finding.about.split()[0] for finding in blocking(plan.findings, plan.target)] == [
        "acl",
        "client-quota",
    ]
    for finding, row in zip(plan.findings, (LOST_ACL, KEPT_QUOTA), strict=False):
        assert finding.fix.startswith(cause_of(row).what_to_do)  # whole, however long: it is carried out as printed
        assert f"`kraft-migrate rollback plan {plan.playbook} --discard-differences`" in finding.fix
    running = dict(cluster.running)
    with pytest.raises(PlanStopped, match=r"ONLY_KRAFT acl .*a%2Fb.*ONLY_ZK client-quota client-id=app"):
        go_back(cluster, tmp_path / "back")
    assert cluster.running.keys() == running.keys()
    assert cluster.owner is not None
    assert cluster.owner[0] == "kraft"
    cluster.bend = lambda world: world  # repaired: the same run goes on
    run(cluster, plan, tmp_path / "back")
    is_back(cluster)


@pytest.mark.slow
def test_differences_are_given_up_by_name_and_no_other_one_with_them(tmp_path: Path) -> None:
    """The plan shows each, its fingerprint covers them, the journal keeps them, and a further one stops the run."""
    cluster = differing(at("hybrid", tmp_path / "forward"), LOST_ACL)
    plan = rollback.build(
        cluster.observe(rollback.PLANNED_ON, {}), worlds.playbook(), created=2.0, discard_differences=True
    )
    assert judge(plan).word is not Word.BLOCKED
    assert plan.fingerprint != rollback_plan(cluster).fingerprint
    assert plan_from_json(plan_to_json(plan)) == plan
    name = str(DifferenceName.of(LOST_ACL))
    assert f"{name}: the metadata alone has it, and it is lost" in " ".join(plan_text(plan).split())
    assert "ONLY_KRAFT acl" in plan_html(plan, "PLAN")
    more = differing(deepcopy(cluster), LOST_ACL, KEPT_QUOTA)
    (tmp_path / "more").mkdir()
    with pytest.raises(PlanStopped, match=r"differ in 1 place.*ONLY_ZK client-quota"):
        run(more, plan, tmp_path / "more")
    assert set(map(int, CONTROLLERS)) <= set(more.running)
    (tmp_path / "back").mkdir()
    events = run(cluster, plan, tmp_path / "back")
    is_back(cluster)
    (said,) = [event.data["evidence"] for event in events if event.data.get("outcome") == "Verified" and ends(event)]
    assert f"discarded, as planned: {name}" in said


@pytest.mark.slow
def test_with_most_logs_lost_the_rollback_goes_on_once_what_they_held_is_given_up(tmp_path: Path) -> None:
    """No controller can be started to write more: nothing is planned before, and the plan names it after."""
    cluster = at("hybrid", tmp_path / "forward")
    lost = Difference(LOST_LOGS, "controllers 3001, 3002", "what they alone held", ONLY_KRAFT, None, "not known")
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)

    report = DiffReport(500, 0, {"topic": {"EQUAL": 3}, LOST_LOGS: {"ONLY_KRAFT": 1}}, (lost,))

    def bend(world: World) -> World:
        if isinstance(world.metadata_logs, Unknown):
            return world
        logs = replace(world.metadata_logs, holders=(3000,), end=Unknown("1 of 3"))
        return replace(world, metadata_logs=logs, diff=report)

    cluster.compares = False
    cluster.bend = bend
    with pytest.raises(NothingToPlan, match="no metadata log is seen of most controllers"):
        rollback_plan(cluster)
    world = cluster.observe(rollback.PLANNED_ON, {})
    plan = rollback.build(world, worlds.playbook(), created=2.0, discard_differences=True)
    assert f"{DifferenceName.of(lost)}: the metadata alone has it" in " ".join(plan_text(plan).split())
    assert "hybrid/finish-dual-write" not in {step.id for step in plan.steps}
    (tmp_path / "back").mkdir()
    run(cluster, plan, tmp_path / "back")
    is_back(cluster)


def ends(event: Event) -> bool:
    """Does it conclude the stop of the controllers?"""
    return event.name == "conclude" and event.data["step"] == "hybrid/stop-controllers"


def test_what_cannot_be_compared_is_not_given_up(tmp_path: Path) -> None:
    """Nobody could name it: the plan is refused; without the option the run is, before any controller stops."""
    cluster = at("hybrid", tmp_path / "forward")
    cluster.bend = lambda world: replace(world, diff=Unknown("Spark did not start"))
    cluster.compares = False
    world = cluster.observe(rollback.PLANNED_ON, {})
    with pytest.raises(NothingToPlan, match="Spark did not start"):
        rollback.build(world, worlds.playbook(), created=2.0, discard_differences=True)
    with pytest.raises(PlanStopped, match="not compared with the metadata: Spark did not start"):
        go_back(cluster, tmp_path / "back")
    assert set(map(int, CONTROLLERS)) <= set(cluster.running)


def test_what_holds_dual_write_blocks_the_plan_where_nothing_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ACL that Kafka cannot write, behind a failover of the controllers; compared, the difference itself blocks."""
    held = Finding("B-MIG-14", Severity.BLOCKER, "acl a/b", "Kafka cannot write it", "", "remove it", 1)
    monkeypatch.setattr(checks, "told", lambda *_, **__: (held,))
    cluster = at("hybrid", tmp_path / "forward")
    assert judge(rollback_plan(cluster)).word is not Word.BLOCKED
    cluster.compares = False
    assert judge(rollback_plan(cluster)).word is Word.BLOCKED


def test_with_some_controllers_stopped_the_others_are_compared_again(tmp_path: Path) -> None:
    """Killed behind the first stop: while one leads a loss can still be repaired; without a majority nobody answers."""
    start = at("hybrid", tmp_path / "forward")
    stops = StopControllers()
    for stopped, held in ((1, True), (2, False)):
        cluster = differing(deepcopy(start), LOST_ACL)
        for node in (3001, 3002, 3000)[:stopped]:
            cluster.stop(NodeId(node), 1.0)
        world = cluster.observe(stops.needs, {})
        assert isinstance(stops.resume(world), Refused if held else Ready)


# -- what was committed at the last moment ---------------------------------------------------------------------------
@pytest.mark.slow
def test_a_topic_made_as_the_controllers_stop_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed after the last look at dual write: refused, and a new plan starts the controllers to write it."""
    start = at("hybrid", tmp_path / "forward")
    start.unwritten_at_stop = 2
    cluster = deepcopy(start)
    with pytest.raises(PlanStopped, match=r"ONLY_KRAFT topic made-late .* plan the rollback again at once"):
        go_back(cluster, tmp_path / "back")
    assert "delete /controller" not in cluster.done
    plan = rollback_plan(cluster)
    kinds = [step.kind for step in plan.steps]
    assert kinds[:3] == ["finish-dual-write", "keep-zookeeper", "stop-controllers"]
    assert kinds[3:5] == ["raise-state-versions", "hand-back-control"]
    assert "ONLY_KRAFT topic made-late" in plan.steps[0].actions[-1].what
    assert judge(plan).word is not Word.BLOCKED
    go_back(cluster, tmp_path / "back anew")
    is_back(cluster)
    monkeypatch.setattr("migrate.steps.rollback.gates.stopped_equal", ready)
    assert "a topic is lost: ZooKeeper never got it" in harmed(start, tmp_path / "lost")


@pytest.mark.slow
def test_logs_that_prove_nothing_hold_the_rollback(tmp_path: Path) -> None:
    """Unreadable directories, or too few of them."""
    for reason, change in (
        ("unreadable", unreadable_now),
        ("tail unproven", unproven),
    ):
        cluster = at("hybrid", tmp_path / "forward")
        cluster.bend = change
        with pytest.raises(PlanStopped, match=f"is not known .*{reason}"):
            go_back(cluster, tmp_path / reason)
        assert "delete /controller" not in cluster.done


def unreadable_now(world: World) -> World:
    """They could be read while a controller led, and cannot be any more."""
    return world if isinstance(world.metadata_logs, Growing) else replace(world, metadata_logs=Unknown("unreadable"))


UNREADABLE = Unknown("E-HOST-25 tar: sudo: a password is required")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (
            lambda world: replace(world, metadata_logs=UNREADABLE),
            "logs cannot be read .*password is required",
        ),
        (lambda world: replace(world, rehearsal="/controller_epoch: needs WRITE on it"), "needs WRITE on it"),
        (lambda world: replace(world, rehearsal=Unknown("no session")), "lets this identity .*not known: no session"),
    ],
    ids=["logs", "znodes", "nobody answers"],
)
def test_what_is_needed_without_a_leader_is_tried_while_one_leads(
    tmp_path: Path, bend: Callable[[World], World], says: str
) -> None:
    """Found missing with the quorum lost, it would leave the cluster without a controller: nothing is stopped."""
    cluster = at("hybrid", tmp_path / "forward")
    cluster.bend = bend
    with pytest.raises(PlanStopped, match=f"step hybrid/stop-controllers: .*{says}"):
        go_back(cluster, tmp_path / "back")
    assert set(map(int, CONTROLLERS)) <= set(cluster.running)
    cluster.bend = lambda world: world
    go_back(cluster, tmp_path / "back anew")
    is_back(cluster)


def unproven(world: World) -> World:
    """Logs of a minority."""
    if isinstance(world.metadata_logs, Unknown):
        return world
    return replace(world, metadata_logs=replace(world.metadata_logs, end=Unknown("tail unproven")))


# -- what another hand did -------------------------------------------------------------------------------------------
def controller_deleted_by_hand(folder: Path) -> TwoWay:
    """The controllers are stopped, and the broker that took /controller has a lower epoch than KRaft's."""
    cluster = at("hybrid", folder)
    cluster.kraft_epoch = cluster.highest_epoch = 40
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    cluster.owner = None
    cluster._claim()
    assert cluster.harms == ["/controller_epoch 7 is not above 40: leaders will stay -1"]
    cluster.harms.clear()
    return cluster


@pytest.mark.slow
def test_where_controller_was_deleted_by_hand_the_epoch_is_found_in_what_kraft_wrote(tmp_path: Path) -> None:
    """The broker that took it has too low an epoch: raised above the states', and claimed again."""
    cluster = controller_deleted_by_hand(tmp_path / "forward")
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    assert cluster.done.index("set /controller_epoch 40") < cluster.done.index("delete /controller")


@pytest.mark.slow
@pytest.mark.parametrize("migration", [-1, None])
@pytest.mark.parametrize("anew", [False, True])
def test_a_broker_whose_epoch_was_raised_under_it_claims_again_whatever_was_killed(
    tmp_path: Path, migration: int | None, *, anew: bool
) -> None:
    """Killed between the raise and the deletion: from then on ZooKeeper refuses what that controller writes."""
    cluster = controller_deleted_by_hand(tmp_path / "forward")
    cluster.migration = migration
    plan, folder, points = rollback_plan(cluster), tmp_path / "back", Labels()
    go_back(deepcopy(cluster), tmp_path / "count", points)
    folder.mkdir()
    with pytest.raises(Killed):
        run(cluster, plan, folder, KillAt(points.labels.index("after:set-znode:/controller_epoch") + 1))
    if anew:
        go_back(cluster, tmp_path / "anew")
    else:
        run(cluster, plan, folder)
    is_back(cluster)
    assert cluster.done.count("set /controller_epoch 40") == cluster.done.count("delete /controller") == 1


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["half of the first roll", "hybrid"])
def test_forward_over_a_rollback_that_is_half_done_is_not_planned(tmp_path: Path, entry: str) -> None:
    """The old quorum still lies there: started, it would wait for ever, or copy with brokers that it only remembers."""
    cluster = at(entry, tmp_path / "forward")
    plan = rollback_plan(cluster)
    last = next(number for number, step in enumerate(plan.steps) if step.kind == "set-controller-aside")
    (tmp_path / "back").mkdir()
    run(cluster, replace(plan, steps=plan.steps[:last]), tmp_path / "back")
    with pytest.raises(NothingToPlan, match="a rollback is half done") as caught:
        plan_for(cluster)
    assert "rollback plan" in caught.value.next_step
    assert isinstance(StartControllers().check(cluster.observe(frozenset(Need) - {Need.DIFF}, {})), Refused)
    go_back(cluster, tmp_path / "rest")
    forward(cluster, tmp_path / "again")
    assert cluster.finalized
    assert cluster.harms == []


# -- without a guard -------------------------------------------------------------------------------------------------
def ready(*_: object) -> Ready:
    """A guard that was switched off."""
    return Ready()


def harmed(cluster: TwoWay, folder: Path) -> list[str]:
    """What the rollback does to a cluster, whether or not it gets to its end."""
    with contextlib.suppress(MigrateError):
        go_back(cluster, folder)
    return cluster.harms


@pytest.mark.slow
def test_without_the_twenty_answers_a_broker_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It believes in the dead KRaft controller and waits 300 s for its leave."""
    for name, hangs in (("held", False), ("free", True)):
        cluster = at("hybrid", tmp_path / "forward")
        cluster.believes_kraft = dict.fromkeys((0, 1, 2), 20)
        if hangs:
            monkeypatch.setattr("migrate.steps.rollback.gates.controller_named", ready)
        assert any("hangs 300 s" in harm for harm in harmed(cluster, tmp_path / name)) is hangs


@pytest.mark.slow
def test_without_the_epoch_rule_leaders_stay_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-20488."""
    cluster = at("hybrid", tmp_path / "forward")
    cluster.kraft_epoch = cluster.highest_epoch = 40
    monkeypatch.setattr("migrate.run.effects.JournaledEffects.set_znode", lambda *_: None)
    assert any("leaders will stay -1" in harm for harm in harmed(cluster, tmp_path / "back"))


@pytest.mark.slow
def test_without_the_raised_versions_followers_are_not_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic made in dual write: brokers know a higher partition epoch than its state's version."""
    cluster = at("hybrid", tmp_path / "forward")
    monkeypatch.setattr("migrate.run.effects.JournaledEffects.raise_versions", lambda *_: None)
    monkeypatch.setattr("migrate.steps.rollback.control.RaiseStateVersions.verify", lambda *_: Verified(()))
    assert any("followers ignore ZooKeeper's controller" in harm for harm in harmed(cluster, tmp_path / "back"))


def given_back_with_low_versions(folder: Path) -> TwoWay:
    """By an older procedure: a broker leads, its peers do not hear it, no broker was restarted yet."""
    cluster = at("hybrid", folder)
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    cluster.epoch = cluster.kraft_epoch + 10
    cluster.delete("/controller", cluster.owner_version)
    assert cluster.migration is not None
    cluster.delete("/migration", cluster.migration_version)
    assert cluster.harms[0].startswith("followers ignore ZooKeeper's controller")
    cluster.harms.clear()
    return cluster


@pytest.mark.slow
def test_where_control_was_given_back_too_early_the_versions_are_raised_with_a_new_election(tmp_path: Path) -> None:
    """In one transaction: killed before it some are behind still, killed after it the next owner has read them."""
    cluster = given_back_with_low_versions(tmp_path / "forward")
    owner, epoch = cluster.owner_version, cluster.epoch
    plan = rollback_plan(cluster)
    assert [step.kind for step in plan.steps][:3] == ["keep-zookeeper", "raise-state-versions", "hand-back-control"]
    go_back(cluster, tmp_path / "back")
    assert (cluster.owner_version > owner, cluster.epoch > epoch) == (True, True)
    assert f"raise ['{MADE_IN_DUAL_WRITE}']" in cluster.done
    assert "raise-state-versions" not in [step.kind for step in rollback_plan(cluster).steps]


@pytest.mark.slow
def test_versions_that_cannot_be_told_hold_the_rollback(tmp_path: Path) -> None:
    """A state that may not be read, say: nothing is given back."""
    cluster = at("hybrid", tmp_path / "forward")
    observe = TwoWay.observe
    denied = Unknown("a state is denied")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TwoWay, "observe", lambda *look: replace(observe(*look), states_behind=denied))
        with pytest.raises(PlanStopped, match="behind what brokers know is not known"):
            go_back(cluster, tmp_path / "back")
    assert "delete /controller" not in cluster.done


def test_without_the_wait_for_the_session_a_broker_dies_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NodeExists on its own registration."""
    cluster = at("hybrid", tmp_path / "forward")
    monkeypatch.setattr("migrate.steps.rollback.gates.session_ended", ready)
    cluster.kill(1)
    cluster.lingering[1] = 99
    assert any("NodeExists" in harm for harm in harmed(cluster, tmp_path / "back"))


def test_controllers_that_run_keep_their_znode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard it is deleted under them, and they claim it again."""
    plan = rollback_plan(at("hybrid", tmp_path / "forward"))
    hand_back = tuple(step for step in plan.steps if step.kind == "hand-back-control")
    for name, off in (("kept", False), ("deleted", True)):
        cluster = at("hybrid", tmp_path / "forward")
        if off:
            monkeypatch.setattr("migrate.steps.rollback.gates.controllers_gone", ready)
            monkeypatch.setattr("migrate.steps.rollback.gates.stopped_equal", ready)
            monkeypatch.setattr("migrate.run.effects.JournaledEffects._hold_down", lambda *_: None)
        (tmp_path / name).mkdir()
        with contextlib.suppress(MigrateError):
            run(cluster, replace(plan, steps=hand_back), tmp_path / name)
        assert ("delete /controller" in cluster.done) is off
        assert bool(cluster.harms) is off


@pytest.mark.slow
def test_a_disk_of_version_1_that_is_not_mended_keeps_its_broker_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-20762: the roll stops there, and touches no further broker."""
    cluster = at("hybrid", tmp_path / "forward")
    raw = b"version=1\nnode.id=0\ncluster.id=REh233dFSJKhrlnVHSnalQ\ndirectory.id=JsnDDNVyTL289kYk6sPzig\n"
    cluster.files[0, "/data/b0/d1/meta.properties"] = raw
    monkeypatch.setattr("migrate.steps.rollback.brokers.as_version_0", lambda _: None)
    assert any("version 1" in harm for harm in harmed(cluster, tmp_path / "back"))
    assert "stop 1" not in cluster.done[-3:]


@pytest.mark.slow
def test_the_second_rollback_restores_what_the_operator_changed_in_between(tmp_path: Path) -> None:
    """Copies of both attempts lie beside the file: each rollback finds its own."""
    cluster = at("half of the second roll", tmp_path / "forward")
    go_back(cluster, tmp_path / "back")
    path = "/conf/b1.properties"
    cluster.files[1, path] += b"# tuned\nnum.io.threads=9\n"
    cluster.stop(NodeId(1), 1.0)
    cluster.start(NodeId(1))
    tuned = cluster.files[1, path]
    forward(cluster, tmp_path / "again", "kraft-mode/assign-2")
    assert cluster.registered == {0: "kraft", 1: "kraft", 2: "migration"}
    go_back(cluster, tmp_path / "back again")
    assert cluster.files[1, path] == tuned
    assert cluster.harms == []
    assert cluster.migration is None
