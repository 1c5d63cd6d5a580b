"""`playbook lint|schema|show`: check a file, print its schema, show its values."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
from typing_extensions import TypedDict

from migrate.cli.answers import Problem, give_answer
from migrate.cli.completion import complete_kind
from migrate.cli.errors import EXIT_ERROR, EXIT_OK, as_values, render
from migrate.cli.options import FILE, output_option
from migrate.cli.screen import say, say_page, say_text
from migrate.errors import DocumentInvalid, InputError, MigrateError, UsageWrong
from migrate.model.inventory import Inventory, Playbook
from migrate.report.wording import printable

if TYPE_CHECKING:
    from migrate.playbook.shown import Shown


@click.group()
def playbook() -> None:
    """Playbooks, inventories and accepted differences: lint, schema, show."""


LISTED: Final = 12  # lines of faults that are alike
Found = tuple[pathlib.Path, MigrateError]


def _alike(problems: Sequence[Found]) -> list[list[Found]]:
    """The same faults of many nodes together: what is said differs in numbers alone."""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for file, problem in problems:
        said = (re.sub(r"[0-9]+", "0", text) for text in (problem.what, problem.why, problem.next_step))
        groups.setdefault((str(file), problem.id, *said), []).append((file, problem))
    return list(groups.values())


class LintProblem(Problem):
    """One problem, and the file that it is in."""

    file: str


class LintAnswer(TypedDict):
    """What `playbook lint` answers; `notes` are of files without a problem: what may not be meant."""

    ok: bool
    problems: list[LintProblem]
    notes: dict[str, list[str]]


@playbook.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@output_option
def lint(files: tuple[pathlib.Path, ...], output: str) -> int:
    """Check files, each with its line and column; a playbook is held against the inventory it names, if that is there.

    Faults that are alike, such as a gap of thirty brokers, are said once, with their lines; JSON has each.

    Exit code 0: no problem; 1: there is one.
    """
    from migrate.playbook.load import lint as read_and_compared

    problems: list[tuple[pathlib.Path, MigrateError]] = []
    right: dict[pathlib.Path, tuple[str, ...]] = {}
    for file in files:
        try:
            right[file] = read_and_compared(file)
        except InputError as error:
            problems += [(file, one) for one in (error.problems if isinstance(error, DocumentInvalid) else [error])]
    for _, problem in problems:  # the advice of other commands is this command
        problem.next_step = problem.next_step.partition("; `kraft-migrate playbook lint FILE`")[0]
    if output == "json":
        rows: list[LintProblem] = [{"file": str(file), **as_values(problem)} for file, problem in problems]
        notes = {str(file): list(told) for file, told in right.items() if told}
        give_answer(LintAnswer(ok=not rows, problems=rows, notes=notes))
    else:
        for file, told in right.items():
            alone = any("not compared" in one for one in told)
            say(printable("; ".join([f"{file}: {'ok by itself' if alone else 'ok'}", *told])))
        for group in _alike(problems):
            (_, first), *others = group
            say_text(render(first))
            if others:
                places = [problem.where.rsplit(":", 2)[-2] if ":" in problem.where else "" for _, problem in others]
                listed = ", ".join(places[:LISTED]) + ", ..." * (len(places) > LISTED)
                say_text(f"  also   {len(others)} more like it, in line{'s' * (len(others) > 1)} {listed}")
    return EXIT_ERROR if problems else EXIT_OK


@playbook.command()
@click.argument("kind", default="MigrationPlaybook", shell_complete=complete_kind)
def schema(kind: str) -> int:
    """Print the JSON Schema of KIND, for editors and scripts.

    KIND is MigrationPlaybook, DirectoryPlaybook, ProtocolPlaybook, Inventory, AcceptedDifferences or Fleet;
    for the JSON output of a command it is that command, such as status or directories-verify.
    """
    from migrate.cli.answers import answer_schema, schema_names
    from migrate.playbook.load import KINDS, json_schema

    if kind in KINDS:
        found = json_schema(kind)
    elif kind in schema_names():
        found = answer_schema(kind)
    else:
        raise click.UsageError(f"no kind {kind!r}: one of {', '.join([*KINDS, *schema_names()])}")
    say_page(json.dumps(found, indent=2))
    return EXIT_OK


@playbook.command()
@click.argument("file", type=FILE)
@output_option
def show(file: pathlib.Path, output: str) -> int:
    """What FILE comes to: every default written out with where each value comes from, every path resolved."""
    from migrate.cli.given import load_plan
    from migrate.playbook.document import SAVED_PLAN, read_kind
    from migrate.playbook.load import kind_of, load_inventory, load_playbook
    from migrate.playbook.shown import shown

    found: Playbook | Inventory
    if read_kind(file) == SAVED_PLAN:
        raise UsageWrong(
            "this is a saved plan, not a playbook",
            where=str(file),
            next_step=f"kraft-migrate playbook show {shlex.quote(load_plan(file).playbook)}; what is planned is in "
            f"{file.with_suffix('.txt')}",
        )
    if (kind := kind_of(file)).endswith("Playbook"):
        found = load_playbook(file)
        if output == "text":
            say_text("\n".join(map(printable, _table(shown(file)))))
            return EXIT_OK
    elif kind == "Inventory":
        found = load_inventory(file)
    else:
        raise click.UsageError(f"{file} is of kind {kind}: show takes a playbook or an inventory")
    resolved = _resolved(found)
    if output == "json":
        values = [asdict(entry) for entry in shown(file)] if kind != "Inventory" else []
        give_answer({"kind": kind, **resolved, "values": values})
    else:
        say_text("\n".join(map(printable, _lines(resolved))))
    return EXIT_OK


def _resolved(found: Playbook | Inventory) -> dict[str, Any]:
    """The value as plain data: stages and policies by name.  Secrets are paths, so nothing is hidden."""
    plain = asdict(found)
    if isinstance(found, Playbook):
        plain["stage_windows"] = {stage.label: name for stage, name in found.stage_windows.items()}
        plain["new_directories"] = {str(int(node)): list(paths) for node, paths in found.new_directories.items()}
        plain["stages"] = [stage.label for stage in found.stages]
        plain["default_policy"] = found.default_policy.name.lower()
        plain["broker_policies"] = {str(int(node)): p.name.lower() for node, p in found.broker_policies.items()}
    return plain


def _table(rows: Sequence[Shown]) -> list[str]:
    """Key, value, origin in columns."""
    wide = max(len(row.key) for row in rows)
    long = min(60, max(len(row.value) for row in rows))
    return [f"{row.key:<{wide}}  {row.value:<{long}}  ({row.origin})" for row in rows]


def _lines(value: Any, indent: int = 0) -> list[str]:
    """Nested data as indented `name: value` lines."""
    lines: list[str] = []
    for name, entry in value.items():
        pad = "  " * indent
        if isinstance(entry, dict) and entry:
            lines += [f"{pad}{name}:", *_lines(entry, indent + 1)]
        elif isinstance(entry, list | tuple) and entry and isinstance(entry[0], dict):
            lines.append(f"{pad}{name}:")
            for item in entry:
                lines.append(
                    f"{pad}  - {', '.join(f'{key}={text}' for key, text in item.items() if text not in (None, ''))}"
                )
        elif isinstance(entry, list | tuple):
            lines.append(f"{pad}{name}: {', '.join(map(str, entry)) or '-'}")
        else:
            lines.append(f"{pad}{name}: {'-' if entry in (None, '', {}) else entry}")
    return lines
