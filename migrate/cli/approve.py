"""`approve`: say yes to exactly one plan, by name; proven where it is signed."""

from __future__ import annotations

import pathlib
import socket
import sys

import click

from migrate.cli.answers import give_answer
from migrate.cli.completion import complete_stage
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE, OUTPUT_FILE, account, output_option, sign_option
from migrate.cli.screen import say_text
from migrate.errors import KeyUnusable, UsageWrong
from migrate.model import strict_json
from migrate.model.approvals import Approval, ApprovalPolicy


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.option("--as", "reviewer", metavar="NAME", help="The reviewer's name in the playbook.  Default: your account's.")
@sign_option
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE",
    shell_complete=complete_stage,
    help="Only for this stage; repeatable.",
)
@click.option("--comment", default="", help="What was looked at.")
@click.option("--out", type=OUTPUT_FILE, help="Write it there, to be carried to the run's folder.")
@output_option
def approve(
    plan_file: pathlib.Path,
    reviewer: str | None,
    key_file: pathlib.Path | None,
    stages: tuple[str, ...],
    comment: str,
    out: pathlib.Path | None,
    output: str,
) -> int:
    """Approve the saved plan PLAN, and no other.

    The approval is bound to the plan's fingerprint and to the sum of its content, as the plan's page shows both: where
    a finding, a word or a figure of it changes, it must be approved again.

    The name is recorded.  Where the playbook has a public key for it (spec.approvals.keys) it must be proven: give the
    private key of the pair, PEM or OpenSSH (ssh-keygen -t ed25519), with --sign.  For a key that ssh-agent or a
    security key holds, and for ECDSA, give its .pub file: ssh-keygen signs.  The approval is a file in the run's
    folder, approvals/; nothing else is changed.
    """
    import time

    from migrate.cli.planning import load_plan
    from migrate.playbook.load import load_inventory, load_playbook
    from migrate.run import approvals
    from migrate.run.carry_out import folder_of

    plan = load_plan(plan_file)
    playbook, inventory = load_playbook(plan.playbook), load_inventory(plan.inventory)
    given_by = account()
    name = reviewer or given_by
    asked = asked_for(playbook.approvals, name, stages, back=plan.kind.rolls_back)
    content, host, now = plan.content, socket.gethostname(), round(time.time(), 3)
    given = Approval(plan.fingerprint, content, name, given_by, host, now, stages, comment)
    if key_file is not None:
        given = signed(given, key_file, playbook.approvals.keys.get(name, ""))
    elif name in playbook.approvals.keys or playbook.approvals.signed:
        raise KeyUnusable(f"an approval of {name} counts only where it is signed", next_step="give --sign KEYFILE")
    path = written(given, folder_of(inventory, plan).path, out)
    if output == "json":
        whole = strict_json.mapping(approvals.to_json(given))
        give_answer({**whole, "file": str(path), "counts_for": asked})
        return EXIT_OK
    worth = "proven by its signature" if given.signature else "recorded, not proven"
    head = f"plan {plan.short} of cluster {plan.cluster}, up to stage {plan.target.label}: approved by {name}"
    say_text(
        "\n".join(
            [head, f"for      {', '.join(asked)}", f"name     {worth}", f"content  {content}", f"written  {path}"]
        )
    )
    return EXIT_OK


def written(given: Approval, folder: pathlib.Path, out: pathlib.Path | None) -> pathlib.Path:
    """Write the approval into the run's folder, or where it was asked for; its path."""
    from migrate.run import approvals

    if out is not None:
        approvals.write(out, given)
        return out
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return approvals.save(folder, given)


def asked_for(policy: ApprovalPolicy, name: str, stages: tuple[str, ...], *, back: bool) -> list[str]:
    """The stages whose rules name this reviewer; UsageWrong where there is none: no yes is void."""
    rules = {stage: rule for stage, rule in policy.rules.items() if (stage == "rollback") == back}
    unknown = [stage for stage in stages if stage not in rules]
    if unknown:
        raise UsageWrong(f"stage {unknown[0]} asks for no approval: {', '.join(rules) or 'none does'}")
    found = [
        stage for stage, rule in rules.items() if name in policy.reviewers(rule) and (not stages or stage in stages)
    ]
    if not found:
        known = sorted({person for rule in rules.values() for person in policy.reviewers(rule)})
        raise UsageWrong(f"{name} is no reviewer of this plan's stages; they are: {', '.join(known) or 'none'}")
    return found


def signed(given: Approval, key_file: pathlib.Path, wanted: str) -> Approval:
    """The approval with its signature; KeyUnusable where the key is another one than the playbook's."""
    from dataclasses import replace

    from migrate.run import approvals

    if not wanted:
        raise KeyUnusable(
            f"the playbook has no public key for {given.reviewer}",
            next_step="write it under spec.approvals.keys, then plan again; or approve without --sign",
        )

    signer = approvals.signer(key_file, passphrase)
    if signer.public != wanted:
        raise KeyUnusable(f"the key is another one than the playbook has for {given.reviewer}", where=str(key_file))
    return replace(given, signature=signer.sign(given.signed_bytes()))


def passphrase() -> str:
    """The passphrase of an encrypted key, as a person types it; KeyUnusable where there is no terminal."""
    if not sys.stdin.isatty():
        raise KeyUnusable("the key is encrypted, and there is no terminal to ask for its passphrase")
    text: str = click.prompt("Passphrase of the key", hide_input=True, err=True)
    return text
