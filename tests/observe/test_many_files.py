"""Clusters' files, read by several processes and compared by one job: each has the answer that it has alone."""

from __future__ import annotations

import os
import signal
from datetime import date
from pathlib import Path

import pytest

from migrate.diff.compare import compare
from migrate.diff.session import SparkHandle
from migrate.kraft.files import find
from migrate.model.difference import DifferenceClass, DiffReport
from migrate.model.fleet import FilePair, NotRead
from migrate.model.secrets import Digester
from migrate.observe.many_files import FilesPool, Read, read_pair
from migrate.observe.offline import open_files, read_sides
from migrate.zookeeper.offline.reader import ZookeeperFiles
from tests.bench import agreeing
from tests.cli.commands import kraft_migrate
from tests.playbook.test_fleet import written

TODAY = date(2026, 1, 1)


def a_pair(folder: Path, size: int) -> FilePair:
    """A cluster's files; some topics' leaders have moved in the metadata."""
    folder.mkdir()
    with agreeing.both_sides(folder, size):
        return FilePair((str(folder),), str(folder))


def test_what_a_process_hands_back_is_what_differs_alone(tmp_path: Path) -> None:
    """Both sides' rows of those topics, and how many agree."""
    found = read_pair(a_pair(tmp_path / "a", 5_000))
    assert isinstance(found, Read)
    assert found.found.topics == ("team-1.events-1", "team-1.events-98")
    assert {*found.zookeeper.partitions.topic} == {*found.kraft.partitions.topic} == {*found.found.topics}
    assert found.found.partitions == 5_000 - len(found.kraft.partitions)
    assert found.equal == {"topic": 100}
    assert "topic" not in {*found.zookeeper.entities.kind, *found.kraft.entities.kind}


def test_files_that_cannot_be_read_are_an_answer_of_their_cluster(tmp_path: Path) -> None:
    """With the error's own words."""
    found = read_pair(FilePair((str(tmp_path),), str(tmp_path)))
    assert isinstance(found, NotRead)
    assert found.id.startswith("E-")
    assert str(tmp_path) in found.where


def test_files_alone_are_not_assessed(tmp_path: Path) -> None:
    """And the next step is named."""
    path = written(tmp_path, "{name: a, files: {zookeeper: data, metadata: kraft}}")
    ended = kraft_migrate("fleet", "assess", path)
    assert ended.code == 64
    assert "can be compared alone" in ended.out
    assert "`fleet diff`" in ended.out


@pytest.mark.spark
def test_every_cluster_has_the_report_that_it_has_alone(tmp_path: Path, spark_handle: SparkHandle) -> None:
    """Three by two processes; one of them has no files; the whole views by Spark say the same."""
    pairs = [a_pair(tmp_path / "a", 5_000), FilePair((str(tmp_path),), str(tmp_path)), a_pair(tmp_path / "b", 120)]
    with FilesPool(spark_handle, 2) as pool:
        found = pool.compare(pairs, TODAY)
        assert pool.compare(pairs[:1], TODAY) == found[:1], "a pool that is warm says the same"
    assert isinstance(found[1], NotRead)
    for pair, report in zip(pairs, found, strict=True):
        if isinstance(report, NotRead):
            continue
        assert _rows(report) == _rows(_alone(pair, spark_handle))
        assert report.counts["partition"] == _alone(pair, spark_handle).counts["partition"]
        assert any(row.field == "leader" for row in report.unexcused)


def _alone(pair: FilePair, handle: SparkHandle) -> DiffReport:
    sides = read_sides(open_files(ZookeeperFiles(pair.zookeeper)), find(Path(pair.metadata)), Digester())
    topics = {*sides.agreement().differing, *(f"team-{n % 97}.events-{n}" for n in range(200))}
    zookeeper, kraft = sides.views(topics)
    return compare(handle.get(300), zookeeper, kraft, (), offset=kraft.offset, lag=0, today=TODAY)


def _rows(report: DiffReport) -> list[tuple[str, str, str, DifferenceClass]]:
    return [(row.kind, row.key, row.field, row.cls) for row in report.differences]


def test_a_process_that_is_killed_is_no_good_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a traceback: its clusters are not read."""
    handle = SparkHandle.__new__(SparkHandle)  # never asked: nothing was read
    with FilesPool(handle, 1) as pool:
        pool._pool.submit(os.getpid).result()
        (child,) = pool._pool._processes
        os.kill(child, signal.SIGKILL)
        (found,) = pool.compare([FilePair((str(tmp_path),), str(tmp_path))], TODAY)
    assert isinstance(found, NotRead)
    assert found.id == "E-VIEW-01"
