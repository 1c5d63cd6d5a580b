"""A report's differences as Parquet files: for pandas, DuckDB, Spark or others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.errors import ExportRefused
from migrate.model.difference import Difference, DiffReport

TEXT: Final = pa.string()
DIFFERENCES: Final = pa.schema(
    [
        ("offset", pa.int64()),
        *((name, TEXT) for name in ("kind", "key", "field", "class", "zookeeper", "kraft", "rule")),
        *((name, TEXT) for name in ("zookeeper_where", "kraft_where")),
        ("settled", pa.bool_()),  # false: it changed in every look, and is neither equal nor different
    ]
)
COUNTS: Final = pa.schema([("offset", pa.int64()), ("kind", TEXT), ("class", TEXT), ("fields", pa.int64())])
DIFF_FILES: Final = ("differences.parquet", "counts.parquet")


def require_absent(folder: Path) -> None:
    """Refuse a folder that has one of the files: results of two looks are never mixed.  Raises ExportRefused."""
    for path in (folder / name for name in DIFF_FILES):
        if path.exists() or path.is_symlink():
            raise ExportRefused("a file exists there already", where=str(path), next_step="name another folder")


def write(report: DiffReport, folder: Path) -> list[Path]:
    """`differences.parquet` and `counts.parquet` in that folder, made where it is missing.

    Raises:
        ExportRefused: something stands there already, or it cannot be written.
    """
    rows = [_row(report.offset, row, settled=True) for row in report.differences]
    rows += [_row(report.offset, row, settled=False) for row in report.unsettled]
    counts = [
        {"offset": report.offset, "kind": kind, "class": name, "fields": number}
        for kind, classes in report.counts.items()
        for name, number in classes.items()
    ]
    tables = pa.Table.from_pylist(rows, schema=DIFFERENCES), pa.Table.from_pylist(counts, schema=COUNTS)
    paths = [folder / name for name in DIFF_FILES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        require_absent(folder)
        for path, table in zip(paths, tables, strict=True):
            pq.write_table(table, path)
    except OSError as error:
        raise ExportRefused("the results cannot be written", where=str(folder), why=str(error)) from error
    return paths


def _row(offset: int, row: Difference, *, settled: bool) -> dict[str, object]:
    return {
        "offset": offset,
        "kind": row.kind,
        "key": row.key,
        "field": row.field,
        "class": str(row.cls),
        "zookeeper": row.zookeeper,
        "kraft": row.kraft,
        "rule": row.rule,
        "zookeeper_where": row.zookeeper_where,
        "kraft_where": row.kraft_where,
        "settled": settled,
    }
