"""Spark's ledger is the pure rule's, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.diff.ledger import Question, ledger, ledgers
from migrate.model.facts import build
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from tests.diff.arbitrary import any_question
from tests.testing.clusters import healthy_cluster, zookeeper_view

pytestmark = pytest.mark.spark
CLUSTERS_A_JOB = 150
SEEN: Counter[str] = Counter()


def pure(question: Question) -> Ledger:
    """The reference's answer."""
    return build(
        question.zookeeper,
        question.kraft,
        question.disks,
        after_copy=question.after_copy,
        finalized=question.finalized,
    )


@settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a job takes a second: the cluster that fails is printed, not shrunk
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(random=st.randoms(use_true_random=True))
def test_spark_and_the_pure_rule_make_the_same_ledger(spark: SparkSession, random: Random) -> None:
    """Hundreds of clusters, bent in every way, many to a job: equal rows, offsets and unknown views."""
    questions = [any_question(random) for _ in range(CLUSTERS_A_JOB)]
    for question, found in zip(questions, ledgers(spark, questions), strict=True):
        expected = pure(question)
        assert replace(found, engine="pure") == expected, question
        SEEN.update(expected.counts())


def test_the_bent_clusters_show_every_state() -> None:
    """The property above is worth something only if all ten states occur in it (it runs before this)."""
    if not SEEN:
        pytest.skip("the property did not run in this session")
    assert set(SEEN) == {state.value for state in ReplicaState}


def test_a_healthy_cluster_is_verified_by_spark(spark: SparkSession) -> None:
    """The ledger of one cluster, through the door that gates use."""
    cluster = healthy_cluster()
    found = ledger(spark, cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    assert found.counts() == {"VERIFIED": 18}
    assert (found.engine, found.offset, found.unknown) == ("spark", 100, ())


def test_no_replicas_are_no_rows(spark: SparkSession) -> None:
    """An empty cluster, and a cluster of which nothing is known."""
    cluster = healthy_cluster(topics=0)
    nothing = Unknown("no network")
    empty = ledger(spark, zookeeper_view(), cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    blind = ledger(spark, nothing, nothing, nothing, after_copy=True, finalized=False)
    assert (empty.rows, empty.unknown) == ((), ())
    assert blind.rows == ()
    assert len(blind.unknown) == 3
