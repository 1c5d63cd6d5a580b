"""Spark's ledger is the pure rule's, row by row."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from random import Random  # noqa: TID251 - seeded

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from migrate.diff.ledger import JOINED, Question, decider, ledger, ledgers
from migrate.model.facts import build
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState, facts_of, row
from migrate.model.outcome import Unknown
from tests.diff.arbitrary import any_question
from tests.testing.clusters import directory_id, healthy_cluster, zookeeper_view

pytestmark = pytest.mark.spark
SEEDS = range(6)
CLUSTERS_A_JOB = 150


def pure(question: Question) -> Ledger:
    """The reference's answer."""
    return build(
        question.zookeeper,
        question.kraft,
        question.disks,
        after_copy=question.after_copy,
        finalized=question.finalized,
    )


def bent_clusters(seed: int) -> list[Question]:
    """The clusters of one job: the same ones for the same seed."""
    random = Random(seed)
    return [any_question(random) for _ in range(CLUSTERS_A_JOB)]


def test_a_reason_that_is_no_utf8_is_spelled_out() -> None:
    """A host's path may be any bytes; Arrow would refuse the whole cluster for one.  The pure rule spells it alike."""
    disks = {NodeId(0): Unknown("/data/d\udcff: permission denied")}
    question = Question(zookeeper_view(healthy_cluster().partitions), Unknown("\udcfe"), disks, True, False)
    tables, reason = question.tables(0), "disks: /data/d\\udcff: permission denied"
    assert reason in tables["brokers"].column("unseen").to_pylist()
    assert tables["clusters"].column("missing").to_pylist() == ["kraft: \\udcfe"] == [*pure(question).unknown]
    seen = replace(question, kraft=Unknown("none"), after_copy=False)
    assert {entry.why for entry in pure(seen).of(0)} == {reason}


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_and_the_pure_rule_make_the_same_ledger(spark: SparkSession, seed: int) -> None:
    """Hundreds of clusters, bent in every way, many to a job: equal rows, offsets and unknown views."""
    questions = bent_clusters(seed)
    for question, found in zip(questions, ledgers(spark, questions), strict=True):
        assert replace(found, engine="pure") == pure(question), question


def test_the_bent_clusters_show_every_state() -> None:
    """The claim above is worth something only if all ten states occur in it."""
    seen = {state for seed in SEEDS for question in bent_clusters(seed) for state in pure(question).counts()}
    assert seen == {state.value for state in ReplicaState}


ELSEWHERE = """
import pickle, sys
sys.modules["migrate"] = None
import pyarrow as pa
decided, batch = pickle.load(sys.stdin.buffer)
print(next(decided(iter([batch]))).to_pylist()[0])
"""


def test_an_executor_needs_no_package_of_ours_for_the_rule() -> None:
    """Neither a fleet's, nor a single file's Python, which has no such package either."""
    here = directory_id(0, 0)
    facts = ("t", "id", 0, 0, True, here, [["id", here]], False, False, [here], "", True, False)
    batch = pa.RecordBatch.from_pylist([dict(zip(JOINED, (3, *facts), strict=True))])
    sent = cloudpickle.dumps((decider(), batch))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], input=sent, capture_output=True, check=True)
    expected = {"cluster": 3, **asdict(row(facts_of(*facts)))}
    assert done.stdout.decode().strip() == str(expected | {"state": "VERIFIED"})


def test_a_healthy_cluster_is_verified_by_spark(spark: SparkSession) -> None:
    """The ledger of one cluster, through the door that gates use."""
    cluster = healthy_cluster()
    found = ledger(spark, cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    assert found.counts() == {"VERIFIED": 18}
    assert (found.engine, found.offset, found.unknown) == ("spark", 100, ())


def test_the_ledger_of_a_small_cluster_leaves_next_to_nothing_in_the_heap(spark: SparkSession) -> None:
    """A table that is broadcast has pages of its own: by Spark's default 64 MB each, until the heap is full."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    (old,) = (pool for pool in pools if pool.getName() == "Tenured Gen")
    cluster = healthy_cluster()
    before = old.getUsage().getUsed()
    for _ in range(3):
        ledger(spark, cluster.zookeeper, cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    assert old.getUsage().getUsed() - before < 64 * 2**20


def test_no_replicas_are_no_rows(spark: SparkSession) -> None:
    """An empty cluster, and a cluster of which nothing is known."""
    cluster = healthy_cluster(topics=0)
    nothing = Unknown("no network")
    empty = ledger(spark, zookeeper_view(), cluster.kraft, cluster.disks, after_copy=True, finalized=False)
    blind = ledger(spark, nothing, nothing, nothing, after_copy=True, finalized=False)
    assert (empty.rows, empty.unknown) == ((), ())
    assert blind.rows == ()
    assert len(blind.unknown) == 3
