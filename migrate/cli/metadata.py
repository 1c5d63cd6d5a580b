"""`metadata dump`: KRaft metadata files as lines of JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click


@click.group()
def metadata() -> None:
    """Read KRaft metadata files: dump."""


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
