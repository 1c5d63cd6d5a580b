"""One unanswered request stops no run: what is unseen for a moment is waited for, for good it is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import NoProgress, PlanStopped
from migrate.model.history import concluded
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import PartitionHealth, Stopped
from migrate.model.world import Need, World
from migrate.run import journal as journals
from migrate.steps.base import NARROW
from tests.run.gated import Gated
from tests.run.test_engine import plan_for, run
from tests.steps.looks import service
from tests.testing import worlds
from tests.testing.killing import memory_folder
from tests.testing.simulated import SimulatedCluster
from tests.testing.worlds import live

PARTS = ["zookeeper", "kraft", "disks", "live", "configs", "services"]


def hidden(world: World, part: str, why: str) -> World:
    """The world without one part."""
    return replace(world, **{part: Unknown(why)})  # type: ignore[arg-type]


@cache
def undisturbed() -> SimulatedCluster:
    """A cluster at the end of a run that saw everything."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    with memory_folder() as folder:
        run(cluster, plan_for(cluster), folder)
    return cluster


@pytest.mark.slow
def test_a_wait_for_a_broker_that_is_down_says_so_as_status_does(tmp_path: Path) -> None:
    """In the journal, for the board; once it runs again nothing says it any more."""
    cluster, looks = SimulatedCluster.in_zookeeper_mode(), iter(range(10_000))
    plan, journal = plan_for(cluster), tmp_path / "journal.jsonl"

    def bend(world: World) -> World:
        proven = "migration-mode/0" in concluded(journals.read(journal).events)
        down = proven and "stop 1" not in cluster.done and next(looks) < 9
        return service(1, Stopped())(hidden_broker(world)) if down else world

    cluster.bend = bend
    run(cluster, plan, tmp_path)
    waits = [event.data for event in journals.read(journal).events if event.name == "waiting"]
    told = [wait for wait in waits if wait["step"] == "migration-mode/1"]
    assert told[0]["problem"].startswith("1 PROBLEM: broker 1 is stopped on b1")
    assert "problem" not in waits[-1]


