"""`status`, `plan` and `rollback plan` name the place where a cluster stands by one function, at every moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate.cli.planning import make_directory_plan, make_plan, make_rollback_plan
from migrate.cli.status import describe
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from migrate.plan import rollback
from migrate.report.status import as_text
from migrate.run.past_runs import by_journals
from tests.run.test_engine import plan_for, run
from tests.run.test_rollback import ENTRIES, forward
from tests.testing import worlds
from tests.testing.simulated import SimulatedCluster
from tests.testing.simulated_back import two_way
from tests.testing.simulated_kraft import KraftCluster, playbook

NAMED = {
    "controllers up": "controllers",
    "half of the first roll": "controllers, migration-mode half done",
    "hybrid": "hybrid",
    "half of the second roll": "hybrid, kraft-mode half done",
    "all brokers KRaft": "kraft-mode",
}


@dataclass(frozen=True, slots=True)
class WithRuns:
    """A cluster whose runs are kept in a folder."""

    cluster: SimulatedCluster
    runs: Path

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """Look at the cluster."""
        world = self.cluster.observe(needs, facts)
        return replace(world, inventory=replace(world.inventory, runs=str(self.runs)))


@pytest.mark.slow
@pytest.mark.parametrize("entry", NAMED)
def test_every_command_names_one_stage(entry: str, tmp_path: Path) -> None:
    """Behind the proof of hybrid too: only the journal knows of it, so the plan names it and makes the proof anew."""
    moved, cluster = two_way(), two_way()
    seen = WithRuns(moved, tmp_path)
    forward(moved, tmp_path / plan_for(cluster).short, ENTRIES[entry])
    world = seen.observe(rollback.PLANNED_ON | {Need.LEDGER}, {})
    status = as_text(describe(replace(world, facts=by_journals(world.inventory))))
    plan = make_plan(seen, worlds.playbook(), target=Stage.SOAK, only=False, created=1.0)
    back = make_rollback_plan(seen, worlds.playbook(), created=1.0)
    assert f"\nstage    {NAMED[entry]}\n" in status
    assert plan.summary.detected.startswith(f"{NAMED[entry]} (")
    assert back.summary.detected.startswith(f"{NAMED[entry]} (")
    proven = any(step.id == "hybrid/hybrid" for step in plan.steps)
    assert proven is (entry in ("controllers up", "half of the first roll", "hybrid")), "no plan rests on a journal"


@pytest.mark.slow
def test_the_same_migration_after_its_rollback_is_another_plan(tmp_path: Path) -> None:
    """The files are as before, and so is all that a plan is bound to; the first one's journal calls its steps done.

    As often as it is done and undone; a plan that was not undone is the same one, and continues.
    """
    seen = WithRuns(two_way(), tmp_path)
    names: list[str] = []
    for _ in range(3):
        plan = make_plan(seen, worlds.playbook(), target=Stage.KRAFT_MODE, only=False, created=1.0)
        again = make_plan(seen, worlds.playbook(), target=Stage.KRAFT_MODE, only=False, created=2.0)
        assert again.fingerprint == plan.fingerprint
        carried_out(seen, plan)
        back = make_rollback_plan(seen, worlds.playbook(), created=1.0)
        carried_out(seen, back)
        names += [plan.short, back.short]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [6, 8], ids=["half", "whole"])
def test_directories_that_were_taken_away_again_are_planned_anew(tmp_path: Path, steps: int) -> None:
    """Two of three brokers, or all: the first plan's journal calls them done, and a run by it would do nothing."""
    cluster = KraftCluster.with_one_directory()
    seen, loaded = WithRuns(cluster, tmp_path), playbook(cluster.wanted)
    plan = make_directory_plan(seen, loaded, created=1.0)
    carried_out(seen, replace(plan, steps=plan.steps[:steps]), tmp_path / plan.short)
    carried_out(seen, make_directory_plan(seen, loaded, created=1.0, back=True))
    assert [len(cluster.paths(node)) for node in (0, 1, 2)] == [1, 1, 1]
    again = make_directory_plan(seen, loaded, created=1.0)
    assert again.fingerprint != plan.fingerprint
    carried_out(seen, again)
    assert [len(cluster.paths(node)) for node in (0, 1, 2)] == [3, 3, 3]


def carried_out(seen: WithRuns, plan: Plan, folder: Path | None = None) -> None:
    """To its end, in its own folder."""
    folder = folder or seen.runs / plan.short
    folder.mkdir()
    run(seen.cluster, plan, folder)
