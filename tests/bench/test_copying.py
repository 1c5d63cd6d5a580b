"""The race against Kafka's own copy, small: what a real controller copied is what we call equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import copying
from tests.bench.races import measured


@pytest.mark.kafka
def test_what_kafka_copied_is_equal(tmp_path: Path) -> None:
    """Its seconds are those that its log tells, not those of its start."""
    with copying.kafkas_copy(tmp_path, 150) as work:
        found = measured(work)
    assert found.answer == "equal"
    assert 0 < found.seconds < found.also


def test_kafkas_own_figures_are_read_from_its_log() -> None:
    """As Kafka 3.9 writes them (org.apache.kafka.metadata.migration.KRaftMigrationDriver)."""
    line = (
        "[KRaftMigrationDriver id=3000] Completed migration of metadata from ZooKeeper to KRaft. 10200 records were "
        "generated in 13100 ms across 50 batches. The average time spent waiting on a batch was 238.1 ms."
    )
    found = copying.DONE.search(line)
    assert found is not None
    assert tuple(map(int, found.groups())) == (10_200, 13_100, 50)
