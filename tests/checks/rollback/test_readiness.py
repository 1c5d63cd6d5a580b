"""Rollback readiness: READY only where everything that the rollback needs is known to be there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from migrate.checks.rollback.readiness import rollback_readiness
from migrate.model.difference import DifferenceClass, DiffReport
from migrate.model.durations import Durations
from migrate.model.ids import NodeId
from migrate.model.inventory import SecretFile, ZookeeperLogin
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import (
    GAP_SECONDS,
    KeptFile,
    Measured,
    RollbackFacts,
    RollbackReadiness,
    RollbackWord,
    Weight,
    gap_seconds,
)
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    ControllerZnode,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    MigrationZnode,
    NodeAnswer,
    NoZnode,
    NullZnode,
    PendingWork,
    Stopped,
)
from migrate.model.world import NOT_ASKED, World
from tests.checks.bends import kraft_has
from tests.checks.cases import CLOSED
from tests.steps.looks import (
    WRONG,
    broken_disk,
    different,
    no_leader,
    registration,
    service,
    silent_broker,
    unhealthy,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.worlds import BROKERS, CONTROLLERS, kraft, live, zk

Bend = Callable[[World], World]
KEPT = {node: KeptFile(f"/conf/b{node}.properties.kraft-migrate-backup") for node in BROKERS}
KNOWN = Durations(900.0, {"broker": (6.0, 6.0, 9.0)})
GOOD = RollbackFacts(configs=KEPT, zookeeper=KeptFile("zookeeper.jsonl.gz"), durations=KNOWN, gap=Measured(4.0, 1))
READY, WORK, NOT = RollbackWord.READY, RollbackWord.READY_WITH_WORK, RollbackWord.NOT_READY


def asked(world: World, facts: RollbackFacts = GOOD) -> RollbackReadiness:
    """The answer."""
    return rollback_readiness(world, facts)


def names(found: RollbackReadiness, weight: Weight) -> set[str]:
    """The reasons of that weight, by name."""
    return {reason.name for reason in found.of(weight)}


@pytest.mark.parametrize(
    ("stage", "origin", "rolls", "restarts"),
    [
        (Stage.ASSESS, "nothing was begun", 0, 0),
        (Stage.PREPARE, "nothing was begun", 0, 0),
        (Stage.CONTROLLERS, "controllers", 0, 0),
        (Stage.MIGRATION_MODE, "half of migration-mode", 1, 2),
        (Stage.COPY, "hybrid", 1, 3),
        (Stage.KRAFT_MODE, "kraft-mode", 2, 6),
        (Stage.SOAK, "kraft-mode", 2, 6),
    ],
)
def test_from_each_stage_of_a_healthy_cluster_the_rollback_is_open(
    stage: Stage, origin: str, rolls: int, restarts: int
) -> None:
    """With what it costs there."""
    found = asked(whole(stage))
    assert (found.word, found.origin) == (READY, origin), found.reasons
    assert (found.cost.rolls, found.cost.restarts) == (rolls, restarts)
    assert not found.of(Weight.BAR)
    assert not found.of(Weight.WORK)


def test_half_of_the_second_roll_costs_two_restarts_for_each_broker_in_kraft_mode() -> None:
    """And one for each of the others."""
    found = asked(registration(0, migrating=False)(whole(Stage.COPY)))
    assert (found.word, found.origin, found.cost.rolls, found.cost.restarts) == (READY, "half of kraft-mode", 2, 4)


def test_minutes_and_gap_are_measured_or_said_to_be_defaults() -> None:
    """Six seconds a restart, four without a controller; without a journal the defaults, by name."""
    cost = asked(whole(Stage.SOAK)).cost
    assert (cost.p50, cost.p90) == (6 * 6 + 4, 6 * 9 + 4)
    assert cost.gap_seconds == 4
    assert "10 s per restart (measured here on 3 steps)" in cost.basis
    plain = asked(whole(Stage.SOAK), replace(GOOD, durations=Durations(900.0), gap=None)).cost
    assert (plain.p50, plain.p90) == (6 * 360 + 33, 6 * 900 + 33)
    assert "6 min to 15 min per restart (the playbook's node_estimate)" in plain.basis


def test_without_a_measured_gap_it_is_estimated_by_the_size_of_the_logs() -> None:
    """A second for each 100 MB, all controllers together; the copies from other hosts are said not to be in it."""
    assert (gap_seconds(0), gap_seconds(6_000_000_000)) == (GAP_SECONDS, GAP_SECONDS + 60)
    world, facts = whole(Stage.SOAK), replace(GOOD, gap=None)
    cost = asked(replace(world, inventory=replace(world.inventory, executor="local")), facts).cost
    assert cost.gap_seconds == GAP_SECONDS + 3
    assert "300 MB of controllers' metadata logs)" in cost.basis
    far = asked(replace(world, inventory=replace(world.inventory, executor="ssh")), facts).cost
    assert "the time to copy them from their hosts was not measured and is not in it" in far.basis


def unsized(world: World) -> World:
    """The size of a log was not seen."""
    return worlds.with_directory(world, 3001, 0, lambda entry: replace(entry, metadata_log_bytes=-1))


def unreadable(world: World) -> World:
    """A controller's directory cannot be read."""
    hidden = partial(replace, problem="cannot be read: I/O", holds_metadata_log=False, metadata_log_bytes=-1)
    return worlds.with_directory(world, 3000, 0, hidden)


