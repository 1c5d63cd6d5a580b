"""The races of a large live ZooKeeper, small: every way of reading it finds the same partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import files, large_live
from tests.bench.javac import no_compiler
from tests.bench.races import measured

SIZE = 130


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server with that many partitions, for all."""
    place = tmp_path_factory.mktemp("large-live")
    with large_live.a_large_server(place, SIZE):
        yield place


def expected() -> str:
    """What is told of the cluster that was written."""
    return large_live.told(
        (topic.name, row.number, row.replicas, row.isr, row.leader, row.leader_epoch)
        for topic in files.cluster(SIZE)
        for row in topic.partitions
    )


@pytest.mark.zookeeper
def test_we_and_kazoo_find_every_partition(folder: Path) -> None:
    """Ours is the whole view."""
    (entry,) = (entry for entry in large_live.RACES if entry.name == "live read, a thousand at once")
    for side in entry.sides.values():
        with side(folder, SIZE) as work:
            assert measured(work).answer == expected()


@pytest.mark.kafka
@pytest.mark.skipif(bool(no_compiler()), reason="no javac here")
def test_zookeepers_own_client_finds_every_partition(folder: Path) -> None:
    """Its memory counts."""
    (entry,) = (entry for entry in large_live.RACES if entry.name == "live read, Java, ten at once")
    with entry.sides["peer"](folder, SIZE) as work:
        found = measured(work)
        assert (found.answer, measured(work).answer) == (expected(), expected())
        assert len(work.others) == 1
