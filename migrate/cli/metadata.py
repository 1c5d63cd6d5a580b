"""`metadata`: KRaft metadata files as lines of JSON (dump), as the state at an offset (image), as Parquet (export).

And against ZooKeeper's files (compare).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from migrate.cli.answers import give_answer
from migrate.cli.options import OUTPUT_FOLDER, output_option
from migrate.cli.screen import ProgressLine, say
from migrate.model.secrets import Digester
from migrate.report.metadata_text import (
    KINDS,
    agreement_json,
    agreement_lines,
    agreement_notes,
    image_json,
    image_lines,
)

if TYPE_CHECKING:
    from migrate.observe.metadata_files import MetadataRead

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def metadata() -> None:
    """Read KRaft metadata files: dump, image, export, compare."""


@metadata.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--show-secrets", is_flag=True, help="Show SCRAM keys, token fields and password configs in clear.")
def dump(paths: tuple[Path, ...], show_secrets: bool) -> None:
    """Print each record of a .log, a .checkpoint, or a metadata directory as one line of JSON.

    Spelled as by Kafka's own kafka-dump-log.sh --cluster-metadata-decoder; control records carry "control": true.
    """
    from migrate.kraft.dump import dump_lines

    _print(dump_lines(paths, show_secrets=show_secrets))


def _print(lines: Iterable[str]) -> None:
    out = sys.stdout.buffer  # UTF-8 whatever the locale says, as Kafka's own text
    try:
        for line in lines:
            out.write(line.encode() + b"\n")
        out.flush()
    except BrokenPipeError:  # the reader has seen enough (`| head`): nothing is wrong, and nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def directories_options(command: F) -> F:
    """Metadata directories, and up to where they are read."""
    command = click.option(
        "--high-watermark", type=click.IntRange(min=0), help="The committed end (exclusive), where you know it."
    )(command)
    command = click.option("--at", type=click.IntRange(min=0), help="Read up to this offset (inclusive).")(command)
    return click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")(command)


def _read(paths: tuple[Path, ...], at: int | None, high_watermark: int | None) -> MetadataRead:
    from migrate.observe.metadata_files import read_metadata

    with ProgressLine.showing(lambda: "decoding the metadata"):
        return read_metadata(paths, Digester(), at=at, high_watermark=high_watermark)


@metadata.command()
@directories_options
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only this kind; may be repeated.")
@output_option
def image(
    paths: tuple[Path, ...], at: int | None, high_watermark: int | None, kinds: tuple[str, ...], output: str
) -> None:
    """Print the state that the metadata directories of one or several controllers hold.

    With the directories of a majority of the controllers, what is committed is proven, and the image ends there; with
    fewer the tail is unproven, and the answer says so.  Counts come first.  Secrets are shown as digests that are equal
    for equal secrets within one answer.
    """
    found = _read(paths, at, high_watermark)
    if output == "json":
        give_answer(image_json(found.view, kinds, found.notes))
    else:
        _print(image_lines(found.view, kinds, found.notes))


@metadata.command()
@directories_options
@click.option("--to", "folder", required=True, type=OUTPUT_FOLDER, help="A folder that does not exist.")
@output_option
def export(paths: tuple[Path, ...], at: int | None, high_watermark: int | None, folder: Path, output: str) -> None:
    """Write that state as Parquet files, a table a kind; the folder appears whole or not at all."""
    from migrate.observe.metadata_files import export_metadata

    found = _read(paths, at, high_watermark)
    tables = export_metadata(found.view, folder)
    if output == "json":
        give_answer({"folder": str(folder), "tables": dict(tables), "notes": list(found.notes)})
        return
    _print(
        [
            *(f"{folder / name}.parquet: {rows} rows" for name, rows in tables.items()),
            *(f"note: {note}" for note in found.notes),
        ]
    )


@metadata.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--zookeeper-files",
    "folders",
    multiple=True,
    required=True,
    metavar="FOLDER",
    help="ZooKeeper's dataDir, and its dataLogDir where it has one; repeatable.",
)
@click.option("--chroot", metavar="PATH", help="Where Kafka's znodes are in those files.")
@output_option
def compare(path: Path, folders: tuple[str, ...], chroot: str | None, output: str) -> int:
    """Say whether a metadata directory and ZooKeeper's files agree, and on which topics they do not.

    By fingerprints of topics, without Spark: seconds for a million partitions.  Everything that is no partition is
    compared value by value.  `diff` compares every field.  Exit code 0: equal, but for differences with a rule; 2: not.
    """
    from migrate.cli.errors import EXIT_CHANGES, EXIT_OK
    from migrate.cli.options import zookeeper_files
    from migrate.kraft.files import find
    from migrate.observe.offline import open_files, read_sides

    files = zookeeper_files(folders, chroot)
    assert files is not None
    metadata_files, tree = find(path), open_files(files)
    with ProgressLine.showing(lambda: "decoding and comparing both sides"):
        sides = read_sides(tree, metadata_files, Digester())
        found, image = sides.agreement(), sides.image
    notes = agreement_notes(sides.zookeeper, image)
    if output == "json":
        give_answer(agreement_json(found, image, tree.zxid(), notes))
    else:
        for line in agreement_lines(found, image, tree.zxid(), notes):
            say(line)
    return EXIT_OK if found.equal else EXIT_CHANGES
