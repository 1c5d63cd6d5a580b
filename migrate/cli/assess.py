"""`assess`: read-only findings about a cluster; a connect string is enough for a useful answer."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_BLOCKED, EXIT_OK
from migrate.cli.options import (
    NO_PLAYBOOK,
    Evidence,
    cluster_options,
    evidence_options,
    load_target,
    observing,
    output_option,
    paced,
)
from migrate.errors import NotVisible, UsageWrong

if TYPE_CHECKING:
    from migrate.model.inventory import Inventory


@click.command()
@cluster_options
@click.option("--zookeeper", metavar="CONNECT", help="A connect string, with the chroot; nothing else is needed.")
@evidence_options
@click.option("--html", metavar="FILE", type=click.Path(path_type=pathlib.Path), help="Write one HTML file too.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=pathlib.Path), help="Write Markdown too.")
@output_option
def assess(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    zookeeper: str | None,
    evidence: Evidence,
    html: pathlib.Path | None,
    markdown: pathlib.Path | None,
    output: str,
) -> int:
    """Read-only findings, with causes and fixes.

    Exit code 0: no blocker; 3: a blocker was found.  What could not be checked never makes it 3 by itself.
    """
    from migrate import checks
    from migrate.cli.assessing import write_reports
    from migrate.cli.planning import PLANNED_ON
    from migrate.model.findings import Severity
    from migrate.model.outcome import Unknown
    from migrate.model.stage import Stage
    from migrate.model.views import PartlyRead
    from migrate.model.world import Need
    from migrate.report.findings_text import findings_json, findings_text

    alone = _alone(zookeeper, evidence, named=playbook is not None or inventory is not None)
    if alone is not None:
        found = paced(_nothing_but(alone))
        loaded, needs = NO_PLAYBOOK, frozenset({Need.ZOOKEEPER, Need.SESSIONS})
    else:
        found, loaded = load_target(playbook, inventory, evidence)  # type: ignore[assignment] # a playbook or its absence
        needs = frozenset({*PLANNED_ON} - {Need.LEDGER})
    with observing(found, loaded, evidence=evidence) as observer:
        if zookeeper is not None:
            observer.sources.zookeeper_client()  # nothing else is looked at: what it raises is the answer
        world = observer.observe(needs, {})
        pace = observer.sources.pace
    if alone is not None and isinstance(world.zookeeper, Unknown) and not isinstance(world.zookeeper, PartlyRead):
        raise NotVisible(f"the cluster cannot be read: {world.zookeeper.reason}", where=alone)
    findings = checks.run(world, target=Stage.PREPARE)
    write_reports(world, findings, html, markdown)
    if output == "json":
        asked = {"operations": pace.operations, "most_a_second": pace.rate}
        click.echo(findings_json(findings, cluster=found.name, zookeeper_reads=asked))
    else:
        click.echo(findings_text(findings, found.name))
        if evidence.live:
            click.echo(f"ZooKeeper was read by {pace.operations:,} operations, {pace}")
    return EXIT_BLOCKED if any(finding.severity is Severity.BLOCKER for finding in findings) else EXIT_OK


def _alone(zookeeper: str | None, evidence: Evidence, *, named: bool) -> str | None:
    """What stands for the cluster's name where there is a ZooKeeper and no inventory; None where there is one."""
    files = evidence.zookeeper
    if zookeeper is not None and (named or files is not None or evidence.disks or evidence.bundle is not None):
        raise UsageWrong("give --zookeeper alone: playbook, inventory, bundle and files name a ZooKeeper themselves")
    if zookeeper is None and files is not None and not named:
        if evidence.disks:
            raise UsageWrong("--disks needs an inventory: it says which nodes there are")
        return files.name
    return zookeeper


def _nothing_but(zookeeper: str) -> Inventory:
    """An inventory that names a ZooKeeper and no node."""
    from migrate.model.inventory import Access, Inventory

    nothing = Access()
    return Inventory(zookeeper, "", zookeeper, (), (), "", nothing, nothing, None, "none")
