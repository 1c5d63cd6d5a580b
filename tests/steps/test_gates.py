"""Each gate is open in a healthy world, and shut by its one fault; what is unseen is Unknown, never open."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from migrate import checks
from migrate.checks import processes
from migrate.model.config_keys import QuorumKind
from migrate.model.difference import DiffReport
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import AlreadyDone, Awaited, NotYet, Readiness, Ready, Refused, Unknown, Verified
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerRegistration, LogDirAnswer, NoZnode, Stopped
from migrate.model.world import NOT_ASKED, World
from migrate.steps import gates
from tests.checks.bends import kraft_has, unit_of
from tests.checks.cases import misplaced
from tests.steps.looks import (
    SICK,
    Bend,
    answer,
    broken_disk,
    different,
    no_leader,
    registration,
    row_in,
    running,
    service,
    silent_broker,
    unhealthy,
    unsettled,
    voter_behind,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.worlds import kraft, live

Gate = Callable[[World], Readiness]
SLASHED = "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW"
DUAL, DONE = ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION
GATES: dict[str, Gate] = {
    "no_blockers": lambda world: gates.no_blockers(world, Stage.FINALIZE),
    "replicas_full": gates.replicas_full,
    "quorum_healthy": gates.quorum_healthy,
    "disks_healthy": lambda world: gates.disks_healthy(world, 1),
    "stop_is_accepted": lambda world: gates.stop_is_accepted(world, 1),
    "runs_with": lambda world: gates.runs_with(
        running(world, 1, "s" * 64) if world is whole(Stage.SOAK) else world, 1, "s" * 64
    ),
    "state_is": lambda world: gates.state_is(world, DUAL),
    "views_equal": gates.views_equal,
    "all_writable": gates.all_writable,
    "ledger_is": lambda world: gates.ledger_is(world, ReplicaState.VERIFIED),
    "all_brokers_kraft": gates.all_brokers_kraft,
    "logs_belong": gates.logs_belong,
    "units_obey": lambda world: gates.units_obey(world, worlds.CONTROLLERS),
}


def less_voters(world: World) -> World:
    """A controller of the inventory that is no voter."""
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    return worlds.with_live(world, quorum=replace(quorum, voters=quorum.voters[:-1]))


def nothing_committed(world: World) -> World:
    """A leader without a committed record."""
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    return worlds.with_live(world, quorum=replace(quorum, high_watermark=0))


def voter_never_fetched(offset: int) -> Bend:
    """A voter that has nothing (0), or of which the leader knows nothing (-1); a high watermark within the lag."""

    def bend(world: World) -> World:
        quorum = live(world).quorum
        assert not isinstance(quorum, Unknown)
        voters = (*quorum.voters[:-1], replace(quorum.voters[-1], log_end_offset=offset))
        return worlds.with_live(world, quorum=replace(quorum, high_watermark=5, voters=voters))

    return bend


def caught_up(milliseconds: int) -> Bend:
    """The last voter had everything so long ago, by the leader's clock."""

    def bend(world: World) -> World:
        quorum = live(world).quorum
        assert not isinstance(quorum, Unknown)
        voters = (*quorum.voters[:-1], replace(quorum.voters[-1], caught_up_ms=milliseconds))
        return worlds.with_live(world, quorum=replace(quorum, voters=voters))

    return bend


def silent_controller(world: World) -> World:
    """Controller 3001 does not answer, whatever the leader remembers of it."""
    answers = live(world).controllers
    return worlds.with_live(world, controllers={**answers, NodeId(3001): Unknown("connection refused")})


def ended_controller(world: World) -> World:
    """And no process of it lives."""
    return service(3001, Stopped(None))(silent_controller(world))


def broker_of_a_host_that_is_off(world: World) -> World:
    """Broker 1 does not answer, and its host is not reached."""
    return service(1, Awaited("E-HOST-22 b1: no connection", "whoever runs b1", "start it"))(silent_broker(world))


def ended_broker(world: World) -> World:
    """Broker 1's process has ended, and broker 0 has heard of it."""
    found = live(world).metadata[NodeId(0)]
    assert not isinstance(found, Unknown)
    bent = service(1, Stopped(1))(silent_broker(world))
    return worlds.with_live(bent, metadata={**live(bent).metadata, NodeId(0): replace(found, brokers=(0, 2))})


def offline_disk(world: World) -> World:
    """Broker 2 lives on without a disk, so one partition is not whole."""
    dead = (LogDirAnswer("/data/b2/d1", 56, 0, ()),)
    return worlds.with_live(unhealthy(world), log_dirs={**live(world).log_dirs, NodeId(2): dead})


