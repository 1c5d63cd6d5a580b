"""The order of a roll: as listed, or a canary first, rack by rack, ZooKeeper's controller last."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.outcome import Unknown
from migrate.model.policies import RollOrder
from migrate.model.stage import DirectoryPolicy, Stage
from migrate.model.views import ConfigFile, ControllerZnode
from migrate.model.world import World
from migrate.plan.build import build
from migrate.plan.roll_order import roll_order
from migrate.playbook.load import load_playbook
from tests.cli.commands import PLAYBOOK
from tests.run.gated import Gated
from tests.run.test_engine import PLANNED_ON
from tests.steps.looks import running, whole
from tests.testing import worlds

CANARY = replace(worlds.playbook(), roll_order=RollOrder.CANARY_FIRST)
MIGRATION, KRAFT = "migration", "kraft"


def led(world: World, leaders: Mapping[int, int]) -> World:
    """That world, with so many partitions led by each broker."""
    view = worlds.zk(world)
    columns = view.partitions
    names = list(itertools.chain.from_iterable([broker] * count for broker, count in leaders.items()))
    assert len(names) == len(columns)
    return worlds.with_zk(world, partitions=replace(columns, leader=type(columns.leader)(names)))


def controlled(world: World, broker: int) -> World:
    """That world, with this broker as ZooKeeper's controller."""
    return worlds.with_zk(world, controller=ControllerZnode(broker, -1, True, 0))


def racked(world: World, racks: Mapping[int, str]) -> World:
    """That world, with each broker in its rack."""
    brokers = tuple(replace(node, rack=racks[int(node.id)]) for node in world.inventory.brokers)
    return replace(world, inventory=replace(world.inventory, brokers=brokers))


def test_without_a_wish_it_is_the_inventorys_order() -> None:
    """Whoever leads, whoever controls."""
    world = led(controlled(whole(Stage.ASSESS), 0), {2: 0, 1: 1, 0: 5})
    assert roll_order(world, worlds.playbook(), MIGRATION) == [0, 1, 2]


@pytest.mark.parametrize(
    ("leaders", "controller", "order"),
    [
        ({0: 3, 1: 1, 2: 2}, 0, [1, 2, 0]),
        ({0: 1, 1: 3, 2: 2}, 0, [2, 1, 0]),
        ({0: 2, 1: 2, 2: 2}, 1, [0, 2, 1]),
        ({0: 0, 1: 3, 2: 3}, 2, [0, 1, 2]),
        ({0: 3, 1: 3, 2: 0}, 2, [0, 1, 2]),
    ],
    ids=str,
)
def test_the_one_with_the_fewest_leaders_is_the_canary_and_the_controller_is_last(
    leaders: Mapping[int, int], controller: int, order: list[int]
) -> None:
    """The controller is no canary, however little it leads."""
    world = led(controlled(whole(Stage.ASSESS), controller), leaders)
    assert roll_order(world, CANARY, MIGRATION) == order


@pytest.mark.parametrize(
    ("racks", "order"),
    [
        ({0: "b", 1: "a", 2: "b"}, [2, 0, 1]),
        ({0: "a", 1: "b", 2: "b"}, [2, 1, 0]),
        ({0: "b", 1: "a", 2: "c"}, [2, 1, 0]),
    ],
    ids=str,
)
def test_a_rack_is_finished_before_the_next_one(racks: Mapping[int, str], order: list[int]) -> None:
    """The canary's own rack first; one rack at a time has restarts in it."""
    world = led(racked(controlled(whole(Stage.ASSESS), 9), racks), {0: 2, 1: 3, 2: 1})
    assert roll_order(world, CANARY, MIGRATION) == order


def test_every_broker_is_rolled_once_whatever_the_cluster_is_like() -> None:
    """Over all numbers of leaders, controllers and racks."""
    for one, two, controller in itertools.product(range(7), range(7), (0, 1, 2, 9)):
        if one + two > 6:
            continue
        world = led(controlled(whole(Stage.ASSESS), controller), {0: one, 1: two, 2: 6 - one - two})
        for racks in ({0: "a", 1: "a", 2: "b"}, {0: "a", 1: "b", 2: "a"}):
            order = roll_order(racked(world, racks), CANARY, MIGRATION)
            assert sorted(order) == [0, 1, 2]
            assert controller == 9 or order[-1] == controller


def test_who_leads_is_unknown_then_it_stays_the_inventorys() -> None:
    """A guess would be no canary."""
    blind = replace(whole(Stage.ASSESS), zookeeper=Unknown("no answer"), kraft=Unknown("no answer"))
    assert roll_order(blind, CANARY, MIGRATION) == [0, 1, 2]


def test_what_is_done_stands_before_what_is_to_be_done() -> None:
    """A roll that is planned anew ends with a broker that it restarts: the copy begins with the last one."""
    before, after = whole(Stage.HYBRID).configs, whole(Stage.SOAK).configs
    assert not isinstance(before, Unknown)
    assert not isinstance(after, Unknown)
    world = controlled(whole(Stage.HYBRID), 9)
    for done in ((), (2,), (1, 2), (0, 1, 2)):
        files = {node: after[node] if int(node) in done else file for node, file in before.items()}
        rolled = replace(world, configs=files)
        for node in done:
            file = files[NodeId(node)]
            assert isinstance(file, ConfigFile)
            rolled = running(rolled, node, file.sha256)
        order = roll_order(rolled, CANARY, KRAFT)
        assert order[: len(done)] == list(done)
        assert sorted(order) == [0, 1, 2]


def test_the_plan_has_the_order_in_both_rolls_and_the_copy_behind_its_last_broker() -> None:
    """The last one's registration starts the copy; what drives a broker stands before it."""
    world = led(controlled(whole(Stage.ASSESS), 0), {0: 3, 1: 1, 2: 2})
    plan = build(world, CANARY, target=Stage.KRAFT_MODE, only=False, created=1.0)
    rolls = [step for step in plan.steps if "broker" in step.params and step.stage >= Stage.MIGRATION_MODE]
    assert [step.id for step in rolls if step.stage is Stage.MIGRATION_MODE] == [
        f"migration-mode/{broker}" for broker in (1, 2, 0)
    ]
    assert [step.params["last"] for step in rolls if step.stage is Stage.MIGRATION_MODE] == ["no", "no", "yes"]
    assert [step.id for step in rolls if step.stage is Stage.KRAFT_MODE] == [
        "kraft-mode/1",
        "kraft-mode/assign-2",
        "kraft-mode/2",
        "kraft-mode/0",
    ]
    assert CANARY.policy(2) is DirectoryPolicy.DRIVE


def test_a_run_follows_it_to_the_end(tmp_path: Path) -> None:
    """On the cluster in memory, both rolls."""
    run = Gated(tmp_path, CANARY)
    order = roll_order(run.cluster.observe(PLANNED_ON, {}), CANARY, MIGRATION)
    run.session()
    assert run.stopped() == [str(broker) for broker in (*order, *order)]


@pytest.mark.parametrize("word", ["inventory", "canary-first"])
def test_the_playbook_says_it(word: str, tmp_path: Path) -> None:
    """And nothing else."""
    text = PLAYBOOK.replace("  stages:\n", f"    rollout: {{order: {word}}}\n  stages:\n    - name: assess\n")
    path = tmp_path / "playbook.yaml"
    path.write_text(text)
    found: Playbook = load_playbook(path)
    assert found.roll_order is RollOrder(word)