def without_disks(world: World) -> World:
    """A controller's directories do not answer."""
    assert not isinstance(world.disks, Unknown)
    return replace(world, disks={**world.disks, NodeId(3002): Unknown("no answer")})


@pytest.mark.parametrize(
    ("bend", "why"),
    [
        (unsized, "the size of the metadata log of controller 3001 was not seen"),
        (without_disks, "controller 3002 cannot be seen: no answer"),
        (unreadable, "controller 3000 cannot be seen: /data/c3000 cannot be read: I/O"),
        (without("disks"), "the controllers' directories cannot be seen: "),
    ],
)
def test_a_log_whose_size_was_not_seen_leaves_the_gap_unknown(bend: Bend, why: str) -> None:
    """No default stands in for it; the reason is told."""
    found = asked(bend(whole(Stage.SOAK)), replace(GOOD, gap=None))
    assert isinstance(found.cost.gap_seconds, Unknown)
    assert why in found.cost.gap_seconds.reason
    assert why in found.cost.basis
    assert "an unknown time without a controller" in found.line


def test_before_the_copy_nobody_takes_the_controller_away() -> None:
    """/controller is a ZooKeeper broker's: there is no gap."""
    assert asked(whole(Stage.MIGRATION_MODE)).cost.gap_seconds == 0
    assert asked(whole(Stage.CONTROLLERS)).cost.gap_seconds == 0


@pytest.mark.parametrize("stage", [Stage.FINALIZE, Stage.CLEANUP])
def test_after_finalize_the_way_is_gone(stage: Stage) -> None:
    """For ever, and nothing else is told."""
    found = asked(whole(stage))
    assert (found.word, found.gone) == (NOT, True)
    assert names(found, Weight.BAR) == {"finalized"}


@pytest.mark.parametrize(("zookeeper", "level"), [("", 21), ("zk1:2181/kafka", 30)])
def test_where_kafka_4_forgot_the_migration_nothing_can_be_rolled_back(zookeeper: str, level: int) -> None:
    """No advice to put ZooKeeper or the flag back into a cluster that has been finalized for long."""
    world = worlds.with_kraft(
        whole(Stage.CLEANUP), migration_state=ZkMigrationState.NONE, features={"metadata.version": level}
    )
    found = asked(replace(world, inventory=replace(world.inventory, zookeeper=zookeeper)))
    assert names(found, Weight.BAR) == {"finalized"}
    assert found.gone


def test_accidentally_finalized_with_brokers_in_zookeeper_mode_is_gone_too() -> None:
    """Whatever the brokers are: the metadata says POST_MIGRATION."""
    world = worlds.with_kraft(whole(Stage.COPY), migration_state=ZkMigrationState.POST_MIGRATION)
    found = asked(world)
    assert found.gone
    assert "roll forward" in found.reasons[0].next_step


def unflagged(node: int) -> Bend:
    """A controller answers without the flag."""

    def bend(world: World) -> World:
        answer = NodeAnswer(migration_flag=False, finalized_features={})
        return worlds.with_live(world, controllers={**live(world).controllers, NodeId(node): answer})

    return bend


