"""`diff`: compare ZooKeeper with KRaft at one offset, field by field, on Spark."""

from __future__ import annotations

import json
import pathlib

import click

from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import Evidence, cluster_options, evidence_options, load_target, output_option, spark_options
from migrate.cli.outputs import OUTPUT_FOLDER
from migrate.cli.screen import say, say_page


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

    Exit code 0: equal, but for differences with a rule; 2: there are others, or something never stood still.
    """
    from migrate.cli.comparing import compared
    from migrate.observe.analysis import write_differences
    from migrate.report.diff_report import diff_json, diff_lines

    found, loaded = load_target(playbook, inventory, evidence)
    say("Spark is being started, and both sides are read: half a minute or so", err=True)
    report = compared(found, loaded, evidence)
    if parquet is not None:
        write_differences(report, parquet)
    if output == "json":
        say_page(json.dumps(diff_json(report), indent=1))
    else:
        for line in diff_lines(report):
            say(line)
    return EXIT_CHANGES if report.unexcused or report.unsettled else EXIT_OK
