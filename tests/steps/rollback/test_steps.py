"""The steps of the rollback, each alone: what they plan, ask, do, and what a half-done one adds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.checks.rollback.readiness import rollback_readiness
from migrate.errors import NothingToPlan, NotVisible, PlanIsStale, RestoreRefused, RollbackImpossible
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, NotYet, Ready, Refused, Unknown, Verified
from migrate.model.plan import Direction, PlanKind, PlanSummary
from migrate.model.rollback_readiness import Growing
from migrate.model.stage import ZkMigrationState
from migrate.model.step import NO_ZNODE, HalfDone, NotBegun, Predicted
from migrate.model.views import (
    ControllerZnode,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    MigrationZnode,
    NoZnode,
    NullZnode,
    Stopped,
)
from migrate.model.world import Need, World
from migrate.plan import rollback
from migrate.report.plan_json import plan_from_json, plan_to_json
from migrate.steps.registry import rebuild
from migrate.steps.rollback import control
from migrate.steps.rollback.brokers import RollBackToMigrationMode, RollToZookeeperMode
from migrate.steps.rollback.cleanup import ProveZookeeperMode, SetControllerAside
from migrate.steps.rollback.control import HandBackControl, StopControllers, in_order
from migrate.steps.rollback.copy_again import SetMetadataAside, StopStuckControllers
from tests.checks.bends import refused_on_host, unit_of
from tests.run.test_engine import run
from tests.run.test_rollback import at, go_back, is_back, rollback_plan
from tests.steps.looks import Remembered, answer, broken_disk, service, without
from tests.steps.rollback.test_gates import ALL, handed_back, hybrid, named, taken
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID
from tests.testing.worlds import live, with_kraft, with_live, with_zk, zk

V1 = b"version=1\nnode.id=1\ncluster.id=%s\ndirectory.id=%s\n"


def half() -> World:
    """Brokers 0 and 1 in KRaft mode."""
    return deepcopy(taken("half of the second roll")).observe(ALL, {})


# -- stop the controllers --------------------------------------------------------------------------------------------
def test_the_leader_is_stopped_last() -> None:
    """What is committed by then is its to write."""
    world = hybrid()
    assert in_order(world) == (3001, 3002, 3000)
    assert in_order(with_live(world, quorum=Unknown("nobody leads"))) == (3000, 3001, 3002)
    effects = Remembered()
    StopControllers().do(world, effects)
    assert effects.done == ["stop 3001", "stop 3002", "stop 3000"]


def test_controllers_are_not_stopped_while_a_broker_needs_them() -> None:
    """KRaft brokers go back first."""
    assert answer(StopControllers().check(half())).startswith("refused: brokers [0, 1] are in KRaft mode")
    assert StopControllers().check(hybrid()) == Ready()


def test_no_controller_is_stopped_while_the_unit_of_another_may_not_be() -> None:
    """Two stopped and the third refused is a lost quorum: every unit is asked before the first stop."""
    stuck = with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 0))
    for step, world in ((StopControllers(), hybrid()), (StopStuckControllers(), stuck)):
        bent = unit_of(3002, patience=90.0)(world)
        assert Need.UNITS in step.needs
        assert answer(step.check(bent)).startswith("refused: kafka-3002.service of node 3002")
        assert "TimeoutStopSec=330" in answer(step.check(bent))
        assert isinstance(step.check(replace(bent, units=Unknown("no route"))), Unknown)
        assert not isinstance(bent.units, Unknown)
        unseen = replace(bent, units={**bent.units, NodeId(3002): Unknown("no route")})
        assert answer(step.check(unseen)).startswith("unknown: the unit of node 3002: no route")


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (without("metadata_logs"), "unknown: the controllers' metadata logs cannot be read (metadata_logs hidden)"),
        (lambda world: replace(world, metadata_logs=Growing("runs")), "unknown: the controllers' metadata logs cannot"),
        (
            refused_on_host(3001, "unit-stop kafka.service: the host program refuses it: no"),
            "refused: commands that are needed once no controller leads",
        ),
        (lambda world: without("host_rights")(refused_on_host(3001)(world)), "unknown: host_rights hidden"),
        (lambda world: replace(world, rehearsal="/: this identity may not"), "refused: /: this identity may not"),
        (without("rehearsal"), "unknown: whether ZooKeeper lets this identity"),
    ],
)
def test_what_is_needed_without_a_leader_is_a_gate_of_the_stop(bend: Any, says: str) -> None:
    """Of both stops: logs, commands, znodes, each by name, and what nobody tried is not allowed."""
    stuck = with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 0))
    for step, world in ((StopControllers(), hybrid()), (StopStuckControllers(), stuck)):
        assert {Need.METADATA_LOGS, Need.REHEARSAL, Need.HOST_RIGHTS} <= step.needs
        bent = bend(world)
        if bent.inventory.executor == "ssh":
            bent = replace(unit_of(3000)(bent), host_rights=bent.host_rights)
        assert answer(step.check(bent)).startswith(says)


@pytest.mark.parametrize(
    ("znodes", "says"),
    [
        ({"controller_epoch": NoZnode(), "controller_epoch_version": -1}, "refused: /controller_epoch is missing"),
        ({"controller": NoZnode()}, "notyet: somebody to own /controller"),
    ],
)
def test_no_controller_is_stopped_where_the_znodes_cannot_be_repaired_afterwards(
    znodes: dict[str, object], says: str
) -> None:
    """Found with all of them stopped, it would leave the cluster without a controller."""
    assert answer(StopControllers().check(with_zk(hybrid(), **znodes))).startswith(says)
    stuck = with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 0), **znodes)
    assert answer(StopStuckControllers().check(stuck)).startswith(says)


def test_how_many_run_is_how_far_it_got() -> None:
    """All, some, none."""
    step, world = StopControllers(), hybrid()
    assert step.progress(world) == NotBegun()
    assert isinstance(step.progress(service(3001, handed_state())(world)), HalfDone)
    assert isinstance(step.progress(handed_back()), AlreadyDone)
    assert isinstance(step.progress(without("services")(world)), Unknown)


def handed_state() -> Any:
    """The state of a stopped process."""
    services = handed_back().services
    assert not isinstance(services, Unknown)
    return services[NodeId(3000)]


# -- the znodes ------------------------------------------------------------------------------------------------------
def stopped_in_hybrid() -> World:
    """Controllers stopped, nothing mended."""
    cluster = deepcopy(taken("hybrid"))
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    return cluster.observe(ALL, {})


def test_the_epoch_then_the_controller_then_the_migration_each_at_its_version() -> None:
    """In the order that was seen to work."""
    world = with_zk(
        stopped_in_hybrid(),
        controller=ControllerZnode(3000, 9, False, 4),
        controller_epoch=5,
        controller_epoch_version=8,
        migration=MigrationZnode(500, 1, 3000, 2, 77),
    )
    effects = Remembered()
    assert HandBackControl().check(world) == Ready()
    HandBackControl().do(world, effects)
    assert effects.done == [
        "note rollback:kraft-epoch=9",
        "set /controller_epoch 9 over 8",
        "delete /controller at 4",
        "delete /migration at 77",
    ]


def test_an_epoch_that_is_high_enough_is_left_alone() -> None:
    """Never lowered."""
    world = with_zk(stopped_in_hybrid(), controller_epoch=50)
    effects = Remembered()
    HandBackControl().do(world, effects)
    assert not [entry for entry in effects.done if entry.startswith("set")]


def test_a_brokers_controller_znode_is_never_deleted() -> None:
    """Before the copy only /migration is the migration's; a null one goes too."""
    owner = ControllerZnode(0, -1, True, 4)
    for znode, says in (
        (MigrationZnode(-1, -1, -1, -1, 0), "delete /migration at 0"),
        (NullZnode(3), "delete /migration at 3"),
    ):
        effects = Remembered()
        HandBackControl().do(with_zk(stopped_in_hybrid(), controller=owner, migration=znode), effects)
        assert effects.done == [says]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"controller_epoch": NoZnode()}, "refused: /controller_epoch is missing"),
        ({"controller_epoch_version": -1}, "refused: /controller_epoch is missing"),
        ({"migration": Unknown("malformed")}, "unknown: malformed"),
        ({"controller": Unknown("malformed")}, "unknown: malformed"),
        ({"controller": NoZnode()}, "notyet: somebody to own /controller"),
    ],
)
def test_znodes_that_are_not_understood_are_not_touched(changes: dict[str, Any], says: str) -> None:
    """Nothing is guessed about who controls a cluster."""
    assert answer(HandBackControl().check(with_zk(stopped_in_hybrid(), **changes))).startswith(says)


