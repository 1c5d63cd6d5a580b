"""A whole run in its folder, for commands that read what a run left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrate.cli.planning import save_plan
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.plan.build import build
from migrate.playbook.load import load_inventory, load_playbook
from tests.cli.commands import playbook_in
from tests.run.test_engine import PLANNED_ON, run
from tests.testing.simulated import SimulatedCluster


def whole_run(folder: Path) -> tuple[Path, World, SimulatedCluster]:
    """The run's folder, the simulated cluster as it was planned on, and that cluster after all stages."""
    playbook_in(folder)
    playbook, inventory = load_playbook(folder / "playbook.yaml"), load_inventory(folder / "inventory.yaml")
    cluster = SimulatedCluster.in_zookeeper_mode()
    world = replace(cluster.observe(PLANNED_ON, {}), playbook=playbook)
    made: Plan = build(world, replace(playbook, soak_seconds=1.0), target=Stage.CLEANUP, only=False, created=1.0)
    made = replace(made, inventory=inventory.path)
    path = save_plan(inventory, made).parent
    run(cluster, made, path)
    return path, world, cluster
