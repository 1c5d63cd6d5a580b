"""ZooKeeper against KRaft, field by field, at one offset: a full outer join a table, typed and null-safe.

What is counted: every field of a key that both sides have, and one field ("") for a key that one side alone has.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr

from migrate.diff import frames, typed_rows
from migrate.diff.expected import RULES, chosen, literal, rule_of
from migrate.diff.frames import answering
from migrate.diff.tables import FOUND, PARTITION_FIELDS, Compared, entity_table, partition_table
from migrate.errors import MalformedZnode
from migrate.model.difference import Difference, DifferenceClass, DiffReport, IdleAcceptance, IdleReason, current
from migrate.model.inventory import AcceptedDifference
from migrate.model.views import KraftView, ZookeeperView

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
        RuntimeError: the rows that both sides have are not as many on one as on the other: a key appears twice.
    """
    only_zookeeper, only_kraft, differing = Counter[Key](), Counter[Key](), Counter[Key]()
    for row in differences:  # or so many rows of that kind, `n`
        alone = not row["field"] if row["kind"] == PARTITION else None in (row["zookeeper"], row["kraft"])
        side = only_kraft if row["zookeeper"] is None else only_zookeeper
        (side if alone else differing)[row["cluster"], row["kind"]] += row.get("n", 1)
    equal = Counter[Key]()
    for key, (zookeeper, kraft) in given.items():
        both = zookeeper - only_zookeeper[key]
        if both != kraft - only_kraft[key]:
            raise RuntimeError(
                f"{zookeeper} and {kraft} rows of {key} do not match the differences found: a key appears twice"
            )
        equal[key] = both * (len(PARTITION_FIELDS) if key[1] == PARTITION else 1) - differing[key]
    return equal


LOG = logging.getLogger("migrate.diff")
EQUAL: Final = DifferenceClass.EQUAL.value
MOST_ROWS: Final = 10_000
RULES_OF_ROWS: Final = frozenset(entry.value for entry in DifferenceClass)

ACCEPTED_KEYS: Final = ("cluster", "cls", "kind", "key", "field")
ACCEPTED: Final = pa.schema(
    [("cluster", pa.int32()), *((name, pa.string()) for name in ("cls", "kind", "key", "field", "ticket"))]
)
DELETIONS: Final = pa.schema([("cluster", pa.int32()), ("topic", pa.string()), ("deleting", pa.bool_())])


