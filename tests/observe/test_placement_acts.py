"""KIP-858's table on a real broker: rows are made by folders and metadata, and it is started.

What decides about the rows of a dead disk is whom the metadata calls their leader at that start.  Here that is made on
purpose: a clean stop hands the leaders over, and the table holds; a crash does not, and a start within the session of
the old process (`long`) makes replicas anew that it should hold back.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from migrate.kafka.controller import ActiveController
from migrate.kraft.fetch import MetadataReader
from migrate.model.ids import UNASSIGNED
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS as ASSIGN
from tests.oracles.placement import Act, cut_short
from tests.oracles.test_placement import HERE, ROWS, THERE, THIRD, Row
from tests.testing.kafka_loader import UNIQUE
from tests.testing.kraft_cluster import BROKER, START_SECONDS, KraftCluster, running, seen, wait_for

TOPIC = "placed-by-hand"
PLACES = {HERE: 0, THERE: 1, THIRD: 2}  # the table's directories, as disks of the broker; the last is the one that dies
DEAD = 2
ALL_ONLINE, ONE_DEAD = "all-disks", "a-dead-disk"
SESSION_MS = 30_000  # a broker that crashed is started again long before
CUT_SHORT = "Error applying topics delta in initial MetadataDelta"
HELD_AGAIN = "Skipped the become-leader state change for {} with topic id"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one start, a partition each."""

    cluster: KraftCluster
    rows: tuple[Row, ...]
    topic_id: str

    @property
    def paths(self) -> list[Path]:
        """The broker's log directories."""
        return [self.cluster.data(BROKER, index) for index in range(3)]

    def id_of(self, named: str) -> str:
        """A directory of the table: its id on the real broker; any other value is itself."""
        return str(self.cluster.directory_id(BROKER, PLACES[named])) if named in PLACES else named

    # -- making ---------------------------------------------------------------------------------------------------
    def make(self, epoch: int) -> None:
        """With the broker down: each folder where its row says, each directory in the metadata."""
        for partition, row in enumerate(self.rows):
            (home,) = (path for path in self.paths if (path / f"{TOPIC}-{partition}").is_dir())
            kept = home / f"{TOPIC}-{partition}"
            if row.found.future:
                shutil.copytree(kept, self.paths[PLACES[row.found.future]] / f"{kept.name}.{UNIQUE}-future")
            if row.found.current:
                kept.rename(self.paths[PLACES[row.found.current]] / kept.name)
            else:
                shutil.rmtree(kept)
        controller = ActiveController(self.cluster.inventory)
        connection, _ = controller.connect()
        with connection:  # not by `assign`, which refuses reserved ids
            answer = connection.call(ASSIGN, self.request(epoch))
        assert answer["errorCode"] == 0
        rows = [row for entry in answer["directories"] for topic in entry["topics"] for row in topic["partitions"]]
        assert [row["errorCode"] for row in rows] == [0] * len(self.rows)

    def request(self, epoch: int) -> dict[str, object]:
        """Every row's directory, as a foreign tool might send it."""
        named: dict[str, list[dict[str, int]]] = {}
        for partition, row in enumerate(self.rows):
            named.setdefault(self.id_of(row.found.in_metadata), []).append({"partitionIndex": partition})
        directories = [
            {"id": value, "topics": [{"topicId": self.topic_id, "partitions": found}]} for value, found in named.items()
        ]
        return {"brokerId": int(BROKER), "brokerEpoch": epoch, "directories": directories}

    # -- seeing ---------------------------------------------------------------------------------------------------
    def leads(self, view: KraftView) -> list[bool]:
        """Does the metadata call the broker the leader, row by row?"""
        rows = view.partitions
        at = {key: index for index, key in enumerate(zip(rows.topic, rows.partition, strict=True))}
        return [rows.leader[at[TOPIC, partition]] == int(BROKER) for partition in range(len(self.rows))]

    def said(self, words: str) -> bool:
        """In the log of the broker's last start."""
        text = (self.cluster.folder / f"{BROKER}.log").read_text(errors="replace")
        return words in text[max(text.rfind("Registered kafka:type=kafka.Log4jController MBean"), 0) :]

    def undone(self, view: KraftView) -> dict[str, str]:
        """Rows whose broker has not done yet what the table says, with what is seen instead."""
        found = {}
        for partition, row in enumerate(self.rows):
            named, where, future = (
                in_metadata(view, partition),
                self.folders(partition),
                self.folders(partition, "*-future"),
            )
            if not self.is_done(row, named, where, future):
                found[row.name] = f"{row.does}: in metadata {named}, on disks {where}, future {future}"
        return found

    def folders(self, partition: int, mark: str = "") -> list[int]:
        """The disks that hold such a folder of that partition."""
        pattern = f"{TOPIC}-{partition}" + (f".{mark}" if mark else "")
        return [index for index, path in enumerate(self.paths) if path.is_dir() and list(path.glob(pattern))]

    def is_done(self, row: Row, named: str, where: list[int], future: list[int]) -> bool:
        """Has the broker done what the table says?"""
        sent = self.id_of(row.found.in_metadata)
        if row.does is Act.HOLD_BACK:
            return (where, named) == ([], sent)
        if future or len(where) != 1 or named != str(self.cluster.directory_id(BROKER, where[0])):
            return False
        match row.does:
            case Act.NOTHING | Act.CREATE_THERE:
                return named == sent
            case Act.REPORT:
                return where == [PLACES[row.found.current]]
            case Act.PROMOTE | Act.MOVE_ON:
                return where == [PLACES[row.found.future]]
            case _:
                return True


