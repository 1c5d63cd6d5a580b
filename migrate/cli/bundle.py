"""`bundle create|show`: everything that was seen in one file, to be handed on and looked at elsewhere."""

from __future__ import annotations

import pathlib
import time
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import TypedDict

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import (
    FILE,
    Evidence,
    bundle_at,
    cluster_options,
    load_target,
    observing,
    output_option,
    refuse_taken,
    require_file,
)
from migrate.cli.screen import say
from migrate.model.outcome import Unknown

if TYPE_CHECKING:
    from migrate.observe.bundle import Bundle


@click.group()
def bundle() -> None:
    """Save everything that was observed in one file, without secrets: create, show.

    `assess`, `plan`, `diff` and `directories show|verify` answer from it with --from-bundle FILE.
    """


@bundle.command()
@click.argument("file", type=FILE)
@cluster_options
@click.option(
    "--disks", type=FILE, metavar="FILE", multiple=True, help="Log directories from the collector's file; repeatable."
)
def create(
    file: pathlib.Path,
    playbook: pathlib.Path | None,
    inventory: pathlib.Path | None,
    disks: tuple[pathlib.Path, ...],
) -> int:
    """Look at the cluster and keep all of it in FILE (tar.gz, mode 0600); nothing that is there is overwritten.

    Secrets are replaced by digests under a key that is thrown away: the file can be handed on.
    """
    from migrate.observe.bundle import refuse_existing, write_bundle
    from migrate.observe.bundled import look_for_bundle

    refuse_taken(file, "kraft-migrate bundle create NAME.tar.gz")
    refuse_existing(str(file))
    require_file(file)
    found, loaded = load_target(playbook, inventory)
    with observing(found, loaded, evidence=Evidence(disks)) as observer:
        world = look_for_bundle(observer)
    _say(_described(write_bundle(str(file), world, int(time.time()))))
    return EXIT_OK


@bundle.command()
@click.argument("file", type=FILE)
@output_option
def show(file: pathlib.Path, output: str) -> int:
    """What FILE holds, what of the cluster was not seen, and when it was made; every hash in it is checked."""
    answer = _described(bundle_at(str(file)))
    if output == "json":
        give_answer(answer)
    else:
        _say(answer)
    return EXIT_OK


def _say(answer: BundleAnswer) -> None:
    made = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(answer["created"]))
    say(f"cluster {answer['cluster']}, seen {made} by kraft-migrate {answer['tool']}")
    for part, row in answer["parts"].items():
        say(f"  {part:<10} {row['bytes']:>12} bytes  {row['seen']}")


class Part(TypedDict):
    """One part of a bundle: its size, and in words how much was seen."""

    bytes: int
    seen: str


class BundleAnswer(TypedDict):
    """What `bundle show` answers; `created` are seconds since the epoch."""

    file: str
    cluster: str
    created: int
    tool: str
    parts: dict[str, Part]


def _described(found: Bundle) -> BundleAnswer:
    parts: dict[str, Part] = {
        part: {"bytes": size, "seen": _seen(getattr(found.world, part), part)} for part, size in found.sizes.items()
    }
    return {
        "file": found.path,
        "cluster": found.world.inventory.name,
        "created": found.created,
        "tool": found.tool,
        "parts": parts,
    }


def _seen(value: Any, part: str) -> str:
    """In a few words: how much of a part is there, and what is unknown."""
    if isinstance(value, Unknown):
        return f"unknown: {value.reason}"
    if part in ("zookeeper", "kraft"):
        return f"{len(value.partitions)} partitions, {len(value.entities)} settings"
    if part in ("disks", "configs", "services"):
        unknown = sorted(int(node) for node, entry in value.items() if isinstance(entry, Unknown))
        return f"{len(value)} nodes" + (f", unknown: {', '.join(map(str, unknown))}" if unknown else "")
    return "here"
