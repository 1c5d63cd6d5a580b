"""`rollback plan|apply`: roll back to ZooKeeper mode or to fewer directories, with the same engine as forward."""

from __future__ import annotations

import pathlib
import shlex
import time

import click

from migrate.cli.apply import JSON_LINES, ON_EVENT
from migrate.cli.errors import EXIT_BLOCKED, EXIT_CHANGES, EXIT_OK
from migrate.cli.options import FILE, OUTPUT_FILE, output_option, require_folder
from migrate.errors import UsageWrong
from migrate.model.inventory import Playbook
from migrate.report.change_summary import changes_nothing
from migrate.report.plan_text import gives_command


@click.group()
def rollback() -> None:
    """Roll back to ZooKeeper mode, from any state before finalize, half-done ones included."""


@rollback.command("plan", short_help="Plan the rollback without changing anything.")
@click.argument("playbook", type=FILE)
@click.option("--out", type=OUTPUT_FILE, help="Save the plan there, too; another file is never replaced.")
@click.option(
    "--copy-again", is_flag=True, help="No rollback: only leave a copy that is stuck for good, with a fresh quorum."
)
@click.option(
    "--discard-differences",
    is_flag=True,
    help="Discard each difference between ZooKeeper and the metadata, by name; ZooKeeper's side stays.",
)
@click.option("--full", is_flag=True, help="Show every finding, directory and step; equal ones are not folded.")
@output_option
def plan_back(
    playbook: pathlib.Path,
    out: pathlib.Path | None,
    copy_again: bool,
    discard_differences: bool,
    full: bool,
    output: str,
) -> int:
    """Plan the rollback from the cluster's current state without changing anything.

    PLAYBOOK may also be an inventory, or a run's id, its folder or its plan.

    The state is found from the cluster itself: no journal is needed.  Every file's change is shown; a file is restored
    from a copy that is proven to be its own of before, or the plan is refused.

    In dual write ZooKeeper is compared with the metadata, field by field. A difference blocks the plan, with its name,
    cause and remedy: the rollback would keep what ZooKeeper has. With --discard-differences the plan lists each of them
    as discarded; its fingerprint covers the list, and any other difference still stops the rollback.

    With a DirectoryPlaybook the rollback removes its directories again, broker by broker, while they hold no replica.
    With a ProtocolPlaybook it restores the brokers' files from before, while no migration has begun.

    Exit code 0: nothing to undo; 2: changes are planned; 3: NOT READY, for the reasons that `status` has as well,
    differences block it, no rollback exists, or a part of it is not visible.
    """
    from migrate.cli.given import playbook_given
    from migrate.cli.options import load_target, observing
    from migrate.cli.planning import keep, make_rollback_plan, require_no_other, show, tell_of_run

    if copy_again and discard_differences:
        raise UsageWrong("--copy-again gives nothing up: take one of the two options")
    found, loaded = load_target(playbook_given(playbook), None)
    assert isinstance(loaded, Playbook)
    if out is not None:
        require_no_other(out)
    require_folder(pathlib.Path(found.runs))
    tell_of_run(found)
    with observing(found, loaded, spark=not (loaded.of_directories or loaded.of_protocol)) as observer:
        made = make_rollback_plan(
            observer,
            loaded,
            created=time.time(),
            copy_again=copy_again,
            discard_differences=discard_differences,
        )
    show(made, keep(found, made, out), output, full=full)
    if not gives_command(made, end=True):
        return EXIT_BLOCKED
    return EXIT_OK if changes_nothing(made) else EXIT_CHANGES


@rollback.command("apply", short_help="Carry out a saved rollback plan, with a proof after every step.")
@click.argument("plan_file", metavar="PLAN", required=False, type=FILE)
@click.option("--confirm", default="", metavar="FINGERPRINT", help="The plan's whole fingerprint: always needed.")
@JSON_LINES
@ON_EVENT
def apply_back(plan_file: pathlib.Path | None, confirm: str, json_lines: bool, on_event: tuple[str, ...]) -> int:
    """Carry out a saved rollback plan, with a proof after every step.

    PLAN may also be a run's folder or its id, or a playbook or an inventory of which one plan is left to carry out.

    Safe to run again: it resumes after an interruption.  Afterwards the cluster can be migrated again.

    Exit code 0: carried out; 3: a gate or a proof stopped it; 4: not confirmed; 5: parked, or a wait made no progress;
    6: the plan is stale; 7: another run holds the lock; 10: the lock was lost.
    """
    from migrate.cli.apply import carry_out_saved
    from migrate.cli.given import load_plan, plan_given

    path = plan_given(plan_file, back=True)
    plan = load_plan(path)
    if not plan.kind.rolls_back:
        raise UsageWrong(
            "this plan goes forward", where=str(path), next_step=f"kraft-migrate apply {shlex.quote(str(path))}"
        )
    return carry_out_saved(plan, confirm, json_lines=json_lines, on_event=on_event)
