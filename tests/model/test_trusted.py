"""Who could have written a file that decides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.model.trusted import distrust, distrust_of

NOBODY = 65534


@pytest.mark.parametrize(
    ("mode", "says"),
    [(0o600, ""), (0o644, ""), (0o755, ""), (0o622, "everybody"), (0o666, "everybody"), (0o602, "everybody")],
)
def test_nobody_else_may_write_it(tmp_path: Path, mode: int, says: str) -> None:
    """Reading is no matter here."""
    file = tmp_path / "plan.json"
    file.touch()
    file.chmod(mode)
    found = distrust(file.stat())
    assert (says in found) if says else found == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_file_of_another_user_is_not_believed_and_neither_is_a_group_of_others(tmp_path: Path) -> None:
    """Whoever owns a file may change it tomorrow."""
    file = tmp_path / "inventory.yaml"
    file.touch()
    file.chmod(0o644)
    os.chown(file, NOBODY, 0)
    assert "it belongs to" in distrust(file.stat())
    os.chown(file, 0, NOBODY)
    file.chmod(0o664)
    assert "others of its group" in distrust(file.stat())
    os.chown(file, 0, 0)
    assert distrust(file.stat()) == ""


def test_a_sticky_folder_is_fine_and_an_open_one_is_not(tmp_path: Path) -> None:
    """Nobody can replace another's file in /tmp; the first path that is wrong is named."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o1777)
    assert distrust_of(folder) == ""
    folder.chmod(0o777)
    assert distrust_of(tmp_path, folder).startswith(f"{folder}: ")
