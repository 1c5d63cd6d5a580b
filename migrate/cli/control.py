"""`control`: requests to a run in another terminal, through the control file in its folder."""

from __future__ import annotations

import json
import pathlib
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import output_option
from migrate.cli.screen import say, say_page
from migrate.cli.who import account
from migrate.errors import UsageWrong

if TYPE_CHECKING:
    from migrate.run.control import Control

RUN = click.argument("run", metavar="RUN", type=click.Path(path_type=pathlib.Path, exists=True))
REASON = click.option("--reason", default="", help="The reason; it is shown and journalled.")


@click.group()
def control() -> None:
    """Control a run in progress: pause, resume, hold-after, abort, show.  RUN is its folder, or the plan in it.

    The run reads them before every step, and obeys at the next parking point: never with a broker half restarted, never
    before the copy is watched to its end, never with half of the controllers finalized, never while a rollback has left
    the cluster without a controller.
    """


@control.command()
@RUN
@REASON
def pause(run: pathlib.Path, reason: str) -> int:
    """Wait at the next parking point, and hold the lock, until `resume`; the end of a window parks the run."""
    from migrate.run.control import Wish

    return _wish(run, lambda now: replace(now, wish=Wish.PAUSE), reason, "it pauses at the next parking point")


@control.command()
@RUN
@REASON
def resume(run: pathlib.Path, reason: str) -> int:
    """Clear all control requests: no pause, no abort, no hold."""
    from migrate.run.control import Wish

    return _wish(run, lambda now: replace(now, wish=Wish.RUN, hold_after=""), reason, "it resumes")


@control.command()
@RUN
@REASON
def abort(run: pathlib.Path, reason: str) -> int:
    """Stop at the next parking point, once; the cluster stays as it is, and the next `apply` resumes."""
    from migrate.run.control import Wish

    return _wish(run, lambda now: replace(now, wish=Wish.ABORT), reason, "it stops at the next parking point")


@control.command("hold-after")
@RUN
@click.argument("stage")
@REASON
def hold_after(run: pathlib.Path, stage: str, reason: str) -> int:
    """Stop after STAGE, until `resume`."""
    from migrate.model.stage import Stage

    try:
        Stage.from_label(stage)
    except KeyError:
        raise UsageWrong(f"there is no stage {stage!r}: {', '.join(one.label for one in Stage)}") from None
    return _wish(run, lambda now: replace(now, hold_after=stage), reason, f"it stops after stage {stage}")


@control.command()
@RUN
@output_option
def show(run: pathlib.Path, output: str) -> int:
    """Show what is requested of the run, by whom, since when."""
    from migrate.report.wording import moment
    from migrate.run.control import Wish, read

    found = read(folder_of_run(run))
    if output == "json":
        say_page(json.dumps({**asdict(found), "wish": found.wish.value}, indent=1))
        return EXIT_OK
    hold = f", hold after {found.hold_after}" if found.hold_after else ""
    if found.wish is Wish.RUN and not hold:
        say("no request: it runs")
    else:
        say(f"{found.wish.value}{hold}, {found.said}, {moment(found.time)}")
    return EXIT_OK


def folder_of_run(run: pathlib.Path) -> pathlib.Path:
    """The run's folder; UsageWrong where no plan is in it."""
    folder = run if run.is_dir() else run.parent
    if not (folder / "plan.json").exists():
        raise UsageWrong(f"{folder} is no run's folder: there is no plan.json in it")
    return folder


def _wish(run: pathlib.Path, change: Callable[[Control], Control], reason: str, then: str) -> int:
    from migrate.run.control import read, write

    folder = folder_of_run(run)
    wished = change(read(folder))
    who = replace(wished, by=account(), host=socket.gethostname(), time=round(time.time(), 3), reason=reason)
    path = write(folder, who)
    say(f"{path}: {then}")
    return EXIT_OK
