"""`apply`: carry out a saved plan.  Run again, it goes on from where it stopped."""

from __future__ import annotations

import getpass
import pathlib

import click

from migrate.cli.errors import EXIT_OK


@click.command()
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=pathlib.Path))
@click.option("--confirm", default="", metavar="FINGERPRINT", help="Needed for a plan with the point of no return.")
def apply(plan_file: pathlib.Path, confirm: str) -> int:
    """Carry out a saved plan, with a proof after every step.

    Killed or stopped, the same command goes on.  It never stops the cluster.

    Exit code 0: carried out; 3: a gate or a proof stopped it; 4: not confirmed; 5: a wait made no progress; 6: the plan
    is stale; 7: another run holds the lock.
    """
    from migrate.cli.planning import load_plan
    from migrate.cli.progress import ProgressLines
    from migrate.cli.run_report import write_reports
    from migrate.observe.sources import Sources
    from migrate.playbook.load import load_inventory, load_playbook
    from migrate.run.carry_out import Options, carry_out, folder_of

    plan = load_plan(plan_file)
    inventory, playbook = load_inventory(plan.inventory), load_playbook(plan.playbook)
    folder = folder_of(inventory, plan)
    sources = Sources(inventory, playbook, folder.path / "spark")
    try:
        carry_out(plan, sources, Options(confirm=confirm, owner=getpass.getuser(), listen=ProgressLines()))
    finally:
        sources.close()
        if folder.journal.exists():
            paths = write_reports(plan, folder)
            click.echo(f"report: {paths[0]}", err=True)
    return EXIT_OK
