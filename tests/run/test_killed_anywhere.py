"""SIGKILL at every point, and again at every point of every recovery: the same command always ends the same."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from migrate.model.stage import Stage
from migrate.run.effects import EFFECTS
from tests.run.test_engine import plan_for
from tests.run.test_rollback import ENTRIES, at, rollback_plan
from tests.testing.killing import Everywhere, Walk, carry_out, memory_folder, recover, walk_all_kills
from tests.testing.simulated import SimulatedCluster

ROOT = Path(__file__).parents[2]
FORWARD = {"write-config", "backup-file", "backup-zookeeper", "format", "stop", "start", "assign-directories"}


class Labels(Everywhere):
    """Only the labels, in order."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def reach(self, label: str) -> None:
        """Keep it."""
        self.labels.append(label)


@pytest.mark.slow
def test_every_number_of_kills_ends_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    """All states that kills can leave, those of kills in recoveries too: each effect happens once, the end is one."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    with memory_folder() as folder:
        walk = walk_all_kills(SimulatedCluster.in_zookeeper_mode, plan_for(cluster), folder)
    with capsys.disabled():
        print(f"\nkilled at {walk.points} points, {walk.recoveries} states recovered from, {walk.deepest} kills deep")
    assert walk.waiting == []
    assert walk.points > 20_000
    assert walk.recoveries > 200
    assert walk.deepest >= 2


@pytest.mark.slow
@pytest.mark.parametrize("target", [Stage.CONTROLLERS, Stage.COPY, Stage.SOAK], ids=lambda stage: stage.label)
def test_a_plan_that_parks_early_is_killed_as_well(target: Stage) -> None:
    """What a parked plan leaves is what it leaves without kills."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    with memory_folder() as folder:
        walk = walk_all_kills(SimulatedCluster.in_zookeeper_mode, plan_for(cluster, target), folder, most=20)
    assert walk.recoveries == 20


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["hybrid", "half of the second roll", "controllers up"])
def test_the_rollback_is_killed_as_well(entry: str, tmp_path: Path) -> None:
    """Every single kill of a rollback, and the first kills of its recoveries."""
    plan = rollback_plan(at(entry, tmp_path / "forward"))
    with memory_folder() as folder:
        walk = walk_all_kills(lambda: at(entry, tmp_path / "forward"), plan, folder, most=220)
    assert walk.recoveries >= min(220, len(walk.seen))
    assert walk.deepest >= 2 or not walk.waiting


@pytest.mark.long
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_number_of_kills_of_the_rollback(entry: str, tmp_path: Path) -> None:
    """The whole walk, from every entry."""
    plan = rollback_plan(at(entry, tmp_path / "forward"))
    with memory_folder() as folder:
        walk = walk_all_kills(lambda: at(entry, tmp_path / "forward"), plan, folder)
    print(f"{entry}: {walk.points} points, {walk.recoveries} states recovered from, {walk.deepest} kills deep")
    assert walk.waiting == []


@pytest.mark.slow
def test_a_point_stands_before_and_after_every_effect_and_behind_every_unsynced_line() -> None:
    """No effect without its two points; no line of the journal without one between its write and its fsync."""
    cluster, points = SimulatedCluster.in_zookeeper_mode(), Labels()
    with memory_folder() as folder:
        journal = carry_out(cluster, plan_for(cluster), folder / "journal.jsonl", points)
    events = [event for event in journal.events if event.name == "effect"]
    wanted = [f"{event.data['effect']}:{event.data['node']}" for event in events]
    assert [label.partition(":")[2] for label in points.labels if label.startswith("before:")] == wanted
    assert [label.partition(":")[2] for label in points.labels if label.startswith("after:")] == wanted
    assert {event.data["effect"] for event in events} >= FORWARD
    unsynced = [label.partition(":")[2] for label in points.labels if label.startswith("unsynced:")]
    assert unsynced == [event.name for event in journal.events[1:]]  # the first line: before anything is done
    assert [label for label in points.labels if label.startswith("proof:")]


