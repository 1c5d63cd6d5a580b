"""`diff`: compare ZooKeeper with KRaft at one offset, field by field, on Spark."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from migrate.checks.stored_values import compare_applied
from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import (
    OUTPUT_FOLDER,
    Evidence,
    cluster_options,
    evidence_options,
    load_target,
    observing,
    output_option,
    spark_given,
    spark_options,
)
from migrate.cli.screen import say, say_text
from migrate.model.difference import NOTHING_COMPARED, DiffReport
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.world import Need
from migrate.report.diff_report import diff_json, diff_lines

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
    from migrate.observe.analysis import require_no_differences, write_differences

    found, loaded = load_target(playbook, inventory, evidence)
    spark_given()  # wrong usage ends here
    if parquet is not None:
        require_no_differences(parquet)
    report = compared(found, loaded, evidence, err=output == "json")
    if parquet is not None:
        write_differences(report, parquet)
    if output == "json":
        give_answer(diff_json(report))
    else:
        for line in diff_lines(report):
            say(line)
    return EXIT_CHANGES if report.unexcused or report.unsettled else EXIT_OK


def compared(
    inventory: Inventory,
    playbook: Playbook | Unknown,
    evidence: Evidence,
    lent: SparkHandle | None = None,
    *,
    err: bool = True,
) -> DiffReport:
    """The comparison at one offset; on the session that is lent, else on one of its own.

    What is wrong with a live cluster is said first: there, or with `err` on standard error.

    Raises NotVisible where the two cannot be compared, or nothing was.
    """
    from migrate.checks.problems import NEEDS, headline, problems
    from migrate.run.past_runs import by_journals

    with observing(inventory, playbook, spark=lent is None, evidence=evidence, lent=lent) as observer:
        observer.sources.start_spark()
        wanted = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DIFF, Need.APPLIED})
        world = observer.observe(wanted | NEEDS if evidence.live else wanted, by_journals(inventory))
        if evidence.live and (wrong := headline(problems(world))):
            say_text(wrong, err=err)
    found = world.diff
    if not isinstance(found, Unknown) and found.is_empty:
        found = Unknown(NOTHING_COMPARED)
    if isinstance(found, Unknown):
        from migrate.observe.analysis import cannot_compare

        raise cannot_compare(found, inventory)
    return compare_applied(found, world)
