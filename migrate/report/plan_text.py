"""The plan's report, as terminal text and as HTML: verdict, findings, every action, the rollback, the next command."""

from __future__ import annotations

from typing import Final

from migrate.model.findings import Word
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Action
from migrate.report import lines as page_lines
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
from migrate.report.findings_text import finding_lines, rows
from migrate.report.lines import WIDTH, Line, Page, Tone, columns
from migrate.report.plan_verdict import areas, blind_spots, checks_made, counts, judge, may_begin
from migrate.report.templating import render
from migrate.report.wording import moment, plural

LATER_STAGES: Final = (
    "its first stage may begin; a later one stops before it acts where something that it needs still cannot be seen:"
)
TONES: Final = {"+": Tone.ADD, "-": Tone.REMOVE, "!": Tone.BAD, "=": Tone.DIM}


def plan_lines(plan: Plan, path: str = "PLAN") -> tuple[Line, ...]:
    """The whole report; `path` is where the plan was saved, for the next command."""
    page = Page()
    _header(page, plan)
    _verdict(page, plan)
    _actions(page, plan)
    _znodes(page, plan)
    _tables(page, plan)
    _order(page, plan)
    _time(page, plan)
    _people(page, plan)
    _way_back(page, plan)
    _limits(page, plan)
    _next(page, plan, path)
    return tuple(page.lines)


def plan_text(plan: Plan, path: str = "PLAN") -> str:
    """The same as one plain text."""
    return page_lines.text(plan_lines(plan, path))


def _header(page: Page, plan: Plan) -> None:
    command = plan.kind.plan_command
    page.add(f"kraft-migrate {command}  {plan.cluster}  (cluster {plan.cluster_id})    plan {plan.short}", Tone.TITLE)
    facts = {
        "Detected": plan.summary.detected,
        "Target": target_words(plan),
        "Change": plan.change or "(none named)",
        "Created": f"{moment(plan.created)} by kraft-migrate {plan.tool_version}",
        "Playbook": f"{plan.playbook} (sha256 {plan.playbook_sha256[:12]})",
        "Inventory": plan.inventory,
        "Fingerprint": plan.fingerprint,
        "Content": plan.content,
    }
    for name, value in facts.items():
        page.wrap(f"{name + ':':<13}{value}", indent=0, hang=13)
    page.add("Read-only run: nothing was changed.", Tone.DIM)


def _verdict(page: Page, plan: Plan) -> None:
    verdict = judge(plan)
    page.add()
    page.add(f"{verdict}    {counts(plan.findings)}", verdict.tone, 2)
    if made := checks_made(plan):
        page.wrap(str(made), hang=2)
    if plan.findings:
        page.add(f"findings by area: {areas(plan.findings)}", Tone.DIM, 2)
    page.lines.extend(finding_lines(plan.findings))
    page.add()
    page.add(summarize(plan).line(), Tone.TITLE)


def _actions(page: Page, plan: Plan) -> None:
    crossed = False
    for stage, steps in by_stage(plan).items():
        if not stage.reversible and not crossed:
            crossed = True
            page.add()
            page.add(" point of no return: no rollback is possible from here on ".center(WIDTH, "-"), Tone.BAD)
        way_back = "" if stage.reversible else "    IRREVERSIBLE"
        page.heading(f"{stage_words(plan, stage)}    {plural(len(steps), 'step')}{way_back}")
        for step in steps:
            _step(page, step)
    if not crossed and plan.steps and plan.target < Stage.FINALIZE and not plan.kind.rolls_back:
        page.add()
        page.add(" point of no return: not in this plan (stage 9 finalize) ".center(WIDTH, "-"), Tone.DIM)


def _step(page: Page, step: PlannedStep) -> None:
    page.wrap(f"{step.title}  [{step.id}]", hang=4)
    for action in step.actions:
        _action(page, action)
    if step.proof:
        page.wrap(f"proof: {step.proof}", Tone.DIM, 6, 7)
    if step.actions and step.undo:
        page.wrap(f"< undo: {step.undo}", Tone.DIM, 6, 8)


