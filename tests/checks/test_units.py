"""What of a node's unit decides whether it answers: told by host, unit and command."""

from __future__ import annotations

from dataclasses import replace

from migrate import checks
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Stopped
from tests.testing import worlds
from tests.testing.worlds import live


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
