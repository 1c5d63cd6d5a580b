"""The way back on a cluster in memory: from every state, killed at every effect, and forward again to the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from migrate.model.plan import Plan
from migrate.plan import rollback
from migrate.run import journal as journals
from tests.run.test_engine import plan_for, run
from tests.testing import worlds
from tests.testing.simulated_back import TwoWay, two_way
from tests.testing.worlds import BROKERS

ROLLBACK_PLANNED_ON: Final = rollback.PLANNED_ON


def forward(cluster: TwoWay, folder: Path, upto: str | None = None) -> None:
    """Migrate, up to before the step of that id; to finalized without one."""
    plan = plan_for(cluster)
    if upto is not None:
        last = next(number for number, step in enumerate(plan.steps) if step.id == upto)
        plan = replace(plan, steps=plan.steps[:last])
    folder.mkdir(exist_ok=True)
    run(cluster, plan, folder)


def way_back(cluster: TwoWay) -> Plan:
    """The plan of the way back from where the cluster stands."""
    return rollback.build(cluster.observe(ROLLBACK_PLANNED_ON, {}), worlds.playbook(), created=2.0)


ENTRIES: Final[dict[str, str]] = {  # name -> the step that is not begun
    "controllers up": "migration-mode/0",
    "half of the first roll": "migration-mode/2",
    "hybrid": "kraft-mode/0",
    "half of the second roll": "kraft-mode/assign-2",
    "all brokers KRaft": "soak/soak",
    "soak": "finalize/1-of-3",
}


def at(entry: str, folder: Path) -> TwoWay:
    """A cluster that was taken there."""
    cluster = two_way()
    forward(cluster, folder, ENTRIES[entry])
    return cluster


def is_back(cluster: TwoWay) -> None:
    """The one end state."""
    assert cluster.harms == []
    assert cluster.modes == {**cluster.modes, 0: "zookeeper", 1: "zookeeper", 2: "zookeeper"}
    assert set(cluster.running) == set(map(int, BROKERS))
    assert cluster.migration is None
    assert cluster.owner is not None
    assert cluster.owner[0] == "zookeeper"
    assert cluster.epoch > cluster.highest_epoch
    assert cluster.formatted == set()
    for node in worlds.inventory().brokers:
        original = two_way().files[int(node.id), node.config]
        assert cluster.files[int(node.id), node.config] == original


@pytest.mark.parametrize("entry", ENTRIES)
def test_from_every_state_the_way_back_ends_the_same_and_the_cluster_migrates_again(tmp_path: Path, entry: str) -> None:
    """Rolled back, proven, and migrated to the end by a second migration."""
    cluster = at(entry, tmp_path / "forward")
    folder = tmp_path / "back"
    folder.mkdir()
    plan = way_back(cluster)
    events = run(cluster, plan, folder)
    assert journals.concluded(events) == {step.id for step in plan.steps}
    is_back(cluster)
    forward(cluster, tmp_path / "again")
    assert cluster.finalized
    assert cluster.harms == []