def test_znodes_that_cannot_be_seen_are_neither_low_nor_to_be_repaired() -> None:
    """Each of the parts says so of itself."""
    blind = without("zookeeper")(stopped_in_hybrid())
    assert answer(control._repairable(blind)) == "unknown: zookeeper hidden"
    assert (control.epoch_low(blind), control.epoch_due(blind)) == (False, -1)
    assert control.evidence(blind) == ()


def test_an_owner_among_the_controllers_is_not_done_where_migration_is_gone() -> None:
    """Another hand deleted /migration alone."""
    assert HandBackControl().progress(with_zk(stopped_in_hybrid(), migration=NoZnode())) == NotBegun()


def test_control_is_not_handed_back_under_a_running_controller() -> None:
    """It would claim it again."""
    assert answer(HandBackControl().check(hybrid())).startswith("refused: controllers [3000, 3001, 3002] run")


def test_control_is_not_handed_back_before_zookeeper_has_all_that_the_logs_hold() -> None:
    """What was committed and never written would be gone for good."""
    cluster = deepcopy(taken("hybrid"))
    cluster.unwritten_at_stop = 2
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    said = answer(HandBackControl().check(cluster.observe(ALL, {})))
    assert said.startswith("refused: ZooKeeper and the metadata differ in 1 place")


