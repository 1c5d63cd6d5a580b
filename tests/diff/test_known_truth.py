"""250 clusters whose differences are known: all are found, none else, each rule excuses its own shape alone."""

from __future__ import annotations

from collections import Counter
from datetime import date
from random import Random  # noqa: TID251 - seeded: the same clusters each time

import pytest
from pyspark.sql import SparkSession

from migrate.diff.compare import Question, compare
from migrate.diff.expected import RULES
from migrate.model.difference import DiffReport
from tests.diff.planted import ALONE, PLANTS, Row, agreeing, planted
from tests.diff.reference import reference
from tests.diff.together import compare_many
from tests.testing.clusters import kraft_view, zookeeper_view

pytestmark = pytest.mark.spark
TODAY = date(2026, 11, 21)
CLUSTERS = 250


def rows_of(report: DiffReport) -> set[Row]:
    """The listed rows without their values."""
    return {(row.kind, row.key, row.field, row.cls.value, row.rule) for row in report.differences}


def test_every_planted_difference_of_250_clusters_is_found_and_no_other(spark: SparkSession) -> None:
    """Each kind and field, on each side, alone and in pairs; counts are those of the comparison in plain Python."""
    clusters = list(planted(Random(5), CLUSTERS))
    reports = compare_many(spark, [truth.question() for truth, _ in clusters], today=TODAY)
    assert len(reports) == CLUSTERS
    seen: Counter[str] = Counter()
    for (truth, expected), report in zip(clusters, reports, strict=True):
        assert rows_of(report) == expected
        question = truth.question()
        found, equal = reference(question.zookeeper, question.kraft)
        assert {(row.kind, row.key, row.field, row.side.value) for row in report.differences} == found
        assert +Counter({kind: counts.get("EQUAL", 0) for kind, counts in report.counts.items()}) == equal
        assert report.idle == ()
        seen.update(row.rule or row.cls.value for row in report.differences)
    assert set(seen) == {"ONLY_ZK", "ONLY_KRAFT", "DIFFERS", "CHG-1", *(rule.id for rule in RULES)}
    assert sum(len(expected) for _, expected in clusters) > 2 * (CLUSTERS - 2 * len(PLANTS) - len(ALONE)) * 0.9


def test_one_cluster_alone_is_reported_as_among_others(spark: SparkSession) -> None:
    """Nothing of one cluster reaches another: acceptances and pending deletions included."""
    clusters = [truth.question() for truth, _ in planted(Random(6), 200)][90:170:20]
    together = compare_many(spark, clusters, today=TODAY)
    for question, found in zip(clusters, together, strict=True):
        alone = compare(
            spark, question.zookeeper, question.kraft, question.accepted, offset=100, lag=question.lag, today=TODAY
        )
        assert alone == found


def test_clusters_that_agree_and_empty_ones_stay_apart_from_their_neighbours(spark: SparkSession) -> None:
    """An empty cluster between two others has no counts; its neighbours have theirs."""
    agree = agreeing(Random(7)).question()
    nothing = Question(zookeeper_view(), kraft_view())
    first, empty, last = compare_many(spark, [agree, nothing, agree], today=TODAY)
    assert first == last
    assert (first.differences, empty.counts["feature"]) == ((), {"EXPECTED": 1})
    assert set(empty.counts) == {"feature"}