def fewer_seen(world: World) -> World:
    """Broker 1 sees only two brokers."""
    found = live(world).metadata[NodeId(1)]
    assert not isinstance(found, Unknown)
    return worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): replace(found, brokers=(0, 1))})


def fewer_told(world: World) -> World:
    """Broker 1 tells of five partitions: Kafka leaves out what a principal may not describe."""
    found = live(world).metadata[NodeId(1)]
    assert not isinstance(found, Unknown)
    return worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): replace(found, partitions=5)})


def half_seen(world: World) -> World:
    """Every row VERIFIED, and a view missing: there may be more rows."""
    assert isinstance(world.ledger, Ledger)
    return replace(world, ledger=replace(world.ledger, unknown=("disks: hidden",)))


def stranger(world: World) -> World:
    """A registration of a broker that the inventory does not list, still migrating."""
    brokers = kraft(world).brokers
    return worlds.with_kraft(
        world, brokers={**brokers, NodeId(9): replace(brokers[NodeId(0)], id=NodeId(9), migrating=True)}
    )


def unregistered(world: World) -> World:
    """Broker 2 has no registration."""
    return worlds.with_kraft(world, brokers={k: v for k, v in kraft(world).brokers.items() if k != 2})


def state(found: ZkMigrationState) -> Bend:
    """The metadata in that state."""
    return lambda world: worlds.with_kraft(world, migration_state=found)


def left_behind(logs: MetadataLogs | Unknown) -> Bend:
    """Controllers that are stopped, with those logs, and no /migration: what a half-done rollback leaves."""

    def bend(world: World) -> World:
        for controller in (3000, 3001, 3002):
            world = service(controller, Stopped(1))(world)
        return replace(worlds.with_zk(world, migration=NoZnode()), metadata_logs=logs)

    return bend


