"""`playbook lint|schema|show` say what a person or an editor needs."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from migrate.cli.playbook import playbook
from tests.cli.commands import kraft_migrate
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
    bad = write(tmp_path, "p.yaml", SPEC + "  polcy: {}\n  reports: []\n")
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


def test_lint_as_json_has_what_the_text_says_of_right_files(tmp_path: Path) -> None:
    """An inventory that is not there was only said in text."""
    path = tmp_path / "playbook.yaml"
    path.write_text(
        "apiVersion: kraft-migrate/v1\nkind: MigrationPlaybook\nmetadata: {name: p}\n"
        "spec:\n  cluster: {inventory: gone.yaml}\n"
    )
    found = json.loads(kraft_migrate("playbook", "lint", path, "-o", "json").out)["result"]
    assert (found["ok"], found["problems"]) == (True, [])
    assert "not compared with its inventory, which is missing" in found["notes"][str(path)][0]


def test_lint_as_json(tmp_path: Path) -> None:
    """For continuous integration of somebody's playbooks."""
    path = write(tmp_path, "p.yaml", "a: &x 1\n")
    found = json.loads(kraft_migrate("playbook", "lint", path, "--output", "json").out)
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


def test_show_writes_every_default_out_and_where_each_value_comes_from(tmp_path: Path) -> None:
    """A line of the file, a default, or what it follows from; nothing is left to guess."""
    text = SPEC + (
        "  policy:\n    health: {samples: 12}\n"
        "  windows:\n    default: {timezone: Europe/Berlin, allow: [Mon-Thu 21:00-05:00]}\n"
        "  stages: [{name: assess}, {name: prepare, no_progress_timeout: 90s}]\n"
    )
    path = write(tmp_path, "p.yaml", text)
    lines = {tuple(part.strip() for part in line.split("  ") if part) for line in run("show", path).output.splitlines()}
    for wanted in (
        ("spec.policy.health.samples", "12", "(line 7)"),
        ("spec.policy.health.interval", "5s", "(default)"),
        ("spec.policy.lock.path", "/kraft-migrate/lock", "(default)"),
        ("spec.policy.directories.default", "observe", "(default)"),
        ("spec.windows.default.reserve", "45m", "(default)"),
        ("spec.stages[1].name", "prepare", "(line 10)"),
        ("stage assess: window", "at any time", "(no window binds it)"),
        ("a wait ends after", "10m without progress", "(policy's no_progress_timeout)"),
        ("stage prepare: a wait ends after", "90s without progress", "(the stage's no_progress_timeout)"),
    ):
        assert wanted in lines
    bound = next(line for line in lines if line[0] == "stage prepare: window")
    assert bound[1:] == (
        "default: Mon-Thu 21:00-05:00 Europe/Berlin",
        "(windows.default binds every stage that acts)",
    )


def test_show_as_json_has_the_values_and_their_origins(tmp_path: Path) -> None:
    """The resolved playbook beside them, as before."""
    path = write(tmp_path, "p.yaml", SPEC)
    found = json.loads(kraft_migrate("playbook", "show", path, "-o", "json").out)
    assert (found["kind"], found["stages"]) == ("MigrationPlaybook", ["assess"])
    assert found["inventory"] == str(tmp_path / "inventory.yaml")
    assert {"key": "spec.policy.no_progress_timeout", "value": "10m", "origin": "default"} in found["values"]


def test_show_of_an_inventory_lists_its_nodes(tmp_path: Path) -> None:
    """A line a node."""
    text = run("show", write(tmp_path, "inventory.yaml", INVENTORY)).output
    assert "  - id=1, host=b1, address=b1:9092" in text
    assert "config=/etc/kafka/b1.properties" in text


def test_the_same_gap_of_thirty_brokers_is_said_once_with_its_lines(tmp_path: Path) -> None:
    """A person reads four faults, not ninety; a program reads each."""
    nodes = "".join(
        f"      - {{id: {number}, host: kafka-{number},\n         address: kafka-{number}:9092,\n"
        f'         config: "<fill in: path of its server.properties on its host>"}}\n'
        for number in range(30)
    )
    file = tmp_path / "inventory.yaml"
    file.write_text(
        f"apiVersion: kraft-migrate/v1\nkind: Inventory\nmetadata: {{name: p}}\nspec:\n  brokers:\n    nodes:\n{nodes}",
        encoding="utf-8",
    )
    ended = kraft_migrate("playbook", "lint", file)
    assert ended.code == 1
    assert ended.out.count("is not filled in") == 1
    assert "also   29 more like it, in lines 12, 15, 18" in ended.out
    assert len(json.loads(kraft_migrate("playbook", "lint", file, "-o", "json").out)["result"]["problems"]) == 30
