"""The point of no return: each of its gates alone refuses, and half-way controllers are finished first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.broker_modes import node_mode
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import HalfDone, NotBegun, Predicted
from migrate.model.views import ConfigFile, MigrationZnode, NoFile, NoZnode, NullZnode, Running, Stopped
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import configuration, facts, finalize, gates
from migrate.steps.finalize import FinalizeController, choose
from tests.steps.looks import (
    Bend,
    Remembered,
    answer,
    broken_disk,
    different,
    no_leader,
    registration,
    row_in,
    service,
    silent,
    silent_broker,
    unhealthy,
    voter_behind,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.worlds import CONTROLLERS, OFFSET, config_file, kraft, live, zk

FIRST, SECOND, LAST = (FinalizeController(position, 3) for position in (1, 2, 3))
BEFORE = whole(Stage.SOAK)


def file_of(world: World, node: int) -> ConfigFile:
    """A node's file."""
    found = facts.config(world, node)
    assert isinstance(found, ConfigFile)
    return found


def with_file(world: World, node: int, raw: bytes) -> World:
    """A node's file replaced, its process untouched."""
    assert not isinstance(world.configs, Unknown)
    known = config_file(NodeId(node), file_of(world, node).path, raw)
    return replace(world, configs={**world.configs, NodeId(node): known})


def started(world: World, nodes: Iterable[int] = CONTROLLERS) -> World:
    """Controllers whose processes were started with the files that lie there."""
    for node in nodes:
        world = service(node, Running(1000 + node, 1.0, file_of(world, node).sha256))(world)
    return world


def finalized(world: World, *nodes: int) -> World:
    """Those controllers run without the flag; the others as they were started."""
    for node in nodes:
        world = with_file(world, node, configuration.finalized_controller(file_of(world, node).raw))
    return started(world, nodes)


def led_by(world: World, node: int) -> World:
    """The quorum's leader is that controller."""
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    return worlds.with_live(world, quorum=replace(quorum, leader=NodeId(node)))


# -- the gates of the point of no return ----------------------------------------------------------
def migration(found: MigrationZnode | NoZnode | NullZnode) -> Bend:
    """/migration as that."""
    return lambda world: worlds.with_zk(world, migration=found)


def at(offset: int) -> MigrationZnode:
    """/migration at an offset."""
    return MigrationZnode(offset, 1, 3000, 2, 7)


NO_RETURN: tuple[tuple[str, Bend, str], ...] = (
    ("state", lambda w: worlds.with_kraft(w, migration_state=ZkMigrationState.PRE_MIGRATION), "PRE_MIGRATION"),
    ("finalized by another", lambda w: worlds.with_kraft(w, migration_state=ZkMigrationState.POST_MIGRATION), "POST"),
    ("broker migrating", registration(1, migrating=True), "broker 1"),
    ("broker fenced", registration(1, fenced=True), "broker 1"),
    ("broker's file", lambda w: worlds.with_values(w, 1, process__roles=None), "/conf/b1.properties"),
    ("difference", different, "retention.ms"),
    *((found.value, row_in(found), found.value) for found in ReplicaState if found is not ReplicaState.VERIFIED),
    ("dead disk", broken_disk(1), "/data/b1/d2"),
    ("dual write behind", migration(at(OFFSET - 1)), f"dual write to pass metadata offset {OFFSET}"),
    ("no /migration", migration(NoZnode()), ""),
    ("/migration null", migration(NullZnode(0)), ""),
    ("no leader", no_leader, ""),
    ("voter behind", voter_behind, "3002"),
    ("ISR", unhealthy, "orders-3"),
    ("silent broker", silent_broker, "broker 1"),
    *((f"{part} unseen", without(part), "") for part in ("zookeeper", "kraft", "disks", "live", "configs")),
    ("ledger unseen", without("ledger"), "ledger hidden"),
    ("diff unseen", without("diff"), "diff hidden"),
)


def test_with_everything_in_place_finalize_may_begin() -> None:
    """All of it seen, all of it right."""
    assert FIRST.check(BEFORE) == Ready()


