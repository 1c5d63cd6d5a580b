"""`manual`: hosts that only people may touch: how a node is looked at, and `could not`."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE
from migrate.cli.screen import say
from migrate.errors import UsageWrong
from migrate.model.outcome import Unknown

if TYPE_CHECKING:
    from migrate.hosts.manual.desk import Desk

inventory_option = click.option(
    "--inventory",
    "-i",
    required=True,
    type=FILE,
    help="The inventory; its executor must be manual.",
)


@click.group()
def manual() -> None:
    """Instructions for people, where the inventory's executor is `manual`.

    `apply` prints each instruction, renders it into RUNS/manual/NN-NODE-EFFECT/, and waits until what it asks is seen.
    """


def _desk(path: pathlib.Path) -> Desk:
    from migrate.hosts.manual.desk import Desk
    from migrate.playbook.load import load_inventory

    inventory = load_inventory(path)
    if inventory.executor != "manual":
        raise UsageWrong(f"its executor is {inventory.executor}: no person is instructed", where=str(path))
    return Desk(inventory)


@manual.command()
@inventory_option
def look(inventory: pathlib.Path) -> int:
    """Render how the collector is run on each node's host; `plan` and `assess` need its answers in the inbox.

    Nothing is changed by it. To be done again whenever newer answers are wanted; where an instruction was given, its
    own line of the collector is the one to run.
    """
    desk = _desk(inventory)
    for node in desk.inventory.nodes:
        missing = " (no answer yet)" if isinstance(desk.answer(node.id), Unknown) else ""
        say(f"node {int(node.id)} at {node.host}: {desk.ask_to_look(node.id)}{missing}")
    say(f"answers go into {desk.inbox.folder}")
    return EXIT_OK


@manual.command("could-not")
@inventory_option
@click.option("--reason", required=True, metavar="TEXT", help="The reason, for the journal and the report.")
def could_not(inventory: pathlib.Path, reason: str) -> int:
    """Say that the open instruction cannot be carried out: the run stops with E-MAN-01 and this reason.

    Run again, `apply` renders the instruction anew; until the collector's answer to the old one is in the inbox, what
    was done of it is unknown.
    """
    waiting = _desk(inventory).open()
    if waiting is None:
        raise UsageWrong("no instruction is open", where=str(inventory))
    if not reason.strip():
        raise UsageWrong("a reason of blanks is none")
    waiting.refuse(reason.strip())
    say(f"{waiting.id}: {waiting.what}: could not: {reason.strip()}")
    return EXIT_OK
