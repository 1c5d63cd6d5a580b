"""The race of "equal or not, and on which topics": both sides' files by fingerprints, against the tools' text.

The peer is what somebody does with what ZooKeeper and Kafka bring along: the text of SnapshotFormatter and of
DumpLogSegments, parsed into two dictionaries, which are compared.  Both are processes of their own, from start to end.

    python -m tests.bench.agreeing ours|peer FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from migrate.java.find import find_java
from migrate.java.jars import cached_jars
from migrate.kraft.files import find
from migrate.model.secrets import Digester
from migrate.observe.offline import open_files, read_sides
from migrate.protocol.records import PARTITION_CHANGE
from migrate.zookeeper.offline.files import ZookeeperFiles
from tests.bench import files
from tests.bench.races import ROOT, Race, Work
from tests.bench.snapshots import a_data_dir, parsed, znodes
from tests.testing.encoding import build, encode_record
from tests.testing.zookeeper_server import classpath

END: Final = 1_000_000
EVERY: Final = 97  # one topic in so many differs, by what the log behind the snapshot says
CHECKPOINT: Final = f"{END:020d}-{files.EPOCH:010d}.checkpoint"
SEGMENT: Final = f"{END:020d}.log"
METADATA: Final = "__cluster_metadata-0"
MARK: Final = "payload: "
Values = tuple[list[int], frozenset[int], int, int]  # replicas, ISR, leader, its epoch
Partitions = dict[tuple[str, int], Values]


@contextmanager
def both_sides(folder: Path, size: int) -> Iterator[None]:
    """ZooKeeper's snapshot and log; a metadata snapshot, and a log that moves a leader in some topics."""
    place = folder / METADATA
    place.mkdir()
    files.checkpoint(place / CHECKPOINT, size)
    moved = [topic for number, topic in enumerate(files.cluster(size)) if number % EVERY == 1]
    changes = [{"partitionId": 0, "topicId": topic.id, "leader": 7} for topic in moved]
    records = [(None, encode_record(PARTITION_CHANGE, 0, change)) for change in changes]
    if records:
        (place / SEGMENT).write_bytes(build(END, files.EPOCH, records))
    with a_data_dir(folder, size):
        yield


def ours(folder: Path) -> list[str]:
    """The topics that differ."""
    tree, metadata, digester = open_files(ZookeeperFiles((str(folder),))), find(folder), Digester()
    return list(read_sides(tree, metadata, digester).agreement().topics)


def by_text(folder: Path) -> list[str]:
    """The same, from text."""
    (snapshot,) = folder.glob("snapshot.*")
    java = find_java().path
    formatter = ["-cp", classpath(), "org.apache.zookeeper.server.SnapshotFormatter", "-d", str(snapshot)]
    left: Partitions = {
        (topic, partition): (replicas, frozenset(isr), leader, epoch)
        for topic, partition, replicas, isr, leader, epoch in parsed(znodes(lines([java, *formatter])))
    }
    jars = cached_jars()
    assert jars is not None
    dump = [java, "-cp", ":".join(jars.classpath), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder"]
    right: Partitions = {}
    names: dict[str, str] = {}
    for name in (CHECKPOINT, SEGMENT):
        path = folder / METADATA / name
        if path.exists():
            apply(lines([*dump, "--skip-record-metadata", "--files", str(path)]), right, names)
    keys = left.keys() | right.keys()
    return sorted({topic for topic, partition in keys if left.get((topic, partition)) != right.get((topic, partition))})


def lines(command: list[str]) -> Iterator[str]:
    """What a program prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        yield from running.stdout


def apply(text: Iterable[str], found: Partitions, names: dict[str, str]) -> None:
    """Records as DumpLogSegments prints them: topics, partitions and their changes."""
    for line in text:
        _, mark, payload = line.partition(MARK)
        if not mark:
            continue
        record: dict[str, Any] = json.loads(payload)
        data = record["data"]
        if record["type"] == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        elif record["type"] == "PARTITION_RECORD":
            key = names[data["topicId"]], data["partitionId"]
            found[key] = data["replicas"], frozenset(data["isr"]), data["leader"], data["leaderEpoch"]
        elif record["type"] == "PARTITION_CHANGE_RECORD":
            key = names[data["topicId"]], data["partitionId"]
            replicas, isr, leader, epoch = found[key]
            if "leader" in data:
                leader, epoch = data["leader"], epoch + 1
            found[key] = replicas, frozenset(data.get("isr") or isr), leader, epoch


def side(name: str) -> Any:
    """One side of the race."""

    @contextmanager
    def running(folder: Path, _size: int) -> Iterator[Work]:
        command = [sys.executable, "-m", "tests.bench.agreeing", name, str(folder)]

        def timed() -> str:
            return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout

        yield Work(timed, str, cold=True)

    return running


RACES: Final = (
    Race(
        "equal or not, offline",
        1_000_000,
        promise=30,
        at_most=False,
        around=both_sides,
        sides={"ours": side("ours"), "peer": side("peer")},
        goal="P1",
        peer="the tools' text in two dictionaries",
        memory=0.2,
        growth=5.2,
        growing=("ours",),  # the two dictionaries of five million partitions take all of a machine's memory
        note="SnapshotFormatter's and DumpLogSegments' text in two dictionaries; ZooKeeper's log is read by ours alone",
    ),
)


if __name__ == "__main__":
    sys.stdout.write(f"{(ours if sys.argv[1] == 'ours' else by_text)(Path(sys.argv[2]))}\n")
