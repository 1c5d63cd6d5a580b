"""The audit of a host: every replica folder listed, measured, and its fate foretold, against `os` by hand.

Here `size` counts replica folders, over four directories of one broker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.model.columns import PartitionColumns
from migrate.model.ids import NodeId, TopicId
from migrate.model.loader import Foretold, foretell
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks
from tests.bench.races import Race, Work
from tests.testing.assigned import assigned_to
from tests.testing.this_host import disks_here

DIRECTORIES: Final = 4
PARTITIONS: Final = 50  # a topic
LOG: Final = b"x" * 100


def topic_id(topic: int) -> str:
    """Its id."""
    return str(TopicId.from_bytes((topic + 500).to_bytes(16, "big")))


@contextmanager
def a_host(folder: Path, size: int) -> Iterator[None]:
    """Directories with folders of a segment, its indexes, and partition.metadata."""
    for index in range(DIRECTORIES):
        (folder / f"d{index}").mkdir(parents=True)
    for number in range(size):
        topic, partition = divmod(number, PARTITIONS)
        place = folder / f"d{number % DIRECTORIES}" / f"topic-{topic}-{partition}"
        place.mkdir()
        (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id(topic)}\n")
        (place / f"{0:020d}.log").write_bytes(LOG)
        for name in ("index", "timeindex"):
            (place / f"{0:020d}.{name}").touch()
    yield


def paths(folder: Path) -> list[str]:
    """log.dirs."""
    return [str(folder / f"d{index}") for index in range(DIRECTORIES)]


@contextmanager
def our_audit(folder: Path, size: int) -> Iterator[Work]:
    """The reader of the host, then the loader's rule."""
    rows = PartitionColumns()
    for number in range(size):
        topic, partition = divmod(number, PARTITIONS)
        rows.topic.append(f"topic-{topic}")
        rows.topic_id.append(topic_id(topic))
        rows.partition.append(partition)
        rows.replicas.append([1])

    def audit() -> tuple[BrokerDisks, Foretold]:
        disks = disks_here().look(NodeId(1), paths(folder), None)
        assert not isinstance(disks, Unknown)
        return disks, foretell(disks, assigned_to(1, rows))

    def answer(found: tuple[BrokerDisks, Foretold]) -> str:
        disks, foretold = found
        assert not foretold.fates
        return f"{foretold.loaded} {sum(sum(entry.replicas.size) for entry in disks.directories)}"

    yield Work(audit, answer)


@contextmanager
def by_hand(folder: Path, size: int) -> Iterator[Work]:
    """What a script would do: no probe, no links, no owners, no fates."""

    def audit() -> list[tuple[str, str, int]]:
        found = []
        for path in paths(folder):
            for name in os.listdir(path):  # noqa: PTH208 - as a script has it
                inside = f"{path}/{name}"
                with open(f"{inside}/partition.metadata", encoding="utf-8") as file:  # noqa: PTH123
                    id_ = file.read().split()[-1]
                total = sum(entry.stat().st_size for entry in os.scandir(inside) if entry.name.endswith(".log"))
                found.append((name, id_, total))
        return found

    yield Work(audit, lambda found: f"{len(found)} {sum(total for _, _, total in found)}")


RACES: Final = (
    Race(
        "audit of a host",
        10_000,
        seconds=2.0,
        at_most=True,
        around=a_host,
        sides={"ours": our_audit, "peer": by_hand},
        growing=("ours",),
        note="a script with os.scandir; ours also stores a block, looks at links and owners, and foretells strays",
    ),
)
