"""Fresh installations for tests: a wheel of this tree, a wheelhouse, and a venv without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTSIDE = ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PYTHONPATH", "VIRTUAL_ENV")  # what could lend a package


@cache
def without_network() -> tuple[str, ...]:
    """The words before a command that leave it no route, but for the loopback; none where that is not allowed."""
    words = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    tried = subprocess.run([*words, "true"], check=False, capture_output=True) if shutil.which("unshare") else None
    return words if tried is not None and tried.returncode == 0 else ()


def environment() -> dict[str, str]:
    """Ours, without what could lend a package."""
    return {name: value for name, value in os.environ.items() if name not in OUTSIDE}


def run(*words: str | Path, cwd: Path, code: int = 0, alone: bool = True) -> str:
    """What the command printed, which ends with that exit code; alone: without a network."""
    command = [*(without_network() if alone else ()), *map(str, words)]
    ended = subprocess.run(
        command,
        cwd=cwd,
        env=environment() if alone else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    return ended.stdout


def copied_sources(folder: Path) -> Path:
    """A copy of what the distribution is built from: a build leaves its own files there."""
    found = folder / "sources"
    left_out = shutil.ignore_patterns("__pycache__", ".git", ".venv", ".*_cache", "*.egg-info", "build", "dist", "site")
    shutil.copytree(ROOT, found, ignore=left_out)
    return found


def built_wheels(sources: Path, wheelhouse: Path, wanted: Sequence[str] = ()) -> Path:
    """The wheel, and with it a wheelhouse of what it and `wanted` need; packages may come from the network here."""
    run(sys.executable, "-m", "pip", "wheel", "-w", wheelhouse, sources, *wanted, cwd=sources, alone=False)
    (wheel,) = wheelhouse.glob("kafka_kraft_migrate-*.whl")
    return wheel


def installed(folder: Path, wheelhouse: Path, wanted: Sequence[str]) -> Path:
    """The folder of programs of a fresh venv, into which pip installed from the wheelhouse alone."""
    venv.create(folder, with_pip=True)
    words = ("install", "--no-index", "--find-links", str(wheelhouse), *wanted)
    run(folder / "bin" / "python", "-m", "pip", *words, cwd=folder)
    return folder / "bin"
