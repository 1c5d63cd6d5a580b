"""Where a command shall write is tried before its work; what it writes is its owner's alone."""

from __future__ import annotations

import stat
from pathlib import Path

import click
import pytest

from migrate.cli.main import cli
from migrate.cli.options import OUTPUT_FILE, OutputPath, require_file, require_folder
from migrate.errors import SystemRefused, UsageWrong
from tests.cli.commands import dead_port, inventory_in, kraft_migrate, playbook_in, process
from tests.cli.test_apply import make
from tests.cli.test_main import ALL
from tests.testing.full_disk import fill, small_disk
from tests.testing.no_room import no_room

WRITES = {"out", "html", "parquet", "folder"}


def options(words: tuple[str, ...]) -> list[click.Parameter]:
    """A command's own."""
    found: click.Command = cli
    for word in words:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return found.params


def test_every_option_that_names_an_output_tries_it_first() -> None:
    """By the option's name: one that is added later is held to it as well."""
    found = {
        (*words, option.name): isinstance(option.type, OutputPath)
        for words in ALL
        for option in options(words)
        if isinstance(option, click.Option) and option.name in WRITES and isinstance(option.type, click.Path)
    }
    assert len(found) >= 9
    assert [words for words, tried in found.items() if not tried] == []


def commands(folder: Path) -> list[tuple[object, ...]]:
    """Each with what it needs, but for the place; what they would ask is not there."""
    make(folder)
    playbook, inventory = folder / "playbook.yaml", folder / "inventory.yaml"
    return [
        ("plan", playbook, "--out"),
        ("rollback", "plan", playbook, "--out"),
        ("assess", "--inventory", inventory, "--html"),
        ("directories", "show", "--inventory", inventory, "--html"),
        ("diff", "--inventory", inventory, "--parquet"),
        ("inventory", "init", "--zookeeper", "127.0.0.1:1", "--out"),
        ("bundle", "create", "--inventory", inventory),
        ("backup", "create", "--inventory", inventory),
    ]


def test_a_place_that_takes_no_file_ends_each_command_before_its_work(tmp_path: Path) -> None:
    """A file above it, and a disk without room: nothing was asked of the cluster, and nothing is left there."""
    folder = tmp_path / "work"
    folder.mkdir()
    given = commands(folder)
    before = sorted(folder.rglob("*"))
    for words in given:
        blocked = kraft_migrate(*words, folder / "plan.json" / "x")
        assert blocked.code == 64, (words, blocked)
        assert "E-USAGE" in blocked.err
        with no_room():
            full = kraft_migrate(*words, folder / "x")
        assert (full.code, full.out) == (1, ""), (words, full)
        assert full.err.startswith("E-SYS-01: nothing can be written there: File too large\n"), words
        assert f"where  {folder / 'x'}" in full.err
    assert sorted(folder.rglob("*")) == before


def test_runs_that_take_no_file_end_a_plan_before_the_cluster_is_asked(tmp_path: Path) -> None:
    """The plan is saved there when the look is over."""
    playbook_in(tmp_path)
    for words in (("plan",), ("rollback", "plan")):
        with no_room():
            ended = kraft_migrate(*words, tmp_path / "playbook.yaml")
        assert ended.err.startswith("E-SYS-01: nothing can be written there"), ended
        assert f"where  {tmp_path / 'runs'}" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_real_disk_without_room_is_told_by_name(tmp_path: Path) -> None:
    """ENOSPC, by the same words."""
    with small_disk(tmp_path / "disk") as disk:
        require_file(disk / "x")
        require_folder(disk / "a" / "b")
        fill(disk)
        for ask, path in ((require_file, disk / "x"), (require_folder, disk / "a" / "b")):
            with pytest.raises(SystemRefused, match="nothing can be written there: No space left on device"):
                ask(path)
        assert [path.name for path in disk.iterdir()] == ["filling"]


def test_what_cannot_be_a_file_or_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    """Links, folders and devices are not written through; a folder that is there may be used again."""
    (tmp_path / "link").symlink_to(tmp_path / "other")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "link", Path("/dev/full"), tmp_path / "none" / "x"):
        with pytest.raises(UsageWrong):
            require_file(path)
    for path in (tmp_path / "file", tmp_path / "file" / "x", tmp_path / "link"):
        with pytest.raises(UsageWrong, match="a file is in its way"):
            require_folder(path)
    require_file(tmp_path / "file")
    require_folder(tmp_path)
    assert OUTPUT_FILE.convert(str(tmp_path / "x"), None, None) == tmp_path / "x"


@pytest.mark.slow
def test_what_is_written_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    """Runs and plans: with umask 000 everybody could exchange them."""
    program = "import os; os.umask(0); from migrate.cli.main import main; main()"
    with dead_port():
        inventory_in(tmp_path)
    _, plan = make(tmp_path)
    ended = process("apply", plan, code=program)
    assert ended.code == 1, ended
    made = [tmp_path / "runs", *(tmp_path / "runs").rglob("*")]
    assert {"lock", "journal.jsonl"} <= {path.name for path in made}
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.slow
@pytest.mark.parametrize("words", [("explain",), ("--help",), ("playbook", "schema")])
def test_an_output_that_takes_nothing_is_told_and_ends_with_1(words: tuple[str, ...]) -> None:
    """/dev/full says what a full disk says; Python's own line about it does not end in a traceback or 120."""
    program = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); from migrate.cli.main import main; main()"
    ended = process(*words, code=program)
    assert ended.code == 1, ended
    assert ended.err.startswith("E-SYS-01: No space left on device\n"), ended.err
    assert "Traceback" not in ended.err
