"""The one way to the screen.

What a cluster, a host or a file says may hold control characters, line breaks and bidi overrides.  `say` prints one
line, so that nothing in it can pass for a line of ours; `say_page` prints a page whose lines are ours, each made
visible.  No other module of the command line prints (ruff's TID251 holds that).
"""

from __future__ import annotations

import click

from migrate.report.wording import printable


def say(line: object = "", *, err: bool = False) -> None:
    """One line: line breaks in it are spelled out like every other control character."""
    click.echo(printable(str(line)), err=err)  # noqa: TID251 - the one place


def say_page(text: str, *, err: bool = False, end: str = "\n") -> None:
    """A page that we made: line by line, what foreign values have in it is spelled out."""
    page = "\n".join(map(printable, text.split("\n")))
    click.echo(page + end, err=err, nl=False)  # noqa: TID251 - the one place
