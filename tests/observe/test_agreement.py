"""Which topics differ is what the field-by-field comparison says of them: never less."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.errors import MalformedZnode
from migrate.kraft.files import find
from migrate.model.difference import DiffReport
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.observe.agreement import FIELDS, Sides, agreement, apart, read_sides
from migrate.protocol.records import PARTITION_CHANGE, REMOVE_TOPIC, TOPIC
from migrate.zookeeper.offline.files import ZookeeperFiles, open_files
from tests.bench import files
from tests.diff.reference import reference
from tests.testing.clusters import Partition, entities_of, kraft_view, topic_id, zookeeper_view
from tests.testing.encoding import build, encode_record
from tests.zookeeper.offline.clusters import TOPICS, state_data, topic_data
from tests.zookeeper.offline.written import Txn, create, log, set_data

SIZE = 260  # partitions: five topics and one of ten
DIGESTER = Digester(b"k" * 32)
END = 1_000
CLUSTER = list(files.cluster(SIZE))


def zookeeper_files(folder: Path, txns: list[Txn]) -> ZookeeperFiles:
    """The cluster's snapshot, and a log."""
    folder.mkdir()
    zxid = files.zookeeper_snapshot(folder / "made", SIZE)
    (folder / "made").rename(folder / f"snapshot.{zxid:x}")
    if txns:
        (folder / f"log.{zxid + 1:x}").write_bytes(log(zxid + 1, txns))
    return ZookeeperFiles((str(folder),))


def metadata(folder: Path, records: list[bytes]) -> Path:
    """The cluster's snapshot, and a segment."""
    place = folder / "__cluster_metadata-0"
    place.mkdir(parents=True)
    files.checkpoint(place / f"{END:020d}-{files.EPOCH:010d}.checkpoint", SIZE)
    if records:
        raw = build(END, files.EPOCH, [(None, record) for record in records])
        (place / f"{END:020d}.log").write_bytes(raw)
    return folder


def changed(topic: int, partition: int, **values: object) -> bytes:
    """A PartitionChangeRecord."""
    fields = {"partitionId": partition, "topicId": CLUSTER[topic].id, **values}
    return encode_record(PARTITION_CHANGE, 0, fields)


def moved(topic: int, partition: int, **values: object) -> Txn:
    """What dual write, or a broker, writes into a state."""
    row = CLUSTER[topic].partitions[partition]
    state = {"leader": row.leader, "epoch": row.leader_epoch, "isr": row.isr, **values}
    path = f"{TOPICS}/{CLUSTER[topic].name}/partitions/{partition}/state"
    return set_data(path, state_data(**state))  # type: ignore[arg-type]


Change = tuple[list[Txn], list[bytes]]


def isr_of(topic: int, partition: int) -> list[int]:
    """One broker less."""
    return CLUSTER[topic].partitions[partition].isr[:1]


def replicas(topic: int) -> list[list[int]]:
    """Of all its partitions, the last two the other way round."""
    rows = [row.replicas for row in CLUSTER[topic].partitions]
    return [[row[0], row[2], row[1]] for row in rows]


