"""What `assess` writes to a file: the verdict first, how much is ready, the findings, and every log directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.model.findings import Finding, Severity
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory, MetaBroken, MetaProperties
from migrate.model.world import World
from migrate.report.findings_text import rows
from migrate.report.markdown_text import code, table, words
from migrate.report.plan_verdict import PlanVerdict, Word, areas, counts
from migrate.report.templating import render

HEAD: Final = (
    "broker",
    "directory",
    "health",
    "meta",
    "directory id",
    "file system",
    "free",
    "replicas",
    "bytes",
    "odd",
)
GIBI: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Assessment:
    """`asked` are the codes of all checks that belong to the cluster's phase; `directories` is a row a directory."""

    cluster: str
    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    directories: tuple[tuple[str, ...], ...]

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


def directory_rows(world: World) -> tuple[tuple[str, ...], ...]:
    """Every broker's directories, in the order of its file; what was not seen is a row that says so."""
    return tuple(_rows(world))


def _rows(world: World) -> Iterator[tuple[str, ...]]:
    rest = ("?",) * (len(HEAD) - 3)
    for node in world.inventory.brokers:
        found = world.disks if isinstance(world.disks, Unknown) else world.disks.get(node.id, Unknown("not looked at"))
        if isinstance(found, BrokerDisks):
            yield from (_row(int(node.id), entry) for entry in found.directories)
        else:
            yield (str(int(node.id)), "?", f"unknown: {found.reason}", *rest)


def _row(broker: int, entry: Directory) -> tuple[str, ...]:
    meta = entry.meta
    stands = f"V{meta.version}" if isinstance(meta, MetaProperties) else "missing"
    if isinstance(meta, MetaBroken):
        stands = f"broken: {meta.reason}"
    return (
        str(broker),
        entry.path,
        entry.problem or "ok",
        stands,
        str(entry.id or "-"),
        entry.filesystem or "?",
        f"{entry.free_bytes / GIBI:.1f} GiB" if entry.free_bytes >= 0 else "?",
        str(sum(kind == "current" for kind in entry.replicas.kind)),
        str(sum(entry.replicas.size)),
        str(len(entry.oddities)),
    )


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
        directories=(HEAD, found.directories),
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
        lines += [*table(HEAD, ([code(cell) for cell in row] for row in found.directories)), ""]
    return "\n".join(lines)
