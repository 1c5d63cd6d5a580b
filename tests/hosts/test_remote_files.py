"""Files of a host by the host program keep the promises of this host's files: tried through SSH and without."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from migrate.errors import FileNotReplaced, HostCommandUnknown, HostProgramMissing
from migrate.hosts.commands import HostAccess
from migrate.hosts.host_program import NOT_PROVEN
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.remote_files import FileStatus, RemoteFiles, error_of, parse_status
from migrate.hosts.runner import COMMAND_SECONDS, Completed, Holder, LocalRunner, ProgramHolder
from migrate.model.ids import NodeId
from tests.testing.host_program import broker, controller, installed
from tests.testing.ssh_server import ssh_server

NODE, CONTROLLER = NodeId(1), NodeId(3000)
ODD = "a b'\"$(id);*?é"
TIME = "20260102T030405"


@pytest.fixture(scope="module", params=["local", "ssh"])
def holder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holder]:
    """This host, directly and through the real SSH client."""
    if request.param == "local":
        yield LocalRunner()
        return
    if shutil.which("ssh") is None:
        pytest.skip("no OpenSSH client on this machine")
    with ssh_server(tmp_path_factory.mktemp("ssh")) as (_server, connections):
        yield connections.runner("kafka-1")


class Answering(LocalRunner):
    """A host on which every command ends in one way."""

    def __init__(self, done: Completed) -> None:
        self.done = done

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = COMMAND_SECONDS) -> Completed:
        """That way."""
        return self.done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the configurations."""
    found = tmp_path / "conf"
    found.mkdir()
    return found


def files_of(holder: Holder, folder: Path, name: str = "server.properties") -> RemoteFiles:
    """The files of a broker with that configuration, and of a controller beside it."""
    access = installed(
        folder.parent / "program",
        [broker(1, folder / name)],
        [controller(3000, folder / "controller.properties", folder.parent / "a" / ODD / "metadata")],
    )
    program = ProgramHolder(holder, access)
    return RemoteFiles({NODE: program, CONTROLLER: program})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server.properties", ODD])
def test_a_file_is_replaced_whole_and_keeps_its_mode(holder: Holder, folder: Path, name: str) -> None:
    """Bytes as they are, no temporary left, the mode of the old file."""
    files, path = files_of(holder, folder, name), folder / name
    path.write_bytes(b"old")
    path.chmod(0o640)
    content = bytes(range(256)) * 100
    files.write(NODE, str(path), content)
    assert path.read_bytes() == content == files.read(NODE, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert files.names(NODE, str(folder)) == [name]


@pytest.mark.slow
def test_owner_stays_and_a_copy_has_that_of_its_original(holder: Holder, folder: Path) -> None:
    """Kafka must be able to read what was written for it."""
    files, path = files_of(holder, folder), folder / "server.properties"
    path.write_bytes(b"1")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 4242, 4343)
    before = path.stat()
    files.write(NODE, str(path), b"2")
    files.keep(NODE, {str(path): (f"{path}{BACKUP_SUFFIX}", b"2")})
    for place in (path, Path(f"{path}{BACKUP_SUFFIX}")):
        now = place.stat()
        assert (now.st_uid, now.st_gid, now.st_mode) == (before.st_uid, before.st_gid, before.st_mode), place


@pytest.mark.slow
def test_a_controllers_new_file_is_as_the_brokers_file_of_that_host(holder: Holder, folder: Path) -> None:
    """Else its process could not read it, and that would be seen in the middle of a run."""
    files, path = files_of(holder, folder), folder / "server.properties"
    path.write_bytes(b"node.id=1\n")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 0, 4343)
    files.write(CONTROLLER, str(folder / "controller.properties"), b"node.id=3000\n")
    new, model = (folder / "controller.properties").stat(), path.stat()
    assert (new.st_uid, new.st_gid, new.st_mode) == (model.st_uid, model.st_gid, model.st_mode)


@pytest.mark.slow
def test_a_link_is_neither_read_nor_replaced(holder: Holder, folder: Path) -> None:
    """What it points to may be anybody's."""
    files, path = files_of(holder, folder), folder / "server.properties"
    (folder / "secret").write_bytes(b"s")
    path.symlink_to(folder / "secret")
    with pytest.raises(OSError, match="ymbolic link") as caught:
        files.read(NODE, str(path))
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(FileNotReplaced):
        files.write(NODE, str(path), b"x")
    assert (folder / "secret").read_bytes() == b"s"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_no_file_is_told_and_never_waited_for(holder: Holder, folder: Path, kind: str) -> None:
    """A FIFO would hang whoever opens it."""
    files, path = files_of(holder, folder), folder / "server.properties"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is asked for
        files.read(NODE, str(path))
    assert caught.value.errno == (errno.EISDIR if kind == "folder" else errno.EINVAL)
    with pytest.raises(FileNotReplaced):
        files.write(NODE, str(path), b"")


@pytest.mark.slow
def test_what_is_not_there_is_not_found_and_does_not_exist(holder: Holder, folder: Path) -> None:
    """Each with the error that this host's files have."""
    files, path = files_of(holder, folder), str(folder / "server.properties")
    assert not files.exists(NODE, path)
    with pytest.raises(FileNotFoundError):
        files.read(NODE, path)
    with pytest.raises(FileNotFoundError):
        files.names(NODE, str(folder / "none"))
    with pytest.raises(OSError):  # noqa: PT011
        files.read(NODE, str(folder / "none" / "deeper"))