FAULTS: tuple[tuple[str, Bend, str], ...] = (
    ("no_blockers", lambda world: worlds.with_values(world, 3001, zookeeper__metadata__migration__enable=None), "B-"),
    ("replicas_full", unhealthy, "notyet: 1 partition to have its full ISR, orders-3 among them (leader 1, ISR [1]"),
    ("replicas_full", silent_broker, "notyet: broker 1 to answer (connection refused)"),
    (
        "replicas_full",
        broker_of_a_host_that_is_off,
        "notyet: broker 1 to answer (connection refused; E-HOST-22 b1: no connection)",
    ),
    ("replicas_full", ended_broker, "notyet: broker 1 (its process on b1) to run again"),
    ("replicas_full", offline_disk, "; broker 2 has log directory /data/b2/d1 offline"),
    ("replicas_full", fewer_seen, "notyet: broker 1 to see brokers [0, 1, 2]; it sees [0, 1]"),
    ("replicas_full", lambda world: worlds.with_live(world, metadata={}), "notyet: broker 0 to answer"),
    ("replicas_full", lambda world: replace(world, inventory=replace(world.inventory, brokers=())), "lists no broker"),
    ("replicas_full", fewer_told, "notyet: broker 1 to report all 6 partitions; it reports 5"),
    ("replicas_full", lambda world: without("kraft")(without("zookeeper")(world)), "unknown: how many partitions"),
    ("replicas_full", without("live"), "unknown: live hidden"),
    ("quorum_healthy", no_leader, "notyet: a leader of the quorum (no controller leads)"),
    ("quorum_healthy", voter_behind, "behind [3002], missing []"),
    ("quorum_healthy", less_voters, "behind [], missing [3002]"),
    ("quorum_healthy", nothing_committed, "notyet: every voter to catch up with high watermark 0"),
    ("quorum_healthy", voter_never_fetched(-1), "behind [3002]"),
    ("quorum_healthy", voter_never_fetched(0), "behind [3002]"),
    ("quorum_healthy", caught_up(gates.CAUGHT_UP_MS + 1), "behind [3002], missing []"),
    ("quorum_healthy", caught_up(-1), "behind [3002], missing []"),
    ("quorum_healthy", silent_controller, "notyet: controllers [3001] to answer"),
    ("quorum_healthy", ended_controller, "controller 3001 (its process on c3001) to run again"),
    ("quorum_healthy", lambda world: worlds.with_live(world, controllers={}), "controllers [3000, 3001, 3002] to an"),
    ("quorum_healthy", without("live"), "unknown: live hidden"),
    ("disks_healthy", broken_disk(1), "refused: broker 1 has log directories that are not healthy: /data/b1/d2 (input"),
    ("disks_healthy", lambda world: replace(world, disks={}), "unknown: the disks of broker 1 were not looked at"),
    ("disks_healthy", lambda world: replace(world, disks={NodeId(1): Unknown("no mount")}), "unknown: no mount"),
    ("disks_healthy", without("disks"), "unknown: disks hidden"),
    ("stop_is_accepted", lambda world: worlds.with_values(world, 1, min__insync__replicas="3"), "refused: stopping"),
    ("stop_is_accepted", without("playbook"), "unknown: playbook hidden"),
    ("stop_is_accepted", without("configs"), "unknown: which topics suffer is not known: configs hidden"),
    ("runs_with", service(1, Stopped(1)), "refused: broker 1 does not run (its process on"),
    ("runs_with", service(1, Unknown("no /proc")), "unknown: no /proc"),
    ("runs_with", lambda world: running(world, 1, "t" * 64), "refused: node 1 runs, but was started with another"),
    ("runs_with", lambda world: replace(world, services={}), "unknown: node 1 was not looked at"),
    ("runs_with", without("services"), "unknown: services hidden"),
    ("state_is", state(ZkMigrationState.PRE_MIGRATION), "refused: the metadata says PRE_MIGRATION, not MIGRATION"),
    ("state_is", state(ZkMigrationState.NONE), "refused: the metadata says NONE, not MIGRATION"),
    ("state_is", state(DONE), "refused: the metadata says POST_MIGRATION: a controller without the flag was elected"),
    ("state_is", without("kraft"), "unknown: kraft hidden"),
    ("views_equal", different, "refused: 1 differences between ZooKeeper and KRaft: DIFFERS topic-config orders"),
    ("views_equal", lambda world: replace(world, diff=DiffReport(500, 0, {"topic": {"EQUAL": 0}}, ())), "unknown: "),
    ("views_equal", without("diff"), "unknown: diff hidden"),
    ("views_equal", unsettled, "unknown: 1 fields changed in every look and were not compared: topic-config orders"),
    ("all_writable", kraft_has("acl", SLASHED), "refused: ACL of GROUP a/b (LITERAL): Kafka 3.9 cannot write it"),
    (
        "all_writable",
        kraft_has("acl", SLASHED),
        "`kafka-acls --bootstrap-server HOST:PORT --remove --force --group a/b",
    ),
    ("all_writable", without("kraft"), "unknown: kraft hidden"),
    *(
        ("ledger_is", row_in(found), f"refused: 1 of 18 replicas are not VERIFIED: t0-0 on broker 0 is {found.value}")
        for found in ReplicaState
        if found not in (ReplicaState.VERIFIED, ReplicaState.NOT_ON_DISK, ReplicaState.UNASSIGNED)
    ),
    (
        "ledger_is",
        row_in(ReplicaState.NOT_ON_DISK),
        "notyet: what looks like topics in creation or deletion to end: t0-0",
    ),
    (
        "ledger_is",
        row_in(ReplicaState.UNASSIGNED),
        "notyet: what looks like topics in creation or deletion to end: t0-0",
    ),
    ("ledger_is", lambda world: replace(world, ledger=Ledger((), 500, "spark")), "unknown: the ledger has no row"),
    ("ledger_is", half_seen, "unknown: the ledger was made without a view: disks: hidden"),
    ("ledger_is", without("ledger"), "unknown: ledger hidden"),
    ("all_brokers_kraft", unregistered, "refused: broker 2 is not an unfenced KRaft broker (not registered)"),
    ("all_brokers_kraft", registration(1, fenced=True), "(registered in KRaft mode, fenced)"),
    ("all_brokers_kraft", registration(1, migrating=True), "(registered in migration mode, unfenced)"),
    ("all_brokers_kraft", stranger, "refused: registrations [9] still say that they are migrating"),
    ("all_brokers_kraft", without("kraft"), "unknown: kraft hidden"),
    ("logs_belong", left_behind(MetadataLogs((3000,), 9, state=DUAL)), "[3000] says MIGRATION, /migration is absent"),
    ("logs_belong", left_behind(MetadataLogs((3001,), 9, registered=(0, 1))), "knows brokers [0, 1], /migration is"),
    ("logs_belong", left_behind(Unknown("torn")), "unknown: torn"),
    ("logs_belong", without("zookeeper"), "unknown: zookeeper hidden"),
    ("units_obey", unit_of(3001, patience=300.0), "refused: kafka-3001.service of node 3001"),
    ("units_obey", unit_of(3001, access=(("user kafka cannot read /x", "chmod g+r"),)), "cannot read /x"),
    ("units_obey", unit_of(3001, reload_due=True), "what runs is not what is written"),
    ("units_obey", unit_of(3001, faults=("KillMode=none: its process lives on",)), "KillMode=none"),
    ("units_obey", unit_of(3001, patience=Unknown("no answer")), "is not known (no answer)"),
    ("units_obey", lambda world: without("units")(unit_of(3001)(world)), "unknown: units hidden"),
)


