"""The reference of commands is what click knows; each example is a line that its command takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from migrate.cli.command_page import COMMAND, every_command, pages
from migrate.cli.main import EXIT_CODES, cli
from migrate.cli.manual import MANUALS, PROGRAM, examples
from tests.cli.commands import kraft_migrate

DOCS = Path(__file__).parents[2] / "docs"
OWN_JOURNALS = ("rescue", "restore_znodes")  # acts outside a plan
EVERY = dict(every_command())


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_is_what_the_code_says(name: str) -> None:
    """As all generated pages."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], f"docs/{name} is stale: run `{COMMAND}`"


def test_every_command_has_a_manual_and_no_manual_is_of_none() -> None:
    """With an example at least."""
    assert set(MANUALS) == set(EVERY)
    assert all(known.examples for known in MANUALS.values())


def line_of(words: str) -> list[str]:
    """What the program would get: without what a shell does with the rest."""
    return shlex.split(re.split(r" [>|]", words)[0])


@pytest.mark.parametrize("path", sorted(EVERY))
def test_every_example_is_a_line_that_the_command_takes(path: str) -> None:
    """Each argument and option is parsed as click does, but for files that must be there."""
    for words, what in MANUALS[path].examples:
        assert what
        line = line_of(words)
        context = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
        command: click.Command = cli
        while isinstance(command, click.Group):
            name, found, rest = command.resolve_command(context, _named(command, line))
            assert found is not None
            context = click.Context(found, info_name=name, parent=context, **found.context_settings)
            command, line = found, rest
        assert command is EVERY[path], words
        parser = command.make_parser(context)
        values, left, _ = parser.parse_args(list(line))
        assert left == [], words
        for parameter in command.params:
            value = values.get(parameter.name)
            assert value is not None or not parameter.required, (words, parameter.name)
            if isinstance(parameter.type, click.Choice) and isinstance(value, str):
                parameter.type.convert(value, parameter, context)


def _named(group: click.Group, line: list[str]) -> list[str]:
    """`report RUN` is `report write RUN`."""
    return ["write", *line] if group.name == "report" and line[0] not in group.commands else line


@pytest.mark.parametrize("path", sorted(EVERY))
def test_help_shows_examples_files_and_exit_codes_as_they_are_written(path: str) -> None:
    """One line each, not filled up; exit codes last."""
    said = kraft_migrate(*path.split(), "--help").out
    lines = [line.strip() for line in said.splitlines()]
    for line in examples(path):
        assert line in lines
    for name, what in MANUALS[path].files:
        assert name in lines
        assert what in lines
    assert EXIT_CODES in " ".join(said.split())
    assert said.index("Examples:") > said.index("--help")


def test_every_event_that_a_run_writes_has_its_row() -> None:
    """Whoever reads the lines knows all names."""
    files = [path for path in (DOCS.parent / "migrate" / "run").glob("*.py") if path.stem not in OWN_JOURNALS]
    source = "".join(path.read_text() for path in files)
    written = set(re.findall(r'(?:_write|append)\(\s*(?:[\w.]+(?:\(\))?, )?"([a-z-]+)"', source))
    heads = re.findall(r"^\| (`[a-z-]+`(?: / `[a-z-]+`)?) \|", pages()["events.md"], re.MULTILINE)
    rows = set(re.findall(r"[a-z-]+", " ".join(heads)))
    assert {"session", "stage", "intend", "waiting", "conclude", "end"} <= written & rows
    assert written <= rows, written - rows
