"""The verdict on a cluster and on a plan, the share of checks it rests on, and findings in a reader's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.findings import Finding, Severity, Share, Word, blocks, decide, share
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.report.change_summary import summarize
from migrate.report.lines import Tone
from migrate.report.wording import plural

SEVERITY_ORDER: Final = (Severity.BLOCKER, Severity.WARNING, Severity.BLIND_SPOT, Severity.INFO)
SEVERITY_WORDS: Final = {
    Severity.BLOCKER: "blocker",
    Severity.WARNING: "warning",
    Severity.BLIND_SPOT: "blind spot",
    Severity.INFO: "info",
}


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """The word, and how many findings it rests on; `unseen` of them are blind spots, which are never a pass.

    With INCOMPLETE, `number` is that of the checks that can block and were not made.
    """

    word: Word
    number: int
    unseen: int = 0

    def __str__(self) -> str:
        if self.word is Word.BLOCKED:  # of all blockers, those of stages that the plan reaches
            return f"{self.word} ({self.number} in the way)"
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
    """The verdict on a plan."""
    found = verdict(plan.findings, plan.target)
    if found.word in (Word.BLOCKED, Word.INCOMPLETE):
        return found
    if summarize(plan).nothing:
        return PlanVerdict(Word.NO_CHANGES, 0)
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


def checks_made(plan: Plan) -> Share | None:
    """The share of checks behind the plan's verdict; None for a rollback, whose steps ask for what they need."""
    return share(plan.summary.checks, plan.findings) if plan.summary.checks else None


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Blockers first, then warnings, blind spots and information; within each by code and object."""
    return sorted(findings, key=lambda entry: (SEVERITY_ORDER.index(entry.severity), entry.code, entry.about))


def counts(findings: Sequence[Finding]) -> str:
    """`1 blocker, 2 warnings, 1 blind spot, 0 infos`."""
    return ", ".join(
        plural(sum(entry.severity is severity for entry in findings), SEVERITY_WORDS[severity])
        for severity in SEVERITY_ORDER
    )


def unseen(findings: Iterable[Finding]) -> list[tuple[str, str, list[str]]]:
    """Blind spots by what could not be seen and why, with the codes of the checks that need it."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in findings:
        if entry.severity is Severity.BLIND_SPOT:
            found.setdefault((entry.about, entry.evidence), []).append(entry.code)
    return [(about, why, sorted(set(codes))) for (about, why), codes in sorted(found.items())]


def blind_spots(plan: Plan) -> list[str]:
    """All that was not seen, each once: what the look itself could not see, then what a check missed."""
    missed = [f"{about}: {why} (for {', '.join(codes)})" for about, why, codes in unseen(plan.findings)]
    told = [
        entry for entry in plan.summary.blind_spots if not any(line.startswith(f"{entry} (for ") for line in missed)
    ]
    return [*told, *missed]


def areas(findings: Sequence[Finding]) -> str:
    """How many findings each area has, by the middle of the code: `DIR 2, ZKN 1`."""
    found: dict[str, int] = {}
    for entry in findings:
        found[area_of(entry)] = found.get(area_of(entry), 0) + 1
    return ", ".join(f"{area} {number}" for area, number in sorted(found.items()))


def area_of(finding: Finding) -> str:
    """The middle of its code: `DIR` of `B-DIR-12`."""
    return finding.code.split("-")[1] if finding.code.count("-") >= 2 else finding.code
