"""Each gate of the rollback holds in the world it is made for, and says what is wrong in every other."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from migrate.model.causes import LOST_LOGS, cause_of
from migrate.model.difference import (
    Difference,
    DifferenceClass,
    DifferenceName,
    DiffReport,
    names_from_text,
    names_to_text,
)
from migrate.model.ids import NodeId
from migrate.model.outcome import Awaited, Readiness, Ready, Unknown, Verified
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerZnode, MigrationZnode, NodeAnswer, NoZnode, PartitionHealth, Stopped
from migrate.model.world import Need, World
from migrate.observe.analysis import with_diff
from migrate.steps.rollback import gates
from migrate.steps.rollback.control import FinishDualWrite
from tests.checks.bends import kraft_has, unit_of
from tests.run.test_rollback import at
from tests.steps.looks import answer, running, service, whole, without
from tests.testing.simulated_back import MADE_LATE, TwoWay
from tests.testing.worlds import kraft, live, with_kraft, with_live, with_zk, zk

ALL = frozenset(Need) - {Need.SPARK_LEDGER}
Bend = Callable[[World], World]
ONLY_ZK, ONLY_KRAFT = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT


@cache
def taken(entry: str) -> TwoWay:
    """A cluster that was migrated that far."""
    with TemporaryDirectory() as folder:
        return at(entry, Path(folder))


def hybrid() -> World:
    """Controllers up, all brokers in migration mode."""
    return deepcopy(taken("hybrid")).observe(ALL, {})


def handed_back() -> World:
    """Controllers stopped, /controller a broker's again, every broker knows."""
    cluster = deepcopy(taken("hybrid"))
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    view = cluster.observe(ALL, {})
    assert isinstance(zk(view).controller, ControllerZnode)
    cluster.delete("/controller", zk(view).controller.version)  # type: ignore[union-attr]
    cluster.delete("/migration", zk(view).migration.version)  # type: ignore[union-attr]
    for _ in range(3):
        cluster.observe(ALL, {})
    return cluster.observe(ALL, {})


def controller_answer(node: int, value: NodeAnswer | Unknown) -> Bend:
    """What one controller says of itself."""
    return lambda world: with_live(world, controllers={**live(world).controllers, NodeId(node): value})


def named(broker: int, ids: tuple[int, ...]) -> Bend:
    """Whom one broker names."""

    def bend(world: World) -> World:
        said = live(world).metadata[NodeId(broker)]
        assert not isinstance(said, Unknown)
        said = replace(said, controller_ids=ids)
        return with_live(world, metadata={**live(world).metadata, NodeId(broker): said})

    return bend


def syncing(world: World) -> World:
    """The leader has claimed dual write, and has written nothing of its epoch."""
    znode = zk(world).migration
    assert isinstance(znode, MigrationZnode)
    epoch = kraft(world).epoch
    late = replace(znode, epoch=epoch - 1, controller_epoch=epoch, offset=kraft(world).offset - 9)
    return with_zk(world, migration=late)


def sick(*found: PartitionHealth) -> Bend:
    """What every broker says is not whole."""
    return lambda world: with_live(
        world,
        metadata={
            node: said if isinstance(said, Unknown) else replace(said, unhealthy=found)
            for node, said in live(world).metadata.items()
        },
    )


FLAGLESS = NodeAnswer(migration_flag=False, finalized_features={})


@pytest.mark.parametrize(
    ("gate", "made"),
    [
        (gates.not_finalized, hybrid),
        (gates.quorum_leads, hybrid),
        (lambda world: gates.zookeeper_equal(world, ()), hybrid),
        (gates.controllers_gone, handed_back),
        (gates.zookeeper_controls, handed_back),
        (gates.controller_named, handed_back),
        (lambda world: gates.session_ended(world, 1), handed_back),
        (lambda world: gates.whole_before(world, 1), handed_back),
        (lambda world: gates.whole_after(world, 1), handed_back),
    ],
)
def test_every_gate_is_open_in_the_world_it_is_made_for(
    gate: Callable[[World], Readiness], made: Callable[[], World]
) -> None:
    """Nothing is wrong there."""
    assert gate(made()) == Ready()


