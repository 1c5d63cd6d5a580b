"""Controllers are formatted for this cluster, started with the flag alone, and waited for until they wait."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import AlreadyDone, Failed, NotYet, Ready, Refused, Unknown, Verified
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NO_ZNODE, HalfDone, NotBegun, Predicted
from migrate.model.views import (
    NOT_THERE,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    MigrationZnode,
    NoFile,
    NoZnode,
    NullZnode,
    Stopped,
)
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.controllers import FormatControllers, FormatVoters, StartControllers, StartVoters
from migrate.steps.registry import rebuild
from tests.checks.bends import pending
from tests.steps.looks import (
    Bend,
    Remembered,
    answer,
    no_leader,
    running,
    service,
    silent,
    unhealthy,
    voter_behind,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID
from tests.testing.worlds import CONTROLLERS, kraft, with_zk

MOVERS = "whoever moves those replicas (kafka-reassign-partitions, Cruise Control)"
FORMAT, START = FormatControllers("3.9"), StartControllers()
RUNNING = whole(Stage.CONTROLLERS)


def stopped(*nodes: int) -> Bend:
    """Those controllers do not run."""

    def bend(world: World) -> World:
        for node in nodes:
            world = service(node, Stopped())(world)
        return world

    return bend


def formatted(meta: MetaProperties | MetaMissing) -> Bend:
    """Controller 3001's metadata directory with that meta.properties."""
    held = isinstance(meta, MetaProperties)
    return lambda world: worlds.with_directory(
        world, 3001, 0, lambda entry: replace(entry, meta=meta, holds_metadata_log=held)
    )


def fresh(world: World) -> World:
    """Prepared: files rendered, nothing formatted, nothing started."""
    world = formatted(MetaMissing())(stopped(*map(int, CONTROLLERS))(world))
    return replace(worlds.with_zk(world, migration=NoZnode()), kraft=Unknown("no controller answers"))


BEFORE = fresh(RUNNING)


# -- format ----------------------------------------------------------------------------------------------------------
def test_an_empty_directory_is_formatted_with_the_clusters_id() -> None:
    """The id that ZooKeeper says, and the brokers' protocol version."""
    effects = Remembered()
    assert FORMAT.check(BEFORE) == Ready()
    assert FORMAT.progress(BEFORE) == HalfDone("2 of 3 are formatted")
    FORMAT.do(BEFORE, effects)
    assert effects.done == [f"format 3001 {CLUSTER_ID} 3.9"]
    assert answer(FORMAT.verify(BEFORE)) == "refused: no meta.properties in the directories of controllers [3001]"


def test_a_directory_formatted_for_this_cluster_and_node_is_done() -> None:
    """meta.properties is written last by Kafka's tool."""
    assert isinstance(FORMAT.check(RUNNING), AlreadyDone)
    assert isinstance(FORMAT.progress(RUNNING), AlreadyDone)
    assert FORMAT.verify(RUNNING) == Verified(("each meta.properties holds this cluster's id and its node id",))


# -- of a dynamic quorum ---------------------------------------------------------------------------------------------
IDS = [f"{number}{'d' * 21}" for number in range(3)]
VOTERS = ",".join(f"{int(node)}@c{node - 3000}:9090:{text}" for node, text in zip(CONTROLLERS, IDS, strict=True))
FORMAT_VOTERS, START_VOTERS = FormatVoters("3.9", VOTERS), StartVoters(VOTERS)


def with_voters(world: World, *lists: str) -> World:
    """Every directory formatted with its own id of `VOTERS`, and with that list of voters."""
    for node, identity in zip(CONTROLLERS, IDS, strict=True):
        meta = MetaProperties(1, CLUSTER_ID, int(node), DirectoryId(identity))
        world = worlds.with_directory(world, int(node), 0, partial(replace, meta=meta, holds_metadata_log=True))
    return replace(world, metadata_logs=MetadataLogs(formatted=dict(zip(CONTROLLERS, lists, strict=False))))


