"""Writes the report of a run: HTML, Markdown and JSON beside the journal."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from migrate.cli.outputs import write_text
from migrate.errors import JournalDamaged
from migrate.model.history import LoadSummary
from migrate.model.plan import Plan
from migrate.playbook.load import load_inventory
from migrate.report.run_html import run_html
from migrate.report.run_markdown import run_markdown
from migrate.report.run_report import build
from migrate.report.run_values import Claim, Extra, RunReport, run_json
from migrate.run import journal as journals
from migrate.run.carry_out import RunFolder


def read_report(
    plan: Plan, folder: RunFolder, load: LoadSummary | None = None, claims: Sequence[Claim] = ()
) -> RunReport:
    """The report of the journal as it stands; a damaged journal is said in it, and shown as far as it holds."""
    inventory = load_inventory(plan.inventory)
    roles = {str(int(node.id)): "broker" for node in inventory.brokers}
    roles.update({str(int(node.id)): "controller" for node in inventory.controllers})
    try:
        reading = journals.read(folder.journal)
        events, intact, said = reading.events, True, "a torn last line was left out" if reading.torn else ""
    except JournalDamaged as error:
        events, intact, said = (), False, str(error)
    extra = Extra(journal_intact=intact, journal=said, roles=roles, claims=tuple(claims))
    return build(plan, events, load, extra)


def write_reports(
    plan: Plan, folder: RunFolder, load: LoadSummary | None = None, claims: Sequence[Claim] = ()
) -> tuple[pathlib.Path, ...]:
    """Write report.html, report.md and report.json into the run's folder; their paths, HTML first.

    Raises:
        FileNotReplaced: one cannot be written.
    """
    report = read_report(plan, folder, load, claims)
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
