"""What `assess` says: the verdict first, the share of checks behind it, the findings, and every log directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from migrate.model.findings import Finding, Share, Word, share
from migrate.report.directories import HEAD, DirectoryRow, cells, disks_and_replicas, legend
from migrate.report.findings_text import finding_lines, findings_body, rows
from migrate.report.lines import Page, Tone, text
from migrate.report.markdown_text import code, table, words
from migrate.report.plan_verdict import PlanVerdict, areas, counts, verdict
from migrate.report.templating import render

SCHEMA: Final = "kraft-migrate/findings/v2"
WIDTH: Final = 80  # of a terminal that nobody made wider
ALONE: Final = (
    "A connect string shows neither files nor disks nor listeners: name the cluster by its inventory "
    "(`kraft-migrate inventory init` writes one), then `kraft-migrate assess --inventory FILE`."
)
UNSEEN: Final = (
    "Let the tool see what is listed under `?`, and assess again. "
    "`kraft-migrate doctor --inventory FILE --hosts` tries every host, `--rights` names the rights that are missing."
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """`asked` are the codes of all checks that belong to the cluster's phase; `directories` is a row per directory.

    `alone`: nothing but its ZooKeeper was named.
    """

    cluster: str
    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    directories: tuple[DirectoryRow, ...]
    alone: bool = False

    @property
    def verdict(self) -> PlanVerdict:
        """The verdict on the whole way to KRaft."""
        return verdict(self.findings)

    @property
    def checks(self) -> Share:
        """The share of checks that the verdict rests on."""
        return share(len(set(self.asked)), self.findings)

    @property
    def advice(self) -> str:
        """How to complete an assessment that is INCOMPLETE; nothing otherwise."""
        if self.verdict.word is not Word.INCOMPLETE:
            return ""
        return ALONE if self.alone else UNSEEN


def assessment_text(found: Assessment) -> str:
    """Verdict, share of checks, counts, then every finding, as one plain text."""
    page = Page(width=WIDTH)
    page.add(f"kraft-migrate assess  {found.cluster}", Tone.TITLE)
    page.add(str(found.verdict), found.verdict.tone, 2)
    page.wrap(str(found.checks), hang=2)
    page.add(counts(found.findings), indent=2)
    if found.findings:
        page.wrap(f"findings by area: {areas(found.findings)}", Tone.DIM, hang=2)
    if found.advice:
        page.wrap(found.advice)
    page.lines.extend(finding_lines(found.findings, WIDTH))
    return text(page.lines)


def assessment_json(found: Assessment, **more: Any) -> str:
    """The same as JSON: verdict, checks, counts and all fields of every finding; `more` adds facts of the caller."""
    body = {"schema": SCHEMA, "cluster": found.cluster, **more, **assessment_body(found)}
    return json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def assessment_body(found: Assessment) -> dict[str, Any]:
    """What JSON says of one cluster, alone or in a fleet."""
    checks = {"asked": found.checks.asked, "made": found.checks.made, "not_made": list(found.checks.not_made)}
    return {
        "verdict": str(found.verdict.word),
        "checks": checks,
        "advice": found.advice,
        **findings_body(found.findings),
    }


def assessment_html(found: Assessment) -> str:
    """One self-contained HTML file."""
    return render(
        "assessment.html.jinja",
        cluster=found.cluster,
        verdict=str(found.verdict),
        tone=str(found.verdict.tone),
        checks=str(found.checks),
        advice=found.advice,
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
        f"Cluster {code(found.cluster)}. {words(str(found.checks))}.",
        f"{counts(found.findings)}. Nothing was changed.",
        "",
        *([words(found.advice), ""] if found.advice else []),
    ]
    for row in rows(found.findings):
        lines += [f"## {words(row['code'])} {words(row['about'])}", "", words(row["message"]), ""]
        for name in ("each", "evidence", "fix", "blocks"):
            if row[name]:
                lines.append(f"- **{name}:** {words(row[name])}")
        lines.append("")
    if found.directories:
        lines += ["## Log directories", ""]
        lines += [*table(HEAD, ([code(cell) for cell in cells(row)] for row in found.directories)), ""]
    return "\n".join(lines)
