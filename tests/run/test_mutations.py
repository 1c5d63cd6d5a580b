"""Each guard is needed: with it a named scenario is refused, and with it switched off the cluster comes to harm.

A guard whose removal nothing notices is no guard.  Where two layers hold the same thing, both are switched off here,
and other tests hold each of them alone.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from migrate.checks.registry import CHECKS
from migrate.cli import given
from migrate.errors import (
    JournalDamaged,
    LockLost,
    MigrateError,
    NoProgress,
    PlanIsStale,
    PlanStopped,
    PlanUnreadable,
    RunLocked,
)
from migrate.model.difference import DiffReport
from migrate.model.history import Event, concluded
from migrate.model.ids import NodeId
from migrate.model.outcome import Ready, Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.report.plan_json import plan_to_json
from migrate.run import guards
from migrate.run import journal as journals
from migrate.run.effects import JournaledEffects
from migrate.run.locks import LockFile
from migrate.steps import controllers, gates
from tests.run.test_engine import plan_for, run
from tests.run.test_guards import KillLabel, killed
from tests.steps.looks import WRONG
from tests.testing.harms import Fragile
from tests.testing.simulated import KillAt, Killed, SimulatedCluster

Off = Callable[[pytest.MonkeyPatch], None]


def always(*_: object, **__: object) -> Ready:
    """A gate that is open whatever is seen."""
    return Ready()


@dataclass(frozen=True)
class Scenario:
    """A guard, the trouble that it is for, what it says, and the harm that comes without it."""

    guard: str
    trouble: Callable[[Fragile], None]
    refused: type[MigrateError]
    says: str
    harm: str
    switch_off: Off


def off(*codes: str, guard: str = "", gate: str = "", more: Off = lambda _: None) -> Off:
    """Switch checks, a guard and a gate off."""

    def switch(monkeypatch: pytest.MonkeyPatch) -> None:
        for code in codes:
            monkeypatch.delitem(CHECKS, code)
        if guard:
            monkeypatch.setitem(guards.GUARDS, guard, always)
        if gate:
            monkeypatch.setattr(gates, gate, always)
        more(monkeypatch)

    return switch


# -- the troubles ----------------------------------------------------------------------------------------------------
def remembered_copy(cluster: Fragile) -> None:
    """/migration holds the offset of an earlier attempt."""
    cluster.remembers = True


def lost_flag(cluster: Fragile) -> None:
    """After the copy somebody restarts a controller by hand, with another file; later the active one dies."""

    def restart(world: World) -> World:
        if half_way_to_kraft(cluster) and 3000 in cluster.running:
            del cluster.running[3000]  # a failover, as it may happen at any time
            cluster._elect()
        elif cluster.copied:
            cluster.modes[3001] = "finalized"
        return world

    cluster.bend = restart


def half_way_to_kraft(cluster: Fragile) -> bool:
    """Broker 0 is in KRaft mode, the others are not."""
    return cluster.registered.get(0) == "kraft" and not cluster.finalized


def other_address(cluster: Fragile) -> None:
    """When two brokers are in KRaft mode, a tunnel is switched."""
    cluster.elsewhere = lambda: cluster.registered.get(1) == "kraft" and 2 not in cluster.assigned


def config_management(cluster: Fragile) -> None:
    """It puts broker 0's file back, while broker 0 runs with ours."""
    old, looks = cluster.files[0, "/conf/b0.properties"], count()

    def put_back(world: World) -> World:
        if cluster.registered.get(0) == "migration" and next(looks):  # after its proof has looked narrowly and fully
            cluster.files[0, "/conf/b0.properties"] = old
        return world

    cluster.bend = put_back


def cleaned_controller(cluster: Fragile) -> None:
    """Somebody deletes /controller in hybrid."""
    cluster.cleaned = lambda: half_way_to_kraft(cluster) and 1 in cluster.running


def moving_replicas(cluster: Fragile) -> None:
    """Cruise Control wakes up between two brokers."""
    cluster.moving = lambda: half_way_to_kraft(cluster)


def one_replica_left(cluster: Fragile) -> None:
    """Broker 0 does not catch up with a partition whose other replica is on broker 1."""
    cluster.behind = lambda: cluster.registered.get(0) == "migration" and not cluster.copied


def formatted_disk(cluster: Fragile) -> None:
    """Broker 1 had a disk replaced, and somebody ran kafka-storage format on it."""
    cluster.formatted_disk = True


def unseen_process(cluster: Fragile) -> None:
    """The host of broker 1 does not tell whether its process runs."""

    def hide(world: World) -> World:
        assert not isinstance(world.services, Unknown)
        if cluster.registered.get(0) != "migration" or cluster.copied:
            return world
        return replace(world, services={**world.services, NodeId(1): Unknown("no route to its host")})

    cluster.bend = hide


