"""A made-up cluster of any size through what a run does between two restarts: checks, ledger, plan, its pages.

`python -m tests.bench.scale` prints seconds, peak memory and the pages' sizes at N and 5N partitions, each in a process
of its own.  The cluster has the shape of the lab's, with as many brokers and topics as are asked for.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final, TypeVar
from unittest.mock import patch

from migrate import checks
from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.plan.build import build
from migrate.report.plan_json import plan_to_json
from migrate.report.plan_text import plan_html, plan_text
from tests.testing import worlds
from tests.testing.clusters import Cluster, Partition, directory_id, topic_id

DIRECTORIES: Final = 3
COPIES: Final = 3
PARTITIONS_A_TOPIC: Final = 40
T = TypeVar("T")


def big_cluster(brokers: int, partitions: int) -> Cluster:
    """Every partition with three replicas, spread over brokers and directories."""
    cluster = Cluster([], {}, {b: [directory_id(b, d) for d in range(DIRECTORIES)] for b in range(brokers)})
    for number in range(partitions):
        topic, index = divmod(number, PARTITIONS_A_TOPIC)
        replicas = [(number + step) % brokers for step in range(COPIES)]
        places = {broker: (number // brokers + broker) % DIRECTORIES for broker in replicas}
        ids: list[str] = [directory_id(broker, places[broker]) for broker in replicas]
        cluster.partitions.append(Partition(f"t{topic}", topic_id(topic), index, replicas, ids))
        for broker, place in places.items():
            cluster.folders.setdefault((broker, place), []).append((f"t{topic}", index, topic_id(topic), "current"))
    return cluster


def big_world(stage: Stage, brokers: int, partitions: int) -> World:
    """The world of `tests.testing.worlds` at that stage, with that many brokers and partitions."""
    made = cache(lambda: big_cluster(brokers, partitions))
    with patch.multiple(worlds, BROKERS=tuple(map(NodeId, range(brokers))), healthy_cluster=made):
        world = worlds.world_at(stage)
        return replace(world, ledger=pure_ledger(world)) if stage >= Stage.COPY else world


@dataclass
class Measured:
    """Seconds a part, in the order in which they were measured; sizes in bytes."""

    seconds: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[[], T]) -> T:
        """Its answer; what it took is kept."""
        gc.collect()
        began = time.process_time()
        answer = work()
        self.seconds[name] = time.process_time() - began
        return answer


def measure(brokers: int, partitions: int) -> Measured:
    """One cluster through everything."""
    found = Measured()
    before = big_world(Stage.ASSESS, brokers, partitions)
    playbook = before.playbook
    assert isinstance(playbook, Playbook)
    findings = found.timed("checks before the migration", lambda: checks.run(before, target=Stage.PREPARE))
    assert findings
    plan = found.timed(
        "plan of the whole way", lambda: build(before, playbook, target=Stage.FINALIZE, only=False, created=0.0)
    )
    assert len(plan.steps) > 2 * brokers, "each broker is restarted twice"
    pages: tuple[tuple[str, Callable[[Plan], object]], ...] = (
        ("plan as HTML", plan_html),
        ("plan as text", plan_text),
        ("plan as JSON", plan_to_json),
    )
    for name, render in pages:
        page = found.timed(name, partial(render, plan))
        text = page if isinstance(page, str) else json.dumps(page)
        found.sizes[name] = len(text.encode())
    hybrid = big_world(Stage.COPY, brokers, partitions)
    ledger = found.timed("ledger in hybrid", lambda: pure_ledger(hybrid))
    assert not isinstance(ledger, Unknown)
    assert len(ledger.rows) == COPIES * partitions
    found.timed("checks in hybrid", lambda: checks.run(hybrid, target=Stage.KRAFT_MODE))
    return found


def main() -> None:
    """Two sizes, each in a process of its own, so that the peak is its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=40_000)
    parser.add_argument("--one", action="store_true", help="this size alone, as JSON")
    words = parser.parse_args()
    if words.one:
        found = measure(words.brokers, words.partitions)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps({"seconds": found.seconds, "sizes": found.sizes, "peak_mib": peak}))
        return
    rows = [_alone(words.brokers, size) for size in (words.partitions, 5 * words.partitions)]
    print(f"| part | {words.partitions:,} partitions | {5 * words.partitions:,} | growth |\n|---|---|---|---|")
    for name in rows[0]["seconds"]:
        small, large = (row["seconds"][name] for row in rows)
        print(f"| {name} | {small:.2f} s | {large:.2f} s | x{large / max(small, 0.005):.1f} |")
    for name in rows[0]["sizes"]:
        print(f"| {name}, size | " + " | ".join(f"{row['sizes'][name] / 2**20:.2f} MiB" for row in rows) + " | |")
    print("| peak memory, the world included | " + " | ".join(f"{row['peak_mib']} MiB" for row in rows) + " | |")


def _alone(brokers: int, partitions: int) -> Any:
    words = ["--one", "--brokers", str(brokers), "--partitions", str(partitions)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench.scale", *words], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


if __name__ == "__main__":
    main()