def test_a_voter_is_formatted_with_the_plans_voters_and_has_its_own_directory_id() -> None:
    """Another id would run without a vote, in silence."""
    effects = Remembered()
    FORMAT_VOTERS.do(BEFORE, effects)
    assert effects.done == [f"format 3001 {CLUSTER_ID} 3.9 {VOTERS}"]
    assert isinstance(FORMAT_VOTERS.check(with_voters(BEFORE, VOTERS)), AlreadyDone)
    other = formatted(MetaProperties(1, CLUSTER_ID, 3001, DirectoryId("x" * 21 + "A")))(with_voters(BEFORE, VOTERS))
    assert "and the plan gives it 1ddddd" in answer(FORMAT_VOTERS.check(other))
    assert all(VOTERS in action.what for action in FORMAT_VOTERS.actions(BEFORE, Predicted()))
    assert rebuild(START_VOTERS.kind, START_VOTERS.params()) == START_VOTERS
    assert START_VOTERS.id == START.id


def test_voters_start_only_where_all_were_formatted_with_the_same_list() -> None:
    """Kafka compares nothing; a list that is not there is no list."""
    gate = START_VOTERS.own_gates()[-1].holds
    assert gate(with_voters(BEFORE, VOTERS, VOTERS, VOTERS)) == Ready()
    for lists in ((VOTERS, VOTERS), (VOTERS, VOTERS.replace("0d", "9d"), VOTERS)):
        assert "was formatted with voters" in answer(gate(with_voters(BEFORE, *lists)))
    elsewhere = formatted(MetaProperties(1, CLUSTER_ID, 3001, DirectoryId("x" * 21 + "A")))
    assert "controller 3001 was formatted" in answer(gate(elsewhere(with_voters(BEFORE, VOTERS, VOTERS, VOTERS))))
    assert isinstance(gate(BEFORE), Refused | Unknown)


def test_voters_that_ran_and_ended_are_started_again() -> None:
    """Kafka deletes the list that it was formatted with in time; a directory id is nobody else's."""
    gate, ran = START_VOTERS.own_gates()[-1].holds, MetadataLogs(holders=tuple(map(int, CONTROLLERS)))
    world = replace(with_voters(BEFORE, VOTERS, VOTERS, VOTERS), metadata_logs=ran)
    assert gate(world) == Ready()
    assert gate(replace(world, metadata_logs=replace(ran, formatted=dict.fromkeys(CONTROLLERS, VOTERS)))) == Ready()
    others = replace(ran, formatted=dict.fromkeys(CONTROLLERS, VOTERS.replace("0d", "9d")))
    assert "was formatted with voters" in answer(gate(replace(world, metadata_logs=others)))


def test_a_static_quorum_is_not_started_from_directories_that_hold_voters() -> None:
    """Kafka goes by the log: each would lead a quorum of its own list."""
    gate = START.own_gates()[-1].holds
    assert gate(BEFORE) == Ready()
    said = answer(gate(with_voters(BEFORE, VOTERS)))
    assert "controllers 3000 was formatted for a dynamic quorum" in said
    assert "quorum: dynamic" in said


@pytest.mark.parametrize(("cluster", "node"), [("O" * 22, 3001), (CLUSTER_ID, 3002), (None, 3001), (CLUSTER_ID, None)])
def test_a_foreign_directory_is_neither_formatted_nor_taken(cluster: str | None, node: int | None) -> None:
    """Another cluster's, another node's, or nobody's."""
    world = formatted(MetaProperties(1, cluster, node, None))(BEFORE)
    assert "set it aside" in answer(FORMAT.check(world))
    assert isinstance(FORMAT.verify(world), Refused)
    assert isinstance(FORMAT.resume(world), Refused)


@pytest.mark.parametrize(
    ("meta", "log", "says"),
    [
        (MetaBroken("no cluster.id"), False, "refused: /data/c3001 has a meta.properties that cannot be trusted"),
        (MetaMissing(), True, "refused: /data/c3001 holds a metadata log and no meta.properties"),
    ],
)
def test_a_directory_that_is_neither_empty_nor_formatted_is_refused(
    meta: MetaBroken | MetaMissing, log: bool, says: str
) -> None:
    """A format would make a metadata log of an unknown cluster this cluster's."""
    world = worlds.with_directory(BEFORE, 3001, 0, lambda entry: replace(entry, meta=meta, holds_metadata_log=log))
    assert answer(FORMAT.check(world)).startswith(says)
    assert answer(FORMAT.verify(world)).startswith(says)


