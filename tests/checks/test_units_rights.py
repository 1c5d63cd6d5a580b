"""What is allowed on the hosts is told before a run needs it, and what nobody tried is never fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate import checks
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.stage import Stage
from migrate.model.world import World
from tests.checks.bends import refused_on_host
from tests.testing.worlds import world_at

CODE = "W-OPS-05"


def found(world: World) -> list[Finding]:
    """Its findings."""
    return [entry for entry in checks.run(world, target=Stage.PREPARE) if entry.code == CODE]


def test_each_reason_of_each_node_is_a_warning_with_what_to_do() -> None:
    """Two reasons on one node, none on the others; nothing is blocked by it."""
    first, second = found(
        refused_on_host(
            1,
            "unit-stop kafka.service (and 3 more commands): the host program refuses it: no",
            "unit-show kafka.service: no",
        )(world())
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
    assert found(refused_on_host(1)(world())) == []


@pytest.mark.parametrize("executor", ["local", "ssh"])
def test_what_was_not_tried_is_a_blind_spot(executor: str) -> None:
    """Nobody asked, a host did not answer, or a node is missing among the answers."""
    asked = replace(world(), inventory=replace(world().inventory, executor=executor))
    (spot,) = found(asked)
    assert (spot.severity, spot.about) == (Severity.BLIND_SPOT, "the rights on the nodes' hosts")
    rights = {node.id: HostRights(node.host) for node in asked.inventory.nodes}
    silent = replace(asked, host_rights={**rights, NodeId(2): Unknown("E-HOST-21 no route")})
    (spot,) = found(silent)
    assert (spot.severity, spot.about, spot.evidence) == (
        Severity.BLIND_SPOT,
        "the rights on node 2's host",
        "E-HOST-21 no route",
    )
    del rights[NodeId(2)]
    (spot,) = found(replace(asked, host_rights=rights))
    assert spot.severity is Severity.BLIND_SPOT


@pytest.mark.parametrize("executor", ["supervisor", "manual"])
def test_where_no_hosts_are_worked_there_is_nothing_to_see(executor: str) -> None:
    """People, and the lab's supervisor, need no host program."""
    assert found(replace(world(), inventory=replace(world().inventory, executor=executor))) == []


def world() -> World:
    """A healthy one."""
    return world_at(Stage.ASSESS)
