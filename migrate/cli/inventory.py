"""`inventory`: write one from the cluster's own answers."""

from __future__ import annotations

import os
import pathlib
import shlex

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE, OUTPUT_FILE
from migrate.cli.screen import ProgressLine, say, say_page
from migrate.errors import NotVisible, UsageWrong
from migrate.model.secrets import Digester


@click.group()
def inventory() -> None:
    """Inventories: init."""


@inventory.command()
@click.option("--zookeeper", metavar="CONNECT", required=True, help="A connect string, with the chroot.")
@click.option("--name", metavar="NAME", help="What to call the cluster.  [default: its id]")
@click.option(
    "--zookeeper-access",
    "access",
    metavar="FILE",
    type=FILE,
    help="How ZooKeeper lets us in: YAML as under an inventory's `zookeeper_access` (sasl, kerberos, tls), paths "
    "relative to it.",
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ssh", "manual"]),
    default="ssh",
    show_default=True,
    help="Who works the hosts (docs/hosts.md): the host program here or by OpenSSH, or people. What it needs is among "
    "the gaps.",
)
@click.option("--config", default="", metavar="PATH", help="The brokers' server.properties on their hosts.")
@click.option("--unit", default="", metavar="UNIT", help="The brokers' systemd unit on their hosts.")
@click.option("--listener", default="", metavar="NAME", help="The brokers' listener that the tool uses.")
@click.option("--controllers", default="", metavar="HOST[:PORT],...", help="Where the new controllers will run.")
@click.option("--out", type=OUTPUT_FILE, help="Write there instead of to stdout.")
def init(
    zookeeper: str,
    name: str | None,
    access: pathlib.Path | None,
    executor: str,
    config: str,
    unit: str,
    listener: str,
    controllers: str,
    out: pathlib.Path | None,
) -> int:
    """Write an inventory from what the cluster says of itself, with gaps to fill in.  Nothing is changed there.

    A file that exists is never overwritten.
    """
    from migrate.playbook.access import load_zookeeper_access
    from migrate.playbook.proposal import NO_LOGIN, Given, propose_inventory, unregistered
    from migrate.zookeeper.client import access_of, connect
    from migrate.zookeeper.rate_limit import Pace
    from migrate.zookeeper.read import read_view

    if out is not None and out.exists():
        raise UsageWrong(
            "the inventory cannot be written: a file of that name is there",
            where=str(out),
            why="it stays as it is: it may have been filled in",
            next_step="give --out another name",
        )
    login = NO_LOGIN if access is None else load_zookeeper_access(access)
    given = Given(config, unit, listener, tuple(filter(None, controllers.split(","))))
    pace = Pace(None)
    with (
        ProgressLine.showing(lambda: f"reading ZooKeeper, {pace.operations:,} znodes read"),
        connect(zookeeper, access=access_of(login), pace=pace) as client,
    ):
        view = read_view(client, Digester())
    for part in view.malformed:
        raise NotVisible(f"an inventory cannot be written from a damaged tree: {part.problem}", where=part.path)
    text = propose_inventory(view, name or view.cluster_id, executor, login, given)
    if out is None:
        say_page(text, end="")
        return EXIT_OK
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageWrong(f"the inventory cannot be written: {error.strerror}", where=str(out)) from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    say(f"{out}: {len(view.brokers)} brokers; fill in what begins with <fill in, then run")
    say(f"  kraft-migrate playbook lint {shlex.quote(str(out))}")
    if missing := unregistered(view):
        many = "broker is" if len(missing) == 1 else "brokers are"
        say(f"{len(missing)} more {many} named by replicas and not registered now: {missing}")
    return EXIT_OK
