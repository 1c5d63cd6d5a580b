"""ZooKeeper beside a migrated cluster in memory: kept, proven unused, archived, stopped server by server."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from migrate.errors import NoProgress, NothingToPlan, PlanStopped
from migrate.model.detect import detect
from migrate.model.ensemble import Ensemble, EnsembleServer, ServerUnit
from migrate.model.inventory import ZookeeperServer
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan, PlanKind
from migrate.model.ports import ZookeeperServers
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from migrate.plan import retirement
from migrate.plan.retirement import Cleaned
from migrate.report.plan_text import plan_text
from migrate.run import journal as journals
from tests.run.test_engine import plan_for as migration_of
from tests.run.test_engine import run
from tests.testing import worlds
from tests.testing.killing import memory_folder, walk_all_kills
from tests.testing.simulated import FakeClock, SimulatedCluster

LEADER = "zk1:2181"
ADDRESSES = (LEADER, "zk2:2181", "zk3:2181")
NOW = FakeClock().time
CLEANED = Cleaned(NOW - 86_400.0, "3f2a9c01")
LOOK = retirement.PLANNED_ON | {Need.LIVE, Need.ZOOKEEPER}


@dataclass(slots=True)
class Retiring(SimulatedCluster):
    """State beside the base's: the answer of is-enabled for each server, those that run, their clients."""

    words: dict[str, str] = field(default_factory=lambda: dict.fromkeys(ADDRESSES, "enabled"))
    up: set[str] = field(default_factory=lambda: set(ADDRESSES))
    clients: dict[str, int] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()
    by_hand: bool = False  # no unit is named
    unseen: bool = False  # no server answers srvr
    masked: str = "masked"  # what a unit is that was masked

    @property
    def zookeeper_servers(self) -> ZookeeperServers:
        """Its units."""
        return Units(self)

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """With ZooKeeper's servers, the leader last."""
        world = SimulatedCluster.observe(self, needs, facts)
        if not self.by_hand:
            named = tuple(ZookeeperServer(one.split(":")[0], one, "zookeeper.service") for one in ADDRESSES)
            world = replace(world, inventory=replace(world.inventory, zookeeper_servers=named))
        order = sorted(ADDRESSES, key=lambda address: address == LEADER)
        return replace(world, ensemble=Ensemble(tuple(map(self._seen, order)), self.strangers))

    def _seen(self, address: str) -> EnsembleServer:
        unit = None if self.by_hand else Units(self).look(address)
        if address not in self.up:
            return EnsembleServer(address, listens=False, unit=unit)
        role = "" if len(self.up) < 2 else "leader" if address == LEADER else "follower"
        clients = Unknown(f"{address} does not answer srvr") if self.unseen else self.clients.get(address, 0)
        return EnsembleServer(address, True, role, clients, data=("/srv/zookeeper",), unit=unit)


@dataclass(slots=True)
class Units:
    """What production does by systemctl."""

    cluster: Retiring

    def look(self, address: str) -> ServerUnit | Unknown:
        """As it is."""
        return ServerUnit(f"zookeeper.service on {address}", address in self.cluster.up, self.cluster.words[address])

    def stop(self, address: str) -> None:
        """Once."""
        self.cluster.done.append(f"stop {address}")
        self.cluster.up.remove(address)

    def mask(self, address: str) -> None:
        """The unit's file is a package's."""
        self.cluster.done.append(f"mask {address}")
        self.cluster.words[address] = self.cluster.masked


@cache
def _migrated() -> Retiring:
    cluster = Retiring.in_zookeeper_mode()
    with tempfile.TemporaryDirectory() as folder:
        run(cluster, migration_of(cluster), Path(folder))
    cluster.done.clear()
    return cluster


def migrated() -> Retiring:
    """At the end of the cleanup."""
    return deepcopy(_migrated())


def plan_for(cluster: Retiring, cleaned: Cleaned | None = CLEANED) -> Plan:
    """From where it stands."""
    playbook = replace(worlds.playbook(), stages=(*worlds.playbook().stages, Stage.RETIRE_ZOOKEEPER))
    return retirement.build(cluster.observe(LOOK, {}), playbook, cleaned, created=NOW)


# -- there -----------------------------------------------------------------------------------------------------------
def test_followers_are_stopped_and_masked_one_by_one_and_the_leader_last(tmp_path: Path) -> None:
    """Behind the proof that nobody uses it, and behind the last archive."""
    cluster = migrated()
    plan = plan_for(cluster)
    assert plan.kind is PlanKind.RETIREMENT
    assert plan.needs_confirmation
    assert [step.id.removeprefix("retire-zookeeper/") for step in plan.steps] == [
        "unused",
        "archive",
        *(f"stop-{address}" for address in ("zk2:2181", "zk3:2181", LEADER)),
        "prove",
    ]
    events = run(cluster, plan, tmp_path)
    turns = [f"{act} {address}" for address in ("zk2:2181", "zk3:2181", LEADER) for act in ("stop", "mask")]
    assert cluster.done == turns
    notes = journals.notes(events)
    assert "sha256" in notes["backup:zookeeper-last"]
    last = next(event for event in reversed(events) if event.name == "conclude")
    assert "zookeeper.service on zk1:2181 is masked" in " ".join(last.data["evidence"])
    assert "/srv/zookeeper" in last.data["left"][0]