@pytest.mark.parametrize("name", GATES)
def test_a_healthy_world_opens_every_gate(name: str) -> None:
    """Dual write, every broker KRaft, every row VERIFIED."""
    assert GATES[name](whole(Stage.SOAK)) == Ready()


@pytest.mark.parametrize(("name", "bend", "says"), FAULTS, ids=[f"{name}-{n}" for n, (name, _, _) in enumerate(FAULTS)])
def test_one_fault_shuts_its_gate_and_is_named(name: str, bend: Bend, says: str) -> None:
    """A wait where waiting helps, a refusal where it does not, Unknown where nothing is seen."""
    assert says in answer(GATES[name](bend(whole(Stage.SOAK))))


def test_every_gate_has_a_fault_here_and_a_hidden_view() -> None:
    """A gate that is added is tried, too."""
    own = {name for name, entry in vars(gates).items() if hasattr(entry, "sentence")} | {"units_obey", "runs_with"}
    assert own == set(GATES) == {name for name, _, _ in FAULTS}


def being_moved(world: World) -> World:
    """The partition without its full ISR gets a replica: whoever leads it has lost no request."""
    bent = unhealthy(world)
    assert not isinstance(bent.kraft, Unknown)
    columns = deepcopy(bent.kraft.partitions)
    columns.adding[0] = [0]
    moved = replace(SICK, topic=columns.topic[0], partition=columns.partition[0])
    told = live(bent).metadata[NodeId(1)]
    assert not isinstance(told, Unknown)
    metadata = {**live(bent).metadata, NodeId(1): replace(told, unhealthy=(SICK, moved))}
    return worlds.with_live(replace(bent, kraft=replace(bent.kraft, partitions=columns)), metadata=metadata)


def test_an_isr_that_a_reassignment_fills_is_no_reason_to_restart_a_broker() -> None:
    """It ends with the move, whose owner is named (KIP-455)."""
    world = being_moved(whole(Stage.SOAK))
    found = gates.replicas_full(world)
    assert isinstance(found, NotYet)
    assert found.what == f"1 partition to end its reassignment: {kraft(world).partitions.topic[0]}-0"
    assert "kafka-reassign-partitions" in found.owner
    assert "restart broker" not in found.next_step


def test_a_look_that_sees_no_reassignments_advises_no_restart() -> None:
    """A run's narrow looks read neither store: seen on Kafka, a throttled move was told as a broker's lost request."""
    for bend in (unhealthy, being_moved):
        found = gates.replicas_full(replace(bend(whole(Stage.SOAK)), kraft=NOT_ASKED, zookeeper=NOT_ASKED))
        assert isinstance(found, NotYet)
        assert "full ISR" in found.what
        assert "restart" not in found.next_step


def test_a_node_that_ended_after_its_start_is_repaired_and_started_by_the_same_command() -> None:
    """Its file may be what must be repaired; which keys may not is said."""
    text = answer(gates.runs_with(service(1, Stopped(1))(whole(Stage.SOAK)), 1, "s" * 64))
    assert "Repair what its last lines name, in its file too, but in no key that this run writes there" in text
    assert text.endswith("the same command starts it")


def test_a_wait_names_its_owner_its_next_step_and_moves_with_the_world() -> None:
    """`progress` is what a wait without progress is told by."""
    found = gates.replicas_full(unhealthy(whole(Stage.SOAK)))
    assert isinstance(found, NotYet)
    assert (found.owner, found.progress) == ("the brokers' replication", "1")
    assert found.next_step
    one, two = (
        gates.quorum_healthy(voter_behind(whole(Stage.SOAK))),
        gates.quorum_healthy(less_voters(whole(Stage.SOAK))),
    )
    assert isinstance(one, NotYet)
    assert isinstance(two, NotYet)
    assert one.progress != two.progress
    assert one.owner == "leader 3000"


def test_a_blocker_of_a_later_stage_does_not_hold_an_earlier_one() -> None:
    """And it comes with its codes."""
    world = different(whole(Stage.COPY))
    assert gates.no_blockers(world, Stage.PREPARE) == Ready()
    missing = worlds.with_zk(whole(Stage.ASSESS), topics_without_id=("orders",))
    found = gates.no_blockers(missing, Stage.MIGRATION_MODE)
    assert isinstance(found, Refused)
    assert found.codes
    assert len(set(found.codes)) == len(found.codes), "each once, however many objects it is about"
    assert "orders" in found.reason


def test_a_blind_spot_that_the_stage_cannot_do_without_blocks_it() -> None:
    """Unseen disks are no healthy disks; the engine looks again for them before it refuses."""
    found = gates.no_blockers(without("disks")(whole(Stage.CONTROLLERS)), Stage.MIGRATION_MODE)
    assert isinstance(found, Unknown)
    assert "B-DIR" in found.reason
    assert "disks hidden" in found.reason


