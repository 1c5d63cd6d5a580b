"""`lab break` and `lab mend`: disks, brokers, controllers and links of a lab, broken and mended while it runs."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.cli.screen import say

if TYPE_CHECKING:
    from migrate.lab.cluster import Lab

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_DIRECTORY: Final = "kraft-migrate-lab"
HOWS: Final = ("gone", "emptied", "replaced", "unreadable", "read-only", "full")


def dir_option(command: F) -> F:
    """`--dir DIR`."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=pathlib.Path),
        default=DEFAULT_DIRECTORY,
        show_default=True,
        help="The lab's folder, with every file of the cluster.",
    )(command)


def _open(directory: pathlib.Path) -> Lab:
    from migrate.lab.cluster import Lab

    return Lab.open(directory)


@click.group("break", short_help="Break a disk, a broker, a controller or a link of the lab.")
def break_() -> None:
    """Break a part of the lab while it runs, to see what becomes of it.

    `lab mend` takes it back.  Nothing of a disk is deleted: its folder waits as DIR.broken.
    """


@click.group(short_help="Repair what `lab break` broke.")
def mend() -> None:
    """Repair what `lab break` broke."""


# -- disks -------------------------------------------------------------------------------------------------------
@break_.command("disk", short_help="Break a log directory of a broker.")
@click.argument("broker", type=int)
@click.argument("disk", type=int)
@click.option(
    "--how",
    type=click.Choice(HOWS),
    default=HOWS[0],
    show_default=True,
    help="gone: a file in its place. emptied: an empty folder. replaced: a new disk with another directory.id. "
    "unreadable: all is there, and meta.properties cannot be read. read-only, full: a copy in memory (root).",
)
@dir_option
def break_disk(broker: int, disk: int, how: str, directory: pathlib.Path) -> int:
    """Break log directory DISK (its place in log.dirs, the first is 0) of broker BROKER.

    A running broker notices within five seconds, when it writes its checkpoints: in migration mode it halts, in KRaft
    mode it continues without the directory.
    """
    from migrate.lab import faults

    folder = faults.break_disk(_open(directory), broker, disk, faults.DiskFault(how))
    say(f"broken ({how}): {folder}")
    say(f"its content waits in {faults.set_aside(folder)}")
    say(f"repair: kraft-migrate lab mend disk {broker} {disk} --dir {directory}")
    return 0


@mend.command("disk", short_help="Put a broken disk's folder back, or a new disk in its place.")
@click.argument("broker", type=int)
@click.argument("disk", type=int)
@click.option(
    "--new", is_flag=True, help="A new, empty disk: `status` says what it needs. The old one stays aside as DIR.old."
)
@dir_option
def mend_disk(broker: int, disk: int, new: bool, directory: pathlib.Path) -> int:
    """Put the folder of log directory DISK of broker BROKER back, with everything that was in it.

    Kafka takes a directory that failed back only when the broker starts again.
    """
    from migrate.lab import faults
    from migrate.model.views import Running

    found = _open(directory)
    if new:
        folder = faults.new_disk(found, broker, disk)
        say(f"new and empty: {folder}")
        say(f"what it needs: kraft-migrate status --inventory {found.inventory_path}")
        return 0
    folder = faults.repair_disk(found, broker, disk)
    say(f"whole again: {folder}")
    if isinstance(found.supervisor.state(faults.broker_name(found, broker)), Running):
        words = f"lab break broker {broker} --dir {directory}`, then `lab mend broker {broker} --dir {directory}"
        say(f"broker {broker} runs without it until it is started again: `{words}`")
    return 0


# -- processes ---------------------------------------------------------------------------------------------------
@break_.command("broker")
@click.argument("broker", type=int)
@dir_option
def break_broker(broker: int, directory: pathlib.Path) -> int:
    """Kill broker BROKER (SIGKILL), as a host that loses power."""
    from migrate.lab import faults

    found = _open(directory)
    faults.break_process(found, faults.broker_name(found, broker))
    say(f"broker {broker} was killed; repair: kraft-migrate lab mend broker {broker} --dir {directory}")
    return 0


@mend.command("broker")
@click.argument("broker", type=int)
@dir_option
def mend_broker(broker: int, directory: pathlib.Path) -> int:
    """Start broker BROKER again, with the file that is there."""
    from migrate.lab import faults

    found = _open(directory)
    faults.repair_process(found, faults.broker_name(found, broker))
    say(f"broker {broker} is started; see kraft-migrate lab status --dir {directory}")
    return 0


@break_.command("controller")
@click.argument("controller", type=int)
@dir_option
def break_controller(controller: int, directory: pathlib.Path) -> int:
    """Kill controller CONTROLLER (SIGKILL)."""
    from migrate.lab import faults

    found = _open(directory)
    faults.break_process(found, faults.controller_name(found, controller))
    say(f"controller {controller} was killed; repair: kraft-migrate lab mend controller {controller} --dir {directory}")
    return 0


@mend.command("controller")
@click.argument("controller", type=int)
@dir_option
def mend_controller(controller: int, directory: pathlib.Path) -> int:
    """Start controller CONTROLLER again."""
    from migrate.lab import faults

    found = _open(directory)
    faults.repair_process(found, faults.controller_name(found, controller))
    say(f"controller {controller} is started; see kraft-migrate lab status --dir {directory}")
    return 0


# -- links -------------------------------------------------------------------------------------------------------
@break_.command("link", short_help="Cut a broker off the controllers, or hold back some of its requests.")
@click.argument("broker", type=int)
@click.option(
    "--hold",
    "keys",
    type=click.IntRange(0, 32767),
    multiple=True,
    metavar="KEY",
    help="Hold back requests with that API key alone, 73 is AssignReplicasToDirs; repeatable. Without it: cut.",
)
@dir_option
def break_link(broker: int, keys: tuple[int, ...], directory: pathlib.Path) -> int:
    """Break the way of broker BROKER to the controllers.  The lab must have been made by `lab up --proxy`."""
    from migrate.lab import faults

    faults.break_link(_open(directory), broker, frozenset(keys))
    what = f"requests with key {', '.join(map(str, keys))} are held back" if keys else "the link is cut"
    say(f"broker {broker}: {what}; repair: kraft-migrate lab mend link {broker} --dir {directory}")
    return 0


@mend.command("link")
@click.argument("broker", type=int)
@dir_option
def mend_link(broker: int, directory: pathlib.Path) -> int:
    """Pass everything of broker BROKER on again, what was held back first."""
    from migrate.lab import faults

    faults.repair_link(_open(directory), broker)
    say(f"broker {broker}: its requests reach the controllers")
    return 0
