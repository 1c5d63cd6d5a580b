"""What is planned from where, on which predictions; and what makes a plan another plan."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate import checks
from migrate.checks.principals import ACL_AUTHORIZERS
from migrate.errors import MigrateError, NothingToPlan, NotVisible
from migrate.model.broker_modes import Mode
from migrate.model.config_keys import QuorumKind
from migrate.model.detect import CLEANUP_PROVEN, Detected, detect
from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties, Playbook, RollOrder
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan, PlannedStep
from migrate.model.rollback_readiness import Growing, MetadataLogs
from migrate.model.stage import DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, ControllerZnode, MigrationZnode, PartlyRead, Stopped
from migrate.model.world import World
from migrate.plan.build import build, roll_order, steps_of
from migrate.playbook.load import load_playbook
from migrate.report.plan_text import plan_text
from migrate.steps import facts
from migrate.steps.registry import rebuild
from tests.checks.bends import directory
from tests.cli.commands import PLAYBOOK
from tests.run.gated import Gated
from tests.run.test_engine import PLANNED_ON
from tests.steps.looks import Bend, different, registration, running, service, whole, without
from tests.steps.test_finalize import finalized, started
from tests.testing import worlds
from tests.testing.worlds import BROKERS, CONTROLLERS, inventory

LOOKING = ["discover/discover", "assess/assess"]
PREPARE = [
    "prepare/back-up-zookeeper",
    *(f"prepare/back-up-broker-{node}" for node in (0, 1, 2)),
    *(f"prepare/render-controller-{node}" for node in (3000, 3001, 3002)),
]
START = ["controllers/format-controllers", "controllers/start-controllers"]
FIRST = [f"migration-mode/{node}" for node in (0, 1, 2)]
SECOND = ["kraft-mode/0", "kraft-mode/1", "kraft-mode/assign-2", "kraft-mode/2"]
FINAL = [f"finalize/{position}-of-3" for position in (1, 2, 3)]
CLEANUP = ["cleanup/release-zookeeper", "cleanup/prove-final"]
WHOLE = [*PREPARE, *START, *FIRST, "copy/copy", "hybrid/hybrid", *SECOND, "soak/soak", *FINAL, *CLEANUP]


def test_copies_are_removed_only_where_the_playbook_says_so() -> None:
    """Behind what proves that ZooKeeper is not needed, before the last proof."""
    asked = replace(worlds.playbook(), remove_copies=True)
    made = ids(plan(whole(Stage.FINALIZE), playbook=asked))
    assert made[-3:] == ["cleanup/release-zookeeper", "cleanup/remove-copies", "cleanup/prove-final"]


@pytest.mark.slow
def test_a_dynamic_quorum_gets_new_directory_ids_with_each_plan() -> None:
    """Those that were formatted by an earlier plan, and never ran, are kept; other lists are refused."""
    world = whole(Stage.ASSESS)
    dynamic = replace(world, inventory=replace(world.inventory, quorum=QuorumKind.DYNAMIC))
    lists = [step.params["voters"] for _ in range(2) for step in plan(dynamic).steps if "voters" in step.params]
    assert len(lists) == 4
    assert len(set(lists)) == 2
    kept = plan(formatted_with(dynamic, {3000: lists[0]}))
    assert {step.params["voters"] for step in kept.steps if "voters" in step.params} == {lists[0]}
    assert kept.fingerprint == plan(formatted_with(dynamic, {3001: lists[0]})).fingerprint
    for mixed in ({3000: lists[0], 3001: lists[-1]}, {3000: lists[0].replace(":9090", ":9091")}):
        with pytest.raises(NothingToPlan, match="formatted with other voters"):
            plan(formatted_with(dynamic, mixed))


def test_with_formatted_directories_that_cannot_be_read_no_new_ids_are_made() -> None:
    """The new ones would only lead to directories that are set aside."""
    world, formatted = whole(Stage.ASSESS), whole(Stage.CONTROLLERS).disks
    assert not isinstance(world.disks, Unknown)
    assert not isinstance(formatted, Unknown)
    world = replace(world, disks={**world.disks, NodeId(3001): formatted[NodeId(3001)]})
    world = replace(world, inventory=replace(world.inventory, quorum=QuorumKind.DYNAMIC))
    with pytest.raises(NothingToPlan, match=r"controllers \[3001\] were formatted is not known"):
        plan(replace(world, metadata_logs=Unknown("h2 does not answer")))
    assert "controllers/format-controllers" in ids(plan(replace(world, metadata_logs=Growing("it runs"))))


def formatted_with(world: World, voters: Mapping[int, str]) -> World:
    """Directories that were formatted with these voters, and never ran."""
    founding = {NodeId(node): text for node, text in voters.items()}
    return replace(world, metadata_logs=MetadataLogs(formatted=founding))


def plan(world: World, target: Stage = Stage.CLEANUP, *, only: bool = False, playbook: Playbook | None = None) -> Plan:
    """The plan from that world."""
    return build(world, playbook or worlds.playbook(), target=target, only=only, created=1.0)


def ids(found: Plan) -> list[str]:
    """Its steps, by id."""
    return [step.id for step in found.steps]


def step(found: Plan, name: str) -> PlannedStep:
    """One step of it."""
    return next(entry for entry in found.steps if entry.id == name)


# -- what is left --------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "left"),
    [
        (Stage.ASSESS, WHOLE),
        (Stage.PREPARE, [entry for entry in WHOLE if "render" not in entry]),
        (Stage.CONTROLLERS, WHOLE[WHOLE.index(FIRST[0]) :]),
        (Stage.MIGRATION_MODE, WHOLE[WHOLE.index(FIRST[2]) :]),
        (Stage.COPY, WHOLE[WHOLE.index("hybrid/hybrid") :]),
        (Stage.HYBRID, WHOLE[WHOLE.index("hybrid/hybrid") :]),
        (Stage.KRAFT_MODE, WHOLE[WHOLE.index("soak/soak") :]),
        (Stage.SOAK, WHOLE[WHOLE.index("soak/soak") :]),
        (Stage.FINALIZE, CLEANUP),
    ],
)
def test_from_each_stage_what_is_left_is_planned_in_order(stage: Stage, left: list[str]) -> None:
    """Looking comes first, always: where the cluster is was never remembered."""
    assert ids(plan(whole(stage))) == [*LOOKING, *left]


@pytest.mark.slow
@pytest.mark.parametrize("target", Stage)
def test_a_plan_ends_with_its_target(target: Stage) -> None:
    """And needs a confirmation only where it goes beyond the rollback."""
    found = plan(whole(Stage.ASSESS), target)
    assert [entry for entry in ids(found) if entry not in LOOKING] == [
        entry for entry in WHOLE if Stage.from_label(entry.split("/")[0]) <= target
    ]
    assert found.irreversible is (target >= Stage.FINALIZE)
    assert found.target is target


def test_a_half_rolled_second_roll_goes_on_with_the_next_broker() -> None:
    """The one that is in KRaft mode by its file, its process and its registration is left out."""
    assert not isinstance(whole(Stage.COPY).configs, Unknown)
    done = whole(Stage.KRAFT_MODE).configs
    assert not isinstance(done, Unknown)
    bent = registration(0, migrating=False)(whole(Stage.COPY))
    assert not isinstance(bent.configs, Unknown)
    file = done[NodeId(0)]
    assert isinstance(file, ConfigFile)
    half = running(replace(bent, configs={**bent.configs, NodeId(0): file}), 0, file.sha256)
    assert ids(plan(half, Stage.KRAFT_MODE)) == [*LOOKING, *SECOND[1:]]
    assert ids(plan(half, Stage.KRAFT_MODE, only=True)) == SECOND[1:]


def test_a_half_finalized_quorum_goes_on_with_the_next_position() -> None:
    """POST_MIGRATION, one controller with the flag left."""
    world = finalized(started(whole(Stage.SOAK)), 3001, 3002)
    world = worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION)
    assert ids(plan(world)) == [*LOOKING, FINAL[2], *CLEANUP]


def test_only_files_that_lie_there_and_halves_of_a_roll_are_left_out() -> None:
    """A formatted directory is planned all the same: its step finds out when it is time, and says so."""
    formatted = replace(whole(Stage.PREPARE), disks=whole(Stage.CONTROLLERS).disks)
    assert ids(plan(formatted, Stage.CONTROLLERS)) == ids(plan(whole(Stage.PREPARE), Stage.CONTROLLERS))
    assert START[0] in ids(plan(formatted, Stage.CONTROLLERS))


def test_the_playbook_narrows_and_policies_add() -> None:
    """Stages that it leaves out are not planned; each broker has its own policy."""
    narrow = replace(worlds.playbook(), stages=(Stage.ASSESS, Stage.PREPARE, Stage.CONTROLLERS))
    assert ids(plan(whole(Stage.ASSESS), playbook=narrow)) == [*LOOKING, *PREPARE, *START]
    watch = replace(worlds.playbook(), broker_policies={})
    assert [entry.id for entry in steps_of(Stage.KRAFT_MODE, whole(Stage.COPY), watch)] == [
        f"kraft-mode/{node}" for node in (0, 1, 2)
    ]
    drive = replace(watch, default_policy=DirectoryPolicy.DRIVE, broker_policies={NodeId(1): DirectoryPolicy.OBSERVE})
    assert [entry.id for entry in steps_of(Stage.KRAFT_MODE, whole(Stage.COPY), drive)] == [
        "kraft-mode/assign-0",
        "kraft-mode/0",
        "kraft-mode/1",
        "kraft-mode/assign-2",
        "kraft-mode/2",
    ]
    policies = {entry.id: entry.params["policy"] for entry in plan(whole(Stage.COPY)).steps if entry.id in SECOND[:2]}
    assert policies == {"kraft-mode/0": "observe", "kraft-mode/1": "observe"}
    assert step(plan(whole(Stage.COPY)), "kraft-mode/2").params["policy"] == "drive"


@pytest.mark.slow
def test_the_last_broker_of_the_first_roll_is_marked() -> None:
    """Its registration starts the copy."""
    last = [step(plan(whole(Stage.ASSESS)), entry).params["last"] for entry in FIRST]
    assert last == ["no", "no", "yes"]


# -- one stage alone -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("here", "target", "wanted"),
    [
        (Stage.ASSESS, Stage.DISCOVER, LOOKING[:1]),
        (Stage.ASSESS, Stage.ASSESS, LOOKING[1:]),
        (Stage.ASSESS, Stage.PREPARE, PREPARE),
        (Stage.PREPARE, Stage.CONTROLLERS, START),
        (Stage.CONTROLLERS, Stage.MIGRATION_MODE, [*FIRST, "copy/copy"]),  # it starts by itself: who rolls watches it
        (Stage.MIGRATION_MODE, Stage.MIGRATION_MODE, [*FIRST[2:], "copy/copy"]),
        (Stage.COPY, Stage.HYBRID, ["hybrid/hybrid"]),
        (Stage.COPY, Stage.KRAFT_MODE, SECOND),
        (Stage.KRAFT_MODE, Stage.SOAK, ["soak/soak"]),
        (Stage.SOAK, Stage.FINALIZE, ["soak/soak", *FINAL]),  # nobody goes around the soak
        (Stage.FINALIZE, Stage.CLEANUP, CLEANUP),
        (Stage.COPY, Stage.CONTROLLERS, []),
        (Stage.FINALIZE, Stage.KRAFT_MODE, []),
    ],
)
def test_one_stage_alone_is_planned_when_it_is_the_next(here: Stage, target: Stage, wanted: list[str]) -> None:
    """A stage that is complete has nothing left."""
    assert ids(plan(whole(here), target, only=True)) == wanted


def test_after_its_proven_end_nothing_is_planned_but_what_is_asked_for_by_name() -> None:
    """ZooKeeper is stopped by then: no step could look at it, and nothing of the migration is left."""
    over = replace(whole(Stage.FINALIZE), facts={CLEANUP_PROVEN: "run 3f2a9c01"}, zookeeper=Unknown("stopped"))
    made = plan(over)
    text = plan_text(made)
    assert made.steps == ()
    assert "Next:        nothing: everything up to this plan's target is done" in text
    assert "No return:   passed" in text
    assert "kraft-migrate apply" not in text
    assert ids(plan(over, only=True)) == CLEANUP


@pytest.mark.parametrize(
    ("here", "target", "first"),
    [
        (Stage.ASSESS, Stage.MIGRATION_MODE, "controllers"),
        (Stage.ASSESS, Stage.FINALIZE, "controllers"),
        (Stage.CONTROLLERS, Stage.KRAFT_MODE, "migration-mode"),
        (Stage.MIGRATION_MODE, Stage.HYBRID, "migration-mode"),
        (Stage.COPY, Stage.SOAK, "kraft-mode"),
        (Stage.COPY, Stage.FINALIZE, "kraft-mode"),
        (Stage.SOAK, Stage.CLEANUP, "finalize"),
    ],
)
def test_a_stage_is_refused_before_the_ones_that_it_needs(here: Stage, target: Stage, first: str) -> None:
    """The refusal says the stage of the cluster, and what comes first."""
    with pytest.raises(NothingToPlan) as caught:
        plan(whole(here), target, only=True)
    assert caught.value.exit_code == 3
    assert first in caught.value.next_step
    assert f"stage {target.label} cannot be planned" in str(caught.value)


@pytest.mark.parametrize(
    ("world", "error"),
    [
        (without("kraft")(without("zookeeper")(whole(Stage.COPY))), NotVisible),
        (without("kraft")(whole(Stage.COPY)), NothingToPlan),
        (worlds.with_kraft(whole(Stage.CONTROLLERS), migration_state=ZkMigrationState.NONE), NothingToPlan),
    ],
    ids=["nothing seen", "no metadata after the copy", "no flag"],
)
def test_nothing_is_planned_from_an_unknown_place(world: World, error: type[MigrateError]) -> None:
    """With the reason why it is unknown."""
    found = detect(world)
    assert isinstance(found, Unknown)
    with pytest.raises(error) as caught:
        plan(world)
    assert found.reason in str(caught.value)


def test_what_blocks_is_named_where_the_place_is_unknown() -> None:
    """A left-over /migration looks like controllers that do not answer: the refusal tells the danger and its mend."""
    stale = MigrationZnode(offset=5, epoch=0, controller_id=3000, controller_epoch=1, version=0)
    with pytest.raises(NothingToPlan) as caught:
        plan(worlds.with_zk(without("kraft")(whole(Stage.ASSESS)), migration=stale))
    assert "B-ZKN-01 /migration" in caught.value.why
    assert "delete /migration" in caught.value.next_step


def test_only_blockers_are_named_as_what_blocks() -> None:
    """A warning is no cause of an unknown place; with none there is nothing to repair first."""
    state_none = worlds.with_kraft(whole(Stage.CONTROLLERS), migration_state=ZkMigrationState.NONE)
    warned = directory(1, 0, oddities=("link, not followed: x",))(state_none)
    assert "W-DIR-18" in {entry.code for entry in checks.run(warned, target=Stage.CONTROLLERS)}
    with pytest.raises(NothingToPlan) as caught:
        plan(warned)
    assert "W-DIR-18" not in caught.value.why


@pytest.mark.parametrize("migration", [MigrationZnode(5, 0, 3000, 1, 0), Unknown("malformed")])
def test_a_tree_that_is_read_in_part_is_no_store_that_is_invisible(migration: object) -> None:
    """What is malformed in it is named, and how to repair it."""
    world = without("kraft")(worlds.with_zk(whole(Stage.ASSESS), migration=migration))
    part = PartlyRead("1 znode is malformed", worlds.zk(world))
    with pytest.raises(NothingToPlan):
        plan(replace(world, zookeeper=part))
    with pytest.raises(NothingToPlan):
        plan(world)
    with pytest.raises(NotVisible):
        plan(without("zookeeper")(world))


def test_one_unreadable_store_of_two_is_no_incomplete_cluster() -> None:
    """The metadata says where it is, and it is not known from there: ZooKeeper alone is missed."""
    world = worlds.with_kraft(whole(Stage.CONTROLLERS), migration_state=ZkMigrationState.NONE)
    with pytest.raises(NothingToPlan):
        plan(without("zookeeper")(world))


# -- what a playbook adds --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_canary_is_watched_behind_the_first_broker_of_each_roll() -> None:
    """Where another broker follows it, and the playbook says how long."""
    watched = replace(worlds.playbook(), canary_soak=60.0)
    made = [name for name in ids(plan(whole(Stage.ASSESS), playbook=watched)) if name not in (*LOOKING, *WHOLE)]
    canaries = [name for name in ids(plan(whole(Stage.ASSESS), playbook=watched)) if name in made]
    assert len(canaries) == 2
    order = ids(plan(whole(Stage.ASSESS), playbook=watched))
    assert [order[order.index(name) - 1] for name in canaries] == ["migration-mode/0", "kraft-mode/0"]
    last = ids(plan(whole(Stage.MIGRATION_MODE), Stage.MIGRATION_MODE, playbook=watched))
    assert last == [*LOOKING, "migration-mode/2"]


def finalized_by_accident() -> World:
    """The metadata is finalized; brokers 0 to 2 still run in migration mode."""
    return worlds.with_kraft(whole(Stage.COPY), migration_state=ZkMigrationState.POST_MIGRATION)


def test_brokers_that_a_finalize_overtook_are_rolled_forward() -> None:
    """By a step of their own: there is no dual write left to compare, and none to soak in."""
    made = plan(finalized_by_accident())
    forward = [entry.id for entry in made.steps if entry.kind == "roll-forward"]
    assert len(forward) == 3
    assert "soak/soak" not in ids(made)
    assert not {"roll-to-kraft", "soak"} & {entry.kind for entry in made.steps}


def test_without_a_soak_in_the_playbook_finalize_is_planned_alone() -> None:
    """With one, nobody goes around it."""
    stages = tuple(stage for stage in worlds.playbook().stages if stage is not Stage.SOAK)
    bare = replace(worlds.playbook(), stages=stages)
    assert ids(plan(whole(Stage.SOAK), Stage.FINALIZE, only=True, playbook=bare)) == FINAL
    assert ids(plan(whole(Stage.SOAK), Stage.FINALIZE, only=True)) == ["soak/soak", *FINAL]


# -- what must be finished first -------------------------------------------------------------------------------------
def test_a_half_done_rollback_is_finished_before_anything_is_planned_forward() -> None:
    """The old quorum would be started again, and wait for ever."""
    logs = MetadataLogs((3000,), 9, state=ZkMigrationState.MIGRATION)
    with pytest.raises(NothingToPlan) as caught:
        plan(replace(whole(Stage.ASSESS), metadata_logs=logs))
    assert "/migration is absent" in str(caught.value)
    assert "rollback plan" in caught.value.next_step


@pytest.mark.parametrize("runs", [True, False])
def test_a_file_of_kraft_mode_before_the_copy_is_put_back_first(runs: bool) -> None:
    """A broker that starts with it has no topics: the controllers know none yet."""
    kraft_file = whole(Stage.KRAFT_MODE).configs
    world = whole(Stage.CONTROLLERS)
    assert not isinstance(kraft_file, Unknown)
    assert not isinstance(world.configs, Unknown)
    bent = replace(world, configs={**world.configs, NodeId(1): kraft_file[NodeId(1)]})
    with pytest.raises(NothingToPlan, match="KRaft mode") as caught:
        plan(bent if runs else service(1, Stopped())(bent))
    assert "put the files of ZooKeeper mode back" in caught.value.next_step
    assert plan(whole(Stage.CONTROLLERS)).steps


# -- predictions ---------------------------------------------------------------------------------------------------
def test_controllers_files_of_an_earlier_plan_are_named_before_the_next() -> None:
    """After `controllers.properties` were corrected: the run would stop at each, and write none."""
    world = worlds.world_at(Stage.PREPARE)
    added = AddedProperties("", {"metadata.max.retention.ms": "7"})
    asked = replace(world, inventory=replace(world.inventory, controller_properties=added))
    with pytest.raises(NothingToPlan, match=r"/conf/c3002\.properties exists with other content \(") as caught:
        plan(asked, Stage.CONTROLLERS)
    assert "metadata.max.retention.ms is missing, to be 7" in str(caught.value)
    with pytest.raises(NothingToPlan, match=r"/conf/c3002\.properties exists with other content \("):
        plan(asked, Stage.CONTROLLERS, only=True)
    assert "move the file away" in caught.value.next_step
    later = plan(replace(worlds.world_at(Stage.CONTROLLERS), inventory=asked.inventory), Stage.HYBRID)
    (told,) = [entry for entry in later.findings if entry.code == "W-CFG-16"]
    assert "is missing, the inventory's controllers.properties have 7" in told.message


def test_predicted_files_chain_from_step_to_step() -> None:
    """Each binds to what the one before it leaves, long before any of it lies there."""
    found = plan(whole(Stage.ASSESS))
    for node in map(int, BROKERS):
        first, second = step(found, f"migration-mode/{node}"), step(found, f"kraft-mode/{node}")
        assert second.binds[f"config:{node}"] == first.expects[f"config:{node}"] != first.binds[f"config:{node}"]
    for node in map(int, CONTROLLERS):
        rendered = step(found, f"prepare/render-controller-{node}").expects[f"config:{node}"]
        assert step(found, "controllers/format-controllers").binds[f"config:{node}"] == rendered
        assert step(found, "controllers/start-controllers").binds[f"config:{node}"] == rendered
        assert step(found, FINAL[0]).binds[f"config:{node}"] == rendered
        assert step(found, FINAL[2]).expects[f"config:{node}"] != rendered


@pytest.mark.parametrize(
    ("name", "before"),
    [(FIRST[0], Stage.CONTROLLERS), (SECOND[1], Stage.COPY), (FINAL[0], Stage.SOAK), (START[1], Stage.PREPARE)],
)
def test_what_is_predicted_is_what_is_planned_when_the_time_has_come(name: str, before: Stage) -> None:
    """Binds and promises equal those of a plan made just before: no plan goes stale by itself."""
    early, late = step(plan(whole(Stage.ASSESS)), name), step(plan(whole(before)), name)
    assert early == late


@pytest.mark.slow
def test_binds_of_each_first_step_hold_in_the_world_that_it_was_planned_on() -> None:
    """Nothing is stale from the start."""
    for stage in (Stage.ASSESS, Stage.CONTROLLERS, Stage.COPY, Stage.SOAK):
        first = next(entry for entry in plan(whole(stage)).steps if entry.stage > Stage.ASSESS)
        assert facts.observed(whole(stage), first.binds) == dict(first.binds), first.id


def test_planned_steps_can_be_rebuilt() -> None:
    """The saved plan is all that apply has."""
    for entry in plan(whole(Stage.ASSESS)).steps:
        assert rebuild(entry.kind, entry.params).id == entry.id


# -- the fingerprint -----------------------------------------------------------------------------------------------
def other_leaders(world: World) -> World:
    """Leaders, epochs and ISR order moved, as they do by themselves."""
    assert not isinstance(world.zookeeper, Unknown)
    rows = world.zookeeper.partitions
    moved = replace(rows, leader=[2] * len(rows), leader_epoch=[9] * len(rows), isr=[ids[::-1] for ids in rows.isr])
    return worlds.with_zk(world, partitions=moved, zxid_last=99)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bend",
    [
        other_leaders,
        lambda world: worlds.with_folder(world, 1, 0, ("new", 0, "N" * 22, "current")),
        lambda world: worlds.with_entity(world, "topic-config", "t0", "retention.ms", "1"),
        lambda world: worlds.with_live(world, brokers={}),
        lambda world: replace(world, facts={"backup:zookeeper": "x"}),
    ],
    ids=["leaders", "folder", "config", "answers", "facts"],
)
def test_what_moves_by_itself_makes_no_other_plan(bend: Bend) -> None:
    """The fingerprint stays, the summary may change."""
    assert plan(bend(whole(Stage.ASSESS))).fingerprint == plan(whole(Stage.ASSESS)).fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    "bend",
    [
        lambda world: worlds.with_zk(world, cluster_id="O" * 22),
        lambda world: with_raw(world, 1, b"num.io.threads=9\n"),
        lambda world: with_raw(world, 1, b"log.dirs=/data/elsewhere\n"),
        lambda world: replace(world, inventory=replace(inventory(), brokers=inventory().brokers[:2])),
        lambda world: replace(world, inventory=replace(inventory(), controllers=inventory().controllers[:1])),
        lambda world: replace(world, inventory=replace(inventory(), controller_listener="QUORUM")),
    ],
    ids=["cluster", "file", "directories", "brokers", "controllers", "listener"],
)
def test_what_decides_actions_makes_another_plan(bend: Bend) -> None:
    """Ids, files, directories, nodes."""
    assert plan(bend(whole(Stage.ASSESS))).fingerprint != plan(whole(Stage.ASSESS)).fingerprint


def with_raw(world: World, node: int, more: bytes) -> World:
    """A broker's file with more lines."""
    assert not isinstance(world.configs, Unknown)
    raw = facts.predicted_config(world, Predicted(), node)
    assert raw is not None
    file = worlds.config_file(NodeId(node), f"/conf/b{node}.properties", raw + more)
    return replace(world, configs={**world.configs, NodeId(node): file})


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sampled_from(Stage), st.sampled_from(Stage), st.booleans())
def test_a_plan_is_a_function_of_world_and_playbook(here: Stage, target: Stage, only: bool) -> None:
    """The same twice, whatever the hour; and never a step of a stage that is complete."""
    try:
        one = plan(whole(here), target, only=only)
    except NothingToPlan:
        return
    two = build(whole(here), worlds.playbook(), target=target, only=only, created=2.0)
    assert (one.fingerprint, one.steps) == (two.fingerprint, two.steps)
    stands = detect(whole(here))
    assert isinstance(stands, Detected)
    assert all(entry.stage > stands.stage or entry.stage <= Stage.ASSESS for entry in one.steps)


