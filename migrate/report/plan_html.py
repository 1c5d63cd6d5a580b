"""The plan's report as one self-contained HTML file."""

from __future__ import annotations

from migrate.model.plan import Plan
from migrate.report.change_summary import (
    SYMBOLS,
    by_stage,
    inventory_words,
    name_asked,
    next_command,
    parity_words,
    restarts,
    stage_words,
    summarize,
    target_words,
    znodes,
)
from migrate.report.findings_text import rows
from migrate.report.lines import columns
from migrate.report.plan_text import LATER_STAGES
from migrate.report.plan_verdict import areas, blind_spots, checks_made, counts, judge, may_begin
from migrate.report.templating import render


def plan_html(plan: Plan, path: str = "PLAN") -> str:
    """The whole report; `path` is where the plan was saved, for the next command."""
    return render(
        "plan.html.jinja",
        plan=plan,
        verdict=judge(plan),
        checks=checks_made(plan),
        may_begin=may_begin(plan),
        later_stages=LATER_STAGES,
        counts=counts(plan.findings),
        areas=areas(plan.findings),
        blind_spots=blind_spots(plan),
        rows=rows(plan.findings),
        change=summarize(plan),
        stages=by_stage(plan),
        symbols=SYMBOLS,
        znodes=znodes(plan),
        restarts=restarts(plan),
        disks=columns(plan.summary.disks),
        parity=columns(plan.summary.parity),
        parity_words=parity_words(plan),
        rollback=columns(plan.summary.rollback),
        schedule=columns(plan.summary.schedule),
        approvals=columns(plan.summary.approvals),
        command=next_command(plan, path),
        asked=name_asked(plan),
        target=target_words(plan),
        inventory_heading=inventory_words(plan),
        stage_words={stage: stage_words(plan, stage) for stage in by_stage(plan)},
    )
