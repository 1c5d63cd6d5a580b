"""A real broker's restart on planted folders: each folder becomes what was foretold, none missed and none extra."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.kraft.dump import dump_lines, paths_of
from migrate.kraft.fetch import MetadataReader
from migrate.model.ids import TopicId
from migrate.model.loader import Fate, Foretold, foretell
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from tests.oracles.placement import Act, Whereabouts, act, new_placement
from tests.testing.assigned import assigned_to
from tests.testing.kafka_loader import UNIQUE, Planted, became, metadata_of
from tests.testing.kraft_cluster import BROKER, CONTROLLERS, KraftCluster, wait_for
from tests.testing.this_host import disks_here

TOPIC = "planted"
OTHER = str(TopicId.from_bytes(bytes(range(16))))


@dataclass(frozen=True, slots=True)
class Down:
    """The broker, killed, with a topic of six partitions; the metadata as the controllers have it."""

    cluster: KraftCluster
    view: KraftView

    @property
    def paths(self) -> list[Path]:
        """Its log directories."""
        return [self.cluster.data(BROKER, index) for index in range(3)]

    @property
    def topic_id(self) -> str:
        """The topic's."""
        return self.view.partitions.topic_id[self.view.partitions.topic.index(TOPIC)]

    def home(self, partition: int) -> int:
        """The directory, by its number, that holds that partition."""
        (found,) = (index for index, path in enumerate(self.paths) if (path / f"{TOPIC}-{partition}").is_dir())
        return found

    def foretold(self) -> Foretold:
        """By the readers and the rule that the product uses."""
        disks = disks_here().look(BROKER, [str(path) for path in self.paths], None)
        assert not isinstance(disks, Unknown)
        return foretell(disks, assigned_to(int(BROKER), self.view.partitions))


def unassigned(view: KraftView) -> bool:
    """Has a replica of the topic no directory yet?"""
    rows = view.partitions
    ids = {str(entry) for entry in view.brokers[BROKER].log_dirs}
    mine = [rows.directories[index] for index, topic in enumerate(rows.topic) if topic == TOPIC]
    return len(mine) != 6 or not all(entry in ids for directories in mine for entry in directories)


def in_metadata(view: KraftView, partition: int) -> str:
    """The directory that the metadata names for a partition of the topic."""
    rows = view.partitions
    keys = list(zip(rows.topic, rows.partition, strict=True))
    return rows.directories[keys.index((TOPIC, partition))][0]


@pytest.fixture
def down(kraft_cluster: KraftCluster) -> Iterator[Down]:
    """Killed, and whole again afterwards."""
    kraft_cluster.create_topic(TOPIC, 6)
    with MetadataReader(kraft_cluster.inventory, Digester()) as reader:
        wait_for("every replica's directory", lambda: not unassigned(reader.view()))
        kraft_cluster.kill(BROKER)
        found = Down(kraft_cluster, reader.view())
    try:
        yield found
    finally:
        if BROKER not in kraft_cluster.processes:
            kraft_cluster.start(BROKER)
            kraft_cluster.wait_until_ready()
        for path in found.paths:
            for folder in [*path.glob("*-stray"), *path.glob("*-delete")]:
                shutil.rmtree(folder)
            for mark in path.glob("*/mark-*"):
                mark.unlink()


def marked(paths: Sequence[Path]) -> list[Planted]:
    """Every replica folder of the broker, known again whatever becomes of it."""
    found = []
    for index, path in enumerate(paths):
        for folder in path.iterdir():
            if folder.is_dir() and not folder.name.startswith("__cluster_metadata"):
                entry = Planted(index, folder.name, None)
                (folder / entry.mark).write_bytes(b"")
                found.append(entry)
    return found


