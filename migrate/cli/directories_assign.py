"""`directories assign`: send a broker's true directories to the controller."""

from __future__ import annotations

import pathlib

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import cluster_options, load_target, observing
from migrate.cli.screen import say
from migrate.errors import UsageWrong
from migrate.model.words import plural


@click.command()
@click.argument("broker", type=int)
@cluster_options
@click.option("--yes", is_flag=True, help="Send; without it only what would be sent is shown.")
def assign(broker: int, playbook: pathlib.Path | None, inventory: pathlib.Path | None, yes: bool) -> int:
    """Send a broker's true directories (AssignReplicasToDirs), where registration and disk prove them.

    Exit code 7: another run holds the lock.
    """
    from migrate.kafka.controller import ActiveController
    from migrate.model.ids import NodeId
    from migrate.model.outcome import Unknown
    from migrate.observe.ledgers import stands
    from migrate.run.carry_out import acting_alone
    from migrate.run.clock import SystemClock
    from migrate.run.drive import LOOK, MOST, Driver, to_send

    found, loaded = load_target(playbook, inventory)
    most = MOST if isinstance(loaded, Unknown) else loaded.assignments_per_request
    if broker not in {int(node.id) for node in found.brokers}:
        raise UsageWrong(f"there is no broker {broker} in the inventory", where=found.path)
    with observing(found, loaded) as observer:
        world = observer.observe(LOOK, {})
        pending, (_, finalized) = to_send(world.ledger, broker), stands(world)
        for directory, rows in pending.items():
            say(f"directory {directory}: {plural(len(rows), 'replica')}")
        if not pending:
            say("nothing to send")
        elif yes:
            purpose = f"directories assign {broker}"
            with acting_alone(observer.sources, purpose, zookeeper=not finalized) as lock:
                driver = Driver(observer, ActiveController(found), SystemClock(), lock.still_ours, most=most)
                say(driver.drive(NodeId(broker)))
        else:
            say("nothing was sent: give --yes to send")
    return EXIT_OK
