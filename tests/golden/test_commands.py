"""What the commands that look say of kept worlds, byte for byte, as text and as JSON.  UPDATE_GOLDEN=1 writes anew.

Of JSON the envelope's time is taken out.  The text is that of a terminal of 80 columns without colour.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import migrate.cli.answers
import migrate.observe.bundle
import migrate.observe.bundled
import migrate.plan.build
import migrate.report.assessment  # noqa: F401 - before the fixture bends what they import
from migrate.model.world import World
from migrate.observe.bundle import write_bundle
from tests.cli.commands import PLAYBOOK, STAGES, require_its_schema, run_main
from tests.golden.fixed import NOW, fix
from tests.golden.kept_worlds import BUNDLED, WITH_PLANS_AS_JSON, WORLDS
from tests.testing.golden import same_as_kept
from tests.testing.kept import sources_of

HERE = Path(__file__).parent
FOLDER = HERE / "commands"
COMMANDS = {
    "assess": ("assess",),
    "plan": ("plan",),
    "plan-full": ("plan", "--full"),
    "status": ("status",),
    "rollback-plan": ("rollback", "plan"),
    "diff": ("diff",),
    "directories-show": ("directories", "show"),
    "directories-verify": ("directories", "verify"),
}
NOT_FROM_A_BUNDLE = {"status", "rollback-plan"}
LONG = {"plan", "rollback-plan"}  # as JSON


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """A command on a world, in a folder of its own: its exit code, what it said, and its errors."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("migrate.cli.assessing.SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr("migrate.cli.status.AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("migrate.observe.analysis.AGAIN", 0.0)
    monkeypatch.setattr("migrate.observe.analysis.LAG_SECONDS", 0.0)
    monkeypatch.setattr(Path, "absolute", lambda path: path)  # paths stay relative to the folder
    fix(monkeypatch)
    count = 0

    def run(world: World, *words: str, bundled: bool = False) -> tuple[int, str, str]:
        nonlocal count
        count += 1
        folder = tmp_path / str(count)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HOME", str(folder))
        Path("inventory.yaml").write_bytes((HERE / "inventory.yaml").read_bytes())
        Path("playbook.yaml").write_text(PLAYBOOK + "".join(f"    - name: {stage}\n" for stage in STAGES))
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        monkeypatch.setattr("migrate.observe.analysis._on_spark", lambda *_: world.diff)
        if bundled:
            write_bundle("bundle", world, int(NOW))
        out, err = Terminal(), io.StringIO()
        code = run_main([*words, *(["--from-bundle", "bundle"] if bundled else ["playbook.yaml"])], out, err)
        assert str(tmp_path) not in out.getvalue() + err.getvalue(), "an answer depends on where it is asked"
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_each_command_says_of_a_world_what_was_kept(name: str, say: Say) -> None:
    """All that look, live."""
    world = WORLDS[name]()
    for command in kept_of(name):
        same(FOLDER / name / command, say(world, *words_of(command)))


@pytest.mark.slow
@pytest.mark.parametrize("name", BUNDLED)
def test_from_a_bundle_each_command_says_what_was_kept(name: str, say: Say) -> None:
    """Those that take one."""
    world = WORLDS[name]()
    for command in kept_of(f"{name}-bundled"):
        same(FOLDER / f"{name}-bundled" / command, say(world, *words_of(command), bundled=True))


def test_nothing_is_kept_that_no_world_answers() -> None:
    """A world or a command that goes takes its files with it."""
    names = (*WORLDS, *(f"{name}-bundled" for name in BUNDLED))
    assert {path.relative_to(FOLDER) for path in FOLDER.glob("*/*")} == {
        Path(name, command) for name in names for command in kept_of(name)
    }


def kept_of(name: str) -> list[str]:
    """The files of a world: each command as text and as JSON; --full is for people, long plans for some worlds."""
    commands = [command for command in COMMANDS if not name.endswith("-bundled") or command not in NOT_FROM_A_BUNDLE]
    if name not in WITH_PLANS_AS_JSON:
        commands.remove("plan-full")
    as_json = [command for command in commands if command not in LONG or name in WITH_PLANS_AS_JSON]
    return [*(f"{it}.txt" for it in commands), *(f"{it}.json" for it in as_json if it != "plan-full")]


def words_of(file: str) -> list[str]:
    """The command line behind a file."""
    command, _, kind = file.rpartition(".")
    return [*COMMANDS[command], *(("--output", "json") if kind == "json" else ())]


def same(path: Path, said: tuple[int, str, str]) -> None:
    """Text with the exit code, and the errors where there are any; of JSON what is in the envelope."""
    code, out, err = said
    assert "E-DEFECT" not in err, err
    if path.suffix == ".json":
        require_its_schema(out)
        same_as_kept(path, once(out, code))
    else:
        told = f"{out}--- stderr\n{err}" if err else out
        same_as_kept(path, f"{told}--- exit code {code}\n".encode())


def once(out: str, code: int) -> bytes:
    """The answer without its time; keys of `result` that stand beside it, too, are kept once."""
    whole: dict[str, Any] = json.loads(out)
    assert out == json.dumps(whole, indent=1, ensure_ascii=True) + "\n", "the form of the JSON"
    assert whole["exit_code"] == code
    if isinstance(whole["time"], str):  # else a result's own, which is the clock's
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", whole.pop("time"))
    result = whole.get("result", {})
    kept = {key: value for key, value in whole.items() if key not in result or result[key] != value}
    return (json.dumps(kept, indent=1, ensure_ascii=True) + "\n").encode()


SCREEN = 22  # lines of a terminal of 24, below what `watch` says itself


@pytest.mark.parametrize("entry", sorted(path.parent.name for path in FOLDER.glob("*/status.txt")))
def test_the_first_screen_of_status_has_what_matters(entry: str) -> None:
    """Problems, stage, ledger, the rollback's word and what comes next, whatever else is told."""
    lines = (FOLDER / entry / "status.txt").read_text().splitlines()
    labels = ("cluster", "stage", "ledger", "rollback", "next")
    missed = [label for label in labels if label not in {line[:8].strip() for line in lines[:SCREEN]}]
    assert [label for label in missed if any(line.startswith(label) for line in lines)] == []
    assert not any(" PROBLEM" in line for line in lines[1:])