@pytest.mark.parametrize(
    ("gate", "bend", "says"),
    [
        (
            gates.not_finalized,
            lambda world: with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION),
            "refused: the metadata says POST_MIGRATION",
        ),
        (gates.not_finalized, controller_answer(3001, FLAGLESS), "refused: controllers [3001] run without"),
        (gates.not_finalized, without("live"), "unknown: live hidden"),
        (
            lambda world: gates.zookeeper_equal(world, ()),
            lambda world: kraft_has("client-metrics-config", "sub")(syncing(world)),
            "refused: client-metrics-config sub: Kafka 3.9 cannot write it",
        ),
        (lambda world: gates.zookeeper_equal(world, ()), syncing, "notyet: dual write to reach the committed"),
        (gates.quorum_leads, controller_answer(3001, FLAGLESS), "refused: controllers [3001] run without"),
        (
            gates.quorum_leads,
            lambda world: with_live(world, quorum=Unknown("nobody")),
            "notyet: a leader of the quorum",
        ),
        (gates.quorum_leads, without("live"), "unknown: live hidden"),
        (
            gates.quorum_leads,
            lambda world: controller_answer(3001, Unknown("x"))(controller_answer(3002, Unknown("x"))(world)),
            "notyet: a majority of the controllers",
        ),
        (
            lambda world: gates.zookeeper_equal(world, ()),
            lambda world: with_zk(world, migration=MigrationZnode(499, 1, 3000, 1, 1)),
            "notyet: dual write to reach the committed metadata (/migration is at metadata offset 499)",
        ),
        (
            lambda world: gates.zookeeper_equal(world, ()),
            without("kraft"),
            "notyet: the metadata to be readable",
        ),
        (lambda world: gates.zookeeper_equal(world, ()), without("zookeeper"), "unknown: zookeeper hidden"),
        (
            lambda world: gates.zookeeper_equal(world, ()),
            without("diff"),
            "unknown: ZooKeeper was not compared with the metadata: diff hidden",
        ),
        (gates.controllers_gone, lambda world: world, "refused: controllers [3000, 3001, 3002] run"),
        (gates.controllers_gone, service(3000, Unknown("no rights")), "unknown: no rights"),
        (gates.controllers_gone, without("services"), "unknown: services hidden"),
        (gates.zookeeper_controls, lambda world: world, "refused: /migration is still there"),
        (
            gates.zookeeper_controls,
            lambda world: with_zk(world, migration=NoZnode()),
            "refused: /controller still belongs to a KRaft controller",
        ),
    ],
)
def test_in_hybrid(gate: Callable[[World], Readiness], bend: Bend, says: str) -> None:
    """What each gate says of something wrong there."""
    assert answer(gate(bend(hybrid()))).startswith(says)


@pytest.mark.parametrize(
    ("gate", "bend", "says"),
    [
        (gates.controllers_gone, controller_answer(3000, FLAGLESS), "refused: controllers [3000] answer, though"),
        (
            gates.zookeeper_controls,
            lambda world: with_zk(world, controller=NoZnode()),
            "notyet: a broker to claim /controller",
        ),
        (
            gates.zookeeper_controls,
            lambda world: with_zk(world, controller=ControllerZnode(9, -1, True, 1)),
            "notyet: a broker to claim /controller",
        ),
        (
            gates.zookeeper_controls,
            lambda world: with_zk(world, owner_fenced=True),
            "refused: /controller_epoch was written since broker 0 claimed /controller",
        ),
        (
            gates.zookeeper_controls,
            lambda world: with_zk(world, controller=Unknown("malformed")),
            "unknown: malformed",
        ),
        (gates.controller_named, named(2, (0,) * 19 + (1,)), "notyet: broker 2 to name broker 0"),
        (gates.controller_named, named(2, (0,)), "unknown: broker 2 was asked 1 times"),
        (gates.controller_named, named(2, (1,) * 20), "notyet: broker 2 to name broker 0"),
        (gates.controller_named, lambda world: with_zk(world, controller=NoZnode()), "notyet: a broker to claim"),
        (gates.controller_named, without("live"), "unknown: live hidden"),
        (gates.controller_named, service(2, Unknown("no rights")), "unknown: no rights"),
        (
            lambda world: gates.session_ended(world, 1),
            service(1, Stopped()),
            "notyet: the ZooKeeper session that broker 1 left to end",
        ),
        (lambda world: gates.session_ended(world, 1), without("zookeeper"), "unknown: zookeeper hidden"),
        (
            lambda world: gates.whole_before(world, 1),
            sick(PartitionHealth("orders", 0, 1, (1,), (1, 2))),
            "notyet: 1 partition",
        ),
    ],
)
def test_after_control_went_back(gate: Callable[[World], Readiness], bend: Bend, says: str) -> None:
    """What each gate says of something wrong there."""
    assert answer(gate(bend(handed_back()))).startswith(says)


