"""Views from metadata directories with their meta.properties."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrate.errors import BatchCutError, MetadataDiverges, MetadataFileError
from migrate.kraft.fetch import MetadataReader
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.model.ids import UNASSIGNED, NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.observe.metadata_logs import MetadataRead, read_metadata
from tests.kraft.logs import DATA, captured_log
from tests.testing.clusters import uuid
from tests.testing.kraft_cluster import CLUSTER_ID, CONTROLLERS, KraftCluster, wait_for

DIGESTER = Digester(b"k" * 32)
CLUSTER = "REh233dFSJKhrlnVHSnalQ"


def controller(folder: Path, node: int, raw: bytes | None = None, cluster: str = CLUSTER) -> Path:
    """A controller's metadata directory, as Kafka keeps it."""
    part = folder / f"c{node}" / PARTITION_DIRECTORY
    part.mkdir(parents=True)
    (part / "00000000000000000000.log").write_bytes(captured_log() if raw is None else raw)
    shutil.copy(DATA / "quorum-state", part)
    shutil.copy(DATA / "bootstrap.checkpoint", part.parent)
    ids = f"node.id={node}\ncluster.id={cluster}\ndirectory.id={uuid(node)}\n"
    (part.parent / "meta.properties").write_text(f"version=1\n{ids}", encoding="utf-8")
    return part.parent


def read(*paths: Path) -> MetadataRead:
    """Read them with a fixed key for digests."""
    return read_metadata(paths, DIGESTER)


def test_three_controllers_prove_the_captured_migration(tmp_path: Path) -> None:
    """Cluster, offset, state; nothing is left out."""
    found = read(*(controller(tmp_path, node) for node in (3000, 3001, 3002)))
    assert (found.view.cluster_id, found.view.high_watermark, found.view.offset) == (CLUSTER, 2394, 2393)
    assert found.view.committed
    assert found.notes == ()
    assert found.view.migration_state.name == "POST_MIGRATION"


@pytest.mark.slow
def test_the_partition_directory_says_the_same(tmp_path: Path) -> None:
    """Its node is told by the meta.properties above it, and the same place named twice counts once."""
    homes = [controller(tmp_path, node) for node in (3000, 3001)]
    parts = [home / PARTITION_DIRECTORY for home in homes]
    assert read(*parts).view.high_watermark == 2394
    assert isinstance(read(homes[0], homes[0] / ".." / homes[0].name).view.high_watermark, Unknown)


@pytest.mark.slow
def test_a_damaged_directory_is_left_out_of_several_and_refused_alone(tmp_path: Path) -> None:
    """It counts for no majority, and the note says why."""
    good = [controller(tmp_path, node) for node in (3000, 3001)]
    cut = controller(tmp_path, 3002, captured_log()[:-5])
    found = read(cut, *good)
    assert found.view.high_watermark == 2394
    (note,) = found.notes
    assert "c3002: left out: E-BATCH-02" in note
    with pytest.raises(BatchCutError):
        read(cut)
    assert isinstance(read(good[0], cut).view.high_watermark, Unknown)


def test_two_clusters_are_refused(tmp_path: Path) -> None:
    """Never one image of two."""
    with pytest.raises(MetadataDiverges, match="different clusters"):
        read(controller(tmp_path, 3000), controller(tmp_path, 3001, cluster=CLUSTER_ID))


def test_without_an_identity_a_log_is_still_shown(tmp_path: Path) -> None:
    """An unknown cluster is "", a broken meta.properties is noted; both prove nothing."""
    bare, broken = controller(tmp_path, 3000), controller(tmp_path, 3001)
    (bare / "meta.properties").unlink()
    (broken / "meta.properties").write_bytes(b"\0\0")
    found = read(bare, broken)
    assert (found.view.cluster_id, found.view.offset, found.view.committed) == ("", 2393, False)
    assert any("is not trusted" in note for note in found.notes)
    with pytest.raises(MetadataFileError, match="no KRaft metadata"):
        read(tmp_path)


@pytest.mark.kafka
def test_real_directories_give_the_image_that_fetch_gives(kraft_cluster: KraftCluster, tmp_path: Path) -> None:
    """Three running controllers' directories, copied: a majority proves what the leader's high watermark says."""
    kraft_cluster.create_topic("from-files", 3)
    homes = [tmp_path / str(node) for node in CONTROLLERS]

    def copied() -> MetadataRead:
        for node, home in zip(CONTROLLERS, homes, strict=True):
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(
                kraft_cluster.data(NodeId(node)), home, ignore=shutil.ignore_patterns("*.part", "*.deleted")
            )
        return read(*homes)

    def whole() -> bool:
        found = copied().view
        return found.committed and "from-files" in found.entities.key

    wait_for("a committed view from files", whole)
    found = read(*homes).view
    with MetadataReader(kraft_cluster.inventory, DIGESTER) as reader:
        live = reader.view(found.offset)
    assert found.cluster_id == live.cluster_id == CLUSTER_ID
    assert found.features == live.features
    assert found.partitions.topic_id == live.partitions.topic_id
    # a broker assigns the directories of a new topic a moment after it is made: the later look may know more
    both = zip(found.partitions.directories, live.partitions.directories, strict=True)
    assert [(then, now) for then, now in both if then != now and str(UNASSIGNED) not in then] == []
    assert sorted(found.brokers) == sorted(live.brokers)
    assert any(home.rglob("*-*.checkpoint") for home in homes)
