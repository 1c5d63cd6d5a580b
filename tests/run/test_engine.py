"""The engine on a cluster in memory: whole, killed at every effect, stopped by every kind of surprise."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import LockLost, NoProgress, PlanIsStale, PlanStopped, PredictionFailed
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.history import Event, concluded
from migrate.model.outcome import NotYet, Unknown
from migrate.model.plan import Plan
from migrate.model.ports import Lock
from migrate.model.stage import MIGRATION, Stage
from migrate.model.views import PartitionHealth
from migrate.model.world import Need, World
from migrate.plan.build import build
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery, reading, since_last_roll
from migrate.run.journal import Journal
from migrate.run.waits import UNSEEN_SECONDS, Wait
from tests.testing import worlds
from tests.testing.open_gate import OpenGate
from tests.testing.simulated import AsAsked, FakeClock, KillAt, Killed, SimulatedCluster
from tests.testing.worlds import live, zk

PLANNED_ON = frozenset(Need) - {Need.DIFF, Need.SPARK_LEDGER}


class NoLock:
    """A lock that is always ours."""

    def still_ours(self) -> None:
        """Nothing."""

    def release_zookeeper(self) -> None:
        """Nothing."""

    def release(self) -> None:
        """Nothing."""


def plan_for(cluster: SimulatedCluster, target: Stage = Stage.CLEANUP) -> Plan:
    """The plan from the stage of the cluster."""
    return build(cluster.observe(PLANNED_ON, {}), worlds.playbook(), target=target, only=False, created=1.0)


def run(
    cluster: SimulatedCluster, plan: Plan, folder: Path, kill: KillAt | None = None, lock: Lock | None = None
) -> tuple[Event, ...]:
    """Carry the plan out, from wherever its journal stands; the journal's events."""
    held = lock or NoLock()
    path = folder / "journal.jsonl"
    clock = FakeClock()
    journal = Journal.resume(path) if path.exists() else Journal.begin(path, 0.0, {"plan": plan.fingerprint})
    hands = Hands(
        cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing,
    )  # fmt: skip
    crash: Any = kill or KillAt()
    effects = JournaledEffects(hands, journal, held, clock, folder, crash)
    machinery = Machinery(AsAsked(cluster), effects, journal, held, clock, lambda _: 60.0, lambda _: None, OpenGate())
    try:
        Engine(plan, machinery).run()
    finally:
        journal.close()
    return journal.events


@pytest.mark.slow
def test_a_cluster_goes_through_every_stage(tmp_path: Path) -> None:
    """From ZooKeeper mode to finalized, in the order of the stages, each step verified."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    events = run(cluster, plan, tmp_path)
    assert cluster.finalized
    assert cluster.registered == {0: "kraft", 1: "kraft", 2: "kraft"}
    assert concluded(events) == {step.id for step in plan.steps}
    assert [event.data["stage"] for event in events if event.name == "stage"] == [stage.label for stage in MIGRATION]
    assert events[-1].name == "end"
    rolls = [entry for entry in cluster.done if entry.startswith(("stop", "assign"))]
    assert rolls == [
        *(f"stop {node}" for node in (0, 1, 2, 0, 1)),
        "assign 2",
        "stop 2",
        "stop 3001",
        "stop 3002",
        "stop 3000",
    ]


@pytest.mark.slow
def test_a_second_run_of_a_finished_plan_changes_nothing(tmp_path: Path) -> None:
    """Every step is concluded."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    run(cluster, plan, tmp_path)
    before = list(cluster.done)
    run(cluster, plan, tmp_path)
    assert cluster.done == before


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: hundreds of runs fsync each of their lines."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