def test_control_is_not_handed_back_while_a_broker_is_in_kraft_mode() -> None:
    """It would go on without a controller."""
    cluster = deepcopy(taken("half of the second roll"))
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    said = answer(HandBackControl().check(cluster.observe(ALL, {})))
    assert said.startswith("refused: brokers [0, 1] are in KRaft mode")


def test_controllers_are_held_down_at_both_deletions() -> None:
    """One that starts meanwhile would act on the same ZooKeeper as the broker that takes over."""
    effects = Remembered()
    HandBackControl().do(stopped_in_hybrid(), effects)
    assert effects.held == {"/controller": (3000, 3001, 3002), "/migration": (3000, 3001, 3002)}


def logs_at(epoch: int, state: ZkMigrationState = ZkMigrationState.MIGRATION) -> World:
    """Controllers stopped, nothing mended; their logs know that epoch, ZooKeeper knows of 9."""
    world = with_zk(
        stopped_in_hybrid(),
        controller=ControllerZnode(3000, 9, False, 4),
        controller_epoch=9,
        controller_epoch_version=8,
        state_epoch=9,
    )
    assert not isinstance(world.metadata_logs, Unknown)
    return replace(world, metadata_logs=replace(world.metadata_logs, epoch=epoch, state=state))


@pytest.mark.parametrize(
    ("made", "raised"),
    [
        (lambda: logs_at(12), "12 over 8"),
        (lambda: logs_at(10), "10 over 8"),
        (lambda: logs_at(9), None),
        (lambda: logs_at(12, ZkMigrationState.PRE_MIGRATION), None),
        (lambda: replace(logs_at(12), metadata_logs=Unknown("no route")), None),
        (lambda: with_zk(logs_at(9), state_epoch=11), "11 over 8"),
        (lambda: with_zk(logs_at(9), controller=ControllerZnode(3000, 10, False, 4)), "10 over 8"),
    ],
    ids=["logs", "logs by one", "high enough", "never claimed", "no logs", "states", "controller"],
)
def test_the_epoch_is_raised_to_the_highest_that_anything_of_kraft_knows(
    made: Callable[[], World], raised: str | None
) -> None:
    """Brokers refuse a controller with a lower epoch than one that they heard of; what never claimed is no claim."""
    effects = Remembered()
    HandBackControl().do(made(), effects)
    found = [entry.removeprefix("set /controller_epoch ") for entry in effects.done if entry.startswith("set ")]
    assert found == ([] if raised is None else [raised])


