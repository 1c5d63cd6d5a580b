"""A KRaft view, or a report's differences, as Parquet files: for pandas, DuckDB, Spark or others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.errors import ExportRefused
from migrate.model.difference import Difference, DiffReport
from migrate.model.ids import directory_name
from migrate.model.views import KraftView
from migrate.model.words import as_utf8

INT: Final = pa.int32()
LONG: Final = pa.int64()
TEXT: Final = pa.string()
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "metadata": pa.schema(
        [
            ("cluster_id", TEXT),
            ("offset", LONG),
            ("epoch", INT),
            ("high_watermark", LONG),  # null: unproven says why
            ("unproven", TEXT),
            ("migration_state", TEXT),
            ("source", TEXT),
        ]
    ),
    "brokers": pa.schema(
        [
            ("broker", INT),
            ("epoch", LONG),
            ("incarnation", TEXT),
            ("migrating", pa.bool_()),
            ("fenced", pa.bool_()),
            ("in_controlled_shutdown", pa.bool_()),
            ("rack", TEXT),
            ("endpoints", pa.list_(TEXT)),
            ("log_dirs", pa.list_(TEXT)),
        ]
    ),
    "controllers": pa.schema([("controller", INT), ("incarnation", TEXT), ("migration_ready", pa.bool_())]),
    "features": pa.schema([("feature", TEXT), ("level", INT)]),
    "partitions": pa.schema(
        [
            ("topic", TEXT),
            ("topic_id", TEXT),
            ("partition", INT),
            ("replicas", pa.list_(INT)),
            ("isr", pa.list_(INT)),
            ("adding", pa.list_(INT)),
            ("removing", pa.list_(INT)),
            ("leader", INT),
            ("leader_epoch", INT),
            ("recovery_state", INT),
            ("partition_epoch", INT),
        ]
    ),
    "replicas": pa.schema(
        [
            ("topic", TEXT),
            ("partition", INT),
            ("broker", INT),
            ("in_sync", pa.bool_()),
            ("directory", TEXT),  # an id, or MIGRATING, UNASSIGNED, LOST
        ]
    ),
}
ENTITY: Final = pa.schema([("key", TEXT), ("name", TEXT), ("value", TEXT), ("where", TEXT)])


def tables(view: KraftView) -> Iterator[tuple[str, pa.Table]]:
    """Every table of the view by name: the fixed ones, and one a kind of entity (`topic-config`, `acl`, ...)."""
    rows = view.rows()
    for name, schema in SCHEMAS.items():
        yield name, pa.Table.from_pylist(rows[name], schema=schema) if name in rows else _partition_table(view, name)
    entities = view.entities
    kinds: dict[str, dict[str, list[str]]] = {}
    for kind, *row in zip(entities.kind, entities.key, entities.name, entities.value, entities.where, strict=True):
        columns = kinds.setdefault(kind, {name: [] for name in ENTITY.names})
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    kinds.pop("broker", None)  # the table of registrations says more
    for kind in sorted(kinds):
        yield kind, pa.table(kinds[kind], schema=ENTITY)


def _partition_table(view: KraftView, name: str) -> pa.Table:
    """The table of partitions, or that of replicas: columns, never a dict a row."""
    columns = view.partitions
    schema = SCHEMAS[name]
    if name == "partitions":
        named = {"partition_epoch": columns.revision}
        values = {entry: named[entry] if entry in named else getattr(columns, entry) for entry in schema.names}
        return pa.table(values, schema=schema)
    sizes = [len(replicas) for replicas in columns.replicas]
    values = {
        "topic": [topic for topic, size in zip(columns.topic, sizes, strict=True) for _ in range(size)],
        "partition": [number for number, size in zip(columns.partition, sizes, strict=True) for _ in range(size)],
        "broker": [broker for replicas in columns.replicas for broker in replicas],
        "in_sync": [
            broker in isr for replicas, isr in zip(columns.replicas, columns.isr, strict=True) for broker in replicas
        ],
        "directory": [directory_name(entry) for listed in columns.directories for entry in listed],
    }
    return pa.table(values, schema=schema)


def export(view: KraftView, folder: Path) -> Mapping[str, int]:
    """Write each table to `<folder>/<name>.parquet`; rows by table.

    The folder appears with everything in it, or not at all; it must not exist, or be empty.  Raises ExportRefused.
    """
    partial = folder.with_name(folder.name + ".part")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ExportRefused("there is something in that place already", where=str(folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except FileExistsError as error:
        raise ExportRefused("another export is in progress, or was broken off", where=str(partial)) from error
    except OSError as error:
        raise ExportRefused(f"the folder cannot be made: {error.strerror}", where=str(folder)) from error
    counts: dict[str, int] = {}
    try:
        for name, table in tables(view):
            pq.write_table(table, partial / f"{name}.parquet")
            counts[name] = table.num_rows
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        raise ExportRefused(f"the tables cannot be written: {error}", where=str(folder)) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return counts


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
