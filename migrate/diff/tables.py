"""The two joins of a comparison: partitions, and everything else.  Each says what it saw while it was read.

A table's rows that are not equal have the columns `FOUND`.  What is equal is counted in the same pass (an observation),
so that each join runs once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from migrate.diff import frames
from migrate.diff.expected import chosen, literal, name_of
from migrate.model.difference import DifferenceClass

# What dual write keeps equal (`controller_epoch` and znode versions it does not): name -> is it a set?
PARTITION_FIELDS: Final = {
    "topic_id": False,
    "replicas": False,  # ordered: the first is the preferred leader
    "isr": True,
    "adding": True,
    "removing": True,
    "leader": False,
    "leader_epoch": False,
    "recovery_state": False,
}
LISTS: Final = frozenset({"replicas", "isr", "adding", "removing"})
FOUND: Final = ("cluster", "kind", "key", "topic", "field", "cls", "zookeeper", "kraft")
PARTITION_KEYS: Final = ("cluster", "topic", "partition")
ENTITY_KEYS: Final = ("cluster", "kind", "key", "name")
TOPIC_KINDS: Final = ("topic", "topic-config")


def _equal(name: str) -> str:
    """Is the field equal?  Lists that are sets are sorted only where their order differs."""
    as_it_is = f"z_{name} <=> k_{name}"
    as_sets = " <=> ".join(f"sort_array(array_distinct({side}_{name}))" for side in "zk")
    return f"({as_it_is} OR {as_sets})" if PARTITION_FIELDS[name] else f"({as_it_is})"


BOTH: Final = "in_z IS NOT NULL AND in_k IS NOT NULL"
EQUALS: Final = {name: _equal(name) for name in PARTITION_FIELDS}
EQUAL_FIELDS: Final = f"({' + '.join(f'CAST({equal} AS INT)' for equal in EQUALS.values())})"


@dataclass(frozen=True, slots=True)
class Compared:
    """A join: its rows that are not equal, and the counts that are there once those were read.

    `zookeeper` and `kraft` are the rows that went in; `weight` is how many fields a key has that both sides have.
    """

    differing: DataFrame
    counts: Observation
    kinds: tuple[str, ...]
    zookeeper: int
    kraft: int
    weight: int

    def equal(self) -> dict[str, int]:
        return {kind: self._count(f"equal {kind}") for kind in self.kinds}

    def seen(self) -> Mapping[str, int]:
        """Rows of each side that came through the join."""
        return {"zookeeper": self._count("zookeeper"), "kraft": self._count("kraft")}

    def fields(self) -> int:
        """All compared fields: `weight` a key of both sides, one for a key of one side."""
        both = self._count("both")
        return both * self.weight + self.zookeeper + self.kraft - 2 * both

    def _count(self, name: str) -> int:
        return int(self.counts.get[name] or 0)


# -- partitions --------------------------------------------------------------------------------------------------
def partition_table(spark: SparkSession, zookeeper: pa.Table, kraft: pa.Table) -> Compared:
    """Partitions of both views, joined on topic name and number."""
    sides = frames.frame(spark, zookeeper), frames.frame(spark, kraft)
    return partition_join(*sides, (zookeeper.num_rows, kraft.num_rows))


def partition_join(zookeeper: DataFrame, kraft: DataFrame, rows: tuple[int, int]) -> Compared:
    """The same of frames that have so many rows."""
    joined = _prefixed(zookeeper, "z").join(_prefixed(kraft, "k"), list(PARTITION_KEYS), "full_outer")
    counts = Observation()
    observed = joined.observe(
        counts,
        expr("count(in_z) AS zookeeper"),
        expr("count(in_k) AS kraft"),
        expr(f"count_if({BOTH}) AS both"),
        expr(f"sum(CASE WHEN {BOTH} THEN {EQUAL_FIELDS} END) AS `equal partition`"),
    )

    return Compared(
        differing=_partition_rows(observed.where(f"NOT ({BOTH}) OR {EQUAL_FIELDS} < {len(PARTITION_FIELDS)}")),
        counts=counts,
        kinds=("partition",),
        zookeeper=rows[0],
        kraft=rows[1],
        weight=len(PARTITION_FIELDS),
    )


def _prefixed(side: DataFrame, letter: str) -> DataFrame:
    """A side with its fields as LETTER_NAME and `in_LETTER` set."""
    fields = [f"{name} AS {letter}_{name}" for name in PARTITION_FIELDS]
    return side.selectExpr(*PARTITION_KEYS, f"true AS in_{letter}", *fields)


def _partition_rows(unequal: DataFrame) -> DataFrame:
    """A row for each field that differs, one for each partition that one side lacks."""
    missing = f"CASE WHEN NOT ({BOTH}) THEN {_pair('replicas', alone=True)} END"
    differing = [f"CASE WHEN {BOTH} AND NOT {equal} THEN {_pair(name)} END" for name, equal in EQUALS.items()]
    rows = unequal.selectExpr(
        *("cluster", "topic"),
        "concat_ws('-', topic, CAST(partition AS STRING)) AS key",
        f"{_side_class('in_z', 'in_k')} AS cls",
        f"explode(array_compact(array({', '.join((missing, *differing))}))) AS found",
    )
    return rows.selectExpr(
        *("cluster", "'partition' AS kind", "key", "topic", "found.field", "cls", "found.zookeeper", "found.kraft")
    )


def _pair(name: str, *, alone: bool = False) -> str:
    """Both values of a field; `alone` stands for the whole partition that one side lacks."""
    prefix = "replicas " if alone else ""
    values = [
        f"'{side}', {_text(f'{side[0]}_{name}', prefix, as_list=name in LISTS)}" for side in ("zookeeper", "kraft")
    ]
    return f"named_struct('field', {literal('' if alone else name)}, {', '.join(values)})"


def _text(column: str, prefix: str, *, as_list: bool) -> str:
    """A value as a reader sees it; null stays null."""
    text = f"array_join(CAST({column} AS ARRAY<STRING>), ',')" if as_list else f"CAST({column} AS STRING)"
    return f"concat({literal(prefix)}, {text})" if prefix else text


def _side_class(zookeeper: str, kraft: str) -> str:
    """The class of a row by which side has it: these columns are null where a side has not."""
    sides = {f"{zookeeper} IS NULL": DifferenceClass.ONLY_KRAFT, f"{kraft} IS NULL": DifferenceClass.ONLY_ZK}
    return chosen({condition: literal(cls) for condition, cls in sides.items()}, literal(DifferenceClass.DIFFERS))


# -- everything else ---------------------------------------------------------------------------------------------
def entity_table(spark: SparkSession, zookeeper: pa.Table, kraft: pa.Table) -> Compared:
    """Entities of both views, joined on kind, key and name."""
    sides = frames.frame(spark, zookeeper), frames.frame(spark, kraft)
    return entity_join(*sides, _kinds(zookeeper, kraft), (zookeeper.num_rows, kraft.num_rows))


def entity_join(zookeeper: DataFrame, kraft: DataFrame, kinds: tuple[str, ...], rows: tuple[int, int]) -> Compared:
    """The same of frames that have so many rows, of these kinds."""
    left, right = zookeeper.selectExpr(*ENTITY_KEYS, "value AS z"), kraft.selectExpr(*ENTITY_KEYS, "value AS k")
    joined = left.join(right, list(ENTITY_KEYS), "full_outer")
    counts = Observation()
    observed = joined.observe(
        counts,
        expr("count(z) AS zookeeper"),
        expr("count(k) AS kraft"),
        expr("count_if(z IS NOT NULL AND k IS NOT NULL) AS both"),
        *(expr(f"count_if(z <=> k AND kind = {literal(kind)}) AS {name_of(f'equal {kind}')}") for kind in kinds),
    )
    return Compared(
        differing=_entity_rows(observed),
        counts=counts,
        kinds=kinds,
        zookeeper=rows[0],
        kraft=rows[1],
        weight=1,
    )


def _kinds(*tables: pa.Table) -> tuple[str, ...]:
    found: set[str] = set()
    for table in tables:
        found.update(table.column("kind").unique().to_pylist())
    return tuple(sorted(found))


def _entity_rows(joined: DataFrame) -> DataFrame:
    of_topics = ", ".join(map(literal, TOPIC_KINDS))
    return joined.where("NOT (z <=> k)").selectExpr(
        "cluster",
        "kind",
        "key",
        f"CASE WHEN kind IN ({of_topics}) THEN key ELSE '' END AS topic",
        "name AS field",
        f"{_side_class('z', 'k')} AS cls",
        "z AS zookeeper",
        "k AS kraft",
    )