def hidden_broker(world: World) -> World:
    """Broker 1 answers nobody."""
    if isinstance(world.live, Unknown):
        return world
    return worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): Unknown("refused")})


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_world_may_be_unseen_now_and_then(part: str, tmp_path: Path) -> None:
    """At every seventh look, wherever it falls: in a check, behind an act, in a proof.  The end is as without it."""
    reference = undisturbed()
    cluster, looks = SimulatedCluster.in_zookeeper_mode(), iter(range(10_000))
    plan = plan_for(cluster)
    cluster.bend = lambda world: hidden(world, part, "timed out") if next(looks) % 7 == 3 else world
    run(cluster, plan, tmp_path)
    assert cluster.done == reference.done
    assert cluster.files == reference.files


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_what_stays_unseen_is_refused_by_name_with_nothing_done(part: str, tmp_path: Path) -> None:
    """From the first roll on: half a minute, then the reason that was given for it."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)

    def hide(world: World) -> World:
        if "start 0 migration" not in cluster.done:
            return world
        return hidden(world, part, "no route to host")

    cluster.bend = hide
    with pytest.raises((PlanStopped, NoProgress)) as caught:
        run(cluster, plan, tmp_path)
    assert "no route to host" in str(caught.value) or "cannot be" in str(caught.value)
    assert "stop 1" not in cluster.done
    waits = [event for event in journals.read(tmp_path / "journal.jsonl").events if event.name == "waiting"]
    assert any("cannot be" in event.data["what"] or "no route" in event.data["what"] for event in waits)
    cluster.bend = lambda world: world
    run(cluster, plan, tmp_path)
    assert cluster.finalized


@pytest.mark.slow
def test_one_broker_that_does_not_answer_once_is_waited_for_before_the_next_stop(tmp_path: Path) -> None:
    """A blind spot of a check used to refuse what the gate behind it would have waited for."""
    cluster, silent = SimulatedCluster.in_zookeeper_mode(), iter(range(10_000))
    plan = plan_for(cluster)

    def once(world: World) -> World:
        if cluster.registered.get(0) != "migration" or next(silent) not in range(1, 5):
            return world
        return worlds.with_live(world, metadata={**live(world).metadata, NodeId(2): Unknown("timed out")})

    cluster.bend = once
    run(cluster, plan, tmp_path)
    assert cluster.finalized


def never_copied(cluster: SimulatedCluster, world: World) -> World:
    """The controllers wait for brokers, however many have come."""
    if isinstance(world.kraft, Unknown) or cluster.registered.get(2) != "migration":
        return world
    return worlds.with_kraft(world, migration_state=ZkMigrationState.PRE_MIGRATION)


def never_well(cluster: SimulatedCluster, world: World) -> World:
    """A partition stays without broker 0 once that was restarted."""
    if cluster.registered.get(0) != "migration" or isinstance(world.live, Unknown):
        return world
    answer, lacking = live(world).metadata[NodeId(1)], PartitionHealth("orders", 0, 1, (1, 2), (0, 1, 2))
    assert not isinstance(answer, Unknown)
    seen = {**live(world).metadata, NodeId(1): replace(answer, unhealthy=(lacking,))}
    return worlds.with_live(world, metadata=seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bend", "at", "patience"), [(never_copied, "copy/", 600.0), (never_well, "migration-mode/0", 60.0)]
)
def test_each_stage_has_a_patience_of_its_own(
    bend: Callable[[SimulatedCluster, World], World], at: str, patience: float, tmp_path: Path
) -> None:
    """A copy may stand still for ten minutes; a broker of the roll before it is given up after a minute."""
    run = Gated(tmp_path, replace(worlds.playbook(), stage_patience={Stage.COPY: 600.0}), target=Stage.COPY)
    run.cluster.bend = partial(bend, run.cluster)
    with pytest.raises(NoProgress) as caught:
        run.session()
    assert caught.value.where.startswith(f"step {at}")
    last = run.named("waiting")[-1]
    assert patience < run.events[-1].time - last.time < patience + 2.0


def churned(world: World, look: int, *more: str) -> World:
    """ZooKeeper while clients create and delete topics: another one is under deletion in each look."""
    zookeeper = world.zookeeper
    if isinstance(zookeeper, Unknown):
        return world
    deletions = (f"churn-{look}", *more)
    return worlds.with_zk(world, pending=replace(zookeeper.pending, deletions=deletions))


@pytest.mark.slow
def test_clients_that_create_and_delete_topics_all_the_time_do_not_stop_a_run(tmp_path: Path) -> None:
    """A deletion is in progress in every look of the run, and each time of another topic."""
    reference = undisturbed()
    cluster, looks = SimulatedCluster.in_zookeeper_mode(), iter(range(10_000))
    plan = plan_for(cluster)
    cluster.bend = lambda world: churned(world, next(looks))
    run(cluster, plan, tmp_path)
    assert cluster.done == reference.done


@pytest.mark.slow
def test_a_deletion_that_never_ends_stops_a_run_by_its_name_beside_all_that_churn(tmp_path: Path) -> None:
    """No broker was touched, and the topics that come and go are not named."""
    cluster, looks = SimulatedCluster.in_zookeeper_mode(), iter(range(10_000))
    plan = plan_for(cluster)
    cluster.bend = lambda world: churned(world, next(looks), "orphan")
    with pytest.raises(NoProgress, match="/admin/delete_topics/orphan") as caught:
        run(cluster, plan, tmp_path)
    assert "churn-" not in str(caught.value)
    assert not [entry for entry in cluster.done if entry.startswith(("stop 0", "stop 1", "stop 2"))]


@dataclass(slots=True)
class Counted(Gated):
    """A run whose looks are kept, with the number of steps that were concluded by then."""

    looks: list[tuple[int, float, frozenset[Need]]] = field(default_factory=list)

    def observe(self, needs: frozenset[Need], facts: Any) -> World:
        """Look, and keep what was asked for."""
        concluded = sum(event.name == "conclude" for event in self.said)
        self.looks.append((concluded, self.clock.time, needs))
        return Gated.observe(self, needs, facts)


def slowly(run: Counted, seconds: float) -> Callable[[World], World]:
    """Partitions lack broker N for so long after each of its starts."""
    began: dict[str, float] = {}

    def bend(world: World) -> World:
        for entry in run.cluster.done:
            if entry.startswith("start ") and entry.endswith(("migration", "kraft")):
                began.setdefault(entry, run.clock.time)
        lately = [entry for entry, when in began.items() if run.clock.time - when < seconds]
        if not lately or isinstance(world.live, Unknown):
            return world
        answer, lacking = live(world).metadata[NodeId(1)], PartitionHealth("orders", 0, 1, (1, 2), (0, 1, 2))
        assert not isinstance(answer, Unknown)
        seen = {**live(world).metadata, NodeId(1): replace(answer, unhealthy=(lacking,))}
        return worlds.with_live(world, metadata=seen)

    return bend


@pytest.mark.slow
def test_a_wait_reads_no_disk_while_a_narrow_look_says_no(tmp_path: Path) -> None:
    """ISRs that take nine seconds to fill after each restart: each step reads the disks four times at most."""
    run = Counted(tmp_path, worlds.playbook(), target=Stage.KRAFT_MODE)
    run.cluster.bend = slowly(run, 9.0)
    run.session()
    full = Counter(step for step, _, needs in run.looks if Need.DISKS in needs)
    before_copy = NARROW | {Need.ZOOKEEPER}  # of the last broker of the first roll
    looks = [(step, when) for step, when, needs in run.looks if needs <= NARROW or needs == before_copy]
    narrow = Counter(step for step, _ in looks)
    waited = [step for step, number in narrow.items() if number >= 9]
    assert len(waited) == 2 * len(run.cluster.registered)
    assert max(full.values()) <= 4
    for step in waited:
        last = max(when for one, when in looks if one == step)
        first = min(when for one, when in looks if one == step)
        assert not [
            when for one, when, needs in run.looks if one == step and Need.DISKS in needs and first < when < last
        ]


@pytest.mark.slow
def test_a_wait_before_a_restart_into_kraft_reads_no_disk_while_a_narrow_look_says_no(tmp_path: Path) -> None:
    """A minute without a full ISR before a stop: one look of four at most reads the disks."""
    run, began = Counted(tmp_path, worlds.playbook(), target=Stage.KRAFT_MODE), list[float]()

    def bend(world: World) -> World:
        proven = [event for event in run.said if event.name == "conclude" and event.data["step"] == "kraft-mode/0"]
        if proven and not began and Need.DISKS in run.looks[-1][2]:
            began.append(run.clock.time)  # behind the samples of health
        if not began or run.clock.time - began[0] > 60.0 or isinstance(world.live, Unknown):
            return world
        answer, lacking = live(world).metadata[NodeId(1)], PartitionHealth("orders", 0, 1, (1, 2), (0, 1, 2))
        assert not isinstance(answer, Unknown)
        seen = {**live(world).metadata, NodeId(1): replace(answer, unhealthy=(lacking,))}
        return worlds.with_live(world, metadata=seen)

    run.cluster.bend = bend
    run.session()
    looks = [needs for _, when, needs in run.looks if began[0] <= when <= began[0] + 60.0]
    full = sum(Need.DISKS in needs for needs in looks)
    assert full * 4 <= len(looks)