def plant(down: Down) -> None:
    """Each case once: what crashes, copies by hand and interrupted moves leave behind."""
    paths, topic_id = down.paths, down.topic_id
    (paths[down.home(0)] / f"{TOPIC}-0" / "partition.metadata").unlink()
    (paths[down.home(1)] / f"{TOPIC}-1" / "partition.metadata").write_text(metadata_of(OTHER))
    home, away = down.home(2), (down.home(2) + 1) % 3
    (paths[home] / f"{TOPIC}-2").rename(paths[away] / f"{TOPIC}-2")
    for entry in (
        Planted(home, f"{TOPIC}-2.{UNIQUE}-future", metadata_of(topic_id)),  # where the metadata says: promoted
        Planted(0, f"{TOPIC}-17", metadata_of(topic_id)),
        Planted(1, "gone-0", metadata_of(OTHER)),
        Planted(2, f"{TOPIC}-3.{UNIQUE}-future", metadata_of(OTHER)),
        Planted(0, f"{TOPIC}-4.{UNIQUE}-delete", metadata_of(topic_id)),
        Planted(1, f"{TOPIC}-4.{UNIQUE}-stray", metadata_of(topic_id)),
    ):
        entry.make(paths[entry.directory])


@pytest.mark.kafka
def test_a_restarted_broker_does_with_each_folder_what_was_foretold(down: Down) -> None:
    """First two copies of one partition, which stop it; then all other cases at once."""
    copy = down.paths[(down.home(5) + 1) % 3] / f"{TOPIC}-5"
    shutil.copytree(down.paths[down.home(5)] / f"{TOPIC}-5", copy)
    assert f"copies of {TOPIC}-5 are in" in down.foretold().refuses
    down.cluster.start(BROKER)
    process = down.cluster.processes.pop(BROKER)
    assert process.wait(timeout=60) != 0
    assert "Duplicate log directories" in (down.cluster.folder / f"{BROKER}.log").read_text()
    shutil.rmtree(copy)

    plant(down)
    missing, moved = down.home(0), (down.home(5) + 1) % 3
    (down.paths[down.home(5)] / f"{TOPIC}-5").rename(down.paths[moved] / f"{TOPIC}-5")
    folders = marked(down.paths)
    foretold = down.foretold()
    fates = {entry.path: entry.fate for entry in foretold.fates}
    assert foretold.refuses == ""
    assert sorted(fates.values()).count(Fate.STRAY) == 5
    assert set(fates.values()) == {Fate.STRAY, Fate.PROMOTED, Fate.REPLACED, Fate.DELETED, Fate.SET_ASIDE}
    down.cluster.start(BROKER)
    down.cluster.wait_until_ready()
    for entry in folders:
        expected = fates.get(f"{down.paths[entry.directory]}/{entry.folder}", "loaded")
        assert became(entry, down.paths) == expected, entry

    # the table of where a replica is and where the metadata says it is: its acts, seen
    assert (down.paths[missing] / f"{TOPIC}-0").is_dir(), "created where the metadata says"
    with MetadataReader(down.cluster.inventory, Digester()) as reader:
        wait_for("its report", lambda: in_metadata(reader.view(), 5) == down.cluster.directory_id(BROKER, moved))
    ids = [down.cluster.directory_id(BROKER, index) for index in range(3)]
    acts = [
        act(Whereabouts(ids[missing], "", "", ids)),
        act(Whereabouts(in_metadata(down.view, 5), ids[moved], "", ids)),
    ]
    assert acts == [Act.CREATE_THERE, Act.REPORT]


@pytest.mark.kafka
def test_a_new_topic_is_placed_as_the_rule_says(kraft_cluster: KraftCluster) -> None:
    """A broker of three directories: UNASSIGNED in the record, until it reports."""
    kraft_cluster.create_topic("placed", 3)
    with MetadataReader(kraft_cluster.inventory, Digester()) as reader:
        rows = reader.view().partitions
        registered = reader.view().brokers[BROKER].log_dirs
    topic_id = rows.topic_id[rows.topic.index("placed")]
    log = kraft_cluster.data(CONTROLLERS[0]) / "__cluster_metadata-0"
    lines = [line for line in dump_lines(paths_of(log), show_secrets=False) if topic_id in line]
    placed = [line for line in lines if '"PARTITION_RECORD"' in line]
    assert len(placed) >= 3
    assert all(f'"directories":["{new_placement(registered)}"]' in line for line in placed)
