"""What runs left on a host is found by its names, and nothing else is taken for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.files import LocalFiles
from migrate.hosts.leftovers import is_copy, leftovers
from tests.testing import worlds


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A controller's file with copies, its metadata directory with what a rollback set aside."""
    names = ("", ".kraft-migrate-backup", ".kraft-migrate-backup-0a1b2c3d", ".kraft-migrate-set-aside-20260101T000000")
    for name in (*(f"c.properties{name}" for name in names), "c.properties.kraft-migrate-lock", "c.properties.orig"):
        (tmp_path / name).write_text("password=x")
    (tmp_path / "other.properties.kraft-migrate-backup").write_text("of another node")
    (tmp_path / "m" / "kraft-migrate-aside-20260101T000000").mkdir(parents=True)
    (tmp_path / "m" / "lost+found").mkdir()
    return tmp_path


def test_copies_and_what_was_set_aside_are_found(host: Path) -> None:
    """Of this node alone; its own file, a person's copy and a lock are none."""
    node = replace(
        worlds.inventory().controllers[0], config=str(host / "c.properties"), metadata_directory=f"{host}/m/"
    )
    found = leftovers(LocalFiles(), node)
    assert [path.removeprefix(f"{host}/") for path in found] == [
        "c.properties.kraft-migrate-backup",
        "c.properties.kraft-migrate-backup-0a1b2c3d",
        "c.properties.kraft-migrate-set-aside-20260101T000000",
        "m/kraft-migrate-aside-20260101T000000",
    ]
    assert [is_copy(path) for path in found] == [True, True, True, False]
    gone = replace(node, metadata_directory=str(host / "nothing"))
    assert len(leftovers(LocalFiles(), gone)) == 3


def test_a_folder_that_cannot_be_listed_is_an_error() -> None:
    """Not an empty one."""
    node = replace(worlds.inventory().brokers[0], config="/nothing/b.properties")
    with pytest.raises(FileNotFoundError):
        leftovers(LocalFiles(), node)


@pytest.mark.parametrize("path", ["/etc/kafka/server.properties", "/x.kraft-migrate-backup/server.properties", "/m/a"])
def test_a_nodes_own_file_is_no_copy(path: str) -> None:
    """By the last part of its path."""
    assert not is_copy(path)