def test_a_dead_controller_does_not_close_the_gate_of_the_quorum() -> None:
    """A majority is what leads."""
    assert gates.quorum_leads(controller_answer(3002, Unknown("connection refused"))(hybrid())) == Ready()


def of_four(world: World) -> World:
    """The same with a fourth controller that is a voter, keeps up and answers."""
    fourth = replace(world.inventory.controllers[0], id=NodeId(3003))
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    assert not isinstance(world.services, Unknown)
    voter = replace(quorum.voters[0], id=NodeId(3003))
    return replace(
        with_live(
            world,
            quorum=replace(quorum, voters=(*quorum.voters, voter)),
            controllers={**live(world).controllers, NodeId(3003): live(world).controllers[NodeId(3000)]},
        ),
        inventory=replace(world.inventory, controllers=(*world.inventory.controllers, fourth)),
        services={**world.services, NodeId(3003): world.services[NodeId(3000)]},
    )


@pytest.mark.parametrize(
    ("gate", "part"),
    [
        (lambda world: gates.zookeeper_equal(world, ()), "services"),
        (gates.controller_named, "zookeeper"),
        (gates.none_runs_kraft, "services"),
        (lambda world: gates.whole_before(world, 1), "services"),
        (lambda world: gates.whole_before(world, 1), "live"),
    ],
)
def test_what_cannot_be_seen_opens_no_gate(gate: Callable[[World], Readiness], part: str) -> None:
    """Neither before control went back nor after."""
    for world in (hybrid(), handed_back()):
        assert answer(gate(without(part)(world))) == f"unknown: {part} hidden"


def test_a_broker_that_does_not_answer_does_not_name_its_controller() -> None:
    """It is waited for."""
    world = handed_back()
    silent = with_live(world, metadata={**live(world).metadata, NodeId(2): Unknown("connection refused")})
    assert answer(gates.controller_named(silent)).startswith("notyet: broker 2 to answer (connection refused)")


def test_half_of_the_controllers_is_no_majority() -> None:
    """Two of four elect nobody: the next broker would be stopped without a controller."""
    gone = Unknown("connection refused")
    three = controller_answer(3003, gone)(of_four(hybrid()))
    assert gates.quorum_leads(three) == Ready()
    two = controller_answer(3002, gone)(three)
    assert answer(gates.quorum_leads(two)).startswith("notyet: a majority of the controllers")


def test_a_voter_keeps_up_within_the_allowed_lag_and_an_empty_log_never_does() -> None:
    """Of voters that answer; at an offset of 0 nothing was fetched, however short the log is."""
    world = hybrid()
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    for high, offset, open_ in ((500, 490, True), (500, 489, False), (5, 0, False), (5, 1, True)):
        voters = tuple(replace(voter, log_end_offset=offset) for voter in quorum.voters)
        seen = with_live(world, quorum=replace(quorum, voters=voters, high_watermark=high))
        assert (gates.quorum_leads(seen) == Ready()) is open_, (high, offset)
    empty = with_live(world, quorum=replace(quorum, high_watermark=0))
    assert answer(gates.quorum_leads(empty)).startswith("notyet: a majority")
    assert gates.quorum_leads(with_live(world, quorum=replace(quorum, high_watermark=1))) == Ready()


def test_dual_write_is_asked_for_as_long_as_a_majority_runs() -> None:
    """Of three one may be down; of four, with two down nobody leads."""
    behind = with_zk(of_four(hybrid()), migration=MigrationZnode(499, 1, 3000, 1, 1))
    one = service(3002, Stopped())(behind)
    assert answer(gates.zookeeper_equal(one, ())).startswith("notyet: dual write")
    two = service(3003, Stopped())(one)
    assert gates.zookeeper_equal(two, ()) == Ready()