def meta(version: int) -> Bend:
    """A disk that was formatted with kafka-storage."""
    return lambda world: worlds.with_directory(
        world, 1, 2, lambda entry: replace(entry, meta=MetaProperties(version, "c", 1, entry.id))
    )


def broken_meta(world: World) -> World:
    """A meta.properties that does not parse."""
    return worlds.with_directory(world, 1, 2, lambda entry: replace(entry, meta=MetaBroken("version is no number")))


def emptied(world: World) -> World:
    """A log directory without its meta.properties."""
    return worlds.with_directory(world, 1, 2, lambda entry: replace(entry, meta=MetaMissing()))


def with_bare_kraft_only(world: World) -> World:
    """A row that Kafka cannot write to ZooKeeper."""
    return kraft_has("client-metrics-config", "m")(world)


def quota_of_ipv6(world: World) -> World:
    """As a controller writes it in dual write, and no broker of ZooKeeper mode reads it."""
    bent = worlds.with_entity(world, "client-quota", "ip=%3A%3A1", "connection_creation_rate", "10.0")
    rows = zk(bent).entities
    return worlds.with_zk(bent, entities=replace(rows, where=[*rows.where[:-1], "/config/ips/%3A%3A1"]))


def behind(records: int) -> Bend:
    """/migration that many records behind."""

    def bend(world: World) -> World:
        znode = zk(world).migration
        assert isinstance(znode, MigrationZnode)
        return worlds.with_zk(world, migration=replace(znode, offset=kraft(world).offset - records))

    return bend


def controllers_silent(*nodes: int) -> Bend:
    """Controllers that do not answer."""

    def bend(world: World) -> World:
        gone = {NodeId(node): Unknown("connection refused") for node in nodes}
        return worlds.with_live(world, controllers={**live(world).controllers, **gone})

    return bend


def unread_migration(world: World) -> World:
    """Nobody can tell whether anything was copied, and the rollback deletes it at its version."""
    return worlds.with_zk(world, migration=Unknown("denied"))


def both_down(world: World) -> World:
    """Two brokers stopped."""
    return service(0, Stopped())(service(1, Stopped())(world))


def file_unread(node: int) -> Bend:
    """A file that we may not read."""

    def bend(world: World) -> World:
        assert not isinstance(world.configs, Unknown)
        return replace(world, configs={**world.configs, NodeId(node): Unknown("denied")})

    return bend


def file_without_flag(world: World) -> World:
    """The file of a running controller lost its flag."""
    return worlds.with_values(world, 3001, zookeeper__metadata__migration__enable=None)


@pytest.mark.parametrize(
    ("stage", "bend", "bars"),
    [
        (Stage.COPY, without("zookeeper"), {"zookeeper-unknown"}),
        (Stage.SOAK, unflagged(3002), {"controller-without-flag"}),
        (Stage.SOAK, without("disks"), {"disks-unknown"}),
        (Stage.COPY, broken_disk(1), {"disk"}),
        (Stage.COPY, broken_meta, {"meta-broken"}),
        (Stage.COPY, emptied, {"no-identity"}),
        (Stage.COPY, with_bare_kraft_only, {"kraft-only"}),
        (Stage.COPY, quota_of_ipv6, {"ip-quota"}),
        (Stage.SOAK, lambda world: worlds.with_kraft(world, features={}), {"metadata-version"}),
        (Stage.COPY, lambda world: worlds.with_zk(world, controller_epoch=Unknown("denied")), {"controller-unknown"}),
        (Stage.CONTROLLERS, lambda world: worlds.with_zk(world, controller=Unknown("x")), {"controller-unknown"}),
        (Stage.COPY, behind(101), {"lag"}),
        (Stage.COPY, without("kraft"), {"lag-unknown"}),
        (Stage.COPY, different, {"different"}),
        (Stage.COPY, both_down, {"brokers-down"}),
        (Stage.COPY, silent_broker, {"no-answer"}),
        (Stage.COPY, without("services"), {"services-unknown"}),
        (Stage.COPY, without("live"), {"live-unknown"}),
        (Stage.CONTROLLERS, without("services"), {"services-unknown"}),
        (Stage.COPY, service(0, Unknown("no pid file")), {"service-unknown"}),
        (Stage.COPY, service(3000, Unknown("no pid file")), {"service-unknown"}),
        (Stage.SOAK, no_leader, {"no-quorum"}),
        (Stage.SOAK, controllers_silent(3001, 3002), {"no-majority"}),
        (Stage.SOAK, lambda world: worlds.with_kraft(world, features={"metadata.version": 25}), {"metadata-version"}),
        (Stage.COPY, lambda world: worlds.with_zk(world, controller=Unknown("denied")), {"controller-unknown"}),
        (Stage.COPY, unread_migration, {"migration-unknown"}),
        (Stage.MIGRATION_MODE, unread_migration, {"migration-unknown"}),
        (Stage.COPY, lambda world: replace(unread_migration(world), kraft=Unknown("none")), {"migration-unknown"}),
    ],
)
def test_what_bars_the_way_is_named(stage: Stage, bend: Bend, bars: set[str]) -> None:
    """One fault, one bar; each says what to do."""
    found = asked(bend(whole(stage)))
    assert found.word is NOT
    assert names(found, Weight.BAR) >= bars
    assert all(reason.next_step for reason in found.of(Weight.BAR))
    assert not found.gone


