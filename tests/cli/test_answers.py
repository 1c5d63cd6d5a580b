"""JSON of every command: one envelope, for answers and for errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from migrate import __version__
from migrate.cli.answers import answer_schema, schema_names
from migrate.cli.main import cli
from migrate.model.plan import PlannedStep
from migrate.model.stage import Stage
from migrate.report.plan_json import SCHEMA as PLAN
from tests.cli.commands import Ended, closed, inventory_in, kraft_migrate, validators

DOCUMENTS: set[str] = set()
KEYS = {"schema", "tool", "time", "command", "exit_code"}


@pytest.mark.slow
def test_an_answer_has_schema_tool_time_command_exit_code_and_result(tmp_path: Path) -> None:
    """The keys of the result are repeated beside them, as scripts of the earlier version read them."""
    found = said(kraft_migrate("doctor", "-o", "json"))
    assert set(found) == KEYS | {"result"} | set(found["result"])
    assert (found["schema"], found["tool"], found["command"]) == ("kraft-migrate/doctor/v1", __version__, "doctor")
    assert found["items"] == found["result"]["items"]
    assert abs((datetime.now(UTC) - datetime.fromisoformat(found["time"])).total_seconds()) < 3600


def test_a_list_is_a_result_too() -> None:
    """Every answer is an object, whatever is in it."""
    found = said(kraft_migrate("explain", "B-ZKN-01", "--output=json"))
    assert set(found) == KEYS | {"result"}
    assert [row["code"] for row in found["result"]] == ["B-ZKN-01"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "command", "id_"),
    [
        (("explain", "B-XXX-99", "-o", "json"), "explain", "E-CODE-01"),
        (("playbook", "show", "none.yaml", "-o", "json"), "playbook show", "E-PLAY-01"),
        (("status", "--inventory", "none.yaml", "--output=json"), "status", "E-PLAY-01"),
        (("directories", "verify", "--no-such-option", "-o", "json"), "directories verify", "E-USAGE"),
        (("no-such-command", "-ojson"), "", "E-USAGE"),
    ],
)
def test_an_error_is_json_where_json_was_asked_for(words: tuple[str, ...], command: str, id_: str) -> None:
    """With the exit code and the four parts of the message, which goes to stderr as text as well."""
    ended = kraft_migrate(*words)
    found = said(ended)
    assert (found["command"], found["error"]["id"]) == (command, id_)
    assert set(found["error"]) == {"id", "what", "where", "why", "next"}
    assert found["error"]["what"] in " ".join(ended.err.split())
    assert "result" not in found


def test_an_error_after_an_answer_comes_with_it(tmp_path: Path) -> None:
    """`lint` answers what is wrong, and ends with 1: there is a result, and no error."""
    (tmp_path / "wrong.yaml").write_text("kind: [\n")
    found = said(kraft_migrate("playbook", "lint", tmp_path / "wrong.yaml", "-o", "json"))
    assert (found["result"]["ok"], "error" in found) == (False, False)


def test_without_json_nothing_but_text_is_printed(tmp_path: Path) -> None:
    """An error goes to stderr alone."""
    ended = kraft_migrate("status", "--inventory", inventory_in(tmp_path).parent / "none.yaml")
    assert (ended.code, ended.out) != (0, "")
    assert ended.out == ""


@pytest.mark.parametrize("words", [("status", "--help", "-o", "json"), ("--version", "status", "-ojson")])
def test_help_beside_json_is_help_and_no_defect(words: tuple[str, ...]) -> None:
    """It ends with 0, and nothing failed."""
    ended = kraft_migrate(*words)
    assert (ended.code, "E-DEFECT" in ended.out) == (0, False)


def said(ended: Ended) -> Any:
    """The one object on stdout; its exit code is the command's."""
    found = json.loads(ended.out)
    assert found["exit_code"] == ended.code
    return found


def test_each_command_with_json_has_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """`playbook schema` prints it; every test that runs a command here holds its answer against it."""
    assert set(schema_names()) == {path.replace(" ", "-") for path in with_json(cli, "")} - DOCUMENTS
    shown = kraft_migrate("playbook", "schema", "directories-verify")
    found = json.loads(shown.out)
    assert "replicas" in found["properties"]["result"]["properties"]


@pytest.mark.slow
def test_every_type_of_an_answer_makes_a_schema_that_refuses_what_is_no_such_answer() -> None:
    """Words of a set, versions of documents, and keys that are always there; each dataclass has all of its fields."""
    for name in schema_names():
        whole, result = validators(name)
        assert not whole.is_valid({}), name
        assert not result.is_valid({"unheard-of": 1}), name
    finding: dict[str, Any] = {
        "code": "B-ZKN-01",
        "severity": "B",
        "about": "",
        "message": "",
        "evidence": "",
        "fix": "",
    }
    finding |= {"blocks_from": None, "objects": [], "behind": []}
    schema = {"$ref": "#/$defs/FindingRow", "$defs": closed(answer_schema("assess")["$defs"])}
    one = jsonschema.Draft202012Validator(schema)
    assert one.is_valid(finding)
    for wrong in ({"severity": "X"}, {"blocks_from": "prepare"}, {"message": 1}, {"more": 1}):
        assert not one.is_valid({**finding, **wrong}), wrong
    assert not one.is_valid({key: value for key, value in finding.items() if key != "fix"})
    plan = answer_schema("plan")
    assert plan["properties"]["result"]["properties"]["schema"]["const"] == PLAN
    step = plan["$defs"]["PlannedStep"]
    assert plan["$defs"]["Stage"]["enum"] == [stage.label for stage in Stage]
    assert set(step["required"]) == {field.name for field in fields(PlannedStep)}


def with_json(group: click.Command, path: str) -> Iterator[str]:
    """The commands that take `--output json`."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            assert inner is not None
            yield from with_json(inner, f"{path} {name}".strip())
    elif any(isinstance(o, click.Option) and "--output" in o.opts and _takes_json(o) for o in group.params):
        yield path


def _takes_json(option: click.Option) -> bool:
    return isinstance(option.type, click.Choice) and "json" in option.type.choices
