"""Many clusters on one page: for a terminal, as JSON, and as one HTML file with a map of clusters by area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

from typing_extensions import TypedDict

from migrate import __version__
from migrate.model.difference import DiffReport
from migrate.model.findings import Finding, Severity, Word
from migrate.model.inventory import Fleet, Member, NotRead
from migrate.model.ledger import LedgerRow, LedgerSummary
from migrate.model.stage import MIGRATION
from migrate.model.words import counted
from migrate.report.assessment import Assessment, AssessmentBody, ClusterFacts, assessment_body
from migrate.report.diff_report import DiffAnswer, diff_json, diff_lines
from migrate.report.findings_text import TONES, told
from migrate.report.heat_map import HeatMap, HeatRow, heat_map, stage_squares
from migrate.report.lines import WIDTH, Line, Page, Tone, fold
from migrate.report.markup import render
from migrate.report.plan_verdict import SEVERITY_ORDER, SEVERITY_WORDS, area_of, in_order, unseen
from migrate.report.wording import duration, plural, printable

SCHEMA: Final = "kraft-migrate/fleet/v2"
STAGES: Final = f"Stages, from {MIGRATION[1].label} to {MIGRATION[-1].label}"
NOT_READ: Final = "NOT READ"
EQUAL: Final = "EQUAL"
DIFFERENT: Final = "DIFFERENT"
UNSETTLED: Final = "UNSETTLED"
MORE: Final = "--output json"
MOST_REPLICAS: Final = 20  # of a cluster, on a terminal and on the page


@dataclass(frozen=True, slots=True)
class Answer:
    """What one cluster's look came to; `seconds` from its start to its end."""

    member: Member
    seconds: float
    found: Assessment | DiffReport | NotRead
    ledger: LedgerSummary | None = None  # of a comparison, where the cluster's disks were reported

    @property
    def word(self) -> str:
        """The verdict in a word or three: what was not read is never a good one."""
        match self.found:
            case NotRead():
                return NOT_READ
            case Assessment():
                return str(self.found.verdict.word)
            case DiffReport():
                return DIFFERENT if self.found.unexcused else UNSETTLED if self.found.unsettled else EQUAL

    @property
    def tone(self) -> Tone:
        """How it should look."""
        if isinstance(self.found, Assessment):
            return self.found.verdict.tone
        return Tone.GOOD if self.word == EQUAL else Tone.BAD


def headline(fleet: Fleet, answers: Sequence[Answer]) -> str:
    """`16 clusters: 1 BLOCKED, 2 NOT READ, 13 READY`: the worst first."""
    order = [Word.BLOCKED, DIFFERENT, NOT_READ, Word.INCOMPLETE, UNSETTLED, Word.WARNINGS, Word.READY, EQUAL]
    found = [answer.word for answer in answers]
    return f"{plural(len(fleet.members), 'cluster')}: " + ", ".join(
        f"{found.count(word)} {word}" for word in order if word in found
    )


def fleet_lines(fleet: Fleet, answers: Sequence[Answer], width: int = WIDTH) -> tuple[Line, ...]:
    """The headline, a row a cluster, then each cluster's own worst lines."""
    page = Page(width=width)
    page.add(f"kraft-migrate fleet  {fleet.name}", Tone.TITLE)
    page.add(headline(fleet, answers), indent=2)
    page.add()
    found = [_row(answer) for answer in answers]
    widest = max(found, key=len)  # it has all columns; a cluster that was not read has few, and may be the first
    left_out = set(ClusterFacts().words) if width < WIDTH else set()  # nine columns do not fit into 80 characters
    page.table({name: row.get(name, "") for name in widest if name not in left_out} for row in found)
    if stages := stage_map(answers):
        page.heading(STAGES)
        page.lines.extend(stages.lines(width))
    for answer in answers:
        _worst(page, answer)
    return tuple(page.lines)


def stage_map(answers: Sequence[Answer]) -> HeatMap | None:
    """Clusters and stages; None for comparisons, which say of no stage."""
    if all(isinstance(answer.found, DiffReport | NotRead) for answer in answers):
        return None
    rows = []
    for answer in answers:
        facts = answer.found.facts if isinstance(answer.found, Assessment) else ClusterFacts()
        here = f"{facts.stage}, {facts.half} half done" if facts.half else facts.stage or "unknown"
        rows.append(HeatRow(answer.member.name, tuple(stage_squares(facts.stage, facts.half)), (here, answer.word)))
    return heat_map(rows, ("stage", "verdict"))


def _row(answer: Answer) -> dict[str, str]:
    row = {"cluster": answer.member.name, "verdict": answer.word}
    match answer.found:
        case NotRead():
            row["found"] = f"{answer.found.id} {answer.found.what}"
        case Assessment():
            made = answer.found.checks
            row |= {"checks": f"{made.made}/{made.asked}", **answer.found.facts.words}
            row["found"] = _found(answer.found.findings)
        case DiffReport():
            row |= {"offset": f"{answer.found.offset:,}", "found": _differences(answer.found)}
            if answer.ledger is not None:
                row["replicas"] = _replicas(answer.ledger)
    return {**row, "took": duration(answer.seconds)}