# -- findings and summary ------------------------------------------------------------------------------------------
def test_findings_are_those_of_the_first_change() -> None:
    """Blockers of it first."""
    bent = worlds.with_values(whole(Stage.ASSESS), 1, broker__id="9")
    assert plan(bent).findings[0].code == "B-CFG-07"
    assert not [entry for entry in plan(whole(Stage.ASSESS)).findings if entry.code.startswith("B-")]


def test_a_blocker_is_planned_and_told_never_hidden() -> None:
    """The plan shows what would be; apply refuses to begin."""
    found = plan(different(whole(Stage.COPY)))
    assert ids(found) == ids(plan(whole(Stage.COPY)))
    assert [entry.code for entry in found.findings if entry.code == "B-MIG-06"]


def test_the_plan_names_what_it_is_bound_to() -> None:
    """Cluster, playbook and inventory."""
    found = plan(whole(Stage.ASSESS))
    assert (found.cluster, found.change, found.playbook_sha256) == ("lab", "CHG1", "0" * 64)
    assert (found.playbook, found.inventory, found.created) == ("/lab/playbook.yaml", "/lab/inventory.yaml", 1.0)
    assert found.summary.detected.startswith("assess (3 brokers in ZooKeeper mode")
    assert ACL_AUTHORIZERS[0] in "".join(
        line for entry in found.steps for action in entry.actions for line in action.diff
    )