class Labels(KillAt):
    """Kills never, and keeps the points' labels."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    def reach(self, label: str) -> None:
        """Keep it."""
        self.labels.append(label)


def first_points(folder: Path) -> dict[str, int]:
    """Kind of crash point -> the first of that kind in a whole run: around each kind of effect, and before a proof."""
    points, cluster = Labels(), SimulatedCluster.in_zookeeper_mode()
    run(cluster, plan_for(cluster), folder, points)
    found: dict[str, int] = {}
    for number, label in enumerate(points.labels, 1):
        found.setdefault(label.rpartition(":")[0], number)
    return found


@pytest.mark.slow
def test_killed_before_or_after_any_effect_the_run_ends_the_same(memory_path: Path) -> None:
    """Each effect happens once, whether the kill came before it, or after it and before it was written down.

    One point of each kind, through the engine's own handling of what ends it; `test_killed_anywhere` walks all points.
    """
    reference = SimulatedCluster.in_zookeeper_mode()
    (memory_path / "reference").mkdir()
    run(reference, plan_for(reference), memory_path / "reference")
    (memory_path / "count").mkdir()
    points = first_points(memory_path / "count")
    assert {"before:stop", "after:stop", "before:write-config", "after:release-lock", "proof"} <= points.keys()
    for kind, point in points.items():
        folder = memory_path / str(point)
        folder.mkdir()
        cluster = SimulatedCluster.in_zookeeper_mode()
        plan = plan_for(cluster)
        with pytest.raises(Killed):
            run(cluster, plan, folder, KillAt(point))
        run(cluster, plan, folder)
        assert cluster.done == reference.done, f"killed at {kind}, point {point}"
        assert cluster.files == reference.files
        assert cluster.finalized


@pytest.mark.slow
def test_killed_twice_the_run_ends_the_same(memory_path: Path) -> None:
    """The second kill falls into the recovery from the first."""
    reference = SimulatedCluster.in_zookeeper_mode()
    (memory_path / "reference").mkdir()
    run(reference, plan_for(reference), memory_path / "reference")
    for point in (3, 17, 31, 45):
        for second in (1, 2, 3):
            folder = memory_path / f"{point}-{second}"
            folder.mkdir()
            cluster = SimulatedCluster.in_zookeeper_mode()
            plan = plan_for(cluster)
            for kill in (KillAt(point), KillAt(second)):
                with pytest.raises(Killed):
                    run(cluster, plan, folder, kill)
            run(cluster, plan, folder)
            assert cluster.done == reference.done


def stopped_at(cluster: SimulatedCluster, folder: Path, expect: type[Exception] = PlanStopped) -> str:
    """Run to where it stops; the reason."""
    plan = plan_for(cluster)
    with pytest.raises(expect) as caught:
        run(cluster, plan, folder)
    return str(caught.value)


def when(condition: Callable[[SimulatedCluster], bool], bend: Callable[[World], World]) -> SimulatedCluster:
    """A cluster whose world is bent as soon as a condition holds."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    cluster.bend = lambda world: bend(world) if condition(cluster) else world
    return cluster


@pytest.mark.slow
def test_a_topic_id_lost_after_the_second_broker_stops_the_run_before_the_third(tmp_path: Path) -> None:
    """The last broker's registration starts the copy by itself: blockers are checked again before it."""
    cluster = when(
        lambda cluster: set(cluster.registered) == {0, 1},
        lambda world: replace(world, zookeeper=replace(zk(world), topics_without_id=("orders",))),
    )
    reason = stopped_at(cluster, tmp_path)
    assert "migration-mode/2" in reason
    assert "orders" in reason
    assert "stop 2" not in cluster.done
    assert not cluster.copied


@pytest.mark.slow
def test_a_disk_that_dies_stops_the_roll_before_the_next_broker(tmp_path: Path) -> None:
    """One disk is one broker: no second one is touched."""
    cluster = when(
        lambda cluster: set(cluster.registered) == {0},
        lambda world: worlds.with_directory(world, 1, 2, lambda entry: replace(entry, problem="input/output error")),
    )
    assert "migration-mode/1" in stopped_at(cluster, tmp_path)
    assert "stop 1" not in cluster.done