def _found(findings: Sequence[Finding]) -> str:
    """`1 blocker, 3 infos`: what there is, worst first."""
    found = [entry.severity for entry in findings]
    parts = [plural(found.count(one), SEVERITY_WORDS[one]) for one in SEVERITY_ORDER if one in found]
    return ", ".join(parts) or "nothing"


def _differences(report: DiffReport) -> str:
    counts = report.unexcused_counts
    told = [plural(sum(counts.values()), "difference") + (f" in {', '.join(sorted(counts))}" if counts else "")]
    told += [f"{len(report.unsettled)} unsettled"] if report.unsettled else []
    told += [plural(len(report.blind_spots), "blind spot")] if report.blind_spots else []
    return "; ".join(told)


def _replicas(ledger: LedgerSummary) -> str:
    """`60,000 VERIFIED`, or what is not."""
    if not ledger.unproven:
        return f"{ledger.replicas:,} VERIFIED"
    return f"{ledger.unproven:,} of {ledger.replicas:,} not VERIFIED"


def _ledger_lines(page: Page, answer: Answer) -> None:
    """States of each broker's replicas, and the first that are not VERIFIED."""
    ledger = answer.ledger
    if ledger is None or not ledger.unproven:
        return
    page.heading(f"{answer.member.name}: {_replicas(ledger)}")
    for reason in ledger.unknown:
        page.wrap(f"not seen: {reason}", hang=2)
    for broker in ledger.counts:
        page.wrap(f"broker {int(broker)}: {counted(ledger.of(broker))}", hang=2)
    for row in ledger.rows[:MOST_REPLICAS]:
        told = f"{row.topic}-{row.partition} on broker {row.broker}: {row.state}"
        page.wrap(f"{told} ({row.why})" if row.why else told, hang=2)
    if ledger.unproven > MOST_REPLICAS:
        listed = "them" if len(ledger.rows) == ledger.unproven else f"the first {len(ledger.rows):,}"
        page.wrap(f"and {ledger.unproven - MOST_REPLICAS:,} more; `{MORE}` has {listed}", hang=2)


def _worst(page: Page, answer: Answer) -> None:
    match answer.found:
        case NotRead():
            page.heading(f"{answer.member.name}: not read")
            _not_read(page, answer.found)
        case Assessment():
            blockers = [entry for entry in answer.found.findings if entry.severity is Severity.BLOCKER]
            if blockers:
                page.heading(f"{answer.member.name}: {plural(len(blockers), 'blocker')}")
            for entry in blockers:
                page.wrap(f"{entry.code:<9} {entry.about}: {entry.message}", Tone.BAD, hang=10)
            if answer.found.advice:
                page.heading(f"{answer.member.name}: {answer.found.verdict}")
                page.wrap(str(answer.found.checks), hang=2)
                parts = dict.fromkeys(about for about, _, _ in unseen(answer.found.findings))
                page.wrap(f"not seen: {'; '.join(parts)}", hang=2)
                page.wrap(answer.found.advice)
        case DiffReport():
            if answer.tone is not Tone.GOOD:
                page.heading(f"{answer.member.name}: {_differences(answer.found)}")
                _compared(page, answer.found)
            _ledger_lines(page, answer)


def _not_read(page: Page, found: NotRead) -> None:
    page.wrap(f"{found.id} {found.what}", Tone.BAD)
    for name, value in (("where", found.where), ("why", found.why), ("next", found.next_step)):
        if value:
            page.wrap(f"{name:<5} {value}", hang=6)


def _compared(page: Page, found: DiffReport) -> None:
    for line in diff_lines(found, MORE):
        page.lines += [Line(piece) for piece in fold(printable(line), page.width)]


Row = TypeVar("Row")


class Named(TypedDict, total=False):
    """What the fleet's file names a cluster by: one of these."""

    inventory: str
    zookeeper: str
    bundle: str


class Cluster(Named):
    """A cluster; `seconds` is how long it took."""

    name: str
    verdict: str
    seconds: float


class ClusterNotRead(Cluster):
    """One that gave no answer."""

    error: NotRead


class ClusterAssessed(Cluster, AssessmentBody):
    """What was found in it."""


class BrokerStates(TypedDict):
    """A broker's replicas by state."""

    broker: int
    states: dict[str, int]


class FleetLedger(TypedDict):
    """The ledger in numbers; `rows` are those that are not VERIFIED, or the first of them."""

    offset: int
    replicas: int
    not_verified: int
    unknown: Sequence[str]
    brokers: list[BrokerStates]
    rows: Sequence[LedgerRow]


class ClusterCompared(Cluster):
    """Its comparison."""

    diff: DiffAnswer


class ClusterWithLedger(ClusterCompared):
    """The same, where the cluster's disks were reported."""

    ledger: FleetLedger


class FleetAnswer(TypedDict, Generic[Row]):
    """What `fleet` answers: everything of every cluster."""

    schema: Literal["kraft-migrate/fleet/v2"]
    fleet: str
    clusters: list[Row | ClusterNotRead]


