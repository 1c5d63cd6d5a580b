"""The races of a fleet and of Spark's start run, and their sides find the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import demonstrating, fleets
from tests.bench.races import in_its_own_process, known, measured, race, small

TOPICS = ["team-1.events-1", "team-1.events-98"]
ALL_OF_ONE = sorted([*TOPICS, "team-1.events-195"])


@pytest.mark.spark
def test_ours_finds_the_planted_topics_warm(tmp_path: Path) -> None:
    """As the peer does, which is in the next test."""
    with fleets.one_cluster(tmp_path, 10_000):
        ours = in_its_own_process("every difference, offline, warm", "ours", tmp_path, 10_000)
    assert ours.answer == str([("cluster-00", ALL_OF_ONE)])


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
