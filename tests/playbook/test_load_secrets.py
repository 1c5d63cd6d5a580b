"""A secret is read from a file that only its owner can read, and stands in no message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.errors import SecretUnreadable
from migrate.model.inventory import SecretFile
from migrate.playbook.load import read_secret

CANARY = "canary-4711"


def secret(tmp_path: Path, content: bytes = CANARY.encode() + b"\n", mode: int = 0o600) -> SecretFile:
    """A secret's file."""
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return SecretFile(str(path))


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_secret_comes_without_the_white_space_around_it(tmp_path: Path, mode: int) -> None:
    """Editors end files with a newline."""
    assert read_secret(secret(tmp_path, mode=mode)) == CANARY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700 | 0o040, 0o620, 0o601])
def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """With the mode, and the command that mends it."""
    found = secret(tmp_path, mode=mode)
    with pytest.raises(SecretUnreadable) as caught:
        read_secret(found)
    assert f"{mode:04o}" in caught.value.what
    assert caught.value.next_step == f"chmod 600 {found.path}"
    assert CANARY not in repr(caught.value) + str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xff\xfe" + CANARY.encode(), b"x" * 70_000])
def test_what_is_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, not text, or far too long; no part of the content is told."""
    with pytest.raises(SecretUnreadable) as caught:
        read_secret(secret(tmp_path, content))
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """Missing, a folder, and a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("missing", ".", "pipe"):
        with pytest.raises(SecretUnreadable):
            read_secret(SecretFile(str(tmp_path / name)))
