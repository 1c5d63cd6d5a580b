"""What `assess` writes to a file: the verdict first, how much is ready, the findings, and every log directory."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.findings import Finding, Severity
from migrate.report.directory_rows import DirectoryRow
from migrate.report.directory_table import HEAD, cells
from migrate.report.figure_directories import disks_and_replicas, legend
from migrate.report.findings_text import rows
from migrate.report.markdown_text import code, table, words
from migrate.report.plan_verdict import PlanVerdict, Word, areas, counts
from migrate.report.templating import render


@dataclass(frozen=True, slots=True)
class Assessment:
    """`asked` are the codes of all checks that belong to the cluster's phase; `directories` is a row a directory."""

    cluster: str
    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    directories: tuple[DirectoryRow, ...]

    @property
    def verdict(self) -> PlanVerdict:
        """BLOCKED by blockers; with warnings or anything unseen READY WITH WARNINGS: a blind spot is never a pass."""
        blockers = sum(entry.severity is Severity.BLOCKER for entry in self.findings)
        if blockers:
            return PlanVerdict(Word.BLOCKED, blockers)
        doubts = sum(entry.severity in (Severity.WARNING, Severity.BLIND_SPOT) for entry in self.findings)
        blind = sum(entry.severity is Severity.BLIND_SPOT for entry in self.findings)
        return PlanVerdict(Word.WARNINGS, doubts, blind) if doubts else PlanVerdict(Word.READY, 0)

    @property
    def passed(self) -> int:
        """How many of the checks were made in full and found no blocker."""
        failed = {entry.code for entry in self.findings if entry.severity in (Severity.BLOCKER, Severity.BLIND_SPOT)}
        return len(set(self.asked) - failed)

    @property
    def readiness(self) -> str:
        """`87% (80 of 92 checks were made and found no blocker)`: rounded down, so that 100% means all."""
        total = len(set(self.asked))
        share = 100 * self.passed // total if total else 0
        return f"{share}% ({self.passed} of {total} checks were made and found no blocker)"


def assessment_html(found: Assessment) -> str:
    """One self-contained HTML file."""
    verdict = found.verdict
    return render(
        "assessment.html.jinja",
        cluster=found.cluster,
        verdict=str(verdict),
        tone=str(verdict.tone),
        readiness=found.readiness,
        counts=counts(found.findings),
        areas=areas(found.findings),
        rows=rows(found.findings),
        directories=(HEAD, [cells(row) for row in found.directories]),
        picture=disks_and_replicas(found.directories),
        legend=legend(found.directories),
    )


def assessment_markdown(found: Assessment) -> str:
    """The same in Markdown."""
    lines = [
        f"# {words(str(found.verdict))}",
        "",
        f"Cluster {code(found.cluster)}. Readiness {found.readiness}.",
        f"{counts(found.findings)}. Nothing was changed.",
        "",
    ]
    for row in rows(found.findings):
        lines += [f"## {words(row['code'])} {words(row['about'])}", "", words(row["message"]), ""]
        for name in ("evidence", "fix", "blocks"):
            if row[name]:
                lines.append(f"- **{name}:** {words(row[name])}")
        lines.append("")
    if found.directories:
        lines += ["## Log directories", ""]
        lines += [*table(HEAD, ([code(cell) for cell in cells(row)] for row in found.directories)), ""]
    return "\n".join(lines)
