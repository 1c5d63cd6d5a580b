"""What production does is what the stage machine allows: every effect, both ways, whole and after kills."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import RollbackImpossible
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.properties import parse
from migrate.model.broker_modes import node_mode
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import MigrationZnode, NullZnode
from migrate.model.world import Need, World
from migrate.steps import configuration
from tests.oracles.machine import (
    Act,
    Done,
    Flag,
    Metadata,
    Mode,
    Move,
    Moves,
    Owner,
    Standing,
    Stop,
    Views,
    Wait,
    Znode,
    back,
    forward,
)
from tests.oracles.standing import standing_of
from tests.run.test_engine import memory_path, plan_for, run  # noqa: F401 - a fixture
from tests.run.test_rollback import ENTRIES, at, rollback_plan
from tests.testing import worlds
from tests.testing.simulated import KillAt, Killed, SimulatedCluster
from tests.testing.simulated_back import TwoWay, two_way
from tests.testing.worlds import BROKERS, CONTROLLERS

LOOK: Final = frozenset(Need) - {Need.SPARK_LEDGER}
NO_MOVE: Final = ("backup-zookeeper", "backup-file", "make-directory", "release-lock")
WRITTEN: Final = {
    "zookeeper": Act.TO_ZOOKEEPER,
    "migration": Act.TO_MIGRATION,
    "kraft": Act.TO_KRAFT,
    "finalized": Act.FLAG_OFF,
}
ZNODES: Final = {
    "raise-versions:/brokers/topics": Act.RAISE_VERSIONS,
    "set-znode:/controller_epoch": Act.RAISE_EPOCH,
    "delete-znode:/controller": Act.DELETE_CONTROLLER,
    "delete-znode:/migration": Act.DELETE_MIGRATION,
}


def look(cluster: SimulatedCluster) -> World:
    """All that can be seen."""
    return cluster.observe(LOOK, {})


@dataclass
class Watch(KillAt):
    """Stands at every crash point: looks before an effect, and asks the machine after it."""

    cluster: SimulatedCluster
    direction: str  # forward | back
    at: int = 0
    passed: int = 0
    before: Standing | None = None
    acts: list[Act] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    finalizing: bool = False

    def reach(self, label: str) -> None:
        """`before:stop:1`, `after:stop:1`, and points between effects."""
        when, _, effect = label.partition(":")
        if when == "before":
            world = look(self.cluster)
            seen = standing_of(world, finalizing=self.finalizing)
            assert not isinstance(seen, Unknown), seen
            self.before = seen
        elif when == "after" and effect.split(":")[0] not in NO_MOVE:
            self._judge(effect)
        super().reach(label)

    def _judge(self, effect: str) -> None:
        assert self.before is not None
        move = self._move(effect)
        if move is None:
            return
        choice = forward(self.before) if self.direction == "forward" else back(self.before)
        if not isinstance(choice, Moves) or move not in choice.of:
            self.refused.append(f"{effect}: {move} is not among {choice} at {self.before}")
        self.acts.append(move.act)
        self.finalizing = self.finalizing or move.act is Act.FLAG_OFF

    def _move(self, effect: str) -> Move | None:
        if effect in ZNODES:
            return Move(ZNODES[effect])
        name, _, node = effect.partition(":")
        nodes = BROKERS if NodeId(node) in BROKERS else CONTROLLERS
        number = nodes.index(NodeId(node))
        if nodes is BROKERS:
            act = {"stop": Act.STOP, "start": Act.START, "assign-directories": Act.ASSIGN}.get(name)
        else:
            assert self.before is not None
            act = {"stop": Act.STOP_CONTROLLER, "start": Act.START_CONTROLLER, "format": Act.FORMAT}.get(name)
            if name == "set-aside":
                # the metadata first; the file beside a quorum that is no more is no move of the machine
                return Move(Act.SET_ASIDE, number) if self.before.controllers[number].formatted else None
        if act is None and name == "write-config":
            raw = self.cluster.files[int(node), worlds.inventory().node(NodeId(node)).config]
            act = WRITTEN.get(node_mode(parse(raw)), Act.RENDER if self.direction == "forward" else Act.FLAG_ON)
        assert act is not None, effect
        return Move(act, number)


def watched(cluster: SimulatedCluster, folder: Path, direction: str, *, kill: int = 0) -> Watch:
    """The plan from the stage of the cluster, carried out under the machine's eyes; killed once where asked."""
    plan = plan_for(cluster) if direction == "forward" or not isinstance(cluster, TwoWay) else rollback_plan(cluster)
    folder.mkdir(exist_ok=True)
    watch = Watch(cluster, direction, at=kill)
    if kill:
        with pytest.raises(Killed):
            run(cluster, plan, folder, watch)
        watch.at = 0
    run(cluster, plan, folder, watch)
    return watch