def kdc_away(cluster: Fragile) -> None:
    """The KDC is gone when broker 1 has its turn, and for good."""

    def bend(world: World) -> World:
        cluster.unissued = cluster.registered.get(0) == "migration"
        away = ("no KDC of the realm answers",) if cluster.unissued else ()
        return replace(world, issuers=dict.fromkeys((node.id for node in world.inventory.nodes), away))

    cluster.bend = bend


def stores_differ(cluster: Fragile) -> None:
    """A topic's configuration is another one in KRaft."""
    wrong = DiffReport(500, 0, {"topic-config": {"DIFFERS": 1}}, (WRONG,))

    def bend(world: World) -> World:
        if not cluster.copied or cluster.finalized:
            return world
        if "kraft" in cluster.registered.values():
            cluster.harm("a broker believes metadata that differ from ZooKeeper's")
        return replace(world, diff=wrong)

    cluster.bend = bend


def no_other_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else stands against a stale /migration: the step's own look, and the prediction that it waits."""
    monkeypatch.setattr(controllers, "_no_other_copy", always)
    monkeypatch.setattr(guards, "check_expectations", lambda *_: None)


SCENARIOS = (
    Scenario(
        "stale-migration",
        remembered_copy,
        PlanStopped,
        "B-ZKN-01",
        "ZooKeeper was emptied",
        off("B-ZKN-01", more=no_other_layers),
    ),
    Scenario(
        "early-finalize",
        lost_flag,
        PlanStopped,
        "3001",
        "finalized while brokers",
        off("B-MIG-07", "B-QRM-03", guard="early-finalize"),
    ),
    Scenario(
        "same-cluster",
        other_address,
        PlanIsStale,
        "O" * 22,
        "in another cluster",
        off(guard="same-cluster"),
    ),
    Scenario(
        "files-as-left",
        config_management,
        PlanIsStale,
        "of broker 0 on",
        "broker 0 would start into another mode",
        off(guard="files-as-left"),
    ),
    Scenario(
        "controller-is-krafts",
        cleaned_controller,
        PlanStopped,
        "/controller is not",
        "two controllers write",
        off(guard="controller-is-krafts"),
    ),
    Scenario(
        "nothing-moves",
        moving_replicas,
        NoProgress,
        "reassignment",
        "while replicas move",
        off(guard="nothing-moves"),
    ),
    Scenario(
        "min-isr",
        one_replica_left,
        NoProgress,
        "orders-3",
        "lost its last replica",
        off(gate="replicas_full"),
    ),
    Scenario(
        "version-1-disk",
        formatted_disk,
        PlanStopped,
        "B-RBK-03",
        "the rollback is shut",
        off("B-RBK-03"),
    ),
    Scenario(
        "processes-seen",
        unseen_process,
        PlanStopped,
        "no route to its host",
        "was changed while its process runs",
        off(guard="processes-seen"),
    ),
    Scenario(
        "logins-issued",
        kdc_away,
        NoProgress,
        "no KDC of the realm answers",
        "broker 1 ended at its start",
        off(guard="logins-issued"),
    ),
    Scenario(
        "zero-difference",
        stores_differ,
        PlanStopped,
        "retention.ms",
        "differ from ZooKeeper's",
        off("B-MIG-06", gate="views_equal"),
    ),
)


def carried_out(scenario: Scenario, folder: Path) -> tuple[Fragile, Exception | None]:
    """The scenario, to wherever the run gets; what stopped it."""
    cluster = Fragile.in_zookeeper_mode()
    plan = plan_for(cluster)
    scenario.trouble(cluster)
    stopped: Exception | None = None
    try:
        run(cluster, plan, folder)
    except (MigrateError, AssertionError) as error:  # the second: what the cluster in memory does not put up with
        stopped = error
    return cluster, stopped


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.guard)
def test_a_guard_refuses_before_harm_is_done(scenario: Scenario, tmp_path: Path) -> None:
    """Named, with its reason, and nothing of it has happened."""
    cluster, stopped = carried_out(scenario, tmp_path)
    assert isinstance(stopped, scenario.refused), stopped
    assert scenario.says in str(stopped)
    assert cluster.harms == []
    assert not cluster.finalized
    assert journals.read(tmp_path / "journal.jsonl").events[-1].name == "stop"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.guard)
