"""The rules without Spark are the rules on Spark."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from pyspark.sql import SparkSession

from migrate.diff.expected import EXCUSES, RULES, rule_for
from migrate.model.difference import Difference, DifferenceClass
from tests.diff.test_expected import verdicts

CLASSES = (DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT, DifferenceClass.DIFFERS)
VALUES = (None, "kraft", "zookeeper", "4000", "3000", "", "x", "5000", "-1", "999")


def deleting(row: Difference) -> bool:
    """As the tests of the rules on Spark have it: the topic is called `doomed`."""
    return row.key.startswith("doomed") and not row.key.startswith("doomed-too")


def test_every_rule_is_here_and_excuses_its_example_and_not_its_counter_example() -> None:
    """In the order of the table."""
    assert list(EXCUSES) == [rule.id for rule in RULES]
    for rule in RULES:
        assert rule_for(rule.example, deleting=True) == rule.id
        assert rule_for(rule.counter, deleting=False) == ""


@pytest.mark.spark
def test_whatever_spark_excuses_is_excused_here_and_nothing_else(spark: SparkSession) -> None:
    """Each example and counter-example in every class, with every value on either side."""
    rows = [
        replace(row, cls=cls, zookeeper=left, kraft=right)
        for rule in RULES
        for row in (rule.example, rule.counter)
        for cls, left, right in product(CLASSES, VALUES, VALUES)
    ]
    found = [rule_for(row, deleting=deleting(row)) or None for row in rows]
    assert found == verdicts(spark, rows)
    assert {entry for entry in found if entry} == {rule.id for rule in RULES}


BROKER = Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "kraft")
DELETED = Difference("topic-config", "doomed", "retention.ms", DifferenceClass.ONLY_ZK, "1", None)
LEVEL = Difference("feature", "metadata.version", "level", DifferenceClass.ONLY_KRAFT, None, "21")
BLOCK = Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "5000", "4000")


@pytest.mark.parametrize(
    ("row", "rule"),
    [
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
        (replace(LEVEL, key="kraft.version"), ""),
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
    ],
)
def test_every_part_of_a_rule_is_needed(row: Difference, rule: str) -> None:
    """What is excused wrongly is lost in silence."""
    assert rule_for(row, deleting=True) == rule


def test_only_a_topic_that_is_being_deleted_may_be_missing() -> None:
    """Any other one would be lost."""
    assert rule_for(DELETED, deleting=False) == ""