@pytest.mark.slow
def test_a_rename_never_covers_what_is_there(holder: Holder, folder: Path) -> None:
    """The old file stays where it is."""
    files, path = files_of(holder, folder), folder / "server.properties"
    path.write_bytes(b"1")
    aside = Path(f"{path}{ASIDE_SUFFIX}-{TIME}")
    aside.write_bytes(b"2")
    with pytest.raises(FileExistsError):
        files.rename(NODE, str(path), str(aside))
    assert (path.read_bytes(), aside.read_bytes()) == (b"1", b"2")
    files.rename(NODE, str(path), f"{aside}-2")
    assert files.names(NODE, str(folder)) == [aside.name, f"{aside.name}-2"]


@pytest.mark.slow
def test_a_folder_is_made_with_its_parents_and_made_again_for_nothing(holder: Holder, folder: Path) -> None:
    """The metadata directory of a controller."""
    files, path = files_of(holder, folder), folder.parent / "a" / ODD / "metadata"
    files.make_directory(CONTROLLER, str(path))
    files.make_directory(CONTROLLER, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


@pytest.mark.slow
def test_odd_names_of_a_folder_are_told_as_they_are(holder: Holder, folder: Path) -> None:
    """Line ends and bytes that are no UTF-8 in names."""
    files, place = files_of(holder, folder), folder.parent / "disk"
    place.mkdir()
    for name in (b"a\nb", b"\xff\xfe", ODD.encode()):
        Path(os.fsdecode(os.fsencode(place) + b"/" + name)).touch()
    assert [os.fsencode(name) for name in files.names(NODE, str(place))] == sorted(
        [b"a\nb", b"\xff\xfe", ODD.encode()], key=os.fsdecode
    )


@pytest.mark.slow
def test_a_path_that_is_not_configured_is_refused_by_the_program(holder: Holder, folder: Path) -> None:
    """With its own words, and nothing is written."""
    files = files_of(holder, folder)
    with pytest.raises(FileNotReplaced, match=r"it is no path of node 1"):
        files.write(NODE, str(folder / "another"), b"x")
    assert not (folder / "another").exists()


@pytest.mark.parametrize("access", [HostAccess("/none/host", sudo=False), HostAccess("/none/host", sudo=True)])
def test_a_host_without_the_program_says_how_it_is_installed(holder: Holder, access: HostAccess) -> None:
    """With an id of its own, whether a shell or sudo misses it."""
    if access.sudo and not shutil.which("sudo"):
        pytest.skip("no sudo on this machine")
    with pytest.raises(HostProgramMissing, match="does not run") as caught:
        RemoteFiles({NODE: ProgramHolder(holder, access)}).exists(NODE, "/etc/x")
    assert f"--host-setup {holder.host}" in caught.value.next_step


def test_a_program_that_ran_is_there_whatever_sudo_warned_of_before() -> None:
    """Each call of a host that does not know its own name begins with a line of sudo's, and goes on."""
    warning = "sudo: unable to resolve host kafka-1: Name or service not known\n"
    missing = Completed(1, b"", f"{warning}kraft-migrate-host: /etc/x: No such file or directory\n")
    with pytest.raises(FileNotFoundError):
        RemoteFiles({NODE: ProgramHolder(Answering(missing), HostAccess())}).remove(NODE, "/etc/x")
    denied = Completed(1, b"", f"{warning}sudo: a password is required\n")
    with pytest.raises(HostProgramMissing):
        RemoteFiles({NODE: ProgramHolder(Answering(denied), HostAccess())}).remove(NODE, "/etc/x")


def test_of_a_content_that_is_not_proven_nobody_says_that_the_old_one_is_there() -> None:
    """It has its name already; a refusal before that has changed nothing."""
    said = Completed(NOT_PROVEN, b"", "kraft-migrate-host: /etc/x: Input/output error\n")
    with pytest.raises(HostCommandUnknown, match=r"not proven that it was written.*Input/output error"):
        RemoteFiles({NODE: ProgramHolder(Answering(said), HostAccess())}).write(NODE, "/etc/x", b"new")
    full = Completed(1, b"", "kraft-migrate-host: /etc/x: No space left on device\n")
    with pytest.raises(FileNotReplaced, match="No space left"):
        RemoteFiles({NODE: ProgramHolder(Answering(full), HostAccess())}).write(NODE, "/etc/x", b"new")


def test_complaints_become_the_errors_they_stand_for() -> None:
    """What is none of the known ones is an error of its own, never `not found`."""
    found = error_of(Completed(1, b"", "kraft-migrate-host: /x: Permission denied\n"), "/x")
    assert found.errno == errno.EACCES
    assert isinstance(
        error_of(Completed(1, b"", "kraft-migrate-host: /x: No such file or directory"), "/x"), FileNotFoundError
    )
    strange = error_of(Completed(1, b"", "x: \x1b[2Jkann /x nicht lesen"), "/x")
    assert strange.errno == errno.EIO
    assert "\x1b" not in str(strange)


@pytest.mark.slow
def test_the_answer_of_stat_is_read_or_refused() -> None:
    """An answer that is none is no file status."""
    line = b"regular file\n12\n640\n0:0\n1700000000.123456789\n"
    assert parse_status(line) == FileStatus("regular file", 12, "640", "0:0", 1700000000.123456789)
    with pytest.raises(ValueError, match="unpack"):
        parse_status(b"")