def test_without_its_guard_the_cluster_comes_to_harm(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same scenario, the guard switched off."""
    scenario.switch_off(monkeypatch)
    cluster, stopped = carried_out(scenario, tmp_path)
    assert [harm for harm in cluster.harms if scenario.harm in harm], (stopped, cluster.done)


# -- guards of the run itself ----------------------------------------------------------------------------------------
@dataclass
class Token:
    """A lock of which the last who took it is the holder."""

    holder: list[str]
    name: str

    def still_ours(self) -> None:
        """Only for the last."""
        if self.holder[-1] != self.name:
            raise LockLost(f"{self.holder[-1]} holds it")

    def release_zookeeper(self) -> None:
        """It stays."""

    def release(self) -> None:
        """It stays."""


class Meanwhile(KillAt):
    """At one point the process sleeps, and something happens."""

    def __init__(self, label: str, happens: Callable[[], None]) -> None:
        super().__init__()
        self.label, self.happens = label, happens

    def reach(self, label: str) -> None:
        """Let it happen once."""
        if label == self.label:
            self.label = ""
            self.happens()


def paused_while_another_acts(folder: Path, take: Callable[[str], Any]) -> Fragile:
    """A run sleeps in front of stopping broker 1; another rolls it, and is killed with broker 2 stopped."""
    cluster = Fragile.in_zookeeper_mode()
    plan = plan_for(cluster)
    for name in ("first", "second"):
        (folder / name).mkdir()

    def other() -> None:
        with pytest.raises(Killed):
            run(cluster, plan_for(cluster), folder / "second", KillLabel("after:stop:2"), take("second"))

    lock = take("first")
    run(cluster, plan, folder / "first", Meanwhile("before:stop:1", other), lock)
    return cluster


def tokens() -> Callable[[str], Token]:
    """A lock that the next one takes away, as after the first one's session."""
    holder: list[str] = []

    def take(name: str) -> Token:
        holder.append(name)
        return Token(holder, name)

    return take


@pytest.mark.slow
def test_a_run_that_slept_past_its_lock_acts_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard `lock-again`: without it two brokers are down at once."""
    with pytest.raises(LockLost, match="second holds it"):
        paused_while_another_acts(tmp_path, tokens())
    monkeypatch.setattr(JournaledEffects, "_ours_at_the_last_moment", lambda _: None)
    (tmp_path / "again").mkdir()
    with pytest.raises(AssertionError, match="more than one broker is down"):
        paused_while_another_acts(tmp_path / "again", tokens())


@pytest.mark.slow
def test_a_second_orchestrator_on_this_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard `one-run`: without it two brokers are down at once."""

    def take(_: str) -> Token:
        LockFile(tmp_path / "lock")
        return Token(["x"], "x")

    with pytest.raises(RunLocked):
        paused_while_another_acts(tmp_path, take)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    (tmp_path / "again").mkdir()
    with pytest.raises(AssertionError, match="more than one broker is down"):
        paused_while_another_acts(tmp_path / "again", take)


@pytest.mark.slow
def test_an_edited_plan_skips_nothing(tmp_path: Path) -> None:
    """Guard `fingerprint`: without it the proof of hybrid is left out."""
    cluster = Fragile.in_zookeeper_mode()
    plan = plan_for(cluster)
    edited = replace(plan, steps=tuple(step for step in plan.steps if step.stage is not Stage.HYBRID))
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(edited).replace(edited.fingerprint, plan.fingerprint))
    with pytest.raises(PlanUnreadable, match="fingerprint"):
        given.load_plan(path)
    path.write_text(plan_to_json(edited))
    loaded: Plan = given.load_plan(path)
    events = run(cluster, loaded, tmp_path)
    assert cluster.finalized
    assert "hybrid/hybrid" not in concluded(events)


def flipped(folder: Path) -> tuple[SimulatedCluster, Plan]:
    """Killed in front of broker 1; then a bit of the journal tips: broker 0's conclusion names broker 1."""
    cluster, plan = killed(folder, "before:stop:1")
    path = folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    turned = [
        line.replace(b"migration-mode/0", b"migration-mode/1") if b'"event":"conclude"' in line else line
        for line in lines
    ]
    path.write_bytes(b"".join(turned))
    assert turned != lines
    return cluster, plan


def believed(line: bytes, *_: object) -> Event:
    """The event of a line that nobody checks."""
    body = json.loads(line[journals.HEAD :])
    return Event(body["n"], body["t"], body["event"], body["data"])


@pytest.mark.slow
def test_a_journal_whose_bits_tipped_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard `journal-crc`: without it broker 1 is never rolled, and broker 2 is."""
    cluster, plan = flipped(tmp_path)
    with pytest.raises(JournalDamaged, match="checksum"):
        run(cluster, plan, tmp_path)
    assert "stop 1" not in cluster.done
    monkeypatch.setattr(journals, "_event", believed)
    monkeypatch.setitem(guards.GUARDS, "files-as-left", always)  # the second layer: broker 1's file tells it, too
    with pytest.raises(MigrateError):
        run(cluster, plan, tmp_path)
    assert "stop 2" in cluster.done
    assert "stop 1" not in cluster.done


def test_every_guard_has_a_scenario() -> None:
    """One that is added is tried, too."""
    assert set(guards.GUARDS) <= {scenario.guard for scenario in SCENARIOS}