def in_metadata(view: KraftView, partition: int) -> str:
    """The directory that the metadata names."""
    rows = view.partitions
    return rows.directories[list(zip(rows.topic, rows.partition, strict=True)).index((TOPIC, partition))][0]


def until_done(table: Table, reader: MetadataReader) -> None:
    """Wait until the broker has done what the table says of each row."""
    deadline = time.monotonic() + START_SECONDS
    while undone := table.undone(seen(reader)):
        assert time.monotonic() < deadline, undone
        threading.Event().wait(0.1)


def table_of(cluster: KraftCluster, reader: MetadataReader, part: str) -> Table:
    """A topic with a partition a row, every replica where the broker put it and reported."""
    rows = tuple(row for row in ROWS if row.found.some_offline is (part == ONE_DEAD))
    cluster.create_topic(TOPIC, len(rows))
    ids = {str(cluster.directory_id(BROKER, index)) for index in range(3)}
    wait_for(
        "every replica's directory",
        lambda: ids.issuperset(in_metadata(seen(reader), partition) for partition in range(len(rows))),
    )
    view = seen(reader)
    return Table(cluster, rows, view.partitions.topic_id[view.partitions.topic.index(TOPIC)])


def start_without_the_disk(table: Table) -> None:
    """The last one is a file; its folder waits beside."""
    table.paths[DEAD].rename(table.cluster.folder / "dead")
    table.paths[DEAD].write_text("no disk\n")
    table.cluster.start(BROKER)


@pytest.fixture
def cluster(kraft_cluster: KraftCluster) -> Iterator[KraftCluster]:
    """Whole again afterwards, without the topic."""
    try:
        yield kraft_cluster
    finally:
        aside = kraft_cluster.folder / "dead"
        if aside.exists():
            if BROKER in kraft_cluster.processes:
                kraft_cluster.stop(BROKER)
            kraft_cluster.data(BROKER, DEAD).unlink()
            aside.rename(kraft_cluster.data(BROKER, DEAD))
        if BROKER not in kraft_cluster.processes:
            kraft_cluster.start(BROKER)
        kraft_cluster.wait_until_ready()
        admin = AdminClient({"bootstrap.servers": kraft_cluster.inventory.brokers[0].address})
        for future in admin.delete_topics([TOPIC]).values():
            future.result(timeout=30)


