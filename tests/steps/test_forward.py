"""Both rolls of a broker: what may begin, what an interrupted one still needs, and what proves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import HalfDone, NotBegun, Predicted, Step
from migrate.model.views import ControllerZnode, MetaMissing, NoFile, Stopped
from migrate.model.world import Need, World
from migrate.steps import configuration, facts, gates
from migrate.steps.forward import RollToKraft, RollToMigrationMode, kraft_brokers
from tests.checks.bends import unit_of
from tests.steps.looks import (
    Bend,
    Remembered,
    answer,
    broken_disk,
    different,
    no_leader,
    registration,
    relook,
    row_in,
    rows,
    running,
    service,
    silent,
    silent_broker,
    unhealthy,
    voter_behind,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.clusters import directory_id
from tests.testing.worlds import config_file, inventory, kraft

Roll = RollToMigrationMode | RollToKraft
FIRST_ROLL = RollToMigrationMode(1)
SECOND_ROLL = RollToKraft(1)
DRIVEN = RollToKraft(2, "drive")
BEFORE_FIRST, AFTER_FIRST = whole(Stage.CONTROLLERS), whole(Stage.MIGRATION_MODE)
BEFORE_SECOND, AFTER_SECOND = whole(Stage.COPY), whole(Stage.KRAFT_MODE)


def raw_of(world: World, node: int) -> bytes:
    """A node's file."""
    found = facts.predicted_config(world, Predicted(), node)
    assert found is not None
    return found


def in_kraft_mode(world: World, node: int) -> World:
    """One broker of a copied cluster rolled: file, process, registration, directories."""
    assert not isinstance(world.configs, Unknown)
    broker = inventory().brokers[node]
    file = config_file(broker.id, broker.config, configuration.kraft_mode(raw_of(world, node), inventory(), broker))
    true = kraft(whole(Stage.KRAFT_MODE)).partitions
    mine = [
        [there if broker == node else here for broker, here, there in zip(replicas, listed, known, strict=True)]
        for replicas, listed, known in zip(
            true.replicas, kraft(world).partitions.directories, true.directories, strict=True
        )
    ]
    configs = {**world.configs, NodeId(node): file}
    world = worlds.with_kraft(world, partitions=replace(kraft(world).partitions, directories=mine))
    world = replace(world, configs=configs)
    return relook(registration(node, migrating=False)(running(world, node, file.sha256)))


def state(found: ZkMigrationState) -> Bend:
    """The metadata in that state."""
    return lambda world: worlds.with_kraft(world, migration_state=found)


def without_directory(world: World, row: int) -> World:
    """One row of the ledger whose replica has no directory in the metadata."""
    assert isinstance(world.ledger, Ledger)
    found = [
        replace(entry, in_metadata="") if number == row else entry for number, entry in enumerate(world.ledger.rows)
    ]
    return replace(world, ledger=replace(world.ledger, rows=tuple(found)))


def wanted(node: int, count: str) -> Bend:
    """min.insync.replicas in a broker's file."""
    return lambda world: worlds.with_values(world, node, min__insync__replicas=count)


# -- may it begin? ---------------------------------------------------------------------------------
def test_a_healthy_cluster_may_begin_either_roll() -> None:
    """With the policies observe and drive; drive's broker has its directories in the metadata already."""
    assert FIRST_ROLL.check(BEFORE_FIRST) == Ready()
    assert SECOND_ROLL.check(BEFORE_SECOND) == Ready()
    seeded = in_kraft_mode(BEFORE_SECOND, 2)
    assert DRIVEN.check(relook(registration(2, migrating=True)(seeded))) == Ready()


