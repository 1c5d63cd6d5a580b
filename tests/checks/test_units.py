"""What of a node's unit decides whether it answers: told by host, unit and command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from migrate.model.world import World
from tests.checks.bends import of, refused_on_host
from tests.testing import worlds
from tests.testing.worlds import live, world_at


def test_a_controller_that_does_not_run_is_named_with_host_unit_and_command() -> None:
    """Not as a flag that nobody could ask for, and a refused connection."""
    world = worlds.world_at(Stage.COPY)
    nodes = tuple(replace(node, unit="kafka-controller.service") for node in world.inventory.controllers)
    assert not isinstance(world.services, Unknown)
    down = replace(
        worlds.with_live(world, controllers={**live(world).controllers, NodeId(3002): Unknown("Connection refused")}),
        inventory=replace(world.inventory, controllers=nodes),
        services={**world.services, NodeId(3002): Stopped()},
    )
    reasons = {entry.evidence for entry in checks.run(down, target=Stage.KRAFT_MODE) if entry.code == "B-MIG-07"}
    host = world.inventory.node(3002).host
    place = f"kafka-controller.service on {host}"
    start = f"on {host}: systemctl start kafka-controller.service"
    assert reasons == {f"controller 3002 does not run ({place}); {start}"}
    runs = replace(down, services=world.services)  # it runs, and does not answer
    told = {entry.evidence for entry in checks.run(runs, target=Stage.KRAFT_MODE) if entry.code == "B-MIG-07"}
    assert told == {"Connection refused"}


# -- what is allowed on the hosts ----------------------------------------------------------------------------------


def test_each_reason_of_each_node_is_a_warning_with_what_to_do() -> None:
    """Two reasons on one node, none on the others; nothing is blocked by it."""
    first, second = of(
        refused_on_host(
            1,
            "unit-stop kafka.service (and 3 more commands): the host program refuses it: no",
            "unit-show kafka.service: no",
        )(world()),
        "W-OPS-05",
    )
    assert {first.message, second.message} == {
        "unit-stop kafka.service (and 3 more commands): the host program refuses it: no",
        "unit-show kafka.service: no",
    }
    host = world().inventory.brokers[1].host
    assert {entry.about for entry in (first, second)} == {f"node 1 on {host}"}
    assert all(
        entry.severity is Severity.WARNING and entry.fix and entry.blocks_from == checks.NEVER
        for entry in (first, second)
    )


def test_hosts_where_all_is_allowed_make_no_finding() -> None:
    """Every node was tried."""
    assert of(refused_on_host(1)(world()), "W-OPS-05") == []


@pytest.mark.parametrize("executor", ["local", "ssh"])
def test_what_was_not_tried_is_a_blind_spot(executor: str) -> None:
    """Nobody asked, a host did not answer, or a node is missing among the answers."""
    asked = replace(world(), inventory=replace(world().inventory, executor=executor))
    (spot,) = of(asked, "W-OPS-05")
    assert (spot.severity, spot.about) == (Severity.BLIND_SPOT, "the rights on the nodes' hosts")
    rights = {node.id: HostRights(node.host) for node in asked.inventory.nodes}
    silent = replace(asked, host_rights={**rights, NodeId(2): Unknown("E-HOST-21 no route")})
    (spot,) = of(silent, "W-OPS-05")
    assert (spot.severity, spot.about, spot.evidence) == (
        Severity.BLIND_SPOT,
        "the rights on node 2's host",
        "E-HOST-21 no route",
    )
    del rights[NodeId(2)]
    (spot,) = of(replace(asked, host_rights=rights), "W-OPS-05")
    assert spot.severity is Severity.BLIND_SPOT


def test_where_no_hosts_are_worked_there_is_nothing_to_see() -> None:
    """People need no host program."""
    assert of(replace(world(), inventory=replace(world().inventory, executor="manual")), "W-OPS-05") == []


def world() -> World:
    """A healthy one."""
    return world_at(Stage.ASSESS)


def test_after_the_proven_end_of_a_migration_nothing_is_to_be_held() -> None:
    """Configuration management works again: no sentence speaks of the first change."""
    world = worlds.world_at(Stage.FINALIZE)
    assert "I-OPS-13" in {found.code for found in checks.run(world, target=Stage.CLEANUP)}
    over = replace(world, facts={CLEANUP_PROVEN: "run 3f2a9c01"})
    assert "I-OPS-13" not in {found.code for found in checks.run(over, target=Stage.CLEANUP)}