@pytest.mark.parametrize("count", [0, 2])
def test_a_controller_with_other_than_one_metadata_directory_is_unknown(count: int) -> None:
    """Which of them Kafka's tool would format is not known."""
    assert not isinstance(BEFORE.disks, Unknown)
    disks = BEFORE.disks[NodeId(3001)]
    assert not isinstance(disks, Unknown)
    bent = replace(disks, directories=disks.directories * count)
    found = FORMAT.check(replace(BEFORE, disks={**BEFORE.disks, NodeId(3001): bent}))
    assert answer(found) == f"unknown: {count} metadata directories of controller 3001 were seen"


def test_a_directory_that_does_not_exist_is_made_before_the_format() -> None:
    """Kafka's tool runs as a user who may not make it."""
    effects = Remembered()
    FORMAT.do(worlds.with_directory(BEFORE, 3001, 0, lambda entry: replace(entry, problem=NOT_THERE)), effects)
    assert effects.done == ["make 3001 /data/c3001", f"format 3001 {CLUSTER_ID} 3.9"]


@pytest.mark.parametrize(
    "bend",
    [
        without("disks"),
        without("zookeeper"),
        lambda world: replace(world, disks={}),
        lambda world: replace(world, disks={**world.disks, NodeId(3001): Unknown("no mount")}),
    ],
)
def test_an_unseen_directory_or_cluster_id_is_unknown(bend: Bend) -> None:
    """Never formatted over."""
    world = bend(BEFORE)
    assert isinstance(FORMAT.check(world), Unknown)
    assert isinstance(FORMAT.progress(world), Unknown)
    assert isinstance(FORMAT.verify(world), Unknown)


@pytest.mark.parametrize("znode", [MigrationZnode(400, 1, 3000, 2, 7), NullZnode(0)], ids=["copied", "null"])
def test_no_controller_is_formatted_or_started_while_migration_remembers_a_past(
    znode: MigrationZnode | NullZnode,
) -> None:
    """A fresh quorum would skip the copy and write its emptiness over ZooKeeper."""
    world = worlds.with_zk(BEFORE, migration=znode)
    for step in (FORMAT, START):
        found = step.check(world)
        assert isinstance(found, Refused), step.id
        assert any(code.startswith("B-ZKN") for code in found.codes)


def test_formatting_is_bound_to_the_file_that_will_lie_there() -> None:
    """Rendered by the step before, or there already."""
    raw = facts.predicted_config(RUNNING, Predicted(), 3001)
    assert raw is not None
    bound = FORMAT.binds(RUNNING, Predicted())
    assert bound.keys() == {"config:3000", "config:3001", "config:3002", "cluster_id:"}
    assert (bound["config:3001"], bound["cluster_id:"]) == (facts.sha256(raw), CLUSTER_ID)
    assessed = whole(Stage.ASSESS)
    assert FORMAT.binds(assessed, Predicted(configs={NodeId(3001): raw}))["config:3001"] == bound["config:3001"]
    assert FORMAT.binds(assessed, Predicted())["config:3001"] == "unknown"
    told = [action.what for action in FORMAT.actions(RUNNING, Predicted())]
    assert len(told) == 3
    assert "--release-version 3.9 (/data/c3001)" in told[1]
    assert FORMAT.id == FORMAT_VOTERS.id == "controllers/format-controllers"
    assert FORMAT.params() == {"release_version": "3.9"}


@pytest.mark.parametrize("bare", [(), (3000,), (3000, 3002), (3000, 3001, 3002)])
def test_only_those_that_are_not_formatted_are_formatted_all_at_once(bare: tuple[int, ...]) -> None:
    """However many an interrupted attempt had formatted."""
    world, effects = RUNNING, Remembered()
    for node in bare:
        bent = partial(replace, meta=MetaMissing(), holds_metadata_log=False)
        world = worlds.with_directory(world, node, 0, bent)
    told = FORMAT.progress(world)
    if not bare:
        assert isinstance(told, AlreadyDone)
        return
    assert told == (NotBegun() if len(bare) == 3 else HalfDone(f"{3 - len(bare)} of 3 are formatted"))
    FORMAT.do(world, effects)
    assert effects.done == [f"format {','.join(map(str, bare))} {CLUSTER_ID} 3.9"]
    assert answer(FORMAT.verify(world)) == f"refused: no meta.properties in the directories of controllers {[*bare]}"


