"""The verdict on a cluster and on a plan, the share of checks it rests on, and findings in a reader's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.findings import Finding, Severity, Word, blocks, decide, share
from migrate.model.plan import Plan
from migrate.model.rollback_readiness import RollbackWord
from migrate.model.stage import Stage
from migrate.report.change_summary import changes_line, changes_nothing, restarts
from migrate.report.lines import Tone
from migrate.report.wording import plural

SEVERITY_ORDER: Final = (Severity.BLOCKER, Severity.WARNING, Severity.BLIND_SPOT, Severity.INFO)
SEVERITY_WORDS: Final = {
    Severity.BLOCKER: "blocker",
    Severity.WARNING: "warning",
    Severity.BLIND_SPOT: "blind spot",
    Severity.INFO: "info",
}

TOTAL: Final = "total"  # the row of the schedule that sums up the stages
PASSED: Final = "passed with finalize: no rollback is possible any more"  # the point of no return
ANY_TIME: Final = "any time"  # the window of a stage that none binds


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """The word, and how many findings it rests on; `unseen` of them are blind spots, which are never a pass.

    With INCOMPLETE, `number` is that of the checks that can block and were not made.  `said` is another word for it.
    """

    word: Word
    number: int
    unseen: int = 0
    said: str = ""

    def __str__(self) -> str:
        if self.said:
            return self.said
        if self.word is Word.BLOCKED:  # of all blockers, those of stages that the plan reaches
            return f"{self.word} ({plural(self.number, 'blocker')})"
        if self.word is Word.INCOMPLETE:
            return f"{self.word} ({plural(self.number, 'blocking check')} not made)"
        if not self.unseen:
            return f"{self.word} ({self.number})" if self.number else str(self.word)
        seen = self.number - self.unseen
        said = ([plural(seen, "warning")] if seen else []) + [plural(self.unseen, "blind spot")]
        return f"{self.word} ({', '.join(said)})"

    @property
    def tone(self) -> Tone:
        """How it should look."""
        return {Word.BLOCKED: Tone.BAD, Word.INCOMPLETE: Tone.BAD, Word.WARNINGS: Tone.WARN}.get(self.word, Tone.GOOD)


def verdict(findings: Sequence[Finding], target: int = max(Stage)) -> PlanVerdict:
    """The verdict on a cluster that shall reach the stage `target`."""
    word = decide(findings, target)
    warnings = sum(entry.severity is Severity.WARNING for entry in findings)
    blind = sum(entry.severity is Severity.BLIND_SPOT for entry in findings)
    in_the_way = [entry for entry in findings if blocks(entry, target)]
    match word:
        case Word.BLOCKED:
            return PlanVerdict(word, sum(entry.severity is Severity.BLOCKER for entry in in_the_way))
        case Word.INCOMPLETE:
            return PlanVerdict(word, len({entry.code for entry in in_the_way}))
        case _:  # a blocker of a stage beyond the target is a warning here
            beyond = sum(entry.severity is Severity.BLOCKER for entry in findings)
            return PlanVerdict(word, warnings + beyond + blind, blind)


def judge(plan: Plan) -> PlanVerdict:
    """The verdict on a plan: of a rollback the readiness, in the words of `status`."""
    found = verdict(plan.findings, plan.target)
    if plan.summary.readiness == RollbackWord.NOT_READY:
        return PlanVerdict(Word.BLOCKED, 1, said=plan.summary.readiness)
    if found.word in (Word.BLOCKED, Word.INCOMPLETE):
        return found
    if plan.summary.problem and not plan.kind.rolls_back:
        return PlanVerdict(Word.BLOCKED, 1, said=f"{Word.BLOCKED} ({plan.summary.problem.partition(':')[0]})")
    if changes_nothing(plan):
        return PlanVerdict(Word.NO_CHANGES, 0)
    if plan.summary.readiness == RollbackWord.READY_WITH_WORK:
        return PlanVerdict(Word.WARNINGS, 1, said=plan.summary.readiness)
    looks = len(plan.summary.blind_spots)
    return PlanVerdict(Word.WARNINGS, looks, looks) if found.word is Word.READY and looks else found


def may_begin(plan: Plan) -> bool:
    """Return whether its first change may be made: no blocker, and everything that this change needs was seen.

    What a later stage needs may become visible on the way: its steps ask again before they act.
    """
    first = next((step.stage for step in plan.steps if step.stage >= Stage.PREPARE), plan.target)
    return (
        decide(plan.findings, plan.target) is not Word.BLOCKED and decide(plan.findings, first) is not Word.INCOMPLETE
    )


def head(plan: Plan) -> list[tuple[str, str]]:
    """What a reader asks first, but for the next command: one line a question."""
    total = next((row for row in plan.summary.schedule if row["stage"] == TOTAL), None)
    made = share(plan.summary.checks, plan.findings) if plan.summary.checks else None  # a rollback's steps ask anew
    windows = {row["window"]: None for row in plan.summary.schedule if row["stage"] != TOTAL}
    bound = "" if [*windows] == [ANY_TIME] else f" ({', '.join(windows)})"
    took = f"p50 {total['p50']}, p90 {total['p90']}; ends {total['ends']}" if total else ""
    return [
        *([("Problem", plan.summary.problem)] if plan.summary.problem else []),
        ("Verdict", f"{judge(plan)}{f'; {made}' if made else ''}"),
        *[("Rollback", reason) for reason in plan.summary.reasons],
        ("Detected", plan.summary.detected),
        ("Target", plan.words.target),
        ("Changes", changes_line(plan)),
        ("Cluster", _cluster(plan)),
        ("Restarts", _restarts(plan)),
        ("Time", f"{took}; {plan.summary.fit}{bound}" if total else "not computed"),
        ("No return", no_return(plan)),
    ]


def _cluster(plan: Plan) -> str:
    brokers = len({row["broker"] for row in plan.summary.disks if "broker" in row})
    counted = [plural(brokers, "broker")] if brokers else []
    counted += [f"{number:,} {kind}" for kind, number in plan.summary.inventory.items()]
    return ", ".join(counted) or "not counted"


def _restarts(plan: Plan) -> str:
    found = [step.stage.label for step, _ in restarts(plan)]
    stages = ", ".join(f"{stage} {found.count(stage)}" for stage in dict.fromkeys(found))
    return f"{len(found):,}: {stages}" if found else "none"


def no_return(plan: Plan) -> str:
    """Where the plan's point of no return is, in words."""
    if plan.kind.rolls_back or not (plan.kind.migrates or plan.irreversible):
        return "not in this plan"
    before = sum(step.stage.reversible for step in plan.steps)
    if before == len(plan.steps):
        if plan.target >= Stage.FINALIZE:  # every step of it is done
            return PASSED
        return "not in this plan (stage 9 finalize)"
    first = next(step for step in plan.steps if not step.stage.reversible)
    if first.stage > Stage.FINALIZE:
        return PASSED
    return f"before {first.id}, behind {before} of {plural(len(plan.steps), 'step')}: no rollback after it"


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Blockers first, then warnings, blind spots and information; within each by code and object."""
    return sorted(findings, key=lambda entry: (SEVERITY_ORDER.index(entry.severity), entry.code, entry.about))


def counts(findings: Sequence[Finding], *, zeros: bool = True) -> str:
    """`1 blocker, 2 warnings, 1 blind spot, 0 infos`."""
    number = Counter(entry.severity for entry in findings)
    told = [one for one in SEVERITY_ORDER if zeros or number[one]]
    return ", ".join(plural(number[one], SEVERITY_WORDS[one]) for one in told)


def unseen(findings: Iterable[Finding]) -> list[tuple[str, str, list[str]]]:
    """Blind spots by what could not be seen and why, with the codes of the checks that need it."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in findings:
        if entry.severity is Severity.BLIND_SPOT:
            found.setdefault((entry.about, entry.evidence), []).append(entry.code)
    return [(about, why, sorted(set(codes))) for (about, why), codes in sorted(found.items())]


def blind_spots(plan: Plan) -> list[str]:
    """All that was not seen, each once: what the look itself could not see, then what a check missed."""
    return [*told_beside_findings(plan), *_missed(plan)]


def told_beside_findings(plan: Plan) -> list[str]:
    """What the look itself could not see, but for what the findings name."""
    missed = _missed(plan)
    return [
        entry for entry in plan.summary.blind_spots if not any(line.startswith(f"{entry} (for ") for line in missed)
    ]


def _missed(plan: Plan) -> list[str]:
    return [f"{about}: {why} (for {', '.join(codes)})" for about, why, codes in unseen(plan.findings)]


def areas(findings: Sequence[Finding]) -> str:
    """How many findings each area has, by the middle of the code: `DIR 2, ZKN 1`."""
    found: dict[str, int] = {}
    for entry in findings:
        found[area_of(entry)] = found.get(area_of(entry), 0) + 1
    return ", ".join(f"{area} {number}" for area, number in sorted(found.items()))


def area_of(finding: Finding) -> str:
    """The middle of its code: `DIR` of `B-DIR-12`."""
    return finding.code.split("-")[1] if finding.code.count("-") >= 2 else finding.code