@pytest.mark.kafka
@pytest.mark.parametrize("part", [ALL_ONLINE, ONE_DEAD])
def test_a_real_broker_does_about_each_replica_what_the_table_says(cluster: KraftCluster, part: str) -> None:
    """All rows at once, at one start: those with every disk, or those with a dead one.

    Replicas that the dead disk may hold are not created again: not at the start, not with the partition's next change.
    """
    with MetadataReader(cluster.inventory, Digester()) as reader:
        table = table_of(cluster, reader, part)
        does = {row.does for row in table.rows}
        assert does >= ({Act.HOLD_BACK, Act.REPORT} if part == ONE_DEAD else {Act.PROMOTE, Act.MOVE_ON, Act.REPORT})
        epoch = seen(reader).brokers[BROKER].epoch
        cluster.stop(BROKER)
        table.make(epoch)
        view = seen(reader)
        assert in_metadata(view, 0) == table.id_of(table.rows[0].found.in_metadata)
        assert not cut_short(zip((row.found for row in table.rows), table.leads(view), strict=True))
        if part == ONE_DEAD:
            start_without_the_disk(table)
        else:
            cluster.start(BROKER)
        wait_for("the broker's registration", lambda: seen(reader).brokers[BROKER].epoch > epoch)
        until_done(table, reader)
        assert not table.said(CUT_SHORT)
        if part == ONE_DEAD:
            elected_and_still_held_back(table, reader)


def elected_and_still_held_back(table: Table, reader: MetadataReader) -> None:
    """MIGRATING counts as online: such a replica is elected, a change of its partition, and is not made for that."""
    held = [partition for partition, row in enumerate(table.rows) if row.does is Act.HOLD_BACK]
    wait_for("an election of one", lambda: any(table.leads(seen(reader))[partition] for partition in held))
    led = [partition for partition in held if table.leads(seen(reader))[partition]]
    wait_for("its word", lambda: all(table.said(HELD_AGAIN.format(f"{TOPIC}-{partition}")) for partition in led))
    assert table.undone(seen(reader)) == {}


@pytest.mark.long
@pytest.mark.kafka
def test_a_crashed_broker_that_is_started_too_early_makes_replicas_anew_and_tells_nobody(tmp_path: Path) -> None:
    """The metadata still calls it the leader: its first look ends at the first replica that it holds back."""
    with running(tmp_path, SESSION_MS) as cluster, MetadataReader(cluster.inventory, Digester()) as reader:
        table = table_of(cluster, reader, ONE_DEAD)
        epoch = seen(reader).brokers[BROKER].epoch
        cluster.kill(BROKER)
        table.make(epoch)
        leads = table.leads(seen(reader))
        assert cut_short(zip((row.found for row in table.rows), leads, strict=True))
        start_without_the_disk(table)
        wait_for("the broker's registration", lambda: seen(reader).brokers[BROKER].epoch > epoch)
        assert table.said(CUT_SHORT), "the machine is too busy: its session had ended"
        wait_for("its session", lambda: not seen(reader).brokers[BROKER].fenced)
        # the next change of what it led is that it is fenced; the look may have ended at one of them, which stays away
        led = [at for at, row in enumerate(table.rows) if row.does is Act.HOLD_BACK and leads[at]]
        assert len(led) > 1
        wait_for("replicas created again", lambda: sum(map(bool, map(table.folders, led))) >= len(led) - 1)
        for partition, row in enumerate(table.rows):
            sent = table.id_of(row.found.in_metadata)
            assert in_metadata(seen(reader), partition) == sent, f"{row.name}: nobody is told"
        new = next(partition for partition, row in enumerate(table.rows) if row.found.in_metadata == str(UNASSIGNED))
        assert table.folders(new)
