"""What `status` says of a wait and of the rollback: the same answers as plain values and in lines (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from migrate.model.findings import Explanation
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import RollbackReadiness
from migrate.report.wording import duration, plural, printable

INDENT: Final = " " * 9
SAID: Final = {"bar": "blocked by", "work": "needs"}  # a reason's weight, in words


def waiting_values(found: Iterable[Explanation]) -> list[dict[str, Any]]:
    """A row each; `cause` is null where it cannot be determined, and `unknown` says why."""
    return [
        {
            "code": entry.code,
            "waits_for": entry.waits_for,
            "driver": entry.driver,
            "nodes": list(entry.nodes),
            "owner": entry.owner,
            "cause": None if isinstance(entry.cause, Unknown) else entry.cause,
            "unknown": entry.cause.reason if isinstance(entry.cause, Unknown) else None,
            "evidence": list(entry.evidence),
            "next": entry.next_step,
            "by_itself": entry.by_itself,
        }
        for entry in found
    ]


def waiting_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The same rows for a person: what is waited for, why, what shows it, what to do."""
    for row in rows:
        yield f"waits    {row['code']} for {row['waits_for']}"
        why = f"cannot tell why, because {row['unknown']}" if row["cause"] is None else f"because {row['cause']}"
        yield INDENT + why
        for line in row["evidence"]:
            yield INDENT + f"seen: {line}"
        yield INDENT + f"owner: {row['owner']}"
        yield INDENT + f"next: {row['next']}"
        yield INDENT + f"without action: {row['by_itself']}"


def rollback_values(found: RollbackReadiness) -> dict[str, Any]:
    """Plain values: readiness, gone, from, procedure, reasons, cost."""
    gap = found.cost.gap_seconds
    return {
        "readiness": found.word.value,
        "gone": found.gone,
        "from": found.origin,
        "procedure": found.procedure,
        "reasons": [asdict(reason) for reason in found.reasons],
        "cost": {
            "rolls": found.cost.rolls,
            "restarts": found.cost.restarts,
            "minutes": round(found.cost.minutes, 1),
            "gap_seconds": None if isinstance(gap, Unknown) else round(gap, 1),  # null: unknown
            "basis": found.cost.basis,
        },
    }


def cost_text(cost: Mapping[str, Any]) -> str:
    """One line: `2 rolls (6 restarts), about 3 min 10 s, 12 s without a controller`."""
    seconds = cost["gap_seconds"]
    gap = f"{duration(seconds)} without a controller" if seconds else "never without a controller"
    if seconds is None:
        gap = "an unknown time without a controller"
    if not cost["restarts"]:
        return f"no broker is restarted, {gap}"
    rolls = f"{plural(cost['rolls'], 'roll')} ({plural(cost['restarts'], 'restart')})"
    return f"{rolls}, about {duration(cost['minutes'] * 60)}, {gap}"


def rollback_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """The plain values for a person; the first line is the word."""
    yield printable(f"{values['readiness']}, from: {values['from']}")
    yield printable("once it is ready: " * (values["readiness"] == "NOT READY") + values["procedure"])
    cost = values["cost"]
    if cost["restarts"] or cost["gap_seconds"] != 0:
        yield f"{cost_text(cost)} [{cost['basis']}]"
    for reason in values["reasons"]:
        about = "" if reason["what"].startswith(f"{reason['about']}: ") else f"{reason['about']}: "
        yield printable(f"{SAID.get(reason['weight'], reason['weight'])}: {about}{reason['what']}")
        if reason["next_step"]:
            yield printable(f"  fix: {reason['next_step']}")
