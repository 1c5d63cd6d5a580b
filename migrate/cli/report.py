"""`report`: write the report of a run again, from its plan and journal."""

from __future__ import annotations

import pathlib

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import output_option
from migrate.errors import NotVisible


@click.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=pathlib.Path, file_okay=False, exists=True))
@output_option
def report(folder: pathlib.Path, output: str) -> int:
    """Write report.html, report.md and report.json of the run in that folder."""
    from migrate.cli.planning import load_plan
    from migrate.cli.run_report import read_report, write_reports
    from migrate.report.run_json import run_json
    from migrate.run.carry_out import RunFolder

    run = RunFolder(folder)
    plan = load_plan(run.plan)
    if not run.journal.exists():
        raise NotVisible(
            "there is no journal: this plan was never carried out",
            where=str(run.journal),
            next_step=f"kraft-migrate apply {run.plan}",
        )
    if output == "json":
        click.echo(run_json(read_report(plan, run)))
        return EXIT_OK
    for path in write_reports(plan, run):
        click.echo(path)
    return EXIT_OK
