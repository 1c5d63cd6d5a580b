"""A comparison that is kept and corrected says at each look what a whole one says, after any changes on both sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.kraft.image import Image
from migrate.model.columns import PartitionColumns
from migrate.model.fingerprints import topic_fingerprints
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.observe.agreement import Agreement, WholeSides
from migrate.observe.print_columns import fingerprints_of
from migrate.observe.recheck import Recheck
from migrate.protocol.records import CONFIG, PARTITION, PARTITION_CHANGE, PRODUCER_IDS, REMOVE_TOPIC, TOPIC
from migrate.zookeeper import changes
from migrate.zookeeper.again import Kept
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.changes import catch_up
from migrate.zookeeper.collect import collect
from migrate.zookeeper.layout import partition_states
from migrate.zookeeper.read import view_from, view_of
from migrate.zookeeper.tree_watch import Changes
from migrate.zookeeper.znode import Absent, Znode
from tests.testing.encoding import build, encode_control, encode_record
from tests.testing.golden_trees import minimal, tree_of

DIGESTER = Digester(b"k" * 32)
NAMES = ("a", "b", "c", "d")
IDS = {name: f"{name * 21}A" for name in NAMES}
EPOCH = 3


# -- ZooKeeper -------------------------------------------------------------------------------------------------------
class Written:
    """A tree that is written, and a watch on it."""

    def __init__(self) -> None:
        self.znodes: dict[str, Any] = dict(tree_of(minimal()).znodes)
        self.now = 1_000
        self.changed: set[str] = set()
        self.zxids: set[int] = set()
        self.missed = False

    def put(self, path: str, data: bytes | None, *, told: bool = True) -> None:
        """Write or delete (None) a znode."""
        self.now += 1
        if data is None:
            self.znodes.pop(path, None)
        else:
            before = self.znodes.get(path)
            made = before.czxid if isinstance(before, Znode) else self.now
            self.znodes[path] = Znode(data, 1, made, self.now, 0)
        if told:
            self.changed.add(path)
            self.zxids.add(self.now)

    def take(self) -> Changes | None:
        """As `TreeWatch`."""
        if self.missed:
            return None
        found = Changes(frozenset(self.changed), frozenset(self.zxids))
        self.changed, self.zxids = set(), set()
        return found

    def tree(self) -> BackupTree:
        """As it stands."""
        return BackupTree("x", dict(self.znodes))

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """Of a reader."""
        return self.tree().data(paths)

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """Of a reader."""
        return self.tree().children(paths)

    def zxid(self) -> int:
        """Of a reader."""
        return self.now

    def sync(self) -> None:
        """Nothing is ever behind."""


class Both:
    """A ZooKeeper and a metadata log, and what we keep of them."""

    def __init__(self) -> None:
        self.tree = Written()
        self.image = Image(DIGESTER)
        self.offset = 0
        self.recheck = Recheck()
        self.whole = 0
        self.kept = self.read()

    def read(self) -> Kept:
        """A whole read."""
        self.whole += 1
        self.tree.missed, self.tree.changed, self.tree.zxids = False, set(), set()
        found = collect(self.tree)
        view = view_from(found, "x", DIGESTER)
        self.kept = Kept(found, view, None, DIGESTER, self.tree.now, 0.0)
        return self.kept

    def record(self, table: Any, version: int, **values: Any) -> None:
        """Append a record to the log."""
        raw = build(self.offset, EPOCH, [(None, encode_record(table, version, values))])
        self.offset += 1
        self.image.apply_batches(raw, below=None)

    def look(self) -> Agreement:
        """The kept comparison; whole reads where changes alone do not say."""
        found = catch_up(self.tree, self.kept.found, self.tree, self.kept.stands)  # type: ignore[arg-type]
        if found is None or not found.whole:
            self.read()
        else:
            self.kept.stands = found.zxid
            self.kept.touched.add(found.touched)
            self.kept.moved.add(found.touched)
        return self.recheck.agreement(self.kept, self.image)

    def expected(self) -> Agreement:
        """From nothing kept at all."""
        return WholeSides(self.view(), self.image.view("", Unknown("x"), "x")).agreement()

    def view(self) -> ZookeeperView:
        """Read anew."""
        return view_of(self.tree.tree(), "x", DIGESTER)


def topic_data(name: str, count: int, first: int = 0) -> bytes:
    """A topic's znode."""
    values = {
        "removing_replicas": {},
        "partitions": {str(number): [first, first + 1] for number in range(count)},
        "topic_id": IDS[name],
        "adding_replicas": {"0": [9]} if first == 3 else {},
        "version": 3,
    }
    return json.dumps(values, separators=(",", ":")).encode()