@pytest.mark.parametrize(("bend", "says"), [entry[1:] for entry in NO_RETURN], ids=[entry[0] for entry in NO_RETURN])
def test_each_gate_of_the_point_of_no_return_alone_holds_finalize(bend: Bend, says: str) -> None:
    """Taken away one at a time: a refusal, a wait or Unknown, never a start."""
    found = FIRST.check(bend(BEFORE))
    assert isinstance(found, Refused | NotYet | Unknown)
    assert says in answer(found)


OWN = [entry for entry in NO_RETURN if entry[0] != "disks unseen"]  # the ledger stands for the disks


@pytest.mark.parametrize("bend", [entry[1] for entry in OWN], ids=[entry[0] for entry in OWN])
def test_the_gates_of_no_return_do_not_lean_on_the_checks(bend: Bend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two walls: with every check silent, the step's own gates still hold."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    assert isinstance(FIRST.check(bend(BEFORE)), Refused | NotYet | Unknown)


def test_a_comparison_with_an_open_end_is_no_comparison() -> None:
    """/migration may be far ahead: what counts is the offset at which was compared."""
    later = replace(BEFORE, diff=DiffReport(OFFSET + 9, 0, {"topic": {"EQUAL": 6}}, ()))
    assert "dual write to pass metadata offset 509" in answer(FIRST.check(later))
    assert FIRST.check(migration(at(OFFSET + 1))(BEFORE)) == Ready()


def test_the_first_asks_for_everything_and_the_others_for_the_quorum() -> None:
    """A view that is not asked for is Unknown, and would hold it."""
    others = {Need.LEDGER, Need.COPY, Need.REHEARSAL, Need.LEFTOVERS, Need.ENSEMBLE, Need.LISTENERS}
    others |= {Need.APPLIED, Need.ISSUERS}
    assert FIRST.needs == frozenset(Need) - others
    assert SECOND.needs == LAST.needs == {Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES}


@pytest.mark.parametrize("step", [SECOND, LAST], ids=lambda step: step.id)
def test_later_controllers_wait_for_a_whole_quorum(step: FinalizeController) -> None:
    """One at a time: never under a caught-up majority."""
    for state in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION):
        world = worlds.with_kraft(BEFORE, migration_state=state)
        assert step.check(world) == Ready()
        assert isinstance(step.check(voter_behind(world)), NotYet)
        assert isinstance(step.check(no_leader(world)), NotYet)
    assert isinstance(step.check(worlds.with_kraft(BEFORE, migration_state=ZkMigrationState.NONE)), Refused)
    assert isinstance(step.check(without("kraft")(BEFORE)), Unknown)


def test_controllers_that_an_earlier_run_finalized_count() -> None:
    """For positions that they fill, and only in a cluster that is as it must be."""
    one, two = finalized(started(BEFORE), 3001), finalized(started(BEFORE), 3001, 3002)
    assert SECOND.check(one) == Ready()
    assert isinstance(SECOND.check(two), AlreadyDone)
    assert LAST.check(two) == Ready()
    assert isinstance(SECOND.check(no_leader(two)), NotYet)
    assert isinstance(SECOND.check(without("services")(two)), Unknown)
    assert isinstance(SECOND.check(without("services")(no_leader(two))), NotYet)


@pytest.mark.parametrize("step", [FIRST, SECOND, LAST], ids=lambda step: step.id)
def test_every_controller_waits_for_brokers_that_still_need_zookeeper(step: FinalizeController) -> None:
    """They are the first one's alone; a broker may have been put back into migration mode since."""
    assert isinstance(step.check(registration(1, migrating=True)(BEFORE)), Refused)
    assert answer(finalize._no_broker_needs_zookeeper(without("kraft")(BEFORE))) == "unknown: kraft hidden"


def test_dual_write_that_cannot_be_seen_does_not_keep_up() -> None:
    """Of itself, whatever else is asked."""
    assert answer(finalize._dual_write_keeps_up(without("diff")(BEFORE))) == "unknown: diff hidden"
    assert answer(finalize._dual_write_keeps_up(without("zookeeper")(BEFORE))) == "unknown: zookeeper hidden"


# -- a start file that nobody knows ----------------------------------------------------------------
def started_unknown(world: World, *, flag: bool | None) -> World:
    """3001 has its last file, nobody knows which one it was started with, and it says so of itself (None: silent)."""
    file = configuration.finalized_controller(file_of(world, 3001).raw)
    bent = service(3001, Running(1, 1.0, None))(with_file(started(world), 3001, file))
    found = live(bent).controllers[NodeId(3001)]
    assert not isinstance(found, Unknown)
    told = Unknown("connection refused") if flag is None else replace(found, migration_flag=flag)
    return worlds.with_live(bent, controllers={**live(bent).controllers, NodeId(3001): told})