@pytest.mark.parametrize(
    ("stage", "bend", "work"),
    [
        (Stage.SOAK, meta(1), "meta-version"),
        (Stage.COPY, service(1, Stopped()), "broker-down"),
        (Stage.COPY, unhealthy, "not-whole"),
        (Stage.COPY, without("diff"), "not-compared"),
        (Stage.SOAK, controllers_silent(3001), "controller-down"),
        (Stage.SOAK, file_without_flag, "flag-not-in-file"),
        (Stage.CONTROLLERS, file_unread(3001), "flag-unknown"),
        (Stage.COPY, lambda world: worlds.with_zk(world, migration=MigrationZnode(-1, -1, 3000, 1, 0)), "stuck-copy"),
        (Stage.COPY, lambda world: worlds.with_zk(world, migration=MigrationZnode(0, -1, 3000, 1, 0)), "stuck-copy"),
        (Stage.COPY, lambda world: worlds.with_zk(world, migration=NullZnode(0)), "stuck-copy"),
        (Stage.COPY, lambda world: worlds.with_zk(world, pending=PendingWork(reassignments=("t-0",))), "pending"),
        (Stage.COPY, lambda world: worlds.with_zk(world, pending=PendingWork(log_dir_events=("e",))), "pending"),
    ],
)
def test_what_has_to_be_done_first_is_work(stage: Stage, bend: Bend, work: str) -> None:
    """The way is open, and more than its ordinary steps is needed."""
    found = asked(bend(whole(stage)))
    assert found.word is WORK, found.reasons
    assert names(found, Weight.WORK) == {work}


def as_user(name: str, bend: Bend = CLOSED) -> Bend:
    """We come to ZooKeeper by that login, "" for none, where the znodes are the brokers'."""

    def bent(world: World) -> World:
        login = ZookeeperLogin(name, SecretFile("/secret") if name else None)
        return replace(bend(world), inventory=replace(world.inventory, zookeeper_login=login))

    return bent


@pytest.mark.parametrize("stage", [Stage.CONTROLLERS, Stage.COPY, Stage.SOAK])
@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (as_user("ops"), "the tool's identity is sasl:ops; sasl:kafka may write"),
        (as_user(""), "the tool's identity is nobody (no login); sasl:kafka may write"),
        (as_user("kafka", lambda world: worlds.with_zk(world, acls=Unknown("/config: hidden"))), "/config: hidden"),
    ],
    ids=["another", "nobody", "unread"],
)
def test_another_zookeeper_identity_than_the_brokers_is_told_before_the_night(
    stage: Stage, bend: Bend, said: str
) -> None:
    """It may have been given the rights apart: so it is no bar, and the run asks ZooKeeper before it stops anything."""
    found = asked(bend(whole(stage)))
    (reason,) = found.of(Weight.WORK)
    assert (found.word, reason.name) == (WORK, "zookeeper-identity")
    assert said in reason.what


