"""The races of a fleet and of Spark's start run, and their sides find the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import demonstrating, fleets
from tests.bench.races import Side, in_its_own_process, known, measured, race, small

TOPICS = ["team-1.events-1", "team-1.events-98"]
ALL_OF_ONE = sorted([*TOPICS, "team-1.events-195"])
ANSWER = str([("cluster-00", TOPICS), ("cluster-01", TOPICS)])


@pytest.mark.kafka
@pytest.mark.parametrize("side", [fleets.bare_pool, fleets.by_text])
def test_a_fleets_peers_find_the_planted_topics(side: Side, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small clusters: a bare pool, and the text of ZooKeeper's and Kafka's tools."""
    monkeypatch.setattr(fleets, "CLUSTERS", 2)
    with fleets.clusters(tmp_path, 10_000), side(tmp_path, 10_000) as work:
        assert measured(work).answer == ANSWER


@pytest.mark.spark
def test_ours_finds_the_planted_topics_warm_and_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its peers."""
    monkeypatch.setattr(fleets, "CLUSTERS", 2)
    with fleets.clusters(tmp_path, 10_000):
        ours = in_its_own_process("fleet of files, warm, bare pool", "ours", tmp_path, 10_000)
        with fleets.our_fleet_cold(tmp_path, 10_000) as work:
            assert measured(work).answer == ours.answer == ANSWER


@pytest.mark.spark
@pytest.mark.kafka
def test_every_difference_of_one_cluster_is_found_by_spark_and_by_text(tmp_path: Path) -> None:
    """A new process with its session, and the tools' text."""
    with fleets.one_cluster(tmp_path, 10_000):
        for side in known()["every difference, offline, cold"].sides.values():
            with side(tmp_path, 10_000) as work:
                assert measured(work).answer == str([("cluster-00", ALL_OF_ONE)])


@pytest.mark.spark
@pytest.mark.parametrize("name", ["session and first job", "session behind the reading"])
def test_the_races_of_sparks_start_run(name: str) -> None:
    """Each side in a process of its own, as pyspark knows one session a process."""
    entry = replace(known()[name], once="small")
    assert race(entry, 1, small(entry)).ratio > 0


def test_the_demos_race_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching Kafka is no part of the figure."""
    monkeypatch.setattr(demonstrating, "cached_jars", lambda: None)
    assert "not in the cache" in demonstrating.RACES[0].lacks()