@pytest.mark.slow
def test_a_difference_stops_the_second_roll(tmp_path: Path) -> None:
    """What no rule excuses is no detail."""
    wrong = Difference("topic-config", "orders", "retention.ms", DifferenceClass.DIFFERS, "1", "2")
    cluster = when(
        lambda cluster: cluster.copied,
        lambda world: replace(world, diff=DiffReport(500, 0, {"topic-config": {"DIFFERS": 1}}, (wrong,))),
    )
    reason = stopped_at(cluster, tmp_path)
    assert "retention.ms" in reason
    assert cluster.registered == dict.fromkeys((0, 1, 2), "migration")


@pytest.mark.slow
def test_without_spark_the_second_roll_does_not_begin(tmp_path: Path) -> None:
    """Unknown is never read as equal."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    observe = cluster.observe

    class Blind:
        def observe(self, needs: frozenset[Need], facts: Any) -> World:
            return replace(observe(needs - {Need.DIFF}, facts), diff=Unknown("no Spark here"))

    plan = plan_for(cluster)
    folder = tmp_path
    journal = Journal.begin(folder / "journal.jsonl", 0.0, {})
    clock, crash = FakeClock(), KillAt()
    hands = Hands(cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing)
    effects = JournaledEffects(hands, journal, NoLock(), clock, folder, crash)  # type: ignore[arg-type]
    with pytest.raises(PlanStopped, match="no Spark here"):
        Engine(
            plan, Machinery(Blind(), effects, journal, NoLock(), clock, lambda _: 60.0, lambda _: None, OpenGate())
        ).run()
    assert "kraft" not in cluster.registered.values()
    journal.close()


@pytest.mark.slow
def test_a_replica_that_stays_migrating_holds_the_roll_and_never_finalizes(tmp_path: Path) -> None:
    """The promise: no broker counts as migrated while one of its replicas has no known directory."""
    cluster = SimulatedCluster.in_zookeeper_mode()

    def forget(world: World) -> World:
        cluster.assigned.discard(0)
        return world

    cluster.bend = forget
    reason = stopped_at(cluster, tmp_path, NoProgress)
    assert "MIGRATING" in reason
    assert cluster.registered == {0: "kraft", 1: "migration", 2: "migration"}
    assert not cluster.finalized


@pytest.mark.slow
def test_under_replicated_partitions_are_waited_for_and_named(tmp_path: Path) -> None:
    """No second broker is stopped while the first one's replicas are behind."""
    sick = PartitionHealth("orders", 3, 1, (1,), (0, 1))
    cluster = when(
        lambda cluster: set(cluster.registered) == {0},
        lambda world: replace(
            world,
            live=replace(
                live(world),
                metadata={
                    node: answer if isinstance(answer, Unknown) else replace(answer, unhealthy=(sick,))
                    for node, answer in live(world).metadata.items()
                },
            ),
        ),
    )
    reason = stopped_at(cluster, tmp_path, NoProgress)
    assert "orders-3" in reason
    assert "stop 1" not in cluster.done


def test_a_file_changed_by_another_hand_makes_the_plan_stale(tmp_path: Path) -> None:
    """The refusal says which file."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    cluster.files[1, "/conf/b1.properties"] += b"num.io.threads=9\n"
    with pytest.raises(PlanIsStale, match="of broker 1 on "):
        run(cluster, plan, tmp_path)
    assert "stop 1" not in cluster.done


@pytest.mark.slow
def test_an_input_that_is_not_the_planned_one_makes_the_plan_stale(tmp_path: Path) -> None:
    """Each step's own inputs are asked before it acts, whatever its files are."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    for step in [step for step in plan.steps if step.binds and step.actions][:3]:
        for key in step.binds:
            bent = replace(step, binds={**step.binds, key: "another"})
            changed = replace(plan, steps=tuple(bent if entry is step else entry for entry in plan.steps))
            folder = tmp_path / f"{step.id}-{key}".replace("/", "-")
            folder.mkdir()
            name, _, about = key.partition(":")
            says = f"r {about} on " if name == "config" else key  # a file is named by its node and host
            with pytest.raises(PlanIsStale, match=re.escape(says)):
                run(deepcopy(cluster), changed, folder)
            assert step.id not in journals.begun(journals.read(folder / "journal.jsonl").events)


