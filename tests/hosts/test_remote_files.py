"""Files of a host by commands keep the promises of this host's files: tried through SSH and without."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.errors import FileNotReplaced
from migrate.hosts import commands
from migrate.hosts.remote_files import FileStatus, HostFiles, RemoteFiles, error_of, parse_status
from migrate.hosts.runner import Completed, LocalRunner, Runner
from migrate.model.ids import NodeId
from tests.testing.ssh_server import ssh_server

NODE = NodeId(1)
ODD = "a b'\"$(id);*?é"


@pytest.fixture(scope="module", params=["local", "ssh"])
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Commands of this host, directly and through the real SSH client."""
    if request.param == "local":
        yield LocalRunner()
        return
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on this machine")
    with ssh_server(tmp_path_factory.mktemp("ssh")) as (_server, connections):
        yield connections.runner("kafka-1")


@pytest.fixture
def files(runner: Runner) -> RemoteFiles:
    """The files of node 1."""
    return RemoteFiles({NODE: HostFiles(runner)})


@pytest.mark.parametrize("name", ["server.properties", ODD])
def test_a_file_is_replaced_whole_and_keeps_its_mode(files: RemoteFiles, tmp_path: Path, name: str) -> None:
    """Bytes as they are, no temporary left, the mode of the old file."""
    path = tmp_path / name
    path.write_bytes(b"old")
    path.chmod(0o640)
    content = bytes(range(256)) * 100
    files.write(NODE, str(path), content)
    assert path.read_bytes() == content == files.read(NODE, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert files.names(NODE, str(tmp_path)) == [name]


def test_a_new_file_is_for_its_owner_alone(files: RemoteFiles, tmp_path: Path) -> None:
    """It may hold a password from its first byte on."""
    files.write(NODE, str(tmp_path / "new"), b"x=1\n")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")
def test_owner_stays_and_a_new_file_belongs_to_its_folders(files: RemoteFiles, tmp_path: Path) -> None:
    """Kafka must be able to read what was written for it."""
    old = tmp_path / "old"
    old.write_bytes(b"1")
    os.chown(old, 4242, 4343)
    os.chown(tmp_path, 5151, 5252)
    files.write(NODE, str(old), b"2")
    files.write(NODE, str(tmp_path / "new"), b"3")
    assert (old.stat().st_uid, old.stat().st_gid) == (4242, 4343)
    assert ((tmp_path / "new").stat().st_uid, (tmp_path / "new").stat().st_gid) == (5151, 5252)


def test_a_link_is_neither_read_nor_replaced(files: RemoteFiles, tmp_path: Path) -> None:
    """What it points to may be anybody's."""
    (tmp_path / "secret").write_bytes(b"s")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="ymbolic link") as caught:
        files.read(NODE, str(tmp_path / "link"))
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(FileNotReplaced):
        files.write(NODE, str(tmp_path / "link"), b"x")
    assert (tmp_path / "secret").read_bytes() == b"s"


def test_a_planted_link_at_the_temporary_name_is_not_followed(files: RemoteFiles, tmp_path: Path) -> None:
    """The name is known beforehand, so somebody may wait there."""
    path = tmp_path / "server.properties"
    path.write_bytes(b"old")
    (tmp_path / "victim").write_bytes(b"v")
    Path(commands.new_name(str(path))).symlink_to(tmp_path / "victim")
    files.write(NODE, str(path), b"new")
    assert (tmp_path / "victim").read_bytes() == b"v"
    assert path.read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_whole_and_no_other_file(files: RemoteFiles, tmp_path: Path) -> None:
    """Failing between the content and the rename, where a full disk would."""
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def full(_label: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files.between = full
    with pytest.raises(FileNotReplaced, match="No space left"):
        files.write(NODE, str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]  # noqa: PTH208


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_no_file_is_told_and_never_waited_for(files: RemoteFiles, tmp_path: Path, kind: str) -> None:
    """A FIFO would hang whoever opens it."""
    path = tmp_path / "x"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is asked for
        files.read(NODE, str(path))
    assert caught.value.errno == (errno.EISDIR if kind == "folder" else errno.EINVAL)
    with pytest.raises(FileNotReplaced):
        files.write(NODE, str(path), b"")


def test_what_is_not_there_is_not_found_and_does_not_exist(files: RemoteFiles, tmp_path: Path) -> None:
    """Each with the error that this host's files have."""
    path = str(tmp_path / "none")
    assert not files.exists(NODE, path)
    for call in (files.read, files.names):
        with pytest.raises(FileNotFoundError):
            call(NODE, path)
    with pytest.raises(OSError):  # noqa: PT011
        files.read(NODE, str(tmp_path / "none" / "deeper"))


def test_a_rename_never_covers_what_is_there(files: RemoteFiles, tmp_path: Path) -> None:
    """Folders too, which mv would move into."""
    (tmp_path / "old").mkdir()
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError):
        files.rename(NODE, str(tmp_path / "old"), str(tmp_path / "there"))
    files.rename(NODE, str(tmp_path / "old"), str(tmp_path / "aside"))
    assert sorted(os.listdir(tmp_path)) == ["aside", "there"]  # noqa: PTH208
    assert os.listdir(tmp_path / "there") == []  # noqa: PTH208


def test_a_folder_is_made_with_its_parents_and_made_again_for_nothing(files: RemoteFiles, tmp_path: Path) -> None:
    """The metadata directory of a controller."""
    path = tmp_path / "a" / ODD / "c"
    files.make_directory(NODE, str(path))
    files.make_directory(NODE, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_odd_names_of_a_folder_are_told_as_they_are(files: RemoteFiles, tmp_path: Path) -> None:
    """Line ends and bytes that are no UTF-8 in names."""
    for name in (b"a\nb", b"\xff\xfe", ODD.encode()):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    assert [os.fsencode(name) for name in files.names(NODE, str(tmp_path))] == sorted(
        [b"a\nb", b"\xff\xfe", ODD.encode()], key=os.fsdecode
    )


def test_complaints_become_the_errors_they_stand_for() -> None:
    """What is none of the known ones is an error of its own, never `not found`."""
    found = error_of(Completed(1, b"", "stat: cannot statx '/x': Permission denied\n"), "/x")
    assert found.errno == errno.EACCES
    assert isinstance(error_of(Completed(1, b"", "cat: /x: No such file or directory"), "/x"), FileNotFoundError)
    strange = error_of(Completed(1, b"", "stat: \x1b[2Jkann /x nicht lesen"), "/x")
    assert strange.errno == errno.EIO
    assert "\x1b" not in str(strange)


def test_the_answer_of_stat_is_read_or_refused() -> None:
    """An answer that is none is no file status."""
    line = b"regular file\n12\n640\n0:0\n1700000000.123456789\n"
    assert parse_status(line) == FileStatus("regular file", 12, "640", "0:0", 1700000000.123456789)
    with pytest.raises(ValueError, match="unpack"):
        parse_status(b"")
