"""Answers for programs: one envelope around the JSON of every command.

An answer has `schema`, `tool`, `time`, `command`, `exit_code`, and `result`, `error` or both.  In this version the keys
of `result` are repeated beside these, where scripts of earlier versions read them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from enum import IntEnum
from itertools import pairwise
from typing import Any, Final, NotRequired

import click
from typing_extensions import TypedDict

from migrate import __version__
from migrate.cli.screen import say_page

RESULT: Final = "migrate.cli.answers.result"
ASKS: Final = (("-o", "json"), ("--output", "json"))
TYPES: Final = {  # of what each command answers as `result`: `playbook schema` says it as JSON Schema
    "assess": "migrate.report.assessment:AssessAnswer",
    "bundle-show": "migrate.cli.bundle:BundleAnswer",
    "diff": "migrate.report.diff_report:DiffAnswer",
    "directories-inspect": "migrate.model.kafka_start:Start",
    "directories-rescue": "migrate.cli.rescue_answer:RescueAnswer",
    "directories-show": "migrate.report.directories:ShowAnswer",
    "directories-verify": "migrate.cli.directories:VerifyAnswer",
    "doctor": "migrate.cli.doctor:DoctorAnswer",
    "explain": "migrate.checks.pages:ExplainAnswer",
    "fleet-assess": "migrate.report.fleet:FleetAssessed",
    "fleet-diff": "migrate.report.fleet:FleetCompared",
    "plan": "migrate.report.plan_json:PlanAnswer",
    "playbook-lint": "migrate.cli.playbook:LintAnswer",
    "playbook-show": "migrate.playbook.shown:ShowAnswer",
    "rollback-plan": "migrate.report.plan_json:PlanAnswer",
    "status": "migrate.report.status:StatusAnswer",
    "unlock": "migrate.cli.unlock:UnlockAnswer",
}


class Problem(TypedDict):
    """Why a command failed: the parts of the error's text."""

    id: str
    what: str
    where: str
    why: str
    next: str


class Envelope(TypedDict):
    """What stands around every answer."""

    schema: str
    tool: str
    time: str
    command: str
    exit_code: int
    result: NotRequired[Any]
    error: NotRequired[Problem]


def give_answer(result: object) -> None:
    """Keep the command's result, of its type in `TYPES`; it is printed when the command ends, with its exit code."""
    context = click.get_current_context()
    context.meta[RESULT] = (context.command_path.partition(" ")[2], result)


def print_answer(
    context: click.Context, command: str, words: Sequence[str], code: int, error: Problem | None = None
) -> None:
    """Print what the command answered, or why it did not, where JSON was asked for."""
    if RESULT in context.meta or (error is not None and _asks_for_json(words)):
        answered, result = context.meta.get(RESULT, (command, None))
        say_page(as_json(answered, result, code, error, indent=1))


def as_json(command: str, result: object, code: int, error: Problem | None = None, indent: int | None = None) -> str:
    """The envelope.  A result that names its schema lends it to the envelope."""
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
    return json.dumps(whole, indent=indent, ensure_ascii=True, allow_nan=False, default=asdict)


def _asks_for_json(words: Sequence[str]) -> bool:
    """Does the command line say `-o json`?  It may be one that cannot be parsed."""
    return any(word in ("-ojson", "--output=json") or (word, after) in ASKS for word, after in pairwise([*words, ""]))


def schema_names() -> list[str]:
    """The commands whose answers have a JSON Schema, such as `directories-verify`."""
    return sorted(TYPES)


def answer_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of that command's answer: the envelope, with the type of its result."""
    from pkgutil import resolve_name

    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Written(GenerateJsonSchema):
        """As answers are written: every field of a dataclass is there, stages and policies stand by their names."""

        def field_is_required(self, field: Any, total: bool) -> bool:
            return bool(field.get("required", total)) if field["type"] == "typed-dict-field" else True

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            found = super().dataclass_schema(schema)
            found.pop("additionalProperties", None)  # a section of a file refuses other keys; an answer may get more
            return found

        def field_title_should_be_set(self, _: Any) -> bool:
            return False

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            if issubclass(schema["cls"], IntEnum):
                return {"type": "string", "enum": [str(one.name).lower().replace("_", "-") for one in schema["cls"]]}
            return super().enum_schema(schema)

    def schema_of(answer: Any) -> dict[str, Any]:
        return TypeAdapter(answer).json_schema(by_alias=False, schema_generator=Written, mode="serialization")

    found, result = schema_of(Envelope), schema_of(resolve_name(TYPES[name]))
    found["title"] = f"kraft-migrate {name.replace('-', ' ')} --output json"
    found["properties"]["time"]["format"] = "date-time"
    found["properties"]["result"] = result
    found["$defs"] |= result.pop("$defs", {})
    return {"$schema": GenerateJsonSchema.schema_dialect, **found}
