"""Findings as plans and assessments show them: lines for a terminal, rows for a table, values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from typing_extensions import TypedDict

from migrate.model.findings import Finding, Severity, places
from migrate.model.stage import Stage
from migrate.report.lines import WIDTH, Line, Page, Tone
from migrate.report.plan_verdict import SEVERITY_WORDS, in_order, unseen
from migrate.report.wording import clip, plural

FOLDED: Final = 400  # characters of what was seen on many nodes, in text; HTML and JSON have all of it
TONES: Final = {
    Severity.BLOCKER: Tone.BAD,
    Severity.WARNING: Tone.WARN,
    Severity.BLIND_SPOT: Tone.WARN,
    Severity.INFO: Tone.PLAIN,
}


def finding_lines(findings: Sequence[Finding], width: int = WIDTH) -> tuple[Line, ...]:
    """Each finding with its evidence and fix: blockers, warnings, blind spots by what could not be seen, infos."""
    page = Page(width=width)
    ordered = in_order(findings)
    for entry in (entry for entry in ordered if entry.severity in (Severity.BLOCKER, Severity.WARNING)):
        _finding(page, entry)
    for about, why, codes in unseen(findings):
        page.add()
        page.wrap(f"{'?':<9} {about}: {clip(why, FOLDED)}", Tone.WARN, hang=10)
        page.wrap(f"so {plural(len(codes), 'check')} could not be made: {', '.join(codes)}", indent=12)
    for entry in (entry for entry in ordered if entry.severity is Severity.INFO):
        _finding(page, entry)
    return tuple(page.lines)


def _finding(page: Page, entry: Finding) -> None:
    page.add()
    page.wrap(f"{entry.code:<9} {entry.about}", TONES[entry.severity], hang=10)
    page.wrap(entry.message, indent=12)
    if where := places(entry):
        page.wrap(f"each: {clip(where, FOLDED)}", indent=12, hang=6)
    if entry.evidence:
        page.wrap(f"seen: {clip(entry.evidence, FOLDED)}", Tone.DIM, 12, 6)
    if entry.fix.strip("- "):
        page.wrap(f"fix:  {entry.fix}", indent=12, hang=6)
    if blocked := blocked_from(entry):
        page.add(blocked, TONES[entry.severity], 12)


class Counts(TypedDict):
    """Findings by severity."""

    blocker: int
    warning: int
    blind_spot: int
    info: int


class FindingRow(TypedDict):
    """All fields of a finding; `blocks_from` is null where no stage is blocked."""

    code: str
    severity: Severity
    about: str
    message: str
    evidence: str
    fix: str
    blocks_from: int | None
    objects: Sequence[str]


class FindingsBody(TypedDict):
    """What JSON says of findings."""

    counts: Counts
    findings: list[FindingRow]


def findings_body(findings: Sequence[Finding]) -> FindingsBody:
    """Counts by severity, and every finding."""
    number = Counter(entry.severity for entry in findings)
    return {
        "counts": {
            "blocker": number[Severity.BLOCKER],
            "warning": number[Severity.WARNING],
            "blind_spot": number[Severity.BLIND_SPOT],
            "info": number[Severity.INFO],
        },
        "findings": [
            {
                "code": entry.code,
                "severity": entry.severity,
                "about": entry.about,
                "message": entry.message,
                "evidence": entry.evidence,
                "fix": entry.fix,
                "blocks_from": _stage_blocked(entry),
                "objects": entry.objects,
            }
            for entry in in_order(findings)
        ],
    }


def _stage_blocked(finding: Finding) -> int | None:
    return finding.blocks_from if finding.blocks_from in set(Stage) else None


def rows(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Findings as the templates' table shows them, in the order of `finding_lines`."""
    ordered = in_order(findings)
    return [
        *(_row(entry) for entry in ordered if entry.severity in (Severity.BLOCKER, Severity.WARNING)),
        *(_unseen_row(about, why, codes) for about, why, codes in unseen(findings)),
        *(_row(entry) for entry in ordered if entry.severity is Severity.INFO),
    ]


def _unseen_row(about: str, why: str, codes: Sequence[str]) -> dict[str, str]:
    return {
        "code": "?",
        "tone": str(Tone.WARN),
        "severity": SEVERITY_WORDS[Severity.BLIND_SPOT],
        "about": about,
        "message": why,
        "each": "",
        "evidence": "",
        "fix": "",
        "blocks": f"{plural(len(codes), 'check')} could not be made: {', '.join(codes)}",
    }


def _row(entry: Finding) -> dict[str, str]:
    return {
        "code": entry.code,
        "tone": str(TONES[entry.severity]),
        "severity": SEVERITY_WORDS[entry.severity],
        "about": entry.about,
        "message": entry.message,
        "each": places(entry),
        "evidence": entry.evidence,
        "fix": entry.fix if entry.fix.strip("- ") else "",
        "blocks": blocked_from(entry),
    }


def blocked_from(finding: Finding) -> str:
    """`Blocks from stage 4 migration-mode on`, or nothing."""
    stages = [stage for stage in Stage if stage == finding.blocks_from]
    if finding.severity not in (Severity.BLOCKER, Severity.BLIND_SPOT) or not stages or not stages[0]:
        return ""
    return f"Blocks from stage {int(stages[0])} {stages[0].label} on"
