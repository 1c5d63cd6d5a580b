"""Each rule excuses its own row and not the one beside it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from migrate.diff.expected import RULES, ExpectedRule, rule_of
from migrate.diff.frames import Column, frame
from migrate.model.difference import Difference, DifferenceClass

pytestmark = pytest.mark.spark
DOOMED = ("doomed",)
TEXTS = ("kind", "key", "topic", "field", "cls", "zookeeper", "kraft")
SHAPE = pa.schema([("number", pa.int32()), *((name, pa.string()) for name in TEXTS), ("deleting", pa.bool_())])
OTHER_CLASSES = {
    DifferenceClass.ONLY_ZK: DifferenceClass.ONLY_KRAFT,
    DifferenceClass.ONLY_KRAFT: DifferenceClass.ONLY_ZK,
    DifferenceClass.DIFFERS: DifferenceClass.ONLY_ZK,
}


def verdicts(spark: SparkSession, rows: list[Difference], deletions: tuple[str, ...] = DOOMED) -> list[str | None]:
    """The rule that excuses each row, in their order."""
    table = Column.of(SHAPE)
    for number, row in enumerate(rows):
        topic = row.key.rpartition("-")[0] if row.kind == "partition" else row.key
        values = (row.kind, row.key, topic, row.field, row.cls.value, row.zookeeper, row.kraft)
        table.add(number, *values, topic in deletions)
    found = frame(spark, table.table()).selectExpr("number", f"{rule_of(RULES)} AS rule").orderBy("number")
    return [row["rule"] for row in found.collect()]


def test_every_rule_excuses_its_example_and_not_its_counter_example(spark: SparkSession) -> None:
    """The planted counter-examples, all at once."""
    assert verdicts(spark, [rule.example for rule in RULES]) == [rule.id for rule in RULES]
    assert verdicts(spark, [rule.counter for rule in RULES]) == [None] * len(RULES)


def test_no_rule_excuses_its_example_in_another_class_or_kind(spark: SparkSession) -> None:
    """A row of the other side, or of something else, is not the one that Kafka's source explains."""
    turned = [
        replace(row, cls=OTHER_CLASSES[row.cls], zookeeper=row.kraft, kraft=row.zookeeper)
        for row in (rule.example for rule in RULES)
    ]
    elsewhere = [replace(rule.example, kind="client-quota") for rule in RULES]
    assert verdicts(spark, [*turned, *elsewhere]) == [None] * (2 * len(RULES))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_what_it_excuses_and_where_kafka_says_so(rule: ExpectedRule) -> None:
    """Id, description and source stand in the report."""
    assert rule.id.startswith("X-")
    assert rule.description
    assert rule.source.startswith("KAFKA 3.9 ")


def test_rules_have_distinct_ids() -> None:
    """A report names one rule."""
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_producer_ids_may_be_ahead_by_exactly_one_block(spark: SparkSession) -> None:
    """One block is what dual write does; behind, equal, or two blocks ahead is something else; text is no number."""
    row = Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "4000", "3000")
    near = [replace(row, zookeeper=value) for value in ("3000", "2000", "5000", "4001", "x", "")]
    assert verdicts(spark, [row, *near]) == ["X-PRODUCER-01", *[None] * len(near)]


def test_without_pending_deletions_no_missing_topic_is_excused(spark: SparkSession) -> None:
    """A topic that the copy lost is exactly what the comparison is for."""
    rows = [rule.example for rule in RULES if rule.id == "X-TOPIC-01"]
    assert verdicts(spark, rows, ()) == [None]


def test_everything_of_a_topic_that_is_being_deleted_is_excused(spark: SparkSession) -> None:
    """Its partitions, its id and its configuration are not copied; a field that differs is still a difference."""
    rows = [
        Difference("topic", "doomed", "topic_id", DifferenceClass.ONLY_ZK, "x", None),
        Difference("topic-config", "doomed", "retention.ms", DifferenceClass.ONLY_ZK, "1", None),
        Difference("partition", "doomed-0", "leader", DifferenceClass.DIFFERS, "1", "2"),
        Difference("broker-config", "doomed", "x", DifferenceClass.ONLY_ZK, "1", None),
    ]
    assert verdicts(spark, rows) == ["X-TOPIC-01", "X-TOPIC-01", None, None]


BROKER = Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "kraft")
DELETED = Difference("topic-config", "doomed", "retention.ms", DifferenceClass.ONLY_ZK, "1", None)
LEVEL = Difference("feature", "metadata.version", "level", DifferenceClass.ONLY_KRAFT, None, "21")
BLOCK = Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "5000", "4000")
PARTS = (
    (BROKER, "X-BROKER-01"),
    (replace(BROKER, kraft="zookeeper"), ""),
    (replace(BROKER, kind="topic"), ""),
    (replace(BROKER, field="rack"), ""),
    (replace(BROKER, cls=DifferenceClass.DIFFERS), ""),
    (DELETED, "X-TOPIC-01"),
    (replace(DELETED, kind="acl"), ""),
    (replace(DELETED, cls=DifferenceClass.ONLY_KRAFT), ""),
    (replace(DELETED, cls=DifferenceClass.DIFFERS), ""),
    (LEVEL, "X-FEATURE-01"),
    (replace(LEVEL, key="kraft.version"), "X-FEATURE-02"),
    (replace(LEVEL, key="group.version"), ""),
    (replace(LEVEL, kind="acl"), ""),
    (replace(LEVEL, cls=DifferenceClass.ONLY_ZK), ""),
    (replace(LEVEL, cls=DifferenceClass.DIFFERS), ""),
    (BLOCK, "X-PRODUCER-01"),
    (replace(BLOCK, zookeeper="5001"), ""),
    (replace(BLOCK, zookeeper="4999"), ""),
    (replace(BLOCK, zookeeper="4000", kraft="5000"), ""),
    (replace(BLOCK, zookeeper=None), ""),
    (replace(BLOCK, kraft=None), ""),
    (replace(BLOCK, zookeeper="x"), ""),
    (replace(BLOCK, kraft="x"), ""),
    (replace(BLOCK, kind="acl"), ""),
    (replace(BLOCK, field="other"), ""),
    (replace(BLOCK, cls=DifferenceClass.ONLY_ZK), ""),
)


def test_every_part_of_a_rule_is_needed(spark: SparkSession) -> None:
    """What is excused wrongly is lost in silence."""
    assert verdicts(spark, [row for row, _ in PARTS]) == [rule or None for _, rule in PARTS]
