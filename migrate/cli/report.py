"""`report`: the report of a run again, and what it changed in files."""

from __future__ import annotations

import json
import pathlib
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.completion import complete_run
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import FILE, OUTPUT_FOLDER, write_text
from migrate.cli.screen import say
from migrate.errors import JournalDamaged, JudgedUnreadable, NotVisible
from migrate.hosts.files import read_no_follow
from migrate.model import limits
from migrate.model.history import LoadSummary
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.views import ConfigFile
from migrate.report.run_values import Claim, Extra, RunReport, run_json

if TYPE_CHECKING:
    from migrate.report.handover import Handover
    from migrate.run.carry_out import RunFolder


JUDGED: Final = "judged.json"
RUN: Final = click.argument(
    "folder",
    metavar="RUN",
    shell_complete=complete_run,
    type=FILE,
)


class ReportGroup(click.Group):
    """`report RUN` is `report write RUN`: a run is no command's name."""

    default: Final = "write"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default in front of what is no command and no option of the group."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=ReportGroup)
def report() -> None:
    """The report of a run (`report RUN` writes it again), and its changes of files."""


@report.command()
@RUN
def write(folder: pathlib.Path) -> int:
    """Write report.html and report.json of a run.

    RUN is its folder, its id or its plan; of a playbook or an inventory it is the newest run.
    """
    from migrate.cli.given import load_plan, run_given
    from migrate.run.carry_out import RunFolder

    run = RunFolder(run_given(folder))
    plan = load_plan(run.plan)
    if not run.journal.exists():
        raise NotVisible(
            "there is no journal: this plan was never carried out",
            where=str(run.journal),
            next_step=f"kraft-migrate {plan.kind.apply_command} {shlex.quote(str(run.plan))}",
        )
    for path in write_reports(plan, run):
        say(path)
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
    from migrate.cli.given import load_plan, run_given
    from migrate.run.carry_out import RunFolder

    folder = run_given(folder)
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
        JudgedUnreadable: that is damaged.
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
        raise JudgedUnreadable(
            "what a lab judged of this run cannot be read",
            where=str(path),
            why=str(error).splitlines()[0],
        ) from error


def write_reports(plan: Plan, folder: RunFolder, judged: Judged | None = None) -> tuple[pathlib.Path, ...]:
    """Write report.html and report.json into the run's folder; their paths, HTML first.

    What was judged is kept there too, for every later report of this run.

    Raises:
        FileNotReplaced: one cannot be written.
    """
    from migrate.report.run_pages import run_html

    if judged is not None:
        write_text(folder.path / JUDGED, json.dumps(asdict(judged)))
    report = read_report(plan, folder, judged)
    written = []
    for name, text in (
        ("report.html", run_html(report)),
        ("report.json", run_json(report)),
    ):
        path = folder.path / name
        write_text(path, text)
        written.append(path)
    return tuple(written)
