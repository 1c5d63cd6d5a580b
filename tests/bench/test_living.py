"""A cluster in a real ZooKeeper is read, assessed and compared whole, each in a process of its own."""

from __future__ import annotations

import pytest

from tests.bench import living


@pytest.mark.spark
@pytest.mark.zookeeper
def test_every_part_finds_all_partitions() -> None:
    """Small: the image that is generated says what the znodes say."""
    found = living.measure(300)
    assert [one.part for one in found] == list(living.PARTS)
    assert found[0].found == "300 partitions, 0 malformed"
    assert found[2].found.startswith("2400 fields of partitions are equal, 0 are not")
    assert all(one.seconds > 0 and one.peak > 0 for one in found)
    assert living.as_markdown(found).count("| 300 |") == len(living.PARTS)
