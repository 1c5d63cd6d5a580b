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
)
from migrate.errors import NotVisible, UsageWrong

if TYPE_CHECKING:
    from migrate.model.inventory import Inventory
    from migrate.zookeeper.offline.reader import ZookeeperFiles


@click.command()
@cluster_options
@click.option("--zookeeper", metavar="CONNECT", help="A connect string, with the chroot; nothing else is needed.")
@click.option(
    "--zookeeper-files",
    "folders",
    metavar="DIR",
    multiple=True,
    help="ZooKeeper's dataDir (once more for its dataLogDir): snapshots and logs are read, no server is asked.",
)
@click.option("--chroot", metavar="PATH", help="Kafka's chroot in the tree of --zookeeper-files.")
@evidence_options
@click.option("--html", metavar="FILE", type=click.Path(path_type=pathlib.Path), help="Write one HTML file too.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=pathlib.Path), help="Write Markdown too.")
@output_option
def assess(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    zookeeper: str | None,
    folders: tuple[str, ...],
    chroot: str | None,
    evidence: Evidence,
    html: pathlib.Path | None,
    markdown: pathlib.Path | None,
    output: str,
) -> int:
    """Read-only findings, with causes and fixes.

    Exit code 0: no blocker; 3: a blocker was found.  What could not be checked never makes it 3 by itself.
    """
    from migrate import checks
    from migrate.cli.assessing import with_sessions, write_reports
    from migrate.model.findings import Severity
    from migrate.model.outcome import Unknown
    from migrate.model.stage import Stage
    from migrate.model.views import PartlyRead
    from migrate.model.world import Need
    from migrate.report.findings_text import findings_json, findings_text
    from migrate.zookeeper.offline.reader import open_files

    files = _files(folders, chroot)
    alone = zookeeper if files is None else files.name
    if alone is not None:
        named = playbook is not None or inventory is not None or evidence.given
        if named or (zookeeper is not None and files is not None):
            raise UsageWrong(
                "give --zookeeper alone, or --zookeeper-files, or a playbook or an inventory: they name a ZooKeeper "
                "themselves"
            )
        found = _nothing_but(alone)
        loaded, needs = NO_PLAYBOOK, frozenset({Need.ZOOKEEPER})
    else:
        found, loaded = load_target(playbook, inventory, evidence)  # type: ignore[assignment] # a playbook or its absence
        needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.DISKS, Need.CONFIGS, Need.SERVICES})
    tree = None if files is None else open_files(files)
    with observing(found, loaded, evidence=evidence) as observer:
        if tree is not None:
            observer.sources.use_zookeeper_files(tree)
        elif zookeeper is not None:
            observer.sources.zookeeper_client()  # nothing else is looked at: what it raises is the answer
        world = observer.observe(needs, {})
    if tree is None and evidence.bundle is None:
        world = with_sessions(world)
    if alone is not None and isinstance(world.zookeeper, Unknown) and not isinstance(world.zookeeper, PartlyRead):
        raise NotVisible(f"the cluster cannot be read: {world.zookeeper.reason}", where=alone)
    findings = checks.run(world, target=Stage.PREPARE)
    write_reports(world, findings, html, markdown)
    click.echo(findings_json(findings, cluster=found.name) if output == "json" else findings_text(findings, found.name))
    return EXIT_BLOCKED if any(finding.severity is Severity.BLOCKER for finding in findings) else EXIT_OK


def _files(folders: tuple[str, ...], chroot: str | None) -> ZookeeperFiles | None:
    from migrate.zookeeper.offline.reader import ZookeeperFiles

    if not folders:
        if chroot is not None:
            raise UsageWrong("--chroot goes with --zookeeper-files; a connect string has its chroot at its end")
        return None
    if chroot is not None and not chroot.startswith("/"):
        raise UsageWrong(f"a chroot begins with /, {chroot!r} does not")
    return ZookeeperFiles(folders, (chroot or "").rstrip("/"))


def _nothing_but(zookeeper: str) -> Inventory:
    """An inventory that names a ZooKeeper and no node."""
    from migrate.model.inventory import Access, Inventory

    nothing = Access()
    return Inventory(zookeeper, "", zookeeper, (), (), "", nothing, nothing, None, "none")
