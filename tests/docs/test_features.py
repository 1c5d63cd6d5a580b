"""No command, option, code, key, event or claim is lost unnoticed."""

from __future__ import annotations

import click
import pytest

from migrate.cli.main import cli
from tests.features import KEPT, features


def test_no_feature_of_the_kept_list_is_lost() -> None:
    """`python -m tests features` names each difference; `--write` accepts them."""
    lost = {*KEPT.read_text(encoding="utf-8").splitlines()} - {*features()}
    assert lost == set()


@pytest.mark.slow
def test_listing_the_features_leaves_the_commands_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Click keeps a command's help option once it is made; help tests of the same process would see that one."""
    for _, command in commands():
        monkeypatch.setattr(command, "_help_option", None)
    features()
    assert [name for name, command in commands() if getattr(command, "_help_option", None) is not None] == []


def commands() -> list[tuple[str, click.Command]]:
    """Each command with its name."""
    found: list[tuple[str, click.Command]] = []
    waiting: list[tuple[str, click.Command]] = [("kraft-migrate", cli)]
    while waiting:
        name, command = waiting.pop()
        found.append((name, command))
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = ((word, command.get_command(context, word)) for word in command.list_commands(context))
            waiting += [(f"{name} {word}", entry) for word, entry in inner if entry is not None]
    return found