def test_without_the_lock_no_step_is_so_much_as_intended(tmp_path: Path) -> None:
    """Another run acts: what this one would note as begun it would have to finish."""

    class Gone(NoLock):
        def still_ours(self) -> None:
            raise LockLost("the lock is lost", where="/lock", why="another run")

    cluster = SimulatedCluster.in_zookeeper_mode()
    with pytest.raises(LockLost):
        run(cluster, plan_for(cluster), tmp_path, lock=Gone())
    events = journals.read(tmp_path / "journal.jsonl").events
    assert "intend" not in {event.name for event in events}
    assert (events[-1].name, events[-1].data["code"]) == ("stop", LockLost.id)
    assert cluster.done == []


@pytest.mark.slow
def test_leaders_and_isr_order_do_not_make_a_plan_stale(tmp_path: Path) -> None:
    """What moves by itself decides nothing."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    cluster.bend = lambda world: worlds.with_zk(
        world,
        partitions=replace(
            zk(world).partitions, leader_epoch=[epoch + 1 for epoch in zk(world).partitions.leader_epoch]
        ),
    )
    run(cluster, plan, tmp_path)
    assert cluster.finalized


@pytest.mark.slow
def test_what_was_not_predicted_fails_the_run(tmp_path: Path) -> None:
    """A broker that came up registered in another way than the step said."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster, Stage.PREPARE)
    step = next(step for step in plan.steps if step.id == "prepare/render-controller-3000")
    wrong = replace(step, expects={**step.expects, "mode:3000": "finalized"})
    plan = replace(plan, steps=tuple(wrong if entry is step else entry for entry in plan.steps))
    with pytest.raises(PredictionFailed, match="mode:3000"):
        run(cluster, plan, tmp_path)


@pytest.mark.slow
def test_an_early_finalize_by_another_hand_stops_the_run(tmp_path: Path) -> None:
    """POST_MIGRATION before its time: no ZooKeeper-mode broker is restarted, and the way forward is said."""
    cluster = SimulatedCluster.in_zookeeper_mode()

    def other_hand(world: World) -> World:
        if cluster.registered.get(0) == "kraft":
            cluster.finalized = True
        return world

    cluster.bend = other_hand
    with pytest.raises((PlanStopped, PredictionFailed)) as caught:
        run(cluster, plan_for(cluster), tmp_path)
    assert "POST_MIGRATION" in str(caught.value)
    assert cluster.registered[2] == "migration"