HELD = Refused | NotYet | Unknown
HOLDS_FIRST: tuple[tuple[Bend, type | None, str], ...] = (  # what the step's own gates say; None: the checks' alone
    (lambda world: worlds.with_zk(world, topics_without_id=("orders",)), None, "orders"),
    (without("configs"), Unknown, "which topics suffer is not known: configs hidden"),
    (without("zookeeper"), Unknown, "zookeeper hidden"),
    (state(ZkMigrationState.NONE), Refused, "NONE, not PRE_MIGRATION"),
    (state(ZkMigrationState.MIGRATION), Refused, "MIGRATION, not PRE_MIGRATION"),
    (state(ZkMigrationState.POST_MIGRATION), Refused, "POST_MIGRATION"),
    (broken_disk(1), Refused, "/data/b1/d2"),
    (wanted(1, "3"), Refused, "t0"),
    (no_leader, NotYet, "leader of the quorum"),
    (voter_behind, NotYet, "3002"),
    (unhealthy, NotYet, "orders-3"),
    (silent_broker, NotYet, "broker 1 to answer"),
    (without("kraft"), Unknown, "kraft hidden"),
    (without("disks"), Unknown, "disks hidden"),
    (without("live"), Unknown, "live hidden"),
)
HOLDS_SECOND: tuple[tuple[Bend, type, str], ...] = (
    (state(ZkMigrationState.PRE_MIGRATION), Refused, "PRE_MIGRATION, not MIGRATION"),
    (state(ZkMigrationState.POST_MIGRATION), Refused, "POST_MIGRATION"),
    (different, Refused, "retention.ms"),
    (without("diff"), Unknown, "diff hidden"),
    (without("disks"), Unknown, "disks hidden"),
    (without("ledger"), Unknown, "ledger hidden"),
    (without("kraft"), Unknown, "kraft hidden"),
    (broken_disk(1), Refused, "/data/b1/d2"),
    (lambda world: relook(registration(1, log_dirs=frozenset())(world)), Refused, "registered directories"),
    (wanted(1, "3"), Refused, "t0"),
    (no_leader, NotYet, "leader of the quorum"),
    (unhealthy, NotYet, "orders-3"),
    (silent_broker, NotYet, "broker 1 to answer"),
    (without("live"), Unknown, "live hidden"),
    (without("playbook"), Unknown, "playbook hidden"),
)


