"""What Kafka cannot write to ZooKeeper stops a run, forward and back, by name and with the command that removes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import PlanStopped
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.outcome import Unknown
from migrate.model.world import World
from tests.checks.bends import kraft_has
from tests.run.test_engine import run
from tests.run.test_rollback import at, forward, go_back, is_back, rollback_plan
from tests.testing.simulated_back import TwoWay

METRICS: Final = (
    "client-metrics-config",
    "sub",
    r"client-metrics-config sub: .*`kafka-configs --bootstrap-controller ",
)
ACL: Final = ("acl", "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW", r"ACL of GROUP a/b \(LITERAL\): .*`kafka-acls --boot")
OBJECTS: Final = pytest.mark.parametrize(("kind", "key", "told"), [METRICS, ACL], ids=["client-metrics", "acl"])


def holding(cluster: TwoWay, kind: str, key: str) -> TwoWay:
    """The metadata holds that object, and each comparison finds it in KRaft alone."""
    row = Difference(kind, key, "present", DifferenceClass.ONLY_KRAFT, None, "true")
    report = DiffReport(500, 0, {"topic": {"EQUAL": 3}, kind: {"ONLY_KRAFT": 1}}, (row,))

    def bend(world: World) -> World:
        if isinstance(world.kraft, Unknown):
            return world
        return kraft_has(kind, key)(world if isinstance(world.diff, Unknown) else replace(world, diff=report))

    cluster.bend = bend
    return cluster


@pytest.mark.slow
@OBJECTS
@pytest.mark.parametrize("entry", ["hybrid", "half of the second roll", "soak"])
def test_the_way_forward_stops_and_goes_on_when_it_is_removed(
    tmp_path: Path, entry: str, kind: str, key: str, told: str
) -> None:
    """In hybrid, between two brokers of the second roll, and before finalize; nothing is stopped for it."""
    cluster = holding(at(entry, tmp_path / "forward"), kind, key)
    running = set(cluster.running)
    with pytest.raises(PlanStopped, match=told):
        forward(cluster, tmp_path / "on")
    assert set(cluster.running) == running
    assert not cluster.finalized
    cluster.bend = lambda world: world
    forward(cluster, tmp_path / "again")
    assert cluster.finalized
    assert cluster.harms == []


@pytest.mark.slow
@OBJECTS
@pytest.mark.parametrize("entry", ["half of the second roll", "all brokers KRaft"])
def test_no_broker_is_rolled_back_beside_it(tmp_path: Path, entry: str, kind: str, key: str, told: str) -> None:
    """A broker in migration mode would be cut off by the next election of a controller; the same run goes on."""
    cluster = holding(at(entry, tmp_path / "forward"), kind, key)
    plan, modes = rollback_plan(cluster), dict(cluster.modes)
    assert "B-MIG-14" in {finding.code for finding in plan.findings}
    with pytest.raises(PlanStopped, match=told):
        go_back(cluster, tmp_path / "back")
    assert cluster.modes == modes
    cluster.bend = lambda world: world
    run(cluster, plan, tmp_path / "back")
    is_back(cluster)