# each changes one side, the other, or both in step
KINDS: dict[str, Callable[[int, int], Change]] = {
    "ISR in ZooKeeper": lambda t, p: ([moved(t, p, isr=isr_of(t, p))], []),
    "ISR in KRaft": lambda t, p: ([], [changed(t, p, isr=isr_of(t, p))]),
    "ISR in both": lambda t, p: ([moved(t, p, isr=isr_of(t, p))], [changed(t, p, isr=isr_of(t, p))]),
    "the order of an ISR": lambda t, p: ([moved(t, p, isr=CLUSTER[t].partitions[p].isr[::-1])], []),
    "leader in both": lambda t, p: (
        [moved(t, p, leader=99, epoch=CLUSTER[t].partitions[p].leader_epoch + 1)],
        [changed(t, p, leader=99)],
    ),
    "leader epoch in ZooKeeper": lambda t, p: ([moved(t, p, epoch=77)], []),
    "recovering in ZooKeeper": lambda t, p: (
        [set_data(f"{TOPICS}/{CLUSTER[t].name}/partitions/{p}/state", state_data(1, 1, [1], leader_recovery_state=1))],
        [],
    ),
    "replicas in ZooKeeper": lambda t, _: (
        [set_data(f"{TOPICS}/{CLUSTER[t].name}", topic_data(0, replicas(t), topic_id=CLUSTER[t].id))],
        [],
    ),
    "adding in KRaft": lambda t, p: ([], [changed(t, p, addingReplicas=[7])]),
    "a topic goes in KRaft": lambda t, _: ([], [encode_record(REMOVE_TOPIC, 0, {"topicId": CLUSTER[t].id})]),
    "a topic comes in ZooKeeper": lambda t, _: ([create(f"{TOPICS}/new-{t}", topic_data(t, [[1]]))], []),
    "a topic comes in KRaft": lambda t, _: (
        [],
        [encode_record(TOPIC, 0, {"name": f"born-{t}", "topicId": CLUSTER[t].id[:-2] + "AA"})],
    ),
    "nothing": lambda _t, _p: ([], []),
}


def sides(zookeeper: ZookeeperFiles, kraft: Path) -> Sides:
    """Both, whole."""
    return read_sides(open_files(zookeeper), find(kraft), DIGESTER)


drawn = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 5), st.integers(0, 9)), max_size=4)


def made(folder: Path, picked: list[tuple[str, int, int]]) -> tuple[ZookeeperFiles, Path]:
    """Both sides with these changes; a topic goes, or comes, once."""
    txns: list[Txn] = []
    records: list[bytes] = []
    once = {kind: (kind, topic, partition) for kind, topic, partition in picked if kind.startswith("a topic")}
    rest = [entry for entry in picked if not entry[0].startswith("a topic")]
    for kind, topic, partition in (*rest, *once.values()):
        more, following = KINDS[kind](topic, partition)
        txns += more
        records += following
    return zookeeper_files(folder / "z", txns), metadata(folder / "k", records)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn)
def test_it_names_the_topics_and_objects_that_the_comparison_of_fields_finds(
    picked: list[tuple[str, int, int]],
) -> None:
    """Exactly these; and the views of those topics hold all of the rows that differ."""
    with tempfile.TemporaryDirectory() as name:
        zookeeper, kraft = made(Path(name), picked)
        found = sides(zookeeper, kraft)
        rows, equal = reference(found.zookeeper, found.kraft)
        told = found.agreement()
        partitions = {row for row in rows if row[0] == "partition"}
        assert set(told.topics) == {key.rpartition("-")[0] for _, key, _, _ in partitions}
        objects = {(row.kind, row.key, row.field, row.side.value) for row in (*told.others, *told.excused)}
        assert objects == rows - partitions
        assert {row.rule for row in told.excused} == {"X-FEATURE-01"}
        assert told.equal is (len(rows) == 1)
        some, counted = reference(*found.views(told.topics))
        assert some == rows
        counted["partition"] += FIELDS * told.partitions
        assert counted == equal


@pytest.mark.slow
def test_equal_files_are_equal_but_for_what_only_kraft_has(tmp_path: Path) -> None:
    """And that is excused by its rule."""
    told = sides(zookeeper_files(tmp_path / "z", []), metadata(tmp_path / "k", [])).agreement()
    assert (told.topics, told.others, told.deleting) == ((), (), ())
    assert [(row.key, row.rule) for row in told.excused] == [("metadata.version", "X-FEATURE-01")]
    assert told.partitions == SIZE
    assert told.equal


def test_a_malformed_znode_is_no_difference(tmp_path: Path) -> None:
    """A tree that was read in part says nothing about the rest, here as in the comparison."""
    path = f"{TOPICS}/{CLUSTER[0].name}/partitions/0/state"
    found = sides(zookeeper_files(tmp_path / "z", [set_data(path, b"{")]), metadata(tmp_path / "k", []))
    with pytest.raises(MalformedZnode):
        found.agreement()


