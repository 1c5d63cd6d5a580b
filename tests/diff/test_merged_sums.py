"""Both sides' sums and rows, merged: what differs is what a loop over all rows finds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.diff import merged_sums, topic_sums
from migrate.diff.merged_sums import KRAFT, SIDED, ZOOKEEPER
from migrate.diff.partition_files import SCHEMA

Row = dict[str, Any]
Key = tuple[str, int]
FEW: st.SearchStrategy[Row] = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["a", "b", "ü"]),
        "partition": st.integers(0, 3),
        "topic_id": st.sampled_from(["", "x"]),
        **dict.fromkeys(topic_sums.LISTS, st.lists(st.integers(0, 2), max_size=2)),
        **dict.fromkeys(("leader", "leader_epoch", "recovery_state"), st.integers(0, 1)),
    }
)


def whole(rows: list[Row]) -> list[Row]:
    """One row a partition, numbers from 0 on, as a cluster has them."""
    first: dict[Key, Row] = {}
    for row in rows:
        first.setdefault((row["topic"], row["partition"]), row)
    counted: dict[str, int] = defaultdict(int)
    found = []
    for (topic, _), row in first.items():
        found.append({**row, "partition": counted[topic]})
        counted[topic] += 1
    return found


def content(row: Row) -> Row:
    """What is compared, sets as sets."""
    return {name: set(value) if name in topic_sums.SETS else value for name, value in row.items()}


def by_key(rows: list[Row]) -> dict[Key, list[Row]]:
    """The rows of each partition."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["topic"], row["partition"]].append(content(row))
    return found


def unequal(ours: list[Row], theirs: list[Row]) -> set[Key]:
    """Partitions that are not there once on either side with the same content."""
    left, right = by_key(ours), by_key(theirs)
    return {key for key in left.keys() | right.keys() if len(left[key]) != 1 or left[key] != right[key]}


def batch(rows: list[Row]) -> pa.RecordBatch:
    """As a file gives them."""
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def summed(ours: list[Row], theirs: list[Row], pieces: int) -> pa.Table:
    """The sums of both sides, each in pieces."""
    return pa.Table.from_batches(
        topic_sums.topic_sums(batch(rows[piece::pieces]), side)
        for rows, side in ((ours, ZOOKEEPER), (theirs, KRAFT))
        for piece in range(pieces)
    )


def sided(ours: list[Row], theirs: list[Row]) -> pa.Table:
    """The rows of both sides."""
    rows = [{**row, "side": side} for side, rows in ((ZOOKEEPER, ours), (KRAFT, theirs)) for row in rows]
    return pa.Table.from_pylist(rows, SIDED)


def keys(found: pa.RecordBatch) -> set[Key]:
    """Of rows."""
    return set(zip(found.column("topic").to_pylist(), found.column("partition").to_pylist(), strict=True))


@pytest.mark.slow
@given(
    ours=st.lists(FEW, max_size=9), changed=st.lists(FEW, max_size=3), gone=st.integers(0, 3), pieces=st.integers(1, 3)
)
def test_topics_differ_just_where_one_of_their_partitions_does(
    ours: list[Row], changed: list[Row], gone: int, pieces: int
) -> None:
    """Of clusters, where each number is there once; with their rows on either side."""
    ours = whole(ours)
    theirs = whole([*changed, *ours[gone:]])
    expected = {topic for topic, _ in unequal(ours, theirs)}
    found = merged_sums.differing_topics(summed(ours, theirs, pieces)).to_pylist()
    assert {row["topic"] for row in found} == expected
    for row in found:
        for side, rows in (("zookeeper", ours), ("kraft", theirs)):
            assert row[side] == sum(one["topic"] == row["topic"] for one in rows)


@pytest.mark.slow
@pytest.mark.parametrize("least", [0, 10**9], ids=["kernel", "reference"])
@given(ours=st.lists(FEW, max_size=9), theirs=st.lists(FEW, max_size=9), same=st.lists(FEW, max_size=5))
def test_rows_differ_just_where_a_loop_says_so(least: int, ours: list[Row], theirs: list[Row], same: list[Row]) -> None:
    """Rows that stand twice are never equal; every row of a partition that differs comes, of either side."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_sums, "LEAST", least)
        ours, theirs = [*ours, *same], [*same, *theirs]
        found = merged_sums.differing_rows(sided(ours, theirs))
    expected = unequal(ours, theirs)
    assert keys(found) == expected
    for side, rows in ((ZOOKEEPER, ours), (KRAFT, theirs)):
        wanted = [row for row in rows if (row["topic"], row["partition"]) in expected]
        assert [row for row in found.to_pylist() if row["side"] == side] == [{**row, "side": side} for row in wanted]


def test_a_row_that_has_no_fingerprint_leaves_none_out() -> None:
    """A null makes all rows that came with it go through the comparison of fields."""
    row: Row = {"topic": "t", "partition": 0, "topic_id": "x", "leader": 1, "leader_epoch": 1, "recovery_state": 0}
    row |= {name: [1] for name in topic_sums.LISTS}
    rows = [row, {**row, "partition": 1}]
    assert merged_sums.differing_rows(sided(rows, rows)).num_rows == 0
    assert merged_sums.differing_rows(sided(rows, [row, {**row, "partition": 1, "leader": None}])).num_rows == 4
    assert merged_sums.differing_rows(sided([], [])).num_rows == 0


def test_a_topic_with_a_number_that_no_partition_has_may_differ() -> None:
    """However equal its sums are."""
    row: Row = {"topic": "t", "partition": -1, "topic_id": "x", "leader": 1, "leader_epoch": 1, "recovery_state": 0}
    row |= {name: [1] for name in topic_sums.LISTS}
    found = merged_sums.differing_topics(summed([row], [row], 1)).to_pylist()
    assert found == [{"topic": "t", "zookeeper": 1, "kraft": 1}]
