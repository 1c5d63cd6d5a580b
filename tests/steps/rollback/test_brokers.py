"""The two rolls of a rollback, half done and after the start: what holds them, and what proves them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DirectoryLost
from migrate.hosts.meta_properties import decode
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, NotYet, Ready, Refused, Unknown, Verified
from migrate.model.stage import ZkMigrationState
from migrate.model.step import HalfDone, Predicted
from migrate.model.views import BrokerDisks, HostFile, KeptFiles, MetaMissing, MetaProperties, Running, Stopped
from migrate.model.world import World
from migrate.steps.facts import sha256
from migrate.steps.roll import Roll
from migrate.steps.rollback.brokers import RollBackToMigrationMode, RollToZookeeperMode
from tests.run.test_rollback import at, go_back, rollback_plan
from tests.steps.looks import Bend, Remembered, answer, no_leader, running, service, without
from tests.steps.rollback.test_gates import ALL, handed_back, hybrid, named, taken
from tests.testing import worlds
from tests.testing.simulated_back import TwoWay, two_way
from tests.testing.worlds import zk

TO_MIGRATION, TO_ZOOKEEPER = RollBackToMigrationMode(1), RollToZookeeperMode(1)
STOPPED_EPOCH = {"ended:migration-mode/back-1": "-7"}


def sick(world: World) -> World:
    """A log directory of broker 1 died."""
    return worlds.with_directory(world, 1, 2, lambda entry: replace(entry, problem="input/output error"))


def half_back() -> World:
    """Brokers 0 and 1 in KRaft mode, the second one stopped by its rollback."""
    cluster = deepcopy(taken("half of the second roll"))
    cluster.stop(NodeId(1), 1.0)
    return cluster.observe(ALL, {})


def running_half() -> World:
    """Brokers 0 and 1 in KRaft mode, all of them run."""
    return deepcopy(taken("half of the second roll")).observe(ALL, {})


def in_zookeeper_mode(world: World) -> World:
    """Broker 1 runs with its file of ZooKeeper mode, by its own session."""
    path = world.inventory.brokers[1].config
    file = worlds.config_file(NodeId(1), path, two_way().files[1, path])
    assert not isinstance(world.configs, Unknown)
    return running(replace(world, configs={**world.configs, NodeId(1): file}, facts=STOPPED_EPOCH), 1, file.sha256)


# -- to migration mode ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_kraft(world, migration_state=ZkMigrationState.POST_MIGRATION), "refused: "),
        (no_leader, "notyet: a leader of the quorum"),
        (without("backups"), "unknown: backups hidden"),
        (without("configs"), "unknown: the file of broker 1 cannot be read"),
        (sick, "refused: "),
        (lambda world: worlds.with_zk(world, brokers=zk(hybrid()).brokers), "notyet: the ZooKeeper session"),
    ],
)
def test_a_stopped_broker_is_started_in_migration_mode_behind_all_but_its_own_stop(bend: Bend, says: str) -> None:
    """State, quorum, its file, its disks, and the end of its old session."""
    assert TO_MIGRATION.resume(half_back()) == Ready()
    assert answer(TO_MIGRATION.resume(bend(half_back()))).startswith(says)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: worlds.with_zk(world, brokers={}), "notyet: broker 1 to be in /brokers/ids"),
        (without("zookeeper"), "unknown: zookeeper hidden"),
        (lambda world: worlds.with_kraft(world, brokers={}), "notyet: broker 1 to register in migration mode"),
        (service(1, Stopped(1)), "refused: broker 1 does not run"),
        (without("live"), "unknown: live hidden"),
    ],
)
def test_a_broker_is_back_in_migration_mode_with_both_registrations(bend: Bend, says: str) -> None:
    """In the metadata and in ZooKeeper: one alone is half of it."""
    assert isinstance(TO_MIGRATION.verify(hybrid()), Verified)
    assert answer(TO_MIGRATION.verify(bend(hybrid()))).startswith(says)


# -- to ZooKeeper mode ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda _: hybrid(), "refused: controllers [3000, 3001, 3002] run"),
        (lambda world: worlds.with_zk(world, controller=Unknown("malformed")), "unknown: malformed"),
        (without("configs"), "unknown: the file of broker 1 cannot be read"),
        (without("backups"), "unknown: backups hidden"),
        (lambda world: replace(world, backups={}), "unknown: the copies of broker 1 were not looked at"),
        (named(2, (1,) * 20), "notyet: broker 2 to name broker 0"),
        (service(1, Stopped(0)), "notyet: the ZooKeeper session that broker 1 left to end"),
    ],
)
def test_the_last_roll_is_held_by_control_copies_and_sessions(bend: Bend, says: str) -> None:
    """Whether its broker runs or not."""
    assert TO_ZOOKEEPER.resume(handed_back()) == Ready()
    assert answer(TO_ZOOKEEPER.resume(bend(handed_back()))).startswith(says)


def test_a_broker_whose_meta_properties_nobody_read_is_not_started_in_zookeeper_mode() -> None:
    """One of version 1 ends its start; its file alone needs no copy any more."""
    world = in_zookeeper_mode(handed_back())
    assert TO_ZOOKEEPER.resume(world) == Ready()
    assert answer(TO_ZOOKEEPER.resume(without("backups")(world))) == "unknown: backups hidden"
    unseen = replace(world, backups={NodeId(1): Unknown("no rights")})
    assert answer(TO_ZOOKEEPER.resume(unseen)) == "unknown: no rights"
    assert answer(TO_ZOOKEEPER.resume(replace(world, backups={}))).startswith("unknown: the files of broker 1")


@pytest.mark.parametrize(
    ("started", "noted", "done"),
    [
        ("the file", "", True),
        ("another", "-7", False),
        (None, "-7", True),
        (None, "now", False),
        (None, "", False),
    ],
)
def test_a_restart_is_told_by_the_file_and_where_that_is_not_known_by_a_new_session(
    started: str | None, noted: str, done: bool
) -> None:
    """A session without a note of the one before it proves no restart."""
    world = in_zookeeper_mode(handed_back())
    assert not isinstance(world.services, Unknown)
    process = world.services[NodeId(1)]
    assert isinstance(process, Running)
    epoch = str(zk(world).brokers[NodeId(1)].epoch) if noted == "now" else noted
    world = replace(world, facts={"ended:migration-mode/back-1": epoch} if epoch else {})
    if started != "the file":
        world = running(world, 1, None if started is None else "0" * 64)
    assert isinstance(TO_ZOOKEEPER.progress(world), AlreadyDone if done else HalfDone)
    assert isinstance(
        TO_ZOOKEEPER.progress(without("zookeeper")(world)), AlreadyDone if started == "the file" else HalfDone
    )


def test_the_last_roll_is_proven_by_a_new_session() -> None:
    """None, the old one, and one that cannot be seen are no proof."""
    world = in_zookeeper_mode(handed_back())
    assert isinstance(TO_ZOOKEEPER.verify(world), Verified)
    gone = TO_ZOOKEEPER.verify(worlds.with_zk(world, brokers={}))
    assert answer(gone) == "notyet: broker 1 to register in /brokers/ids (now: none)"
    epoch = str(zk(world).brokers[NodeId(1)].epoch)
    old = TO_ZOOKEEPER.verify(replace(world, facts={"ended:migration-mode/back-1": epoch}))
    assert isinstance(old, NotYet)
    assert (old.what, old.progress) == ("broker 1 to register in /brokers/ids (now: the old one)", "the old one")
    assert answer(TO_ZOOKEEPER.verify(without("zookeeper")(world))) == "unknown: zookeeper hidden"


@pytest.mark.parametrize(
    ("step", "made"), [(TO_MIGRATION, half_back), (TO_ZOOKEEPER, handed_back)], ids=["migration", "zookeeper"]
)
def test_no_broker_is_restarted_over_a_log_directory_without_its_identity(
    step: Roll, made: Callable[[], World]
) -> None:
    """Emptied or not mounted: replicas that lie there alone would be created again, empty."""
    bare = worlds.with_directory(made(), 1, 1, lambda entry: replace(entry, meta=MetaMissing()))
    found = step.resume(bare)
    assert isinstance(found, Refused)
    assert found.codes == ("B-DIR-24",)
    assert found.reason.startswith("broker 1 has no meta.properties in /data/b1/d1: emptied, new, or not mounted.")
    other = worlds.with_directory(made(), 2, 1, lambda entry: replace(entry, meta=MetaMissing()))
    assert step.resume(other) == Ready()
    assert answer(step.resume(without("disks")(made()))) == "unknown: disks hidden"
    assert answer(step.resume(replace(made(), disks={}))) == "unknown: the disks of broker 1 were not looked at"


@pytest.mark.parametrize("entry", ["half of the second roll", "handed back"])
def test_a_running_broker_is_not_stopped_over_a_log_directory_without_its_identity(entry: str) -> None:
    """It may not have noticed: its stop would be the first to show it."""
    world, step = (handed_back(), TO_ZOOKEEPER) if entry == "handed back" else (running_half(), TO_MIGRATION)
    assert step.check(world) == Ready()
    found = step.check(worlds.with_directory(world, 1, 1, lambda entry: replace(entry, meta=MetaMissing())))
    assert isinstance(found, Refused)
    assert found.codes == ("B-DIR-24",)


def test_a_dead_disk_does_not_keep_a_broker_from_zookeeper_mode() -> None:
    """There a broker runs on without it; what was read of it is no identity that is missing."""
    gone = {"problem": "input/output error", "meta": MetaMissing()}
    dead = worlds.with_directory(handed_back(), 1, 1, lambda entry: replace(entry, **gone))  # type: ignore[arg-type]
    assert TO_ZOOKEEPER.resume(dead) == Ready()


# -- the plan ----------------------------------------------------------------------------------------------------
def test_a_file_that_cannot_be_restored_is_shown_as_such() -> None:
    """Unreadable, or without a copy that leads to it."""
    for bend in (without("configs"), lambda world: replace(world, backups={NodeId(1): KeptFiles((), ())})):
        action, *_ = TO_ZOOKEEPER.actions(bend(handed_back()), Predicted())
        assert (action.symbol, action.what) == ("?", "/conf/b1.properties cannot be restored")


def test_a_broker_that_is_down_is_shown_as_started() -> None:
    """It has its turn first; a later roll of it in the same plan is a restart."""
    first, last = TO_MIGRATION.actions(half_back(), Predicted()), TO_ZOOKEEPER.actions(handed_back(), Predicted())
    assert first[-1].what == "start (it is down): write the file, start"
    assert last[-1].what == "restart: stop, write the file, start"
    after = TO_MIGRATION.predict(half_back(), Predicted())
    assert TO_ZOOKEEPER.actions(half_back(), after)[-1].what == "restart: stop, write the file, start"


def test_what_was_edited_since_is_shown_beside_what_is_restored() -> None:
    """It stays, and the plan says so before anything is touched."""
    cluster = deepcopy(taken("hybrid"))
    cluster.files[1, "/conf/b1.properties"] += b"log.cleaner.threads=2\n"
    step = next(entry for entry in rollback_plan(cluster).steps if entry.id == TO_ZOOKEEPER.id)
    assert [action.symbol for action in step.actions] == ["~", "=", ">"]
    assert "+log.cleaner.threads=2" in step.actions[1].diff


def test_the_last_roll_asks_again_who_its_directories_are_as_it_leaves_them() -> None:
    """A disk that went while the broker was stopped ends the roll; one that had failed before is not asked for."""
    world = handed_back()
    assert not isinstance(world.disks, Unknown)
    disks = world.disks[NodeId(1)]
    assert isinstance(disks, BrokerDisks)
    entry = disks.directories[1]
    raw = b"version=1\nnode.id=1\ncluster.id=%s\ndirectory.id=%s\n" % (
        zk(world).cluster_id.encode(),
        str(entry.id).encode(),
    )
    formatted = decode(raw)
    assert isinstance(formatted, MetaProperties)
    world = worlds.with_directory(world, 1, 1, lambda entry: replace(entry, meta=formatted))
    assert not isinstance(world.backups, Unknown)
    kept = world.backups[NodeId(1)]
    assert isinstance(kept, KeptFiles)
    file = HostFile(f"{entry.path}/meta.properties", raw, sha256(raw))
    world = replace(world, backups={**world.backups, NodeId(1): replace(kept, metas=(file,))})
    effects = Remembered()
    TO_ZOOKEEPER.do(world, effects)
    wanted = {one.path: replace(formatted, version=0) if one is entry else one.meta for one in disks.directories}
    assert effects.same == {1: (len(effects.done) - 1, wanted)}
    assert effects.done[-1] == "start 1"
    effects = Remembered()
    TO_ZOOKEEPER.do(sick(world), effects)
    assert effects.asked == {1: ("/data/b1/d0", "/data/b1/d1")}
    for hidden in (without("disks")(world), replace(world, disks={})):
        effects = Remembered()
        TO_ZOOKEEPER.do(hidden, effects)
        assert effects.asked == {}
        assert effects.done[-1] == "start 1"


def test_a_roll_to_zookeeper_mode_ends_before_the_start_over_a_disk_that_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the whole rollback: the broker stays stopped, and the disk is named."""
    cluster, read = at("hybrid", tmp_path / "forward"), TwoWay.read
    before = len(cluster.done)

    def without_its_disk(self: TwoWay, node: NodeId, path: str) -> bytes:
        if path == "/data/b1/d1/meta.properties" and node not in self.running:
            raise FileNotFoundError(2, "No such file or directory", path)
        return read(self, node, path)

    monkeypatch.setattr(TwoWay, "read", without_its_disk)
    with pytest.raises(DirectoryLost) as raised:
        go_back(cluster, tmp_path / "back")
    assert raised.value.where == "/data/b1/d1"
    acts = cluster.done[before:]
    assert "stop 1" in acts
    assert not [act for act in acts if act.startswith("start 1")]
