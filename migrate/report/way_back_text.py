"""Rollback readiness for people and machines: the same answer as plain values and in lines (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import RollbackReadiness
from migrate.report.wording import duration, plural, printable


def as_values(found: RollbackReadiness) -> dict[str, Any]:
    """Plain values: readiness, gone, from, procedure, reasons, cost."""
    gap = found.cost.gap_seconds
    return {
        "readiness": found.word.value,
        "gone": found.gone,
        "from": found.origin,
        "procedure": found.procedure,
        "reasons": [
            {
                "weight": reason.weight.value,
                "name": reason.name,
                "about": reason.about,
                "what": reason.what,
                "next_step": reason.next_step,
            }
            for reason in found.reasons
        ],
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


def lines(values: Mapping[str, Any]) -> Iterator[str]:
    """The plain values for a person; the first line is the word."""
    yield printable(f"{values['readiness']}, from: {values['from']}")
    yield printable(values["procedure"])
    cost = values["cost"]
    if cost["restarts"] or cost["gap_seconds"] != 0:
        yield f"{cost_text(cost)} [{cost['basis']}]"
    for reason in values["reasons"]:
        yield printable(f"{reason['weight']}: {reason['about']}: {reason['what']}")
        if reason["next_step"]:
            yield printable(f"  do: {reason['next_step']}")