FORWARD: Final = [
    *[Act.RENDER] * 3,
    *[Act.FORMAT] * 3,
    *[Act.START_CONTROLLER] * 3,
    *[Act.STOP, Act.TO_MIGRATION, Act.START] * 3,
    *[Act.STOP, Act.TO_KRAFT, Act.START] * 2,
    Act.ASSIGN,
    *[Act.STOP, Act.TO_KRAFT, Act.START],
    *[Act.STOP_CONTROLLER, Act.FLAG_OFF, Act.START_CONTROLLER] * 3,
]


@pytest.mark.slow
def test_a_whole_migration_makes_only_moves_of_the_machine(tmp_path: Path) -> None:
    """In the order of the plan, each allowed where it was made; at the end the machine says done."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    watch = watched(cluster, tmp_path, "forward")
    assert watch.refused == []
    assert watch.acts == FORWARD
    end = standing_of(look(cluster), finalizing=True)
    assert not isinstance(end, Unknown)
    assert end.metadata is Metadata.POST_MIGRATION
    assert forward(end) == Done()
    assert isinstance(back(end), Stop)


@pytest.mark.slow
def test_killed_anywhere_it_goes_on_with_moves_of_the_machine(memory_path: Path) -> None:  # noqa: F811
    """Every crash point that is left after the journal's beginning, in steps of three."""
    whole = watched(SimulatedCluster.in_zookeeper_mode(), memory_path / "whole", "forward")
    for point in range(1, whole.passed + 1, 3):
        cluster = SimulatedCluster.in_zookeeper_mode()
        watch = watched(cluster, memory_path / str(point), "forward", kill=point)
        assert watch.refused == [], point
        assert cluster.finalized


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_rollback_makes_only_moves_of_the_machine(tmp_path: Path, entry: str) -> None:
    """From each state where it may begin, to the one end."""
    cluster = at(entry, tmp_path / "forward")
    watch = watched(cluster, tmp_path / "back", "back")
    assert watch.refused == []
    end = standing_of(look(cluster))
    assert not isinstance(end, Unknown)
    assert {(entry.file, entry.process) for entry in end.brokers} == {(Mode.ZOOKEEPER, Mode.ZOOKEEPER)}
    assert back(end) == Done()
    rolls = {"controllers up": 0, "half of the first roll": 2, "hybrid": 3, "half of the second roll": 5}
    assert watch.acts.count(Act.STOP) == rolls.get(entry, 6)


@pytest.mark.slow
def test_a_rollback_killed_anywhere_goes_on_with_moves_of_the_machine(memory_path: Path) -> None:  # noqa: F811
    """From half of the second roll, the longest way."""
    whole = watched(at("half of the second roll", memory_path / "first"), memory_path / "whole", "back")
    for point in range(1, whole.passed + 1, 4):
        cluster = at("half of the second roll", memory_path / f"{point}-forward")
        watch = watched(cluster, memory_path / str(point), "back", kill=point)
        assert watch.refused == [], point


@pytest.mark.slow
@pytest.mark.parametrize("flagless", ["stopped", "running"])
def test_a_flag_that_a_half_done_finalize_took_goes_back_first(tmp_path: Path, flagless: str) -> None:
    """Killed behind the file, before any start without it: back is open, and what is started later has the flag."""
    cluster = half_final(tmp_path, flagless)
    watch = watched(cluster, tmp_path / "back", "back")
    assert watch.refused == []
    assert watch.acts[0] is Act.FLAG_ON
    assert cluster.migration is None
    assert not cluster.finalized
    assert cluster.harms == []


def test_a_controller_that_was_started_without_the_flag_leaves_no_rollback(tmp_path: Path) -> None:
    """Its last process is known by the file that it was started with; where that is not known, it counts as one."""
    cluster = half_final(tmp_path, "stopped")
    cluster.started[3001] = hashlib.sha256(cluster.files[3001, "/conf/c3001.properties"]).hexdigest()
    with pytest.raises(RollbackImpossible, match="without the migration flag") as caught:
        rollback_plan(cluster)
    assert "is not known to have been started with the flag" in caught.value.why
    del cluster.started[3001]
    with pytest.raises(RollbackImpossible):
        rollback_plan(cluster)


def half_final(folder: Path, flagless: str) -> TwoWay:
    """Every broker in KRaft mode; the file of one controller is without the flag, its last process had it."""
    cluster = at("soak", folder)
    path = "/conf/c3001.properties"
    raw = cluster.files[3001, path]
    cluster.files[3001, path + BACKUP_SUFFIX] = raw
    if flagless == "stopped":
        cluster.stop(NodeId(3001), 1.0)
    cluster.files[3001, path] = configuration.finalized_controller(raw)
    cluster.done.clear()
    return cluster


@pytest.mark.slow
def test_a_breach_of_the_order_would_be_seen(tmp_path: Path) -> None:
    """The watch itself: a direction that is not the plan's direction makes it refuse."""
    cluster = two_way()
    plan = plan_for(cluster)
    watch = Watch(cluster, "back")
    run(cluster, replace(plan, steps=plan.steps[:14]), tmp_path, watch)
    assert watch.refused
    assert "FLAG_ON" in watch.refused[0]


