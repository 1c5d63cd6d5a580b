"""A writer that races the reader is noticed: what moved is read again, what never stands still is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from migrate.model.secrets import Digester
from migrate.zookeeper import collect as collecting
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.collect import ROUNDS, collect
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.read import view_of
from tests.testing.golden_trees import TOPIC_ID, golden, minimal, tree_of

STATE = "/brokers/topics/t/partitions/0/state"
CHANGE = Callable[[dict[str, Znode | Absent]], None]


@dataclass
class RacedTree:
    """A tree into which a writer writes just before the reader's n-th request."""

    tree: BackupTree
    writes: dict[int, CHANGE] = field(default_factory=dict)
    always: CHANGE | None = None
    requests: int = 0
    read: list[int] = field(default_factory=list)

    def _race(self) -> None:
        self.requests += 1
        change = self.writes.get(self.requests, self.always)
        if change is not None:
            znodes = dict(self.tree.znodes)
            change(znodes)
            self.tree = BackupTree("raced", znodes)

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        """A request for data."""
        self._race()
        self.read.append(len(paths))
        return self.tree.data(paths)

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """A request for children."""
        self._race()
        return self.tree.children(paths)

    def zxid(self) -> int:
        """The newest transaction."""
        return self.tree.zxid()


def put(path: str, value: object) -> CHANGE:
    """A write of that value, as the next transaction."""

    def change(znodes: dict[str, Znode | Absent]) -> None:
        zxid = max(znode.mzxid for znode in znodes.values() if isinstance(znode, Znode)) + 1
        before = znodes.get(path)
        czxid = before.czxid if isinstance(before, Znode) else zxid
        data = None if value is None else json.dumps(value).encode()
        znodes[path] = Znode(data, 1, czxid, zxid, 0)

    return change


def gone(*paths: str) -> CHANGE:
    """A deletion, seen by its zxid at the parent of all."""

    def change(znodes: dict[str, Znode | Absent]) -> None:
        for path in paths:
            znodes.pop(path, None)
        put("/unrelated", None)(znodes)

    return change


def topic(*replicas: int, partitions: int = 1) -> dict[str, object]:
    """A topic's znode."""
    return {"version": 3, "topic_id": TOPIC_ID, "partitions": {str(n): list(replicas) for n in range(partitions)}}


def state(leader: int) -> dict[str, object]:
    """A state znode."""
    return {"version": 1, "leader": leader, "leader_epoch": leader, "controller_epoch": 1, "isr": [leader]}


def small() -> BackupTree:
    """One topic with one partition."""
    return tree_of(minimal() | {"/brokers/topics/t": topic(1, 2), STATE: state(1)})


def requests_of_a_round() -> int:
    """How many requests one whole reading takes."""
    still = RacedTree(small())
    collect(still)
    return still.requests


def test_a_tree_that_stands_still_is_read_once() -> None:
    """No transaction in between: the second reading is saved."""
    tree = RacedTree(golden("zk-before"))
    found = collect(tree)
    assert (tree.requests, max(tree.read)) == (requests_of_a_round(), 212)
    assert (found.zxid_first, found.zxid_last, found.moving) == (693, 693, ())
    assert found.count == 280


@pytest.mark.parametrize("when", range(1, requests_of_a_round() * 2 + 1))
def test_a_write_at_any_moment_is_in_the_view(when: int) -> None:
    """A state that changes before any request of the first two readings: the last value is what the view says."""
    tree = RacedTree(small(), {when: put(STATE, state(2))})
    found = view_of(tree, "x", Digester())
    if tree.requests >= when:
        assert found.partitions.leader == [2]
        assert found.partitions.isr == [[2]]
    assert found.blind_spots == ()


@pytest.mark.parametrize("when", range(2, requests_of_a_round() + 1))
@pytest.mark.parametrize(
    ("change", "topics"),
    [
        (put("/brokers/topics/u", topic(3)), {"t", "u"}),
        (gone("/brokers/topics/t", STATE), set()),
        (put("/brokers/topics/t", topic(2, 3, partitions=2)), {"t"}),
    ],
    ids=["created", "deleted", "reassigned"],
)
def test_a_topic_that_comes_goes_or_changes_is_seen(when: int, change: CHANGE, topics: set[str]) -> None:
    """The view is the tree after the write, whenever it came."""
    tree = RacedTree(small(), {when: change})
    found = view_of(tree, "x", Digester())
    after = view_of(tree.tree, "x", Digester())
    assert set(found.partitions.topic) == topics
    assert found.partitions == after.partitions
    assert found.partitions_without_state == after.partitions_without_state
    assert found.znodes == after.znodes


def test_only_what_moved_is_read_a_third_time() -> None:
    """After two whole readings the cost is that of the changes."""
    path = "/brokers/topics/t00/partitions/0/state"
    last = requests_of_a_round() * 2
    tree = RacedTree(golden("zk-before"), {2: put("/unrelated", None), last: put(path, state(2))})
    found = view_of(tree, "x", Digester())
    assert tree.read == [71, 212, 71, 212, 3, 1]  # three single znodes that do not exist are asked for each time
    assert found.partitions.leader[found.partitions.topic.index("t00")] == 2


def test_what_never_stands_still_is_named() -> None:
    """After a bounded number of readings: a blind spot, and the latest value."""
    number = iter(range(1000))

    def write(znodes: dict[str, Znode | Absent]) -> None:
        put(STATE, state(next(number)))(znodes)

    tree = RacedTree(small(), always=write)
    found = view_of(tree, "x", Digester())
    assert found.blind_spots == (f"{STATE}: changed in every one of the reads",)
    assert tree.requests <= (requests_of_a_round() + 2) * ROUNDS


def test_the_migration_znode_may_move_all_the_time() -> None:
    """It does so twice a second in dual write: no blind spot, and no endless reading."""
    number = iter(range(1000))

    def write(znodes: dict[str, Znode | Absent]) -> None:
        value = {"version": 0, "kraft_controller_id": 1, "kraft_controller_epoch": 1, "kraft_metadata_epoch": 1}
        put("/migration", {**value, "kraft_metadata_offset": next(number)})(znodes)

    tree = RacedTree(small(), always=write)
    found = view_of(tree, "x", Digester())
    assert found.blind_spots == ()
    assert found.zxid_last > found.zxid_first
    assert tree.requests <= 2 * requests_of_a_round()


def test_states_are_read_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for raw answers does not grow with the cluster."""
    monkeypatch.setattr(collecting, "STATES_AT_ONCE", 25)
    tree = RacedTree(golden("zk-before"))
    assert len(view_of(tree, "x", Digester()).partitions) == 212
    assert max(tree.read[1:]) <= 25 + 10
