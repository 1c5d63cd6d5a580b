"""`assess`: read-only findings about a cluster; a connect string is enough for a useful answer."""

from __future__ import annotations

import pathlib

import click

from migrate.cli.errors import EXIT_BLOCKED, EXIT_OK
from migrate.cli.options import NO_PLAYBOOK, cluster_options, load_target, observing, output_option
from migrate.errors import NotVisible, UsageWrong


@click.command()
@cluster_options
@click.option("--zookeeper", metavar="CONNECT", help="A connect string, with the chroot; nothing else is needed.")
@output_option
def assess(playbook: pathlib.Path | None, inventory: pathlib.Path | None, zookeeper: str | None, output: str) -> int:
    """Read-only findings, with causes and fixes.

    Exit code 0: no blocker; 3: a blocker was found.  What could not be checked never makes it 3 by itself.
    """
    from migrate import checks
    from migrate.model.findings import Severity
    from migrate.model.inventory import Access, Inventory
    from migrate.model.outcome import Unknown
    from migrate.model.stage import Stage
    from migrate.model.world import Need
    from migrate.report.findings_text import findings_json, findings_text

    if zookeeper is not None:
        if playbook is not None or inventory is not None:
            raise UsageWrong("give --zookeeper alone, or a playbook or an inventory: they name a ZooKeeper themselves")
        nothing = Access()
        found = Inventory(zookeeper, "", zookeeper, (), (), "", nothing, nothing, None, "none")
        loaded, needs = NO_PLAYBOOK, frozenset({Need.ZOOKEEPER})
    else:
        found, loaded = load_target(playbook, inventory)  # type: ignore[assignment] # a playbook or its absence
        needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.DISKS, Need.CONFIGS, Need.SERVICES})
    with observing(found, loaded) as observer:
        if zookeeper is not None:
            observer.sources.zookeeper_client()  # nothing else is looked at: what it raises is the answer
        world = observer.observe(needs, {})
    if zookeeper is not None and isinstance(world.zookeeper, Unknown):
        raise NotVisible(f"the cluster cannot be read: {world.zookeeper.reason}", where=zookeeper)
    findings = checks.run(world, target=Stage.PREPARE)
    click.echo(findings_json(findings, cluster=found.name) if output == "json" else findings_text(findings, found.name))
    return EXIT_BLOCKED if any(finding.severity is Severity.BLOCKER for finding in findings) else EXIT_OK
