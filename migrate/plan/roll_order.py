"""In which order brokers are rolled: as the inventory has them, or a canary first and then rack by rack (pure)."""

from __future__ import annotations

from collections import Counter

from migrate.model.broker_modes import Mode, position_of
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.policies import RollOrder
from migrate.model.views import ControllerZnode
from migrate.model.world import World


def roll_order(world: World, playbook: Playbook, goal: str) -> list[int]:
    """Every broker once; `goal` is the mode that the roll leads to.

    Those that are there already come first: a roll that is planned anew ends with a broker that it restarts.  With
    CANARY_FIRST the one with the fewest leaders follows, its rack, the other racks, and the ZooKeeper-mode controller
    last: each restart of it moves the controller.  Who leads is as of now, and the plan keeps the order that it got.
    """
    brokers = [int(node.id) for node in world.inventory.brokers]
    if playbook.roll_order is RollOrder.INVENTORY:
        return brokers
    done = [broker for broker in brokers if position_of(world, broker).settled(Mode(goal))]
    left = [broker for broker in brokers if broker not in done]
    leaders = _leaders(world)
    if leaders is None or not left:
        return [*done, *left]
    controller, racks = _controller(world), _racks(world.inventory)
    canary = min(left, key=lambda broker: (broker == controller, leaders[broker], broker))

    def place(broker: int) -> tuple[bool, bool, str, int, int]:
        rack = racks[broker]
        return broker == controller, rack != racks[canary], rack, leaders[broker], broker

    return [*done, canary, *sorted((broker for broker in left if broker != canary), key=place)]


def _leaders(world: World) -> Counter[int] | None:
    """How many partitions each broker leads; None where nobody knows: the inventory's order stays then."""
    for view in (world.kraft, world.zookeeper):
        if not isinstance(view, Unknown) and len(view.partitions):
            return Counter(int(leader) for leader in view.partitions.leader)
    return None


def _controller(world: World) -> int | None:
    """The broker that is ZooKeeper's controller, if one is."""
    if isinstance(world.zookeeper, Unknown):
        return None
    found = world.zookeeper.controller
    return found.id if isinstance(found, ControllerZnode) and found.kraft_epoch < 0 else None


def _racks(inventory: Inventory) -> dict[int, str]:
    return {int(node.id): node.rack or "" for node in inventory.brokers}
