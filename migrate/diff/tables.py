"""The two joins of a comparison: partitions, and everything else.  Each says what it saw while it was read.

A table's rows that are not equal have the columns cluster, kind, key, topic, field, cls, zookeeper, kraft.  What is
equal is counted in the same pass (an observation), so that each join runs once; `by_cluster` counts it a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark reader expects

from migrate.diff import frames
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
PARTITION_KEYS: Final = ("cluster", "topic", "partition")
ENTITY_KEYS: Final = ("cluster", "kind", "key", "name")
TOPIC_KINDS: Final = ("topic", "topic-config")


@dataclass(frozen=True, slots=True)
class Compared:
    """A join: its rows that are not equal, and the counts that are there once those were read.

    `zookeeper` and `kraft` are the rows that went in; `weight` is how many fields a key has that both sides have.
    `by_cluster` makes a frame with the columns cluster, kind and equal, for a comparison of several clusters.
    """

    differing: DataFrame
    by_cluster: Callable[[], DataFrame]
    counts: Observation
    kinds: tuple[str, ...]
    zookeeper: int
    kraft: int
    weight: int
    agreed: int = 0  # keys that both sides have with equal fields, and that did not go through the join

    def equal(self) -> dict[str, int]:
        """Equal fields by kind."""
        return {kind: self._count(f"equal {kind}") + self.agreed * self.weight for kind in self.kinds}

    def seen(self) -> Mapping[str, int]:
        """Rows of each side that came through the join."""
        return {"zookeeper": self._count("zookeeper"), "kraft": self._count("kraft")}

    def fields(self) -> int:
        """All compared fields: `weight` a key of both sides, one for a key of one side."""
        both = self._count("both")
        return self.agreed * self.weight + both * self.weight + self.zookeeper + self.kraft - 2 * both

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
    # each is made once: what is built here asks the driver some times a column, which is most of a small comparison
    both = F.col("in_z").isNotNull() & F.col("in_k").isNotNull()
    equals = {name: _equals(name) for name in PARTITION_FIELDS}
    equal_fields = reduce(add, (equal.cast("int") for equal in equals.values()))
    counts = Observation()
    observed = joined.observe(
        counts,
        F.count("in_z").alias("zookeeper"),
        F.count("in_k").alias("kraft"),
        F.count_if(both).alias("both"),
        F.sum(F.when(both, equal_fields)).alias("equal partition"),
    )

    def by_cluster() -> DataFrame:
        equal = joined.where(both).groupBy("cluster").agg(F.sum(equal_fields).alias("equal"))
        return equal.select("cluster", F.lit("partition").alias("kind"), "equal")

    return Compared(
        differing=_partition_rows(observed.where(~both | (equal_fields < len(equals))), both, equals),
        by_cluster=by_cluster,
        counts=counts,
        kinds=("partition",),
        zookeeper=rows[0],
        kraft=rows[1],
        weight=len(PARTITION_FIELDS),
    )


def _prefixed(side: DataFrame, letter: str) -> DataFrame:
    """A side with its fields as LETTER_NAME and `in_LETTER` set."""
    fields = [F.col(name).alias(f"{letter}_{name}") for name in PARTITION_FIELDS]
    return side.select(*PARTITION_KEYS, F.lit(True).alias(f"in_{letter}"), *fields)


def _equals(name: str) -> Column:
    """Is the field equal?  Lists that are sets are sorted only where their order differs."""
    left, right = F.col(f"z_{name}"), F.col(f"k_{name}")
    if not PARTITION_FIELDS[name]:
        return left.eqNullSafe(right)
    return left.eqNullSafe(right) | _as_set(left).eqNullSafe(_as_set(right))


def _as_set(values: Column) -> Column:
    return F.sort_array(F.array_distinct(values))


def _partition_rows(unequal: DataFrame, both: Column, equals: Mapping[str, Column]) -> DataFrame:
    """A row for each field that differs, one for each partition that one side lacks."""
    differing = [F.when(both & ~equal, _pair(name)) for name, equal in equals.items()]
    missing = F.when(~both, _pair("replicas", alone=True))
    rows = unequal.select(
        *("cluster", "topic"),
        F.concat_ws("-", "topic", F.col("partition").cast("string")).alias("key"),
        _side_class(F.col("in_z").isNull(), F.col("in_k").isNull()).alias("cls"),
        F.explode(F.array_compact(F.array(missing, *differing))).alias("found"),
    )
    kind = F.lit("partition").alias("kind")
    return rows.select("cluster", kind, "key", "topic", "found.field", "cls", "found.zookeeper", "found.kraft")


def _pair(name: str, *, alone: bool = False) -> Column:
    """Both values of a field; `alone` stands for the whole partition that one side lacks."""
    return F.struct(
        F.lit("" if alone else name).alias("field"),
        _text(f"z_{name}", as_list=name in LISTS, prefix="replicas " if alone else "").alias("zookeeper"),
        _text(f"k_{name}", as_list=name in LISTS, prefix="replicas " if alone else "").alias("kraft"),
    )


def _text(name: str, *, as_list: bool, prefix: str) -> Column:
    """A value as a reader sees it; null stays null."""
    text = F.array_join(F.col(name).cast("array<string>"), ",") if as_list else F.col(name).cast("string")
    return F.concat(F.lit(prefix), text)


def _side_class(no_zookeeper: Column, no_kraft: Column) -> Column:
    return (
        F.when(no_zookeeper, F.lit(DifferenceClass.ONLY_KRAFT.value))
        .when(no_kraft, F.lit(DifferenceClass.ONLY_ZK.value))
        .otherwise(F.lit(DifferenceClass.DIFFERS.value))
    )


# -- everything else ---------------------------------------------------------------------------------------------
def entity_table(spark: SparkSession, zookeeper: pa.Table, kraft: pa.Table) -> Compared:
    """Entities of both views, joined on kind, key and name."""
    left = frames.frame(spark, zookeeper).select(*ENTITY_KEYS, F.col("value").alias("z"))
    right = frames.frame(spark, kraft).select(*ENTITY_KEYS, F.col("value").alias("k"))
    joined = left.join(right, list(ENTITY_KEYS), "full_outer")
    equal = F.col("z").eqNullSafe(F.col("k"))
    kinds = _kinds(zookeeper, kraft)
    counts = Observation()
    observed = joined.observe(
        counts,
        F.count("z").alias("zookeeper"),
        F.count("k").alias("kraft"),
        F.count_if(F.col("z").isNotNull() & F.col("k").isNotNull()).alias("both"),
        *(F.count_if(equal & (F.col("kind") == kind)).alias(f"equal {kind}") for kind in kinds),
    )
    return Compared(
        differing=_entity_rows(observed),
        by_cluster=lambda: joined.where(equal).groupBy("cluster", "kind").agg(F.count(F.lit(1)).alias("equal")),
        counts=counts,
        kinds=kinds,
        zookeeper=zookeeper.num_rows,
        kraft=kraft.num_rows,
        weight=1,
    )


def _kinds(*tables: pa.Table) -> tuple[str, ...]:
    found: set[str] = set()
    for table in tables:
        found.update(table.column("kind").unique().to_pylist())
    return tuple(sorted(found))


def _entity_rows(joined: DataFrame) -> DataFrame:
    topic = F.when(F.col("kind").isin(*TOPIC_KINDS), F.col("key")).otherwise(F.lit(""))
    return joined.where(~F.col("z").eqNullSafe(F.col("k"))).select(
        "cluster",
        "kind",
        "key",
        topic.alias("topic"),
        F.col("name").alias("field"),
        _side_class(F.col("z").isNull(), F.col("k").isNull()).alias("cls"),
        F.col("z").alias("zookeeper"),
        F.col("k").alias("kraft"),
    )