def test_the_brokers_own_zookeeper_identity_is_no_work() -> None:
    """Nor is another one before anything was begun, or where everybody may write."""
    assert asked(as_user("kafka")(whole(Stage.COPY))).word is READY
    assert asked(as_user("ops")(whole(Stage.ASSESS))).word is READY
    assert asked(as_user("ops", lambda world: world)(whole(Stage.COPY))).word is READY


@pytest.mark.parametrize(
    ("stage", "bend", "facts"),
    [
        (Stage.ASSESS, lambda world: world, replace(GOOD, zookeeper=Unknown("none was made"))),
        (Stage.CONTROLLERS, service(1, Stopped()), GOOD),
        (Stage.ASSESS, lambda world: worlds.with_zk(world, acls=Unknown("not read")), GOOD),
        (Stage.ASSESS, lambda world: worlds.with_zk(world, controller=Unknown("denied")), GOOD),
        (Stage.PREPARE, file_unread(3001), GOOD),
    ],
    ids=["backup of the tree", "broker down", "identity", "controller", "a controller's file"],
)
def test_what_a_rollback_does_not_need_yet_is_no_work(stage: Stage, bend: Bend, facts: RollbackFacts) -> None:
    """From there it restarts no broker, or touches no znode."""
    assert asked(bend(whole(stage)), facts).word is READY


def test_what_was_read_of_a_broken_disk_is_no_second_fault() -> None:
    """One reason a disk: its meta.properties is not to be mended before it works."""
    for other in (broken_meta, emptied):
        assert names(asked(broken_disk(1)(other(whole(Stage.COPY)))), Weight.BAR) == {"disk"}


def test_dual_write_may_be_a_hundred_records_behind() -> None:
    """It is so in a busy cluster; the comparison says whether anything is missing."""
    assert asked(behind(100)(whole(Stage.COPY))).word is READY


def test_a_controller_that_ran_without_the_flag_is_told_once() -> None:
    """By the journal and by its answer: it is one fault."""
    found = asked(unflagged(3000)(whole(Stage.SOAK)), replace(GOOD, unflagged=(3000,)))
    assert [reason.what for reason in found.of(Weight.BAR) if reason.name == "controller-without-flag"] == [
        "a run started it without the migration flag: as soon as it is elected the migration is finalized"
    ]


def test_a_comparison_that_nobody_asked_for_has_no_reason() -> None:
    """One that was tried and failed says why."""
    for diff, why in ((NOT_ASKED, "with the metadata: /migration"), (Unknown("no route"), "metadata (no route): /m")):
        (reason,) = asked(replace(whole(Stage.COPY), diff=diff)).of(Weight.WORK)
        assert why in reason.what


def test_the_first_of_several_differences_is_named_and_registrations_are_none() -> None:
    """A broker's registration is its own to make: no controller writes it to ZooKeeper."""
    later = replace(WRONG, key="z-topic")
    own = replace(WRONG, kind="broker", key="1")
    report = DiffReport(0, 0, {"topic-config": {"DIFFERS": 3}}, (own, WRONG, later))
    (reason,) = asked(replace(whole(Stage.COPY), diff=report)).of(Weight.BAR)
    assert reason.what.startswith(
        "2 differences that no rule covers, DIFFERS topic-config orders retention.ms among them"
    )
    alone = replace(whole(Stage.COPY), diff=replace(report, differences=(own,)))
    assert asked(alone).word is READY


def test_a_difference_that_the_playbook_accepts_bars_the_rollback() -> None:
    """It was accepted for the way to KRaft: the rollback gives it up by its own list alone, and refuses until then."""
    accepted = replace(WRONG, cls=DifferenceClass.ACCEPTED)
    report = DiffReport(0, 0, {"topic-config": {"ACCEPTED": 1}}, (accepted,))
    assert names(asked(replace(whole(Stage.COPY), diff=report)), Weight.BAR) == {"different"}


def test_several_reassignments_are_one_reason_that_names_the_first() -> None:
    """With their number."""
    world = worlds.with_zk(whole(Stage.COPY), pending=PendingWork(reassignments=("t-0", "t-1")))
    (reason,) = asked(world).of(Weight.WORK)
    assert (reason.about, reason.what) == ("t-0", "2 reassignments are in progress")