def test_a_broker_that_claimed_with_too_low_an_epoch_is_sent_to_claim_again() -> None:
    """/controller was deleted by hand before its epoch was raised: a raise alone does not reach who owns it."""
    world = with_zk(logs_at(12), controller=ControllerZnode(0, -1, True, 5), migration=NoZnode())
    effects = Remembered()
    assert isinstance(HandBackControl().progress(world), HalfDone)
    shown = [(action.symbol, action.where) for action in HandBackControl().actions(world, Predicted())]
    assert shown == [("~", "/controller_epoch"), ("-", "/controller")]
    HandBackControl().do(world, effects)
    assert effects.done == [
        "note rollback:kraft-epoch=12",
        "set /controller_epoch 12 over 8",
        "delete /controller at 5",
    ]


def test_the_hand_back_shows_each_znode_that_it_changes() -> None:
    """The epoch also where it is high enough; nothing of what is gone."""
    step = HandBackControl()
    shown = [(it.symbol, it.where, it.what) for it in step.actions(logs_at(12), Predicted())]
    assert shown[:2] == [
        ("~", "/controller_epoch", "raise from 9 to 12"),
        ("-", "/controller", "delete: it is controller 3000's"),
    ]
    assert [(symbol, where) for symbol, where, _ in shown[2:]] == [("-", "/migration")]
    assert "it remembers a copy up to metadata offset" in shown[2][2]
    enough = [(it.symbol, it.where, it.what) for it in step.actions(logs_at(9), Predicted())]
    assert enough[0] == ("=", "/controller_epoch", "at least 9 already")
    waiting = with_zk(logs_at(9), migration=MigrationZnode(0, -1, -1, -1, 0))
    assert step.actions(waiting, Predicted())[-1].what == "delete: it waits for a copy"
    null = with_zk(logs_at(9), migration=NullZnode(3))
    assert step.actions(null, Predicted())[-1].what == "delete: it has no data"
    assert step.actions(handed_back(), Predicted()) == ()
    assert [it.symbol for it in step.actions(without("zookeeper")(logs_at(9)), Predicted())] == ["?"]


def changes(step: Any, world: World) -> list[tuple[str, int | None, str | None, str | None]]:
    """Each znode's action: path, version, value before and after."""
    found = step.actions(world, Predicted())
    return [(it.znode, it.version, it.before, it.after) for it in found if it.znode]


def test_the_hand_back_shows_versions_and_values_before_and_after() -> None:
    """What is not known is None, and no sentinel of a view is shown as a number."""
    copied = with_zk(logs_at(12), migration=MigrationZnode(500, 7, 3000, 9, 77))
    assert changes(HandBackControl(), copied) == [
        ("/controller_epoch", 8, "9", "12"),
        ("/controller", 4, "controller 3000 (KRaft epoch 9)", NO_ZNODE),
        ("/migration", 77, "a copy up to metadata offset 500, epoch 7, by controller 3000", NO_ZNODE),
    ]
    assert changes(HandBackControl(), logs_at(9))[0] == ("/controller_epoch", 8, "9", "9")
    unsure = with_zk(copied, controller_epoch_version=-1, migration=Unknown("malformed"))
    assert changes(HandBackControl(), unsure)[::2] == [
        ("/controller_epoch", None, "9", "12"),
        ("/migration", None, None, NO_ZNODE),
    ]
    broker = with_zk(logs_at(12), controller=ControllerZnode(0, -1, True, 5), migration=NullZnode(3))
    assert changes(HandBackControl(), broker)[1:] == [
        ("/controller", 5, "broker 0", NO_ZNODE),
        ("/migration", 3, "no data", NO_ZNODE),
    ]
    waiting = with_zk(logs_at(9), migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert changes(HandBackControl(), waiting)[-1] == ("/migration", 0, "no copy yet", NO_ZNODE)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: replace(world, services=hybrid().services), "refused: controllers [3000, 3001, 3002] run"),
        (lambda world: with_zk(world, migration=NullZnode(3)), "refused: /migration is still there"),
        (named(2, (1,) * 20), "notyet: broker 2 to name broker 0"),
    ],
)
def test_the_hand_back_is_proven_by_controllers_znodes_and_every_brokers_word(bend: Any, says: str) -> None:
    """None of the three alone."""
    assert answer(HandBackControl().verify(bend(handed_back()))).startswith(says)


