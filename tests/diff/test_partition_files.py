"""Files of partitions: what is written comes back, in pieces, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.diff import frames, partition_files
from migrate.diff.partition_files import SCHEMA, PartitionFiles, Split, batches, write_partitions
from migrate.errors import PartitionFilesRefused
from tests.testing.clusters import healthy_cluster


def test_what_is_written_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, row group by row group."""
    monkeypatch.setattr(partition_files, "ROW_GROUP", 4)
    pieces = [healthy_cluster(topics=count, partitions=5).kraft.partitions for count in (2, 3)]
    written = write_partitions(tmp_path / "side", iter(pieces))
    assert (written.rows, written.groups, len(written.files)) == (25, (3, 4), 2)
    assert written == PartitionFiles.at(tmp_path / "side")
    splits = written.splits(2)
    assert [(split.first, split.end) for split in splits] == [(0, 2), (2, 3), (0, 2), (2, 4)]
    rows = [row for split in splits for batch in batches(split) for row in batch.to_pylist()]
    assert rows == [row for piece in pieces for row in frames.partitions(piece).select(SCHEMA.names).to_pylist()]
    assert max(batch.num_rows for split in splits for batch in batches(split)) == 4


def test_names_come_as_dictionaries(tmp_path: Path) -> None:
    """A topic's name stands in each of its rows: it is read once a row group."""
    written = write_partitions(tmp_path, [healthy_cluster().kraft.partitions])
    (batch,) = batches(Split(written.files[0], 0, 1))
    assert pa.types.is_dictionary(batch.schema.field("topic").type)


def test_a_folder_without_files_is_an_empty_side(tmp_path: Path) -> None:
    """As a cluster without topics is."""
    assert PartitionFiles.at(tmp_path) == PartitionFiles(tmp_path, (), 0, ())


def test_further_columns_are_not_looked_at(tmp_path: Path) -> None:
    """An export has more of them."""
    table = frames.partitions(healthy_cluster().kraft.partitions)
    pq.write_table(table, tmp_path / "a.parquet")
    assert PartitionFiles.at(tmp_path).rows == table.num_rows


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"topic": ["a"]}), "no table of partitions"),
        (SCHEMA.empty_table().drop_columns(["isr"]).append_column("isr", pa.array([], pa.string())), "column isr is"),
    ],
)
def test_other_tables_are_refused(table: pa.Table, words: str, tmp_path: Path) -> None:
    """Before anything is compared."""
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(PartitionFilesRefused, match=words):
        PartitionFiles.at(tmp_path)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    """Cut files, too."""
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(PartitionFilesRefused):
        PartitionFiles.at(tmp_path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """Nor into a folder that is a file."""
    write_partitions(tmp_path / "side", [healthy_cluster().kraft.partitions])
    with pytest.raises(PartitionFilesRefused, match="something in that folder"):
        write_partitions(tmp_path / "side", [])
    (tmp_path / "file").write_text("")
    with pytest.raises(PartitionFilesRefused, match="cannot be written"):
        write_partitions(tmp_path / "file", [])
