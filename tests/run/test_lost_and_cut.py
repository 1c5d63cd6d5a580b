"""A lock lost in the middle, a line cut short, an answer grown old, a sentence wider than its proof: none holds."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import DriveStopped, JournalUnwritable, LockLost, PlanIsStale, StaleBrokerEpoch
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import NotYet, Ready, Refused, Unknown, Verified
from migrate.model.stage import Stage
from migrate.model.views import MigrationZnode
from migrate.model.world import World
from migrate.run import journal as journals
from migrate.run.drive import Driver
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.journal import Journal
from migrate.run.locks import LockFile, RunLock
from migrate.steps import configuration
from migrate.steps.assign import AssignDirectories
from migrate.steps.cleanup import ProveFinal, ReleaseZookeeper
from migrate.steps.look import Discover, ProveHybrid, WatchCopy
from tests.run.test_drive_sending import BROKER, Controller, in_hybrid
from tests.run.test_engine import NoLock, plan_for, run
from tests.steps.looks import answer, registration, row_in, running, whole
from tests.testing import worlds
from tests.testing.simulated import FakeClock, KillAt, SimulatedCluster
from tests.testing.worlds import kraft, live, with_kraft, with_live


# -- policy drive ----------------------------------------------------------------------------------------------------
def drive(bend: Callable[[World], World], still_ours: Callable[[], None], script: tuple[Any, ...] = ()) -> Controller:
    """Drive broker 2 in a world bent like that; the controller it spoke to, also where it was stopped."""
    cluster = in_hybrid()
    cluster.bend = bend
    controller = Controller(cluster, list(script))
    try:
        Driver(cluster, controller, FakeClock(), still_ours).drive(BROKER)
    except (DriveStopped, LockLost) as error:
        controller.script.append(error)
    return controller


def lost() -> None:
    """The lock is another's."""
    raise LockLost("the lock is lost")


def test_no_request_is_sent_once_the_lock_is_lost() -> None:
    """It was asked when the effect began, and that may be minutes ago."""
    controller = drive(lambda world: world, lost)
    assert isinstance(controller.script[-1], LockLost)
    assert controller.epochs == []


@pytest.mark.parametrize("directories", [frozenset(), frozenset({"X" * 22})], ids=["none", "another"])
def test_a_directory_that_is_not_registered_is_never_sent(directories: frozenset[str]) -> None:
    """A registration without LogDirs leaves rows MIGRATING: their directories are on the disk alone."""

    def bend(world: World) -> World:
        entry = replace(kraft(world).brokers[BROKER], log_dirs=directories)  # type: ignore[arg-type]
        return with_kraft(world, brokers={**kraft(world).brokers, BROKER: entry})

    assert drive(bend, lambda: None).sent == []


def test_a_retry_sends_only_what_the_new_look_still_proves() -> None:
    """The broker came back without a disk: its new epoch would carry an old directory."""
    looks = iter(range(99))

    def bend(world: World) -> World:
        if next(looks) == 0:
            return world
        entry = kraft(world).brokers[BROKER]
        fewer = frozenset(sorted(entry.log_dirs)[1:])
        return with_kraft(world, brokers={**kraft(world).brokers, BROKER: replace(entry, log_dirs=fewer, epoch=999)})

    controller = drive(bend, lambda: None, (StaleBrokerEpoch("77"),))
    assert isinstance(controller.script[-1], DriveStopped)
    assert "not registered" in str(controller.script[-1])
    assert controller.sent == []


def test_a_broker_that_does_not_answer_stops_the_sending() -> None:
    """Whether its partitions are whole is unknown, and unknown is not whole."""

    def bend(world: World) -> World:
        world = replace(world, zookeeper=replace(worlds.zk(world), migration=MigrationZnode(999, 1, 3000, 2, 7)))
        return with_live(world, metadata={**live(world).metadata, NodeId(1): Unknown("connection refused")})

    controller = drive(bend, lambda: None)
    assert "connection refused" in str(controller.script[-1])


# -- the journal -----------------------------------------------------------------------------------------------------
class _Filling(io.FileIO):
    """A disk that fills up in the middle of a line, or is interrupted there."""

    limit: int | None = None
    interrupt = False

    def write(self, line: Any) -> int:
        """A part of it."""
        if self.limit is None:
            return super().write(line)
        written = super().write(bytes(line)[: self.limit])
        if self.interrupt:
            raise KeyboardInterrupt
        return written


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_line_that_was_taken_in_part_is_cut_off_at_once(tmp_path: Path, interrupt: bool) -> None:
    """No effect follows it, and the next line does not stand behind its half."""
    path = tmp_path / "journal.jsonl"
    journal = Journal.begin(path, 0.0, {"plan": "p"})
    file = _Filling(str(path), "r+")
    file.seek(0, 2)
    journal._file.close()
    journal._file = file
    file.limit, file.interrupt = 30, interrupt
    with pytest.raises(KeyboardInterrupt if interrupt else JournalUnwritable):
        journal.append(1.0, "intend", {"step": "x"})
    file.limit = None
    journal.append(2.0, "stop", {"reason": "interrupted", "code": ""})
    journal.close()
    found = journals.read(path)
    assert [event.name for event in found.events] == ["run", "stop"]
    assert not found.torn


