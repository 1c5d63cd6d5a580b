"""`report`: the report of a run again, what it changed in files, its evidence, and whether such a file is whole."""

from __future__ import annotations

import hashlib
import json
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.answers import give_answer
from migrate.cli.completion import complete_run
from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
from migrate.cli.options import FILE, OUTPUT_FILE, OUTPUT_FOLDER, output_option, require_file, sign_option, write_text
from migrate.cli.screen import say
from migrate.errors import EvidenceBroken, InputError, JournalDamaged, NotVisible
from migrate.hosts.files import read_no_follow, replace_file
from migrate.model import limits
from migrate.model.approvals import ApprovalPolicy
from migrate.model.history import LoadSummary
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.views import ConfigFile
from migrate.report.run_values import Claim, Extra, RunReport, run_answer, run_json

if TYPE_CHECKING:
    from migrate.report.evidence import Check
    from migrate.report.handover import Handover
    from migrate.run.carry_out import RunFolder


JUDGED: Final = "judged.json"
RUN: Final = click.argument(
    "folder",
    metavar="RUN",
    shell_complete=complete_run,
    type=click.Path(path_type=pathlib.Path, file_okay=False, exists=True),
)


class ReportGroup(click.Group):
    """`report RUN` is `report write RUN`: a folder is no command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `write` in front of what is no command and no option of the group."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["write", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ReportGroup)
def report() -> None:
    """The report of a run (`report RUN` writes it again), its changes of files, its evidence, and the check of that."""


@report.command()
@RUN
@output_option
def write(folder: pathlib.Path, output: str) -> int:
    """Write report.html, report.md and report.json of the run in that folder."""
    from migrate.cli.planning import load_plan
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
        give_answer(run_answer(read_report(plan, run)))
        return EXIT_OK
    for path in write_reports(plan, run):
        say(path)
    return EXIT_OK


@report.command()
@RUN
@click.option("--out", type=OUTPUT_FILE, help="Default: evidence-PLAN.tar in the run's folder.")
@sign_option
def evidence(folder: pathlib.Path, out: pathlib.Path | None, key_file: pathlib.Path | None) -> int:
    """What proves how a run went, in one file: plan, approvals, journal, playbook, reports, versions, hashes.

    Backups are in it by their hashes only: they hold secrets.  Hashes find damage; against somebody who writes the
    whole file anew only a signature helps (--sign, and `report verify --key`).
    """
    from migrate.cli.approve import passphrase
    from migrate.cli.planning import load_plan
    from migrate.report import evidence as files
    from migrate.run import approvals
    from migrate.run.carry_out import RunFolder
    from migrate.run.clock import SystemClock

    plan = load_plan(RunFolder(folder).plan)
    target = out or folder / f"evidence-{plan.short}.tar"
    require_file(target)
    members = files.collect(folder, pathlib.Path(plan.playbook), round(SystemClock().now(), 3))
    signature = ""
    if key_file is not None:
        signature = approvals.signer(key_file, passphrase).sign(files.manifest_of(members))
    raw = files.pack(members, signature)
    replace_file(str(target), raw)
    say(f"{target}: {len(members)} files, SHA-256 {hashlib.sha256(raw).hexdigest()}")
    return EXIT_OK


@report.command()
@RUN
@click.option("--out", type=OUTPUT_FOLDER, required=True, help="The folder for the files of each node.")
def changes(folder: pathlib.Path, out: pathlib.Path) -> int:
    """Write what the migration changed in each node's file, for the templates of configuration management.

    NODE.patch is the unified diff, NODE.yml the same as variables of Ansible: keys with their values, and keys that are
    gone. RUN is the run that carried out the stage prepare: it kept the files from before. The files of now are read on
    their hosts. Secrets are hidden in both.
    """
    from migrate.cli.planning import load_plan
    from migrate.run.carry_out import RunFolder

    plan = load_plan(RunFolder(folder).plan)
    found = list(_handed_over(plan, folder))
    out.mkdir(parents=True, exist_ok=True)
    for one in found:
        patch = one.patch()
        if not patch:
            say(f"{one.node} on {one.host}: {one.path} is as it was")
            continue
        for suffix, text in (("patch", patch), ("yml", one.variables())):
            write_text(out / f"{one.node}.{suffix}", text)
            say(out / f"{one.node}.{suffix}")
    return EXIT_OK


def _handed_over(plan: Plan, folder: pathlib.Path) -> Iterator[Handover]:
    """Each node's file then and now; NotVisible where one of the two is not there."""
    from migrate.observe.sources import Sources
    from migrate.playbook.load import load_inventory
    from migrate.report.handover import Handover
    from migrate.run.effects import copy_in

    inventory = load_inventory(plan.inventory)
    sources = Sources(inventory, Unknown("a look at files needs none"), None)
    try:
        files = sources.configs()
    finally:
        sources.close()
    for node in inventory.nodes:
        now = files.get(node.id, Unknown("it was not looked at"))
        name = f"{'broker' if isinstance(node, BrokerNode) else 'controller'}-{int(node.id)}"
        if not isinstance(now, ConfigFile):
            why = now.reason if isinstance(now, Unknown) else "there is no such file"
            raise NotVisible(f"the file of {name} on {node.host} cannot be seen", where=node.config, why=why)
        before = b""
        if isinstance(node, BrokerNode):
            path = copy_in(folder, node.id, now.path)
            try:
                before = read_no_follow(str(path), limit=limits.most("configuration"))
            except OSError as error:
                raise NotVisible(
                    f"the file of {name} from before the migration is not in this run's folder",
                    where=str(path),
                    why=error.strerror or "",
                    next_step="name the run that carried out the stage prepare",
                ) from error
        yield Handover(name, node.host, now.path, before, now.raw)


