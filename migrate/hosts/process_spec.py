"""What the supervisor starts: one JSON file a process, written by whoever lays out the cluster.

Secrets never stand in it: argv and environment of a process are there for everybody on the host to read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import ProcessSpecUnreadable
from migrate.hosts.files import read_no_follow, replace_file
from migrate.model import strict_json
from migrate.model.strict_json import Each

SUFFIX: Final = ".process.json"
SHAPE: Final = {
    **dict.fromkeys(("name", "directory", "log", "output", "config"), str),
    "argv": [str],
    "format_argv": [str],
    "environment?": Each(str),
}


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process: its name (`broker-0`, `zookeeper`), node id where it has one, and how it is started.

    `log` is the program's own log file, `output` takes stdout and stderr; `format_argv` is the start of a
    `kafka-storage format` command ((): the node needs none).  All paths are absolute.
    """

    name: str
    node: int | None
    argv: tuple[str, ...]
    directory: str
    log: str
    output: str
    config: str
    environment: dict[str, str] = field(default_factory=dict)
    format_argv: tuple[str, ...] = ()


def write_spec(folder: Path, spec: ProcessSpec) -> None:
    """Replace the description of a process (a running one is not touched by that)."""
    replace_file(str(folder / (spec.name + SUFFIX)), (json.dumps(asdict(spec), indent=1) + "\n").encode())


def read_spec(path: Path) -> ProcessSpec:
    """The description in that file.

    Raises:
        ProcessSpecUnreadable: no such file, or not one of ours.
    """
    try:
        data = strict_json.mapping(read_no_follow(str(path)), SHAPE, surrogates=True)
        data["argv"], data["format_argv"] = tuple(data["argv"]), tuple(data["format_argv"])
        return ProcessSpec(**data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProcessSpecUnreadable("no readable description of a process", where=str(path), why=str(error)) from error


def read_specs(folder: Path) -> dict[str, ProcessSpec]:
    """All descriptions in the folder, by name."""
    specs = (read_spec(path) for path in sorted(folder.glob("*" + SUFFIX)))
    return {spec.name: spec for spec in specs}
