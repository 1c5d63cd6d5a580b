"""The rules without Spark are the rules on Spark."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from pyspark.sql import SparkSession

from migrate.diff.excuses import EXCUSES, rule_for
from migrate.diff.expected import RULES
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
