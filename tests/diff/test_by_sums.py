"""Partitions from files: by fingerprints first and by the whole join alike, the report is the reference's."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251 - the type alone: hypothesis makes and seeds it

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrate.diff import by_sums, partition_files, topic_sums
from migrate.diff.compare import Question, compare, compare_files
from migrate.diff.partition_files import PartitionFiles, write_partitions
from migrate.model.columns import PartitionColumns
from migrate.model.difference import DiffReport
from migrate.model.views import KraftView, PendingWork, ZookeeperView
from tests.diff.test_compare import ENTITIES, PLANTS, TODAY, acceptance, shapes
from tests.testing.clusters import Partition, healthy_cluster, kraft_view, topic_id, zookeeper_view

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


def test_equal_and_empty_sides_need_no_join(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Counts come from the sums then."""
    cluster = healthy_cluster(topics=6, partitions=7)
    with caplog.at_level(logging.INFO, "migrate.diff"):
        report = both_ways(spark, tmp_path / "a", Question(cluster.zookeeper, kraft_view(cluster.partitions)))
    assert report.counts["partition"] == {"EQUAL": 6 * 7 * 8}
    assert "0 topics differ: 0 rows of theirs are compared field by field" in caplog.text
    assert "partition" not in both_ways(spark, tmp_path / "b", Question(zookeeper_view(), kraft_view())).counts
    one = both_ways(spark, tmp_path / "c", Question(zookeeper_view(cluster.partitions), kraft_view()))
    assert one.counts["partition"] == {"ONLY_ZK": 42}


def test_a_key_that_stands_twice_on_both_sides_is_not_called_equal(spark: SparkSession, tmp_path: Path) -> None:
    """Their sums agree: the numbers are not each there once, so the join sees them, and refuses."""
    twice = [Partition("t", topic_id(0), number, [0]) for number in (0, 1, 1)]
    views = zookeeper_view(twice), kraft_view(twice)
    with pytest.raises(RuntimeError, match="a key stands twice"):
        compare_files(spark, Question(*views), files_of(tmp_path, *views), today=TODAY)


def test_where_most_differ_every_row_goes_through_the_join(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By their share of the rows, and by their number; the answer is the same."""
    cluster = healthy_cluster(topics=4, partitions=5)
    theirs = healthy_cluster(topics=4, partitions=5).partitions
    for row in theirs:
        row.leader_epoch += 1
    views = cluster.zookeeper, kraft_view(theirs)
    files = files_of(tmp_path, *views)
    limits = (
        ("MOST_SHARE", 0.3, "most of the rows"),
        ("MOST_TOPICS", 2, "more than 2 topics"),
        ("MOST_ROWS", 2, "4 topics differ: 40 rows"),
    )
    for name, value, words in limits:
        with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "migrate.diff"):
            patch.setattr(by_sums, name, value)
            report = compare_files(spark, Question(*views), files, today=TODAY)
        assert report.counts["partition"] == {"DIFFERS": 20, "EQUAL": 140}
        assert words in caplog.text


def test_workers_sum_by_the_kernel(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large row groups, as files have them: what the kernel sums in a worker is what the reference says of it."""
    monkeypatch.setattr(partition_files, "ROW_GROUP", 30_000)
    cluster = healthy_cluster(topics=600, partitions=50)
    theirs = [replace(row) for row in cluster.partitions]
    theirs[12_345].isr = [0]
    views = zookeeper_view(cluster.partitions), kraft_view(theirs)
    files = files_of(tmp_path, *views, pieces=1)
    assert files[0].rows >= topic_sums.LEAST, "the kernel's"
    report = compare_files(spark, Question(*views), files, today=TODAY)
    assert shapes(report) == {("feature", "metadata.version", "level", "EXPECTED")} | {
        ("partition", f"{theirs[12_345].topic}-{theirs[12_345].partition}", "isr", "DIFFERS")
    }
    assert isinstance(by_sums._differing(spark, *files), pa.Table)
