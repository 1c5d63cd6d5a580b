"""docs/automation.md: its role is what Ansible takes, and its tasks change and fail as the exit codes say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import kraft_migrate

PAGE = (Path(__file__).parents[2] / "docs" / "automation.md").read_text()
FILES = dict(re.findall(r'^```yaml title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
TASKS = "roles/kraft_migrate/tasks"
PROGRAM = """#!/bin/sh
case "$1" in
  plan) echo planned; exit "$CODE" ;;
  apply) echo '{"event": "run"}'; [ -z "$EFFECTED" ] || echo '{"event": "effected"}'; exit "$CODE" ;;
esac
"""


def words(file: str, task: str) -> list[str]:
    """The command of a task."""
    [found] = [one for one in yaml.safe_load(FILES[f"{TASKS}/{file}"]) if one["name"] == task]
    argv = found["ansible.builtin.command"]["argv"]
    return argv if isinstance(argv, list) else re.findall(r"'([^']+)'", argv)


@pytest.mark.parametrize(
    "words",
    [
        words("plan.yml", "Validate the playbook and the inventory"),
        words("plan.yml", "Plan"),
        words("apply.yml", "Apply the saved plan, or resume it"),
    ],
    ids=["lint", "plan", "apply"],
)
def test_commands_of_the_role_have_the_options_that_it_gives(words: list[str]) -> None:
    """Each option is in the command's help."""
    command = [word for word in words if re.fullmatch("[a-z]+", word)]
    said = kraft_migrate(*command, "--help")
    assert said.code == 0
    assert all(word in said.out for word in words if word.startswith("--"))


@pytest.fixture
def play(tmp_path: Path) -> Any:
    """Run the page's playbook with a program that ends with that code; what the task of that name came to."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("poll: 30", "poll: 1"))
    program = tmp_path / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)

    def run(task: str, do: str, code: int, effected: str = "") -> dict[str, Any]:
        values = {
            "kraft_migrate_program": str(program),
            "kraft_migrate_folder": str(tmp_path),
            "kraft_migrate_do": do,
            "ansible_python_interpreter": sys.executable,
        }
        argv = [
            "ansible-playbook",
            "-i",
            "migration_host,",
            "-c",
            "local",
            "-e",
            json.dumps(values),
            "kraft-migrate.yml",
        ]
        env = {
            **os.environ,
            "CODE": str(code),
            "EFFECTED": effected,
            "HOME": str(tmp_path),
            "ANSIBLE_ASYNC_DIR": str(tmp_path / "jobs"),
            "ANSIBLE_NOCOLOR": "1",
        }
        out = subprocess.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
        ).stdout
        part = out.split(f"TASK [kraft_migrate : {task}]")[1].split("\nTASK ")[0].split("\nPLAY ")[0]
        return {"changed": "\nchanged:" in part, "failed": "\nfatal:" in part}

    return run


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ansible-playbook") is None, reason="ansible-core is not installed")
@pytest.mark.parametrize(
    ("do", "code", "effected", "changed", "failed"),
    [
        ("plan", 0, "", False, False),
        ("plan", 2, "", False, False),
        ("plan", 1, "", False, True),
        ("plan", 3, "", False, True),
        ("apply", 0, "", False, False),
        ("apply", 0, "yes", True, False),
        ("apply", 4, "", False, False),
        ("apply", 5, "yes", True, False),
        ("apply", 3, "yes", False, True),
        ("apply", 6, "", False, True),
        ("apply", 7, "", False, True),
    ],
)
def test_tasks_change_and_fail_by_exit_codes(
    play: Any, do: str, code: int, effected: str, changed: bool, failed: bool
) -> None:
    """By real ansible-core, with a program that ends with each code."""
    task = "Plan" if do == "plan" else "Apply the saved plan, or resume it"
    assert play(task, do, code, effected) == {"changed": changed, "failed": failed}
