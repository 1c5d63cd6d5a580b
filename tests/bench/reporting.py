"""The report of a run over many brokers: `python -m tests.bench.reporting [--brokers N] [--partitions N] [--dir DIR]`.

The run is carried out by the engine, on a cluster in memory; it has as many restarts, ledgers and waits as a real one
with so many brokers.  A report grows with these, not with the partitions.  Seconds are the CPU's.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.report.run_pages import run_html
from migrate.report.run_report import build as report_of
from migrate.report.run_values import RunReport, run_json
from tests.bench.scale import Measured, big_cluster
from tests.run.test_engine import PLANNED_ON, run
from tests.testing import simulated, worlds

FORMS: Final[dict[str, Callable[[RunReport], str]]] = {"html": run_html, "json": run_json}


def big_run(brokers: int, partitions: int, folder: Path) -> tuple[Plan, tuple[Event, ...]]:
    """A run from ZooKeeper mode to its end, and what its journal tells; the journal lies in the folder."""
    ids = tuple(map(NodeId, range(brokers)))
    made = cache(lambda: big_cluster(brokers, partitions))
    with (
        patch.multiple(worlds, BROKERS=ids, healthy_cluster=made),
        patch.multiple(simulated, BROKERS=ids, world_at=cache(worlds.world_at), config_file=cache(worlds.config_file)),
    ):
        cluster = simulated.SimulatedCluster.in_zookeeper_mode()
        world = cluster.observe(PLANNED_ON, {})
        assert isinstance(world.playbook, Playbook)
        playbook = replace(world.playbook, soak_seconds=1.0)
        plan = build(world, playbook, target=Stage.CLEANUP, only=False, created=1.0)
        return plan, run(cluster, plan, folder)


def measure(brokers: int, partitions: int, folder: Path) -> Measured:
    """One report in its three forms, which are left in the folder."""
    found = Measured()
    plan, events = big_run(brokers, partitions, folder)
    found.sizes["journal"] = (folder / "journal.jsonl").stat().st_size
    report = found.timed("report from the journal", partial(report_of, plan, events))
    assert all(step.passed for step in report.steps)
    for form, render in FORMS.items():
        text = found.timed(f"as {form}", partial(render, report))
        found.sizes[form] = len(text.encode())
        (folder / f"report.{form}").write_text(text, encoding="utf-8")
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=4_000)
    parser.add_argument("--dir", type=Path, help="keep journal and report there")
    words = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = words.dir or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(words.brokers, words.partitions, folder)
    print(f"| part | {words.brokers} brokers, {words.partitions:,} partitions |\n|---|---|")
    for name, seconds in found.seconds.items():
        print(f"| {name} | {seconds:.2f} s of CPU |")
    for name, size in found.sizes.items():
        print(f"| {name}, size | {size / 2**20:.2f} MiB |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| peak memory, the run in memory included | {peak:.0f} MiB |")
    print(f"\nthe run in memory and all of this: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
