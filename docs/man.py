"""Write a man page for each command, from the command's own help: `python docs/man.py FOLDER`.

They are part of a release (docs/releasing.md), and are not kept in the repository.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).parents[1]
if not __package__:  # as a program: its own folder is on the path, and the repository is not
    sys.path.insert(0, str(ROOT))

from docs.generate import every_command  # noqa: E402 - after the path is set
from migrate import __version__  # noqa: E402
from migrate.cli.examples import MANUALS, PROGRAM, examples  # noqa: E402
from migrate.cli.main import COMMANDS, EXIT_CODES, cli  # noqa: E402


def man_pages() -> dict[str, str]:
    """File name -> whole text: the program's page, and one for each command that does something."""
    commands = dict(every_command())
    found = {_file(""): "\n".join([*_head("", cli), *_list(commands), *_exit_codes()]) + "\n"}
    for path, command in commands.items():
        parts = (*_head(path, command), *_examples(path), *_files(path), *_exit_codes(), *_see_also())
        found[_file(path)] = "\n".join(parts) + "\n"
    return found


def _file(path: str) -> str:
    return f"{_name(path)}.1"


def _name(path: str) -> str:
    return "-".join([PROGRAM, *path.split()])


def _summary(command: click.Command) -> str:
    sentence = re.split(r"(?<=\.)\s", inspect.cleandoc(command.help or ""), maxsplit=1)[0]
    return " ".join(sentence.split()).rstrip(".")


def _head(path: str, command: click.Command) -> Iterator[str]:
    with click.Context(command, info_name=f"{PROGRAM} {path}".strip()) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        options = [
            record
            for entry in command.get_params(context)
            if isinstance(entry, click.Option) and (record := entry.get_help_record(context)) is not None
        ]
    yield f'.TH "{_name(path).upper()}" "1" "" "{PROGRAM} {__version__}" "{PROGRAM}"'
    yield ".ad l"
    yield from (".SH NAME", f"{_text(_name(path))} \\- {_text(_summary(command))}")
    yield from (".SH SYNOPSIS", f".B {_text(f'{PROGRAM} {path}'.strip())}", _text(usage))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(inspect.cleandoc(command.help or "").partition("\f")[0])
    yield ".SH OPTIONS"
    for names, meaning in options:
        yield from (".TP", f".B {_text(names)}", _text(" ".join(meaning.split())))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs are filled; one that click must not wrap keeps its line ends, as in the help."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        else:
            yield _text(" ".join(paragraph.split()))


def _list(commands: dict[str, click.Command]) -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, (_, _, what) in COMMANDS.items():
        own = [_name(path) for path in commands if path.split()[0] == name]
        yield from (".TP", f".B {_text(name)}", _text(f"{what} See {', '.join(f'{page}(1)' for page in own)}."))


def _examples(path: str) -> Iterator[str]:
    if lines := examples(path):
        yield from (".SH EXAMPLES", ".nf", *map(_text, lines), ".fi")


def _files(path: str) -> Iterator[str]:
    if files := MANUALS[path].files:
        yield ".SH FILES"
        for name, what in files:
            yield from (".TP", f".B {_text(name)}", _text(what))


def _exit_codes() -> Iterator[str]:
    yield from (".SH EXIT STATUS", _text(EXIT_CODES))


def _see_also() -> Iterator[str]:
    yield from (".SH SEE ALSO", f".BR {_text(PROGRAM)} (1)")


def _text(text: str) -> str:
    """The text as roff shows it: no character of it is an instruction, and hyphens can be searched and copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def write(folder: Path) -> None:
    """All pages into that folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in man_pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
