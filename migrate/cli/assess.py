"""`assess`: read-only findings about a cluster; a connect string is enough for a useful answer."""

from __future__ import annotations

import pathlib

import click

from migrate.cli.errors import EXIT_BLOCKED, EXIT_OK
from migrate.cli.options import NO_PLAYBOOK, cluster_options, load_target, observing, output_option


@click.command()
@cluster_options
@click.option("--zookeeper", metavar="CONNECT", help="A connect string, with the chroot; nothing else is needed.")
@output_option
def assess(playbook: pathlib.Path | None, inventory: pathlib.Path | None, zookeeper: str | None, output: str) -> int:
    """Read-only findings, with causes and fixes.

    Exit code 3 where a blocker was found; what could not be checked never makes it 3 by itself.
    """
    from migrate import checks
    from migrate.model.findings import Severity
    from migrate.model.inventory import Access, Inventory
    from migrate.model.stage import Stage
    from migrate.model.world import Need
    from migrate.report.findings_text import findings_json, findings_text

    if zookeeper is not None:
        nothing = Access()
        found = Inventory(zookeeper, "", zookeeper, (), (), "", nothing, nothing, None, "none")
        loaded, needs = NO_PLAYBOOK, frozenset({Need.ZOOKEEPER})
    else:
        found, loaded = load_target(playbook, inventory)  # type: ignore[assignment] # a playbook or its absence
        needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.DISKS, Need.CONFIGS, Need.SERVICES})
    with observing(found, loaded) as observer:
        world = observer.observe(needs, {})
    findings = checks.run(world, target=Stage.PREPARE)
    click.echo(findings_json(findings, cluster=found.name) if output == "json" else findings_text(findings, found.name))
    return EXIT_BLOCKED if any(finding.severity is Severity.BLOCKER for finding in findings) else EXIT_OK
