"""`playbook lint|schema|show` say what a person or an editor needs."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from migrate.cli.playbook import playbook
from tests.playbook.corpus import INVENTORY, SPEC


def run(*arguments: str) -> Result:
    """The command as the entry point calls it."""
    return CliRunner().invoke(playbook, arguments, standalone_mode=False, catch_exceptions=False)


def write(folder: Path, name: str, text: str) -> str:
    """A file's path."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_lint_says_ok_for_each_file_that_is_right(tmp_path: Path) -> None:
    """Exit code 0 and a line each."""
    files = write(tmp_path, "inventory.yaml", INVENTORY), write(tmp_path, "p.yaml", SPEC)
    result = run("lint", *files)
    assert result.return_value == 0
    assert result.output.splitlines() == [f"{file}: ok" for file in files]


def test_lint_tells_every_problem_with_place_and_next_step(tmp_path: Path) -> None:
    """Exit code 1; the right file among them is told as such."""
    good = write(tmp_path, "inventory.yaml", INVENTORY)
    bad = write(tmp_path, "p.yaml", SPEC + "  polcy: {}\n  windows: {}\n")
    result = run("lint", good, bad, str(tmp_path / "missing.yaml"))
    assert result.return_value == 1
    for part in (f"{good}: ok", f"{bad}:6:3", f"{bad}:7:3", "did you mean `policy`?", "E-PLAY-01", "missing.yaml"):
        assert part in result.output


def test_lint_holds_a_playbook_against_the_inventory_it_names(tmp_path: Path) -> None:
    """Where that file is there; a playbook alone can be linted, too."""
    path = write(tmp_path, "p.yaml", SPEC + "  controllers: {ids: [1]}\n")
    assert run("lint", path).return_value == 0
    write(tmp_path, "inventory.yaml", INVENTORY)
    result = run("lint", path)
    assert result.return_value == 1
    assert f"{path}:6:17" in result.output


def test_lint_as_json(tmp_path: Path) -> None:
    """For continuous integration of somebody's playbooks."""
    path = write(tmp_path, "p.yaml", "a: &x 1\n")
    found = json.loads(run("lint", path, "--output", "json").output)
    assert found["ok"] is False
    (problem,) = found["problems"]
    assert (problem["id"], problem["where"]) == ("E-PLAY-02", f"{path}:1:4")
    assert set(problem) == {"file", "id", "where", "what", "why", "next"}


@pytest.mark.parametrize("kind", ["MigrationPlaybook", "Inventory", "AcceptedDifferences"])
def test_schema_prints_json_for_each_kind(kind: str) -> None:
    """Ready to be written into a file."""
    assert json.loads(run("schema", kind).output)["properties"]["kind"]["const"] == kind


def test_schema_of_an_unknown_kind_is_a_usage_error() -> None:
    """With the kinds that there are."""
    with pytest.raises(click.UsageError, match="Inventory"):
        run("schema", "Deployment")


def test_show_writes_every_default_out(tmp_path: Path) -> None:
    """What an empty playbook comes to, and the stages by name."""
    path = write(tmp_path, "p.yaml", SPEC)
    text = run("show", path).output
    for line in ("stages: assess", "default_policy: observe", "soak_seconds: 604800.0", "keep_zookeeper: 14d"):
        assert line in text.splitlines()
    found = json.loads(run("show", path, "-o", "json").output)
    assert (found["kind"], found["stages"]) == ("MigrationPlaybook", ["assess"])
    assert found["inventory"] == str(tmp_path / "inventory.yaml")


def test_show_of_an_inventory_lists_its_nodes(tmp_path: Path) -> None:
    """A line a node."""
    text = run("show", write(tmp_path, "inventory.yaml", INVENTORY)).output
    assert "  - id=1, host=b1, address=b1:9092" in text
    assert f"config={tmp_path}/conf/b1.properties" in text
