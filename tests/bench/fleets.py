"""The races of `fleet diff`, of one cluster: every difference, against the text of ZooKeeper's and Kafka's tools.

A fleet of any size on a cluster of Spark's: `tests.bench.fleet_goal`.

    python -m tests.bench.fleets FOLDER

compares them as a new process does, and says which topics differ.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final

from migrate.diff.session import SparkHandle
from migrate.model.columns import PartitionColumns
from migrate.model.difference import DiffReport
from migrate.model.inventory import FilePair, Member, NotRead, Target
from migrate.observe.fleet import compare_members, read_pair
from tests.bench import agreeing
from tests.bench.races import ROOT, Race, Side, Work
from tests.bench.resident import cpu_of_all

WARM: Final = 2  # comparisons before the one that is timed
TODAY: Final = date(2026, 1, 1)
Topics = list[tuple[str, list[str]]]  # of each cluster, by its folder's name


@contextmanager
def one_cluster(folder: Path, size: int) -> Iterator[None]:
    """All partitions are one cluster's."""
    place = folder / "cluster-00"
    place.mkdir()
    with agreeing.both_sides(place, size):
        yield


def pairs_in(folder: Path) -> list[FilePair]:
    """The clusters' files."""
    return [FilePair((str(place),), str(place)) for place in sorted(folder.glob("cluster-*"))]


def topics_of(pairs: Sequence[FilePair], reports: Sequence[DiffReport | NotRead]) -> Topics:
    """The topics whose partitions differ, by the reports' rows."""
    found: Topics = []
    for pair, report in zip(pairs, reports, strict=True):
        assert isinstance(report, DiffReport), report
        rows = [row.key.rpartition("-")[0] for row in report.unexcused if row.kind == "partition"]
        found.append((Path(pair.metadata).name, sorted(set(rows))))
    return found


def compared(handle: SparkHandle, pairs: Sequence[FilePair]) -> list[DiffReport | NotRead]:
    """As `fleet diff` does it."""
    members = [Member(str(number), Target.FILES, pair.metadata, pair) for number, pair in enumerate(pairs)]
    found = compare_members(handle, members, TODAY)
    return [one if isinstance(one, NotRead) else one.report for one in found]


@contextmanager
def our_fleet(folder: Path, _size: int) -> Iterator[Work]:
    """As `fleet diff` does it, warm."""
    pairs = pairs_in(folder)
    with tempfile.TemporaryDirectory() as scratch:
        handle = SparkHandle.start(Path(scratch))
        try:
            handle.get(600)
            for _ in range(WARM):
                compared(handle, pairs)
            yield Work(lambda: topics_of(pairs, compared(handle, pairs)), str, tree=True, clock=cpu_of_all)
        finally:
            handle.stop()


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


@contextmanager
def by_text(folder: Path, _size: int) -> Iterator[Work]:
    """SnapshotFormatter's and DumpLogSegments' text in dictionaries, one cluster after the other."""

    def timed() -> Topics:
        return [(place.name, agreeing.by_text(place)) for place in sorted(folder.glob("cluster-*"))]

    yield Work(timed, str, tree=True, clock=cpu_of_all)


@contextmanager
def our_fleet_cold(folder: Path, _size: int) -> Iterator[Work]:
    """A new process, its session included."""
    command = [sys.executable, "-m", "tests.bench.fleets", str(folder)]

    def timed() -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()

    yield Work(timed, str, tree=True, clock=cpu_of_all)


def whole(folder: Path) -> Topics:
    """All of them, once."""
    pairs = pairs_in(folder)
    with tempfile.TemporaryDirectory() as scratch:
        handle = SparkHandle.start(Path(scratch))
        try:
            return topics_of(pairs, compared(handle, pairs))
        finally:
            handle.stop()


def of_one(name: str, promise: float, ours: Side) -> Race:
    """Of one cluster with a million partitions: every difference with its type, by Spark, against dictionaries."""
    return Race(
        f"every difference, offline, {name}",
        1_000_000,
        promise=promise,
        at_most=False,
        around=one_cluster,
        sides={"ours": ours, "peer": by_text},
        growing=("ours",),  # the text of five million would take all of a machine's memory
        goal="P1",
        peer="the tools' text in two dictionaries",
        note="seconds are of the CPU; the peer says which topics differ, ours each field too",
        least=2_000,
    )


RACES: Final = (
    of_one("cold", 5, our_fleet_cold),
    of_one("warm", 25, our_fleet),
)


if __name__ == "__main__":
    sys.stdout.write(f"{whole(Path(sys.argv[1]))}\n")
