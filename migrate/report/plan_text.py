"""The plan's report, as terminal text and as HTML: verdict, findings, every action, the rollback, the next command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from migrate import checks
from migrate.model.findings import Severity, Word
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Action
from migrate.report import lines as page_lines
from migrate.report.change_summary import (
    SYMBOLS,
    by_stage,
    disks_by_state,
    disparate,
    inventory_words,
    name_asked,
    next_command,
    parity_words,
    restarts,
    rollback_by_procedure,
    rollback_words,
    sources,
    stage_words,
    znode_values,
    znodes,
)
from migrate.report.equal_changes import EqualSteps, changed_lines, differing_keys, equal_actions, equal_steps, spread
from migrate.report.findings_text import INSTRUCT, finding_lines, told
from migrate.report.lines import WIDTH, Line, Page, Tone, columns
from migrate.report.markup import render
from migrate.report.plan_verdict import areas, blind_spots, counts, head, judge, may_begin, told_beside_findings
from migrate.report.wording import plural

LATER_STAGES: Final = (
    "its first stage may begin; a later one stops before it acts where something that it needs still cannot be seen"
)
BLOCKED: Final = "remove the blockers, make visible what could not be seen, then plan again"
NOTHING_LEFT: Final = "nothing: everything up to this plan's target is done"
READ: Final = "read this plan: the command that applies it is at its end"
URGENT: Final = ("Verdict", "Rollback", "Detected", "Target")  # of the head, while a problem stands
LAST: Final = ("Verdict", "Changes", "Time", "No return")  # of the head, once more beside the command at the end
TONES: Final = {"+": Tone.ADD, "-": Tone.REMOVE, "!": Tone.BAD, "=": Tone.DIM}


def plan_lines(plan: Plan, path: str = "PLAN", width: int = WIDTH, *, full: bool = False) -> tuple[Line, ...]:
    """The report, with equal changes and information folded unless `full`; `path` is where the plan was saved."""
    page = Page(width=width)
    command = plan.kind.plan_command
    if plan.summary.problem:
        page.wrap(plan.summary.problem, Tone.BAD, 0, 13)
    change = f"    change {plan.change}" if plan.change else ""
    page.add(
        f"kraft-migrate {command}  {plan.cluster}  (cluster {plan.cluster_id})    plan {plan.short}{change}", Tone.TITLE
    )
    urgent = bool(plan.summary.problem) and not full and not may_begin(plan)  # what to do now, and nothing else
    _head(page, plan, URGENT if urgent else ())
    _next(page, plan, path, end=False)
    page.add("Read-only run: nothing was changed.", Tone.DIM)
    _findings(page, plan, full=full)
    if not full and not may_begin(plan):  # what is in the way, and nothing else
        page.add()
        page.add(f"Its steps, its times and the rollback: {text_of(path)}, or --full", Tone.DIM)
        return tuple(page.lines)
    if not full and not plan.steps:
        return tuple(page.lines)
    _actions(page, plan, full=full)
    if full:
        _znodes(page, plan)
    _tables(page, plan, full=full)
    if full:
        _order(page, plan)
    _time(page, plan, full=full)
    _rollback(page, plan, full=full)
    _limits(page, plan, full=full)
    _sources(page, plan, full=full)
    page.heading("Summary")
    _head(page, plan, LAST)
    _next(page, plan, path, end=True)
    return tuple(page.lines)


def plan_text(plan: Plan, path: str = "PLAN") -> str:
    """The whole report as one plain text, nothing folded."""
    return page_lines.text(plan_lines(plan, path, full=True))


def text_of(path: str) -> str:
    """The whole report beside a saved plan: `runs/3f2a9c01/plan.txt`."""
    return f"{path.removesuffix('.json')}.txt" if path.endswith(".json") else path


def _head(page: Page, plan: Plan, names: Collection[str] = ()) -> None:
    """What a reader asks first; only the lines of `names`, if there are any."""
    for name, value in head(plan):
        if name == "Problem" or (names and name not in names):  # the first line has that
            continue
        tone = judge(plan).tone if name == "Verdict" else Tone.PLAIN
        page.wrap(f"{name + ':':<13}{value}", tone, indent=0, hang=13)


def _findings(page: Page, plan: Plan, *, full: bool) -> None:
    hidden = [Severity.INFO] if may_begin(plan) else [Severity.INFO, Severity.WARNING]
    infos = [entry for entry in plan.findings if entry.severity in hidden]
    page.heading(f"Findings: {counts(plan.findings)}")
    if plan.findings and full:
        page.add(f"findings by area: {areas(plan.findings)}", Tone.DIM, 2)
    page.lines.extend(
        finding_lines(
            plan.findings if full else [entry for entry in plan.findings if entry not in infos], page.width, full=full
        )
    )
    if infos and not full and plan.summary.problem and not may_begin(plan):
        page.wrap(f"{counts(infos, zeros=False)}  (all: --full)", Tone.DIM)
    elif infos and not full:
        codes = ", ".join(
            f"{code} ({checks.CODES[code].title})" if code in INSTRUCT else code
            for code in sorted({entry.code for entry in infos})
        )
        page.wrap(f"{counts(infos, zeros=False)}: {codes}  (all: --full)", Tone.DIM)


def _actions(page: Page, plan: Plan, *, full: bool) -> None:
    crossed, times = False, () if full else plan.summary.schedule
    first = plan.steps[0].stage if plan.steps else None
    for stage, steps in by_stage(plan).items():
        if not stage.reversible and not crossed:
            crossed = True
            page.add()
            page.add(" point of no return: no rollback is possible from here on ".center(page.width, "-"), Tone.BAD)
        rollback = "" if stage.reversible else "    IRREVERSIBLE"
        if not full and len(steps) == 1 and not steps[0].actions:  # a look is a line
            page.wrap(f"{stage_words(plan, stage)}    {steps[0].title}{rollback}", Tone.TITLE, 0, 4)
            continue
        if full or stage is first or "point of no return" in page.lines[-1].text:
            page.add()
        took = "".join(f"    p50 {row['p50']}, p90 {row['p90']}" for row in times if row["stage"] == stage.label)
        page.add(f"{stage_words(plan, stage)}    {plural(len(steps), 'step')}{took}{rollback}", Tone.TITLE)
        if full:
            for step in steps:
                _step(page, step, full=True)
        else:
            _classes(page, equal_steps(steps))
    if not crossed and plan.steps and plan.target < Stage.FINALIZE and not plan.kind.rolls_back:
        page.add()
        page.add(" point of no return: not in this plan (stage 9 finalize) ".center(page.width, "-"), Tone.DIM)


def _classes(page: Page, found: Sequence[EqualSteps]) -> None:
    for entry in found:
        if entry.like:
            page.wrap(f"{entry.first.title}  [{_short(entry.first, entry.first.id)}]", hang=4)
            like = _short(entry.first, entry.like)
            page.wrap(f"= the same as [{like}]{_but(entry.first_but)}", Tone.DIM, 6, 2)
        else:
            _step(page, entry.first, full=False)
        if entry.others:
            number = plural(len(entry.others), "step")
            ids = _short(entry.first, entry.ids)
            order = ", in this order" if len(entry.others) > 1 else ""
            page.wrap(f"= then {number} the same{_but(entry.but)}{order}: [{ids}]", Tone.DIM, 6, 2)


def _short(step: PlannedStep, ids: str) -> str:
    """Ids under the heading of their stage, without its name where they say more than a number."""
    return re.sub(rf"{re.escape(step.stage.label)}/(?=[a-z])", "", ids)


def _but(keys: Sequence[str]) -> str:
    return f" but for {', '.join(keys)}" if keys else ""


def _step(page: Page, step: PlannedStep, *, full: bool) -> None:
    page.wrap(f"{step.title}  [{step.id if full else _short(step, step.id)}]", hang=4)
    for said in step.requires if full else ():
        page.wrap(f"requires: {said}", Tone.DIM, 6, 10)
    for group in [[action] for action in step.actions] if full else equal_actions(step.actions):
        _action(page, group, full=full)
    if full and step.proof:
        page.wrap(f"proof: {step.proof}", Tone.DIM, 6, 7)
    if full and step.actions and step.undo:
        page.wrap(f"< undo: {step.undo}", Tone.DIM, 6, 8)


def _action(page: Page, group: Sequence[Action], *, full: bool) -> None:
    action = group[0]
    where = spread([one.where for one in group])
    place = f"{where}: " if where else ""
    znode = f" ({action.znode})" if action.znode and action.znode not in action.what else ""
    text = f"{action.symbol} {place}{spread([one.what for one in group])}{znode}"
    page.wrap(text, TONES.get(action.symbol, Tone.PLAIN), 6, 2)
    for line in action.diff if full else changed_lines(action.diff):
        tone = {"+": Tone.ADD, "-": Tone.REMOVE}.get(line[:1], Tone.DIM)
        page.add(line, tone, 10)
    if but := sorted({key for other in group[1:] for key in differing_keys(action, other)}):
        page.wrap(f"the others differ in {', '.join(but)}", Tone.DIM, 10)


def _znodes(page: Page, plan: Plan) -> None:
    found = znodes(plan)
    page.heading("Znodes, with version and value as they were read for this plan")
    if not found:
        page.add("no znode is written or deleted by a step of this plan", Tone.DIM, 2)
    for step, action in found:
        page.wrap(f"{action.symbol} {action.znode}  {action.what}  [{step.id}]", TONES.get(action.symbol, Tone.PLAIN))
        values = znode_values(action)
        page.wrap("version {version}; before: {before}; after: {after}".format(**values), Tone.DIM, 6, 2)


def _tables(page: Page, plan: Plan, *, full: bool) -> None:
    if plan.summary.own:
        page.heading("Nodes that the inventory reaches or works in a way of their own")
        page.table(plan.summary.own)
    if plan.summary.disks:
        page.heading("Disks")
        page.table(plan.summary.disks if full else disks_by_state(plan))
    if plan.summary.parity:
        shown = plan.summary.parity if full else disparate(plan)
        same = len(plan.summary.parity) - len(shown)
        equal = f": {plural(same, 'key')} equal" if same else ""
        page.heading(f"Parity of the controllers' files with the brokers'{equal}")
        page.table(shown)
        if full or shown:
            page.add(parity_words(plan), Tone.DIM, 2)
    if plan.summary.inventory and full:
        page.heading(inventory_words(plan))
        page.table([{kind: f"{number:,}" for kind, number in plan.summary.inventory.items()}])


def _order(page: Page, plan: Plan) -> None:
    found = restarts(plan)
    if not found:
        return
    page.heading("Order of starts and restarts (one at a time, each proven before the next)")
    for at, (step, action) in enumerate(found, start=1):
        page.wrap(f"{at:>3}. {action.where}  {action.what}  [{step.stage.label}]", hang=5)
    if plan.summary.order:
        page.heading("Why the brokers have that order, and the leaders that move")
        page.table(plan.summary.order)


AVAILABLE: Final = "Availability: no partition has to become unavailable, none goes below min.insync.replicas"
FIT_TONES: Final = {"fits": Tone.GOOD, "does not fit": Tone.BAD}


def _time(page: Page, plan: Plan, *, full: bool) -> None:
    shown = plan.summary.schedule if full else [row for row in plan.summary.schedule if not _any_time(row)]
    if not shown and not plan.summary.parks:
        return
    page.heading(f"Time and windows, if it began when it was made: {plan.summary.fit}")
    for row in shown:
        tone = FIT_TONES.get(row["fits"].partition(" after")[0], Tone.WARN)
        text = f"{row['stage']:<15} p50 {row['p50']}, p90 {row['p90']}; {row['fits']}, ends {row['ends']}"
        window = f"; window {row['window']}, reserve {row['reserve']}"
        page.wrap(f"{text}{window}", tone, hang=16)
        if full:
            limit = f"; limit: {row['limit']}" if "limit" in row else ""
            page.wrap(f"by {row['by']}{limit}", Tone.DIM, 18)
    for entry in plan.summary.parks:
        page.wrap(f"* {entry}", Tone.WARN, hang=2)


def _any_time(row: Mapping[str, str]) -> bool:
    return row["reserve"] == "-" and row["fits"] == "fits"


def _rollback(page: Page, plan: Plan, *, full: bool) -> None:
    page.heading("Cost of the rollback" if plan.kind.rolls_back else "Rollback")
    if full or plan.kind.rolls_back:
        page.table(plan.summary.rollback)
    for row in () if full or plan.kind.rolls_back else rollback_by_procedure(plan):
        page.wrap(rollback_words(row), hang=4)
    if not plan.summary.rollback:
        page.add("no rollback was computed for this plan", Tone.WARN, 2)


def _limits(page: Page, plan: Plan, *, full: bool) -> None:
    page.heading("Availability" if plan.summary.availability else AVAILABLE)
    for entry in plan.summary.availability:
        page.wrap(f"* {entry}", hang=2)
    if plan.summary.order and not full:
        moved = ", ".join(f"broker {row['broker']} {row['leaders']}" for row in plan.summary.order)
        why = "; ".join(dict.fromkeys(row["why"] for row in plan.summary.order))
        page.wrap(f"Leaders that move at restarts, in order: {moved} ({why})")
    spots = blind_spots(plan) if full else told_beside_findings(plan)
    if not (full or spots):
        return
    page.heading("Blind spots (never counted as a pass)")
    for entry in spots:
        page.wrap(f"? {entry}", Tone.WARN, hang=2)
    if not spots:
        page.add("none", indent=2)


def _sources(page: Page, plan: Plan, *, full: bool) -> None:
    page.heading("What this plan was made of")
    for name, value in sources(plan).items():
        if name in ("Inventory", "Content", "Sensitive") and not full:
            continue
        page.wrap(f"{name + ':':<13}{value}", hang=13)


def _next(page: Page, plan: Plan, path: str, *, end: bool) -> None:
    verdict, first = judge(plan), next_words(plan, end=end)
    if first:
        page.wrap(f"{'Next:':<13}{first}", Tone.PLAIN if first in (READ, NOTHING_LEFT) else Tone.BAD, 0, 13)
    if not gives_command(plan, end=end):
        return
    if verdict.word is Word.NO_CHANGES and not first:
        first = "nothing to change; to verify again:"
        page.wrap(f"{'Next:':<13}{first}", Tone.GOOD, 0, 13)
    page.add(f"{'' if first else 'Next:':<13}{next_command(plan, path)}")
    if end and not plan.needs_confirmation:
        return
    if verdict.word is Word.INCOMPLETE:
        page.wrap(LATER_STAGES, Tone.WARN, 13)
    if verdict.word is not Word.NO_CHANGES and (asked := name_asked(plan)):
        page.wrap(asked, Tone.WARN, 13)


def next_words(plan: Plan, *, end: bool) -> str:
    """What comes before the command that applies the plan, or in its place; "" for nothing.

    While a problem stands, or a rollback is not ready, that is its remedy.
    """
    if plan.summary.remedy:
        remedy = plan.summary.remedy.rstrip(".").replace("PLAYBOOK", shlex.quote(plan.playbook))
        again = f"{remedy}; then {plan.plan_again}"
        return f"{again}. Or roll back as it is:" if gives_command(plan, end=end) else again
    if not may_begin(plan):
        return BLOCKED
    if not plan.steps:
        return NOTHING_LEFT
    return READ if plan.needs_confirmation and not end else ""


def gives_command(plan: Plan, *, end: bool) -> bool:
    """Does the command that applies the plan stand there?  With a confirmation it stands once, at the end."""
    if not plan.steps or not may_begin(plan) or (judge(plan).said and judge(plan).word is Word.BLOCKED):
        return False
    return end or not plan.needs_confirmation


def _head_of_page(plan: Plan) -> list[tuple[str, str]]:
    """The head below the verdict, which the page has as its title."""
    found: list[tuple[str, str]] = []
    for name, value in head(plan):
        made = value.partition("; ")[2] if name == "Verdict" else value
        found += [("Checks" if name == "Verdict" else name, made)] if made else []
    return found


def plan_html(plan: Plan, path: str = "PLAN") -> str:
    """The whole report; `path` is where the plan was saved, for the next command."""
    return render(
        "plan.html.jinja",
        plan=plan,
        verdict=judge(plan),
        head=_head_of_page(plan),
        last=LAST,
        stopped=not may_begin(plan) or judge(plan).word is Word.BLOCKED,  # then what is in the way comes first
        sources=sources(plan),
        before=(next_words(plan, end=False), next_words(plan, end=True)),
        gives=(gives_command(plan, end=False), gives_command(plan, end=True)),
        later_stages=LATER_STAGES,
        counts=counts(plan.findings),
        areas=areas(plan.findings),
        blind_spots=blind_spots(plan),
        rows=told(plan.findings),
        stages=by_stage(plan),
        equal={stage: equal_steps(steps) for stage, steps in by_stage(plan).items()},
        symbols=SYMBOLS,
        znodes=[(step, action, znode_values(action)) for step, action in znodes(plan)],
        restarts=restarts(plan),
        disks=columns(plan.summary.disks),
        parity=columns(plan.summary.parity),
        parity_words=parity_words(plan),
        rollback=columns(plan.summary.rollback),
        schedule=columns({name: row[name] for name in row if name != "limit"} for row in plan.summary.schedule),
        limits=list(dict.fromkeys(row["limit"] for row in plan.summary.schedule if "limit" in row)),
        own=columns(plan.summary.own),
        order=columns(plan.summary.order),
        command=next_command(plan, path),
        asked=name_asked(plan),
        inventory_heading=inventory_words(plan),
        stage_words={stage: stage_words(plan, stage) for stage in by_stage(plan)},
    )
