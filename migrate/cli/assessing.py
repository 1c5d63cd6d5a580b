"""One cluster looked at and judged, for `assess` and for a fleet's; and the reports of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from migrate import checks
from migrate.checks.next_release import NEXT_RELEASE
from migrate.checks.zookeeper_use import with_ensemble
from migrate.cli.options import Evidence, observing
from migrate.errors import NotVisible
from migrate.model.findings import Finding
from migrate.model.inventory import Access, Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.ports import Clock, Observer
from migrate.model.stage import Stage
from migrate.model.views import PartlyRead
from migrate.model.world import Need, World
from migrate.report.assessment import Assessment, cluster_facts
from migrate.report.directories import directory_rows
from migrate.report.wording import moment
from migrate.run.clock import SystemClock
from migrate.steps import foreseen
from migrate.zookeeper.rate_limit import Pace

PLANNED_ON: Final = frozenset(
    {
        Need.ZOOKEEPER,
        Need.SESSIONS,
        Need.KRAFT,
        Need.DISKS,
        Need.LIVE,
        Need.CONFIGS,
        Need.SERVICES,
        Need.LEDGER,
        Need.METADATA_LOGS,
        Need.LAUNCHES,
        Need.PORTS,
        Need.HOST_RIGHTS,
        Need.UNITS,
        Need.STORES,
        Need.APPLIED,
    }
)
LOOKED_AT_AGAIN: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})
LOOKS_AGAIN: Final = 3
SECONDS_BETWEEN: Final = 1.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What is assessed.  `alone` names a cluster of which nothing but its ZooKeeper is known.

    `next_release` is the line of Kafka to which an upgrade shall lead after the migration.
    """

    inventory: Inventory
    playbook: Playbook | Unknown
    evidence: Evidence
    alone: str | None = None
    next_release: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What was seen and when, what the checks say of it, and how ZooKeeper was read."""

    world: World
    findings: tuple[Finding, ...]
    pace: Pace
    looked: str


def nothing_but(zookeeper: str) -> Inventory:
    """An inventory that names a ZooKeeper and no node."""
    nothing = Access()
    return Inventory(zookeeper, "", zookeeper, (), (), "", nothing, nothing, None, "none")


def judged(subject: Subject) -> Judged:
    """Look once and judge; changes nothing.

    Raises:
        NotVisible: nothing but a ZooKeeper was named, and it cannot be read.
        MigrateError: what opening that ZooKeeper raises.
    """
    alone = subject.alone
    needs = {Need.ZOOKEEPER, Need.SESSIONS} if alone is not None else {*PLANNED_ON} - {Need.LEDGER}
    with observing(subject.inventory, subject.playbook, evidence=subject.evidence) as observer:
        if alone is not None:
            observer.sources.zookeeper_client()  # nothing else is looked at: what it raises is the answer
        facts = {} if subject.next_release is None else {NEXT_RELEASE: subject.next_release}
        world = observer.observe(frozenset(needs), facts)
        if alone is None and subject.evidence.live:
            from migrate.run.past_runs import by_journals

            proven = by_journals(subject.inventory)
            world = with_ensemble(observer, replace(world, facts={**world.facts, **proven}), proven)
        findings = foreseen.told(world, target=Stage.PREPARE)
        if alone is None and subject.evidence.live:
            findings = lasting_findings(observer, findings, SystemClock())
        pace = observer.sources.pace
    if alone is not None and isinstance(world.zookeeper, Unknown) and not isinstance(world.zookeeper, PartlyRead):
        raise NotVisible(f"the cluster cannot be read: {world.zookeeper.reason}", where=alone)
    return Judged(world, findings, pace, seen_at(subject.evidence))


def seen_at(evidence: Evidence) -> str:
    """When the cluster was seen: now, or when the bundle was made."""
    bundle = evidence.read_bundle()
    return moment(SystemClock().now() if bundle is None else bundle.created)


def lasting_findings(observer: Observer, findings: tuple[Finding, ...], clock: Clock) -> tuple[Finding, ...]:
    """Return the findings without those that only a topic in creation or deletion looked like.

    Looks again, at most LOOKS_AGAIN times, where there is such a finding.
    """
    for _ in range(LOOKS_AGAIN):
        if not any(finding.code in checks.COMES_AND_GOES for finding in findings):
            break
        clock.sleep(SECONDS_BETWEEN)
        again = checks.run(observer.observe(LOOKED_AT_AGAIN, {}), target=Stage.ASSESS)
        findings = checks.lasting(findings, again)
    return findings


def assessment(judged: Judged) -> Assessment:
    """What reports show of it."""
    world = judged.world
    name, alone = world.inventory.name, not world.inventory.nodes
    facts = cluster_facts(world, judged.looked)
    return Assessment(name, judged.findings, checks.asked(world), directory_rows(world), alone, facts)
