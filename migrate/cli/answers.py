"""Answers for programs: one envelope around the JSON of every command.

An answer has `schema`, `tool`, `time`, `command`, `exit_code`, and `result`, `error` or both.  In this version the keys
of `result` are repeated beside these, where scripts of earlier versions read them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import click

from migrate import __version__
from migrate.cli.screen import say_page

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

RESULT: Final = "migrate.cli.answers.result"
ASKS: Final = (("-o", "json"), ("--output", "json"))


def give_answer(result: object) -> None:
    """Keep the command's result, a JSON value; it is printed when the command ends, with its exit code."""
    context = click.get_current_context()
    context.meta[RESULT] = (context.command_path.partition(" ")[2], result)


def print_answer(
    context: click.Context, command: str, words: Sequence[str], code: int, error: dict[str, Any] | None = None
) -> None:
    """Print what the command answered, or why it did not, where JSON was asked for."""
    if RESULT in context.meta or (error is not None and _asks_for_json(words)):
        answered, result = context.meta.get(RESULT, (command, None))
        say_page(as_json(answered, result, code, error, indent=1))


def as_json(
    command: str, result: object, code: int | None, error: dict[str, Any] | None = None, indent: int | None = None
) -> str:
    """The envelope; `code` is None while the command runs.  A result that names its schema lends it to the envelope."""
    keys = result if isinstance(result, dict) else {}
    whole = {
        "schema": f"kraft-migrate/{command.replace(' ', '-')}/v1",
        **keys,
        "tool": __version__,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "exit_code": code,
        **({} if result is None else {"result": result}),
        **({} if error is None else {"error": error}),
    }
    return json.dumps(whole, indent=indent, ensure_ascii=True, allow_nan=False)


def _asks_for_json(words: Sequence[str]) -> bool:
    """Does the command line say `-o json`?  It may be one that cannot be parsed."""
    return any(word in ("-ojson", "--output=json") or (word, after) in ASKS for word, after in pairwise([*words, ""]))


def _schemas() -> Traversable:
    from importlib.resources import files

    return files("migrate.cli") / "schemas"


def schema_names() -> list[str]:
    """The commands whose answers have a JSON Schema, such as `directories-verify`."""
    return sorted(file.name.removesuffix(".json") for file in _schemas().iterdir() if file.name.endswith(".json"))


def answer_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of that command's answer: the envelope, with what it has as `result`."""
    from migrate.model import strict_json

    result = strict_json.loads((_schemas() / f"{name}.json").read_bytes())
    text = {"type": "string"}
    parts = dict.fromkeys(("id", "what", "where", "why", "next"), text)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"kraft-migrate {name.replace('-', ' ')} --output json",
        "type": "object",
        "required": ["schema", "tool", "time", "command", "exit_code"],
        "properties": {
            "schema": text,
            "tool": text,
            "time": {"type": "string", "format": "date-time"},
            "command": text,
            "exit_code": {"type": ["integer", "null"]},
            "result": result,
            "error": {"type": "object", "required": list(parts), "properties": parts},
        },
    }