CANARY = replace(worlds.playbook(), roll_order=RollOrder.CANARY_FIRST)
MIGRATION, KRAFT = Mode.MIGRATION, Mode.KRAFT


def led(world: World, leaders: Mapping[int, int]) -> World:
    """That world, with so many partitions led by each broker."""
    view = worlds.zk(world)
    columns = view.partitions
    names = list(itertools.chain.from_iterable([broker] * count for broker, count in leaders.items()))
    assert len(names) == len(columns)
    return worlds.with_zk(world, partitions=replace(columns, leader=type(columns.leader)(names)))


def controlled(world: World, broker: int) -> World:
    """That world, with this broker as ZooKeeper's controller."""
    return worlds.with_zk(world, controller=ControllerZnode(broker, -1, True, 0))


def racked(world: World, racks: Mapping[int, str]) -> World:
    """That world, with each broker in its rack."""
    brokers = tuple(replace(node, rack=racks[int(node.id)]) for node in world.inventory.brokers)
    return replace(world, inventory=replace(world.inventory, brokers=brokers))


def test_without_a_request_it_is_the_inventorys_order() -> None:
    """Whoever leads, whoever controls."""
    world = led(controlled(whole(Stage.ASSESS), 0), {2: 0, 1: 1, 0: 5})
    assert roll_order(world, worlds.playbook(), MIGRATION) == [0, 1, 2]


