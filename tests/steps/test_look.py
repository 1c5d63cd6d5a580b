"""Steps that only look: their proof is their content, and a wait names what Kafka itself waits for."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from migrate.model.copied import NoLook
from migrate.model.difference import Difference, DifferenceClass
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Outcome, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NotBegun, Predicted, Step
from migrate.model.views import ControllerZnode, MigrationZnode, NullZnode, Stopped
from migrate.model.world import Need, World
from migrate.steps.look import LEFT_ALONE, Assess, Discover, ProveHybrid, Soak, WatchCopy, evidence
from tests.steps.looks import (
    Bend,
    answer,
    broken_disk,
    different,
    registration,
    row_in,
    service,
    unhealthy,
    whole,
    without,
)
from tests.testing import worlds
from tests.testing.worlds import OFFSET, kraft, zk

SOAKED = replace(whole(Stage.SOAK), facts={"soak_elapsed": "3600.0"})
SOAK = Soak(3600.0)


@pytest.mark.parametrize(
    ("step", "world"),
    [
        (Discover(), whole(Stage.DISCOVER)),
        (Discover(), whole(Stage.SOAK)),
        (Assess(), whole(Stage.ASSESS)),
        (WatchCopy(), whole(Stage.COPY)),
        (ProveHybrid(), whole(Stage.COPY)),
        (ProveHybrid(), whole(Stage.KRAFT_MODE)),
        (SOAK, SOAKED),
    ],
)
def test_a_healthy_world_is_proven_with_evidence_and_nothing_is_done(step: Step, world: World) -> None:
    """They may always begin, leave no traces, plan no action, predict no file."""
    found: Outcome = step.verify(world)
    assert isinstance(found, Verified)
    assert all(found.evidence)
    assert step.check(world) == Ready()
    assert step.progress(world) == NotBegun()
    assert step.actions(world, Predicted()) == ()
    assert step.predict(world, Predicted()) == Predicted()


@pytest.mark.parametrize("step", [Discover(), Assess(), WatchCopy(), ProveHybrid(), SOAK], ids=lambda step: step.kind)
def test_a_step_proves_by_what_it_asks_for_alone(step: Step) -> None:
    """With every part hidden that it does not ask for, its proof is the same."""
    world = {"discover": whole(Stage.DISCOVER), "assess": whole(Stage.ASSESS), "soak": SOAKED}.get(
        step.kind, whole(Stage.COPY)
    )
    needs = {"spark-ledger": "ledger"}
    asked = {needs.get(need.value, need.value) for need in step.proof_needs}
    parts = {need.value for need in Need} & {entry.name for entry in fields(World)}
    narrow = replace(world, **{part: Unknown("not asked for") for part in parts - asked})  # type: ignore[arg-type]
    assert step.verify(narrow) == step.verify(world)


@pytest.mark.parametrize("step", [ProveHybrid(), SOAK], ids=lambda step: step.kind)
def test_a_proof_does_not_ask_for_what_comes_after(step: Step) -> None:
    """Old clients are asked over JMX, at most 15 s per broker; servers of ZooKeeper one by one."""
    assert not {Need.ENSEMBLE, Need.REHEARSAL} & step.proof_needs


# -- discover and assess ---------------------------------------------------------------------------------------------
def test_discover_refuses_a_cluster_of_other_brokers() -> None:
    """One too many, one too few."""
    view = zk(whole(Stage.ASSESS))
    less = worlds.with_zk(whole(Stage.ASSESS), brokers={node: view.brokers[node] for node in view.brokers if node})
    kept = "take no broker out of the inventory that the cluster has"
    absent = f"refused: brokers [0] of the inventory are not registered: their logs say why; {kept}"
    assert answer(Discover().verify(less)) == absent
    more = worlds.with_zk(whole(Stage.ASSESS), brokers={**view.brokers, NodeId(7): view.brokers[NodeId(0)]})
    assert answer(Discover().verify(more)) == "refused: the cluster has brokers [7], which the inventory does not list"
    assert answer(Discover().verify(without("zookeeper")(whole(Stage.ASSESS)))) == "unknown: zookeeper hidden"
    assert "brokers [0, 1, 2] of the" in answer(Discover().verify(worlds.with_zk(whole(Stage.ASSESS), brokers={})))


def test_discover_says_of_a_broker_that_is_down_what_to_type() -> None:
    """To take it out of the inventory is the one edit that must not happen."""
    view = zk(whole(Stage.ASSESS))
    less = worlds.with_zk(whole(Stage.ASSESS), brokers={node: view.brokers[node] for node in view.brokers if node})
    said = answer(Discover().verify(service(0, Stopped())(less)))
    assert said.startswith("refused: broker 0 does not run (")
    assert "start what is down, with its file as it is (on b0:" in said
    assert said.endswith("take no broker out of the inventory that the cluster has")
    dead = answer(Discover().verify(service(0, Stopped())(broken_disk(0)(less))))
    assert "repair or replace the disk of broker 0, and start nothing before" in dead
    assert "start what is down" not in dead, "it would recreate its replicas on its other disks"


def test_discover_knows_a_half_rolled_cluster_whole() -> None:
    """A broker in KRaft mode has left /brokers/ids: its registration stands for it, and for it alone."""
    copied = whole(Stage.COPY)
    left = {node: entry for node, entry in zk(copied).brokers.items() if node != 0}
    half = worlds.with_zk(registration(0, migrating=False)(copied), brokers=left)
    assert answer(Discover().verify(half)) == "verified"
    assert answer(Discover().verify(worlds.with_zk(copied, brokers=left))).startswith("refused")
    assert answer(Discover().verify(without("kraft")(half))).startswith("refused")


def test_discover_binds_the_plan_to_the_cluster() -> None:
    """Its id, and nothing else."""
    assert Discover().binds(whole(Stage.ASSESS), Predicted()) == {"cluster_id:": zk(whole(Stage.ASSESS)).cluster_id}


def test_assess_refuses_a_blocker_of_the_first_change() -> None:
    """With its code."""
    found = Assess().verify(worlds.with_values(whole(Stage.ASSESS), 1, broker__id="9"))
    assert isinstance(found, Refused)
    assert any(code.startswith("B-") for code in found.codes)


# -- the copy ----------------------------------------------------------------------------
def waiting(world: World) -> str:
    """What the copy waits for."""
    found = WatchCopy().verify(world)
    assert isinstance(found, NotYet), found
    return found.what


def pre(world: World, **changes: object) -> World:
    """Before the copy: PRE_MIGRATION, /migration with -1s."""
    world = worlds.with_zk(world, migration=MigrationZnode(-1, -1, -1, -1, 0))
    return worlds.with_kraft(world, migration_state=ZkMigrationState.PRE_MIGRATION, **changes)


def nobody_alive(world: World) -> World:
    """No broker in /brokers/ids."""
    return worlds.with_zk(world, brokers={})


def test_the_copy_says_what_the_driver_waits_for_in_the_drivers_order() -> None:
    """Living brokers, brokers in assignments, topics without id, then the copy itself."""
    copied = whole(Stage.COPY)
    brokers = {node: entry for node, entry in kraft(copied).brokers.items() if node != 2}
    assert waiting(pre(copied, brokers=brokers)) == "ZooKeeper-mode brokers [2] to register with KRaft"
    dead = nobody_alive(pre(copied, brokers=brokers))
    assert waiting(dead) == "brokers [2], found in assignments, to register with KRaft"
    without_id = worlds.with_zk(pre(copied), topics_without_id=("orders",))
    assert waiting(without_id) == (
        "topics without topic_id to get one: orders; S-STUCK-51: /brokers/topics/orders has no topic_id"
    )
    assert waiting(pre(copied)) == "the copy to finish (the metadata says PRE_MIGRATION)"


def test_the_copy_says_why_it_waits_and_what_to_do() -> None:
    """By the code of the explanation, where the cause is known; what is only not seen is no cause."""
    brokers = {node: entry for node, entry in kraft(whole(Stage.COPY)).brokers.items() if node != 2}
    world = pre(whole(Stage.COPY), brokers=brokers)
    down = WatchCopy().verify(service(2, Stopped())(world))
    assert isinstance(down, NotYet)
    assert down.what.endswith("to register with KRaft; S-STUCK-31: 2: broker 2 does not run (its process on b2)")
    assert down.next_step == f"Start it; where it died, its log says why.{LEFT_ALONE}"
    blind = WatchCopy().verify(without("services")(world))
    assert isinstance(blind, NotYet)
    assert blind.what == "ZooKeeper-mode brokers [2] to register with KRaft"
    assert blind.next_step.startswith("Repair what it waits for; the controllers look again within a minute.")


@pytest.mark.parametrize(
    "bend",
    [
        lambda world: worlds.with_zk(world, migration=MigrationZnode(0, 1, 3000, 2, 7)),
        lambda world: worlds.with_zk(world, migration=NullZnode(0)),
        lambda world: worlds.with_zk(world, controller=ControllerZnode(0, -1, ephemeral=True, version=0)),
        unhealthy,
        without("zookeeper"),
        without("kraft"),
    ],
    ids=["offset 0", "null", "a broker owns /controller", "ISR", "no ZooKeeper", "no metadata"],
)
def test_a_copy_that_is_not_whole_is_waited_for(bend: Bend) -> None:
    """Offset above 0, /controller a KRaft controller's, every ISR full."""
    found = WatchCopy().verify(bend(whole(Stage.COPY)))
    assert isinstance(found, NotYet)
    assert found.owner
    assert found.next_step