# -- what a World says ---------------------------------------------------------------------------------------------
def seen(world: World) -> Standing:
    """Its standing, which must be known."""
    found = standing_of(world)
    assert not isinstance(found, Unknown), found
    return found


@pytest.mark.parametrize(
    ("stage", "metadata", "znode", "owner", "mode"),
    [
        (Stage.CONTROLLERS, Metadata.PRE_MIGRATION, Znode.WAITING, Owner.ZOOKEEPER, Mode.ZOOKEEPER),
        (Stage.COPY, Metadata.MIGRATION, Znode.COPIED, Owner.KRAFT, Mode.MIGRATION),
        (Stage.KRAFT_MODE, Metadata.MIGRATION, Znode.COPIED, Owner.KRAFT, Mode.KRAFT),
        (Stage.FINALIZE, Metadata.POST_MIGRATION, Znode.COPIED, Owner.KRAFT, Mode.KRAFT),
    ],
)
def test_each_stage_has_its_standing(stage: Stage, metadata: Metadata, znode: Znode, owner: Owner, mode: Mode) -> None:
    """Read off the views of a healthy cluster."""
    found = seen(worlds.world_at(stage))
    assert (found.metadata, found.znode, found.owner) == (metadata, znode, owner)
    assert {broker.file for broker in found.brokers} == {mode}


def test_null_data_and_offsets_are_told_apart() -> None:
    """-1 is what any waiting controller writes; above 0 something was copied."""
    world = worlds.world_at(Stage.CONTROLLERS)
    assert seen(worlds.with_zk(world, migration=NullZnode(0))).znode is Znode.NULL
    for offset, znode in ((-1, Znode.WAITING), (0, Znode.WAITING), (1, Znode.COPIED)):
        found = worlds.with_zk(world, migration=MigrationZnode(offset, 1, 1, 1, 1))
        assert seen(found).znode is znode


@pytest.mark.parametrize("part", ["zookeeper", "configs", "services"])
def test_what_a_standing_cannot_do_without_is_unknown(part: str) -> None:
    """With the reason that the part itself gives."""
    reason = Unknown("it could not be seen")
    world = worlds.world_at(Stage.COPY)
    bent = {
        "zookeeper": replace(world, zookeeper=reason),
        "configs": replace(world, configs=reason),
        "services": replace(world, services=reason),
    }[part]
    assert isinstance(standing_of(bent), Unknown)


@pytest.mark.parametrize("part", ["live", "ledger", "diff", "disks", "kraft"])
def test_what_was_not_seen_is_never_good(part: str) -> None:
    """No answer is not whole, no comparison is not equal, no ledger is not verified: the machine waits or stops."""
    reason = Unknown("it could not be seen")
    world = worlds.world_at(Stage.KRAFT_MODE)
    bent = {
        "live": replace(world, live=reason),
        "ledger": replace(world, ledger=reason),
        "diff": replace(world, diff=reason),
        "disks": replace(world, disks=reason),
        "kraft": replace(world, kraft=reason),
    }[part]
    found = seen(bent)
    assert isinstance(forward(found), Wait | Stop), forward(found)
    match part:
        case "live":
            assert not any(broker.whole for broker in found.brokers)
        case "ledger":
            assert not any(broker.verified for broker in found.brokers)
        case "diff":
            assert found.views is Views.UNSEEN
        case "disks":
            assert not any(broker.healthy for broker in found.brokers)
        case _:
            assert found.metadata is Metadata.UNKNOWN


def test_what_stopped_controllers_left_is_seen_on_their_disks(tmp_path: Path) -> None:
    """Records that ZooKeeper lacks make it behind; a log that /migration knows nothing of is an old one."""
    cluster = at("hybrid", tmp_path)
    cluster.unwritten_at_stop = 1
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    found = seen(look(cluster))
    assert (found.views, found.old_log) == (Views.BEHIND, False)
    assert acts_of(found) == {Act.START_CONTROLLER}
    cluster.owner, cluster.migration = None, None
    assert seen(look(cluster)).old_log
    assert isinstance(forward(seen(look(cluster))), Stop)


def acts_of(standing: Standing) -> set[Act]:
    """What the machine allows on the rollback."""
    choice = back(standing)
    assert isinstance(choice, Moves)
    return {move.act for move in choice.of}


def test_a_controller_without_the_flag_is_seen_by_its_file_and_by_its_process() -> None:
    """And stops everything, as it would finalize by being elected."""
    world = worlds.world_at(Stage.FINALIZE)
    found = seen(worlds.with_kraft(world, migration_state=ZkMigrationState.MIGRATION))
    assert {entry.file for entry in found.controllers} == {Flag.OFF}
    assert isinstance(forward(found), Stop)
