"""Views from metadata directories with their meta.properties, and their export."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from migrate.errors import BatchCutError, ExportRefused, MetadataDiverges, MetadataFileError
from migrate.kraft.fetch import MetadataReader
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.model.ids import UNASSIGNED, NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.observe.metadata_files import MetadataRead, export_metadata, read_metadata
from tests.kraft.logs import DATA, STAGES, captured_log
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


def read(*paths: Path, at: int | None = None) -> MetadataRead:
    """Read them with a fixed key for digests."""
    return read_metadata(paths, DIGESTER, at=at)


def test_three_controllers_prove_the_captured_migration(tmp_path: Path) -> None:
    """Cluster, offset, state; nothing is left out."""
    found = read(*(controller(tmp_path, node) for node in (3000, 3001, 3002)))
    assert (found.view.cluster_id, found.view.high_watermark, found.view.offset) == (CLUSTER, 2394, 2393)
    assert found.view.committed
    assert (found.end, found.notes) == (2394, ())
    assert found.view.migration_state.name == "POST_MIGRATION"


def test_the_partition_directory_says_the_same(tmp_path: Path) -> None:
    """Its node is told by the meta.properties above it, and the same place named twice counts once."""
    homes = [controller(tmp_path, node) for node in (3000, 3001)]
    parts = [home / PARTITION_DIRECTORY for home in homes]
    assert read(*parts).view.high_watermark == 2394
    assert isinstance(read(homes[0], homes[0] / ".." / homes[0].name).view.high_watermark, Unknown)


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


def test_inside_a_transaction_the_image_stands_before_it(tmp_path: Path) -> None:
    """The copy is one transaction of some 400 records."""
    found = read(controller(tmp_path, 3000), at=400)
    assert found.view.offset < 400
    assert len(found.view.partitions) == 0
    assert any("inside a transaction" in note for note in found.notes)


def test_the_tables_of_an_export_hold_what_the_view_holds(tmp_path: Path) -> None:
    """Read back with pyarrow: counts, names of reserved directories, where the image stands."""
    size, _ = STAGES["first-broker-kraft"]
    view = read(controller(tmp_path, 3000, captured_log()[:size])).view
    folder = tmp_path / "new" / "export"
    rows = export_metadata(view, folder)
    assert {path.stem for path in folder.iterdir()} == set(rows)
    assert {name: pq.read_table(folder / f"{name}.parquet").num_rows for name in rows} == dict(rows)
    assert (rows["partitions"], rows["replicas"], rows["brokers"], rows["scram"]) == (212, 527, 3, 8)
    (head,) = pq.read_table(folder / "metadata.parquet").to_pylist()
    assert (head["offset"], head["high_watermark"], head["migration_state"]) == (view.offset, None, "MIGRATION")
    assert head["unproven"].startswith("tail unproven: 1 of 3")
    directories = pq.read_table(folder / "replicas.parquet").column("directory").to_pylist()
    assert directories.count("MIGRATING") == 350
    assert set(directories) - {"MIGRATING"} <= {entry for found in view.brokers.values() for entry in found.log_dirs}
    assert pq.read_table(folder / "partitions.parquet").column("isr").to_pylist() == view.partitions.isr
    assert all(row["value"].startswith("hmac:") for row in secrets(folder))


def secrets(folder: Path) -> list[dict[str, str]]:
    """The rows of SCRAM keys."""
    rows: list[dict[str, str]] = pq.read_table(folder / "scram.parquet").to_pylist()
    return [row for row in rows if not row["name"].endswith("iterations")]


def test_an_export_overwrites_nothing_and_is_whole_or_not_there(tmp_path: Path) -> None:
    """An empty folder may be there; one with anything in it, a file, or a broken-off export may not."""
    view = read(controller(tmp_path, 3000)).view
    folder = tmp_path / "export"
    folder.mkdir()
    export_metadata(view, folder)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ExportRefused, match="something in that place"):
        export_metadata(view, folder)
    (tmp_path / "file").touch()
    with pytest.raises(ExportRefused):
        export_metadata(view, tmp_path / "file")
    (tmp_path / "late.part").mkdir()
    with pytest.raises(ExportRefused, match="broken off"):
        export_metadata(view, tmp_path / "late")
    assert not (tmp_path / "late").exists()
    assert sorted(path.name for path in folder.iterdir()) == before


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