def test_a_start_file_that_nobody_knows_counts_by_what_the_controller_says_of_itself() -> None:
    """Silent or unseen, it has the flag for all that is known: it is restarted, and nothing irreversible is behind."""
    assert isinstance(FIRST.progress(started_unknown(BEFORE, flag=False)), AlreadyDone)
    assert choose(started_unknown(BEFORE, flag=False)) == 3002
    for world in (
        started_unknown(BEFORE, flag=True),
        started_unknown(BEFORE, flag=None),
        without("live")(started_unknown(BEFORE, flag=False)),
    ):
        assert FIRST.progress(world) == HalfDone("controller 3001 is half way")
        assert not finalize._crossed(world)
    assert choose(started_unknown(BEFORE, flag=True)) == 3001


def test_a_process_that_is_known_to_run_with_another_file_is_half_way_whatever_it_says() -> None:
    """Its hash is asked first: what it answers is asked only where nobody knows the hash."""
    world = written(3001)(started(BEFORE))
    found = live(world).controllers[NodeId(3001)]
    assert not isinstance(found, Unknown)
    told = {**live(world).controllers, NodeId(3001): replace(found, migration_flag=False)}
    bent = worlds.with_live(world, controllers=told)
    assert FIRST.progress(bent) == HalfDone("controller 3001 is half way")


def test_a_file_that_another_hand_took_only_the_flag_out_of_is_not_done() -> None:
    """It still names ZooKeeper: that controller is restarted once more."""
    raw = file_of(BEFORE, 3001).raw.replace(b"zookeeper.metadata.migration.enable=true", b"")
    world = started(with_file(BEFORE, 3001, raw), [3001])
    assert node_mode(file_of(world, 3001).values) == "finalized"
    assert not isinstance(FIRST.progress(world), AlreadyDone)


def test_the_point_of_no_return_is_not_taken_for_passed_unseen() -> None:
    """Else its gates would be asked no more."""
    assert finalize._crossed(finalized(started(BEFORE), 3001))
    for part in ("services", "kraft", "configs"):
        assert not finalize._crossed(without(part)(started(BEFORE))), part


def test_a_registration_of_a_stranger_does_not_pass_the_point_of_no_return() -> None:
    """It ran without the flag once, and is in no inventory: no controller of this cluster has."""
    known = kraft(BEFORE).controllers
    ghost = replace(known[NodeId(3001)], migration_ready=False)
    world = worlds.with_kraft(stopped(3001)(started(BEFORE)), controllers={**known, NodeId(3009): ghost})
    assert FIRST.progress(world) == HalfDone("controller 3001 is half way")
    assert not finalize._crossed(world)
    assert "retention.ms" in answer(FIRST.resume(different(world)))


# -- which one next --------------------------------------------------------------------------------
def stopped(node: int) -> Bend:
    """That controller's process is gone."""
    return service(node, Stopped())


def written(node: int) -> Bend:
    """Its file is changed under the old process."""

    def bend(world: World) -> World:
        old = file_of(world, node)
        changed = with_file(world, node, configuration.finalized_controller(old.raw))
        return service(node, Running(1000 + node, 1.0, old.sha256))(changed)

    return bend


def plain(world: World) -> World:
    """Nothing half way."""
    return world


@pytest.mark.parametrize(
    ("leader", "done", "bend", "next_one"),
    [
        (3000, (), plain, 3001),
        (3001, (), plain, 3000),
        (3000, (3001,), plain, 3002),
        (3001, (3000,), plain, 3002),
        (3000, (3001, 3002), plain, 3000),
        (3002, (3000, 3001), plain, 3002),
        (3001, (3001, 3002), plain, 3000),
        (3000, (), stopped(3000), 3000),
        (3000, (3001,), stopped(3001), 3001),
        (3000, (), written(3002), 3002),
        (3000, (3001,), written(3000), 3000),
        (3000, (3000, 3001, 3002), plain, None),
    ],
)
def test_a_half_done_controller_comes_first_then_followers_and_the_leader_last(
    leader: int, done: tuple[int, ...], bend: Bend, next_one: int | None
) -> None:
    """By id among followers; a leader that is done already is skipped like any other."""
    assert choose(bend(finalized(led_by(started(BEFORE), leader), *done))) == next_one


