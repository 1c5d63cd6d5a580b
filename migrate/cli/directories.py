"""`directories`: log directories of every broker, and the ledger: show, inspect, verify, assign, rescue, collector."""

from __future__ import annotations

import click

from migrate.cli.directories_assign import assign
from migrate.cli.directories_inspect import inspect
from migrate.cli.directories_rescue import rescue
from migrate.cli.directories_show import show
from migrate.cli.directories_verify import verify
from migrate.cli.errors import EXIT_OK
from migrate.cli.screen import say_page


@click.group()
def directories() -> None:
    """Log directories: show, inspect, verify, assign, rescue, collector."""


for command in (show, inspect, verify, assign, rescue):
    directories.add_command(command)


@directories.command()
def collector() -> int:
    """Print the collector: one file of Python for hosts where we have no access (copy it, read it, run it there)."""
    from importlib.resources import files

    say_page(files("migrate.hosts").joinpath("collect_disks.py").read_text(encoding="utf-8"), end="")
    return EXIT_OK
