"""What `assess` says: the verdict first, the share of checks behind it, the findings, and every log directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import TypedDict

from migrate import __version__
from migrate.checks.releases import brokers_release
from migrate.model.detect import AFTERWARDS_PAGE, detect
from migrate.model.findings import Finding, Share, Word, share
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import PartlyRead
from migrate.model.world import World
from migrate.report.directories import DirectoryRow, headline, heat, told_columns
from migrate.report.findings_text import FindingsBody, finding_lines, findings_body, told
from migrate.report.lines import WIDTH, Line, Page, Tone
from migrate.report.markup import render
from migrate.report.plan_verdict import PlanVerdict, areas, counts, verdict

SCHEMA: Final = "kraft-migrate/findings/v2"
ALONE: Final = (
    "A connect string shows neither files nor disks nor listeners: name the cluster by its inventory "
    "(`kraft-migrate inventory init` writes one), then `kraft-migrate assess --inventory FILE`."
)
UNSEEN: Final = (
    "Let the tool see what is listed under `?`, and assess again. "
    "`kraft-migrate doctor --inventory FILE --hosts` tries every host, `--rights` names the rights that are missing."
)


NEXT: Final = {
    Word.BLOCKED: "Fix the blockers as their `fix` says, then assess again.",
    Word.INCOMPLETE: UNSEEN,
}
PLAN: Final = "`kraft-migrate plan PLAYBOOK` makes the plan; it changes nothing."
OVER: Final = f"Nothing of the migration is left to do; {AFTERWARDS_PAGE} has what comes now."


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What tells clusters apart in a list; "" and None stand for what was not seen.

    `looked` says when; `release` is the line of releases of the brokers, or the release that their class paths name.
    `stage` and `half` are labels, as `status` has them.
    """

    looked: str = ""
    release: str = ""
    brokers: int | None = None
    partitions: int | None = None
    stage: str = ""
    half: str = ""

    @property
    def words(self) -> dict[str, str]:
        """Each as a reader sees it, what was not seen by name."""
        counted = {"brokers": self.brokers, "partitions": self.partitions}
        numbers = {name: "unknown" if number is None else f"{number:,}" for name, number in counted.items()}
        return {"release": self.release or "unknown", **numbers, "last look": self.looked or "unknown"}


def cluster_facts(world: World, looked: str) -> ClusterFacts:
    """Those of one observation; ZooKeeper counts partitions until the copy, the metadata afterwards."""
    zookeeper = world.zookeeper.view if isinstance(world.zookeeper, PartlyRead) else world.zookeeper
    views = [view for view in (world.kraft, zookeeper) if not isinstance(view, Unknown) and len(view.partitions)]
    brokers = len(world.inventory.brokers) or (None if isinstance(zookeeper, Unknown) else len(zookeeper.brokers))
    partitions, here = len(views[0].partitions) if views else None, detect(world)
    stage, half = ("", None) if isinstance(here, Unknown) else (here.stage.label, here.half)
    return ClusterFacts(looked, brokers_release(world), brokers, partitions, stage, "" if half is None else half.label)


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
    facts: ClusterFacts = ClusterFacts()

    @property
    def next_step(self) -> str:
        """What to do now, whatever the verdict."""
        return self.advice or NEXT.get(self.verdict.word, OVER if self.facts.stage == Stage.CLEANUP.label else PLAN)

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


def assessment_lines(found: Assessment, width: int = WIDTH) -> tuple[Line, ...]:
    """Verdict, share of checks, counts, then every finding."""
    page = Page(width=width)
    page.add(f"kraft-migrate assess  {found.cluster}", Tone.TITLE)
    page.add(str(found.verdict), found.verdict.tone, 2)
    page.wrap(facts_line(found.facts), Tone.DIM, hang=2)
    page.wrap(str(found.checks), hang=2)
    page.add(counts(found.findings), indent=2)
    if found.findings:
        page.wrap(f"findings by area: {areas(found.findings)}", Tone.DIM, hang=2)
    page.wrap(f"next: {found.next_step}", hang=6)
    page.lines.extend(finding_lines(found.findings, width))
    return tuple(page.lines)


def facts_line(facts: ClusterFacts) -> str:
    """`release 3.9, brokers 3, ...; kraft-migrate 0.3.0`."""
    return f"{', '.join(f'{name} {value}' for name, value in facts.words.items())}; kraft-migrate {__version__}"


class ChecksMade(TypedDict):
    """The share of checks that the verdict rests on: numbers, and the codes of those that were not made."""

    asked: int
    made: int
    not_made: list[str]


class ZookeeperReads(TypedDict):
    """How ZooKeeper was read: operations, and how many a second were allowed (null: no limit)."""

    operations: int
    most_a_second: int | None


class AssessmentBody(FindingsBody):
    """What JSON says of one cluster, alone or in a fleet; numbers that were not seen are null."""

    verdict: str
    checks: ChecksMade
    advice: str
    next: str
    looked: str
    release: str
    brokers: int | None
    partitions: int | None
    stage: str | None
    half_done: str | None


class AssessAnswer(AssessmentBody):
    """What `assess` answers."""

    schema: Literal["kraft-migrate/findings/v2"]
    cluster: str
    zookeeper_reads: ZookeeperReads


def assessment_json(found: Assessment, reads: ZookeeperReads) -> AssessAnswer:
    """The same as JSON: verdict, checks, counts and all fields of every finding."""
    return {"schema": SCHEMA, "cluster": found.cluster, "zookeeper_reads": reads, **assessment_body(found)}


def assessment_body(found: Assessment) -> AssessmentBody:
    return {
        "verdict": found.verdict.word,
        "checks": {"asked": found.checks.asked, "made": found.checks.made, "not_made": list(found.checks.not_made)},
        "advice": found.advice,
        "next": found.next_step,
        "looked": found.facts.looked,
        "release": found.facts.release,
        "brokers": found.facts.brokers,
        "partitions": found.facts.partitions,
        "stage": found.facts.stage or None,
        "half_done": found.facts.half or None,
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
        facts={**found.facts.words, "kraft-migrate": __version__},
        next_step=found.next_step,
        counts=counts(found.findings),
        areas=areas(found.findings),
        rows=told(found.findings),
        directories=told_columns(found.directories),
        headline=headline(found.directories),
        heat=heat(found.directories),
    )