@pytest.mark.parametrize(
    ("leaders", "controller", "order"),
    [
        ({0: 3, 1: 1, 2: 2}, 0, [1, 2, 0]),
        ({0: 1, 1: 3, 2: 2}, 0, [2, 1, 0]),
        ({0: 2, 1: 2, 2: 2}, 1, [0, 2, 1]),
        ({0: 0, 1: 3, 2: 3}, 2, [0, 1, 2]),
        ({0: 3, 1: 3, 2: 0}, 2, [0, 1, 2]),
    ],
    ids=str,
)
def test_the_one_with_the_fewest_leaders_is_the_canary_and_the_controller_is_last(
    leaders: Mapping[int, int], controller: int, order: list[int]
) -> None:
    """The controller is no canary, however little it leads."""
    world = led(controlled(whole(Stage.ASSESS), controller), leaders)
    assert roll_order(world, CANARY, MIGRATION) == order


@pytest.mark.parametrize(
    ("racks", "order"),
    [
        ({0: "b", 1: "a", 2: "b"}, [2, 0, 1]),
        ({0: "a", 1: "b", 2: "b"}, [2, 1, 0]),
        ({0: "b", 1: "a", 2: "c"}, [2, 1, 0]),
    ],
    ids=str,
)
def test_a_rack_is_finished_before_the_next_one(racks: Mapping[int, str], order: list[int]) -> None:
    """The canary's own rack first; one rack at a time has restarts in it."""
    world = led(racked(controlled(whole(Stage.ASSESS), 9), racks), {0: 2, 1: 3, 2: 1})
    assert roll_order(world, CANARY, MIGRATION) == order


