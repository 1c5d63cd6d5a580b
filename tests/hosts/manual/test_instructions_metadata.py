"""Metadata logs that people bring: asked for where one is needed, bound to the stop, whole, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from migrate.errors import MetadataAwaited, NotTold
from migrate.hosts.manual.metadata import ManualMetadata
from migrate.hosts.remote_files import LOG
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from tests.testing.person import Bench, bench

CONTROLLER = NodeId(3000)


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """Both hosts, looked at once."""
    found = bench(tmp_path)
    found.look()
    return found


@pytest.fixture
def stopped(hosts: Bench) -> Bench:
    """The controller has a log, and the collector saw it."""
    log = hosts.root / "meta" / LOG
    log.mkdir(parents=True)
    (log / "00000000000000000000.log").write_bytes(b"canary-in-the-log")
    (hosts.root / "meta" / "meta.properties").write_text("node.id=3000\n")
    (hosts.root / "meta" / "other").write_text("not the log's")
    hosts.look()
    return hosts


def places(hosts: Bench) -> dict[NodeId, str]:
    """Where the controller's metadata lies on its host."""
    return {CONTROLLER: str(hosts.root / "meta")}


def request(hosts: Bench) -> Path:
    """The one that is open."""
    with pytest.raises(MetadataAwaited, match="node 3000 at"), ManualMetadata(hosts.desk).folders(places(hosts)):
        pass
    return max(hosts.desk.folder.glob("metadata-*"), key=lambda folder: folder.stat().st_mtime_ns)


def taken(hosts: Bench) -> int:
    """When the controller's host was looked at."""
    answer = hosts.desk.answer(CONTROLLER)
    assert not isinstance(answer, Unknown)
    return answer.collected.taken


def bring(hosts: Bench, folder: Path) -> list[Path]:
    """What the request says, and both files into the inbox; where they are now."""
    copy = hosts.root / "host" / folder.name
    shutil.copytree(folder, copy)
    for line in (copy / "commands.txt").read_text().splitlines():
        subprocess.run(["/bin/sh", "-c", line], cwd=copy, check=True)
    return [Path(shutil.copy(path, hosts.desk.inbox.folder)) for path in sorted(copy.glob("metadata-*.tar*"))]


@pytest.mark.slow
def test_that_no_metadata_log_is_there_is_told(hosts: Bench) -> None:
    """A directory that is not there, or was only formatted, is an empty one; without an answer nothing is known."""
    metadata = ManualMetadata(hosts.desk)
    for _ in range(2):
        with metadata.folders(places(hosts)) as found:
            assert list(found[CONTROLLER].iterdir()) == []
        (hosts.root / "meta").mkdir(exist_ok=True)
        hosts.look()
    assert list(hosts.desk.folder.glob("metadata-*")) == []
    (hosts.root / "inbox/answer-3000.json").unlink()
    with pytest.raises(NotTold), metadata.folders(places(hosts)):
        pass


@pytest.mark.slow
def test_a_log_that_nobody_brought_is_asked_for_once_and_not_taken_for_empty(stopped: Bench) -> None:
    """The request says what to run, what it is for and that it holds credentials; it holds none itself."""
    folder = request(stopped)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert request(stopped) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    text = (folder / "README.txt").read_text()
    assert f"tar -C {stopped.root}/meta" in text
    assert "holds credentials" in text
    assert str(stopped.desk.inbox.folder) in text
    assert stopped.desk.open() is None  # it is no instruction: nothing is changed by it


@pytest.mark.slow
def test_a_log_that_was_brought_is_read_as_it_lay_there(stopped: Bench) -> None:
    """The log's own files, and nothing of them stays outside the inbox."""
    bring(stopped, request(stopped))
    metadata = ManualMetadata(stopped.desk)
    with metadata.folders(places(stopped)) as found:
        files = sorted(path for path in found[CONTROLLER].rglob("*") if path.is_file())
        names = [path.relative_to(found[CONTROLLER]).as_posix() for path in files]
        assert names == [f"{LOG}/00000000000000000000.log", "meta.properties"]
        assert [path.read_bytes() for path in files] == [b"canary-in-the-log", b"node.id=3000\n"]
        place = found[CONTROLLER]
    assert not place.exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cut", "without-sum", "bent-sum"])
def test_an_archive_that_is_not_whole_counts_for_nothing(stopped: Bench, how: str) -> None:
    """Half a log would say that nothing is missing."""
    archive, told = bring(stopped, request(stopped))
    match how:
        case "cut":
            archive.write_bytes(archive.read_bytes()[:512])
        case "without-sum":
            told.unlink()
        case _:
            told.write_text("0" * 64)
    assert request(stopped).name == archive.name.removesuffix(".tar")


@pytest.mark.slow
def test_an_archive_of_before_a_later_look_counts_for_nothing_and_is_deleted(stopped: Bench) -> None:
    """The controller may have run in between; and the old one holds credentials."""
    first = request(stopped)
    brought = bring(stopped, first)
    before = taken(stopped)
    while taken(stopped) == before:  # answers tell whole seconds
        stopped.look()
    again = request(stopped)
    assert again != first
    assert [path.exists() for path in brought] == [False, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        (f"{LOG}/../../../escaped", tarfile.REGTYPE, "leads out"),
        ("elsewhere/1.log", tarfile.REGTYPE, "belongs in no archive"),
        (f"{LOG}/link", tarfile.SYMTYPE, "none of a plain file"),
        (f"{LOG}/sparse", tarfile.GNUTYPE_SPARSE, "none of a plain file"),
    ],
)
def test_an_archive_with_anything_but_the_logs_own_files_is_refused(
    stopped: Bench, name: str, kind: bytes, why: str
) -> None:
    """Neither a link, nor a name that leads out, nor another folder; the sum is that of its host."""
    archive, _ = bring(stopped, request(stopped))
    with tarfile.open(archive, "a", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo(name)
        info.type = kind
        tar.addfile(info)
    summed(archive)
    with pytest.raises(NotTold, match=why), ManualMetadata(stopped.desk).folders(places(stopped)):
        pass
    assert not list(stopped.root.rglob("escaped"))


@pytest.mark.slow
@pytest.mark.parametrize("raw", [b"no archive", b"", bytes(10240)])
def test_a_file_that_is_no_archive_of_a_log_is_told(stopped: Bench, raw: bytes) -> None:
    """What brings a right one is said; an empty archive is no empty log."""
    archive, _ = bring(stopped, request(stopped))
    archive.write_bytes(raw)
    summed(archive)
    with (
        pytest.raises(NotTold, match="is no archive of a metadata log") as raised,
        ManualMetadata(stopped.desk).folders(places(stopped)),
    ):
        pass
    assert "bring both files again" in raised.value.next_step


def summed(archive: Path) -> None:
    """Its sum beside it."""
    done = subprocess.run(["sha256sum", archive.name], cwd=archive.parent, capture_output=True, check=True)
    archive.with_name(f"{archive.name}.sha256").write_bytes(done.stdout)