def test_a_partition_that_did_not_arrive_is_waited_for() -> None:
    """The state says MIGRATION, /migration has an offset, and still one is missing."""
    rows = kraft(whole(Stage.COPY)).partitions
    less = type(rows)(**{name: getattr(rows, name)[1:] for name in rows.__dataclass_fields__})
    found = WatchCopy().verify(worlds.with_kraft(whole(Stage.COPY), partitions=less))
    assert isinstance(found, NotYet)
    assert found.what == "1 partition of ZooKeeper to be in the metadata"


def test_the_copys_progress_is_content_and_never_the_offset() -> None:
    """NoOp records come twice a second for ever; records of the open transaction, topics and the state count."""
    table = kraft(whole(Stage.COPY)).partitions
    worlds_seen = [
        pre(whole(Stage.COPY)),
        pre(whole(Stage.COPY), offset=OFFSET + 10_000),
        pre(whole(Stage.COPY), waiting=1),
        pre(whole(Stage.COPY), partitions=type(table)()),
    ]
    first, later, *moved = [
        found.progress for found in map(WatchCopy().verify, worlds_seen) if isinstance(found, NotYet)
    ]
    assert first == later
    assert len({first, *moved}) == 3


LOST = Difference("acl", "Topic|LITERAL|a|User:b|*|READ|ALLOW", "present", DifferenceClass.ONLY_ZK, "true", None)
KNOWN = Difference("topic-config", "ghost", "retention.ms", DifferenceClass.EXPECTED, "1", None, "W-ZKN-21")


