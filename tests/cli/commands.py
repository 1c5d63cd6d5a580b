"""The command as a user calls it: its exit code and what it said, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

import jsonschema

from migrate.cli.answers import answer_schema, schema_names
from migrate.cli.main import main
from migrate.model.inventory import Inventory
from migrate.playbook.load import dump_inventory
from tests.testing import worlds

COMMANDS_WITH_JSON = {name.replace("-", " ") for name in schema_names()}
STAGES = (
    "assess",
    "prepare",
    "controllers",
    "migration-mode",
    "copy",
    "hybrid",
    "kraft-mode",
    "soak",
    "finalize",
    "cleanup",
)
PLAYBOOK = """\
apiVersion: kraft-migrate/v1
kind: MigrationPlaybook
metadata: {name: lab, change: CHG1}
spec:
  cluster: {inventory: inventory.yaml}
  policy:
    directories: {brokers: {2: drive}}
  stages:
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def kraft_migrate(*words: object) -> Ended:
    """Run the command's entry point here; a defect of ours fails the test, with its traceback."""
    out, err = io.StringIO(), io.StringIO()
    code = run_main(words, out, err)
    assert "E-DEFECT" not in err.getvalue(), err.getvalue()
    require_its_schema(out.getvalue())
    return Ended(code, out.getvalue(), err.getvalue())


def require_its_schema(text: str) -> None:
    """Fail the test where the text is an answer in JSON that the command's schema does not allow."""
    if (
        text.startswith("{")
        and '"exit_code"' in text
        and (found := json.loads(text)).get("command") in COMMANDS_WITH_JSON
    ):
        whole, result = validators(found["command"])
        whole.validate(found)
        if "result" in found:
            result.validate(found["result"])


@cache
def validators(command: str) -> tuple[jsonschema.Draft202012Validator, jsonschema.Draft202012Validator]:
    """By the command's schema: of its whole answer, and of its result, where every key has to be named."""
    schema = answer_schema(command.replace(" ", "-"))
    jsonschema.Draft202012Validator.check_schema(schema)
    result = closed({**schema["properties"]["result"], "$defs": schema["$defs"]})
    return jsonschema.Draft202012Validator(schema), jsonschema.Draft202012Validator(result)


def closed(schema: Any) -> Any:
    """The JSON Schema with no key but those that it names: keys are added with their types."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {name: closed(part) for name, part in schema.items()}
    return {"additionalProperties": False, **inside} if schema.get("type") == "object" else inside


def run_main(words: Iterable[object], out: TextIO, err: TextIO) -> int:
    """Run the command's entry point in this process, which stays as it was; its exit code."""
    with (
        kept_umask(),
        patch.object(sys, "argv", ["kraft-migrate", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


@contextlib.contextmanager
def kept_umask() -> Iterator[None]:
    """The command sets the umask of its process, which is that of the tests here."""
    before = os.umask(0o022)
    os.umask(before)
    try:
        yield
    finally:
        os.umask(before)


def process(*words: object, code: str = "", seconds: float = 120) -> Ended:
    """The same as a process; `code` is a program that gets the words instead."""
    program = ["-c", code] if code else ["-m", "migrate"]
    ended = subprocess.run(
        [sys.executable, *program, *map(str, words)],
        capture_output=True,
        check=False,
        timeout=seconds,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "COLUMNS": "200"},
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextlib.contextmanager
def dead_port() -> Iterator[int]:
    """A port of the loopback that is ours, and where nothing listens: connections are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def inventory_in(folder: Path, **changes: object) -> Path:
    """The healthy worlds' inventory as a file; nothing of it is there."""
    known = worlds.inventory()
    found: Inventory = replace(
        known,
        path=str(folder / "inventory.yaml"),
        runs=str(folder / "runs"),
        expect_cluster_id=None,
        **{"executor": "manual", "executor_options": {"inbox": str(folder / "inbox")}, **changes},  # type: ignore[arg-type]
    )
    path = folder / "inventory.yaml"
    path.write_text(dump_inventory(found), encoding="utf-8")
    return path


def playbook_in(folder: Path, *stages: str) -> Path:
    """A playbook beside it; every stage, if none is named."""
    inventory_in(folder)
    path = folder / "playbook.yaml"
    path.write_text(PLAYBOOK + "".join(f"    - name: {stage}\n" for stage in stages or STAGES), encoding="utf-8")
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
