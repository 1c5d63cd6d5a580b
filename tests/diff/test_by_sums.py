"""Partitions from files: by fingerprints first and by the whole join alike, the report is the reference's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.diff import by_sums, partition_files
from migrate.diff.compare import Question, compare, compare_files
from migrate.diff.partition_files import PartitionFiles, write_partitions
from migrate.model.columns import PartitionColumns
from migrate.model.difference import DiffReport
from migrate.model.views import KraftView, PendingWork, ZookeeperView
from tests.diff.test_compare import ENTITIES, PLANTS, TODAY, acceptance
from tests.testing.clusters import Partition, healthy_cluster, kraft_view, zookeeper_view

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several row groups, and several tasks, of few rows."""
    monkeypatch.setattr(partition_files, "ROW_GROUP", 16)
    monkeypatch.setattr(by_sums, "MOST_SHARE", 1.0)


def files_of(
    folder: Path, zookeeper: ZookeeperView, kraft: KraftView, pieces: int = 3
) -> tuple[PartitionFiles, PartitionFiles]:
    """Both views' partitions; those of a topic lie in several files."""

    def cut(columns: PartitionColumns) -> list[PartitionColumns]:
        rows = [
            [values[place::pieces] for values in (getattr(columns, name) for name in columns.__slots__)]
            for place in range(pieces)
        ]
        return [PartitionColumns(*values) for values in rows]

    left = write_partitions(folder / "zookeeper", cut(zookeeper.partitions))
    return left, write_partitions(folder / "kraft", cut(kraft.partitions))


def both_ways(spark: SparkSession, folder: Path, question: Question) -> DiffReport:
    """By fingerprints and by the whole join; they say the same as the comparison of whole views."""
    files = files_of(folder, question.zookeeper, question.kraft)
    found = [compare_files(spark, question, files, today=TODAY, every_field=every) for every in (False, True)]
    whole = compare(
        spark,
        question.zookeeper,
        question.kraft,
        question.accepted,
        offset=question.kraft.offset,
        lag=question.lag,
        today=TODAY,
    )
    assert found[0] == found[1] == whole
    return found[0]


@settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(random=st.randoms(use_true_random=True))
def test_whatever_differs_is_found_by_fingerprints_too(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    """Changes of any kind, rows and whole topics on one side alone, sets in another order, topics without id."""
    sides: list[list[Partition]] = []
    for _ in range(2):
        partitions = healthy_cluster(topics=30, partitions=6).partitions
        for partition in partitions:
            if random.random() < 0.03:
                random.choice(PLANTS).change(partition, random)
            if partition.topic == "t7":
                partition.topic_id = ""
        gone = {f"t{random.randrange(30)}"}
        kept = [row for row in partitions if row.topic not in gone and random.random() > 0.01]
        random.shuffle(kept)
        sides.append(kept)
    question = Question(zookeeper_view(sides[0], ENTITIES), kraft_view(sides[1], ENTITIES[1:]))
    assert both_ways(spark, tmp_path_factory.mktemp("files"), question).unexcused


def test_rules_and_acceptances_excuse_what_lies_in_files(spark: SparkSession, tmp_path: Path) -> None:
    """A topic that is being deleted, and a difference that a person has accepted."""
    cluster = healthy_cluster(topics=5, partitions=4)
    theirs = [row for row in healthy_cluster(topics=5, partitions=4).partitions if row.topic != "t1"]
    theirs[0].leader_epoch += 1
    zookeeper = replace(zookeeper_view(cluster.partitions), pending=PendingWork(deletions=("t1",)))
    report = both_ways(spark, tmp_path / "a", Question(zookeeper, kraft_view(theirs)))
    (row,) = report.unexcused
    assert report.counts["partition"] == {"DIFFERS": 1, "EQUAL": 16 * 8 - 1, "EXPECTED": 4}
    again = Question(zookeeper, kraft_view(theirs), (acceptance(row),), lag=2)
    assert both_ways(spark, tmp_path / "b", again).unexcused == ()
