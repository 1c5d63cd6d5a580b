"""What `status` says of a wait and of the rollback: the same answers as plain values and in lines (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import TypedDict

from migrate.model.findings import Explanation
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import Reason, RollbackReadiness
from migrate.report.wording import duration, plural, printable

INDENT: Final = " " * 9
SAID: Final = {"bar": "blocked by", "work": "needs"}  # a reason's weight, in words


class WaitingRow(TypedDict):
    """One reason why the migration does not go on.

    `cause` is null where it cannot be determined, and `unknown` says why.
    """

    code: str
    waits_for: str
    driver: str
    nodes: list[int]
    owner: str
    cause: str | None
    unknown: str | None
    evidence: list[str]
    next: str
    by_itself: str


class CostRow(TypedDict):
    """What a rollback would take; `gap_seconds` without a controller are null where they are unknown."""

    rolls: int
    restarts: int
    minutes: float
    gap_seconds: float | None
    basis: str


RollbackAnswer = TypedDict(  # is a rollback possible now; `gone`: nothing opens it again
    "RollbackAnswer",
    {
        "readiness": str,
        "gone": bool,
        "from": str,
        "procedure": str,
        "reasons": list[Reason],
        "cost": CostRow,
    },
)


def waiting_values(found: Iterable[Explanation]) -> list[WaitingRow]:
    """A row each."""
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


def waiting_lines(rows: Iterable[WaitingRow]) -> Iterator[str]:
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


def rollback_values(found: RollbackReadiness) -> RollbackAnswer:
    """The answer as values."""
    gap = found.cost.gap_seconds
    return {
        "readiness": found.word.value,
        "gone": found.gone,
        "from": found.origin,
        "procedure": found.procedure,
        "reasons": list(found.reasons),
        "cost": {
            "rolls": found.cost.rolls,
            "restarts": found.cost.restarts,
            "minutes": round(found.cost.minutes, 1),
            "gap_seconds": None if isinstance(gap, Unknown) else round(gap, 1),
            "basis": found.cost.basis,
        },
    }


def cost_text(cost: CostRow) -> str:
    """One line: `2 rolls (6 restarts), about 3 min 10 s, 12 s without a controller`."""
    seconds = cost["gap_seconds"]
    gap = f"{duration(seconds)} without a controller" if seconds else "never without a controller"
    if seconds is None:
        gap = "an unknown time without a controller"
    if not cost["restarts"]:
        return f"no broker is restarted, {gap}"
    rolls = f"{plural(cost['rolls'], 'roll')} ({plural(cost['restarts'], 'restart')})"
    return f"{rolls}, about {duration(cost['minutes'] * 60)}, {gap}"


def rollback_lines(values: RollbackAnswer) -> Iterator[str]:
    """The plain values for a person; the first line is the word."""
    yield printable(f"{values['readiness']}, from: {values['from']}")
    yield printable("once it is ready: " * (values["readiness"] == "NOT READY") + values["procedure"])
    cost = values["cost"]
    if cost["restarts"] or cost["gap_seconds"] != 0:
        yield f"{cost_text(cost)} [{cost['basis']}]"
    for reason in values["reasons"]:
        about = "" if reason.what.startswith(f"{reason.about}: ") else f"{reason.about}: "
        yield printable(f"{SAID.get(reason.weight, reason.weight)}: {about}{reason.what}")
        if reason.next_step:
            yield printable(f"  fix: {reason.next_step}")