def test_what_is_seen_to_be_wrong_is_not_waited_for_beside_what_is_unseen() -> None:
    """A definite blocker refuses at once, and is told first."""
    world = worlds.with_zk(without("disks")(whole(Stage.CONTROLLERS)), topics_without_id=("orders",))
    found = gates.no_blockers(world, Stage.MIGRATION_MODE)
    assert isinstance(found, Refused)
    assert found.reason.startswith("B-ZKN-03")
    assert "B-ZKN-03" in found.codes


def test_what_is_found_because_a_step_stopped_a_node_counts_for_everybody_else() -> None:
    """A broker that does not see all others blocks the next stop, but not the start of the one that is missing."""
    world = fewer_seen(whole(Stage.CONTROLLERS))
    found = gates.no_blockers(world, Stage.MIGRATION_MODE)
    assert isinstance(found, Refused)
    assert found.codes == ("B-NET-01",)
    assert gates.no_blockers(world, Stage.MIGRATION_MODE, down=2) == Ready()


@pytest.mark.parametrize(
    ("code", "about"),
    [
        ("B-ZKN-05", "broker 2"),
        ("B-CFG-08", "broker 2"),
        ("B-CFG-08", "the playbook"),
        ("B-MIG-05", "broker 2"),
        ("B-MIG-06", "broker 2"),
        ("B-QRM-03", "controller 2: /conf/c2.properties"),
    ],
)
def test_a_node_that_a_step_stopped_excuses_what_is_said_of_it_alone(code: str, about: str) -> None:
    """The same of another one, or anything else of it, counts: a second broker that is down stays a blocker."""
    found = Finding(code, Severity.BLOCKER, about, "")
    assert processes.because_down(found, 2)
    assert not processes.because_down(found, None)
    assert not processes.because_down(replace(found, code="B-DIR-01"), 2)
    if about != "the playbook":
        assert not processes.because_down(replace(found, about=about.replace("2", "1", 1)), 2)
        assert not processes.because_down(replace(found, about=about.replace("2", "21", 1)), 2)


def test_a_node_that_a_step_stopped_is_no_blind_spot_and_others_are() -> None:
    """It cannot answer while it is stopped."""
    for about in (
        "the Metadata answer of broker 2",
        "the DescribeLogDirs answer of broker 2",
        "what controller 2 says of itself",
        "what broker 2 says of itself",
    ):
        found = Finding("X-LIVE-01", Severity.BLIND_SPOT, about, "")
        assert processes.because_down(found, 2)
        assert not processes.because_down(replace(found, about=about.replace("2", "1")), 2)
        assert not processes.because_down(found, None)


def test_a_disk_that_nobody_tried_is_not_healthy() -> None:
    """Neither for the step's gate nor for the checks: nothing known is not nothing wrong."""
    world = worlds.with_directory(whole(Stage.SOAK), 1, 0, lambda entry: replace(entry, unproven="from a listing"))
    assert answer(gates.disks_healthy(world, 1)).startswith("unknown: broker 1: /data/b1/d0: from a listing")
    assert gates.disks_healthy(world, 2) == Ready()
    found = gates.no_blockers(world, Stage.MIGRATION_MODE)
    assert isinstance(found, Unknown)
    assert "/data/b1/d0" in found.reason


def test_a_voter_that_has_fetched_one_record_of_one_is_at_the_end() -> None:
    """The smallest quorum that has committed anything."""
    world = whole(Stage.SOAK)
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    voters = tuple(replace(voter, log_end_offset=1) for voter in quorum.voters)
    assert gates.quorum_healthy(worlds.with_live(world, quorum=replace(quorum, voters=voters, high_watermark=1))) == (
        Ready()
    )


def test_logs_of_a_half_done_rollback_bar_a_start_also_where_no_process_is_seen() -> None:
    """Whether controllers run is not known: they are taken for stopped."""
    logs = MetadataLogs((3000,), 9, state=DUAL)
    found = gates.logs_belong(without("services")(left_behind(logs)(whole(Stage.SOAK))))
    assert answer(found).startswith("refused: the metadata of controllers [3000] says MIGRATION")


def test_what_many_checks_cannot_see_is_said_once_with_their_number() -> None:
    """One host that does not answer is one fact, however many checks ask it."""
    found = gates.no_blockers(without("configs")(whole(Stage.ASSESS)), Stage.FINALIZE)
    assert isinstance(found, Unknown)
    assert found.reason.count("configs hidden") == 1
    assert re.search(r"\(not checked: B-[A-Z]+-\d+, B-[A-Z]+-\d+, B-[A-Z]+-\d+ and \d+ more\)", found.reason)


