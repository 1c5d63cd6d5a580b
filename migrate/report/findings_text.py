"""Findings as plans and assessments show them: told once for a terminal and for a page, and as values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import TypedDict

from migrate.model.findings import NAMED, Finding, Severity, behind_words, places
from migrate.model.stage import Stage
from migrate.model.world import NOT_ASKED
from migrate.report.lines import Line, Page, Tone
from migrate.report.plan_verdict import SEVERITY_WORDS, in_order, unseen
from migrate.report.wording import clip, plural

INSTRUCT: Final = frozenset({"I-OPS-13"})  # information that says what people must hold before the first change
FOLDED: Final = 400  # characters of what was seen on many nodes, in text; HTML and JSON have all of it
TONES: Final = {
    Severity.BLOCKER: Tone.BAD,
    Severity.WARNING: Tone.WARN,
    Severity.BLIND_SPOT: Tone.WARN,
    Severity.INFO: Tone.PLAIN,
}


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, or all blind spots with one reason, as a reader sees it; "" for a part that it does not have."""

    code: str
    severity: Severity
    about: str = ""
    message: str = ""
    each: str = ""
    evidence: str = ""
    fix: str = ""
    blocks: str = ""
    behind: str = ""
    facts: tuple[str, ...] = ()
    folds: bool = False  # on a page

    @property
    def tone(self) -> Tone:
        """How it should look."""
        return TONES[self.severity]

    @property
    def kind(self) -> str:
        """Its severity in words."""
        return SEVERITY_WORDS[self.severity]


def told(findings: Sequence[Finding]) -> list[Told]:
    """Blockers, warnings, blind spots by what could not be seen, information."""
    ordered = in_order(findings)
    return [
        *(_told(entry) for entry in ordered if entry.severity in (Severity.BLOCKER, Severity.WARNING)),
        *_blind(findings),
        *(_told(entry) for entry in ordered if entry.severity is Severity.INFO),
    ]


def _blind(findings: Sequence[Finding]) -> Iterator[Told]:
    """What could not be seen, by why: what rests on something else that was not seen is told with it."""
    reasons: dict[tuple[str, str], list[tuple[str, str, list[str]]]] = {}
    spots = unseen(findings)
    for spot in spots:
        about, why, _ = spot
        root = min((other for _, other, _ in spots if why.endswith(f": {other}")), key=len, default=why)
        reasons.setdefault((root, about if why == NOT_ASKED.reason else ""), []).append(spot)
    for (why, _), parts in reasons.items():
        codes = sorted({code for *_, missed in parts for code in missed})
        named = Told(
            "?", Severity.BLIND_SPOT, blocks=f"{plural(len(codes), 'check')} could not be made: {', '.join(codes)}"
        )
        first = [about for about, reason, _ in parts if reason == why]
        named = replace(named, about=first[0], message=why) if len(first) == 1 else replace(named, about=why)
        if len(parts) > 1:
            facts = tuple(f"{about}: {', '.join(missed)}" for about, _, missed in parts)
            named = replace(named, behind=f"{len(parts)} parts were not seen because of it", facts=facts)
        yield named


def _told(entry: Finding) -> Told:
    fix = entry.fix if entry.fix.strip("- ") else ""
    return Told(
        entry.code,
        entry.severity,
        entry.about,
        entry.message,
        places(entry),
        entry.evidence,
        fix,
        blocked_from(entry),
        behind_words(entry),
        entry.behind,
        folds=entry.severity is Severity.INFO and entry.code not in INSTRUCT,
    )


def finding_lines(findings: Sequence[Finding], width: int, *, full: bool = True) -> tuple[Line, ...]:
    """Each finding with its evidence and fix, with `full` what is behind it."""
    page = Page(width=width)
    before = None
    for entry in told(findings):
        if full or not (entry.severity is before is Severity.BLIND_SPOT):
            page.add()
        before = entry.severity
        if entry.severity is Severity.BLIND_SPOT:
            about = f"{entry.about}: {clip(entry.message, FOLDED)}" if entry.message else entry.about
            page.wrap(f"{entry.code:<9} {about}", entry.tone, hang=10)
            _not_made(page, entry, full=full)
            continue
        page.wrap(f"{entry.code:<9} {entry.about}", entry.tone, hang=10)
        page.wrap(entry.message, indent=12)
        if entry.each:
            page.wrap(f"each: {clip(entry.each, FOLDED)}", indent=12, hang=6)
        if entry.evidence:
            page.wrap(f"seen: {clip(entry.evidence, FOLDED)}", Tone.DIM, 12, 6)
        if entry.behind:
            page.wrap(f"{entry.behind}{'' if full else '  (each: --full)'}", indent=12, hang=2)
        for fact in entry.facts if full else ():
            page.wrap(fact, Tone.DIM, 14, 2)
        if entry.fix:
            page.wrap(f"fix:  {entry.fix}", indent=12, hang=6)
        if entry.blocks:
            page.add(entry.blocks, entry.tone, 12)
    return tuple(page.lines)


def _not_made(page: Page, entry: Told, *, full: bool) -> None:
    """The checks of a blind spot: without `full` the first of them."""
    codes = entry.blocks.split(", ")
    shown = codes if full else codes[:NAMED]
    more = f" and {len(codes) - NAMED} more" if len(shown) < len(codes) else ""
    page.wrap(f"so {', '.join(shown)}{more}{'  (each: --full)' if more and not entry.facts else ''}", indent=12)
    if entry.behind:
        page.wrap(f"{entry.behind}{'' if full else '  (each: --full)'}", indent=12, hang=2)
    for fact in entry.facts if full else ():
        page.wrap(fact, Tone.DIM, 14, 2)


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
    behind: Sequence[str]


class FindingsBody(TypedDict):
    """What JSON says of findings."""

    counts: Counts
    findings: list[FindingRow]


def findings_body(findings: Sequence[Finding]) -> FindingsBody:
    """Counts by severity, and every finding."""
    number, stages = Counter(entry.severity for entry in findings), set(Stage)
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
                "blocks_from": entry.blocks_from if entry.blocks_from in stages else None,
                "objects": entry.objects,
                "behind": entry.behind,
            }
            for entry in in_order(findings)
        ],
    }


def blocked_from(finding: Finding) -> str:
    """`Blocks stage 4 migration-mode and every later one`, or nothing."""
    stages = [stage for stage in Stage if stage == finding.blocks_from]
    if finding.severity not in (Severity.BLOCKER, Severity.BLIND_SPOT) or not stages or not stages[0]:
        return ""
    return f"Blocks stage {int(stages[0])} {stages[0].label} and every later one"
