"""`apply`: apply a saved plan.  Run again, it resumes where it stopped."""

from __future__ import annotations

import pathlib
import shlex
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE, account
from migrate.cli.screen import say
from migrate.errors import FileNotReplaced, LockHeld, RunLocked, UsageWrong
from migrate.model.afterwards import after_the_migration
from migrate.model.history import Event
from migrate.model.plan import Plan, PlanKind
from migrate.report.lines import Tone

if TYPE_CHECKING:
    from migrate.run.carry_out import RunFolder


JSON_LINES = click.option(
    "--json-lines",
    is_flag=True,
    help="Each event as a line of JSON on stdout, with the journal's numbers; a person's lines stay on stderr.",
)
ON_EVENT = click.option(
    "--on-event",
    metavar="CMD",
    callback=lambda _, __, text: words_of(text),
    help="Start CMD for each event, with its line of JSON as input; no shell. The run never waits for it.",
)


def words_of(text: str | None) -> tuple[str, ...]:
    """The words of a command, () for none; UsageWrong for what has none, or an open quotation mark."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageWrong(f"--on-event is no command: {error}", next_step="quote its words as in a shell") from error
    if not words:
        raise UsageWrong("--on-event names no command", next_step="name a program: docs/automation.md has examples")
    return words


@click.command()
@click.argument("plan_file", metavar="PLAN", required=False, type=FILE)
@click.option(
    "--confirm",
    default="",
    metavar="FINGERPRINT",
    help="The plan's whole fingerprint: the run is bound to it.  Needed for the point of no return.",
)
@click.option(
    "--confirm-cluster", default="", metavar="NAME", help="The cluster's name, on top; asked for on a terminal."
)
@click.option("--until", default="", metavar="STAGE|STEP", help="Park after that stage or step of the plan.")
@JSON_LINES
@ON_EVENT
def apply(
    plan_file: pathlib.Path | None,
    confirm: str,
    confirm_cluster: str,
    until: str,
    json_lines: bool,
    on_event: tuple[str, ...],
) -> int:
    """Carry out a saved plan, with a proof after every step.

    On a terminal a live board is shown below the lines: steps done, what is waited for, since when, who owns it,
    what comes next. Without one there are plain lines.

    PLAN may also be a run's folder or its id, or a playbook or an inventory of which one plan is left to carry out.

    Safe to run again: it resumes after an interruption.  It never stops the cluster.  Ctrl-C parks at the next safe
    point; a second one stops at once and says what is half done.  SIGTERM does the same, and a closed terminal (SIGHUP)
    parks it.

    Exit code 0: carried out; 3: a gate or a proof stopped it; 4: waits for confirmation or a window, nothing was
    begun; 5: parked at a safe point, or a wait made no progress; 6: the plan is stale; 7: another run holds the
    lock; 10: the lock was lost; 130: parked by Ctrl-C, or stopped by a second one.
    """
    from migrate.cli.given import load_plan, plan_given
    from migrate.plan.parking import last_before

    path = plan_given(plan_file, back=False)
    plan = load_plan(path)
    if plan.kind.rolls_back:
        raise UsageWrong(
            "this plan is a rollback",
            where=str(path),
            next_step=f"kraft-migrate rollback apply {shlex.quote(str(path))}",
        )
    if until:
        last_before(plan.steps, until)
    if plan.irreversible and confirm == plan.fingerprint and not confirm_cluster:
        confirm_cluster = typed_name(plan)
    return carry_out_saved(plan, confirm, confirm_cluster, until=until, json_lines=json_lines, on_event=on_event)


def typed_name(plan: Plan) -> str:
    """The cluster's name as a person types it; "" where there is no terminal to ask on."""
    if not sys.stdin.isatty():
        return ""
    first = next(step.stage.label for step in plan.steps if not step.stage.reversible)
    say(f"No rollback is possible after stage {first} of plan {plan.short}.", err=True)
    name: str = click.prompt("Type the cluster's name to continue", default="", show_default=False, err=True)
    return name


def after_rollback(plan: Plan) -> str:
    """What may be done now: migrate again from the beginning, or continue after a copy that was made again."""
    again = " --stage hybrid" if plan.kind is PlanKind.COPY_AGAIN else ""
    said = "" if again else "; earlier plans are no longer valid"
    return f"kraft-migrate plan {shlex.quote(plan.playbook)}{again}{said}"


def carry_out_saved(
    plan: Plan,
    confirm: str,
    confirm_cluster: str = "",
    *,
    until: str = "",
    json_lines: bool = False,
    on_event: tuple[str, ...] = (),
) -> int:
    """Carry it out with lines of progress, and write its report however it ends."""
    from migrate.cli.progress import EventLines, LineWriter, ProgressLines
    from migrate.observe.sources import Sources
    from migrate.playbook.load import load_inventory, load_playbook
    from migrate.run.carry_out import Options, carry_out, folder_of
    from migrate.run.clock import SystemClock
    from migrate.run.on_event import EventCommand

    inventory = load_inventory(plan.inventory)
    playbook = load_playbook(plan.playbook, inventory)
    folder = folder_of(inventory, plan)
    sources = Sources(inventory, playbook, folder.path / "spark")
    lines = ProgressLines()
    warn = partial(lines.say, tone=Tone.WARN)
    command = EventCommand(on_event, SystemClock(), warn) if on_event else None
    takers: list[Callable[[str], None]] = [LineWriter(sys.stdout)] if json_lines else []
    takers += [] if command is None else [command]
    events = EventLines(plan, folder.journal, *takers) if takers else None

    def untold() -> str:
        """What is left is told first: an interrupt's words, and facts, stand in the journal without having been."""
        if events is not None:
            events.close()
        return "" if command is None else command.close()

    ours = True  # a run that was refused because another one acts leaves that one's report as it is
    options = Options(
        confirm=confirm,
        owner=account(),
        listen=all_of(*([] if events is None else [events]), lines),
        untold=untold,
        confirm_cluster=confirm_cluster,
        say=warn,
        until=until,
    )
    try:
        with lines.following(plan, folder.journal, playbook, lambda: sources.work):
            carry_out(plan, sources, options)
        if plan.ends_migration:
            lines.say(after_the_migration(plan.playbook).line, Tone.TITLE)
        if plan.kind.rolls_back:
            lines.say(f"next: {after_rollback(plan)}", Tone.TITLE)
    except (LockHeld, RunLocked):
        ours = False
        raise
    finally:
        sources.close()
        if ours and events is not None:
            events.close()
        if ours and folder.journal.exists():
            _tell_report(plan, folder)
        if command is not None:
            command.close()
    return EXIT_OK


def _tell_report(plan: Plan, folder: RunFolder) -> None:
    """Write it and say where; where it cannot be written that is said, and hides nothing of how the run ended."""
    from migrate.cli.report import write_reports

    try:
        said = f"report: {write_reports(plan, folder)[0]}"
    except FileNotReplaced as error:
        said = f"no report was written: {error} (when that is fixed: `kraft-migrate report write RUN`)"
    say(said, err=True)


def all_of(*listeners: Callable[[Event], None]) -> Callable[[Event], None]:
    """Tell each event to all, in this order."""

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return tell
