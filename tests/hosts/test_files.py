"""Files of this host: replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from migrate.errors import FileNotReplaced
from migrate.hosts import files


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    """Configurations hold secrets: a file that we make is 0600 whatever the umask."""
    old = os.umask(0)
    try:
        files.replace_file(str(tmp_path / "new"), b"a=1\n")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert files.read_no_follow(str(tmp_path / "new")) == b"a=1\n"


def test_a_write_that_takes_only_a_part_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A nearly full disk takes what fits: the rest is not left out in silence."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda to, content: write(to, content[:3]))
    files.replace_file(str(tmp_path / "file"), b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"
    files.replace_file(str(tmp_path / "file"), b"")
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o400])
def test_a_replaced_file_keeps_its_mode_and_owner(tmp_path: Path, mode: int) -> None:
    """Kafka's own user must be able to read the file afterwards."""
    path = tmp_path / "server.properties"
    path.write_bytes(b"old")
    path.chmod(mode)
    before = path.stat()
    files.replace_file(str(path), b"new")
    after = path.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, before.st_uid, before.st_gid)
    assert path.read_bytes() == b"new"
    assert after.st_ino != before.st_ino
    assert names(tmp_path) == ["server.properties"]


def test_another_owner_is_kept(tmp_path: Path) -> None:
    """A file of user kafka stays one of user kafka (only root can show it)."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = tmp_path / "server.properties"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    files.replace_file(str(path), b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("call", ["write", "fchmod", "fsync", "rename"])
def test_a_failure_at_any_step_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A full or dying disk costs the change, never the file, and no temporary file stays."""
    path = tmp_path / "server.properties"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(FileNotReplaced, match="No space left") as caught:
        files.replace_file(str(path), b"new")
    monkeypatch.undo()
    assert caught.value.where == str(path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["server.properties"]


def test_an_interrupt_in_the_middle_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between write and rename is like no write."""
    path = tmp_path / "server.properties"
    path.write_bytes(b"old")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace_file(str(path), b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["server.properties"]


def test_file_and_folder_are_on_disk_before_the_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content is fsynced before the rename, the folder after it."""
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def seen_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def seen_rename(*args: object, **kwargs: object) -> None:
        steps.append("rename")
        rename(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "rename", seen_rename)
    files.replace_file(str(tmp_path / "x"), b"1")
    assert steps == ["file", "rename", "folder"]


def test_readers_see_all_of_the_old_or_all_of_the_new(tmp_path: Path) -> None:
    """Somebody who reads all the time never meets half a file."""
    path = tmp_path / "x"
    contents = {letter * 300_000 for letter in (b"a", b"b")}
    path.write_bytes(b"a" * 300_000)
    stop = threading.Event()
    torn: list[int] = []

    def read() -> None:
        while not stop.is_set():
            if path.read_bytes() not in contents:
                torn.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        for content in contents:
            files.replace_file(str(path), content)
    stop.set()
    reader.join()
    assert torn == []


def test_a_link_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    """Where the path ends in a link, what it points to is not touched, and nobody reads through it."""
    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(FileNotReplaced, match="it is a link"):
        files.replace_file(str(link), b"new")
    with pytest.raises(OSError, match="symbolic links") as caught:
        files.read_no_follow(str(link))
    assert caught.value.errno == errno.ELOOP
    assert target.read_bytes() == b"old"
    assert link.is_symlink()


@pytest.mark.slow
def test_what_is_no_regular_file_is_refused_without_hanging(tmp_path: Path) -> None:
    """A FIFO would block for ever, a folder is no file."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "folder"):
        with pytest.raises(OSError, match="not a regular file"):
            files.read_no_follow(str(tmp_path / name))
        with pytest.raises(FileNotReplaced, match="no regular file"):
            files.replace_file(str(tmp_path / name), b"x")


def test_a_missing_file_and_a_huge_one_are_errors(tmp_path: Path) -> None:
    """Reading is bounded, and *not there* is told apart from *empty*."""
    with pytest.raises(FileNotFoundError):
        files.read_no_follow(str(tmp_path / "none"))
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(files.READ_LIMIT + 1)
    with pytest.raises(OSError, match="larger than"):
        files.read_no_follow(str(tmp_path / "huge"))
    (tmp_path / "empty").touch()
    assert files.read_no_follow(str(tmp_path / "empty")) == b""


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """One byte more is not."""
    (tmp_path / "most").write_bytes(b"x" * 1000)
    assert files.read_no_follow(str(tmp_path / "most"), limit=1000) == b"x" * 1000
    with pytest.raises(OSError, match="larger than 999 bytes"):
        files.read_no_follow(str(tmp_path / "most"), limit=999)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """A run reads and writes for days."""
    path = str(tmp_path / "x")
    files.replace_file(path, b"1")
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        files.replace_file(path, b"2")
        files.read_no_follow(path)
        with pytest.raises(OSError, match="not a regular file"):
            files.read_no_follow(str(tmp_path))
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_what_is_no_folder_is_none_to_write_in(tmp_path: Path) -> None:
    """A file in a folder's place."""
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), files.open_folder(str(tmp_path / "file")):
        pytest.fail("it was opened")


def test_a_missing_folder_is_a_typed_error(tmp_path: Path) -> None:
    """Writing does not make folders by the way."""
    with pytest.raises(FileNotReplaced, match="No such file"):
        files.replace_file(str(tmp_path / "none" / "x"), b"1")
