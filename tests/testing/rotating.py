"""Rotating parts of dear tests: every commit runs one of several equal ones, so that in time all of them run.

The commit's hash picks, so a commit always runs the same part and two runs of it can be compared. The environment
variable `KRAFT_MIGRATE_ROTATE` overrides: `all` for every part, a part's name for that part, or `rotation=part` where
two rotations have parts of the same name; several stand with commas between. Without git (an unpacked archive) the
first part runs. What was picked stands at the end of pytest's output (`tests/conftest.py`).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "KRAFT_MIGRATE_ROTATE"
DISKS = ("zookeeper-gone", "migration-gone", "kraft-gone", "directory-playbook")  # of two files: one costs as much
PICKED: list[str] = []  # a line a rotation, in the order asked


def commit() -> str | None:
    """Hash of the commit that this tree stands on, or None where no git says so."""
    try:
        said = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None if said.returncode == 0 else None


def picked(name: str, choices: Sequence[str], commit_hash: str | None) -> str:
    """The part that a commit runs; the rotation's name is mixed in, so that two rotations do not move in step."""
    if commit_hash is None:
        return choices[0]
    digest = hashlib.sha256(f"{name}:{commit_hash}".encode()).digest()
    return choices[int.from_bytes(digest[:8], "big") % len(choices)]


def asked(name: str, choices: Sequence[str], wish: str) -> tuple[str, ...]:
    """The parts of this rotation that a value of the variable names; empty where it speaks of others."""
    words = [word.strip() for word in wish.split(",") if word.strip()]
    if "all" in words or f"{name}=all" in words:
        return tuple(choices)
    return tuple(choice for choice in choices if choice in words or f"{name}={choice}" in words)


def told(name: str, parts: Sequence[str], choices: Sequence[str]) -> None:
    """Prints what was picked, and keeps it for the end of the output."""
    line = f"rotation {name}: {', '.join(parts)} of {', '.join(choices)}"
    print(line)
    if line not in PICKED:
        PICKED.append(line)


def rotated(name: str, choices: Sequence[str]) -> tuple[str, ...]:
    """The parts to run now, for `pytest.mark.parametrize`: one, unless the variable asks for more."""
    if not choices:
        msg = f"rotation {name} has nothing to choose from"
        raise ValueError(msg)
    parts = asked(name, choices, os.environ.get(VARIABLE, "")) or (picked(name, choices, commit()),)
    told(name, parts, choices)
    return parts


def rotation(name: str, choices: Sequence[str]) -> str:
    """The one part to run now, its name printed. Where the variable asks for several, the commit's among them.

    Tests that are to run every part under `KRAFT_MIGRATE_ROTATE=all` parametrize over `rotated` instead.
    """
    if not choices:
        msg = f"rotation {name} has nothing to choose from"
        raise ValueError(msg)
    wanted = asked(name, choices, os.environ.get(VARIABLE, "")) or tuple(choices)
    part = picked(name, wanted, commit())
    told(name, (part,), choices)
    return part