@report.command()
@click.argument("file", type=FILE)
@click.option("--key", metavar="KEY", help="A public key (ssh-ed25519 AAAA...) that must have signed the file.")
@output_option
def verify(file: pathlib.Path, key: str | None, output: str) -> int:
    """Verify an evidence file: hashes, the plan's fingerprint, the journal's chain, the approvals' signatures.

    Exit code 0: all of it holds, and the key that you named signed it.  1: something does not hold.  2: all of it fits
    together, and nothing is proven: whoever wrote the file could have written all of it.  Name the key with --key.
    """
    from migrate.report import evidence as files

    try:
        raw = read_no_follow(str(file), limit=limits.most("evidence"))
    except OSError as error:
        raise EvidenceBroken(f"it cannot be read: {error.strerror}", where=str(file)) from error
    try:
        members, signature = files.unpack(raw)
    except EvidenceBroken as error:
        raise EvidenceBroken(error.what, where=str(file)) from error
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as scratch:
        found = list(files.checks(members, _policy(members, pathlib.Path(scratch))))
    if key is not None:
        found.insert(0, files.signature_check(members, signature, key))
    wrong = [entry.name for entry in found if not entry.holds]
    if output == "json":
        rows = [{"check": entry.name, "holds": entry.holds, "said": entry.said, "told": entry.told} for entry in found]
        give_answer({"whole": not wrong, "proven": key is not None and not wrong, "checks": rows})
    else:
        _say_checks(found, signed=bool(signature), proven=key is not None and not wrong)
    if wrong:
        raise EvidenceBroken(f"it does not hold: {', '.join(wrong)}", where=str(file))
    return EXIT_OK if key is not None else EXIT_CHANGES


def _say_checks(found: Sequence[Check], *, signed: bool, proven: bool) -> None:
    """What was verified here first; then, apart, what the file says of itself."""
    for entry in found:
        say(f"{'ok' if entry.holds else 'WRONG':<6} {entry.name}: {entry.said}")
    say()
    say(
        "The file says of itself:" if proven else "The file says of itself (unproven: its writer could have put it in):"
    )
    for entry in found:
        if entry.told:
            say(f"       {entry.name}: {entry.told}")
    if not proven:
        say()
        say(
            "Nothing is proven: "
            + ("name the key that must have signed it with --key" if signed else "the file is not signed")
        )


def _policy(members: Mapping[str, bytes], scratch: pathlib.Path) -> ApprovalPolicy | None:
    """The approvals' part of the playbook in the file; None where it cannot be read."""
    from migrate.playbook.load import load_approvals

    path = scratch / "playbook.yaml"
    path.write_bytes(members.get("playbook.yaml", b""))
    try:
        return load_approvals(path)
    except InputError:
        return None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a lab knows of a run beside its journal: the load, further claims, further blind spots."""

    load: LoadSummary | None = None
    claims: tuple[Claim, ...] = ()
    blind_spots: tuple[str, ...] = ()


def read_report(plan: Plan, folder: RunFolder, judged: Judged | None = None) -> RunReport:
    """The report of the journal as it stands; a damaged journal is said in it, and shown as far as it holds.

    Without `judged` it has what a lab judged of this run before, if there is such.

    Raises:
        EvidenceBroken: that is damaged.
    """
    from migrate.playbook.load import load_inventory
    from migrate.report.run_report import build
    from migrate.run import journal as journals

    judged = _judged_before(folder) if judged is None else judged
    inventory = load_inventory(plan.inventory)
    roles = {str(int(node.id)): "broker" for node in inventory.brokers}
    roles.update({str(int(node.id)): "controller" for node in inventory.controllers})
    try:
        reading = journals.read(folder.journal)
        events, intact, said = reading.events, True, "a torn last line was left out" if reading.torn else ""
    except JournalDamaged as error:
        events, intact, said = (), False, str(error)
    extra = Extra(
        journal_intact=intact, journal=said, roles=roles, claims=judged.claims, blind_spots=judged.blind_spots
    )
    return build(plan, events, judged.load, extra)


def _judged_before(folder: RunFolder) -> Judged:
    from pydantic import TypeAdapter, ValidationError

    path = folder.path / JUDGED
    try:
        return TypeAdapter(Judged).validate_json(read_no_follow(str(path)))
    except FileNotFoundError:
        return Judged()
    except (OSError, ValidationError) as error:
        raise EvidenceBroken(
            "what a lab judged of this run cannot be read",
            where=str(path),
            why=str(error).splitlines()[0],
            next_step="delete the file to have a report of the journal alone",
        ) from error


def write_reports(plan: Plan, folder: RunFolder, judged: Judged | None = None) -> tuple[pathlib.Path, ...]:
    """Write report.html, report.md and report.json into the run's folder; their paths, HTML first.

    What was judged is kept there too, for every later report of this run.

    Raises:
        FileNotReplaced: one cannot be written.
    """
    from migrate.report.run_pages import run_html, run_markdown

    if judged is not None:
        write_text(folder.path / JUDGED, json.dumps(asdict(judged)))
    report = read_report(plan, folder, judged)
    written = []
    for name, text in (
        ("report.html", run_html(report)),
        ("report.md", run_markdown(report)),
        ("report.json", run_json(report)),
    ):
        path = folder.path / name
        write_text(path, text)
        written.append(path)
    return tuple(written)
