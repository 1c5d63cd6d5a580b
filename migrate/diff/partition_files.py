"""Partitions as Parquet files: written piece by piece, read row group by row group; never a whole table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.diff import frames
from migrate.errors import PartitionFilesRefused
from migrate.model.columns import PartitionColumns

ROW_GROUP: Final = 131_072  # rows: what one task holds at a time, some 10 MB
FILE_ROWS: Final = 1_000_000
SCHEMA: Final = pa.schema([entry for entry in frames.PARTITIONS if entry.name not in {"cluster", "directories"}])
TEXTS: Final = ["topic", "topic_id"]  # read as dictionaries: a topic's name stands in each of its rows


@dataclass(frozen=True, slots=True)
class Split:
    """Row groups `first` to `end` (exclusive) of one file: what one task reads."""

    path: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """One side's partitions: the files of a folder, each with the columns of `SCHEMA` (others are not looked at)."""

    folder: Path
    files: tuple[str, ...]
    rows: int
    groups: tuple[int, ...]  # row groups a file

    @classmethod
    def at(cls, folder: Path) -> PartitionFiles:
        """Open the files of a folder.

        Raises:
            PartitionFilesRefused: a file is no Parquet, or lacks a column, or has another type in one.
        """
        paths = sorted(folder.absolute().glob("*.parquet"))
        rows, groups = 0, []
        for path in paths:
            try:
                found = pq.ParquetFile(path)
                types = {name: found.schema_arrow.field(name).type for name in SCHEMA.names}
                rows += found.metadata.num_rows
                groups.append(found.metadata.num_row_groups)
            except (OSError, KeyError, pa.ArrowException) as error:
                raise PartitionFilesRefused(
                    "this is no table of partitions", where=str(path), why=str(error)
                ) from error
            for name, kind in types.items():
                if not kind.equals(SCHEMA.field(name).type):
                    raise PartitionFilesRefused(f"column {name} is {kind}", where=str(path))
        return cls(folder, tuple(map(str, paths)), rows, tuple(groups))

    def splits(self, groups: int) -> list[Split]:
        """The whole in parts of at most that many row groups."""
        return [
            Split(path, first, min(first + groups, number))
            for path, number in zip(self.files, self.groups, strict=True)
            for first in range(0, number, groups)
        ]


def write_partitions(folder: Path, pieces: Iterable[PartitionColumns]) -> PartitionFiles:
    """The pieces as files in that folder, which is made; one piece is in memory at a time.

    Raises:
        PartitionFilesRefused: the folder is not empty, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise PartitionFilesRefused("there is something in that folder already", where=str(folder))
        for number, piece in enumerate(pieces):
            table = frames.partitions(piece).select(SCHEMA.names)
            pq.write_table(table, folder / f"{number:06d}.parquet", row_group_size=ROW_GROUP)
    except OSError as error:
        raise PartitionFilesRefused("the partitions cannot be written", where=str(folder), why=str(error)) from error
    return PartitionFiles.at(folder)


def batches(split: Split, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """A split's rows, a row group (of a foreign file: a part of one) at a time."""
    with pq.ParquetFile(split.path, read_dictionary=TEXTS, memory_map=False) as file:
        yield from file.iter_batches(
            ROW_GROUP,
            row_groups=range(split.first, split.end),
            columns=columns or SCHEMA.names,
            use_threads=False,
        )
