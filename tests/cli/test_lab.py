"""`lab` at the command line, without a cluster (with one: tests/lab/test_cluster)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate.cli.lab import _say_differences, as_text, lab
from migrate.cli.main import cli
from migrate.errors import BundleDamaged, LabFolderNotOurs, LabMissing, LabRefused, UsageWrong
from migrate.lab.cluster import Lab
from migrate.lab.seed_data import Change, Seed, keep_seed
from migrate.lab.status import LabStatus, ProcessStatus
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import Shape, plan_topology
from migrate.model.stage import Stage

STATUS = LabStatus(
    directory="/lab",
    inventory="/lab/inventory.yaml",
    zookeeper="127.0.0.1:20000/kafka",
    bootstrap="127.0.0.1:20001",
    processes=(
        ProcessStatus("broker-0", "migration mode", "running", 4711, 150, (20001, 20002), True),
        ProcessStatus("controller-3000", "not configured yet", "stopped", None, 0, (20003,), False),
    ),
    brokers=(0, 1),
    partitions=137,
    not_whole=2,
    seeded=True,
)


def test_every_command_has_its_help() -> None:
    """And the group lists them all."""
    listed = CliRunner().invoke(cli, ["lab", "--help"]).output
    assert "..." not in listed.partition("Commands:")[2], "a summary was cut short"
    for name in ("up", "seed", "status", "down", "demo"):
        assert name in listed
        found = CliRunner().invoke(cli, ["lab", name, "--help"])
        assert found.exit_code == 0
        assert "--dir" in found.output


@pytest.mark.parametrize("name", ["seed", "status", "down"])
def test_without_a_lab_the_error_says_so(name: str, tmp_path: Path) -> None:
    """Nothing is made by asking."""
    result = CliRunner().invoke(lab, [name, "--dir", str(tmp_path / "none")])
    assert isinstance(result.exception, LabMissing)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    """`up` writes nothing into it."""
    (tmp_path / "precious").write_text("x")
    result = CliRunner().invoke(lab, ["up", "--dir", str(tmp_path)])
    assert isinstance(result.exception, LabFolderNotOurs)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("words", [["--brokers", "2"], ["--partitions", "100"]])
def test_bounds_without_a_bundle_are_refused(tmp_path: Path, words: list[str]) -> None:
    """A lab of its own has a size of its own."""
    result = CliRunner().invoke(lab, ["up", "--dir", str(tmp_path / "lab"), *words])
    assert isinstance(result.exception, UsageWrong)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_bundle_makes_no_lab(tmp_path: Path) -> None:
    """It is read before anything is written."""
    (tmp_path / "bundle").write_bytes(b"x")
    words = ["up", "--dir", str(tmp_path / "lab"), "--from-bundle", str(tmp_path / "bundle")]
    result = CliRunner().invoke(lab, words)
    assert isinstance(result.exception, BundleDamaged)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_names_of_a_bundle_are_spelled_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal acts on none of them, and a line stays a line."""
    topology = plan_topology(tmp_path, Shape(bundled=True))
    keep_seed(topology, Seed(changes=(Change("left out, names", ("a\x1b[2J\nforged", "b")),)))
    _say_differences(Lab(topology, Supervisor(topology.processes)))
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "forged" in next(line for line in told.splitlines() if "left out, names" in line)


@pytest.mark.slow
def test_the_process_exits_with_one_and_names_the_error(tmp_path: Path) -> None:
    """Id, place and next step, on stderr; no traceback."""
    argv = [sys.executable, "-m", "migrate", "lab", "status", "--dir", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("E-LAB-02: ")
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_person_sees_at_once_what_is_not_as_it_should_be() -> None:
    """Partitions that are not whole, files that changed under a running process."""
    text = as_text(STATUS)
    assert "137 partitions, 2 not whole" in text
    broker = next(line for line in text.splitlines() if "broker-0" in line)
    assert "4711" in broker
    assert "20001,20002" in broker
    assert "changed since" in broker


def test_a_cluster_that_does_not_answer_is_not_called_whole() -> None:
    """Nobody answered: that is what is said."""
    silent = LabStatus(**{**{name: getattr(STATUS, name) for name in STATUS.__slots__}, "brokers": None})
    assert "no broker answers" in as_text(silent)
    assert "not whole" not in as_text(silent)


@pytest.mark.slow
def test_an_unknown_stage_is_a_usage_error(tmp_path: Path) -> None:
    """With the names that there are; no lab is made for it."""
    argv = [sys.executable, "-m", "migrate", "lab", "demo", "--until", "tomorrow", "--dir", str(tmp_path / "lab")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "hybrid" in done.stderr
    assert not (tmp_path / "lab").exists()


def test_the_demos_help_names_every_stage_it_can_stop_after() -> None:
    """Nobody has to guess a name to learn the names."""
    said = CliRunner().invoke(cli, ["lab", "demo", "--help"]).output
    assert [stage.label for stage in Stage if stage.label not in said] == [
        "discover",
        "directories",
        "protocol",
    ]


def test_json_is_json(tmp_path: Path) -> None:
    """Through the command's own encoder."""
    from dataclasses import asdict

    assert json.loads(json.dumps({"schema": 1, **asdict(STATUS)}))["processes"][0]["pid"] == 4711


def test_a_lab_that_is_there_is_taken_for_no_other(tmp_path: Path) -> None:
    """Made in clear, or with another executor: `up` and `demo` refuse; a secured one serves whoever asks less."""
    clear, secured = (
        Lab(plan_topology(tmp_path, Shape(secured=wanted)), Supervisor(tmp_path)) for wanted in (False, True)
    )
    clear.require("local", secured=False)
    secured.require("local", secured=True)
    secured.require("local", secured=False)
    with pytest.raises(LabRefused, match="without --secured"):
        clear.require("local", secured=True)
    with pytest.raises(LabRefused, match="with --mechanism PLAIN"):
        secured.require("local", secured=True, mechanism="OAUTHBEARER")
    with pytest.raises(LabRefused, match="made with --executor local"):
        clear.require("ssh", secured=False)
