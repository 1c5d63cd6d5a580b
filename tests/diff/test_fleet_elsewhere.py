"""A fleet on another Spark: executors without this package read its clusters, and one may die meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from migrate.lab.topology import free_ports
from migrate.model.stage import Stage
from migrate.observe.bundle import write_bundle
from tests.cli.commands import process
from tests.observe.test_fleet import bundle, large
from tests.playbook.test_load_fleet import written
from tests.steps.looks import whole
from tests.testing.object_store import LOGIN, object_store
from tests.testing.spark_cluster import DEADLINE, SparkCluster, connect_server, standalone

pytestmark = pytest.mark.spark
SMALL = ("--spark-conf", "spark.driver.host=127.0.0.1", "--spark-conf", "spark.executor.memory=512m")
LARGE, SIZES = 20_000, (120, 20_000, 300, 120, 600)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that is as large as all others together and more, small ones, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("fleet")
    clusters = []
    for number, size in enumerate(SIZES):
        bundle(folder, f"c{number}", large(size))
        clusters.append(f"{{name: c{number}, bundle: c{number}.bundle}}")
    (folder / "torn.bundle").write_bytes(b"torn")
    return written(folder, *clusters, "{name: torn, bundle: torn.bundle}")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our Python with all that we depend on, and without this package."""
    path = tmp_path_factory.mktemp("bare") / "python3"
    packages = next(place for place in sys.path if place.endswith("site-packages"))
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages}"\nexec {Path(sys.executable).resolve()} -S "$@"\n'
    )
    path.chmod(0o755)
    known = subprocess.run(
        [path, "-c", "import pyarrow, migrate"], capture_output=True, text=True, cwd="/", check=False
    )
    assert "No module named 'migrate'" in known.stderr
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers."""
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def here(fleet: Path) -> dict[str, Any]:
    """What this host's own session says of each cluster."""
    return compared(fleet)


def compared(fleet: Path, *words: str) -> dict[str, Any]:
    """Each cluster's answer, by its name, without the time that it took."""
    ended = process("fleet", "diff", fleet, "--output", "json", *words, seconds=900)
    assert ended.code == 2, ended.err + ended.out
    rows = json.loads(ended.out)["clusters"]
    told = sorted(line.split("] ")[1] for line in ended.err.splitlines() if line.startswith("["))
    assert told == sorted(f"{row['name']}: {row['verdict']}" for row in rows)
    return {row.pop("name"): {name: value for name, value in row.items() if name != "seconds"} for row in rows}


@pytest.mark.long
def test_executors_without_this_package_give_the_same_answer(
    fleet: Path, here: dict[str, Any], cluster: SparkCluster, bare_python: Path
) -> None:
    """It comes with the job; both workers had tasks of it."""
    words = ("--spark-master", cluster.master, *SMALL, "--spark-conf", f"spark.pyspark.python={bare_python}")
    assert compared(fleet, *words) == here
    for number in range(2):
        assert list((cluster.folder / f"worker{number}").glob("app-*/*/kraft_migrate.zip"))


@pytest.mark.long
def test_executors_read_an_object_store(
    fleet: Path, here: dict[str, Any], cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their login comes from `spark-defaults.conf`, which nobody else reads."""
    (tmp_path / "spark-defaults.conf").write_text("".join(f"spark.executorEnv.{key} {LOGIN[key]}\n" for key in LOGIN))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name, value in LOGIN.items():
        monkeypatch.setenv(name, value)  # for who puts the files there
    with object_store() as store:
        store.put(fleet.parent, "kept")
        entries = []
        for number in range(len(SIZES)):
            uri = store.uri(f"kept/c{number}.bundle")
            entries.append(f"{{name: c{number}, bundle: '{uri}'}}")
        found = compared(written(tmp_path, *entries), "--spark-master", cluster.master, *SMALL)
    for name, answer in found.items():
        assert answer["diff"]["differences"] == here[name]["diff"]["differences"]
    assert len(found) == len(SIZES)


@pytest.mark.long
def test_bundles_are_assessed_there_as_here(tmp_path: Path, cluster: SparkCluster, bare_python: Path) -> None:
    """With one that is damaged; executors have the package from the job alone."""
    write_bundle(str(tmp_path / "kept.bundle"), whole(Stage.ASSESS), 1_700_000_000)
    (tmp_path / "torn.bundle").write_bytes(b"no bundle")
    path = written(tmp_path, "{name: kept, bundle: kept.bundle}", "{name: torn, bundle: torn.bundle}")
    words = ("--spark-master", cluster.master, *SMALL, "--spark-conf", f"spark.pyspark.python={bare_python}")
    answers = []
    for more in ((), words):
        ended = process("fleet", "assess", path, "--output", "json", *more, seconds=600)
        rows = json.loads(ended.out)["clusters"]
        answers.append((ended.code, [{**row, "seconds": 0} for row in rows]))
    assert answers[0] == answers[1]
    assert [row["verdict"] for row in answers[0][1]] == ["READY WITH WARNINGS", "NOT READ"]


@pytest.mark.long
def test_a_worker_that_dies_while_it_reads_changes_nothing(
    fleet: Path, here: dict[str, Any], cluster: SparkCluster
) -> None:
    """Killed with its executor as soon as that has a task; the other one reads the whole fleet."""
    before = set(cluster.folder.glob("worker0/app-*"))
    began: list[Path] = []

    def killed() -> None:
        until = time.monotonic() + DEADLINE
        while not began and time.monotonic() < until:
            new = set(cluster.folder.glob("worker0/app-*")) - before
            began.extend(path for folder in new for path in folder.glob("*/kraft_migrate.zip"))
        cluster.kill("worker0")

    killer = Thread(target=killed)
    killer.start()
    there = compared(fleet, "--spark-master", cluster.master, *SMALL)
    killer.join()
    assert began, "the worker was killed before it had anything to do"
    assert there == here


@pytest.mark.long
def test_a_connect_server_reads_a_fleet_too(fleet: Path, here: dict[str, Any], tmp_path: Path) -> None:
    """The package goes there as an artifact."""
    with connect_server(tmp_path, free_ports(1)[0]) as url:
        assert compared(fleet, "--spark-master", url) == here