@pytest.mark.slow
def test_a_wrong_recovery_is_noticed() -> None:
    """The walk itself is tried: a run whose effects are not those of the reference is told."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    plan = plan_for(cluster)
    with memory_folder() as folder:
        walk = Walk(plan, ["something else"], {})
        carry_out(cluster, plan, folder / "journal.jsonl", Everywhere(walk, cluster, ()))
        with pytest.raises(AssertionError, match="killed at"):
            recover(walk, walk.waiting[0], folder)


# -- no effect goes around the effects -------------------------------------------------------------------------------
@cache
def calls_in(path: Path) -> tuple[tuple[str, int], ...]:
    """The same of a file, read once for all questions."""
    return tuple(calls(ast.parse(path.read_text())))


def calls(tree: ast.AST) -> list[tuple[str, int]]:
    """Names of methods and functions that are called, with their lines."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found.append((name, node.lineno))
    return found


ACTING = {  # what changes something -> where it may be called
    "format_storage": {"run/effects.py", "steps/controllers.py", "hosts/host_program.py"},  # the second asks the first
    "format_directories": {"steps/directories/steps.py"},
    "drive": {"run/effects.py", "cli/directories.py"},
    "assign": {"run/drive.py", "run/rescue.py"},
    "assign_directories": {"steps/assign.py"},
    "elect_leaders": {"kafka/controller.py", "run/rescue.py"},
    "elect": {"kafka/controller.py"},
    "replace_file": {
        "run/effects.py",
        "cli/options.py",
        "cli/manual.py",
        "hosts",
        "cli/bundle.py",
        "observe/bundle.py",
        "observe/bundled.py",
        "cli/report.py",
    },
    "set_data": {"zookeeper"},
    "ZookeeperWriter": {"run/carry_out.py", "run/restore_znodes.py"},
    "JournaledEffects": {"run/carry_out.py"},
    "Hands": {"run/carry_out.py"},
    "killpg": {"hosts", "lab", "java/secret_command.py"},  # the last one: a command of its own
}


def allowed(path: Path, where: set[str]) -> bool:
    """Is the module, or its package, among those?"""
    relative = path.relative_to(ROOT / "migrate").as_posix()
    return relative in where or relative.split("/")[0] in where


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTING)
def test_nothing_that_acts_is_called_around_the_effects(name: str) -> None:
    """Neither by a step, nor by a command: the lab's own cluster is the lab's."""
    found = []
    for path in sorted((ROOT / "migrate").rglob("*.py")):
        if path.is_relative_to(ROOT / "migrate" / "lab") or allowed(path, ACTING[name]):
            continue
        found += [f"{path.name}:{line}" for called, line in calls_in(path) if called == name]
    assert found == []


@pytest.mark.parametrize("layer", ["steps", "plan", "checks", "report", "model", "protocol"])
def test_deciding_layers_cannot_act_at_all(layer: str) -> None:
    """No file is written, no process signalled, no service started there."""
    writes = {"write_bytes", "write_text", "kill", "Popen", "unlink", "rename", "system", "rmtree", "chmod"}
    found = []
    for path in sorted((ROOT / "migrate" / layer).rglob("*.py")):
        found += [f"{path.name}:{line} {name}" for name, line in calls_in(path) if name in writes]
    assert found == []


def test_every_effect_has_its_name_in_the_list() -> None:
    """The list is what journal, crash points and docs call them."""
    tree = ast.parse((ROOT / "migrate/run/effects.py").read_text())
    named = [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "_effect"
        and isinstance(node.args[0], ast.Constant)
    ]
    assert sorted({*map(str, named)}) == sorted(EFFECTS)
    calls_of_effect = sum(name == "_effect" for name, _ in calls(tree))
    assert calls_of_effect == len(named)
