"""A real ZooKeeper with the znodes of a large cluster: read, assessed, and compared with a generated metadata image.

    python -m tests.bench.living [--partitions N] [--json FILE]

Each part is a process of its own; seconds are from its start to its end, the peak is what it and its children hold.
Nothing here asserts a time: machines differ, and a reader judges.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Final

from migrate.diff.compare import compare
from migrate.diff.session import SparkHandle
from migrate.kraft.files import find, load
from migrate.model.difference import DifferenceClass
from migrate.model.secrets import Digester
from migrate.zookeeper.client import connect
from migrate.zookeeper.read import read_view
from tests.bench import files
from tests.bench.demo import GIGABYTE, KRAFT_MIGRATE, Pass, run, say, tail
from tests.bench.large_live import ADDRESS, a_large_server

METADATA: Final = "__cluster_metadata-0"
CHECKPOINT: Final = f"{1000:020d}-{files.EPOCH:010d}.checkpoint"
PARTS: Final = ("read", "assess", "diff")
PATIENCE: Final = 600.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One part: seconds by the clock and of CPU, peak in bytes, what it found, and the load as it began."""

    part: str
    partitions: int
    seconds: float
    cpu: float
    peak: int
    found: str
    load: float


def measure(partitions: int, parts: Sequence[str] = PARTS) -> list[Measured]:
    """Start a server, write an image, and run each part; RuntimeError where one fails or misses partitions."""
    with tempfile.TemporaryDirectory(prefix="living-") as scratch:
        folder = Path(scratch)
        (folder / METADATA).mkdir()
        files.checkpoint(folder / METADATA / CHECKPOINT, partitions)
        say(f"a ZooKeeper with {partitions:,} partitions")
        with a_large_server(folder, partitions):
            address = (folder / ADDRESS).read_text()
            return [_measured(part, partitions, folder, address) for part in parts]


def _measured(part: str, partitions: int, folder: Path, address: str) -> Measured:
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "tests.bench.living", "--part", part, str(folder), address]
    if part == "assess":
        command = [*KRAFT_MIGRATE, "assess", "--zookeeper", address, "--output", "json"]
    done = run(command)
    found = _found(part, done)
    say(f"{part}: {done.seconds:.1f} s, {done.cpu:.1f} s of CPU, {done.peak / GIGABYTE:.2f} GB; {found}")
    return Measured(part, partitions, done.seconds, done.cpu, done.peak, found, load)


def _found(part: str, done: Pass) -> str:
    if part != "assess":
        if done.code:
            raise RuntimeError(f"{part} ended with {done.code}: {done.output[-2000:]}")
        return tail(done)
    if done.code not in {0, 3}:  # a blocker is an answer: this cluster has no brokers
        raise RuntimeError(f"assess ended with {done.code}: {done.output[-2000:]}")
    return f"exit code {done.code}, {len(done.output)} bytes of findings"


# -- the parts -------------------------------------------------------------------------------------------------------
def reading(_folder: Path, address: str) -> str:
    """The whole live view."""
    with connect(address) as client:
        view = read_view(client, Digester())
    return f"{len(view.partitions)} partitions, {len(view.malformed)} malformed"


def differing(folder: Path, address: str) -> str:
    """The live view, the image's, and every field of both; Spark starts meanwhile."""
    handle = SparkHandle.start(folder)
    try:
        digester = Digester()
        with connect(address) as client:
            zookeeper = read_view(client, digester)
        kraft = load(find(folder), digester).view("", 0, "files")
        report = compare(handle.get(PATIENCE), zookeeper, kraft, (), offset=kraft.offset, lag=0, today=date(2026, 1, 1))
        waited = handle.waited
    finally:
        handle.stop()
    equal = report.counts["partition"].get(DifferenceClass.EQUAL.value, 0)
    others = sum(report.counts["partition"].values()) - equal
    return f"{equal} fields of partitions are equal, {others} are not; waited {waited:.1f} s for Spark"


def as_markdown(found: Sequence[Measured]) -> str:
    """The table."""
    rows = [
        f"| {one.part} | {one.partitions:,} | {one.seconds:.1f} s | {one.cpu:.1f} s | {one.peak / GIGABYTE:.2f} GB "
        f"| {one.load:.0f} | {one.found} |"
        for one in found
    ]
    return "\n".join(
        ["| part | partitions | clock | CPU | peak | load | found |", "|---|---|---|---|---|---|---|", *rows, ""]
    )


def main() -> None:
    """Measure every part; with `--part`, be one."""
    parser = argparse.ArgumentParser(description="A large cluster in a real ZooKeeper.")
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--part", nargs=3, metavar=("PART", "FOLDER", "ADDRESS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part, folder, address = options.part
        sys.stdout.write((reading if part == "read" else differing)(Path(folder), address) + "\n")
        return
    found = measure(options.partitions)
    sys.stdout.write(as_markdown(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