def test_the_proof_of_the_hand_back_names_the_owner_and_its_epoch() -> None:
    """As the journal keeps it."""
    proof = HandBackControl().verify(handed_back())
    assert isinstance(proof, Verified)
    assert proof.evidence[0].startswith("/controller belongs to broker 0, /controller_epoch is ")
    assert proof.evidence[1].startswith("every broker that runs names broker 0 in 20 answers of 20")


def test_how_far_the_hand_back_got_is_told_by_the_znodes() -> None:
    """Nothing, /controller, both."""
    step, world = HandBackControl(), stopped_in_hybrid()
    assert step.progress(world) == NotBegun()
    assert isinstance(step.progress(with_zk(world, controller=ControllerZnode(0, -1, True, 9))), HalfDone)
    assert isinstance(step.progress(handed_back()), AlreadyDone)
    assert isinstance(step.verify(handed_back()), Verified)
    assert isinstance(step.progress(without("zookeeper")(world)), Unknown)


# -- the rolls -------------------------------------------------------------------------------------------------------
def test_the_two_rolls_are_shown_with_their_diffs_and_their_copies() -> None:
    """The second one starts from what the first one leaves."""
    world = half()
    first, second = RollBackToMigrationMode(0), RollToZookeeperMode(0)
    one = first.actions(world, Predicted())
    after = first.predict(world, Predicted())
    two = second.actions(world, after)
    assert "restore /conf/b0.properties from the copy" in one[0].what
    assert "+zookeeper.metadata.migration.enable=true" in one[0].diff
    assert "-zookeeper.metadata.migration.enable=true" in two[0].diff
    assert first.expects(world, Predicted())["mode:0"] == "migration"
    assert second.expects(world, after) == {
        "mode:0": "zookeeper",
        "session:0": "yes",
        "config:0": second.expects(world, after)["config:0"],
    }
    assert one[1].symbol == two[1].symbol == ">"


def test_no_roll_goes_on_without_a_copy_that_is_proven() -> None:
    """Neither its check nor the resumption of a half-done one."""
    world = replace(half(), backups=Unknown("permission denied"))
    for step in (RollBackToMigrationMode(0), RollToZookeeperMode(0)):
        assert isinstance(step.progress(world), Unknown)
    assert answer(RollBackToMigrationMode(0).check(world)) == "unknown: permission denied"


def test_a_roll_to_zookeeper_mode_waits_for_the_controllers_to_be_gone() -> None:
    """Its gates hold only after control went back."""
    assert answer(RollToZookeeperMode(1).check(hybrid())).startswith("refused: controllers [3000, 3001, 3002] run")
    assert RollToZookeeperMode(1).check(handed_back()) == Ready()


@pytest.mark.slow
def test_a_disk_that_was_formatted_is_mended_before_the_last_start(tmp_path: Path) -> None:
    """Version 1 becomes version 0 with the same ids, and the old file is kept."""
    cluster = at("soak", tmp_path / "forward")
    world = cluster.observe(ALL, {})
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(1)]
    assert not isinstance(disks, Unknown)
    path = f"{disks.directories[1].path}/meta.properties"
    raw = V1 % (zk(world).cluster_id.encode(), str(disks.directories[1].id).encode())
    cluster.files[1, path] = raw
    plan = rollback_plan(cluster)
    step = next(entry for entry in plan.steps if entry.id == "migration-mode/back-1")
    assert any(f"rewrite {path}" in action.what and "-version=1" in action.diff for action in step.actions)
    go_back(cluster, tmp_path / "back")
    is_back(cluster)
    assert cluster.files[1, path] == raw.replace(b"version=1", b"version=0").replace(b"node.id", b"broker.id")
    copies = {
        name: content for (_, name), content in cluster.files.items() if name.startswith(f"{path}.kraft-migrate-")
    }
    digest = hashlib.sha256(raw).hexdigest()[:8]
    assert copies[f"{path}.kraft-migrate-backup-{digest}"] == raw, "beside the one that `prepare` kept"


