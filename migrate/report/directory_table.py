"""Log directories as a table of an HTML or Markdown page, and the page of its own that `directories show` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from migrate.model.words import counted, plural
from migrate.report.directory_rows import DirectoryRow
from migrate.report.figure_directories import disks_and_replicas, legend
from migrate.report.templating import render
from migrate.report.wording import size

HEAD: Final = (
    "broker",
    "directory",
    "health",
    "mounted",
    "free",
    "meta",
    "cluster id",
    "node id",
    "directory id",
    "registered",
    "replicas",
    "size",
    "metadata log",
    "replica states",
    "odd",
)


def cells(row: DirectoryRow) -> tuple[str, ...]:
    """One row of the table; what was not seen says so, and the rest is a question mark."""
    if row.path == "?":
        return (str(row.broker), "?", row.health, *("?",) * (len(HEAD) - 3))
    return (
        str(row.broker),
        row.path,
        row.health,
        f"{row.mount or '?'} ({row.filesystem or '?'})",
        size(row.free_bytes) if row.free_bytes >= 0 else "?",
        row.meta,
        row.cluster_id or "-",
        "-" if row.node_id is None else str(row.node_id),
        row.directory_id,
        row.registered,
        f"{row.replicas:,}",
        size(row.bytes),
        "here" if row.metadata_log else "-",
        counted(row.ledger) if row.ledger else "-",
        "; ".join(_odd(row)) or "-",
    )


def _odd(row: DirectoryRow) -> list[str]:
    strays = plural(row.would_be_stray or 0, "folder")
    told = [f"{strays}, {size(row.stray_bytes or 0)}, would be renamed -stray"] if row.would_be_stray else []
    others = [f"{count:,} {kind}" for kind, count in row.folders.items() if kind != "current"]
    return [*told, *others, *row.oddities]


def directories_html(rows: Sequence[DirectoryRow], cluster: str) -> str:
    """One self-contained HTML file: the picture, then the table."""
    broken = sum(not row.healthy for row in rows)
    words = plural(len(rows), "directory", "directories") + (f", {broken} not known to be healthy" if broken else "")
    return render(
        "directories.html.jinja",
        cluster=cluster,
        words=words,
        picture=disks_and_replicas(rows),
        legend=legend(rows),
        directories=(HEAD, [cells(row) for row in rows]),
    )
