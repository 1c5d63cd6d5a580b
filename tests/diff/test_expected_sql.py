"""Whatever a text holds, it stays a text."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from migrate.diff.expected import chosen, literal, name_of

ODD = ("", "plain", "it's", "a\\b", "\\'", "`tick`", "' OR true --", "new\nline", "${x}", "é")


@pytest.mark.spark
def test_texts_come_back_as_they_were_given(spark: SparkSession) -> None:
    """Quotes, backslashes, line ends and what looks like a variable included."""
    found = spark.range(1).selectExpr(*(f"{literal(text)} AS c{number}" for number, text in enumerate(ODD))).collect()
    assert tuple(found[0]) == ODD


@pytest.mark.spark
def test_names_come_back_as_they_were_given(spark: SparkSession) -> None:
    """Ticks included."""
    names = ["equal broker-config", "it's", "`tick`"]
    assert spark.range(1).selectExpr(*(f"1 AS {name_of(name)}" for name in names)).columns == names


@pytest.mark.spark
def test_the_first_condition_that_holds_decides(spark: SparkSession) -> None:
    """And an unknown one does not hold."""
    word = chosen({"id IS NULL": "'null'", "id > CAST(NULL AS INT)": "'unknown'", "id > 1": "'two'", "id > 0": "'one'"})
    found = spark.range(3).orderBy("id").selectExpr(f"{word} AS word").collect()
    assert [row["word"] for row in found] == [None, "one", "two"]