@dataclass(frozen=True, slots=True)
class Terms:
    """What a cluster's report rests on beside its rows: `deletions` are the topics in its /admin/delete_topics."""

    offset: int
    lag: int
    blind_spots: tuple[str, ...] = ()
    accepted: tuple[AcceptedDifference, ...] = ()
    deletions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The two views of one cluster, what is accepted there, and how far behind dual write was (records)."""

    zookeeper: ZookeeperView
    kraft: KraftView
    accepted: Sequence[AcceptedDifference] = ()
    lag: int = 0

    def __post_init__(self) -> None:
        """Refuse a tree that was read in part: what it lacks would look like something that is only in KRaft."""
        for part in self.zookeeper.malformed:
            raise MalformedZnode(part.problem, where=part.path, why="a tree that was read in part is not compared")

    @property
    def terms(self) -> Terms:
        """All but the rows."""
        view = self.zookeeper
        return Terms(
            self.kraft.offset, self.lag, tuple(view.blind_spots), tuple(self.accepted), tuple(view.pending.deletions)
        )

    def tables(self, cluster: int = 0) -> tuple[Sides, Sides]:
        """Partitions, and everything else, of both sides."""
        zookeeper, kraft = self.zookeeper, self.kraft
        blind = typed_rows.blind_configs(zookeeper.blind_spots)
        left = frames.entities(zookeeper.entities, typed_rows.of_zookeeper(zookeeper), cluster)
        right = frames.entities(kraft.entities, typed_rows.of_kraft(kraft), cluster)
        partitions = tuple(frames.partitions(view.partitions, cluster) for view in (zookeeper, kraft))
        return (partitions[0], partitions[1]), (_without(left, blind), _without(right, blind))


def fields_in(kraft: KraftView) -> int:
    """How many fields of that side a comparison looks at: known before it begins."""
    others = frames.entities(kraft.entities, typed_rows.of_kraft(kraft))
    return len(kraft.partitions) * len(PARTITION_FIELDS) + int(others.num_rows)


def compare(
    spark: SparkSession,
    zookeeper: ZookeeperView,
    kraft: KraftView,
    accepted: Sequence[AcceptedDifference],
    *,
    offset: int,
    lag: int,
    today: date,
) -> DiffReport:
    """Every difference between the two views, with its class; counts are exact, at most 10,000 rows are listed.

    Rows that nothing excuses come first, so that a cut list never hides one behind excused rows.

    Raises:
        SparkGone: the session ended under the comparison.
    """
    question = Question(zookeeper, kraft, accepted, lag)
    terms = replace(question.terms, offset=offset)
    partitions, entities = question.tables()
    with answering("the comparison"):
        tables = partition_table(spark, *partitions), entity_table(spark, *entities)
        classed = in_classes(spark, all_differing(tables), {0: terms}, today)
        rows = _listed(classed).toArrow().to_pylist()
        unequal = _count(classed) if len(rows) > MOST_ROWS else Counter((row["kind"], row["cls"]) for row in rows)
        counted = unequal + Counter({(kind, EQUAL): n for table in tables for kind, n in table.equal().items()})
        _check_nothing_lost(tables, counted.total())
    LOG.info("compared at offset %d: %d fields, %d of them not equal", offset, counted.total(), unequal.total())
    return report_of(terms, rows, counted, today)


def report_of(
    terms: Terms, rows: Sequence[Mapping[str, Any]], counted: Counter[tuple[str, str]], today: date
) -> DiffReport:
    """The report of the first of these rows; what `counted` has beyond them is a blind spot, as a number."""
    differences = tuple(sorted(map(_difference, rows), key=_order)[:MOST_ROWS])
    total = sum(number for (_, cls), number in counted.items() if cls != EQUAL)
    left = total - len(differences)
    cut = (f"{left} of {total} differences are counted and not listed",) if left else ()
    return DiffReport(
        offset=terms.offset,
        lag=terms.lag,
        counts=_by_kind(counted),
        differences=differences,
        blind_spots=(*terms.blind_spots, *cut),
        idle=idle_acceptances(terms.accepted, differences, today, whole=not cut),
    )


def idle_acceptances(
    accepted: Iterable[AcceptedDifference], differences: Iterable[Difference], today: date, *, whole: bool
) -> tuple[IdleAcceptance, ...]:
    """Acceptances that have expired, or that no difference needs; `whole` is False where the list was cut (pure)."""
    rows = [row for row in differences if row.cls is DifferenceClass.ACCEPTED]
    used = {(row.side.value, row.kind, row.key, row.field) for row in rows}
    idle = []
    for entry in accepted:
        if entry.rule not in RULES_OF_ROWS:
            continue  # it excuses a finding
        if today >= date.fromisoformat(entry.expires):
            idle.append(IdleAcceptance(entry, IdleReason.EXPIRED))
        elif whole and (entry.rule, entry.kind, entry.name, entry.field) not in used:
            idle.append(IdleAcceptance(entry, IdleReason.UNUSED))
    return tuple(idle)


def all_differing(tables: Iterable[Compared]) -> DataFrame:
    return reduce(DataFrame.unionByName, (table.differing for table in tables))


def _without(table: pa.Table, blind: frozenset[tuple[str, str]]) -> pa.Table:
    """Without the configurations that one side cannot decode."""
    if not blind:
        return table
    kinds, keys, names = (table.column(name).to_pylist() for name in ("kind", "key", "name"))
    keep = [
        kind != "broker-config" or (key, name) not in blind for kind, key, name in zip(kinds, keys, names, strict=True)
    ]
    return table.filter(pa.array(keep, pa.bool_()))


# -- classes -----------------------------------------------------------------------------------------------------
def in_classes(spark: SparkSession, found: DataFrame, clusters: Mapping[int, Terms], today: date) -> DataFrame:
    """With the rule or the ticket that excuses a row, and the class that follows."""
    known = _accepted(clusters, today)
    excused, ticket = _deleting(spark, found, clusters), "CAST(NULL AS STRING)"
    if known.num_rows:
        tickets = frames.frame(spark, known).dropDuplicates(list(ACCEPTED_KEYS))
        excused, ticket = excused.join(broadcast(tickets), list(ACCEPTED_KEYS), "left"), "ticket"
    shown = ("cluster", "kind", "key", "field", "zookeeper", "kraft")
    ruled = excused.selectExpr(*shown, "cls", f"{rule_of(RULES)} AS rule", f"{ticket} AS ticket")
    excuses = {
        "rule IS NOT NULL": literal(DifferenceClass.EXPECTED),
        "ticket IS NOT NULL": literal(DifferenceClass.ACCEPTED),
    }
    return ruled.selectExpr(*shown, "coalesce(rule, ticket, '') AS rule", f"{chosen(excuses, 'cls')} AS cls")


def _deleting(spark: SparkSession, found: DataFrame, clusters: Mapping[int, Terms]) -> DataFrame:
    """With `deleting`: the row is about a topic of that cluster's /admin/delete_topics."""
    pending = frames.Column.of(DELETIONS)
    for cluster, terms in clusters.items():
        for topic in terms.deletions:
            pending.add(cluster, topic, True)
    if not pending.values["cluster"]:
        return found.selectExpr("*", "false AS deleting")
    doomed = broadcast(frames.frame(spark, pending.table()).dropDuplicates())
    joined = found.join(doomed, ["cluster", "topic"], "left")
    return joined.selectExpr(*FOUND, "coalesce(deleting, false) AS deleting")