@pytest.mark.parametrize("step", [WatchCopy(), ProveHybrid()], ids=lambda step: step.kind)
def test_what_the_copy_dropped_is_refused_by_name_with_what_to_do(step: Step) -> None:
    """Before the second roll, also where both sides are equal by now; so are records that the controller counted."""
    world = whole(Stage.COPY)
    found = step.verify(replace(world, copy=replace(worlds.COPY_HELD, lost=(LOST,))))
    assert isinstance(found, Refused)
    assert "acl Topic|LITERAL|a|User:b|*|READ|ALLOW (present)" in found.reason
    assert "backup restore FILE PLAYBOOK --path ZNODE` shows it" in found.reason
    assert "rollback plan" in found.reason
    short = replace(worlds.COPY_HELD, driver={**worlds.COPY_RECORDS, "CONFIG_RECORD": 2})
    found = step.verify(replace(world, copy=short))
    assert isinstance(found, Refused)
    assert "CONFIG_RECORD: the controller counted 2, the log has 0" in found.reason


@pytest.mark.parametrize("step", [WatchCopy(), ProveHybrid()], ids=lambda step: step.kind)
def test_what_is_known_to_be_dropped_and_what_was_not_checked_is_evidence(step: Step) -> None:
    """By the rule; a look that cannot be read is no equality."""
    world = whole(Stage.COPY)
    told = step.verify(replace(world, copy=replace(worlds.COPY_HELD, known=(KNOWN,))))
    assert isinstance(told, Verified)
    assert "known to be missing (W-ZKN-21): topic-config ghost (retention.ms)" in told.evidence
    blind = step.verify(replace(world, copy=replace(worlds.COPY_HELD, driver=Unknown("no log"))))
    assert isinstance(blind, Verified)
    assert "not checked: the controller's own count of the copy's records (no log)" in blind.evidence
    never = step.verify(replace(world, copy=NoLook("none was kept")))
    assert isinstance(never, Verified)
    assert "not checked: what the copy may have dropped (none was kept)" in never.evidence
    assert isinstance(step.verify(replace(world, copy=Unknown("torn"))), Unknown)


def test_the_copy_promises_dual_write() -> None:
    """Held against the world afterwards."""
    promised = WatchCopy().expects(whole(Stage.ASSESS), Predicted())
    assert promised == {"migration_state:": "MIGRATION", "migration_znode:": "copied"}


