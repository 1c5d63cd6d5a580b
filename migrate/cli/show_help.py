"""`help`: the help of a command, without typing --help behind it."""

from __future__ import annotations

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.screen import say_page


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of a command, as its --help does; without one, the list of all commands."""
    shown = context.find_root()
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{shown.command_path} has no commands of its own", shown)
        name, command, _ = group.resolve_command(shown, [word])
        assert command is not None
        shown = click.Context(command, parent=shown, info_name=name, **command.context_settings)
    say_page(shown.get_help())
    return EXIT_OK