def test_every_broker_is_rolled_once_whatever_the_cluster_is_like() -> None:
    """Over all numbers of leaders, controllers and racks."""
    for one, two, controller in itertools.product(range(7), range(7), (0, 1, 2, 9)):
        if one + two > 6:
            continue
        world = led(controlled(whole(Stage.ASSESS), controller), {0: one, 1: two, 2: 6 - one - two})
        for racks in ({0: "a", 1: "a", 2: "b"}, {0: "a", 1: "b", 2: "a"}):
            order = roll_order(racked(world, racks), CANARY, MIGRATION)
            assert sorted(order) == [0, 1, 2]
            assert controller == 9 or order[-1] == controller


def test_who_leads_is_unknown_then_it_stays_the_inventorys() -> None:
    """A guess would be no canary."""
    blind = replace(whole(Stage.ASSESS), zookeeper=Unknown("no answer"), kraft=Unknown("no answer"))
    assert roll_order(blind, CANARY, MIGRATION) == [0, 1, 2]


def test_what_is_done_stands_before_what_is_to_be_done() -> None:
    """A roll that is planned anew ends with a broker that it restarts: the copy begins with the last one."""
    before, after = whole(Stage.HYBRID).configs, whole(Stage.SOAK).configs
    assert not isinstance(before, Unknown)
    assert not isinstance(after, Unknown)
    world = controlled(whole(Stage.HYBRID), 9)
    for done in ((), (2,), (1, 2), (0, 1, 2)):
        files = {node: after[node] if int(node) in done else file for node, file in before.items()}
        rolled = replace(world, configs=files)
        for node in done:
            file = files[NodeId(node)]
            assert isinstance(file, ConfigFile)
            rolled = running(rolled, node, file.sha256)
        order = roll_order(rolled, CANARY, KRAFT)
        assert order[: len(done)] == list(done)
        assert sorted(order) == [0, 1, 2]


