"""`plan`: say exactly what would happen, save it, change nothing."""

from __future__ import annotations

import pathlib
import shlex
import time

import click

from migrate.cli.completion import complete_stage
from migrate.cli.errors import EXIT_CHANGES, exit_code_of
from migrate.cli.options import (
    FILE,
    OUTPUT_FILE,
    Evidence,
    evidence_options,
    observing,
    output_option,
    require_folder,
)
from migrate.errors import UsageWrong
from migrate.model.inventory import Playbook
from migrate.report.plan_verdict import judge


@click.command()
@click.argument("playbook", required=False, type=FILE)
@click.option("--stage", shell_complete=complete_stage, help="Plan this stage alone (it must be the next one).")
@click.option(
    "--to", "to", shell_complete=complete_stage, help="Plan up to this stage.  Default: the last one of the playbook."
)
@click.option("--out", type=OUTPUT_FILE, help="Save the plan there, too; another file is never replaced.")
@click.option("--full", is_flag=True, help="Show every finding, directory and step; equal ones are not folded.")
@evidence_options
@output_option
def plan(
    playbook: pathlib.Path | None,
    stage: str | None,
    to: str | None,
    out: pathlib.Path | None,
    full: bool,
    evidence: Evidence,
    output: str,
) -> int:
    """Plan every change without making any.

    From a bundle the plan is for reading: it is made of what was seen at another time, without secrets (so that its
    fingerprint is not that of a plan that can be applied), and it is not saved but to --out.

    Exit code 0: nothing to do; 1: INCOMPLETE, a check that can block a planned stage could not be made, or neither
    ZooKeeper nor the controllers answer; 2: changes are planned; 3: blocked by findings, or the place where the cluster
    stands in its migration is unknown.
    """
    from migrate.cli.given import playbook_given, playbooks_in
    from migrate.cli.options import load_target
    from migrate.cli.planning import keep, make_plan, require_no_other, save_copy, show, target_stage, tell_of_run

    if stage is not None and to is not None:
        raise UsageWrong("--stage plans one stage alone, --to all up to one", next_step="give one of them")
    if playbook is None and evidence.bundle is None:
        here = playbooks_in(pathlib.Path())
        named = shlex.quote(str(here[0])) if here else "PLAYBOOK"
        raise UsageWrong("name a playbook", next_step=f"kraft-migrate plan {named}")
    if playbook is not None:
        playbook = playbook_given(playbook)
    found, loaded = load_target(playbook, None, evidence)
    if not isinstance(loaded, Playbook):
        raise UsageWrong(
            "the bundle was made without a playbook: name one",
            where=str(evidence.bundle),
            next_step=f"kraft-migrate plan PLAYBOOK --from-bundle {shlex.quote(str(evidence.bundle))}",
        )
    target = target_stage(loaded, stage or to)
    if out is not None:
        require_no_other(out)
    if evidence.live:
        require_folder(pathlib.Path(found.runs))
        tell_of_run(found)
    with observing(found, loaded, evidence=evidence) as observer:
        made = make_plan(
            observer, loaded, target=target, only=stage is not None, created=time.time(), live=evidence.live
        )
    saved = "PLAN (made live: this one is not saved)"
    if evidence.live:
        saved = keep(found, made, out)
    elif out is not None:
        save_copy(out, made, "the plan is not saved")
    show(made, saved, output, full=full)
    return exit_code_of(judge(made).word, ready=EXIT_CHANGES)