@pytest.mark.parametrize(("bend", "kind", "says"), HOLDS_FIRST, ids=[entry[2] for entry in HOLDS_FIRST])
def test_the_first_roll_is_held_by_each_of_its_gates(
    bend: Bend, kind: type | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked anew before every broker; with every check silent, the step's own gates still hold."""
    assert isinstance(FIRST_ROLL.check(bend(BEFORE_FIRST)), HELD)
    if kind is not None:
        monkeypatch.setattr(gates, "no_blockers", silent)
    found = FIRST_ROLL.check(bend(BEFORE_FIRST))
    assert isinstance(found, kind or Refused)
    assert says in answer(found)


@pytest.mark.parametrize(("bend", "kind", "says"), HOLDS_SECOND, ids=[entry[2] for entry in HOLDS_SECOND])
def test_the_second_roll_is_held_by_each_of_its_gates(
    bend: Bend, kind: type, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views equal, *may restart*, an accepted loss, quorum and ISRs whole."""
    assert isinstance(SECOND_ROLL.check(bend(BEFORE_SECOND)), HELD)
    monkeypatch.setattr(gates, "no_blockers", silent)
    found = SECOND_ROLL.check(bend(BEFORE_SECOND))
    assert isinstance(found, kind)
    assert says in answer(found)


def test_the_checks_hold_the_second_roll_as_well() -> None:
    """A controller whose file lost the flag would finalize at its next election."""
    lost = worlds.with_values(BEFORE_SECOND, 3001, zookeeper__metadata__migration__enable=None)
    found = SECOND_ROLL.check(lost)
    assert isinstance(found, Refused)
    assert "B-QRM-03" in found.codes


def test_policy_drive_wants_every_replica_verified_before_the_restart() -> None:
    """Policy observe lets the broker tell its directories afterwards."""
    assert RollToKraft(2, "observe").check(BEFORE_SECOND) == Ready()
    assert "policy drive wants every replica VERIFIED: 6 MIGRATING" in answer(DRIVEN.check(BEFORE_SECOND))


def test_a_topic_made_behind_the_assignments_does_not_hold_a_driven_roll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its replica stays UNASSIGNED while the broker is in migration mode; one that is on no disk yet is waited for."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    assert isinstance(BEFORE_SECOND.ledger, Ledger)
    places = [row for row, entry in enumerate(BEFORE_SECOND.ledger.rows) if entry.broker == 2]
    world = BEFORE_SECOND
    for place in places:
        world = row_in(ReplicaState.VERIFIED, place)(world)
    late = row_in(ReplicaState.UNASSIGNED, places[0])(world)
    assert DRIVEN.check(late) == Ready()
    assert isinstance(DRIVEN.check(row_in(ReplicaState.NOT_ON_DISK, places[1])(late)), NotYet)
    assert isinstance(DRIVEN.check(row_in(ReplicaState.MIGRATING, places[1])(late)), Refused)


def test_what_was_proven_of_an_earlier_broker_must_still_hold_before_the_next_one_stops() -> None:
    """A row of a rolled broker that went back holds the roll; of a broker that is to come, it does not."""
    rolled = in_kraft_mode(BEFORE_SECOND, 0)
    assert kraft_brokers(rolled) == (0,)
    assert SECOND_ROLL.check(rolled) == Ready()
    found = SECOND_ROLL.check(row_in(ReplicaState.UNASSIGNED)(rolled))
    assert isinstance(found, NotYet)
    assert "every replica of broker 0 to be VERIFIED" in found.what
    assert kraft_brokers(without("kraft")(rolled)) == ()


@pytest.mark.parametrize("bend", [row_in(ReplicaState.NOT_ON_DISK, 1), row_in(ReplicaState.MISMATCH, 1)])
def test_a_replica_that_looks_like_a_new_topics_is_waited_for_before_the_second_roll(
    bend: Bend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name; everything else of the ledger must be right, or the roll is refused."""
    monkeypatch.setattr(gates, "no_blockers", silent)
    world = without_directory(bend(BEFORE_SECOND), 1)
    found = SECOND_ROLL.check(world)
    assert isinstance(found, NotYet)
    assert len(found.objects) == 1
    assert all("on broker 1" in name for name in found.objects)
    assert isinstance(SECOND_ROLL.check(row_in(ReplicaState.TWO_COPIES, 4)(world)), Refused)


def test_a_new_topics_replica_does_not_hold_the_second_roll_where_the_broker_reports_it_itself() -> None:
    """Under policy observe a row without a directory in the metadata bars no restart: there is nothing to wait for."""
    assert SECOND_ROLL.check(row_in(ReplicaState.UNASSIGNED, 1)(BEFORE_SECOND)) == Ready()


# -- what is left to do ----------------------------------------------------------------------------
def edited(world: World, node: int, raw: bytes) -> World:
    """The file written under the process that runs."""
    assert not isinstance(world.configs, Unknown)
    old = facts.config(world, node)
    assert not isinstance(old, NoFile | Unknown)
    file = config_file(NodeId(node), old.path, raw)
    return running(replace(world, configs={**world.configs, NodeId(node): file}), node, old.sha256)


TARGET = configuration.migration_mode(raw_of(BEFORE_FIRST, 1), inventory())
LEFT = [
    (lambda world: world, NotBegun(), ["stop 1", "write 1", "start 1"]),
    (service(1, Stopped()), HalfDone("stopped"), ["write 1", "start 1"]),
    (lambda world: edited(world, 1, TARGET), HalfDone("file written, old process alive"), ["stop 1", "start 1"]),
    (
        lambda world: service(1, Stopped())(edited(world, 1, TARGET)),
        HalfDone("stopped, file written"),
        ["start 1"],
    ),
]


def test_a_file_of_the_mode_that_lacks_a_key_of_the_migration_is_not_done() -> None:
    """With the flag alone the broker finds no controllers."""
    raw = raw_of(BEFORE_FIRST, 1) + b"zookeeper.metadata.migration.enable=true\n"
    assert FIRST_ROLL.progress(edited(BEFORE_FIRST, 1, raw)) == NotBegun()


def test_a_file_of_another_mode_that_has_every_key_of_the_migration_is_not_done() -> None:
    """The flag beside process.roles: such a broker starts in KRaft mode."""
    target = configuration.migration_mode(raw_of(AFTER_SECOND, 1), inventory())
    assert configuration.migration_mode(target, inventory()) == target
    assert FIRST_ROLL.progress(edited(BEFORE_FIRST, 1, target)) == NotBegun()


@pytest.mark.parametrize(
    ("bend", "done"),
    [
        (lambda world: world, True),
        (lambda world: worlds.with_kraft(world, brokers={}), False),
        (registration(1, migrating=False), False),
        (registration(1, fenced=True), False),
        (registration(1, incarnation="stopped"), False),
        (without("kraft"), False),
    ],
    ids=["anew", "none", "other mode", "fenced", "the one that was stopped", "unknown"],
)
def test_where_nobody_knows_the_file_of_a_process_a_new_registration_tells_that_it_was_restarted(
    bend: Bend, done: bool
) -> None:
    """Of the mode, unfenced, and of another incarnation than the one that the step stopped."""
    world = running(replace(AFTER_FIRST, facts={"ended:migration-mode/1": "stopped"}), 1, None)
    assert isinstance(FIRST_ROLL.progress(bend(world)), AlreadyDone if done else HalfDone)


def test_a_process_with_another_file_is_not_restarted_whatever_is_registered() -> None:
    """The file that it was started with is known, and is the better evidence."""
    assert FIRST_ROLL.progress(running(AFTER_FIRST, 1, "0" * 64)) == HalfDone("file written, old process alive")
    hidden = without("kraft")(AFTER_FIRST)
    assert isinstance(FIRST_ROLL.progress(hidden), AlreadyDone)


def test_the_directories_of_the_last_look_are_asked_for_again_before_the_start() -> None:
    """Those with an identity, the metadata directory among them; what was not seen is not asked for."""
    world = worlds.with_directory(BEFORE_FIRST, 1, 2, lambda entry: replace(entry, meta=MetaMissing()))
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(1)]
    assert not isinstance(disks, Unknown)
    apart = replace(disks.directories[0], path="/meta/b1")
    effects = Remembered()
    changed = replace(world, disks={**world.disks, NodeId(1): replace(disks, metadata_directory=apart)})
    FIRST_ROLL.do(changed, effects)
    assert effects.asked == {1: ("/data/b1/d0", "/data/b1/d1", "/meta/b1")}
    for hidden in (without("disks")(world), replace(world, disks={})):
        unasked = Remembered()
        FIRST_ROLL.do(hidden, unasked)
        assert unasked.asked == {}
        assert unasked.done[-1] == "start 1"


@pytest.mark.parametrize(("bend", "told", "done"), LEFT, ids=["nothing", "stopped", "written", "stopped and written"])
def test_an_interrupted_roll_adds_only_what_is_missing(bend: Bend, told: object, done: list[str]) -> None:
    """Decided by the file's mode and by the file that the process was started with."""
    world, effects = bend(BEFORE_FIRST), Remembered()
    assert FIRST_ROLL.progress(world) == told
    FIRST_ROLL.do(world, effects)
    assert effects.done[0].startswith("note ended:migration-mode/1=")  # whose registration will be no proof
    assert effects.done[1].startswith("note served:migration-mode/1=")  # and what its listeners served
    assert [" ".join(entry.split()[:2]) for entry in effects.done[2:]] == done
    assert effects.written.get(1, TARGET) == TARGET


def rolled_but(last: int) -> World:
    """Every other broker runs with its file of migration mode."""
    world = BEFORE_FIRST
    for node in {int(broker.id) for broker in inventory().brokers} - {last}:
        path = inventory().brokers[node].config
        raw = configuration.migration_mode(raw_of(world, node), inventory())
        assert not isinstance(world.configs, Unknown)
        file = config_file(NodeId(node), path, raw)
        world = running(replace(world, configs={**world.configs, NodeId(node): file}), node, file.sha256)
    return world


@pytest.mark.parametrize("last", [0, 1, 2])
def test_zookeeper_is_backed_up_before_the_last_broker_is_stopped(last: int) -> None:
    """Whichever that is; where it is stopped already the backup is created again, and behind the takeover never."""
    effects = Remembered()
    RollToMigrationMode(last).do(rolled_but(last), effects)
    assert effects.done[0] == "back up zookeeper-before-copy"
    again = Remembered()
    RollToMigrationMode(last).do(service(last, Stopped())(rolled_but(last)), again)
    assert again.done[0] == "back up zookeeper-before-copy"
    over = Remembered()
    owned = worlds.with_zk(rolled_but(last), controller=ControllerZnode(3000, 1, ephemeral=False, version=0))
    RollToMigrationMode(last).do(service(last, Stopped())(owned), over)
    RollToMigrationMode(last).do(service(last, Stopped())(without("zookeeper")(rolled_but(last))), over)
    assert not [entry for entry in over.done if entry.startswith("back up")]
    written = Remembered()
    ready = edited(rolled_but(last), last, configuration.migration_mode(raw_of(BEFORE_FIRST, last), inventory()))
    RollToMigrationMode(last).do(service(last, Stopped())(ready), written)
    assert written.done[0] == "back up zookeeper-before-copy"
    earlier = Remembered()
    RollToMigrationMode(last).do(BEFORE_FIRST, earlier)
    assert not [entry for entry in earlier.done if entry.startswith("back up")]


def test_a_broker_whose_process_never_was_in_migration_mode_is_still_to_come() -> None:
    """Its file alone, or a stopped process with the file of ZooKeeper mode: this broker is not the last one."""
    world = rolled_but(1)
    file, old = raw_of(world, 0), raw_of(BEFORE_FIRST, 0)
    waits = edited(edited(world, 0, old), 0, file)  # the file of migration mode, the process of the one before
    stopped = service(0, Stopped())(edited(world, 0, old))
    for bent in (waits, stopped):
        effects = Remembered()
        FIRST_ROLL.do(bent, effects)
        assert not [entry for entry in effects.done if entry.startswith("back up")]


@pytest.mark.parametrize(("step", "world"), [(FIRST_ROLL, AFTER_FIRST), (SECOND_ROLL, AFTER_SECOND)])
def test_a_rolled_broker_is_done(step: RollToMigrationMode | RollToKraft, world: World) -> None:
    """It runs with the file of the mode."""
    assert isinstance(step.progress(world), AlreadyDone)


@pytest.mark.parametrize(
    "bend",
    [
        without("configs"),
        without("services"),
        service(1, Unknown("no /proc")),
        lambda world: replace(world, services={}),
        lambda world: replace(world, configs={**world.configs, NodeId(1): NoFile("/conf/b1.properties")}),
    ],
)
def test_an_interrupted_roll_that_cannot_be_seen_stops_for_a_person(bend: Bend) -> None:
    """Neither redone nor taken for done."""
    assert isinstance(FIRST_ROLL.progress(bend(BEFORE_FIRST)), Unknown)


# -- the proof -------------------------------------------------------------------------------------
def test_a_roll_is_proven_with_what_was_seen() -> None:
    """The registration's offset and incarnation; the ledger's rows."""
    first, second = FIRST_ROLL.verify(AFTER_FIRST), SECOND_ROLL.verify(AFTER_SECOND)
    assert isinstance(first, Verified)
    assert "registration at offset 51: incarnation" in first.evidence[0]
    assert "3 directories as on disk" in first.evidence[0]
    assert isinstance(second, Verified)
    assert second.evidence[0] == "6 replicas VERIFIED at metadata offset 500"


def other_directory(world: World) -> World:
    """Broker 1 registered a directory that lies on no disk of it."""
    return registration(1, log_dirs=frozenset({directory_id(1, 0), directory_id(1, 1), directory_id(9, 9)}))(world)


FAULTS = [
    (service(1, Stopped(1)), "refused: broker 1 does not run (its process on b1)"),
    (lambda world: running(world, 1, "0" * 64), "refused: node 1 runs, but was started with another"),
    (service(1, Unknown("no /proc")), "unknown: no /proc"),
    (registration(1, fenced=True), "notyet: broker 1 to register in"),
    (lambda world: worlds.with_kraft(world, brokers={}), "notyet: broker 1 to register in"),
    (other_directory, "refused: broker 1 registered directories"),
    (without("kraft"), "notyet: the metadata to be readable"),
    (without("disks"), "unknown: disks hidden"),
    (lambda world: replace(world, disks={}), "unknown: the disks of broker 1 were not looked at"),
    (lambda world: replace(world, disks={NodeId(1): Unknown("no mount")}), "unknown: no mount"),
    (without("configs"), "unknown: the file of broker 1 cannot be seen"),
    (unhealthy, "notyet: 1 partition to have its full ISR"),
]


@pytest.mark.parametrize(
    ("step", "world"), [(FIRST_ROLL, AFTER_FIRST), (SECOND_ROLL, AFTER_SECOND)], ids=["first", "second"]
)
@pytest.mark.parametrize(("bend", "says"), FAULTS, ids=[str(number) for number in range(len(FAULTS))])
def test_each_part_of_the_proof_alone_is_missed(
    step: RollToMigrationMode | RollToKraft, world: World, bend: Bend, says: str
) -> None:
    """Waited for where it comes by itself, refused where it does not."""
    assert says in answer(step.verify(bend(world)))


def test_a_broker_that_does_not_register_is_told_with_the_cause() -> None:
    """In the first roll, and of that broker alone."""
    world = worlds.with_kraft(worlds.with_values(AFTER_FIRST, 1, controller__quorum__voters="3000@c3000:1"), brokers={})
    found = FIRST_ROLL.registered(worlds.with_values(world, 0, controller__quorum__voters=None), migrating=True)
    assert isinstance(found, NotYet)
    assert "; S-STUCK-33: 1: its file gives the active controller 3000 as c3000:1, and" in found.what
    assert found.what.count("S-STUCK") == 1
    told = "Correct controller.quorum.voters or .bootstrap.servers in that file, then restart that broker."
    assert found.next_step == told
    right = FIRST_ROLL.registered(worlds.with_kraft(AFTER_FIRST, brokers={}), migrating=True)
    assert "S-STUCK" not in answer(right)
    assert isinstance(right, NotYet)
    assert right.next_step.startswith("usually nothing; look at")
    assert "S-STUCK" not in answer(SECOND_ROLL.registered(world, migrating=False))


def test_without_a_ledger_no_broker_is_proven() -> None:
    """It is waited for: the next look may have one."""
    found = SECOND_ROLL.verify(without("ledger")(AFTER_SECOND))
    assert isinstance(found, NotYet)
    assert "the ledger is unknown: ledger hidden" in found.what


def test_the_old_registration_proves_no_roll() -> None:
    """The mode must be the new one."""
    assert "to register in kraft mode and unfence (now: registered in migration mode, unfenced" in answer(
        SECOND_ROLL.verify(registration(1, migrating=True)(AFTER_SECOND))
    )
    assert "to register in migration mode and unfence (now: registered in KRaft mode, unfenced" in answer(
        FIRST_ROLL.verify(registration(1, migrating=False)(AFTER_FIRST))
    )


@pytest.mark.parametrize(("step", "world"), [(FIRST_ROLL, AFTER_FIRST), (SECOND_ROLL, AFTER_SECOND)])
def test_the_registration_of_the_process_that_was_stopped_proves_no_roll(step: Roll, world: World) -> None:
    """It stays in the metadata until the broker registers again."""
    old = kraft(world).brokers[NodeId(1)].incarnation
    found = step.verify(replace(world, facts={f"ended:{step.id}": old}))
    assert isinstance(found, NotYet)
    assert found.what == f"broker 1 to register again (incarnation {old} was stopped)"
    assert isinstance(step.verify(replace(world, facts={f"ended:{step.id}": "another"})), Verified)


@pytest.mark.parametrize("found", [entry for entry in ReplicaState if entry is not ReplicaState.VERIFIED])
def test_a_broker_with_one_unproven_replica_cannot_unfence(found: ReplicaState) -> None:
    """KIP-858's promise, row by row; the wait moves with the number of rows."""
    states = [ReplicaState.VERIFIED] * 5 + [found]
    waited = SECOND_ROLL.verify(replace(AFTER_SECOND, ledger=rows(*states, broker=1, in_metadata="D" * 22)))
    assert isinstance(waited, NotYet)
    assert found.value in waited.what
    assert waited.progress == "1"


# -- planning --------------------------------------------------------------------------------------
def test_the_plan_shows_the_files_change_and_the_restart() -> None:
    """The diff is of the file as it will lie there."""
    edit, restart = FIRST_ROLL.actions(BEFORE_FIRST, Predicted())
    assert (edit.symbol, restart.symbol) == ("~", ">")
    assert "+zookeeper.metadata.migration.enable=true" in edit.diff
    assert not [line for line in edit.diff if "a-secret-of-the-lab" in line]
    assert restart.what == "restart: stop, write the file, start"
    bent = edited(BEFORE_FIRST, 1, TARGET)
    assert FIRST_ROLL.actions(bent, Predicted())[1].what == (
        "restart: stop, write the file, start (broker 1 runs in ZooKeeper mode; its file says migration mode: it needs "
        "a restart)"
    )
    (unreadable,) = FIRST_ROLL.actions(without("configs")(BEFORE_FIRST), Predicted())
    assert unreadable.symbol == "?"


def test_the_second_roll_is_planned_on_the_file_that_the_first_will_leave() -> None:
    """Long before the first roll happened."""
    before = Predicted()
    after = FIRST_ROLL.predict(BEFORE_FIRST, before)
    assert after.modes == {NodeId(1): "migration"}
    assert SECOND_ROLL.binds(BEFORE_FIRST, after)["config:1"] == facts.sha256(TARGET)
    promised = SECOND_ROLL.expects(BEFORE_FIRST, after)
    assert promised == {
        "mode:1": "kraft",
        "registered:1": "kraft",
        "config:1": facts.sha256(configuration.kraft_mode(TARGET, inventory(), inventory().brokers[1])),
    }
    assert SECOND_ROLL.expects(BEFORE_SECOND, Predicted()) == promised


def test_what_a_roll_promises_is_what_a_rolled_broker_shows() -> None:
    """Predictions are held against the world by the same facts."""
    for step, before, after in (
        (FIRST_ROLL, BEFORE_FIRST, AFTER_FIRST),
        (SECOND_ROLL, BEFORE_SECOND, AFTER_SECOND),
    ):
        promised = step.expects(before, Predicted())
        assert facts.observed(after, promised) == promised
        assert facts.observed(before, promised) != promised


def test_a_file_that_cannot_be_read_predicts_nothing_and_binds_as_unknown() -> None:
    """No step is planned on a guess."""
    blind = without("configs")(BEFORE_FIRST)
    assert FIRST_ROLL.predict(blind, Predicted()) == Predicted()
    assert FIRST_ROLL.binds(blind, Predicted())["config:1"] == "unknown"
    assert "config:1" not in FIRST_ROLL.expects(blind, Predicted())


def test_binds_are_the_file_its_directories_and_the_cluster() -> None:
    """Nothing that moves by itself."""
    assert set(FIRST_ROLL.binds(BEFORE_FIRST, Predicted())) == {"config:1", "log_dirs:1", "cluster_id:"}
    assert FIRST_ROLL.binds(BEFORE_FIRST, Predicted())["log_dirs:1"] == parse(raw_of(BEFORE_FIRST, 1))["log.dirs"]


def test_the_gates_of_the_second_roll_ask_spark() -> None:
    """And its proof the pure rule, again and again while it waits."""
    assert {Need.SPARK_LEDGER, Need.DIFF} <= RollToKraft.needs
    assert not {Need.SPARK_LEDGER, Need.DIFF} & RollToKraft.proof_needs
    wanted = {Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.LEDGER} | {
        Need.LISTENERS
    }
    assert FIRST_ROLL.proof_needs == wanted
    assert SECOND_ROLL.proof_needs == wanted | {Need.APPLIED}
    assert [FIRST_ROLL.id, SECOND_ROLL.id] == ["migration-mode/1", "kraft-mode/1"]
    assert "into kraft mode" in SECOND_ROLL.title


@pytest.mark.parametrize(("roll", "before"), [(FIRST_ROLL, BEFORE_FIRST), (SECOND_ROLL, BEFORE_SECOND)])
def test_a_unit_that_a_run_cannot_stop_bars_a_stop_and_never_the_start_after_it(roll: Step, before: World) -> None:
    """Found between two brokers it would leave the roll half done; what is down is started all the same."""
    world = unit_of(3000, faults=("KillMode=none: its process lives on",))(before)
    assert Need.UNITS in roll.needs
    found = roll.check(world)
    assert isinstance(found, Refused)
    assert "B-OPS-09" in found.codes
    assert roll.resume(world) == roll.resume(before)


def test_zookeeper_is_read_while_the_last_broker_is_waited_for() -> None:
    """The copy is held against the last look before it; a topic deleted long after that look would seem to be lost."""
    assert Need.ZOOKEEPER in RollToMigrationMode(2, "yes").waits_for
    assert Need.ZOOKEEPER not in RollToMigrationMode(1, "no").waits_for
