"""Disks and replicas as a picture: a band a broker, a box a directory, filled by the states of its replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from migrate.model.words import counted, plural
from migrate.report.directory_rows import DirectoryRow
from migrate.report.figure_ledger import STATES, css_class
from migrate.report.svg import box, picture, text
from migrate.report.wording import clip, size

MOST_BROKERS: Final = 40
WIDTH: Final = 960.0
LEFT: Final = 84.0
COLUMNS: Final = 3
GAP: Final = 14.0
WIDE: Final = (WIDTH - LEFT - (COLUMNS - 1) * GAP - 2) / COLUMNS
TALL: Final = 92.0
BAR: Final = 16.0
NO_STATE: Final = "replicas"  # there is no ledger: they are counted alone


def disks_and_replicas(rows: Sequence[DirectoryRow]) -> Markup:
    """The picture; empty for no row.  Brokers with something wrong stand first where not all are drawn."""
    groups = [(broker, list(found)) for broker, found in groupby(rows, key=lambda row: row.broker)]
    if not groups:
        return Markup("")
    shown = sorted(groups, key=lambda group: all(map(_fine, group[1])))[:MOST_BROKERS] if _many(groups) else groups
    most = max((row.replicas for row in rows), default=0) or 1
    parts: list[Markup] = []
    y = 2.0
    for broker, found in shown:
        parts.append(text(0, y + 20, f"broker {broker}", "h"))
        for at, row in enumerate(found):
            line, column = divmod(at, COLUMNS)
            parts += _disk(row, (LEFT + column * (WIDE + GAP), y + line * (TALL + GAP)), most)
        y += (1 + (len(found) - 1) // COLUMNS) * (TALL + GAP) + GAP
    if len(shown) < len(groups):
        parts.append(text(0, y + 12, f"and {plural(len(groups) - len(shown), 'broker')} more, in the table", "d"))
        y += 24
    return picture(WIDTH, y, "Log directories of every broker, and the replicas in them", *parts)


def legend(rows: Sequence[DirectoryRow]) -> tuple[tuple[str, str], ...]:
    """The states that are drawn, with their classes."""
    seen = {state for row in rows for state, count in row.ledger.items() if count}
    return tuple((state, css_class(state)) for state in STATES if state in seen)


def _many(groups: Sequence[object]) -> bool:
    return len(groups) > MOST_BROKERS


def _fine(row: DirectoryRow) -> bool:
    return row.healthy and not row.would_be_stray and set(row.ledger) <= {"VERIFIED"}


def _disk(row: DirectoryRow, place: tuple[float, float], most: int) -> Iterator[Markup]:
    x, y = place
    yield box((x, y, WIDE, TALL), "disk" if row.healthy else "disk disk-bad", _tip(row), rx=7.0)
    yield text(x + 10, y + 17, clip(row.path if row.path != "?" else "not seen", 40))
    words = "metadata log" if row.metadata_log else ""
    if words:
        yield text(x + WIDE - 10, y + 17, words, "d", text_anchor="end")
    yield from _bar(row, (x + 10, y + 26, WIDE - 20), most)
    if row.path == "?" or not row.healthy:
        yield text(x + 10, y + 58, clip(row.health, 46), "final-words")
    else:
        free = f", {size(row.free_bytes)} free" if row.free_bytes >= 0 else ""
        yield text(x + 10, y + 58, f"{plural(row.replicas, 'replica')}, {size(row.bytes)}{free}", "d")
    strays = f"{plural(row.would_be_stray, 'folder')} would be renamed -stray" if row.would_be_stray else ""
    yield text(x + 10, y + 72, clip(_identity(row), 50), "d")
    if strays:
        yield text(x + 10, y + 86, strays, "final-words")


def _identity(row: DirectoryRow) -> str:
    registered = {"yes": "registered", "no": "NOT REGISTERED"}.get(row.registered, "registration not known")
    return f"{row.directory_id} {registered if row.log_dir else 'metadata.log.dir'}"


def _bar(row: DirectoryRow, place: tuple[float, float, float], most: int) -> Iterator[Markup]:
    """One bar, as long as the directory is full of replicas compared with the fullest one."""
    x, y, width = place
    yield box((x, y, width, BAR), "cut", rx=2.0)
    known = sum(row.ledger.values())
    parts = [(state, row.ledger.get(state, 0)) for state in STATES]
    parts.append((NO_STATE, max(row.replicas - known, 0)))
    top = max(most, known)
    at = x
    for state, count in parts:
        if count:
            long = width * count / top
            yield box((at, y, max(long, 1.5), BAR), "s-none" if state == NO_STATE else css_class(state))
            at += long


def _tip(row: DirectoryRow) -> str:
    states = counted(row.ledger) if row.ledger else "no ledger"
    odd = f"; {'; '.join(row.oddities)}" if row.oddities else ""
    return f"{row.path} on {row.mount or '?'}, {row.health}; meta.properties {row.meta}; {states}{odd}"