@pytest.mark.slow
@given(st.sets(st.sampled_from([3000, 3001, 3002])), st.sampled_from([3000, 3001, 3002]))
def test_the_leader_is_chosen_only_when_nobody_else_is_left(done: set[int], leader: int) -> None:
    """For every set of finished controllers and every leader."""
    chosen = choose(finalized(led_by(started(BEFORE), leader), *sorted(done)))
    left = {3000, 3001, 3002} - done
    assert chosen in left or (chosen is None and not left)
    assert chosen != leader or left == {leader}


@pytest.mark.parametrize("bend", [no_leader, without("live"), without("services"), without("configs")])
def test_nobody_is_chosen_blindly(bend: Bend) -> None:
    """Without the leader's name the active controller could be hit first."""
    world = bend(started(BEFORE))
    assert choose(world) is None
    effects = Remembered()
    FIRST.do(world, effects)
    assert effects.done == []


# -- doing and finishing ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("bend", "done"),
    [
        (plain, ["stop 3001", "write 3001 /conf/c3001.properties over", "start 3001"]),
        (stopped(3001), ["write 3001 /conf/c3001.properties over", "start 3001"]),
        (written(3001), ["stop 3001", "start 3001"]),
        (lambda world: stopped(3001)(written(3001)(world)), ["start 3001"]),
    ],
    ids=["not begun", "stopped", "written under the old process", "stopped and written"],
)
def test_only_the_missing_effects_happen(bend: Bend, done: list[str]) -> None:
    """Whatever an interrupted attempt has left."""
    effects = Remembered()
    FIRST.do(bend(started(BEFORE)), effects)
    assert [entry.rsplit(" ", 1)[0] if entry.startswith("write") else entry for entry in effects.done] == done
    if 3001 in effects.written:
        assert node_mode(config_file(NodeId(3001), "", effects.written[3001]).values) == "finalized"


Told = type[NotBegun] | type[HalfDone] | type[AlreadyDone] | type[Unknown]


@pytest.mark.parametrize(
    ("step", "done", "bend", "told"),
    [
        (FIRST, (), plain, NotBegun),
        (FIRST, (), stopped(3001), HalfDone),
        (FIRST, (), written(3001), HalfDone),
        (FIRST, (3001,), plain, AlreadyDone),
        (SECOND, (3001,), plain, NotBegun),
        (SECOND, (3001,), stopped(3002), HalfDone),
        (LAST, (3001, 3002), plain, NotBegun),
        (LAST, (3000, 3001, 3002), plain, AlreadyDone),
        (FIRST, (), without("services"), Unknown),
        (FIRST, (), without("configs"), Unknown),
        (FIRST, (), service(3001, Unknown("no /proc")), Unknown),
    ],
)
def test_progress_is_told_by_files_and_processes(
    step: FinalizeController, done: tuple[int, ...], bend: Bend, told: Told
) -> None:
    """A file alone, or a process alone, is half of it."""
    assert isinstance(step.progress(bend(finalized(started(BEFORE), *done))), told)


def test_a_controller_without_its_file_is_not_seen_as_done() -> None:
    """Nor is it chosen as half done: what it is cannot be said."""
    assert not isinstance(BEFORE.configs, Unknown)
    world = replace(BEFORE, configs={**BEFORE.configs, NodeId(3000): NoFile("/conf/c3000.properties")})
    assert isinstance(FIRST.progress(world), Unknown)
    assert choose(world) is None


# -- proof -----------------------------------------------------------------------------------------
POST = started(worlds.with_kraft(whole(Stage.FINALIZE), source="after"))


