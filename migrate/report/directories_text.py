"""Log directories for a terminal: a table a broker, what is odd below its row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from migrate.model.words import counted, plural
from migrate.report.directory_rows import DirectoryRow
from migrate.report.wording import printable, size

HEAD = (
    "directory",
    "mounted",
    "free",
    "meta",
    "node",
    "directory.id",
    "registered",
    "replicas",
    "size",
    "metadata log",
    "replica states",
)
NUMBERS = frozenset({"free", "node", "replicas", "size"})


def directories_text(rows: Sequence[DirectoryRow]) -> str:
    """Every broker's table, with a line between them."""
    return "\n\n".join("\n".join(_of_broker(broker, list(found))) for broker, found in _by_broker(rows)) or "no broker"


def _by_broker(rows: Iterable[DirectoryRow]) -> Iterator[tuple[int, Iterator[DirectoryRow]]]:
    return groupby(rows, key=lambda row: row.broker)


def _of_broker(broker: int, rows: list[DirectoryRow]) -> Iterator[str]:
    clusters = sorted({row.cluster_id for row in rows if row.cluster_id})
    yield f"broker {broker}" + (f"  cluster {' and '.join(map(printable, clusters))}" if clusters else "")
    seen = [row for row in rows if row.path != "?"]
    lines = _aligned([HEAD, *map(_cells, seen)]) if seen else []
    if lines:
        yield f"  {lines[0]}"
    for row, line in zip(seen, lines[1:], strict=True):
        yield f"  {line}"
        yield from (f"      {told}" for told in _told(row))
    yield from (f"  {printable(row.health)}" for row in rows if row.path == "?")


def _cells(row: DirectoryRow) -> tuple[str, ...]:
    return (
        row.path,
        f"{row.mount or '?'} ({row.filesystem or '?'})",
        size(row.free_bytes) if row.free_bytes >= 0 else "?",
        row.meta.partition(":")[0],
        "-" if row.node_id is None else str(row.node_id),
        row.directory_id,
        row.registered,
        f"{row.replicas:,}",
        size(row.bytes),
        "here" if row.metadata_log else "-",
        counted(row.ledger) if row.ledger else "-",
    )


def _told(row: DirectoryRow) -> Iterator[str]:
    """What a row has no column for."""
    if not row.healthy:
        yield f"NOT HEALTHY: {printable(row.health)}"
    if not row.log_dir:
        yield "the metadata directory, outside of log.dirs"
    if row.meta.startswith("broken"):
        yield f"meta.properties is {printable(row.meta)}"
    if row.would_be_stray:
        folders = plural(row.would_be_stray, "folder")
        yield f"{folders} with {size(row.stray_bytes or 0)} would be renamed -stray at a KRaft start"
    others = {kind: count for kind, count in row.folders.items() if kind != "current"}
    if others:
        yield f"other folders: {counted(others)}"
    yield from map(printable, row.oddities)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Columns of one width; numbers to the right, two blanks between."""
    shown = [[printable(cell) for cell in line] for line in table]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if name in NUMBERS else cell.ljust(width)
            for cell, width, name in zip(line, widths, HEAD, strict=True)
        ).rstrip()
        for line in shown
    ]