def test_a_session_that_is_still_the_old_one_is_no_proof() -> None:
    """The registration that the step ended may still stand there."""
    world = handed_back()
    epoch = zk(world).brokers[NodeId(1)].epoch
    bent = replace(world, facts={"ended:migration-mode/back-1": str(epoch)})
    step = RollToZookeeperMode(1)
    assert isinstance(step.new_session(bent), NotYet)
    assert step.new_session(world) == Ready()


# -- what is left of the controllers ---------------------------------------------------------------------------------
def test_controllers_are_set_aside_only_where_zookeeper_has_control() -> None:
    """Directory and file; one of them gone is half of it."""
    step, world = SetControllerAside(3000), handed_back()
    assert isinstance(step.check(hybrid()), Refused)
    assert step.check(world) == Ready()
    effects = Remembered()
    step.do(world, effects)
    assert effects.done == ["aside 3000 /data/c3000", "aside 3000 /conf/c3000.properties"]
    assert step.progress(world) == NotBegun()


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        (
            MetaProperties(1, "AAAAAAAAAAAAAAAAAAAAAA", 3000, None),
            "belongs to cluster AAAAAAAAAAAAAAAAAAAAAA and node 3000",
        ),
        (MetaProperties(1, CLUSTER_ID, 3001, None), "and node 3001"),
        (MetaProperties(1, CLUSTER_ID, None, None), "and node None"),
        (MetaProperties(1, None, 3000, None), "belongs to cluster None"),
        (MetaBroken("two values of node.id"), "cannot be trusted: two values of node.id"),
        (MetaMissing(), "has no meta.properties that says whose it is"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_is_moved_that_is_not_this_controllers_of_this_cluster(
    meta: MetaProperties | MetaBroken | MetaMissing, why: str
) -> None:
    """A wrong metadata_directory in the inventory leads to another quorum's files, or to a directory of nobody's."""
    world, node = handed_back(), NodeId(3000)
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[node]
    assert not isinstance(disks, Unknown)
    other = replace(disks.directories[0], meta=meta, holds_metadata_log=True)
    world = replace(world, disks={**world.disks, node: replace(disks, directories=(other,))})
    for step in (SetControllerAside(3000), SetMetadataAside(3000)):
        found = step.check(world)
        assert isinstance(found, Refused)
        assert why in found.reason
        assert "it is not moved" in found.reason


# -- the plan --------------------------------------------------------------------------------------------------------
def test_a_finalized_cluster_has_no_rollback(tmp_path: Path) -> None:
    """By the metadata, by a controller's answer, by a controller's file; the way forward is said."""
    world = half()
    with pytest.raises(RollbackImpossible, match="POST_MIGRATION") as caught:
        rollback.build(with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), worlds.playbook(), created=1)
    assert "way forward" in caught.value.next_step
    node = live(world).controllers[NodeId(3001)]
    assert not isinstance(node, Unknown)
    flagless = {**live(world).controllers, NodeId(3001): replace(node, migration_flag=False)}
    with pytest.raises(RollbackImpossible, match="3001"):
        rollback.build(with_live(world, controllers=flagless), worlds.playbook(), created=1)
    cluster = at("soak", tmp_path)
    path = "/conf/c3002.properties"
    cluster.files[3002, path] = cluster.files[3002, path].replace(b"migration.enable=true", b"migration.enable=false")
    with pytest.raises(RollbackImpossible, match="c3002"):
        rollback_plan(cluster)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("zookeeper", "ZooKeeper cannot be read"),
        ("services", "processes run"),
        ("configs", "broker 0"),
        ("live", "no node could be asked"),
    ],
)
def test_what_decides_must_be_visible(part: str, says: str) -> None:
    """Nothing is planned on a guess."""
    with pytest.raises(NothingToPlan, match=says):
        rollback.build(without(part)(half()), worlds.playbook(), created=1)


def test_controllers_that_run_and_cannot_be_read_are_asked_again() -> None:
    """A quorum that elects a leader answers in a moment: nobody is sent to start what runs."""
    with pytest.raises(NotVisible, match="cannot be read") as caught:
        rollback.build(without("kraft")(half()), worlds.playbook(), created=1)
    assert "give the same command again" in caught.value.next_step
    stopped = service(3001, Stopped(None))(without("kraft")(half()))
    with pytest.raises(NothingToPlan, match="cannot be read") as refused:
        rollback.build(stopped, worlds.playbook(), created=1)
    assert "start controllers [3001] again" in refused.value.next_step


