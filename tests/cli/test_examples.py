"""Every command has a manual, and each example is a line that its command takes."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from docs.generate import every_command
from migrate.cli.examples import MANUALS, PROGRAM, examples
from migrate.cli.main import EXIT_CODES, cli
from tests.cli.commands import kraft_migrate

EVERY = dict(every_command())


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
    """Examples and files one line each, not filled up; exit codes last."""
    said = kraft_migrate(*path.split(), "--help").out
    lines = [line.strip() for line in said.splitlines()]
    for line in examples(path):
        assert line in lines
    for name, what in MANUALS[path].files:
        assert name in lines
        assert what in " ".join(said.split())
    assert EXIT_CODES in " ".join(said.split())
    assert said.index("Examples:") > said.index("--help")
