"""What is equal in each of several clusters that shared one job: reckoned from what was given and what differs.

The job lists every difference, so what is not in its list is equal; `migrate.diff.compare` holds the sum of it to what
Spark counted while it joined.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from migrate.diff.tables import PARTITION_FIELDS

PARTITION: Final = "partition"
Key = tuple[int, str]  # cluster, kind
Sides = tuple[pa.Table, pa.Table]
Given = Mapping[Key, tuple[int, int]]


def rows_given(tables: Sequence[Sides]) -> Given:
    """Rows of ZooKeeper and of KRaft by cluster and kind; a table without kinds is the partitions'."""
    found: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for sides in tables:
        for number, table in enumerate(sides):
            keys = [name for name in ("cluster", "kind") if name in table.column_names]
            for row in table.group_by(keys).aggregate([([], "count_all")]).to_pylist():
                found[row["cluster"], row.get("kind", PARTITION)][number] += row["count_all"]
    return {key: (zookeeper, kraft) for key, (zookeeper, kraft) in found.items()}


def equal_fields(given: Given, differences: Iterable[Mapping[str, Any]]) -> Counter[Key]:
    """Equal fields by cluster and kind; a partition has `PARTITION_FIELDS`, everything else is one field.

    Raises:
        RuntimeError: the rows that both sides have are not as many on one as on the other: a key stands twice.
    """
    only_zookeeper, only_kraft, differing = Counter[Key](), Counter[Key](), Counter[Key]()
    for row in differences:
        alone = not row["field"] if row["kind"] == PARTITION else None in (row["zookeeper"], row["kraft"])
        side = only_kraft if row["zookeeper"] is None else only_zookeeper
        (side if alone else differing)[row["cluster"], row["kind"]] += 1
    equal = Counter[Key]()
    for key, (zookeeper, kraft) in given.items():
        both = zookeeper - only_zookeeper[key]
        if both != kraft - only_kraft[key]:
            raise RuntimeError(f"{zookeeper} and {kraft} rows of {key} do not go with what differs: a key stands twice")
        equal[key] = both * (len(PARTITION_FIELDS) if key[1] == PARTITION else 1) - differing[key]
    return equal
