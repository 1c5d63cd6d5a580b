"""The comparison for people and for machines: counts, then each row with its values, places, cause and fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NotRequired

from typing_extensions import TypedDict

from migrate.model.causes import cause_of
from migrate.model.difference import Difference, DifferenceClass, DiffReport, IdleAcceptance, IdleReason
from migrate.model.words import plural

SHOWN: Final = 40
LONGEST: Final = 160


DifferenceRow = TypedDict(  # a difference; with its cause and what to do where no rule excuses it
    "DifferenceRow",
    {
        "kind": str,
        "key": str,
        "field": str,
        "class": DifferenceClass,
        "zookeeper": str | None,
        "kraft": str | None,
        "zookeeper_where": str,
        "kraft_where": str,
        "rule": str,
        "cause": NotRequired[str],
        "what_to_do": NotRequired[str],
    },
)
IdleRow = TypedDict(  # an acceptance that excuses nothing
    "IdleRow",
    {"class": str, "kind": str, "key": str, "field": str, "ticket": str, "expires": str, "why": IdleReason},
)


class DiffAnswer(TypedDict):
    """What `diff` answers; `counts` is kind -> class -> number of compared fields."""

    offset: int
    lag: int
    looks: int
    counts: dict[str, dict[str, int]]
    differences: list[DifferenceRow]
    unexcused: int
    unsettled: list[DifferenceRow]
    idle_acceptances: list[IdleRow]
    blind_spots: list[str]


def diff_json(report: DiffReport) -> DiffAnswer:
    """Everything in the report."""
    return {
        "offset": report.offset,
        "lag": report.lag,
        "looks": report.looks,
        "counts": {kind: dict(classes) for kind, classes in report.counts.items()},
        "differences": [_row(entry) for entry in report.differences],
        "unexcused": report.unexcused_total,
        "unsettled": [_row(entry) for entry in report.unsettled],
        "idle_acceptances": [
            {
                "class": idle.entry.rule,
                "kind": idle.entry.kind,
                "key": idle.entry.name,
                "field": idle.entry.field,
                "ticket": idle.entry.ticket,
                "expires": idle.entry.expires,
                "why": idle.why,
            }
            for idle in report.idle
        ],
        "blind_spots": list(report.blind_spots),
    }


def diff_lines(report: DiffReport, more: str = "--output json or --parquet FOLDER") -> Iterator[str]:
    """Counts by kind and class, then the rows that nothing excuses, at most forty; `more` has the others."""
    again = f", read {report.looks} times" if report.looks > 1 else ""
    yield f"compared at metadata offset {report.offset} (dual write was {report.lag} records behind{again})"
    for kind, classes in report.counts.items():
        yield f"  {kind:<18} " + "  ".join(f"{name} {number}" for name, number in sorted(classes.items()))
    before = None
    for row in report.unexcused[:SHOWN]:
        yield from _sample(row)
        cause = cause_of(row)
        if cause is not before:
            yield f"      likely: {cause.cause}"
            yield f"      to do:  {cause.what_to_do}"
        before = cause
    if len(report.unexcused) > SHOWN:
        yield f"  and {len(report.unexcused) - SHOWN} more: see {more}"
    for row in report.unsettled:
        yield f"  unsettled: {row.kind} {row.key} {row.field} changed in every one of {report.looks} looks"
    for idle in report.idle:
        yield f"  {idle_text(idle)}"
    for spot in report.blind_spots:
        yield f"  not compared: {spot}"
    yield f"{plural(report.unexcused_total, 'difference')} outside EXPECTED"


def idle_text(idle: IdleAcceptance) -> str:
    """An acceptance without effect, in one line."""
    entry = idle.entry
    about = f"{entry.rule} {entry.kind} {entry.name} {entry.field}".rstrip()
    return f"acceptance {entry.ticket} ({about}) is {idle.why}" + (
        f" since {entry.expires}" if idle.why == "expired" else ": nothing differs there"
    )


def _sample(row: Difference) -> Iterator[str]:
    sides = f"ZooKeeper {_clipped(row.zookeeper)}, KRaft {_clipped(row.kraft)}"
    yield f"  {row.cls} {row.kind} {row.key} {row.field}: {sides}"
    if row.zookeeper_where or row.kraft_where:
        yield f"      ZooKeeper: {row.zookeeper_where}"
        yield f"      KRaft:     {row.kraft_where}"


def _clipped(value: str | None) -> str:
    return "nothing" if value is None else value if len(value) <= LONGEST else f"{value[:LONGEST]}..."


def _row(entry: Difference) -> DifferenceRow:
    row: DifferenceRow = {
        "kind": entry.kind,
        "key": entry.key,
        "field": entry.field,
        "class": entry.cls,
        "zookeeper": entry.zookeeper,
        "kraft": entry.kraft,
        "zookeeper_where": entry.zookeeper_where,
        "kraft_where": entry.kraft_where,
        "rule": entry.rule,
    }
    if not entry.rule:
        cause = cause_of(entry)
        row["cause"], row["what_to_do"] = cause.cause, cause.what_to_do
    return row
