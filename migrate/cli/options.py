"""Options and openings that commands share."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from migrate.errors import UsageWrong
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown

if TYPE_CHECKING:
    from migrate.observe.world import ClusterObserver

F = TypeVar("F", bound=Callable[..., Any])
NO_PLAYBOOK: Final = Unknown("no playbook was given")


def output_option(command: F) -> F:
    """`--output text|json`."""
    return click.option(
        "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to answer."
    )(command)


def cluster_options(command: F) -> F:
    """A playbook as argument, or `--inventory FILE`."""
    command = click.option(
        "--inventory", "inventory", type=click.Path(path_type=pathlib.Path), help="Inventory of the cluster."
    )(command)
    return click.argument("playbook", required=False, type=click.Path(path_type=pathlib.Path))(command)


def load_target(playbook: pathlib.Path | None, inventory: pathlib.Path | None) -> tuple[Inventory, Playbook | Unknown]:
    """The inventory, and the playbook where one was given; UsageWrong where neither was."""
    from migrate.playbook.load import load_inventory, load_playbook, load_playbook_with_inventory

    if playbook is not None and inventory is None:
        loaded, found = load_playbook_with_inventory(playbook)
        return found, loaded
    if inventory is None:
        raise UsageWrong("name a playbook, or an inventory with --inventory FILE")
    return load_inventory(inventory), NO_PLAYBOOK if playbook is None else load_playbook(playbook)


@contextmanager
def observing(inventory: Inventory, playbook: Playbook | Unknown, *, spark: bool = False) -> Iterator[ClusterObserver]:
    """An observer on the real sources, closed at the end."""
    from migrate.observe.sources import Sources
    from migrate.observe.world import ClusterObserver

    with tempfile.TemporaryDirectory(prefix="kraft-migrate-", ignore_cleanup_errors=True) as scratch:
        observer = ClusterObserver(Sources(inventory, playbook, pathlib.Path(scratch) if spark else None))
        try:
            yield observer
        finally:
            observer.close()
