"""The exit codes that a command's help names are those of the table, and those that its code can end with."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator

import click
import pytest

from docs.generate import every_command
from migrate import errors as all_errors
from migrate.checks.words import EXIT_DOCS
from migrate.cli import errors
from migrate.errors import MigrateError

OF_ALL = {0, 1, 64, 130}  # the last line of each help
COMMANDS = {path: command for path, command in every_command() if not isinstance(command, click.Group)}
OWN = {path for path, command in COMMANDS.items() if "Exit code" in (command.help or "")}
DOORS = {  # what other parts raise through them
    "acting_alone": {7, 10},
    "carry_out_saved": {3, 4, 5, 6, 7, 10},
    "no_run_goes_on": {7},
    "exit_code_of": {0, 1, 3},
}
ONE_FOR_BOTH = {"fleet assess": {2}, "fleet diff": {1, 3}}  # `_code` has the other command's answers, too


def helped(path: str) -> set[int]:
    """The codes behind "Exit code" in the command's own text."""
    _, _, text = " ".join((COMMANDS[path].help or "").split()).partition("Exit code ")
    text = re.sub(r"as `apply` does|\b2 min\b", "", text)
    return {int(found) for found in re.findall(r"(?:^|; |, | or | is |else )(\d+)(?=[:,.; ]|$)", text)}


def tabled(path: str) -> set[int]:
    """The codes whose row names the command."""
    return {
        code for code, doc in EXIT_DOCS.items() if re.search(rf"`(?:{re.escape(path)})`[,:]? ?", doc.meaning) and code
    }


def coded(path: str) -> set[int]:
    """The codes of the constants and errors in the command's function, and in what it calls of its own module."""
    callback = COMMANDS[path].callback
    assert callback is not None
    function = inspect.unwrap(callback)
    module = importlib.import_module(function.__module__)
    tree = {
        node.name: node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.FunctionDef)
    }
    seen: set[str] = set()
    return set(_codes(function.__name__, tree, seen)) - ONE_FOR_BOTH.get(path, set())


def _codes(name: str, tree: dict[str, ast.FunctionDef], seen: set[str]) -> Iterator[int]:
    if name in seen or name not in tree:
        return
    seen.add(name)
    for node in ast.walk(tree[name]):
        if isinstance(node, ast.Name):
            if node.id.startswith("EXIT_"):
                yield getattr(errors, node.id)
            elif node.id in DOORS:
                yield from DOORS[node.id]
            elif isinstance(raised := vars(all_errors).get(node.id), type) and issubclass(raised, MigrateError):
                yield from {raised.exit_code} - OF_ALL
            else:
                yield from _codes(node.id, tree, seen)


def test_every_row_is_a_constant_of_the_program() -> None:
    """By name and number, none more."""
    wanted = {value: name for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {code: doc.name for code, doc in EXIT_DOCS.items()} == wanted


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_help_and_table_name_the_same_codes(path: str) -> None:
    """Beside those of every command; a command whose own help names none is in no row."""
    assert helped(path) - OF_ALL == tabled(path) - OF_ALL
    assert tabled(path) & {1, 130} <= helped(path) | {130}


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_help_names_each_code_that_the_command_returns(path: str) -> None:
    """What its own module returns; errors that other parts raise are in the table."""
    assert coded(path) - {0} <= helped(path)
    if path not in OWN:
        assert coded(path) <= {0}
