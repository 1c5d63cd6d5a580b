"""Tables as columns count what a reader wants to know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrate.model.columns import EntityColumns, PartitionColumns
from tests.testing.clusters import healthy_cluster


def test_partition_columns_count_and_find_replicas() -> None:
    """Six partitions of three replicas, each broker in all of them."""
    rows = healthy_cluster().zookeeper.partitions
    assert (len(rows), rows.replica_count()) == (6, 18)
    assert list(rows.rows_of(1)) == list(range(6))
    assert list(rows.rows_of(9)) == []
    assert (len(PartitionColumns()), PartitionColumns().replica_count()) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.text(max_size=2)), max_size=20))
def test_entity_counts_are_distinct_keys_by_kind(entries: list[tuple[str, str, str]]) -> None:
    """Several names of one key are one entity."""
    rows = EntityColumns()
    for kind, key, name in entries:
        rows.add(kind, key, name, "v", "/somewhere")
    assert len(rows) == len(entries)
    wanted = {kind: len({key for one, key, _ in entries if one == kind}) for kind, _, _ in entries}
    assert rows.counts() == wanted
    assert list(rows.counts()) == sorted(wanted)