def summary_of(world: World) -> PlanSummary:
    """Of the plan of a rollback of that world, with the answer of `status`."""
    plan = rollback.build(world, worlds.playbook(), created=1)
    return rollback.with_readiness(plan.summary, plan, rollback_readiness(world))


@pytest.mark.slow
def test_a_plan_estimates_the_time_without_a_controller_by_the_size_of_the_logs() -> None:
    """Where the size was not seen it is unknown, and the plan says why; before the copy there is no such time."""
    found = summary_of(half())
    assert found.rollback[0]["controller_gap"] == "about 33 s"
    assert "(estimated: 30 s, and the reading of 300 MB of controllers' metadata logs" in found.reasons[-1]
    unseen = worlds.with_directory(half(), 3001, 0, lambda entry: replace(entry, metadata_log_bytes=-1))
    gap = summary_of(unseen).rollback[0]["controller_gap"]
    assert gap == "unknown: the size of the metadata log of controller 3001 was not seen"


def test_without_the_copies_nothing_is_planned(tmp_path: Path) -> None:
    """Every broker's way must be known to its end before anything is touched; all problems are told at once."""
    cluster = at("hybrid", tmp_path)
    cluster.files = {key: raw for key, raw in cluster.files.items() if "backup" not in key[1]}
    with pytest.raises(RestoreRefused) as caught:
        rollback_plan(cluster)
    assert all(f"broker {node}: no copy of /conf/b{node}.properties" in str(caught.value) for node in (0, 1, 2))


def test_a_file_changed_between_plan_and_apply_is_not_overwritten(tmp_path: Path) -> None:
    """The copy does not lead to it any more, or the plan's hash does not."""
    cluster = at("hybrid", tmp_path / "forward")
    plan = rollback_plan(cluster)
    cluster.files[2, "/conf/b2.properties"] += b"num.io.threads=9\n"
    (tmp_path / "back").mkdir()
    with pytest.raises(PlanIsStale, match=r"b2\.properties of broker 2"):
        run(cluster, plan, tmp_path / "back")
    assert "stop 3001" not in cluster.done
    assert b"num.io.threads=9" in cluster.files[2, "/conf/b2.properties"]


def test_a_plan_of_the_rollback_is_saved_and_read_with_its_direction() -> None:
    """Its fingerprint covers it."""
    plan = rollback.build(half(), worlds.playbook(), created=1)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.kind is PlanKind.ROLLBACK
    assert plan.needs_confirmation
    assert not plan.irreversible
    forward = replace(plan, direction=Direction.FORWARD)
    assert forward.fingerprint != plan.fingerprint


def test_every_step_of_a_rollback_is_rebuilt_from_its_parameters() -> None:
    """As a saved plan does it."""
    for planned in rollback.build(half(), worlds.playbook(), created=1).steps:
        step = rebuild(planned.kind, planned.params)
        assert (step.id, step.stage, step.title) == (planned.id, planned.stage, planned.title)
        assert step.undo
        assert planned.proof


def test_the_end_is_not_proven_while_anything_is_missing() -> None:
    """A flag in a file, a session that is gone, an epoch below KRaft's."""
    step, world = ProveZookeeperMode(), handed_back()
    assert answer(step.verify(world)).startswith("refused: /conf/b0.properties is of migration mode")
    low = replace(world, facts={"rollback:kraft-epoch": "99"})
    assert "KAFKA-20488" in answer(step.verify(low))


@pytest.mark.slow
def test_what_a_rollback_would_wait_for_is_said_before_it_begins() -> None:
    """`status` says NOT READY there: a plan that says READY would be believed at three in the morning."""
    well, sick = (summary_of(world) for world in (half(), broken_disk(1)(half())))
    said = "blocked by: broker 1 /data/b1/d2: input/output error"
    assert [said in one.reasons for one in (well, sick)] == [False, True]
    assert sick.readiness == "NOT READY"