@pytest.mark.parametrize(
    ("step", "world", "says"),
    [
        (FIRST, finalized(started(BEFORE), 3001), "verified"),
        (SECOND, finalized(started(BEFORE), 3001), "refused: only 1 of 2 controllers run without the flag: [3001]"),
        (SECOND, finalized(started(BEFORE), 3001, 3002), "verified"),
        (FIRST, voter_behind(finalized(started(BEFORE), 3001)), "notyet: every voter to catch up"),
        (FIRST, no_leader(finalized(started(BEFORE), 3001)), "notyet: a leader"),
        (LAST, finalized(started(BEFORE), 3000, 3001, 3002), "notyet: POST_MIGRATION in the metadata"),
        (LAST, without("kraft")(POST), "notyet: the metadata to be readable"),
        (LAST, POST, "verified"),
        (LAST, stopped(3000)(POST), "refused: controller 3000 does not run"),
        (LAST, voter_behind(POST), "notyet: every voter to catch up"),
        (LAST, without("services")(POST), "unknown"),
    ],
)
def test_the_proof_counts_controllers_and_at_the_end_asks_the_metadata(
    step: FinalizeController, world: World, says: str
) -> None:
    """POST_MIGRATION is due after the last one only."""
    assert says in answer(step.verify(world))


def test_the_proof_names_who_runs_without_the_flag() -> None:
    """In the journal and in the report."""
    found: Outcome = LAST.verify(POST)
    assert isinstance(found, Verified)
    assert "[3000, 3001, 3002]" in found.evidence[0]


# -- planning --------------------------------------------------------------------------------------
def test_the_first_position_binds_and_shows_every_file_and_the_last_promises_them() -> None:
    """Between them the controllers' files change by our own hand."""
    files = {f"config:{int(node)}": file_of(BEFORE, node).sha256 for node in CONTROLLERS}
    assert FIRST.binds(BEFORE, Predicted()) == files
    assert SECOND.binds(BEFORE, Predicted()) == LAST.binds(BEFORE, Predicted()) == {}
    assert [action.symbol for action in FIRST.actions(BEFORE, Predicted())] == ["~", "~", "~", "!"]
    assert [action.symbol for action in LAST.actions(BEFORE, Predicted())] == ["!"]
    removed = FIRST.actions(BEFORE, Predicted())[0].diff
    assert any(line.startswith("-zookeeper.metadata.migration.enable") for line in removed)
    assert FIRST.expects(BEFORE, Predicted()) == SECOND.expects(BEFORE, Predicted()) == {}
    promised = LAST.expects(BEFORE, Predicted())
    assert promised["migration_state:"] == "POST_MIGRATION"
    assert {key: promised[key] for key in files} == facts.observed(POST, files)


def test_prediction_changes_files_after_the_last_position_only() -> None:
    """And then to `finalized`, each of them."""
    assert FIRST.predict(BEFORE, Predicted()) == SECOND.predict(BEFORE, Predicted()) == Predicted()
    assert LAST.predict(BEFORE, Predicted()).modes == dict.fromkeys(CONTROLLERS, "finalized")


def test_a_file_that_cannot_be_read_binds_as_unknown() -> None:
    """And is never equal to what is seen later."""
    assert set(FIRST.binds(without("configs")(BEFORE), Predicted()).values()) == {"unknown"}


def test_a_controller_without_a_file_is_left_out_of_what_is_shown_and_promised() -> None:
    """A plan from before its file was rendered; at its time a gate asks for it."""
    assert not isinstance(BEFORE.configs, Unknown)
    world = replace(BEFORE, configs={**BEFORE.configs, NodeId(3000): NoFile("/conf/c3000.properties")})
    assert [action.symbol for action in FIRST.actions(world, Predicted())] == ["~", "~", "!"]
    assert set(LAST.predict(world, Predicted()).configs) == {3001, 3002}
    assert set(LAST.expects(world, Predicted())) == {"migration_state:", "config:3001", "config:3002"}


def test_what_a_reader_of_the_plan_sees() -> None:
    """Position, and that there is no rollback."""
    assert [step.id for step in (FIRST, SECOND, LAST)] == ["finalize/1-of-3", "finalize/2-of-3", "finalize/3-of-3"]
    assert FIRST.undo.startswith("none")
    assert "2 of 3" in SECOND.title
    assert zk(BEFORE).migration == at(OFFSET)


def test_a_roll_forward_without_readable_metadata_is_unknown() -> None:
    """Every gate is asked, also those behind one that is shut."""
    step = finalize.RollForward(1)
    assert answer(step.check(without("kraft")(POST))) == "unknown: kraft hidden"
    assert step.check(replace(POST, kraft=NOT_ASKED)) == NOT_ASKED