@pytest.mark.slow
def test_every_number_of_kills_ends_as_none() -> None:
    """Each server is stopped once and masked once, however often the run dies."""
    with memory_folder() as folder:
        walk = walk_all_kills(migrated, plan_for(migrated()), folder)
    assert walk.waiting == []
    assert walk.recoveries > 20


def test_keep_zookeeper_is_waited_for(tmp_path: Path) -> None:
    """The step begins once it has passed, by the run's clock."""
    cluster = migrated()
    events = run(cluster, plan_for(cluster, replace(CLEANED, at=CLEANED.at + 300.0)), tmp_path)
    waits = [event for event in events if event.name == "waiting"]
    assert "end of keep_zookeeper" in waits[0].data["what"]
    first = next(event for event in events if event.name == "intend")
    assert first.time >= NOW + 300.0


def test_a_server_that_was_stopped_by_hand_is_masked(tmp_path: Path) -> None:
    """Of the two effects only the missing one happens."""
    cluster = migrated()
    cluster.up.remove("zk2:2181")
    run(cluster, plan_for(cluster), tmp_path)
    assert cluster.done[0] == "mask zk2:2181"


def test_a_new_plan_has_only_what_is_left(tmp_path: Path) -> None:
    """Servers that are stopped for good have no step; where all are, the end is proven again."""
    cluster = migrated()
    cluster.up.remove("zk2:2181")
    cluster.words["zk2:2181"] = "disabled"
    assert "retire-zookeeper/stop-zk2:2181" not in [step.id for step in plan_for(cluster).steps]
    run(cluster, plan_for(cluster), tmp_path)
    assert [step.kind for step in plan_for(cluster).steps] == ["prove-retired"]


# -- not there -------------------------------------------------------------------------------------------------------
def test_a_client_is_waited_for_and_nothing_is_stopped(tmp_path: Path) -> None:
    """It may be any application: its owner stops it."""
    cluster = migrated()
    cluster.clients = {"zk3:2181": 2}
    with pytest.raises(NoProgress, match="zk3:2181: follower, 2 clients"):
        run(cluster, plan_for(cluster), tmp_path)
    assert cluster.done == []


def test_what_is_another_applications_keeps_the_ensemble(tmp_path: Path) -> None:
    """Its znodes would be lost to it."""
    cluster = migrated()
    cluster.strangers = ("/solr",)
    with pytest.raises(PlanStopped, match="not Kafka's: '/solr'"):
        run(cluster, plan_for(cluster), tmp_path)
    assert cluster.done == []


def test_clients_that_cannot_be_counted_are_not_none(tmp_path: Path) -> None:
    """A TLS port does not answer, for instance."""
    cluster = migrated()
    cluster.unseen = True
    with pytest.raises(PlanStopped, match="whether somebody uses ZooKeeper is not known"):
        run(cluster, plan_for(cluster), tmp_path)
    assert cluster.done == []


def test_without_units_people_stop_it_and_the_run_waits_for_that(tmp_path: Path) -> None:
    """The archive is made, the instructions are in the plan, and the end is seen."""
    cluster = migrated()
    cluster.by_hand = True
    plan = plan_for(cluster)
    assert [step.kind for step in plan.steps] == ["prove-unused", "archive-zookeeper", "prove-retired"]
    assert "a person stops it: on its host `systemctl stop UNIT`" in plan_text(plan)
    with pytest.raises(NoProgress, match="to be stopped"):
        run(cluster, plan, tmp_path)
    cluster.up.clear()
    assert run(cluster, plan, tmp_path)[-1].name == "end"
    assert cluster.done == []


def test_a_unit_that_a_boot_would_start_is_not_proven(tmp_path: Path) -> None:
    """`static` units are started by others."""
    cluster = migrated()
    cluster.masked = "static"
    with pytest.raises(PlanStopped, match="is static: a boot may start it again"):
        run(cluster, plan_for(cluster), tmp_path)


def test_it_is_planned_only_behind_a_proven_cleanup() -> None:
    """From there keep_zookeeper counts."""
    with pytest.raises(NothingToPlan, match="no journal"):
        plan_for(migrated(), None)
    early = Retiring.in_zookeeper_mode()
    with pytest.raises(NothingToPlan, match="the cluster is at assess"):
        plan_for(early)


def test_without_a_quorum_nothing_can_be_archived() -> None:
    """The plan that stopped the others goes on; a new one is not made."""
    cluster = migrated()
    cluster.up = {LEADER}
    with pytest.raises(NothingToPlan, match="does not serve"):
        plan_for(cluster)


def test_the_point_of_no_return_is_shown() -> None:
    """And that a mask is taken back by hand."""
    text = plan_text(plan_for(migrated()))
    assert "before retire-zookeeper/unused, behind 0 of 6 steps" in text
    assert "systemctl unmask" in text
    assert "People delete it, no run does" in text


def test_the_stage_is_known_by_the_journal() -> None:
    """The cluster itself has no trace of it."""
    world = replace(migrated().observe(LOOK, {}), facts={"proven:retire-zookeeper": "run 3f2a9c01"})
    found = detect(world)
    assert not isinstance(found, Unknown)
    assert found.stage is Stage.RETIRE_ZOOKEEPER
