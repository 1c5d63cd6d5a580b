"""`completion`: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.screen import say_page

PROGRAM = "kraft-migrate"
VARIABLE = "_KRAFT_MIGRATE_COMPLETE"  # where click's own part of the program looks for a completion's request
PLACES = {
    "bash": f"~/.local/share/bash-completion/completions/{PROGRAM}",
    "zsh": f"a folder of $fpath, as _{PROGRAM}",
    "fish": f"~/.config/fish/completions/{PROGRAM}.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(PLACES)))
def completion(shell: str) -> int:
    """Print the script that completes kraft-migrate's commands and options in SHELL.

    bash: write it to ~/.local/share/bash-completion/completions/kraft-migrate; zsh: into a folder of $fpath as
    _kraft-migrate; fish: to ~/.config/fish/completions/kraft-migrate.fish. It calls the program for each completion:
    nothing of a cluster is touched.
    """
    from click.shell_completion import get_completion_class

    from migrate.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None, shell
    script = found(cli, {}, PROGRAM, VARIABLE)
    say_page(script.source_template % script.source_vars())
    return EXIT_OK
