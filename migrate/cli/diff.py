"""`diff`: compare ZooKeeper with KRaft at one offset, field by field, on Spark."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import (
    Evidence,
    cluster_options,
    evidence_options,
    load_target,
    observing,
    output_option,
    spark_options,
)
from migrate.cli.outputs import OUTPUT_FOLDER
from migrate.cli.screen import say, say_page
from migrate.errors import NotVisible
from migrate.model.difference import DiffReport
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.world import Need

if TYPE_CHECKING:
    from migrate.observe.session import SparkHandle


@click.command()
@cluster_options
@evidence_options
@spark_options
@output_option
@click.option("--parquet", metavar="FOLDER", type=OUTPUT_FOLDER, help="Write the rows and counts there too.")
def diff(
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    evidence: Evidence,
    output: str,
    parquet: pathlib.Path | None,
) -> int:
    """Compare ZooKeeper with KRaft, field by field.

    Exit code 0: equal, but for differences with a rule; 2: there are others, or something kept changing.
    """
    from migrate.observe.analysis import write_differences
    from migrate.report.diff_report import diff_json, diff_lines

    found, loaded = load_target(playbook, inventory, evidence)
    say("starting Spark and reading both sides: about half a minute", err=True)
    report = compared(found, loaded, evidence)
    if parquet is not None:
        write_differences(report, parquet)
    if output == "json":
        say_page(json.dumps(diff_json(report), indent=1))
    else:
        for line in diff_lines(report):
            say(line)
    return EXIT_CHANGES if report.unexcused or report.unsettled else EXIT_OK


NOT_LIVE: Final = (
    "ZooKeeper was read from files: they keep up with the metadata only where a running server writes them"
)


def compared(
    inventory: Inventory, playbook: Playbook | Unknown, evidence: Evidence, lent: SparkHandle | None = None
) -> DiffReport:
    """The comparison at one offset; on the session that is lent, else on one of its own.

    Raises NotVisible where the two cannot be compared.
    """
    with observing(inventory, playbook, spark=lent is None, evidence=evidence, lent=lent) as observer:
        observer.sources.start_spark()
        world = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF}), {})
    if isinstance(world.diff, Unknown):
        raise NotVisible(
            f"ZooKeeper and KRaft cannot be compared: {world.diff.reason}",
            where=inventory.name,
            why="" if evidence.zookeeper is None else NOT_LIVE,
        )
    return world.diff
