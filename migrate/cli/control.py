"""`control`: requests to a run in another terminal, through the control file in its folder."""

from __future__ import annotations

import pathlib
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from migrate.cli.answers import give_answer
from migrate.cli.completion import complete_run, complete_stage
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import account, output_option, stage_named
from migrate.cli.screen import say
from migrate.errors import UsageWrong
from migrate.report.wording import moment

if TYPE_CHECKING:
    from migrate.run.control import Control

RUN = click.argument(
    "run", metavar="RUN", type=click.Path(path_type=pathlib.Path, exists=True), shell_complete=complete_run
)
REASON = click.option("--reason", default="", help="The reason; it is shown and journalled.")


@click.group()
def control() -> None:
    """Control a run in progress: pause, resume, hold-after, abort, show.  RUN is its folder, or the plan in it.

    The run reads them before every step, and obeys at the next parking point: never with a broker half restarted, never
    before the copy is watched to its end, never with half of the controllers finalized, never while a rollback has left
    the cluster without a controller.
    """


def _add(name: str, request: str, then: str, text: str) -> None:
    """The command that makes one request."""

    @control.command(name, help=text)
    @RUN
    @REASON
    def command(run: pathlib.Path, reason: str) -> int:
        from migrate.run.control import Request

        def change(now: Control) -> Control:
            clear = request == Request.RUN
            return replace(now, request=Request(request), hold_after="" if clear else now.hold_after)

        return _request(run, change, reason, then)


_add(
    "pause",
    "pause",
    "it pauses at the next parking point",
    "Wait at the next parking point, and hold the lock, until `resume`; the end of a window parks the run.",
)
_add("resume", "run", "it resumes", "Clear all control requests: no pause, no abort, no hold.")
_add(
    "abort",
    "abort",
    "it stops at the next parking point",
    "Stop at the next parking point, once; the cluster stays as it is, and the next `apply` resumes.",
)


@control.command("hold-after")
@RUN
@click.argument("stage", shell_complete=complete_stage)
@REASON
def hold_after(run: pathlib.Path, stage: str, reason: str) -> int:
    """Stop after STAGE, until `resume`."""
    stage_named(stage)
    return _request(run, lambda now: replace(now, hold_after=stage), reason, f"it stops after stage {stage}")


@control.command()
@RUN
@output_option
def show(run: pathlib.Path, output: str) -> int:
    """Show what is requested of the run, by whom, since when."""
    from migrate.run.control import Request, read

    found = read(folder_of_run(run))
    if output == "json":
        give_answer({**asdict(found), "request": found.request.value, "wish": found.request.value})
        return EXIT_OK
    hold = f", hold after {found.hold_after}" if found.hold_after else ""
    if found.request is Request.RUN and not hold:
        say("no request: it runs")
    else:
        say(f"{found.request.value}{hold}, {found.said}, {moment(found.time)}")
    return EXIT_OK


def folder_of_run(run: pathlib.Path) -> pathlib.Path:
    """The run's folder; UsageWrong where no plan is in it."""
    folder = run if run.is_dir() else run.parent
    if not (folder / "plan.json").exists():
        raise UsageWrong(f"{folder} is no run's folder: there is no plan.json in it")
    return folder


def _request(run: pathlib.Path, change: Callable[[Control], Control], reason: str, then: str) -> int:
    from migrate.run.control import read, write

    folder = folder_of_run(run)
    requested = change(read(folder))
    who = replace(requested, by=account(), host=socket.gethostname(), time=round(time.time(), 3), reason=reason)
    path = write(folder, who)
    say(f"{path}: {then}")
    return EXIT_OK
