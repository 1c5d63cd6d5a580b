"""A comparison on another Spark says what the one on this host says; a worker may die under it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from migrate.lab.topology import free_ports
from migrate.model.stage import Stage
from migrate.observe.bundle import write_bundle
from tests.cli.commands import Ended, kraft_migrate, process
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.spark_cluster import DEADLINE, SparkCluster, connect_server, standalone

SMALL = ("--spark-conf", "spark.driver.host=127.0.0.1", "--spark-conf", "spark.executor.memory=512m")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copied cluster in which ZooKeeper has one more configuration."""
    path = tmp_path_factory.mktemp("kept") / "other.bundle"
    world = worlds.with_entity(whole(Stage.COPY), "topic-config", "orders", "segment.ms", "77")
    write_bundle(str(path), world, 1_700_000_000)
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers."""
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def diff(bundle: Path, *words: str) -> Ended:
    """`diff` as JSON, in a process of its own."""
    return process("diff", "--from-bundle", bundle, "--output", "json", *words, seconds=600)


def found(ended: Ended) -> Any:
    """What it answered."""
    assert ended.code == 2, ended.err
    return json.loads(ended.out)


@pytest.mark.spark
@pytest.mark.long
def test_a_standalone_cluster_gives_the_same_answer(bundle: Path, cluster: SparkCluster) -> None:
    """Both workers had executors of it; every count and every row is that of the local session."""
    there = found(diff(bundle, "--spark-master", cluster.master, *SMALL))
    assert [row["field"] for row in there["differences"] if not row["rule"]] == ["segment.ms"]
    assert there["result"] == found(diff(bundle))["result"]
    for number in range(2):
        assert list((cluster.folder / f"worker{number}").glob("app-*/*/stderr")), f"worker {number} did nothing"


@pytest.mark.spark
@pytest.mark.long
def test_a_worker_that_dies_under_a_comparison_changes_nothing(bundle: Path, cluster: SparkCluster) -> None:
    """Killed with its executor as soon as that runs; the other one has the whole work."""
    before = set(cluster.folder.glob("worker0/app-*"))
    began: list[Path] = []

    def killed() -> None:
        until = time.monotonic() + DEADLINE
        while not began and time.monotonic() < until:
            new = set(cluster.folder.glob("worker0/app-*")) - before
            began.extend(log for folder in new for log in folder.glob("*/stderr"))
        cluster.kill("worker0")

    killer = Thread(target=killed)
    killer.start()
    there = found(diff(bundle, "--spark-master", cluster.master, *SMALL))
    killer.join()
    assert began, "the worker was killed before it had anything to do"
    assert [row["field"] for row in there["differences"] if not row["rule"]] == ["segment.ms"]


@pytest.mark.spark
@pytest.mark.long
def test_a_connect_server_gives_the_same_answer_and_goes_on(bundle: Path, tmp_path: Path) -> None:
    """A process of its own, as PySpark's package brings it; our command starts no Java, and ends its session there."""
    with connect_server(tmp_path, free_ports(1)[0]) as url:
        there = found(diff(bundle, "--spark-master", url))
        assert [row["field"] for row in there["differences"] if not row["rule"]] == ["segment.ms"]
        assert there["result"] == found(diff(bundle))["result"]
        refused = diff(bundle, "--spark-master", url, "--spark-conf", "spark.executor.memory=512m")
        assert refused.code == 1, "a setting that no session may change"
        assert "spark.executor.memory" in refused.err


@pytest.mark.spark
@pytest.mark.long
def test_a_connect_server_that_is_not_there_is_told(bundle: Path) -> None:
    """Within seconds: pyspark itself would try for ten minutes."""
    ended = diff(bundle, "--spark-master", "sc://127.0.0.1:1")
    assert ended.code == 1
    assert "did not come up at sc://127.0.0.1:1" in ended.err


@pytest.mark.spark
@pytest.mark.long  # Spark tries for a minute
def test_a_master_that_is_not_there_is_told_with_sparks_own_reason(bundle: Path) -> None:
    """Nothing is compared, and that is no difference."""
    ended = diff(bundle, "--spark-master", "spark://127.0.0.1:1")
    assert ended.code == 1
    assert "did not come up at spark://127.0.0.1:1" in ended.err
    assert "All masters are unresponsive" in ended.err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spark.authenticate.secret=x", "may be a secret"),
        ("spark.ssl.keyStorePassword=x", "may be a secret"),
        ("spark.hadoop.fs.s3a.access.key=x", "may be a secret"),
        ("driver.memory=1g", "takes spark.NAME=VALUE"),
        ("spark.master=spark://x", "give --spark-master URL"),
        ("spark.driver.memory", "takes spark.NAME=VALUE"),
    ],
)
def test_a_setting_that_may_be_secret_or_is_none_is_refused(setting: str, said: str, bundle: Path) -> None:
    """Before anything is read; its value is not repeated."""
    ended = kraft_migrate("diff", "--from-bundle", bundle, "--spark-conf", setting)
    assert ended.code == 64
    assert said in ended.err
    assert "=x" not in ended.err


@pytest.mark.parametrize(
    "master", ["sc://127.0.0.1:15002/;token=x", "sc://", "local[0]", "spark://", "mesos://h:5050", "yarn --x", ""]
)
def test_a_master_that_spark_or_we_do_not_know_is_refused(master: str, bundle: Path) -> None:
    """Before anything is read."""
    ended = kraft_migrate("diff", "--from-bundle", bundle, "--spark-master", master)
    assert ended.code == 64
    assert "spark://HOST:PORT" in ended.err
