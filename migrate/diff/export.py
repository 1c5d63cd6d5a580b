"""A report's differences, and what was found of a fleet, as Parquet files: for pandas, DuckDB, Spark or others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.errors import ExportRefused
from migrate.model.difference import Difference, DiffReport
from migrate.model.words import as_utf8

INT: Final = pa.int32()
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


CLUSTERS: Final = pa.schema(
    [
        *((name, TEXT) for name in ("cluster", "named_by", "where", "verdict")),
        ("seconds", pa.float64()),
        *((name, TEXT) for name in ("error", "what")),  # of one that was not read
    ]
)
FINDINGS: Final = pa.schema([(name, TEXT) for name in ("code", "severity", "about", "message", "evidence", "fix")])
REPLICAS: Final = pa.schema(  # those that are not VERIFIED
    [
        *((name, TEXT) for name in ("topic", "topic_id")),
        *((name, INT) for name in ("partition", "broker")),
        *((name, TEXT) for name in ("state", "on_disk", "in_metadata", "why")),
    ]
)
REPLICA_COUNTS: Final = pa.schema([("broker", INT), ("state", TEXT), ("replicas", pa.int64())])
OF_A_CLUSTER: Final = pa.field("cluster", TEXT)
FLEET: Final[Mapping[str, pa.Schema]] = {
    "clusters": CLUSTERS,
    "findings": FINDINGS.insert(0, OF_A_CLUSTER),
    "differences": DIFFERENCES.insert(0, OF_A_CLUSTER),
    "counts": COUNTS.insert(0, OF_A_CLUSTER),
    "replicas": REPLICAS.insert(0, OF_A_CLUSTER),
    "replica_counts": REPLICA_COUNTS.insert(0, OF_A_CLUSTER),
}
FLEET_FILES: Final = tuple(f"{name}.{kind}" for name in FLEET for kind in ("parquet", "jsonl"))
DIFF_FILES: Final = ("differences.parquet", "counts.parquet")
Row = Mapping[str, object]
Put = Callable[[Path], object]


def require_absent(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder that has one of these files: results of two looks are never mixed.  Raises ExportRefused."""
    for path in (folder / name for name in names):
        if path.exists() or path.is_symlink():
            raise ExportRefused("a file exists there already", where=str(path), next_step="name another folder")


def write(report: DiffReport, folder: Path) -> list[Path]:
    """`differences.parquet` and `counts.parquet` in that folder, made where it is missing.

    Raises:
        ExportRefused: something stands there already, or it cannot be written.
    """
    tables = rows_of(report)
    files: dict[str, Put] = {}
    for file, schema in zip(DIFF_FILES, (DIFFERENCES, COUNTS), strict=True):
        rows = tables[file.removesuffix(".parquet")]
        files[file] = partial(pq.write_table, pa.Table.from_pylist(rows, schema=schema))
    return _written(folder, files)


def write_fleet(folder: Path, tables: Mapping[str, Sequence[Row]]) -> list[Path]:
    """Each table of a fleet, of those in `FLEET`, as NAME.parquet and as NAME.jsonl, a line a row.

    Raises what `write` raises.
    """
    files: dict[str, Put] = {}
    for name, found in tables.items():
        rows = [
            {key: as_utf8(value) if isinstance(value, str) else value for key, value in row.items()} for row in found
        ]
        files[f"{name}.parquet"] = partial(pq.write_table, pa.Table.from_pylist(rows, schema=FLEET[name]))
        files[f"{name}.jsonl"] = partial(_write_lines, rows)
    return _written(folder, files)


def _write_lines(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def rows_of(report: DiffReport) -> dict[str, list[dict[str, object]]]:
    """Differences and counts of a report, as in their tables."""
    rows = [_row(report.offset, row, settled=True) for row in report.differences]
    rows += [_row(report.offset, row, settled=False) for row in report.unsettled]
    counts: list[dict[str, object]] = [
        {"offset": report.offset, "kind": kind, "class": name, "fields": number}
        for kind, classes in report.counts.items()
        for name, number in classes.items()
    ]
    return {"differences": rows, "counts": counts}


def _written(folder: Path, files: Mapping[str, Put]) -> list[Path]:
    """Write each file into the folder; none where one of them is there already."""
    paths = [folder / name for name in files]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        require_absent(folder, files)
        for path, put in zip(paths, files.values(), strict=True):
            put(path)
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