def test_whatever_stops_a_run_stands_in_its_journal(tmp_path: Path) -> None:
    """With the error's id: a stale plan, a lost lock, a failed prediction."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    cluster.files[1, "/conf/b1.properties"] += b"num.io.threads=9\n"
    with pytest.raises(PlanIsStale):
        run(cluster, plan, tmp_path)
    last = journals.read(tmp_path / "journal.jsonl").events[-1]
    assert (last.name, last.data["code"]) == ("stop", "E-PLAN-02")
    assert "/conf/b1.properties of broker 1 on b1" in last.data["reason"]


# -- locks and backups -----------------------------------------------------------------------------------------------
def test_the_file_is_given_back_where_the_znode_was_lost(tmp_path: Path) -> None:
    """A second run on this host is not held by the first one's bad luck."""

    class Gone:
        """A lock whose session ended."""

        def still_ours(self) -> None:
            """It is not."""
            lost()

        def release(self) -> None:
            """It cannot."""
            lost()

    with pytest.raises(LockLost):
        RunLock(LockFile(tmp_path / "lock"), Gone()).release()
    LockFile(tmp_path / "lock").release()


def test_a_backup_of_an_earlier_attempt_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    """The journal names the file that holds what its SHA-256 says; the older one stays as it is."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    path = "/conf/b1.properties"
    cluster.files[1, path + BACKUP_SUFFIX] = b"of last year"
    journal = Journal.begin(tmp_path / "journal.jsonl", 0.0, {})
    hands, crash = (
        Hands(cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing),
        KillAt(),
    )
    effects = JournaledEffects(hands, journal, NoLock(), FakeClock(), tmp_path, crash)  # type: ignore[arg-type]
    effects.backup_files(NodeId(1), [path])
    effects.backup_files(NodeId(1), [path])
    kept = journals.notes(journal.events)[f"backup:1:{path}"].split(" ")[0]
    journal.close()
    assert cluster.files[1, kept] == cluster.files[1, path]
    assert cluster.files[1, path + BACKUP_SUFFIX] == b"of last year"


# -- looking ---------------------------------------------------------------------------------------------------------
def test_no_broker_anywhere_is_no_cluster() -> None:
    """Neither in /brokers/ids nor in the metadata: nothing says that the inventory is right."""
    world = worlds.with_zk(whole(Stage.ASSESS), brokers={})
    assert isinstance(Discover().verify(world), Refused)


def test_the_copy_is_done_when_every_partition_is_there() -> None:
    """The state alone says that Kafka thinks so."""
    world = whole(Stage.COPY)
    assert isinstance(WatchCopy().verify(world), Verified)
    empty = with_kraft(world, partitions=type(kraft(world).partitions)())
    found = WatchCopy().verify(empty)
    assert isinstance(found, NotYet)
    assert "6 partitions" in found.what


def test_a_topic_made_in_hybrid_holds_nobody() -> None:
    """It is UNASSIGNED until its brokers are in KRaft mode; those that were there before are sent."""
    world = row_in(ReplicaState.UNASSIGNED)(whole(Stage.COPY))
    assert isinstance(ProveHybrid().verify(world), Verified)
    assert all(AssignDirectories(int(node)).check(world) == Ready() for node in worlds.BROKERS)
    assert any(isinstance(AssignDirectories(int(node)).verify(world), NotYet) for node in worlds.BROKERS)


# -- the end ---------------------------------------------------------------------------------------------------------
def test_the_lock_goes_back_when_no_process_has_zookeeper_in_its_file() -> None:
    """Not by the metadata's word alone: ZooKeeper is stopped by its operator after this."""
    final, release = whole(Stage.CLEANUP), ReleaseZookeeper()
    assert release.check(final) == Ready()
    left = worlds.with_values(final, 1, zookeeper__connect="zk1:2181")
    assert "zookeeper.connect" in answer(release.check(left))
    assert isinstance(release.verify(left), Refused)
    old = running(final, 3001, "s" * 64)
    assert "another configuration file" in answer(release.check(old))


@pytest.mark.parametrize("kind", ["broker", "controller"])
def test_a_stale_registration_is_missed_by_the_last_proof(kind: str) -> None:
    """The sentence says that there is none."""
    final = whole(Stage.CLEANUP)
    view = kraft(final)
    if kind == "broker":
        bent = with_kraft(final, brokers={**view.brokers, NodeId(9): view.brokers[NodeId(0)]})
    else:
        bent = with_kraft(final, controllers={**view.controllers, NodeId(9): view.controllers[NodeId(3000)]})
    assert isinstance(ProveFinal().verify(final), Verified)
    assert "[9]" in answer(ProveFinal().verify(bent))
    assert isinstance(ProveFinal().verify(registration(1, migrating=True)(final)), Refused)


def test_a_controller_gets_the_broker_s_way_to_a_zookeeper_over_tls() -> None:
    """zookeeper.ssl.* is of no use without the socket that speaks it."""
    socket = "org.apache.zookeeper.ClientCnxnSocketNetty"
    values = {
        "zookeeper.connect": "zk1:2182",
        "zookeeper.clientCnxnSocket": socket,
        "zookeeper.ssl.client.enable": "true",
    }
    known = worlds.inventory()
    rendered = configuration.controller(values, known, known.controllers[0]).decode()
    assert f"zookeeper.clientCnxnSocket={socket}" in rendered
    assert "zookeeper." not in configuration.finalized_controller(rendered.encode()).decode()
