"""A fleet of any size on a standalone Spark of two workers: `fleet diff` as a user gives it, against the bare decoder.

    python -m tests.bench.fleet_goal FOLDER --clusters 100 --clusters 1000
    python -m tests.bench.fleet_goal FOLDER --clusters 300 --partitions 500 --large 200000    # one among 300 small ones

A few clusters' files are made and linked as often as the fleet needs them: every file is read and decoded each time.
Printed as JSON lines: the clock, CPU seconds of each part (command, driver, executors), and the driver's memory at its
highest; of the bare decoder the CPU seconds a cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from migrate.model.columns import PartitionColumns
from migrate.model.inventory import FilePair
from migrate.observe.fleet import read_pair
from tests.bench import agreeing
from tests.bench.races import ROOT
from tests.bench.resident import Spent, cpu_of_all, family, resident
from tests.playbook.test_load_fleet import written
from tests.testing.spark_cluster import standalone

DISTINCT: Final = 10
PARTITIONS: Final = 20_000
PAUSE: Final = 0.2
MIB: Final = 1 << 20
LARGE: Final = "large"
PARTS: Final = {  # a word of the command line of each
    "executors": "CoarseGrainedExecutorBackend",
    "their Python": "pyspark.daemon",
    "command": "migrate fleet diff",
    "driver": "org.apache.spark.deploy.SparkSubmit",
    "master and workers": "org.apache.spark.deploy",
}


class Driver:
    """The command and its JVM at their highest, looked at for as long as it runs."""

    def __init__(self, pid: int) -> None:
        self.pid, self.command, self.java = pid, 0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(PAUSE):
            self.command = max(self.command, resident(self.pid))
            self.java = max(self.java, sum(resident(pid) for pid in family(self.pid)[1:]))

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()


def made(folder: Path, distinct: int, partitions: int, large: int) -> None:
    """The clusters whose files all others share, and the one large one; what is there is kept."""
    names = {**{f"cluster-{number:02}": partitions for number in range(distinct)}, **({LARGE: large} if large else {})}
    for name, size in names.items():
        place = folder / name
        if not place.exists():
            place.mkdir(parents=True)
            with agreeing.both_sides(place, size):
                pass


def linked(folder: Path, clusters: int) -> Path:
    """A fleet file of so many clusters, each with links to the files of one of those that were made."""
    origins = sorted(folder.glob("cluster-*"))
    fleet = folder / f"fleet-{clusters}"
    entries = []
    large = [folder / LARGE] if (folder / LARGE).exists() else []
    for number in range(clusters):
        place = fleet / f"c{number}"
        origin = large[0] if large and number == clusters // 2 else origins[number % len(origins)]
        if not place.exists():
            for path in (path for path in origin.rglob("*") if path.is_file()):
                target = place / path.relative_to(origin)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, target)
        entries.append(f"{{name: c{number}, files: {{zookeeper: c{number}, metadata: c{number}}}}}")
    return written(fleet, *entries)


def pairs_in(folder: Path) -> list[FilePair]:
    """The clusters' files."""
    return [FilePair((str(place),), str(place)) for place in sorted(folder.glob("cluster-*"))]


def differing(pair: FilePair) -> tuple[str, list[str]]:
    """The topics of which some row differs."""
    found = read_pair(pair).question
    left, right = (rows(columns) for columns in (found.zookeeper.partitions, found.kraft.partitions))
    keys = left.keys() | right.keys()
    return Path(pair.metadata).name, sorted({key[0] for key in keys if left.get(key) != right.get(key)})


def rows(columns: PartitionColumns) -> dict[tuple[str, int], tuple[object, ...]]:
    """By topic and number."""
    keys = zip(columns.topic, columns.partition, strict=True)
    values = zip(columns.replicas, columns.isr, columns.leader, columns.leader_epoch, strict=True)
    return dict(zip(keys, values, strict=True))


def ours(fleet: Path, scratch: Path) -> dict[str, Any]:
    """`fleet diff` on a Spark cluster of its own."""
    with standalone(scratch) as cluster:
        words = ["--spark-master", cluster.master, "--spark-conf", "spark.driver.host=127.0.0.1"]
        words += ["--spark-conf", "spark.executor.memory=512m", "--output", "json"]
        spent, began = Spent(), time.monotonic()
        command = [sys.executable, "-m", "migrate", "fleet", "diff", str(fleet), *words]
        errors = scratch / "stderr"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT)
            driver = Driver(process.pid)
            output, _ = process.communicate()
        seconds = time.monotonic() - began
        driver.end()
        assert process.returncode == 2, errors.read_text()[-3000:]
        rows = json.loads(output)["clusters"]
        assert all("not_read" not in row for row in rows)
        parts = {name: round(seconds, 1) for name, seconds in spent.end(PARTS).items()}
        return {
            "clusters": len(rows),
            "seconds": round(seconds, 1),
            "cpu": round(sum(parts.values()), 1),
            "of it": parts,
            "command MiB": driver.command // MIB,
            "driver JVM MiB": driver.java // MIB,
        }


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process and all that it starts."""
    before = cpu_of_all()
    work()
    return cpu_of_all() - before


def decoded(pairs: list[FilePair]) -> float:
    """CPU seconds a cluster."""
    return cpu(lambda: [differing(pair) for pair in pairs]) / len(pairs)


def main() -> None:
    """The bare decoder, then all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clusters", type=int, action="append", required=True)
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of each cluster")
    parser.add_argument("--large", type=int, default=0, metavar="PARTITIONS", help="of one cluster in the middle")
    given = parser.parse_args()
    made(given.folder, DISTINCT, given.partitions, given.large)
    pairs = pairs_in(given.folder)
    bare = decoded(pairs)
    print(json.dumps({"bare decoder, CPU seconds a cluster": round(bare, 3), "load": os.getloadavg()[0]}), flush=True)
    for clusters in given.clusters:
        scratch = given.folder / f"spark-{clusters}"
        scratch.mkdir(exist_ok=True)
        found = ours(linked(given.folder, clusters), scratch)
        print(json.dumps({**found, "of the bare decoder": round(found["cpu"] / clusters / bare, 2)}), flush=True)


if __name__ == "__main__":
    main()