def state_data(leader: int, epoch: int, isr: list[int]) -> bytes:
    """A state's znode."""
    values = {"controller_epoch": 7, "leader": leader, "version": 1, "leader_epoch": epoch, "isr": isr}
    return json.dumps(values, separators=(",", ":")).encode()


def partition_record(both: Both, name: str, number: int, first: int, leader: int) -> None:
    """A partition of a topic that the metadata knows."""
    values = {"partitionId": number, "topicId": IDS[name], "replicas": [first, first + 1], "isr": [first, first + 1]}
    adding = {"removingReplicas": [], "addingReplicas": [9] if first == 3 else []}
    both.record(PARTITION, 0, **values, **adding, leader=leader, leaderEpoch=1, partitionEpoch=0)


# -- what may happen -------------------------------------------------------------------------------------------------
def make(both: Both, name: str, number: int, side: int) -> None:
    """A topic with two partitions, on one side or on both."""
    first = number % 4
    path = f"/brokers/topics/{name}"
    if side != 1 and path not in both.tree.znodes:
        both.tree.put(path, topic_data(name, 2, first))
        for state in partition_states(name, range(2)):
            both.tree.put(state, state_data(first, 1, [first + 1, first]))
    if side != 0 and name not in both.image.state.topic_ids:
        both.record(TOPIC, 0, name=name, topicId=IDS[name])
        for partition in range(2):
            partition_record(both, name, partition, first, first)


def remove(both: Both, name: str, _number: int, side: int) -> None:
    """It goes again."""
    if side != 1:
        for path in sorted(
            (path for path in both.tree.znodes if path.startswith(f"/brokers/topics/{name}")), reverse=True
        ):
            both.tree.put(path, None)
    if side != 0 and name in both.image.state.topic_ids:
        both.record(REMOVE_TOPIC, 0, topicId=IDS[name])


def move(both: Both, name: str, number: int, side: int) -> None:
    """A state."""
    (path,) = partition_states(name, [number % 3])
    if side != 1 and (path in both.tree.znodes or number == 5):
        both.tree.put(path, state_data(number, 2, [number, number + 1]) if number < 6 else None)
    known = both.image.state.topics.get(IDS[name])
    if side != 0 and known is not None and number % 3 in known.partitions:
        values = {"partitionId": number % 3, "topicId": IDS[name], "leader": number, "isr": [number, number + 1]}
        both.record(PARTITION_CHANGE, 0, **values)


def grow(both: Both, name: str, number: int, side: int) -> None:
    """A third partition; in ZooKeeper the assignment is there before the state is."""
    if side != 1 and f"/brokers/topics/{name}" in both.tree.znodes:
        both.tree.put(f"/brokers/topics/{name}", topic_data(name, 3, number % 4))
    if side != 0 and name in both.image.state.topic_ids:
        partition_record(both, name, 2, number % 4, 0)


def other(both: Both, name: str, number: int, side: int) -> None:
    """What is no topic."""
    block = json.dumps(
        {"version": 1, "broker": 1, "block_start": str(1000 * number), "block_end": str(1000 * number + 999)}
    )
    passed = {"version": 0, "kraft_controller_id": 1, "kraft_controller_epoch": 1, "kraft_metadata_epoch": 1}
    places = (
        ("/migration", json.dumps(passed | {"kraft_metadata_offset": number}).encode()),
        ("/latest_producer_id_block", block.encode()),
        (f"/admin/delete_topics/{name}", b""),
        (f"/config/topics/{name}", b'{"version":1,"config":{"retention.ms":"%d"}}' % number),
        ("/isr_change_notification/isr_change_1", b"{}"),
        ("/controller_epoch", b"%d" % number),
    )
    if side != 1:
        both.tree.put(*places[number % len(places)])
    if side != 0:
        both.record(PRODUCER_IDS, 0, brokerId=1, brokerEpoch=1, nextProducerId=1000 * number + 1000)
        values = {"resourceType": 2, "resourceName": name, "name": "retention.ms", "value": str(number)}
        both.record(CONFIG, 0, **values)