def test_without_a_majority_dual_write_is_not_waited_for() -> None:
    """Nothing is written any more, and nothing will be."""
    world = without("kraft")(service(3001, Stopped())(service(3002, Stopped())(hybrid())))
    assert gates.zookeeper_equal(world, ()) == Ready()


def test_before_the_copy_there_is_nothing_to_pass() -> None:
    """Neither in PRE_MIGRATION, nor where the copy was never noted."""
    world = with_zk(hybrid(), migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert gates.zookeeper_equal(world, ()) == Ready()
    waiting = with_kraft(hybrid(), migration_state=ZkMigrationState.PRE_MIGRATION)
    assert gates.zookeeper_equal(waiting, ()) == Ready()


LOST_ACL = Difference("acl", "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW", "", ONLY_KRAFT, None, "acl")
KEPT_QUOTA = Difference("client-quota", "client-id=app", "producer_byte_rate", ONLY_ZK, "1000", None)
DOWN_BROKER = Difference("broker", "2", "mode", ONLY_KRAFT, None, "zookeeper")


def compared(*rows: Difference, **changes: Any) -> DiffReport:
    """A comparison that found these rows."""
    counts: dict[str, dict[str, int]] = {"topic": {"EQUAL": 3}}
    for row in rows:
        counts.setdefault(row.kind, {}).setdefault(row.cls.value, 0)
        counts[row.kind][row.cls.value] += 1
    return replace(DiffReport(500, 0, counts, rows), **changes)


def equal_but(report: DiffReport | Unknown, discarded: Collection[DifferenceName]) -> Readiness:
    """The gate of a world in which that was found."""
    return gates.equal_but(replace(whole(Stage.HYBRID), diff=report), discarded)


def test_a_lasting_difference_is_refused_by_name_with_its_cause_and_what_to_do() -> None:
    """The offset in /migration has passed both, and proves neither."""
    said = answer(equal_but(compared(LOST_ACL, KEPT_QUOTA), ()))
    assert said.startswith("refused: ZooKeeper and the metadata differ in 2 places")
    for row in (LOST_ACL, KEPT_QUOTA):
        assert str(DifferenceName.of(row)) in said
        assert cause_of(row).cause in said
        assert cause_of(row).what_to_do in said


def test_what_the_plan_gives_up_by_name_does_not_refuse_and_anything_else_does() -> None:
    """Entity, key, field and class all count."""
    given_up = {DifferenceName.of(LOST_ACL)}
    assert equal_but(compared(LOST_ACL), given_up) == Ready()
    assert answer(equal_but(compared(LOST_ACL, KEPT_QUOTA), given_up)).startswith("refused: ")
    now_differs = replace(LOST_ACL, cls=DifferenceClass.DIFFERS, zookeeper="other")
    assert answer(equal_but(compared(now_differs), given_up)).startswith("refused: ")


def test_what_the_playbook_accepts_on_the_way_to_kraft_is_not_given_up_with_it() -> None:
    """An acceptance excuses the way forward; a rollback loses the same thing, so its plan has to name it."""
    accepted = replace(LOST_ACL, cls=DifferenceClass.ACCEPTED, rule="OPS-7")
    report = compared(accepted, counts={"acl": {"ACCEPTED": 1}})
    assert answer(equal_but(report, ())).startswith("refused: ")
    assert equal_but(report, {DifferenceName.of(LOST_ACL)}) == Ready()
    unlisted = replace(report, counts={"acl": {"ACCEPTED": 2}})
    assert answer(equal_but(unlisted, {DifferenceName.of(LOST_ACL)})).startswith("refused: more differences")


def test_dual_write_that_does_not_move_is_one_wait_that_ends() -> None:
    """The metadata's own offset moves twice a second: it is no progress of dual write."""
    looks = [
        gates.zookeeper_equal(
            with_kraft(with_zk(hybrid(), migration=MigrationZnode(499, 1, 3000, 1, 1)), offset=offset), ()
        )
        for offset in (500, 531)
    ]
    assert looks[0] == looks[1]


def test_a_registration_is_no_loss() -> None:
    """No controller writes it: a broker that is down registers as it starts."""
    assert equal_but(compared(DOWN_BROKER), ()) == Ready()


def test_a_comparison_that_says_nothing_is_never_taken_for_equal() -> None:
    """Not made, of nothing, cut, or of fields that move."""
    cut = compared(LOST_ACL, counts={"acl": {"ONLY_KRAFT": 20_000}})
    for report, says in (
        (Unknown("Spark did not start"), "unknown: ZooKeeper was not compared with the metadata: Spark"),
        (DiffReport(500, 0, {}, ()), "unknown: nothing was compared"),
        (cut, "refused: more differences were counted"),
        (compared(unsettled=(KEPT_QUOTA,)), "notyet: 1 field to stop changing"),
    ):
        assert answer(equal_but(report, {DifferenceName.of(LOST_ACL)})).startswith(says)


def stopped(unwritten: int = 0) -> World:
    """Every controller stopped, /controller still KRaft's; so many records were committed that ZooKeeper lacks."""
    cluster = deepcopy(taken("hybrid"))
    cluster.unwritten_at_stop = unwritten
    for node in (3001, 3002, 3000):
        cluster.stop(NodeId(node), 1.0)
    return cluster.observe(ALL, {})


def test_stopped_controllers_logs_are_compared_and_what_is_lost_is_named_with_the_way_out() -> None:
    """/migration is not asked: the controllers have to come back, or the plan gives the difference up by name."""
    assert gates.stopped_equal(stopped(), ()) == Ready()
    said = answer(gates.stopped_equal(stopped(unwritten=2), ()))
    for part in (
        "refused: ZooKeeper and the metadata differ in 1 place",
        str(DifferenceName.of(MADE_LATE)),
        cause_of(MADE_LATE).what_to_do,
        "The cluster has no controller now: plan the rollback again at once",
        "`kraft-migrate rollback plan /lab/playbook.yaml --discard-differences`",
    ):
        assert part in said
    assert gates.stopped_equal(stopped(unwritten=2), {DifferenceName.of(MADE_LATE)}) == Ready()
    quota = replace(stopped(), diff=compared(KEPT_QUOTA))
    assert "ONLY_ZK client-quota client-id=app" in answer(gates.stopped_equal(quota, ()))


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (without("zookeeper"), "unknown: zookeeper hidden"),
        (without("metadata_logs"), "unknown: whether ZooKeeper has all .* is not known .metadata_logs hidden"),
        (without("diff"), "unknown: ZooKeeper was not compared with the metadata: diff hidden"),
        (lambda world: replace(world, metadata_logs=Awaited("a log", "a person", "bring it")), "awaited: a log"),
        (
            lambda world: replace(
                world,
                metadata_logs=replace(world.metadata_logs, end=Unknown("1 of 3")),
            ),
            "unknown: whether ZooKeeper has all .* is not known .1 of 3",
        ),
    ],
)
def test_stopped_controllers_whose_metadata_is_not_known_keep_control(bend: Bend, says: str) -> None:
    """Nothing unseen is taken for fine."""
    assert re.match(says, answer(gates.stopped_equal(bend(stopped()), ())))


