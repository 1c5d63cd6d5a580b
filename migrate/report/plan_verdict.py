"""The plan's verdict: BLOCKED, READY WITH WARNINGS, READY or NO CHANGES, and its findings in a reader's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.findings import Finding, Severity
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


class Word(StrEnum):
    """The four verdicts of a plan."""

    BLOCKED = "BLOCKED"
    WARNINGS = "READY WITH WARNINGS"
    READY = "READY"
    NO_CHANGES = "NO CHANGES"


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """The word, and how many findings stand behind it; `unseen` of them are blind spots, which are never a pass."""

    word: Word
    number: int
    unseen: int = 0

    def __str__(self) -> str:
        if self.word is Word.BLOCKED:  # of all blockers, those of stages that the plan reaches
            return f"{self.word} ({self.number} in the way)"
        if not self.unseen:
            return f"{self.word} ({self.number})" if self.number else str(self.word)
        seen = self.number - self.unseen
        said = ([plural(seen, "warning")] if seen else []) + [plural(self.unseen, "blind spot")]
        return f"{self.word} ({', '.join(said)})"

    @property
    def tone(self) -> Tone:
        """How it should look."""
        return {Word.BLOCKED: Tone.BAD, Word.WARNINGS: Tone.WARN}.get(self.word, Tone.GOOD)


def blocking(plan: Plan) -> list[Finding]:
    """The findings that stand in the plan's way.

    A blocker of any stage that the plan reaches does.  What could not be seen blocks only where the very first change
    needs it: much becomes visible on the way, and each step asks again.
    """
    first = next((step.stage for step in plan.steps if step.stage >= Stage.PREPARE), plan.target)
    reach = {Severity.BLOCKER: plan.target, Severity.BLIND_SPOT: first}
    return [entry for entry in plan.findings if entry.severity in reach and entry.blocks_from <= reach[entry.severity]]


def judge(plan: Plan) -> PlanVerdict:
    """The verdict on a plan."""
    if in_the_way := blocking(plan):
        return PlanVerdict(Word.BLOCKED, len(in_the_way))
    if summarize(plan).nothing:
        return PlanVerdict(Word.NO_CHANGES, 0)
    doubts = sum(finding.severity is not Severity.INFO for finding in plan.findings)
    blind = sum(finding.severity is Severity.BLIND_SPOT for finding in plan.findings)
    if not doubts:
        doubts = blind = len(plan.summary.blind_spots)
    return PlanVerdict(Word.WARNINGS, doubts, blind) if doubts else PlanVerdict(Word.READY, 0)


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
