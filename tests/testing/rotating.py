"""Rotating parts of dear tests: every commit runs one of several equal ones, so that in time all of them run.

Some rotations are so dear that they take turns besides (`TURNS`): a commit runs some of them.
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

import pytest

VARIABLE = "KRAFT_MIGRATE_ROTATE"
DISKS = ("zookeeper-gone", "migration-gone", "kraft-gone", "directory-playbook")  # of two files: one costs as much
HANDS = ("broker-start", "copy-drops", "in-hybrid", "topics")  # of two files, as above
HOSTS = ("ssh", "manual", "other-users")  # of two files, as above
TURNS = (
    *("disks", "from-bundle", "hands", "hole", "hosts", "install", "killed", "lost-writes", "motion", "newer-kafka"),
    *("rollback", "secured", "spark-cluster", "stale-migration", "stuck"),
)
SEATS = 2  # of the dear rotations above run for one commit: all of them take longer than a run of the tests may
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


def asked(name: str, choices: Sequence[str], request: str) -> tuple[str, ...]:
    """The parts of this rotation that a value of the variable names; empty where it speaks of others."""
    words = [word.strip() for word in request.split(",") if word.strip()]
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


def seated(commit_hash: str | None) -> frozenset[str]:
    """The dear rotations that a commit runs at all; the others have their turn at other commits."""
    names = sorted(TURNS, key=lambda name: hashlib.sha256(f"turn:{name}:{commit_hash}".encode()).digest())
    return frozenset(names[:SEATS])


def has_turn(name: str) -> bool:
    """Does that dear rotation run now?  Whoever sets the variable gets every one."""
    if name not in TURNS:
        msg = f"{name} is not among the rotations that take turns"
        raise ValueError(msg)
    found = bool(os.environ.get(VARIABLE)) or name in seated(commit())
    line = f"turn of {name}: {'this commit' if found else 'other commits'}"
    if line not in PICKED:
        PICKED.append(line)
    return found


def in_turn(name: str) -> pytest.MarkDecorator:
    """The mark of tests that run when their rotation has its turn."""
    return pytest.mark.skipif(not has_turn(name), reason=f"{name}: other commits' turn ({VARIABLE}={name}=all runs it)")


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
