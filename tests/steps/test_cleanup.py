"""After finalize: the lock goes back only once it is final, and the last proof needs no ZooKeeper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NO_ZNODE, Predicted
from migrate.model.views import NoFile, Stopped
from migrate.model.world import Need, World
from migrate.steps.cleanup import ProveFinal, ReleaseZookeeper, RemoveCopies
from tests.steps.looks import (
    Bend,
    Remembered,
    answer,
    no_leader,
    registration,
    row_in,
    running,
    service,
    unhealthy,
    whole,
    without,
)
from tests.testing import worlds

RELEASE, PROVE = ReleaseZookeeper(), ProveFinal()
FINAL = whole(Stage.CLEANUP)


def test_a_finalized_cluster_gives_the_lock_back() -> None:
    """One effect, seen in the metadata before and after."""
    effects = Remembered()
    assert RELEASE.check(FINAL) == Ready()
    RELEASE.do(FINAL, effects)
    assert effects.done == ["release"]
    assert isinstance(RELEASE.verify(FINAL), Verified)
    (action,) = RELEASE.actions(FINAL, Predicted())
    assert (action.version, action.before, action.after) == (None, "this run as its holder", NO_ZNODE)
    assert (action.symbol, action.znode) == ("-", "lock")


@pytest.mark.parametrize("state", [state for state in ZkMigrationState if state is not ZkMigrationState.POST_MIGRATION])
def test_before_that_it_does_not(state: ZkMigrationState) -> None:
    """ZooKeeper is part of the cluster still."""
    world = worlds.with_kraft(FINAL, migration_state=state)
    assert isinstance(RELEASE.check(world), Refused)
    assert isinstance(RELEASE.verify(world), Refused)
    assert isinstance(RELEASE.check(without("kraft")(FINAL)), Unknown)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_values(world, 2, zookeeper__connect="zk1:2181"), "zookeeper.connect"),
        (lambda world: running(world, 1, "0" * 64), "started with another configuration file"),
        (service(3001, Stopped(1)), "controller 3001 does not run (its process on c3001)"),
        (service(1, Unknown("no /proc")), "no /proc"),
        (without("configs"), "cannot be read"),
        (without("services"), "services hidden"),
    ],
)
def test_zookeeper_is_not_given_up_while_a_process_may_need_it(bend: Bend, says: str) -> None:
    """Neither by a file nor by a process that was started with another one."""
    assert says in answer(RELEASE.check(bend(FINAL)))
    assert says in answer(RELEASE.verify(bend(FINAL)))


def strangers(world: World) -> World:
    """A broker and a controller that nobody lists any more are registered still."""
    view = worlds.kraft(world)
    return worlds.with_kraft(
        world,
        brokers={**view.brokers, NodeId(9): replace(view.brokers[NodeId(0)], id=NodeId(9))},
        controllers={**view.controllers, NodeId(3009): replace(view.controllers[NodeId(3000)], id=NodeId(3009))},
    )


def test_registrations_of_nodes_that_are_gone_are_told_by_number() -> None:
    """They hold up later upgrades."""
    found = PROVE.verify(strangers(FINAL))
    assert isinstance(found, Refused)
    assert "[9, 3009]" in found.reason
    assert found.codes == ("W-QRM-07",)


def accepting(name: str, kind: str = "controller", expires: str = "2027-01-01") -> World:
    """One controller is registered still that is gone, and the playbook accepts a registration."""
    view = worlds.kraft(FINAL)
    ghost = replace(view.controllers[NodeId(3000)], id=NodeId(3009))
    world = worlds.with_kraft(FINAL, controllers={**view.controllers, NodeId(3009): ghost})
    assert not isinstance(world.playbook, Unknown)
    entry = AcceptedDifference("W-QRM-07", kind, name, "registration", "its host is gone", "CHG1", expires)
    return replace(world, today="2026-06-30", playbook=replace(world.playbook, accepted_differences=(entry,)))


def test_a_controller_that_is_gone_may_stay_registered_where_the_playbook_accepts_it() -> None:
    """No command before Kafka 4.4 removes it; the evidence keeps saying that it is there."""
    found = PROVE.verify(accepting("3009"))
    assert isinstance(found, Verified)
    assert any("the registration of controller 3009, accepted by the playbook" in line for line in found.left)


@pytest.mark.parametrize(
    "world",
    [accepting("3008"), accepting("3009", kind="broker"), accepting("3009", expires="2026-06-30")],
    ids=["another", "a broker", "expired"],
)
def test_no_other_acceptance_lets_it_stay(world: World) -> None:
    """By kind, id and day."""
    found = PROVE.verify(world)
    assert isinstance(found, Refused)
    assert "[3009]" in found.reason


def test_an_accepted_controller_that_votes_or_may_vote_is_refused() -> None:
    """It is not gone."""
    world = accepting("3009")
    live = world.live
    assert not isinstance(live, Unknown)
    assert not isinstance(live.quorum, Unknown)
    voters = (*live.quorum.voters, replace(live.quorum.voters[0], id=NodeId(3009)))
    voting = replace(world, live=replace(live, quorum=replace(live.quorum, voters=voters)))
    assert "voters" in answer(PROVE.verify(voting))
    assert isinstance(PROVE.verify(no_leader(world)), Refused | Unknown | NotYet)


def test_a_broker_that_is_gone_is_never_accepted() -> None:
    """`kafka-cluster unregister` removes it."""
    world = accepting("9")
    view = worlds.kraft(world)
    brokers = {**view.brokers, NodeId(9): replace(view.brokers[NodeId(0)], id=NodeId(9))}
    found = PROVE.verify(worlds.with_kraft(world, brokers=brokers))
    assert isinstance(found, Refused)
    assert "[9, 3009]" in found.reason


def test_the_last_proof_holds_with_zookeeper_stopped() -> None:
    """It asks for everything else."""
    assert isinstance(FINAL.zookeeper, Unknown)
    assert Need.ZOOKEEPER not in PROVE.proof_needs
    found = PROVE.verify(FINAL)
    assert isinstance(found, Verified)
    assert found.evidence == ("18 replicas VERIFIED", "no zookeeper.* key in any file")


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.MIGRATION), "refused: the metadata"),
        (registration(1, migrating=True), "refused: broker 1"),
        (registration(1, fenced=True), "refused: broker 1"),
        (lambda world: worlds.with_values(world, 2, zookeeper__connect="zk1:2181"), "zookeeper.connect"),
        (lambda world: worlds.with_values(world, 3001, zookeeper__metadata__migration__enable="true"), "c3001"),
        (
            lambda world: replace(world, configs={**world.configs, NodeId(2): NoFile("/x")}),
            "unknown: the file of node 2",
        ),
        (without("configs"), "unknown: the file of node 0"),
        *((row_in(state), state.value) for state in ReplicaState if state is not ReplicaState.VERIFIED),
        (without("ledger"), "unknown: ledger hidden"),
        (no_leader, "notyet: a leader"),
        (unhealthy, "notyet: 1 partition "),
        (without("live"), "unknown: live hidden"),
        (without("kraft"), "unknown: kraft hidden"),
    ],
)
def test_each_part_of_the_last_proof_alone_is_missed(bend: Bend, says: str) -> None:
    """Metadata, registrations, files, replicas, quorum, ISRs."""
    assert says in answer(PROVE.verify(bend(FINAL)))


# -- what runs leave on the hosts ----------------------------------------------------------------------------------
BESIDE = "/conf/b1.properties.kraft-migrate-backup"
ASIDE = "/data/c3000/kraft-migrate-aside-20260101T000000"
REMOVE = RemoveCopies()


def left(world: World, **nodes: tuple[str, ...] | Unknown) -> World:
    """Those paths on the hosts of nodes (`n1`), none on the others."""
    found = {node.id: nodes.get(f"n{int(node.id)}", ()) for node in world.inventory.nodes}
    return replace(world, leftovers=found)


def test_copies_are_removed_where_the_playbook_asks_for_it_and_folders_stay() -> None:
    """A folder that a rollback set aside is told, for a person to remove."""
    world, effects = left(FINAL, n1=(BESIDE,), n3000=(ASIDE,)), Remembered()
    assert REMOVE.check(world) == Ready()
    assert REMOVE.actions(world, Predicted())[0].what == f"remove {BESIDE}"
    REMOVE.do(world, effects)
    assert effects.done == [f"remove 1 {BESIDE}"]
    assert isinstance(REMOVE.verify(world), Refused)
    done = REMOVE.verify(left(FINAL, n3000=(ASIDE,)))
    assert isinstance(done, Verified)
    assert any(ASIDE in line for line in done.left)


@pytest.mark.parametrize(
    "bend",
    [
        lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.MIGRATION),
        lambda world: worlds.with_values(world, 2, zookeeper__connect="zk1:2181"),
        lambda world: running(world, 1, "0" * 64),
        lambda world: left(world, n1=Unknown("no route")),
        lambda world: replace(world, leftovers=Unknown("not looked")),
    ],
)
def test_no_copy_is_removed_that_a_rollback_may_still_need(bend: Bend) -> None:
    """Before finalize, with a file or a process of before it, and where a host is not seen."""
    assert not isinstance(REMOVE.check(bend(left(FINAL, n1=(BESIDE,)))), Ready)


def test_the_last_proof_says_what_is_left_with_secrets_in_it_and_where() -> None:
    """A line a node; what was not seen is said, and holds up no proof."""
    told = PROVE.verify(left(FINAL, n1=(BESIDE,), n3000=(ASIDE,), n2=Unknown("no route")))
    assert isinstance(told, Verified)
    assert "left" not in "".join(told.evidence)
    text = "\n".join(told.left)
    host = FINAL.inventory.brokers[1].host
    assert f"left on {host} (node 1), with secrets in it: {BESIDE}" in text
    assert f"(node 3000), with secrets in it: {ASIDE}" in text
    assert "(node 2) was not seen: no route" in text
    assert "the run's folder holds copies" in text
    assert PROVE.verify(left(FINAL)) == Verified(told.evidence, ())
