"""What is left of controllers is set aside, and the end is proven of every broker: part by part."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Unknown, Verified
from migrate.model.step import HalfDone
from migrate.model.views import MetaMissing, MetaProperties, NoFile, NoZnode
from migrate.model.world import World
from migrate.steps.rollback.cleanup import ProveZookeeperMode, SetControllerAside
from tests.steps.looks import Bend, Remembered, answer, running, without
from tests.steps.rollback.test_gates import ALL, handed_back, hybrid
from tests.testing import worlds
from tests.testing.simulated_back import two_way
from tests.testing.worlds import zk

STEP, END = SetControllerAside(3000), ProveZookeeperMode()


def set_aside(world: World, *, file: bool = True) -> World:
    """Controller 3000's metadata is moved away, and its file too."""
    world = worlds.with_directory(
        world, 3000, 0, lambda entry: replace(entry, meta=MetaMissing(), holds_metadata_log=False)
    )
    assert not isinstance(world.configs, Unknown)
    return replace(world, configs={**world.configs, NodeId(3000): NoFile("/x")}) if file else world


def test_a_controller_is_set_aside_when_neither_its_metadata_nor_its_file_is_there() -> None:
    """One of the two is half of it; what cannot be seen is unknown."""
    assert answer(STEP.verify(handed_back())) == "refused: its metadata or its file is still there"
    part = set_aside(handed_back(), file=False)
    assert isinstance(STEP.progress(part), HalfDone)
    assert answer(STEP.verify(part)) == "refused: its metadata or its file is still there"
    whole = set_aside(handed_back())
    assert isinstance(STEP.progress(whole), AlreadyDone)
    assert isinstance(STEP.verify(whole), Verified)
    for view in ("disks", "configs"):
        assert answer(STEP.verify(without(view)(whole))) == f"unknown: {view} hidden"


def test_only_what_is_there_is_set_aside() -> None:
    """A second attempt does what the first one left."""
    effects = Remembered()
    STEP.do(set_aside(handed_back(), file=False), effects)
    assert effects.done == ["aside 3000 /conf/c3000.properties"]


def with_controller(world: World, node: int) -> World:
    """A controller runs again."""
    return running(world, node, "0" * 64)


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda world: world, "ready"),
        (set_aside, "ready"),
        (lambda world: with_controller(world, 3001), "refused: controllers [3001] run"),
        (without("services"), "unknown: services hidden"),
        (lambda world: worlds.with_zk(world, migration=zk(hybrid()).migration), "refused: /migration is still there"),
        (lambda world: worlds.with_zk(world, controller=NoZnode()), "notyet: a broker to claim /controller"),
        (without("zookeeper"), "unknown: zookeeper hidden"),
        (without("disks"), "unknown: disks hidden"),
        (lambda world: replace(world, disks={}), "unknown: the directory of controller 3000 was not looked at"),
        (lambda world: replace(world, disks={NodeId(3000): Unknown("no mount")}), "unknown: no mount"),
    ],
)
def test_a_controller_is_set_aside_only_where_everything_is_known_and_no_controller_is_needed(
    bend: Bend, says: str
) -> None:
    """Each part alone holds it; what is already gone needs no look at whose it was."""
    assert answer(STEP.check(bend(handed_back()))).startswith(says)


def back() -> World:
    """Every broker in ZooKeeper mode, no controller left."""
    return deepcopy(two_way()).observe(ALL, {})


def meta_of(broker: int, meta: MetaProperties | MetaMissing) -> Bend:
    """One directory of a broker with that meta.properties."""
    return lambda world: worlds.with_directory(world, broker, 1, lambda entry: replace(entry, meta=meta))


@pytest.mark.parametrize(
    ("bend", "says"),
    [
        (lambda _: hybrid(), "refused: controllers [3000, 3001, 3002] run"),
        (lambda world: worlds.with_zk(world, controller_epoch=NoZnode()), "refused: /controller_epoch is "),
        (lambda world: worlds.with_zk(world, state_epoch=10**6), "refused: /controller_epoch is "),
        (without("configs"), "unknown: the file of broker 0 cannot be read"),
        (lambda world: running(world, 1, "0" * 64), "refused: node 1 runs, but was started with another"),
        (without("disks"), "unknown: disks hidden"),
        (lambda world: replace(world, disks={}), "unknown: the disks of broker 0 were not looked at"),
        (lambda world: replace(world, disks={NodeId(0): Unknown("no mount")}), "unknown: no mount"),
        (meta_of(2, MetaMissing()), "refused: broker 2: no meta.properties of version 0 in /data/b2/d1"),
        (meta_of(2, MetaProperties(1, "c", 2, None)), "refused: broker 2: no meta.properties of version 0 in"),
    ],
)
def test_each_part_of_the_end_is_proven(bend: Bend, says: str) -> None:
    """Of each broker by itself; nothing stands in for another."""
    assert isinstance(END.verify(back()), Verified)
    assert answer(END.verify(bend(back()))).startswith(says)


@pytest.mark.parametrize(("noted", "holds"), [(-1, True), (0, False), (1, False)])
def test_the_controller_epoch_must_be_above_the_one_of_kraft(noted: int, holds: bool) -> None:
    """Equal is too low: brokers refuse the controller (KAFKA-20488)."""
    epoch = worlds.zk(back()).controller_epoch
    assert isinstance(epoch, int)
    found = END.verify(replace(back(), facts={"rollback:kraft-epoch": str(epoch + noted)}))
    assert isinstance(found, Verified) is holds
    assert holds or "KAFKA-20488" in answer(found)


def test_a_broker_without_a_session_is_not_back() -> None:
    """Also one that does not own /controller."""
    brokers = {node: entry for node, entry in worlds.zk(back()).brokers.items() if node != 2}
    found = END.verify(worlds.with_zk(back(), brokers=brokers))
    assert answer(found) == "refused: broker 2 is not in /brokers/ids"