def test_a_topic_that_is_being_deleted_is_excused_by_its_rule(tmp_path: Path) -> None:
    """On ZooKeeper's side alone, and nothing of it is an unexcused object."""
    name = CLUSTER[1].name
    pending = [
        create("/admin", None),
        create("/admin/delete_topics", None),
        create(f"/admin/delete_topics/{name}", None),
    ]
    gone = [encode_record(REMOVE_TOPIC, 0, {"topicId": CLUSTER[1].id})]
    told = sides(zookeeper_files(tmp_path / "z", pending), metadata(tmp_path / "k", gone)).agreement()
    assert told.equal
    assert told.deleting == told.differing == (name,)
    assert {row.rule for row in told.excused} == {"X-TOPIC-01", "X-FEATURE-01"}
    without = sides(zookeeper_files(tmp_path / "y", []), metadata(tmp_path / "j", gone)).agreement()
    assert not without.equal
    assert without.topics == (name,)


def test_a_topic_on_one_side_alone_differs() -> None:
    """One without partitions shows as an object."""
    alone, shared = Partition("a", topic_id(1), 0, [1]), [Partition("b", topic_id(2), n, [1]) for n in range(4)]
    found = agreement(zookeeper_view([alone, *shared]), kraft_view(shared))
    assert (found.topics, found.partitions) == (("a",), 4)
    assert agreement(zookeeper_view(shared), kraft_view(shared)).equal
    found = agreement(zookeeper_view(shared), kraft_view(shared, [("topic", "c", "topic_id", "x")]))
    assert (found.topics, [row.key for row in found.others]) == ((), ["c"])


def test_what_both_say_alike_of_topics_is_set_apart_and_counted() -> None:
    """Each row once; what differs, stands on one side, or is of no topic stays, with its place."""
    alike = [("topic", "a", "topic_id", "1"), ("topic-config", "a", "x", "1"), ("topic-config", "a", "x", "1")]
    quota = ("client-quota", "q", "x", "1")
    ours = entities_of([*alike, ("topic", "b", "topic_id", "1"), ("topic", "c", "topic_id", "1"), quota])
    theirs = entities_of([*alike, ("topic", "b", "topic_id", "2"), quota])
    ours.where[3] = "/brokers/topics/b"
    left, right, equal = apart(ours, theirs)
    assert equal == {"topic": 1, "topic-config": 1}
    assert list(zip(left.kind, left.key, left.where, strict=True)) == [
        ("topic", "b", "/brokers/topics/b"),
        ("topic", "c", ours.where[4]),
        ("client-quota", "q", ours.where[5]),
    ]
    assert list(zip(right.kind, right.key, right.value, strict=True)) == [("topic", "b", "2"), quota[:2] + quota[3:]]


@pytest.mark.spark
def test_the_report_on_the_topics_that_differ_is_the_report_on_all(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, classes and counts, on Spark."""
    from migrate.diff.compare import compare

    picked = [
        ("ISR in ZooKeeper", 0, 1),
        ("adding in KRaft", 2, 3),
        ("ISR in both", 3, 4),
        ("leader epoch in ZooKeeper", 4, 4),
    ]
    zookeeper, kraft = made(tmp_path, picked)

    def report(left: ZookeeperView, right: KraftView) -> DiffReport:
        return compare(spark, left, right, (), offset=right.offset, lag=0, today=date(2026, 1, 1))

    found = sides(zookeeper, kraft)
    told = found.agreement()
    assert len(told.topics) == 3
    left, right = found.zookeeper, found.kraft
    expected = report(replace(left, znodes=0), right)
    of_some = report(*found.views(told.topics))
    assert replace(of_some, counts=expected.counts) == expected
    equal = of_some.counts["partition"]["EQUAL"] + FIELDS * told.partitions
    assert expected.counts == {**of_some.counts, "partition": {**of_some.counts["partition"], "EQUAL": equal}}
    assert Counter(row.field for row in expected.unexcused)["isr"] == 1
