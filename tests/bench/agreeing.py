"""Files of both sides of a cluster of any size: of which topics differ is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.protocol.records import PARTITION_CHANGE
from tests.bench import files
from tests.testing.encoding import build, encode_record
from tests.zookeeper.offline.written import log, set_data

END: Final = 1_000_000
EVERY: Final = 97  # one topic in so many differs, by what the log behind the snapshot says
CHECKPOINT: Final = f"{END:020d}-{files.EPOCH:010d}.checkpoint"
SEGMENT: Final = f"{END:020d}.log"
METADATA: Final = "__cluster_metadata-0"
TRANSACTIONS: Final = 1_000
STATE: Final = "/state"


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
    a_data_dir(folder, size)
    yield


def a_data_dir(folder: Path, size: int) -> None:
    """A snapshot, and a log in which states are written again as they were."""
    made = folder / "made"
    zxid = files.zookeeper_snapshot(made, size)
    made.rename(folder / f"snapshot.{zxid:x}")
    states = (entry for entry in files.topic_znodes(size) if entry[0].endswith(STATE))
    txns = [set_data(path, data) for (path, data), _ in zip(states, range(TRANSACTIONS), strict=False)]
    (folder / f"log.{zxid + 1:x}").write_bytes(log(zxid + 1, txns))