# -- start -----------------------------------------------------------------------------------------------------------
def test_prepared_controllers_may_start() -> None:
    """Formatted, with the flag, on a whole cluster."""
    ready = formatted(MetaProperties(1, CLUSTER_ID, 3001, None))(BEFORE)
    assert START.check(ready) == Ready()


def test_controllers_are_neither_formatted_nor_started_while_replicas_move() -> None:
    """B-ZKN-07, by its owner: the full ISRs that the start waits for come with the end of the move."""
    moving = pending(reassignments=("orders-1",))(unhealthy(BEFORE))
    for step in (FORMAT, START):
        found = step.check(moving)
        assert isinstance(found, NotYet)
        assert (found.what, found.owner) == ("1 partition to end its reassignment: orders-1", MOVERS)
        assert "restart no broker" in found.next_step


def test_controllers_that_all_run_before_the_start_are_held_by_nothing() -> None:
    """They have a leader, so every check can see the metadata; each view that the gates ask for is in `needs`."""
    assert START.check(RUNNING) == Ready()
    assert {Need.METADATA_LOGS, Need.PORTS, Need.LAUNCHES, Need.LIVE, Need.KRAFT} <= START.needs


def test_controllers_with_a_log_of_an_earlier_migration_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state is MIGRATION and /migration is gone: such a log waits for ever, or copies as if brokers were there."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    logs = MetadataLogs((3000,), 9, state=ZkMigrationState.MIGRATION)
    found = START.check(replace(BEFORE, metadata_logs=logs))
    assert isinstance(found, Refused)
    assert "finish the rollback first" in found.reason


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (
            lambda world: worlds.with_values(world, 3002, zookeeper__metadata__migration__enable=None),
            "c3002.properties",
        ),
        (lambda world: worlds.with_values(world, 3002, zookeeper__metadata__migration__enable="false"), "lacks"),
        (lambda world: worlds.with_values(world, 3002, process__roles="broker,controller"), "lacks"),
        (lambda world: replace(world, configs={**world.configs, NodeId(3002): NoFile("/x")}), "cannot be read"),
        (without("configs"), "cannot be read"),
        (unhealthy, "orders-3"),
        (without("live"), "live hidden"),
    ],
)
def test_no_controller_starts_without_the_flag_in_every_file(
    bend: Bend, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without it would finalize by being elected: the gate holds with every check silent, and `do` looks again."""
    world = bend(BEFORE)
    assert isinstance(START.check(world), Refused | NotYet | Unknown)
    monkeypatch.setattr(gates, "no_blockers", silent)
    assert says in answer(START.check(world))


@pytest.mark.parametrize("node", [3000, 3001, 3002])
def test_a_flag_lost_between_check_and_start_starts_nobody(node: int) -> None:
    """Not even those whose file is right."""
    effects = Remembered()
    START.do(worlds.with_values(BEFORE, node, zookeeper__metadata__migration__enable=None), effects)
    START.do(without("configs")(BEFORE), effects)
    assert effects.done == []


@pytest.mark.parametrize(
    ("down", "told", "done"),
    [
        ((3000, 3001, 3002), NotBegun(), ["start 3000", "start 3001", "start 3002"]),
        ((3001,), HalfDone("2 of 3 run"), ["start 3001"]),
        ((), AlreadyDone("all controllers run"), []),
    ],
)
def test_only_those_that_do_not_run_are_started(down: tuple[int, ...], told: object, done: list[str]) -> None:
    """However many an interrupted attempt had started."""
    world, effects = stopped(*down)(RUNNING), Remembered()
    assert START.progress(world) == told
    START.do(world, effects)
    assert effects.done == done


def test_processes_that_cannot_be_seen_are_unknown() -> None:
    """Neither stopped nor running."""
    assert isinstance(START.progress(without("services")(RUNNING)), Unknown)


def lacking(node: int) -> Bend:
    """One controller registered without the flag."""

    def bend(world: World) -> World:
        known = kraft(world).controllers
        bent = replace(known[NodeId(node)], migration_ready=False)
        return worlds.with_kraft(world, controllers={**known, NodeId(node): bent})

    return bend


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (no_leader, "notyet: a leader of the quorum"),
        (voter_behind, "notyet: every voter to catch up"),
        (without("kraft"), "notyet: the metadata to be readable"),
        (lacking(3001), "notyet: controllers [3001] to register with the flag"),
        (
            lambda world: worlds.with_kraft(world, controllers={}),
            "notyet: controllers [3000, 3001, 3002] to register with the flag",
        ),
        (lambda world: worlds.with_zk(world, migration=NoZnode()), "notyet: the migration driver to create /migration"),
        (
            lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.NONE),
            "refused: the metadata says NONE",
        ),
        (
            lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION),
            "refused: the metadata says POST_MIGRATION",
        ),
        (without("live"), "unknown: live hidden"),
    ],
)
def test_each_part_of_a_waiting_quorum_is_waited_for(bend: Bend, says: str) -> None:
    """State NONE is no wait: such controllers cannot migrate."""
    assert answer(START.verify(bend(RUNNING))).startswith(says)
    assert isinstance(START.verify(RUNNING), Verified)


def test_a_controller_that_another_hand_started_alone_is_named_with_what_to_type() -> None:
    """It has no leader, so no check of the metadata could ever be made: the same command would stop for ever."""
    alone = stopped(3001, 3002)(RUNNING)
    found = START.check(replace(alone, kraft=Unknown("knows no leader")))
    assert isinstance(found, NotYet)
    assert found.what.startswith("controller 3000 to stop")
    assert "on c3000: stop controller 3000" in found.next_step


@pytest.mark.parametrize(
    ("down", "said"),
    [
        ((3001,), "controller 3001 does not run (its process on c3001)"),
        (
            (3000, 3002),
            "controller 3000 does not run (its process on c3000); controller 3002 does not run (its process on c3002)",
        ),
    ],
)
def test_a_controller_whose_process_has_ended_is_not_waited_for(down: tuple[int, ...], said: str) -> None:
    """Whatever the quorum says without it; the same command starts it again."""
    for bend in (worlds.with_live, worlds.with_kraft):
        found = START.verify(stopped(*down)(bend(RUNNING)))
        assert isinstance(found, Failed)
        assert found.reason == f"{said}: it ended after the start"
        assert "the same command again" in found.next_step
    assert isinstance(START.verify(without("services")(RUNNING)), Verified), "it answers: nothing else is needed"


def test_a_controller_that_does_not_register_is_told_with_the_cause_and_the_way_out() -> None:
    """Started before the flag stood in its file; what comes by itself is no cause."""
    found = START.verify(running(lacking(3001)(RUNNING), 3001, "0" * 64))
    assert isinstance(found, NotYet)
    assert found.what == (
        "controllers [3001] to register with the flag; S-STUCK-21: 3001: its file has the flag, and its process was "
        "started with another file"
    )
    assert found.next_step == "Restart that controller."
    assert "S-STUCK" not in answer(START.verify(lacking(3001)(RUNNING)))


def test_the_plan_names_each_start_and_the_znode_that_appears() -> None:
    """And promises a waiting quorum, which is what a started one shows."""
    actions = START.actions(with_zk(RUNNING, migration=NoZnode()), Predicted())
    assert [action.symbol for action in actions] == [">", ">", ">", "+"]
    assert actions[-1].znode == "/migration"
    assert (actions[-1].version, actions[-1].before, actions[-1].after) == (None, NO_ZNODE, "no copy yet")
    blind = START.actions(without("zookeeper")(RUNNING), Predicted())[-1]
    assert (blind.version, blind.before) == (None, None)
    there = START.actions(with_zk(RUNNING, migration=NullZnode(3)), Predicted())[-1]
    assert (there.version, there.before) == (3, "no data")
    promised = START.expects(BEFORE, Predicted())
    assert facts.observed(RUNNING, promised) == promised
    assert set(START.binds(RUNNING, Predicted())) == {"config:3000", "config:3001", "config:3002"}
    assert set(START.binds(whole(Stage.ASSESS), Predicted()).values()) == {"unknown"}