AnyCluster = ClusterAssessed | ClusterCompared | ClusterWithLedger
FleetAssessed = FleetAnswer[ClusterAssessed]
FleetCompared = FleetAnswer[ClusterCompared | ClusterWithLedger]


def fleet_json(fleet: Fleet, answers: Sequence[Answer]) -> FleetAnswer[AnyCluster]:
    """Everything of every cluster; a cluster that was not read has an `error`, and neither findings nor differences."""
    return {"schema": SCHEMA, "fleet": fleet.name, "clusters": [_json_row(answer) for answer in answers]}


def _json_row(answer: Answer) -> AnyCluster | ClusterNotRead:
    named = cast("Named", {answer.member.target.value: answer.member.where})
    name, verdict, seconds = answer.member.name, answer.word, round(answer.seconds, 3)
    head: Cluster = {"name": name, **named, "verdict": verdict, "seconds": seconds}
    match answer.found:
        case NotRead():
            return {**head, "error": answer.found}
        case Assessment():
            return {**head, **assessment_body(answer.found)}
        case DiffReport():
            body: ClusterCompared = {**head, "diff": diff_json(answer.found)}
            return body if answer.ledger is None else {**body, "ledger": _ledger_json(answer.ledger)}


def _ledger_json(ledger: LedgerSummary) -> FleetLedger:
    return {
        "offset": ledger.offset,
        "replicas": ledger.replicas,
        "not_verified": ledger.unproven,
        "unknown": ledger.unknown,
        "brokers": [{"broker": int(broker), "states": ledger.of(broker)} for broker in ledger.counts],
        "rows": ledger.rows,
    }


def fleet_html(fleet: Fleet, answers: Sequence[Answer]) -> str:
    """One self-contained HTML file: the headline, the map, and every cluster's own part, folded."""
    tones = {str(answer.tone) for answer in answers}
    facts = list(ClusterFacts().words) if any(isinstance(answer.found, Assessment) for answer in answers) else []
    return render(
        "fleet.html.jinja",
        fleet=fleet.name,
        headline=headline(fleet, answers),
        tone=next(tone for tone in (Tone.BAD, Tone.WARN, Tone.GOOD) if str(tone) in {*tones, str(Tone.GOOD)}),
        share="Checks made" if facts else "Offset",
        facts=facts,
        tool=__version__,
        columns=_columns(answers),
        stages=stage_map(answers),
        stages_title=STAGES,
        clusters=[_part(answer, _columns(answers)) for answer in answers],
    )


def _columns(answers: Sequence[Answer]) -> list[str]:
    """The map's columns: areas of findings, or kinds of what was compared."""
    found: set[str] = set()
    for answer in answers:
        if isinstance(answer.found, Assessment):
            found |= {area_of(entry) for entry in answer.found.findings if entry.severity is not Severity.INFO}
        elif isinstance(answer.found, DiffReport):
            found |= set(answer.found.counts)
    return sorted(found)


def _part(answer: Answer, columns: Sequence[str]) -> dict[str, Any]:
    """What the template shows of a cluster: findings in a table, everything else as the lines of a terminal."""
    found, row, page = answer.found, _row(answer), Page(width=WIDTH)
    if isinstance(found, NotRead):
        _not_read(page, found)
    elif isinstance(found, DiffReport):
        _compared(page, found)
        _ledger_lines(page, answer)
    return {
        "answer": answer,
        "row": row,
        "told": "; ".join(filter(None, (row["found"], row.get("replicas")))),
        "cells": [_cell(answer, name) for name in columns],
        "findings": told(found.findings) if isinstance(found, Assessment) else [],
        "lines": [line.text for line in page.lines],
    }


def _cell(answer: Answer, name: str) -> tuple[str, str]:
    """A number and its colour; "" where nothing was found, `?` where nothing was seen."""
    match answer.found:
        case NotRead():
            return "?", str(Tone.WARN)
        case Assessment():
            return _area_cell(answer.found.findings, name)
        case DiffReport():
            return _kind_cell(answer.found, name)


def _area_cell(findings: Sequence[Finding], area: str) -> tuple[str, str]:
    """How many findings the area has, coloured by its worst one."""
    found = [entry for entry in findings if area_of(entry) == area and entry.severity is not Severity.INFO]
    if not found:
        return "", str(Tone.GOOD)
    worst = in_order(found)[0].severity
    return str(len(found)) + ("?" if worst is Severity.BLIND_SPOT else ""), str(TONES[worst])


def _kind_cell(report: DiffReport, kind: str) -> tuple[str, str]:
    """How many rows of the kind differ; an empty cell means none."""
    if kind not in report.counts:
        return "?", str(Tone.WARN)
    bad = report.unexcused_counts.get(kind, 0)
    open_ = sum(row.kind == kind for row in report.unsettled)
    if bad:
        return str(bad), str(Tone.BAD)
    return (f"{open_}?", str(Tone.WARN)) if open_ else ("", str(Tone.GOOD))