def test_a_controller_that_does_not_run_is_waited_for_by_host_and_unit() -> None:
    """Another hand stopped it between two steps: a wait with an owner, no check that could not be made."""
    world = whole(Stage.CONTROLLERS)
    nodes = tuple(replace(node, unit="kafka-controller.service") for node in world.inventory.controllers)
    units = replace(world, inventory=replace(world.inventory, controllers=nodes))
    found = gates.no_blockers(ended_controller(units), Stage.MIGRATION_MODE)
    host = world.inventory.node(3001).host
    assert isinstance(found, NotYet)
    assert found.what == f"controller 3001 (kafka-controller.service on {host}) to run again"
    assert found.owner == f"whoever runs {host}"
    assert f"on {host}: systemctl start kafka-controller.service" in found.next_step
    assert isinstance(gates.no_blockers(silent_controller(units), Stage.MIGRATION_MODE), Unknown)


def test_a_broker_that_another_hand_stopped_is_waited_for_and_any_other_blocker_refuses() -> None:
    """What is wrong beside it would still be wrong when it runs again."""
    world = ended_broker(whole(Stage.CONTROLLERS))
    found = gates.no_blockers(world, Stage.MIGRATION_MODE)
    assert isinstance(found, NotYet)
    assert found.what == "broker 1 (its process on b1) to run again"
    worse = worlds.with_zk(world, topics_without_id=("orders",))
    assert isinstance(gates.no_blockers(worse, Stage.MIGRATION_MODE), Refused)


def test_a_broker_with_one_lagging_voter_within_the_allowance_may_go_on() -> None:
    """NoOp records keep followers one or two behind at rest."""
    world = whole(Stage.SOAK)
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    voters = (*quorum.voters[:-1], replace(quorum.voters[-1], log_end_offset=quorum.high_watermark - gates.VOTER_LAG))
    assert gates.quorum_healthy(worlds.with_live(world, quorum=replace(quorum, voters=voters))) == Ready()
    assert gates.quorum_healthy(caught_up(gates.CAUGHT_UP_MS)(world)) == Ready()


def test_a_process_of_which_nobody_knows_the_file_proves_nothing() -> None:
    """Executors that cannot know say None; steps then ask how the node answers and registers."""
    assert "is not known" in answer(gates.runs_with(running(whole(Stage.SOAK), 1, None), 1, "x"))
    assert gates.runs_with(running(whole(Stage.SOAK), 1, "x"), 1, "x") == Ready()


def test_ledger_and_state_take_any_of_the_wanted() -> None:
    """MIGRATING is right in hybrid, and POST_MIGRATION after finalize."""
    world = row_in(ReplicaState.MIGRATING)(whole(Stage.SOAK))
    assert gates.ledger_is(world, ReplicaState.MIGRATING, ReplicaState.VERIFIED) == Ready()
    assert gates.state_is(whole(Stage.FINALIZE), DUAL, DONE) == Ready()


def test_the_first_gate_that_is_shut_answers() -> None:
    """In their order."""
    assert gates.first() == gates.first(Ready(), Ready()) == Ready()
    assert gates.first(Ready(), Unknown("a"), Refused("b")) == Unknown("a")


def test_only_an_open_gate_becomes_a_proof() -> None:
    """Everything else stays what it is."""
    assert gates.as_outcome(Ready(), "one", "two") == Verified(("one", "two"))
    for found in (Unknown("a"), Refused("b"), NotYet("c", "d", "e"), AlreadyDone("f")):
        assert gates.as_outcome(found, "evidence") is found


def test_the_sick_partition_is_the_one_that_is_named() -> None:
    """Topic, partition, leader, ISR and replicas."""
    text = answer(gates.replicas_full(unhealthy(whole(Stage.SOAK))))
    assert f"{SICK.topic}-{SICK.partition}" in text
    assert "of [0, 1]" in text


def test_an_offline_directory_beside_others_says_how_many_there_are() -> None:
    """The first is named, and no number stands behind a single one."""
    one = offline_disk(whole(Stage.SOAK))
    dead = (LogDirAnswer("/data/b2/d1", 56, 0, ()), LogDirAnswer("/data/b2/d2", 56, 0, ()))
    two = worlds.with_live(one, log_dirs={**live(one).log_dirs, NodeId(2): dead})
    assert answer(gates.replicas_full(one)).endswith("broker 2 has log directory /data/b2/d1 offline")
    assert answer(gates.replicas_full(two)).endswith("broker 2 has log directory /data/b2/d1 and 1 more offline")


def test_of_many_partitions_that_are_not_whole_the_first_is_named() -> None:
    """With all of its numbers."""
    world = whole(Stage.SOAK)
    found = live(world).metadata[NodeId(1)]
    assert not isinstance(found, Unknown)
    both = replace(found, unhealthy=(SICK, replace(SICK, partition=4)))
    bent = worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): both})
    assert answer(gates.replicas_full(bent)).startswith("notyet: 2 partitions to have their full ISR, orders-3 among")


