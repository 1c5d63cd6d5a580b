"""The race of reading ZooKeeper's files: ours, started anew, snapshot and log; against ZooKeeper's SnapshotFormatter.

The peer prints the snapshot as text and reads no log.  Both are processes of their own, from their start to their end.

    python -m tests.bench.snapshots FOLDER

loads the files of a dataDir as our side does, and says what was found.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.accelerated.packed_snapshot import PackedFiles, open_files
from migrate.java.find import find_java
from migrate.zookeeper.offline.files import ZookeeperFiles
from tests.bench import files
from tests.bench.decoding import digest
from tests.bench.races import ROOT, Race, Work
from tests.testing.zookeeper_server import classpath
from tests.zookeeper.offline.written import log, set_data

Row = tuple[str, int, list[int], list[int], int, int]  # topic, partition, replicas, ISR, leader, its epoch
TRANSACTIONS: Final = 1_000
STATE: Final = "/state"
TOPICS: Final = "/brokers/topics/"


@contextmanager
def a_data_dir(folder: Path, size: int) -> Iterator[None]:
    """A snapshot, and a log in which states are written again as they were."""
    made = folder / "made"
    zxid = files.zookeeper_snapshot(made, size)
    made.rename(folder / f"snapshot.{zxid:x}")
    states = (entry for entry in files.topic_znodes(size) if entry[0].endswith(STATE))
    txns = [set_data(path, data) for (path, data), _ in zip(states, range(TRANSACTIONS), strict=False)]
    (folder / f"log.{zxid + 1:x}").write_bytes(log(zxid + 1, txns))
    yield


def ours(folder: Path) -> str:
    """Snapshot and log, to columns and to the znodes that are no plain topics; how much that was."""
    found = open_files(ZookeeperFiles((str(folder),)))
    rows = found.plain.partitions if isinstance(found, PackedFiles) else 0
    return f"{len(found.loaded.tree.nodes)} znodes, {found.loaded.transactions} transactions, {rows} rows"


def rows_of(folder: Path) -> Iterator[Row]:
    """The partitions in the columns of our side, and in its znodes where a file is too small for a kernel."""
    found = open_files(ZookeeperFiles((str(folder),)))
    if not isinstance(found, PackedFiles):
        yield from parsed((path, node.data or b"") for path, node in found.loaded.tree.nodes.items())
        return
    columns = found.plain.columns(list(range(len(found.plain))))
    for at in range(len(columns)):
        yield (
            columns.topic[at],
            columns.partition[at],
            columns.replicas[at],
            columns.isr[at],
            columns.leader[at],
            columns.leader_epoch[at],
        )


def parsed(znodes: Iterable[tuple[str, bytes]]) -> Iterator[Row]:
    """The partitions of a dump; a topic comes before its states."""
    replicas: dict[str, list[int]] = {}
    for path, data in znodes:
        topic, slash, rest = path.removeprefix(TOPICS).partition("/")
        if path.startswith(TOPICS) and not slash:
            replicas = json.loads(data)["partitions"]
        elif path.startswith(TOPICS) and path.endswith(STATE):
            number, state = rest.split("/")[1], json.loads(data)
            yield topic, int(number), replicas[number], state["isr"], state["leader"], state["leader_epoch"]


@contextmanager
def our_columns(folder: Path, _size: int) -> Iterator[Work]:
    """A new Python process."""

    def timed() -> str:
        command = [sys.executable, "-m", "tests.bench.snapshots", str(folder)]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout

    yield Work(timed, lambda _: digest(sorted(rows_of(folder))), cold=True)


@contextmanager
def their_text(folder: Path, _size: int) -> Iterator[Work]:
    """A new Java process; its text is thrown away where time is measured."""
    (snapshot,) = folder.glob("snapshot.*")
    main = "org.apache.zookeeper.server.SnapshotFormatter"
    command = [find_java().path, "-cp", classpath(), main, "-d", str(snapshot)]

    def timed() -> int:
        return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def told(_: object) -> str:
        text = folder / "text"
        with text.open("wb") as out:
            subprocess.run(command, check=True, stdout=out, stderr=subprocess.DEVNULL)
        with text.open() as printed:
            return digest(sorted(parsed(znodes(printed))))

    yield Work(timed, told, cold=True)


def znodes(printed: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(path, data) of what SnapshotFormatter prints."""
    path = ""
    for line in printed:
        if line.startswith("/"):
            path = line.rstrip("\n")
        elif line.startswith("  data = "):
            yield path, base64.b64decode(line[9:].strip())


RACES: Final = (
    Race(
        "ZooKeeper files, cold",
        1_000_000,
        promise=25,
        at_most=False,
        around=a_data_dir,
        sides={"ours": our_columns, "peer": their_text},
        goal="P3",
        peer="SnapshotFormatter -d",
        memory=0.2,
        growth=5.2,
        growing=("ours",),  # SnapshotFormatter keeps the tree: 14 GB
        note="SnapshotFormatter -d, which reads no log; ours replays one of a thousand transactions",
    ),
)


if __name__ == "__main__":
    sys.stdout.write(ours(Path(sys.argv[1])) + "\n")
