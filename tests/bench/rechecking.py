"""The race of looking again: a thousand records and a thousand znodes later, by what changed, and by all.

Both sides hold what was read of the same cluster, take the same changes in, and say on which topics ZooKeeper and KRaft
differ.  The peer is our own whole comparison by fingerprints, of both views made anew; what it would have to read for
that from a server is not even in it, nor is Spark.  Both are measured in CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from migrate.kraft.files import snapshot_of
from migrate.kraft.image import Image
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.observe.agreement import Agreement, WholeSides
from migrate.observe.recheck import Recheck
from migrate.protocol.records import PARTITION_CHANGE
from migrate.zookeeper import decode, layout
from migrate.zookeeper.again import Kept
from migrate.zookeeper.changes import catch_up
from migrate.zookeeper.collect import collect
from migrate.zookeeper.read import view_from
from migrate.zookeeper.tree_watch import Changes
from migrate.zookeeper.znode import Absent, Znode
from tests.bench import files
from tests.bench.races import Race, Work
from tests.testing.encoding import build, encode_record
from tests.testing.golden_trees import minimal, tree_of

CHANGES: Final = 1_000  # of each kind
END: Final = 10**6
CHECKPOINT: Final = f"{END:020d}-{files.EPOCH:010d}.checkpoint"


class Changed:
    """A reader of the znodes that changed, and the watch that names them."""

    def __init__(self, zxid: int) -> None:
        self.now = zxid
        self.znodes: dict[str, Znode] = {}
        self.told = 0

    def put(self, path: str, data: bytes) -> None:
        """Write a znode."""
        self.now += 1
        self.znodes[path] = Znode(data, 1, 1, self.now, 0)

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """Of a reader."""
        return [self.znodes.get(path, Absent.MISSING) for path in paths]

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """Of a reader: nobody lists anything."""
        raise AssertionError(paths)

    def zxid(self) -> int:
        """Of a reader."""
        return self.now

    def sync(self) -> None:
        """Nothing is ever behind."""

    def take(self) -> Changes:
        """As `TreeWatch`; each change once."""
        fresh = {path: znode for path, znode in self.znodes.items() if znode.mzxid > self.told}
        self.told = self.now
        return Changes(frozenset(fresh), frozenset(znode.mzxid for znode in fresh.values()))


class Cluster:
    """Both sides, as they were read; and what happens next."""

    def __init__(self, folder: Path, size: int) -> None:
        digester = Digester(b"k" * 32)
        self.found = collect(tree_of(minimal()))
        cluster = [*files.cluster(size)]
        for topic in cluster:
            replicas = {row.number: row.replicas for row in topic.partitions}
            self.found.topics[topic.name] = decode.TopicZnode(topic.id, replicas, {}, {})
            self.found.states[topic.name] = {
                row.number: decode.PartitionState(row.leader, row.leader_epoch, row.isr, 0, 1, 37)
                for row in topic.partitions
            }
        self.found.names[layout.TOPICS] = tuple(sorted(self.found.topics))
        self.image = Image(digester)
        snapshot = snapshot_of(folder / CHECKPOINT)
        assert snapshot is not None
        self.image.load_snapshot(snapshot.path.read_bytes(), snapshot.end_offset, snapshot.epoch)
        view = view_from(self.found, "x", digester)
        self.kept = Kept(self.found, view, None, digester, self.found.zxid_last, 0.0)
        self.reader = Changed(self.found.zxid_last)
        self.change(cluster)

    def change(self, cluster: Sequence[files.Topic]) -> None:
        """A partition a change, of one topic after the other: in both, two of three alike, which is no difference."""
        records: list[tuple[bytes | None, bytes | None]] = []
        for number in range(min(CHANGES, len(cluster) * files.PARTITIONS_A_TOPIC // 2)):
            topic = cluster[number % len(cluster)]
            row = topic.partitions[number // len(cluster) % len(topic.partitions)]
            leader = 200 + number % 3
            values = {"controller_epoch": 37, "leader": leader, "version": 1, "leader_epoch": row.leader_epoch + 1}
            path = f"{layout.TOPICS}/{topic.name}/partitions/{row.number}/state"
            self.reader.put(path, files._json(values | {"isr": row.isr}))
            taken = leader if number % 3 else 300
            change = {"partitionId": row.number, "topicId": topic.id, "leader": taken}
            records.append((None, encode_record(PARTITION_CHANGE, 0, change)))
        self.batch = build(END, files.EPOCH, records)

    def take_in(self) -> None:
        """What happened, read."""
        self.image.apply_batches(self.batch, below=None)
        found = catch_up(self.reader, self.found, self.reader, self.kept.stands)  # type: ignore[arg-type]
        assert found is not None
        assert found.whole
        self.kept.touched.add(found.touched)
        self.kept.moved.add(found.touched)


def told(found: Agreement) -> str:
    """Topics that differ, and partitions of those that do not."""
    return f"{len(found.topics)} {found.partitions} {' '.join(found.topics[:50])}"


def side(compare: Callable[[Cluster], Callable[[], Agreement]]) -> Any:
    """One of the two: what it keeps is made before the time is taken."""

    @contextmanager
    def running(folder: Path, size: int) -> Iterator[Work]:
        cluster = Cluster(folder, size)
        asked = compare(cluster)

        def timed() -> Agreement:
            cluster.take_in()
            return asked()

        yield Work(timed, told, clock=time.process_time)

    return running


def kept(cluster: Cluster) -> Callable[[], Agreement]:
    """Ours: fingerprints of before, corrected."""
    recheck = Recheck()
    assert not recheck.agreement(cluster.kept, cluster.image).topics
    return lambda: recheck.agreement(cluster.kept, cluster.image)


def whole(cluster: Cluster) -> Callable[[], Agreement]:
    """The peer: both views, and the fingerprints of all."""

    def all_of_it() -> Agreement:
        views = WholeSides(cluster.kept.current(), cluster.image.view("", Unknown("not asked"), ""))
        return views.agreement()

    return all_of_it


@contextmanager
def a_checkpoint(folder: Path, size: int) -> Iterator[None]:
    """The metadata of both."""
    files.checkpoint(folder / CHECKPOINT, size)
    yield


RACES: Final = (
    Race(
        "looking again",
        1_000_000,
        promise=50,
        at_most=False,
        around=a_checkpoint,
        sides={"ours": side(kept), "peer": side(whole)},
        goal="P11",
        peer="a whole comparison by fingerprints",
        note="1,000 records, 1,000 znodes; the peer: our own whole comparison by fingerprints, without its reading",
    ),
)
