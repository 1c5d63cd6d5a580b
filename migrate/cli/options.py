"""Options and openings that commands share."""

from __future__ import annotations

import functools
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
    from migrate.observe.bundle import Bundle
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


class Evidence:
    """What is taken from files instead of looking: disks from the collector's, or everything from a bundle."""

    def __init__(self, disks: tuple[pathlib.Path, ...] = (), bundle: pathlib.Path | None = None) -> None:
        if disks and bundle is not None:
            raise UsageWrong("a bundle has its disks in it: give --disks or --from-bundle")
        self.disks = disks
        self.bundle = bundle
        self._read: Bundle | None = None

    @property
    def given(self) -> bool:
        """Is there any?"""
        return bool(self.disks) or self.bundle is not None

    def read_bundle(self) -> Bundle | None:
        """The bundle, read once; None where none was given."""
        if self.bundle is not None and self._read is None:
            from migrate.observe.bundle import read_bundle

            self._read = read_bundle(str(self.bundle))
        return self._read


NONE: Final = Evidence()


def evidence_options(command: F) -> F:
    """`--disks FILE` (more than once) and `--from-bundle FILE`, given to the command as one `evidence`."""

    @functools.wraps(command)
    def with_evidence(
        *args: Any, disks: tuple[pathlib.Path, ...], from_bundle: pathlib.Path | None, **words: Any
    ) -> Any:
        return command(*args, evidence=Evidence(disks, from_bundle), **words)

    file = click.Path(path_type=pathlib.Path)
    with_bundle = click.option(
        "--from-bundle", type=file, metavar="FILE", help="Look at nothing: take everything from that bundle."
    )(with_evidence)
    return click.option(
        "--disks",
        type=file,
        metavar="FILE",
        multiple=True,
        help="Take log directories from the collector's file (or a folder of them) instead of looking; repeatable.",
    )(with_bundle)  # type: ignore[return-value] # a wrapper of the same shape, but for what it takes away


def load_target(
    playbook: pathlib.Path | None, inventory: pathlib.Path | None, evidence: Evidence = NONE
) -> tuple[Inventory, Playbook | Unknown]:
    """The inventory, and the playbook where one was given; UsageWrong where neither was.

    A bundle has its own inventory, and maybe its playbook: one that is given is used instead.
    """
    from migrate.playbook.load import load_inventory, load_playbook, load_playbook_with_inventory

    if (bundle := evidence.read_bundle()) is not None:
        found = bundle.world.inventory if inventory is None else load_inventory(inventory)
        return found, bundle.world.playbook if playbook is None else load_playbook(playbook)
    if playbook is not None and inventory is None:
        loaded, found = load_playbook_with_inventory(playbook)
        return found, loaded
    if inventory is None:
        raise UsageWrong("name a playbook, or an inventory with --inventory FILE")
    return load_inventory(inventory), NO_PLAYBOOK if playbook is None else load_playbook(playbook)


@contextmanager
def observing(
    inventory: Inventory, playbook: Playbook | Unknown, *, spark: bool = False, evidence: Evidence = NONE
) -> Iterator[ClusterObserver]:
    """An observer on the real sources, or on what was kept of them; closed at the end."""
    from migrate.observe.sources import Sources
    from migrate.observe.world import ClusterObserver

    with tempfile.TemporaryDirectory(prefix="kraft-migrate-", ignore_cleanup_errors=True) as scratch:
        folder = pathlib.Path(scratch) if spark else None
        bundle = evidence.read_bundle()
        if bundle is not None:
            from migrate.observe.bundled import BundledSources

            observer = ClusterObserver(BundledSources(inventory, playbook, folder, bundle))
        else:
            observer = ClusterObserver(Sources(inventory, playbook, folder))
        if evidence.disks:
            from migrate.hosts.collected import read_all

            known = [node.id for node in inventory.nodes]
            observer.sources.use_collected(read_all(map(str, evidence.disks), known))
        try:
            yield observer
        finally:
            observer.close()