def test_the_plan_has_the_order_in_both_rolls_and_the_copy_behind_its_last_broker() -> None:
    """The last one's registration starts the copy; what drives a broker stands before it."""
    world = led(controlled(whole(Stage.ASSESS), 0), {0: 3, 1: 1, 2: 2})
    plan = build(world, CANARY, target=Stage.KRAFT_MODE, only=False, created=1.0)
    rolls = [step for step in plan.steps if "broker" in step.params and step.stage >= Stage.MIGRATION_MODE]
    assert [step.id for step in rolls if step.stage is Stage.MIGRATION_MODE] == [
        f"migration-mode/{broker}" for broker in (1, 2, 0)
    ]
    assert [step.params["last"] for step in rolls if step.stage is Stage.MIGRATION_MODE] == ["no", "no", "yes"]
    assert [step.id for step in rolls if step.stage is Stage.KRAFT_MODE] == [
        "kraft-mode/1",
        "kraft-mode/assign-2",
        "kraft-mode/2",
        "kraft-mode/0",
    ]
    assert CANARY.policy(2) is DirectoryPolicy.DRIVE


@pytest.mark.slow
def test_a_run_follows_it_to_the_end(tmp_path: Path) -> None:
    """On the cluster in memory, both rolls."""
    run = Gated(tmp_path, CANARY)
    order = roll_order(run.cluster.observe(PLANNED_ON, {}), CANARY, MIGRATION)
    run.session()
    assert run.stopped() == [str(broker) for broker in (*order, *order)]


@pytest.mark.parametrize("word", ["inventory", "canary-first"])
def test_the_playbook_says_it(word: str, tmp_path: Path) -> None:
    """And nothing else."""
    text = PLAYBOOK.replace("  stages:\n", f"    rollout: {{order: {word}}}\n  stages:\n    - name: assess\n")
    path = tmp_path / "playbook.yaml"
    path.write_text(text)
    found: Playbook = load_playbook(path)
    assert found.roll_order is RollOrder(word)


@pytest.mark.slow
def test_the_order_of_a_roll_has_a_reason_for_each_broker() -> None:
    """The one with the fewest leaders first, ZooKeeper mode's controller last; the inventory's order says so."""
    world = whole(Stage.ASSESS)
    rows = build(world, CANARY, target=Stage.CLEANUP, only=False, created=1.0).summary.order
    assert [int(row["broker"]) for row in rows] == roll_order(world, CANARY, KRAFT)
    assert rows[0]["why"].startswith("first: it leads the fewest")
    assert rows[-1]["why"].startswith("last: it is the controller")
    listed = build(world, worlds.playbook(), target=Stage.CLEANUP, only=False, created=1.0).summary.order
    assert {row["why"] for row in listed} == {"the inventory's order"}