def test_where_no_broker_answers_no_number_of_partitions_is_told() -> None:
    """Each silent broker is; what they would say is not known."""
    answers = {node: Unknown("refused") for node in BROKERS}
    found = asked(worlds.with_live(whole(Stage.COPY), metadata=answers))
    assert names(found, Weight.BAR) == {"no-answer"}
    assert not names(found, Weight.WORK)


def test_controllers_that_were_started_without_the_flag_before_the_copy_are_noted() -> None:
    """Their state is NONE: they cannot migrate, and are taken back like any others."""
    world = worlds.with_kraft(whole(Stage.CONTROLLERS), migration_state=ZkMigrationState.NONE)
    assert "state-none" in names(asked(world), Weight.NOTE)
    assert not names(asked(whole(Stage.CONTROLLERS)), Weight.NOTE)


def test_a_broker_that_is_down_need_not_answer() -> None:
    """It is told once."""
    found = asked(service(1, Stopped())(silent_broker(whole(Stage.COPY))))
    assert (found.word, names(found, Weight.WORK), names(found, Weight.BAR)) == (WORK, {"broker-down"}, set())


def with_fourth_voter(world: World) -> World:
    """A fourth controller votes, and answers."""
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    voters = (*quorum.voters, replace(quorum.voters[0], id=NodeId(3003)))
    answers = {**live(world).controllers, NodeId(3003): live(world).controllers[NodeId(3000)]}
    return worlds.with_live(world, quorum=replace(quorum, voters=voters), controllers=answers)


def test_half_of_the_voters_is_no_majority() -> None:
    """Three of four lead on, two of four elect nobody; a voter that nobody asked does not answer."""
    four = with_fourth_voter(whole(Stage.SOAK))
    assert names(asked(controllers_silent(3001)(four)), Weight.WORK) == {"controller-down"}
    assert names(asked(controllers_silent(3001, 3002)(four)), Weight.BAR) == {"no-majority"}
    unasked = worlds.with_live(four, controllers={NodeId(3000): live(four).controllers[NodeId(3000)]})
    assert names(asked(unasked), Weight.BAR) == {"no-majority"}


def test_controllers_need_no_majority_where_they_are_only_stopped() -> None:
    """From hybrid the first act is to stop them all."""
    found = asked(controllers_silent(*map(int, CONTROLLERS[1:]))(whole(Stage.COPY)))
    assert found.word is READY


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (KeptFile("/b", "there is no backup"), "backup-unusable"),
        (KeptFile("/b", "it is not what was kept: its SHA-256 is another"), "backup-unusable"),
        (Unknown("permission denied"), "backup-unknown"),
    ],
)
def test_without_a_true_backup_of_each_changed_broker_nothing_is_ready(kept: KeptFile | Unknown, reason: str) -> None:
    """Files are restored, and never created again; a broker that was not changed needs none."""
    for node in (0, 2):
        found = asked(whole(Stage.COPY), replace(GOOD, configs={**KEPT, NodeId(node): kept}))
        assert (found.word, names(found, Weight.BAR)) == (NOT, {reason})
    untouched = asked(whole(Stage.MIGRATION_MODE), replace(GOOD, configs={**KEPT, NodeId(2): kept}))
    assert untouched.word is READY


def test_backups_that_nobody_looked_for_are_unknown() -> None:
    """No facts, no READY; where no broker was changed none is needed."""
    assert names(rollback_readiness(whole(Stage.COPY)), Weight.BAR) == {"backup-unknown"}
    assert rollback_readiness(whole(Stage.CONTROLLERS)).word is WORK  # of the tree
    assert rollback_readiness(whole(Stage.ASSESS)).word is READY


def test_the_tree_without_a_backup_is_work() -> None:
    """The rollback needs none, and nobody should go it without one."""
    for tree in (Unknown("no journal names one"), KeptFile("t", "it cannot be read")):
        found = asked(whole(Stage.COPY), replace(GOOD, zookeeper=tree))
        assert (found.word, names(found, Weight.WORK)) == (WORK, {"no-zookeeper-backup"})
        assert "--inventory /lab/inventory.yaml" in str(found.reasons)


