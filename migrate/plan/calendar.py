"""What a plan's reader wants to know of time and people: does it fit its windows, who must approve (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.windows import Window, label, local
from migrate.plan.durations import Durations
from migrate.plan.schedule import ParkAt, Schedule, half_rolled_too_long, lay_out, must_open, windows_of

UTC: Final = Window("UTC", "UTC", (), (), 0.0)
ROLLBACK: Final = "rollback"


def scheduled(plan: Plan, playbook: Playbook) -> Plan:
    """The plan with its schedule and its approvals in the summary; neither is part of the fingerprint.

    Raises WindowNeverOpens where a stage of it waits for a window that does not open any more.
    """
    stages = list(dict.fromkeys(step.stage for step in plan.steps))
    if plan.kind.rolls_back:
        window = playbook.windows.get(playbook.rollback_window)
        windows = {} if window is None else dict.fromkeys(stages, window)
    else:
        must_open(playbook, stages, plan.created)
        windows = windows_of(playbook, stages)
    found = lay_out(plan.steps, windows, Durations(playbook.pace.node_estimate), plan.created)
    summary = replace(
        plan.summary,
        fit=found.line,
        schedule=tuple(_rows(found, windows)),
        parks=tuple(_parks(found, windows, playbook)),
        approvals=tuple(_approvals(plan, playbook)),
    )
    return replace(plan, summary=summary)


def _rows(found: Schedule, windows: Mapping[Stage, Window]) -> Iterator[Mapping[str, str]]:
    shown = next(iter(windows.values()), UTC)  # one zone for all rows: an end in another one looks earlier than it is
    for row in found.stages:
        window = windows.get(row.stage)
        yield {
            "stage": row.stage.label,
            "steps": str(row.steps),
            "p50": _length(row.estimate.p50),
            "p90": _length(row.estimate.p90),
            "by": row.estimate.source,
            "window": "any time" if window is None else f"{window.name}: {label(window)}",
            "reserve": "-" if window is None else _length(window.reserve),
            "fits": row.verdict.value,
            "ends": "-" if row.ends is None else local(window or shown, row.ends),
        }


def _parks(found: Schedule, windows: Mapping[Stage, Window], playbook: Playbook) -> Iterator[str]:
    for park in found.parks:
        if park.after == 0:
            yield f"begins later, before {park.before}: {park.why}"
        else:
            yield f"parks after {park.after} steps, before {park.before}{_until(park, windows)}: {park.why}"
    too_long = half_rolled_too_long(found, playbook.pace.hybrid_max_age)
    if too_long is not None:
        yield (
            f"half rolled or hybrid before {too_long.before} for longer than hybrid_max_age allows "
            f"({_length(playbook.pace.hybrid_max_age)}): the first roll does not begin"
        )


def _until(park: ParkAt, windows: Mapping[Stage, Window]) -> str:
    window = next(iter(windows.values()), UTC)
    return "" if park.until is None else f", until {local(window, park.until)}"


def _approvals(plan: Plan, playbook: Playbook) -> Iterator[Mapping[str, str]]:
    policy = playbook.approvals
    stages = [ROLLBACK] if plan.kind.rolls_back else list(dict.fromkeys(step.stage.label for step in plan.steps))
    for stage in stages:
        rule = policy.rules.get(stage)
        if rule is not None:
            proven = [person for person in policy.reviewers(rule) if person in policy.keys]
            yield {
                "before_stage": stage,
                "needed": f"{rule.minimum} of {', '.join(rule.reviewers)}",
                "persons": ", ".join(policy.reviewers(rule)),
                "signed": "all" if policy.signed else ", ".join(proven) or "none: names are recorded, not proven",
                "valid_for": _length(rule.expires),
                "instructions": rule.instructions or "-",
            }


def _length(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 2880 else f"{minutes // 1440} d"