# -- hybrid and soak -------------------------------------------------------------------------------------------------
WORSE = (
    ReplicaState.UNKNOWN,
    ReplicaState.TWO_COPIES,
    ReplicaState.NOT_REGISTERED,
    ReplicaState.MOVING,
    ReplicaState.LOST,
    ReplicaState.MISMATCH,
)


@pytest.mark.parametrize("found", WORSE)
def test_hybrid_refuses_a_replica_that_a_restart_would_make_worse(found: ReplicaState) -> None:
    """MIGRATING is what hybrid is."""
    assert isinstance(ProveHybrid().verify(row_in(found)(whole(Stage.COPY))), Refused)
    for fine in (ReplicaState.VERIFIED, ReplicaState.UNASSIGNED):  # the latter: of a topic made in hybrid
        assert isinstance(ProveHybrid().verify(row_in(fine)(whole(Stage.COPY))), Verified)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (different, "refused: 1 differences"),
        (unhealthy, "notyet"),
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), "refused"),
        (without("diff"), "unknown"),
        (without("ledger"), "unknown"),
        (without("kraft"), "unknown"),
        (without("live"), "unknown"),
    ],
)
@pytest.mark.parametrize(
    ("step", "world"), [(ProveHybrid(), whole(Stage.COPY)), (SOAK, SOAKED)], ids=["hybrid", "soak"]
)
def test_each_part_of_the_comparison_alone_is_missed(step: Step, world: World, bend: Bend, says: str) -> None:
    """In hybrid, and again at the end of the soak."""
    assert answer(step.verify(bend(world))).startswith(says)


@pytest.mark.parametrize("found", [state for state in ReplicaState if state is not ReplicaState.VERIFIED])
def test_the_soak_takes_verified_replicas_only(found: ReplicaState) -> None:
    """MIGRATING no longer is one."""
    waited = found in (ReplicaState.NOT_ON_DISK, ReplicaState.UNASSIGNED)  # what a new topic looks like
    assert isinstance(SOAK.verify(row_in(found)(SOAKED)), NotYet if waited else Refused)


def test_the_soak_takes_kraft_brokers_only() -> None:
    """Registered, unfenced."""
    assert isinstance(SOAK.verify(registration(2, migrating=True)(SOAKED)), Refused)
    assert isinstance(SOAK.verify(registration(2, fenced=True)(SOAKED)), Refused)


@pytest.mark.parametrize(
    ("elapsed", "kind"), [("0", NotYet), ("3599.9", NotYet), ("3600.0", Verified), ("1e6", Verified)]
)
def test_the_soak_lasts_as_long_as_the_playbook_says(elapsed: str, kind: type) -> None:
    """Time that is still to pass is waited for, whatever else holds; no time noted is none passed."""
    assert isinstance(SOAK.verify(replace(SOAKED, facts={"soak_elapsed": elapsed})), kind)
    assert isinstance(SOAK.verify(replace(SOAKED, facts={})), NotYet)
    assert isinstance(Soak(0.0).verify(replace(SOAKED, facts={})), Verified)
    assert "for 1 h, then" in SOAK.title


def test_a_soak_that_lasts_is_progress() -> None:
    """The wait would end by lack of progress otherwise."""
    one, two = (SOAK.verify(replace(SOAKED, facts={"soak_elapsed": text})) for text in ("10", "11"))
    assert isinstance(one, NotYet)
    assert isinstance(two, NotYet)
    assert one.progress != two.progress
    assert one.what == "the end of the soak: 59 min 50 s left of 1 h"


def test_evidence_is_what_was_seen_and_nothing_of_what_was_not() -> None:
    """Two lines, or fewer."""
    assert evidence(SOAKED) == (
        f"8 fields compared at metadata offset {OFFSET}: 0 differ, 2 by rule",
        "18 replicas: 18 VERIFIED",
    )
    assert evidence(without("diff")(without("ledger")(SOAKED))) == ()


@pytest.mark.parametrize(
    ("seconds", "waited", "expected"),
    [(10.0, 0.0, 5.0), (10.0, 9.0, 1.0), (3600.0, 0.0, 36.0), (259_200.0, 0.0, 60.0), (259_200.0, 259_190.0, 10.0)],
)
def test_a_long_soak_looks_once_a_minute_a_short_one_every_five_seconds(
    seconds: float, waited: float, expected: float
) -> None:
    """Each look compares all of both sides and stands in the journal; the last one is at the end, not later."""
    assert Soak(seconds).pace(waited) == expected