def doubt(both: Both, name: str, number: int, side: int) -> None:
    """Something that no event tells, a lost connection, a snapshot in the place of the log's tail."""
    if side == 0:
        both.tree.missed = True
        move(both, name, number, 0)
    elif side == 1:
        header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
        footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
        records: list[tuple[bytes | None, bytes | None]] = [
            (None, encode_record(TOPIC, 0, {"name": name, "topicId": IDS[name]}))
        ]
        raw = (
            build(0, EPOCH, [header], control=True) + build(1, EPOCH, records) + build(2, EPOCH, [footer], control=True)
        )
        both.image.load_snapshot(raw, both.offset, EPOCH)
        partition_record(both, name, 0, number % 4, 1)
    else:
        path = f"/brokers/topics/{name}/partitions/0/state"
        both.tree.put(path, state_data(number, 9, [number]), told=False)


KINDS: tuple[Callable[[Both, str, int, int], None], ...] = (make, make, move, move, move, remove, grow, other, doubt)
EVENTS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.integers(0, 7), st.integers(0, 2), st.booleans()),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(EVENTS)
def test_whatever_happens_the_kept_answer_is_the_whole_one(events: list[tuple[Any, str, int, int, bool]]) -> None:
    """On either side or on both, looked at after each or after several; doubts among them."""
    both = Both()
    for kind, name, number, side, looked in events:
        kind(both, name, number, side)
        if looked:
            assert both.look() == both.expected()
    assert both.look() == both.expected()
    assert both.kept.current().partitions == both.view().partitions


def cluster() -> Both:
    """Two topics, equal on both sides, looked at once."""
    both = Both()
    for name in NAMES[:2]:
        make(both, name, 0, 2)
    assert both.look().equal
    return both


def test_changes_of_partitions_cost_no_whole_read_and_no_whole_sum() -> None:
    """Neither of the tree, nor of the image."""
    both = cluster()
    whole, summed = both.whole, both.recheck.summed
    for number in (1, 3, 4):
        move(both, "a", number, 0)
        assert both.look().topics == ("a",)
        move(both, "a", number, 1)
        assert both.look() == both.expected()
    remove(both, "b", 0, 2)
    assert both.look() == both.expected()
    assert (both.whole, both.recheck.summed) == (whole, summed)


@pytest.mark.parametrize("side", [0, 1, 2])
def test_a_doubt_is_a_whole_read(side: int) -> None:
    """A missed event, a snapshot, a transaction of which no event told: that side is summed anew."""
    both = cluster()
    summed = both.recheck.summed
    doubt(both, "a", 4, side)
    found = both.look()
    assert found == both.expected()
    assert not found.equal
    assert both.recheck.summed == summed + 1


def test_a_change_that_is_not_told_is_never_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the sync of a look and its end, too: another transaction is due, so the look goes on."""
    both = cluster()
    real = changes._read
    late = [lambda: move(both, "a", 5, 0), lambda: both.tree.put("/brokers/topics/a", topic_data("a", 2, 2))]

    def raced(*arguments: Any) -> Any:
        found = real(*arguments)
        if late:
            late.pop()()
        return found

    monkeypatch.setattr(changes, "_read", raced)
    both.tree.put("/brokers/topics/b/partitions/0/state", state_data(0, 1, [0, 1]))
    assert both.look().topics == ("a",)
    assert both.look() == both.expected()


# -- columns ---------------------------------------------------------------------------------------------------------
NUMBERS = st.integers(0, 2**31 - 1) | st.integers(0, 5)
ROWS = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([IDS["a"], ""]),
    st.integers(0, 9),
    st.lists(NUMBERS, max_size=4),
    st.lists(st.integers(0, 3), max_size=4),
    st.lists(NUMBERS, max_size=1),
    st.lists(NUMBERS, max_size=1),
    NUMBERS | st.just(-1),
    NUMBERS | st.just(-1),
    st.integers(0, 1),
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(ROWS, max_size=30), st.booleans())
def test_fingerprints_of_columns_are_those_of_the_reference(rows: list[Any], ordered: bool) -> None:
    """In any order, with reassignments, members twice, and topics with two ids."""
    columns = PartitionColumns()
    for row in sorted(rows, key=lambda row: row[0]) if ordered else rows:
        names = ("topic", "topic_id", "partition", "replicas", "isr", "adding", "removing", "leader", "leader_epoch")
        for name, value in zip((*names, "recovery_state"), row, strict=True):
            getattr(columns, name).append(value)
    assert fingerprints_of(columns) == topic_fingerprints(columns)
