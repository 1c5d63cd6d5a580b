"""Where a command writes what was asked for: a place that takes no file is refused before the work is done."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any, Final

import click

from migrate.errors import SystemRefused, UsageWrong
from migrate.hosts.files import replace_file

BLOCK: Final = b"\0" * 4096


class OutputPath(click.Path):
    """A file that the command writes, or with `folder` a folder that it makes, with those above it."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(path_type=pathlib.Path)
        self.folder = folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path.  Raises UsageWrong and SystemRefused as `require_room` and `require_folder` do."""
        path = super().convert(value, param, ctx)
        assert isinstance(path, pathlib.Path)
        if ctx is None or not ctx.resilient_parsing:
            (require_folder if self.folder else require_file)(path)
        return path


def require_file(path: pathlib.Path) -> None:
    """A file can be written there, in a folder that is there.

    Raises:
        UsageWrong: there is no such folder, or something else than a file has that name.
        SystemRefused: the folder takes no file: a right is missing, it is read-only, or it has no room.
    """
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageWrong(f"there is no folder {parent}", where=str(path))
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageWrong("no file can be written there: it is a link, a folder or a device", where=str(path))
    _require_room(parent, path)


def require_folder(path: pathlib.Path) -> None:
    """A folder can be made there, and those above it that are not there; or it is there, and takes files.

    Raises:
        UsageWrong: something else than a folder is in its way.
        SystemRefused: as `require_file`.
    """
    here = path.absolute()
    while not here.exists() and not here.is_symlink():
        here = here.parent
    if not here.is_dir():
        raise UsageWrong("no folder can be made there: a file is in its way", where=str(here))
    _require_room(here, path)


def _require_room(folder: pathlib.Path, path: pathlib.Path) -> None:
    """A small file without a name is written there, and is gone."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(BLOCK)
    except OSError as error:
        raise SystemRefused(
            f"nothing can be written there: {error.strerror or error}",
            where=str(path),
            why="it is asked before the work, which would be lost",
        ) from error


OUTPUT_FILE: Final = OutputPath()
OUTPUT_FOLDER: Final = OutputPath(folder=True)


def write_text(path: pathlib.Path, text: str) -> None:
    """Whole or not at all; FileNotReplaced where it cannot be written, and then no draft of it stays."""
    replace_file(str(path), text.encode())
