"""What is equal in each cluster follows from what was given and what differs."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from migrate.diff.frames import ENTITIES, PARTITIONS
from migrate.diff.tables import PARTITION_FIELDS
from migrate.diff.totals import equal_fields, rows_given

FIELDS = len(PARTITION_FIELDS)


def partition(cluster: int, number: int) -> dict[str, object]:
    """A partition; what is compared of it does not matter here."""
    return {"cluster": cluster, "topic": "a", "partition": number}


def entity(cluster: int, kind: str, name: str) -> dict[str, object]:
    """Something that is no partition."""
    return {"cluster": cluster, "kind": kind, "key": "k", "name": name, "value": "v"}


def row(kind: str, field: str, zookeeper: str | None, kraft: str | None, cluster: int = 0) -> dict[str, object]:
    """A difference."""
    return {"cluster": cluster, "kind": kind, "field": field, "zookeeper": zookeeper, "kraft": kraft}


def test_rows_are_counted_by_cluster_kind_and_side() -> None:
    """Kinds that one side alone has, too; a table without rows counts nothing."""
    partitions = [pa.Table.from_pylist([partition(0, 0), partition(0, 1), partition(2, 0)], PARTITIONS)]
    partitions.append(pa.Table.from_pylist([partition(0, 0)], PARTITIONS))
    entities = pa.Table.from_pylist([entity(1, "broker", "x"), entity(1, "feature", "y")], ENTITIES)
    given = rows_given([(partitions[0], partitions[1]), (entities, ENTITIES.empty_table())])
    assert given == {
        (0, "partition"): (2, 1),
        (2, "partition"): (1, 0),
        (1, "broker"): (1, 0),
        (1, "feature"): (1, 0),
    }


def test_what_is_not_listed_is_equal_field_by_field() -> None:
    """A partition that one side lacks has no equal field; one that differs in a field has all the others."""
    given = {(0, "partition"): (3, 3), (0, "broker"): (2, 1), (1, "partition"): (1, 1)}
    rows = [
        row("partition", "", "replicas 1", None),
        row("partition", "", None, "replicas 1"),
        row("partition", "leader", None, "1"),
        row("broker", "rack", "a", None),
    ]
    assert equal_fields(given, rows) == Counter(
        {(0, "partition"): 2 * FIELDS - 1, (0, "broker"): 1, (1, "partition"): FIELDS}
    )


def test_rows_that_do_not_go_with_what_differs_are_an_error() -> None:
    """A row that stands twice on a side is neither alone nor equal."""
    with pytest.raises(RuntimeError, match=r"2 and 1 rows of \(0, 'partition'\) .* a key stands twice"):
        equal_fields({(0, "partition"): (2, 1)}, [])
