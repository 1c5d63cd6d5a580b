"""`manual`: hosts that only people may touch: what is waited for, how a node is looked at, and `could not`."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE, output_option
from migrate.cli.screen import say, say_text
from migrate.errors import UsageWrong
from migrate.model.outcome import Unknown

if TYPE_CHECKING:
    from migrate.hosts.manual.instructions import Desk

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

    `apply` renders each effect into RUNS/manual/NN-NODE-EFFECT/ and waits until what it asks is seen.
    """


def _desk(path: pathlib.Path) -> Desk:
    from migrate.hosts.manual.instructions import Desk
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
        say(f"node {int(node.id)} at {node.host}: {desk.ask_to_look(node.id)}")
    say(f"answers go into {desk.inbox.folder}")
    return EXIT_OK


@manual.command()
@inventory_option
@output_option
def show(inventory: pathlib.Path, output: str) -> int:
    """Which instruction is waited for, which metadata logs are to be brought, and which nodes' answers are missing."""
    from migrate.hosts.manual.instructions import ManualMetadata

    desk = _desk(inventory)
    waiting = desk.open()
    answers = {int(node.id): desk.answer(node.id) for node in desk.inventory.nodes}
    absent = {node: answer.reason for node, answer in answers.items() if isinstance(answer, Unknown)}
    logs = ManualMetadata(desk).requests()
    if output == "json":
        found = None if waiting is None else {
            "id": waiting.id, "node": int(waiting.node), "host": waiting.host, "what": waiting.what,
            "since": waiting.since, "folder": str(waiting.folder), "must_be_seen": [p.text() for p in waiting.proofs],
        }  # fmt: skip
        told = {"open": found, "unknown_nodes": absent, "logs_to_bring": [str(folder) for folder in logs]}
        give_answer(told)
        return EXIT_OK
    text = "no instruction is open"
    if waiting is not None:
        text = (waiting.folder / "README.txt").read_text(encoding="utf-8", errors="backslashreplace")
    say_text(text)
    for folder in logs:
        say(f"a metadata log is to be brought: {folder / 'README.txt'}")
    for reason in absent.values():
        say(reason)
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