def _action(page: Page, action: Action) -> None:
    place = f"{action.where}: " if action.where else ""
    page.wrap(f"{action.symbol} {place}{action.what}", TONES.get(action.symbol, Tone.PLAIN), 6, 2)
    for line in action.diff:
        tone = {"+": Tone.ADD, "-": Tone.REMOVE}.get(line[:1], Tone.DIM)
        page.add(line, tone, 10)


def _znodes(page: Page, plan: Plan) -> None:
    found = znodes(plan)
    page.heading("Znodes")
    if not found:
        page.add("no znode is written or deleted by a step of this plan", Tone.DIM, 2)
    for step, action in found:
        page.wrap(f"{action.symbol} {action.znode}  {action.what}  [{step.id}]", TONES.get(action.symbol, Tone.PLAIN))


def _tables(page: Page, plan: Plan) -> None:
    if plan.summary.disks:
        page.heading("Disks")
        page.table(plan.summary.disks)
    if plan.summary.parity:
        page.heading("Parity of the controllers' files with the brokers'")
        page.table(plan.summary.parity)
        page.add(parity_words(plan), Tone.DIM, 2)
    if plan.summary.inventory:
        page.heading(inventory_words(plan))
        page.table([{kind: f"{number:,}" for kind, number in plan.summary.inventory.items()}])


def _order(page: Page, plan: Plan) -> None:
    found = restarts(plan)
    if not found:
        return
    page.heading("Order of starts and restarts (one at a time, each proven before the next)")
    for at, (step, action) in enumerate(found, start=1):
        page.wrap(f"{at:>3}. {action.where}  {action.what}  [{step.stage.label}]", hang=5)


FIT_TONES: Final = {"fits": Tone.GOOD, "does not fit": Tone.BAD}


def _time(page: Page, plan: Plan) -> None:
    if not plan.summary.schedule:
        return
    page.heading(f"Time and windows, if it began when it was made: {plan.summary.fit}")
    for row in plan.summary.schedule:
        tone = FIT_TONES.get(row["fits"], Tone.WARN)
        text = f"{row['stage']:<15} p50 {row['p50']}, p90 {row['p90']} ({row['by']}); {row['fits']}, ends {row['ends']}"
        page.wrap(f"{text}; window {row['window']}, reserve {row['reserve']}", tone, hang=16)
    for entry in plan.summary.parks:
        page.wrap(f"* {entry}", Tone.WARN, hang=2)


def _people(page: Page, plan: Plan) -> None:
    if not plan.summary.approvals:
        return
    page.heading("Approvals needed (kraft-migrate approve PLAN)")
    for row in plan.summary.approvals:
        page.wrap(f"before {row['before_stage']}: {row['needed']} ({row['persons']}), valid for {row['valid_for']}")
        page.wrap(f"must be signed by: {row['signed']}; instructions: {row['instructions']}", Tone.DIM, 4)


def _way_back(page: Page, plan: Plan) -> None:
    page.heading("Cost of the rollback" if plan.kind.rolls_back else "Rollback")
    if plan.summary.rollback:
        page.table(plan.summary.rollback)
    else:
        page.add("no rollback was computed for this plan", Tone.WARN, 2)


def _limits(page: Page, plan: Plan) -> None:
    page.heading("Availability")
    for entry in plan.summary.availability:
        page.wrap(f"* {entry}", hang=2)
    if not plan.summary.availability:
        page.add("no partition has to become unavailable; none goes below min.insync.replicas by our hand", indent=2)
    page.heading("Blind spots (never counted as a pass)")
    spots = blind_spots(plan)
    for entry in spots:
        page.wrap(f"? {entry}", Tone.WARN, hang=2)
    if not spots:
        page.add("none", indent=2)


def _next(page: Page, plan: Plan, path: str) -> None:
    verdict = judge(plan)
    page.heading("Next")
    if not may_begin(plan):
        page.add("remove the blockers above, make visible what could not be seen, then plan again", Tone.BAD, 2)
        return
    if verdict.word is Word.INCOMPLETE:
        page.wrap(LATER_STAGES, Tone.WARN)
    if verdict.word is Word.NO_CHANGES:
        page.add("nothing would change; to look and prove only:", Tone.GOOD, 2)
    page.add(next_command(plan, path), indent=2)
    if verdict.word is not Word.NO_CHANGES and (asked := name_asked(plan)):
        page.wrap(asked, Tone.WARN)


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