@pytest.mark.slow
def test_the_plan_of_a_half_rolled_cluster_begins_at_the_next_broker(tmp_path: Path) -> None:
    """Where the cluster stands is asked from the cluster, not remembered."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    last = next(number for number, step in enumerate(plan.steps) if step.id == "migration-mode/1")
    run(cluster, replace(plan, steps=plan.steps[:last]), tmp_path)
    again = plan_for(cluster, Stage.COPY)
    assert [step.id for step in again.steps if step.stage > Stage.ASSESS] == [
        "migration-mode/1",
        "migration-mode/2",
        "copy/copy",
    ]


DAY = 86_400.0


@dataclass(slots=True)
class Jumping(FakeClock):
    """Its wall time jumps by whole days at every look; what it counts by does not."""

    days: tuple[float, ...] = (400.0, -800.0, 3.0)
    looks: int = 0
    host: str = "boot"

    def now(self) -> float:
        """Somebody sets the clock all the time."""
        self.looks += 1
        return self.time + DAY * self.days[self.looks % len(self.days)]

    def boot(self) -> str:
        """Until the host is restarted."""
        return self.host


def ended(clock: FakeClock, stage: str = "kraft-mode") -> Event:
    """The conclusion of a step."""
    return Event(1, clock.now(), "conclude", {"step": f"{stage}/1", "stage": stage, **reading(clock)})


def began(clock: FakeClock) -> Event:
    """The first line of a session."""
    return Event(0, clock.now(), "session", {"pid": 1, **reading(clock)})


def test_a_soak_lasts_as_long_as_it_lasts() -> None:
    """By the clock that nobody sets, whatever the other one says."""
    clock = Jumping()
    events = [began(clock), ended(clock, "hybrid"), ended(clock)]
    clock.sleep(7)
    assert since_last_roll(events, clock) == pytest.approx(7)
    assert since_last_roll([*events, began(clock)], clock) == pytest.approx(7), "a run started again goes on counting"
    assert since_last_roll([], clock) is None


def test_after_a_reboot_it_begins_again() -> None:
    """Nobody knows for how long the host was down."""
    clock = Jumping()
    events = [began(clock), ended(clock)]
    clock.sleep(1000)
    clock.host = "another boot"
    assert since_last_roll(events, clock) == 0.0
    events.append(began(clock))
    clock.sleep(3)
    assert since_last_roll(events, clock) == pytest.approx(3)


def test_a_journal_of_another_run_proves_dual_write_from_its_own_first_session_on() -> None:
    """Who rolled the brokers is not in it."""
    clock = Jumping()
    events = [began(clock)]
    clock.sleep(5)
    events.append(began(clock))
    clock.sleep(5)
    assert since_last_roll(events, clock) == pytest.approx(10)


@pytest.mark.slow
def test_a_whole_migration_under_a_clock_that_jumps_ends_as_any(tmp_path: Path) -> None:
    """Days forward and back at every line of the journal."""
    cluster, clock = SimulatedCluster.in_zookeeper_mode(), Jumping()
    plan = plan_for(cluster)
    journal = Journal.begin(tmp_path / "journal.jsonl", clock.now(), {"plan": plan.fingerprint})
    hands = Hands(cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing)
    crash = KillAt()
    effects = JournaledEffects(hands, journal, NoLock(), clock, tmp_path, crash)  # type: ignore[arg-type]
    Engine(
        plan, Machinery(AsAsked(cluster), effects, journal, NoLock(), clock, lambda _: 60.0, lambda _: None, OpenGate())
    ).run()
    journal.close()
    assert cluster.finalized
    assert clock.time - 1_000_000 == pytest.approx(1.0, abs=0.5), "one second of soak was asked for, and waited"


def test_what_is_unseen_is_looked_for_again_and_then_an_answer() -> None:
    """Half a minute, whatever the wall clock does; a wait for something that comes is no part of it."""
    clock, lines = Jumping(), list[str]()
    wait = Wait("migration-mode/1", clock, 600.0, lambda name, **data: lines.append(f"{name}: {data['what']}"))
    began_at, looks = clock.time, 0
    while not wait.is_over(Unknown("broker 2 did not answer")):
        looks += 1
    assert clock.time - began_at == pytest.approx(UNSEEN_SECONDS)
    assert looks == UNSEEN_SECONDS
    assert lines == ["waiting: what cannot be seen: broker 2 did not answer"]
    other = Wait("migration-mode/1", clock, 600.0, lambda *_, **__: None)
    for number in range(100):
        assert not other.is_over(Unknown("now and then"))
        assert not other.is_over(NotYet("the ISR", "brokers", "nothing", progress=str(number)))


def test_the_systems_clock_counts_while_it_sleeps_and_names_its_boot() -> None:
    """CLOCK_BOOTTIME, and the kernel's own id."""
    clock = SystemClock()
    before = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.01
    assert clock.boot() == SystemClock().boot() != ""
