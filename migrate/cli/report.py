"""`report`: the report of a run again, its evidence in one file, and whether such a file is whole."""

from __future__ import annotations

import hashlib
import json
import pathlib
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import output_option
from migrate.errors import EvidenceBroken, InputError, NotVisible

if TYPE_CHECKING:
    from migrate.model.approvals import ApprovalPolicy


class ReportGroup(click.Group):
    """`report RUN` is `report write RUN`: a folder is no command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `write` in front of what is no command and no option of the group."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["write", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ReportGroup)
def report() -> None:
    """The report of a run (`report RUN` writes it again), its evidence in one file, and the check of such a file."""


@report.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=pathlib.Path, file_okay=False, exists=True))
@output_option
def write(folder: pathlib.Path, output: str) -> int:
    """Write report.html, report.md and report.json of the run in that folder."""
    from migrate.cli.planning import load_plan
    from migrate.cli.run_report import read_report, write_reports
    from migrate.report.run_json import run_json
    from migrate.run.carry_out import RunFolder

    run = RunFolder(folder)
    plan = load_plan(run.plan)
    if not run.journal.exists():
        raise NotVisible(
            "there is no journal: this plan was never carried out",
            where=str(run.journal),
            next_step=f"kraft-migrate apply {run.plan}",
        )
    if output == "json":
        click.echo(run_json(read_report(plan, run)))
        return EXIT_OK
    for path in write_reports(plan, run):
        click.echo(path)
    return EXIT_OK


@report.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=pathlib.Path, file_okay=False, exists=True))
@click.option("--out", type=click.Path(path_type=pathlib.Path), help="Default: evidence-PLAN.tar in the run's folder.")
@click.option("--sign", "key_file", metavar="KEYFILE", type=click.Path(path_type=pathlib.Path), help="Ed25519 key.")
def evidence(folder: pathlib.Path, out: pathlib.Path | None, key_file: pathlib.Path | None) -> int:
    """What proves how a run went, in one file: plan, approvals, journal, playbook, reports, versions, hashes.

    Backups are in it by their hashes only: they hold secrets.  Hashes find damage; against somebody who writes the
    whole file anew only a signature helps (--sign, and `report verify --key`).
    """
    from migrate.cli.approve import passphrase
    from migrate.cli.planning import load_plan, write_bytes
    from migrate.report import evidence as files
    from migrate.run import approvals
    from migrate.run.carry_out import RunFolder
    from migrate.run.clock import SystemClock

    plan = load_plan(RunFolder(folder).plan)
    members = files.collect(folder, pathlib.Path(plan.playbook), round(SystemClock().now(), 3))
    signature = ""
    if key_file is not None:
        key = approvals.signing_key(key_file, passphrase)
        signature = approvals.sign(key, files.manifest_of(members))
    target = out or folder / f"evidence-{plan.short}.tar"
    raw = files.pack(members, signature)
    write_bytes(target, raw)
    click.echo(f"{target}: {len(members)} files, SHA-256 {hashlib.sha256(raw).hexdigest()}")
    return EXIT_OK


@report.command()
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option("--key", metavar="KEY", help="A public key (ssh-ed25519 AAAA...) that must have signed the file.")
@output_option
def verify(file: pathlib.Path, key: str | None, output: str) -> int:
    """Is an evidence file whole?  Hashes, the plan's fingerprint, the journal's chain, the approvals' signatures.

    Exit code 0: all of it holds; 1: something does not, and it is said what.
    """
    from migrate.report import evidence as files

    try:
        raw = file.read_bytes()
    except OSError as error:
        raise EvidenceBroken(f"it cannot be read: {error.strerror}", where=str(file)) from error
    try:
        members, signature = files.unpack(raw)
    except EvidenceBroken as error:
        raise EvidenceBroken(error.what, where=str(file)) from error
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as scratch:
        found = list(files.checks(members, _policy(members, pathlib.Path(scratch))))
    if key is not None:
        found.append(files.signature_check(members, signature, key))
    elif signature:
        found.append(files.Check("signature", holds=True, said="there is one; --key tells whose"))
    if output == "json":
        rows = [{"check": entry.name, "holds": entry.holds, "said": entry.said} for entry in found]
        click.echo(json.dumps({"whole": all(entry.holds for entry in found), "checks": rows}, indent=1))
    else:
        for entry in found:
            click.echo(f"{'ok' if entry.holds else 'WRONG':<6} {entry.name}: {entry.said}")
    wrong = [entry.name for entry in found if not entry.holds]
    if wrong:
        raise EvidenceBroken(f"it does not hold: {', '.join(wrong)}", where=str(file))
    return EXIT_OK


def _policy(members: Mapping[str, bytes], scratch: pathlib.Path) -> ApprovalPolicy | None:
    """The approvals' part of the playbook in the file; None where it cannot be read."""
    from migrate.playbook.load import load_approvals

    path = scratch / "playbook.yaml"
    path.write_bytes(members.get("playbook.yaml", b""))
    try:
        return load_approvals(path)
    except InputError:
        return None