def test_the_one_leader_of_all_partitions_that_are_not_whole_is_named_to_be_restarted() -> None:
    """Its lost request shows nowhere else; of several leaders none is named."""
    world = whole(Stage.SOAK)
    found = live(world).metadata[NodeId(1)]
    assert not isinstance(found, Unknown)
    said = []
    for other in (SICK.leader, SICK.leader + 1):
        both = replace(found, unhealthy=(SICK, replace(SICK, partition=4, leader=other)))
        bent = gates.replicas_full(worlds.with_live(world, metadata={**live(world).metadata, NodeId(1): both}))
        assert isinstance(bent, NotYet)
        said.append(bent.next_step)
    assert f"restart broker {SICK.leader} with the current file" in said[0]
    assert "restart" not in said[1]


def test_a_controller_that_only_is_silent_is_waited_for_and_one_that_ended_has_an_owner() -> None:
    """A process that runs comes by itself; one that ended does not."""
    quiet, ended = (gates.quorum_healthy(bend(whole(Stage.SOAK))) for bend in (silent_controller, ended_controller))
    assert isinstance(quiet, NotYet)
    assert isinstance(ended, NotYet)
    assert (quiet.owner, ended.owner) == ("those controllers", "whoever runs c3001")
    assert "ended" not in quiet.what


def test_without_zookeeper_the_metadata_says_how_many_partitions_there_are_once_it_leads() -> None:
    """Before that nobody does."""
    for state_now, says in ((DUAL, "ready"), (DONE, "ready"), (ZkMigrationState.PRE_MIGRATION, "unknown: how many")):
        world = without("zookeeper")(worlds.with_kraft(whole(Stage.SOAK), migration_state=state_now))
        assert answer(gates.replicas_full(world)).startswith(says)


@pytest.mark.parametrize(("behind", "open_"), [(10, True), (11, False)])
def test_a_voter_may_be_ten_records_behind_and_no_more(behind: int, open_: bool) -> None:
    """NoOps keep followers one or two behind at rest."""
    world = whole(Stage.SOAK)
    quorum = live(world).quorum
    assert not isinstance(quorum, Unknown)
    late = replace(quorum.voters[-1], log_end_offset=quorum.high_watermark - behind)
    bent = worlds.with_live(world, quorum=replace(quorum, voters=(*quorum.voters[:-1], late)))
    assert (gates.quorum_healthy(bent) == Ready()) is open_


def blocker(number: int, about: str = "", code: str = "") -> Finding:
    """One that blocks every stage."""
    return Finding(code or f"B-CFG-{number:02}", Severity.BLOCKER, about or f"broker {number}", "is wrong")


def finds(monkeypatch: pytest.MonkeyPatch, *found: Finding) -> None:
    """Every check is silent but for these findings."""
    monkeypatch.setattr(checks, "run", lambda _world, **_: found)


def test_a_refusal_names_five_findings_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """All codes are told, however many there are."""
    for count, ends in ((5, "B-CFG-54 broker 54: is wrong"), (6, "B-CFG-54 broker 54: is wrong (and 1 more)")):
        finds(monkeypatch, *(blocker(50 + number) for number in range(count)))
        found = gates.no_blockers(whole(Stage.SOAK), Stage.FINALIZE)
        assert isinstance(found, Refused)
        assert found.reason.endswith(ends)
        assert len(found.codes) == count


def test_what_cannot_be_seen_is_told_once_with_three_objects_and_three_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And how many there are beside."""
    for count, ends in ((3, "(not checked: B-CFG-0, B-CFG-1, B-CFG-2)"), (4, "B-CFG-2 and 1 more)")):
        blind = [Finding(f"B-CFG-{n}", Severity.BLIND_SPOT, "the disks", "blind", "no rights") for n in range(count)]
        finds(monkeypatch, *blind)
        found = gates.no_blockers(whole(Stage.SOAK), Stage.FINALIZE)
        assert answer(found).startswith("unknown: the disks: no rights (not checked: ")
        assert answer(found).endswith(ends)


def test_only_processes_that_explain_what_is_found_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding needs one of them; one finding that none explains refuses."""
    world = service(0, Stopped(1))(service(2, Stopped(1))(service(3002, Stopped(1))(whole(Stage.SOAK))))
    gone = [blocker(0, f"broker {node}", "B-ZKN-05") for node in (0, 2)]
    finds(monkeypatch, *gone)
    both = gates.no_blockers(world, Stage.FINALIZE)
    assert isinstance(both, NotYet)
    assert both.progress == "[0, 2]"
    finds(monkeypatch, gone[0])
    one = gates.no_blockers(world, Stage.FINALIZE)
    assert isinstance(one, NotYet)
    assert one.progress == "[0]"
    assert gates.no_blockers(world, Stage.FINALIZE, down=0) == Ready()
    finds(monkeypatch, *gone, blocker(9))
    assert isinstance(gates.no_blockers(world, Stage.FINALIZE), Refused)
    finds(monkeypatch, *gone)
    rest = gates.no_blockers(world, Stage.FINALIZE, down=0)
    assert isinstance(rest, NotYet)
    assert rest.progress == "[2]"


