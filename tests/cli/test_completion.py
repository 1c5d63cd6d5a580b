"""Completion: the script that a shell sources, and what it gets when it asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def asking(folder: Path) -> Path:
    """The program under its own name: click finds its variable by that."""
    program = folder / "kraft-migrate"
    program.write_text(f"#!{sys.executable}\nfrom migrate.cli.main import main\nmain()\n")
    program.chmod(0o755)
    return program


def script_of(program: Path, shell: str) -> str:
    """What the installation page says prints the script."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "_KRAFT_MIGRATE_COMPLETE": f"{shell}_source"}
    return subprocess.run([program], capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, tmp_path: Path) -> None:
    """It names the program and asks it by click's variable."""
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("no bash here: click asks it for its version")
    script = script_of(asking(tmp_path), shell)
    assert f"_KRAFT_MIGRATE_COMPLETE={shell}_complete" in script
    assert "kraft-migrate" in script


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("kraft-migrate app", {"apply"}, {"plan"}),
        ("kraft-migrate rollback ", {"plan", "apply"}, {"status"}),
        ("kraft-migrate apply --conf", {"--confirm", "--confirm-cluster"}, {"--json-lines"}),
        ("kraft-migrate status --output ", {"text", "json"}, set()),
        ("kraft-migrate explain B-ZK", {"B-ZKN-01"}, {"W-ZKN-20"}),
        ("kraft-migrate plan p.yaml --stage mig", {"migration-mode"}, {"soak"}),
        ("kraft-migrate lab demo --until h", {"hybrid"}, {"copy"}),
        ("kraft-migrate playbook schema I", {"Inventory"}, {"Fleet"}),
    ],
)
def test_bash_completes_with_it(line: str, wanted: set[str], unwanted: set[str], tmp_path: Path) -> None:
    """The script is sourced by a real bash, which asks the real program."""
    (tmp_path / "runs" / "0123abcd").mkdir(parents=True)
    (tmp_path / "runs" / "0123abcd" / "journal.jsonl").touch()
    script = tmp_path / "completion"
    script.write_text(script_of(asking(tmp_path), "bash"))
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"""
    complete() {{ :; }}
    compopt() {{ :; }}
    source {script}
    COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
    _kraft_migrate_completion kraft-migrate
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(
        ["bash", "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )
    found = set(ended.stdout.split())
    assert wanted <= found
    assert not unwanted & found
