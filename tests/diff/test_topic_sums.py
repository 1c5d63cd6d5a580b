"""Sums of fingerprints: the kernel says what the reference says, and what differs never sums alike."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.diff import frames, topic_sums
from migrate.diff.partition_files import SCHEMA
from migrate.model.fingerprints import WRAP
from tests.testing.clusters import Partition, healthy_cluster, kraft_view

Row = dict[str, Any]
BROKERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["a", "b", "ü"]),
            "partition": st.integers(0, 1 << 20),
            "topic_id": st.sampled_from(["", "x", "AAAAAAAAAAAAAAAAAAAAAA"]),
            **dict.fromkeys(topic_sums.LISTS, BROKERS),
            **dict.fromkeys(("leader", "leader_epoch", "recovery_state"), st.integers(-1, 2**31 - 1)),
        }
    ),
    max_size=30,
)


@pytest.fixture
def by_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows there are."""
    monkeypatch.setattr(topic_sums, "LEAST", 0)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    """As a file gives them."""
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def sums(rows: list[Row], side: int = 1) -> dict[str, Row]:
    """By topic."""
    found = topic_sums.topic_sums(batch_of(rows), side).to_pylist()
    assert len({row["topic"] for row in found}) == len(found)
    return {row["topic"]: row for row in found}


def one(**changes: object) -> Row:
    """A partition."""
    (row,) = (
        frames.partitions(kraft_view([Partition("t", "id", 0, [0, 1, 2])]).partitions).select(SCHEMA.names).to_pylist()
    )
    return {**row, **changes}


@pytest.mark.slow
@given(rows=ROWS, random=st.randoms(use_true_random=False))
@pytest.mark.usefixtures("by_kernel")
def test_the_kernel_says_what_the_reference_says(rows: list[Row], random: Random) -> None:
    """In any order of the rows, of slices too, on either side."""
    whole = batch_of(rows)
    for batch in (whole, whole.slice(len(rows) // 3)):
        coded = pa.record_batch(
            [topic_sums._coded(batch, name) for name in topic_sums.COMPARED], names=list(topic_sums.COMPARED)
        )
        for side in (1, -1):
            expected = topic_sums.by_reference(coded, side).to_pylist()
            found = topic_sums._by_kernel(coded, side).to_pylist() if len(coded) else []
            assert sorted(found, key=lambda row: str(row["topic"])) == sorted(
                expected, key=lambda row: str(row["topic"])
            )
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert sums(shuffled) == sums(rows)


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partition", 1),
        ("topic_id", "other"),
        ("topic_id", ""),
        ("replicas", [0, 2, 1]),
        ("replicas", [0, 1]),
        ("isr", [0, 1]),
        ("adding", [3]),
        ("removing", [2]),
        ("leader", -1),
        ("leader_epoch", 4),
        ("recovery_state", 1),
    ],
)
def test_every_field_is_part_of_the_sum(
    name: str, value: object, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel and by the reference."""
    if kernel:
        monkeypatch.setattr(topic_sums, "LEAST", 0)
    assert sums([one()])["t"] != sums([one(**{name: value})])["t"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"adding": [1], "removing": []}, {"adding": [], "removing": [1]}),
        ({"isr": [1, 2], "adding": [3]}, {"isr": [1, 2, 3], "adding": []}),
        ({"replicas": [1, 2], "isr": [3]}, {"replicas": [1], "isr": [2, 3]}),
        ({"leader": 1, "leader_epoch": 2}, {"leader": 2, "leader_epoch": 1}),
    ],
)
def test_where_a_value_stands_is_part_of_the_sum(left: Row, right: Row) -> None:
    """Members do not pass from one list to the next unseen."""
    assert sums([one(**left)])["t"] != sums([one(**right)])["t"]


def test_sets_are_sets_and_replicas_are_not() -> None:
    """As the comparison takes them."""
    assert sums([one(isr=[2, 0, 1, 0], adding=[5, 4])]) == sums([one(isr=[0, 1, 2], adding=[4, 5])])
    assert sums([one(replicas=[1, 0, 2])]) != sums([one()])


def test_the_two_sides_cancel_out() -> None:
    """Halves of either lane, added with what the lower one carries, are nothing modulo 2^64."""
    rows = [one(partition=number, leader=number % 3) for number in range(50)]
    parts = [sums(rows[:20])["t"], sums(rows[20:])["t"], sums(rows, side=-1)["t"]]
    for lane in "ab":
        low, high = (sum(part[f"{lane}_{half}"] for part in parts) for half in ("low", "high"))
        assert (low + (high << 32)) & WRAP == 0
    assert sum(part["numbers"] for part in parts) == 50 * 49 // 2, "of one side alone"
    assert sum(part["squares"] for part in parts) == 49 * 50 * 99 // 6


@pytest.mark.parametrize(
    "bad", [{"partition": -1}, {"partition": (1 << 20) + 1}, {"leader": None}, {"isr": None}, {"isr": [0, None]}]
)
def test_what_no_partition_has_is_marked(bad: Row) -> None:
    """Every topic of that batch is compared field by field."""
    found = sums([one(), one(**bad), one(topic="other")])
    assert {topic: (row["rows"], row["odd"]) for topic, row in found.items()} == {"t": (2, 1), "other": (1, 1)}


def test_a_row_without_topic_is_refused() -> None:
    """It belongs to nothing."""
    with pytest.raises(ValueError, match="without topic"):
        sums([one(topic=None)])


def test_nothing_has_no_sums() -> None:
    """An empty file."""
    assert sums([]) == {}


@pytest.mark.parametrize("change", [lambda names: names, lambda names: [*names, "none"]])
def test_the_rows_of_some_topics_are_found(change: Callable[[list[str]], list[str]]) -> None:
    """Names that nobody has find nothing."""
    cluster = healthy_cluster(topics=4, partitions=3)
    batch = batch_of(frames.partitions(cluster.kraft.partitions).select(SCHEMA.names).to_pylist())
    wanted = change(["t1", "t3"])
    (found,) = topic_sums.topics_of([batch, batch.slice(0, 0)], pa.array(wanted))
    assert sorted(set(found.column("topic").to_pylist())) == ["t1", "t3"]
    assert found.num_rows == 6
    assert not list(topic_sums.topics_of([batch], pa.array(["none"])))