def test_a_node_that_answers_is_not_waited_for_though_its_process_here_has_ended() -> None:
    """Of brokers and controllers: the silent one is another, and its own reason is told."""
    silent = service(0, Stopped(1))(silent_broker(whole(Stage.SOAK)))
    assert answer(gates.replicas_full(silent)) == "notyet: broker 1 to answer (connection refused)"
    answers = {**live(whole(Stage.SOAK)).controllers, NodeId(3001): Unknown("connection refused")}
    quiet = service(3000, Stopped(1))(worlds.with_live(whole(Stage.SOAK), controllers=answers))
    assert answer(gates.quorum_healthy(quiet)) == "notyet: controllers [3001] to answer"


def test_what_a_stop_takes_away_is_unknown_where_neither_store_can_be_read() -> None:
    """By the metadata once it has partitions, by ZooKeeper before."""
    assert answer(gates.stop_is_accepted(without("kraft")(without("zookeeper")(whole(Stage.SOAK))), 1)) == (
        "unknown: zookeeper hidden"
    )


def test_a_process_that_a_person_was_asked_for_is_waited_for_by_name() -> None:
    """With whoever owns it."""
    awaited = service(1, Awaited("the host is off", "the owner of b1", "switch it on"))(whole(Stage.SOAK))
    assert gates.runs_with(awaited, 1, "s" * 64) == Awaited(
        "broker 1 to run (the host is off)", "the owner of b1", "switch it on"
    )


RULE = re.compile(r"`([\w.]+)\.(\w+)`")


def test_each_rule_of_the_migration_names_gates_that_exist() -> None:
    """The list at the head of the module is read first: a gate that got another name is not left in it."""
    rules = (gates.__doc__ or "").split("\n\n", 2)[2].split("\n- ")[1:]
    assert len(rules) == 12
    for rule in rules:
        named = RULE.findall(rule)
        assert named, rule
        for module, name in named:
            assert callable(getattr(importlib.import_module(f"migrate.{module}"), name))


def test_how_many_more_blockers_there_are_counts_blockers_alone() -> None:
    """Blind spots beside them are not among the five that are shown."""
    world = worlds.with_values(whole(Stage.CONTROLLERS), 3001, zookeeper__metadata__migration__enable=None)
    found = gates.no_blockers(without("disks")(world), Stage.FINALIZE)
    assert isinstance(found, Refused)
    assert "more)" not in found.reason


# -- a dynamic quorum ------------------------------------------------------------------------------------------------
def test_the_controllers_of_a_dynamic_quorum_are_all_ready_before_the_copy() -> None:
    """Kafka's own check knows no controllers there: one without the flag, elected later, would end the migration."""
    static = whole(Stage.MIGRATION_MODE)
    dynamic = replace(static, inventory=replace(static.inventory, quorum=QuorumKind.DYNAMIC))
    assert gates.controllers_ready(dynamic) == Ready()
    late = ControllerRegistration(NodeId(3001), "x", migration_ready=False)
    for entry in (late, None):
        known = {node: found for node, found in kraft(dynamic).controllers.items() if node != 3001}
        bent = worlds.with_kraft(dynamic, controllers={**known, NodeId(3001): entry} if entry else known)
        found = gates.controllers_ready(bent)
        assert isinstance(found, NotYet)
        assert found.what.startswith("controllers [3001] to register with the migration flag")
        assert gates.controllers_ready(replace(bent, inventory=static.inventory)) == Ready(), "static voters wait"
    blind = gates.controllers_ready(replace(dynamic, kraft=Unknown("no controller answers")))
    assert blind == Unknown("no controller answers")


def test_a_controller_that_votes_under_another_directory_id_is_named_with_its_cure() -> None:
    """Its process answers, and it never catches up: the two commands are told, in the order that Kafka takes."""
    world = replace(whole(Stage.MIGRATION_MODE), disks=Unknown("no host answers"))
    found = gates.quorum_healthy(worlds.with_live(world, quorum=misplaced(observed=True)))
    assert isinstance(found, NotYet)
    assert found.what.startswith("controller 3001 to be a voter: it votes with directory id ")
    assert "remove-controller --controller-id 3001 " in found.next_step.split("add-controller")[0]