def test_a_run_that_started_a_controller_without_the_flag_counts_though_nobody_answers() -> None:
    """From the first such start on: by the journal."""
    world = worlds.with_live(whole(Stage.SOAK), controllers={node: Unknown("refused") for node in CONTROLLERS})
    found = asked(world, replace(GOOD, unflagged=(3000,)))
    assert "controller-without-flag" in names(found, Weight.BAR)


def test_a_file_that_was_edited_since_is_told_and_bars_nothing() -> None:
    """With the keys that stay: the rollback puts the migration's own back."""
    kept = KeptFile("/b", note="edited since the migration wrote it, and kept: log.cleaner.threads")
    found = asked(whole(Stage.COPY), replace(GOOD, configs={**KEPT, NodeId(1): kept}))
    assert (found.word, names(found, Weight.NOTE)) == (READY, {"file-edited"})
    (note,) = found.of(Weight.NOTE)
    assert note.about == "broker 1"
    assert "log.cleaner.threads" in note.what


def test_the_epoch_rule_is_told_and_changes_nothing() -> None:
    """KAFKA-20488: raising /controller_epoch is one of the ordinary steps."""
    znode = ControllerZnode(3000, 9, ephemeral=False, version=0)
    found = asked(worlds.with_zk(whole(Stage.COPY), controller=znode))
    assert (found.word, names(found, Weight.NOTE)) == (READY, {"epoch-rule"})
    assert not names(asked(whole(Stage.COPY)), Weight.NOTE)
    same = replace(znode, kraft_epoch=3)
    assert not names(asked(worlds.with_zk(whole(Stage.COPY), controller=same)), Weight.NOTE)
    for part in ({"controller": NoZnode()}, {"controller": znode, "controller_epoch": NoZnode()}):
        assert not names(asked(worlds.with_zk(whole(Stage.COPY), **part)), Weight.NOTE)


def test_a_cluster_of_which_nothing_can_be_seen_is_not_ready() -> None:
    """Unknown is never nothing."""
    world = World(inventory=worlds.inventory())
    found = asked(world)
    assert found.word is NOT
    assert found.origin == "unknown"
    assert {"zookeeper-unknown", "broker-unknown"} <= names(found, Weight.BAR)


def test_with_zookeeper_down_and_no_controllers_yet_nobody_knows_where_the_rollback_begins() -> None:
    """Brokers' files of ZooKeeper mode do not tell whether controllers were started; those of another mode do."""
    silent, none_yet = Unknown("no session"), Unknown("no controller has a configuration file yet")
    found = asked(replace(whole(Stage.ASSESS), zookeeper=silent, kraft=none_yet))
    assert (found.word, found.origin) == (NOT, "unknown")
    assert (
        asked(replace(whole(Stage.MIGRATION_MODE), zookeeper=silent, kraft=none_yet)).origin == "half of migration-mode"
    )


def test_controllers_that_are_gone_and_left_the_znode_are_still_the_beginning() -> None:
    """/migration is there: something began; without it, and without metadata, nothing did."""
    left = replace(whole(Stage.CONTROLLERS), kraft=Unknown("no controller answers"))
    assert asked(left).origin == "controllers"
    assert asked(worlds.with_zk(left, migration=NoZnode())).origin == "nothing was begun"


def test_by_the_files_a_finalized_cluster_is_told_where_nobody_answers() -> None:
    """Every controller's file without the flag, every broker's in KRaft mode: there is no rollback to offer."""
    world = replace(whole(Stage.CLEANUP), kraft=Unknown("no controller answers"))
    assert asked(world).gone


def test_without_registrations_the_files_say_what_has_to_be_taken_back() -> None:
    """The metadata cannot be read: a broker in KRaft mode is still one."""
    world = replace(whole(Stage.SOAK), kraft=Unknown("no controller answers"))
    found = asked(world)
    assert (found.origin, found.cost.restarts) == ("kraft-mode", 6)
    assert found.word is NOT


def test_a_broker_with_a_dead_disk_is_not_to_be_started_first() -> None:
    """A start would make its replicas anew; the disk has its own reason."""
    for bend, said in ((lambda world: world, "start it first"), (broken_disk(1), "its disk comes first")):
        found = asked(service(1, Stopped())(bend(whole(Stage.COPY))))
        (row,) = [reason for reason in found.reasons if reason.name == "broker-down"]
        assert row.next_step.startswith(said)