def test_where_most_logs_are_lost_for_good_what_only_they_held_is_given_up_by_name() -> None:
    """Nobody can prove any more what a majority had committed: it is a difference like another, and asked for."""
    world = stopped()
    assert isinstance(world.metadata_logs, MetadataLogs)
    logs = replace(world.metadata_logs, holders=(3001,), end=Unknown("1 of 3"))
    lost = Difference(
        LOST_LOGS, "controllers 3000, 3002", "what they alone held", DifferenceClass.ONLY_KRAFT, None, "?"
    )
    world = replace(world, metadata_logs=logs, diff=compared(lost))
    assert logs.lost(world.inventory.controllers) == (3000, 3002)
    said = answer(gates.stopped_equal(world, ()))
    assert "ONLY_KRAFT metadata-log controllers 3000, 3002" in said
    assert "plan the rollback again at once" not in said, "no controller can be started"
    assert gates.stopped_equal(world, {DifferenceName.of(lost)}) == Ready()
    for known in (replace(logs, holders=(3000, 3001)), replace(logs, end=9), replace(logs, holders=())):
        assert known.lost(world.inventory.controllers) == ()


def test_where_no_log_is_left_all_that_was_in_them_is_given_up_by_name() -> None:
    """Only while a KRaft controller still owns /controller after a copy: else nothing of theirs is missed."""
    world = without("diff")(replace(stopped(), metadata_logs=MetadataLogs()))
    assert world.lost_logs == (3000, 3001, 3002)
    found = with_diff(cast("Any", None), world)
    assert isinstance(found.diff, DiffReport)
    (row,) = found.diff.differences
    assert row.kind == LOST_LOGS
    assert "ONLY_KRAFT metadata-log controllers 3000, 3001, 3002" in answer(gates.stopped_equal(found, ()))
    assert gates.stopped_equal(found, {DifferenceName.of(row)}) == Ready()
    never = with_zk(world, migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert never.lost_logs == ()


def test_a_replaced_controller_has_a_log_and_no_vote() -> None:
    """Voters count, not directories: one that was formatted anew, and not added yet, proves nothing."""
    controllers, unproven = stopped().inventory.controllers, Unknown("1 of 3")
    voteless = MetadataLogs(holders=(3000, 3001), end=unproven, voters=(3000, 3001, 3002), counted=(3001,))
    assert voteless.lost(controllers) == (3000, 3002)
    assert replace(voteless, counted=(3000, 3001)).lost(controllers) == ()
    assert replace(voteless, voters=(3001,)).lost(controllers) == ()
    assert replace(voteless, voters=(3001, 3007), counted=(3001,)).lost(controllers) == (3007,)


def test_before_the_copy_and_after_the_hand_back_there_is_nothing_to_compare() -> None:
    """ZooKeeper is all that there is, or has gone on without the controllers."""
    never = with_zk(without("diff")(stopped()), migration=MigrationZnode(-1, -1, -1, -1, 0))
    assert gates.stopped_equal(never, ()) == Ready()
    owner = ControllerZnode(0, -1, True, 1)
    assert gates.stopped_equal(with_zk(without("diff")(stopped()), controller=owner), ()) == Ready()


def test_names_of_differences_come_back_from_their_text() -> None:
    """In one order, each once; none is no text."""
    names = [DifferenceName.of(row) for row in (KEPT_QUOTA, LOST_ACL, KEPT_QUOTA)]
    assert names_from_text(names_to_text(names)) == set(names)
    assert names_to_text(names) == names_to_text(reversed(names))
    assert names_to_text(()) == ""
    assert names_from_text("") == frozenset()


def test_a_broker_that_is_down_is_not_asked_who_its_controller_is() -> None:
    """It believes in nobody."""
    world = service(2, Stopped())(named(2, (1,) * 20)(handed_back()))
    assert gates.controller_named(world) == Ready()


@pytest.mark.parametrize(
    ("entry", "open_"),
    [
        (PartitionHealth("orders", 0, 1, (1,), (1, 2)), True),
        (PartitionHealth("single-0", 0, -1, (), (2,)), True),
        (PartitionHealth("orders", 0, 1, (1,), (0, 1)), False),
        (PartitionHealth("orders", 0, -1, (1,), (1, 2)), False),
        (PartitionHealth("orders", -1, -1, (), ()), False),
    ],
    ids=["lacks it alone", "has it alone", "lacks another", "has no leader", "a topic's error"],
)
def test_before_a_broker_that_is_down_comes_back_only_it_may_be_missing(entry: PartitionHealth, open_: bool) -> None:
    """Another one's absence, or a partition without leader that has a living replica, stops everything."""
    world = service(2, Stopped())(sick(entry)(handed_back()))
    assert (gates.whole_before(world, 2) == Ready()) is open_
    assert gates.whole_before(world, 1) != Ready(), "a broker that runs is not stopped beside one that is down"


def test_a_replica_on_no_broker_of_the_inventory_does_not_hold_a_rollback() -> None:
    """A dead id in an assignment never comes back."""
    assert gates.whole_before(sick(PartitionHealth("orders", 0, 0, (0, 1), (0, 1, 9)))(handed_back()), 1) == Ready()


def test_after_its_roll_the_broker_itself_must_be_whole_again() -> None:
    """It is no longer one that may be missing; others that were down before still are."""
    lacks = sick(PartitionHealth("orders", 0, 1, (1,), (1, 2)))(handed_back())
    down = service(2, Stopped())(lacks)
    assert answer(gates.whole_after(down, 2)).startswith("notyet: 1 partition")
    assert gates.whole_after(down, 1) == Ready()
    assert answer(gates.whole_after(without("services")(lacks), 1)) == "unknown: services hidden"


def test_a_broker_that_is_in_kraft_mode_stops_the_stop_of_the_controllers() -> None:
    """By its file, or by its registration."""
    world = hybrid()
    assert gates.none_runs_kraft(world) == Ready()
    half = deepcopy(taken("half of the second roll")).observe(ALL, {})
    assert answer(gates.none_runs_kraft(half)).startswith("refused: brokers [0, 1] are in KRaft mode")
    brokers = {**kraft(world).brokers, NodeId(1): replace(kraft(world).brokers[NodeId(1)], migrating=False)}
    bent = with_kraft(world, brokers=brokers)
    assert answer(gates.none_runs_kraft(bent)).startswith("refused: brokers [1] are in KRaft mode")
    assert gates.none_runs_kraft(service(1, Stopped())(bent)) == Ready()


def test_controllers_that_were_started_again_are_done_when_zookeeper_is_equal() -> None:
    """A loss that SYNC_KRAFT_TO_ZK does not repair refuses by name, with the controllers up; given up, it does not."""
    lost = replace(hybrid(), diff=compared(LOST_ACL))
    assert answer(FinishDualWrite().verify(lost)).startswith("refused: ZooKeeper and the metadata differ in 1 place")
    given_up = names_to_text([DifferenceName.of(LOST_ACL)])
    assert isinstance(FinishDualWrite(given_up).verify(lost), Verified)
    assert {Need.DIFF, Need.KRAFT} <= FinishDualWrite.proof_needs


@pytest.mark.parametrize(
    ("gate", "bend", "says"),
    [
        (gates.controllers_gone, without("live"), "unknown: live hidden"),
        (gates.owned, without("zookeeper"), "unknown: zookeeper hidden"),
        (gates.owned, lambda world: with_zk(world, controller=Unknown("malformed")), "unknown: malformed"),
        (gates.zookeeper_controls, without("zookeeper"), "unknown: zookeeper hidden"),
        (lambda world: gates.session_ended(world, 1), without("services"), "unknown: services hidden"),
        (lambda world: gates.session_ended(world, 1), without("zookeeper"), "unknown: zookeeper hidden"),
        (gates.none_runs_kraft, without("configs"), "unknown: the file of broker 0 cannot be read"),
        (gates.none_runs_kraft, without("services"), "unknown: services hidden"),
    ],
)
def test_a_gate_whose_view_is_hidden_is_unknown(gate: Callable[[World], Readiness], bend: Bend, says: str) -> None:
    """After control went back as before: nothing is taken for granted."""
    assert gate(handed_back()) == Ready()
    assert answer(gate(bend(handed_back()))).startswith(says)


def test_a_broker_that_may_run_in_kraft_mode_is_not_back() -> None:
    """Nobody knows its process's file, and it is registered nowhere: it may only be starting."""
    world = running(hybrid(), 1, None)
    brokers = {node: entry for node, entry in kraft(world).brokers.items() if node != 1}
    sessions = {node: entry for node, entry in zk(world).brokers.items() if node != 1}
    world = with_zk(with_kraft(world, brokers=brokers), brokers=sessions)
    assert gates.none_runs_kraft(hybrid()) == Ready()
    assert answer(gates.none_runs_kraft(world)).startswith("unknown: broker 1 may run in migration mode or KRaft mode")


def test_a_comparison_that_somebody_was_asked_for_is_waited_for() -> None:
    """It keeps its owner and what he is to do."""
    asked = Awaited("the logs to be brought", "the owner of c3000", "bring them")
    assert equal_but(asked, ()) == asked


def test_what_no_host_was_asked_about_is_not_allowed() -> None:
    """Each controller's host: its commands are needed once no controller leads."""
    world = replace(unit_of(3000)(hybrid()), host_rights={}, rehearsal="")
    assert "what is allowed on the host of controller 3000 is not known: not checked" in answer(gates.rehearsed(world))