def _accepted(clusters: Mapping[int, Terms], today: date) -> pa.Table:
    found = frames.Column.of(ACCEPTED)
    for cluster, terms in clusters.items():
        for entry in current(terms.accepted, today):
            found.add(cluster, entry.rule, entry.kind, entry.name, entry.field, entry.ticket)
    return found.table()


EXCUSED: Final = f"cls IN ({literal(DifferenceClass.EXPECTED)}, {literal(DifferenceClass.ACCEPTED)})"


def _listed(classed: DataFrame) -> DataFrame:
    """The rows to list and one more: what nothing excuses first."""
    return classed.orderBy(expr(EXCUSED), "kind", "key", "field").limit(MOST_ROWS + 1)


def _count(classed: DataFrame) -> Counter[tuple[str, str]]:
    rows = classed.groupBy("kind", "cls").agg(expr("count(1) AS n")).toArrow().to_pylist()
    return Counter({(row["kind"], row["cls"]): row["n"] for row in rows})


def _check_nothing_lost(tables: Iterable[Compared], classes: int) -> None:
    """Every row that went in must have come out of the join once, and every field have a class.  Else it is a bug."""
    for table in tables:
        seen = table.seen()
        if (seen["zookeeper"], seen["kraft"]) != (table.zookeeper, table.kraft):
            message = f"{table.zookeeper} and {table.kraft} rows were given, {seen} were compared: a key appears twice"
            raise RuntimeError(message)
    fields = sum(table.fields() for table in tables)
    if classes != fields:
        message = f"{fields} fields were compared, {classes} have a class"
        raise RuntimeError(message)


def _difference(row: Mapping[str, Any]) -> Difference:
    return Difference(
        kind=str(row["kind"]),
        key=str(row["key"]),
        field=str(row["field"]),
        cls=DifferenceClass(str(row["cls"])),
        zookeeper=row["zookeeper"],
        kraft=row["kraft"],
        rule=row["rule"] or "",
    )


def _order(entry: Difference) -> tuple[bool, str, str, str]:
    excused = entry.cls in (DifferenceClass.EXPECTED, DifferenceClass.ACCEPTED)
    return excused, entry.kind, entry.key, entry.field


def _by_kind(counted: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    kinds: dict[str, dict[str, int]] = {}
    for (kind, cls), number in sorted(counted.items()):
        if number:
            kinds.setdefault(kind, {})[cls] = number
    return kinds
