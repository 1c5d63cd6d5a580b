"""Copies of stopped controllers' metadata from other hosts prove what the directories themselves prove."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from migrate.errors import HostCommandRefused
from migrate.hosts.commands import CHANGED
from migrate.hosts.remote_files import LOG, PARTS, RemoteMetadata
from migrate.hosts.runner import Completed, Holder
from migrate.model.ids import NodeId
from migrate.model.rollback_readiness import MetadataLogs
from migrate.observe.metadata_logs import metadata_logs
from tests.observe.test_metadata_files import DIGESTER, controller
from tests.observe.test_metadata_logs import VOTERS, hybrid
from tests.testing.host_program import controller as controller_node
from tests.testing.host_program import here, installed

NODES = tuple(map(NodeId, VOTERS))


def program(folder: Path, places: Mapping[NodeId, str]) -> Holder:
    """The host program of a host with controllers whose metadata is there."""
    nodes = [controller_node(int(node), folder / f"{node}.properties", place) for node, place in places.items()]
    return here(installed(folder / "program", controllers=nodes))


def remote(folder: Path, places: Mapping[NodeId, str]) -> RemoteMetadata:
    """The nodes' hosts are this one."""
    return RemoteMetadata(dict.fromkeys(NODES, program(folder, places)))


@pytest.mark.slow
def test_copied_logs_prove_what_the_directories_prove(tmp_path: Path) -> None:
    """How far a majority wrote among them: whose a log is, is copied with it; nothing else is."""
    raw, end, _ = hybrid()
    places = {node: controller(tmp_path, int(node), raw) for node in NODES}
    (places[NODES[0]] / "other").write_text("not the log's")
    paths = {node: str(path) for node, path in places.items()}
    with remote(tmp_path, paths).folders(paths) as found:
        copied = metadata_logs(found, DIGESTER)
        assert sorted(path.name for path in found[NODES[0]].iterdir()) == sorted(PARTS)
    assert isinstance(copied, MetadataLogs)
    assert copied == metadata_logs(places, DIGESTER)
    assert copied.end == end


@pytest.mark.slow
def test_a_directory_without_a_log_is_an_empty_one(tmp_path: Path) -> None:
    """One that is not there, too."""
    (tmp_path / "made").mkdir()
    (tmp_path / "other").mkdir()
    places = {NODES[0]: str(tmp_path / "made"), NODES[1]: str(tmp_path / "absent"), NODES[2]: str(tmp_path / "other")}
    with remote(tmp_path, places).folders(places) as found:
        assert [list(folder.iterdir()) for folder in found.values()] == [[], [], []]
        kept = found[NODES[0]].parent
    assert not kept.exists()


@pytest.mark.slow
def test_a_log_that_cannot_be_copied_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A log of which nobody says whose it is proves nothing, and is no empty one."""
    place = controller(tmp_path, 3000, hybrid()[0])
    (place / "meta.properties").unlink()
    places = {NODES[0]: str(place)}
    with pytest.raises(HostCommandRefused, match=r"meta\.properties"), remote(tmp_path, places).folders(places):
        pass


class Writing:
    """A host on which the controller writes on while its log is packed, or whose log may not be read."""

    host = "kafka-1"

    def __init__(self, program: Holder, code: int, says: str, bend: Callable[[bytes], bytes] = bytes) -> None:
        self.program, self.code, self.says, self.bend = program, code, says, bend

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """As the host program ends where GNU tar 1.34 ended with 1 or 2."""
        done = self.program.run(words, stdin=stdin, seconds=seconds)
        return done if words[0] != "archive" else Completed(self.code, self.bend(done.output), self.says)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "says", "growing", "read"),
    [
        (CHANGED, "tar: 00000000000000000000.log: file changed as we read it", True, True),
        (CHANGED, "tar: 00000000000000000000.log: file changed as we read it", False, False),
        (2, "tar: quorum-state: Cannot open: Permission denied", True, False),
        (1, "kraft-migrate-host: -: Permission denied", True, False),
    ],
)
def test_a_log_that_grows_can_be_read_for_a_rehearsal_alone(
    tmp_path: Path, code: int, says: str, growing: bool, read: bool
) -> None:
    """What changed meanwhile proves that it may be read; a right that is missing is told in either case."""
    place = controller(tmp_path, 3000, hybrid()[0])
    places = {NODES[0]: str(place)}
    host = Writing(program(tmp_path, places), code, says)
    copies = RemoteMetadata({NODES[0]: host}).folders(places, growing=growing)
    if read:
        with copies as found:
            assert sorted(path.name for path in found[NODES[0]].iterdir()) == sorted(PARTS)
        return
    with pytest.raises(HostCommandRefused, match=says.rsplit(": ", maxsplit=1)[-1]), copies:
        pass


def with_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Callable[[bytes], bytes]:
    """A host whose tar adds one more member."""

    def bend(raw: bytes) -> bytes:
        out = io.BytesIO(raw)
        with tarfile.open(fileobj=out, mode="a", format=tarfile.GNU_FORMAT) as archive:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            archive.addfile(info)
        return out.getvalue()

    return bend


@pytest.mark.slow
@pytest.mark.parametrize(
    "bend",
    [
        lambda _: b"",
        lambda _: b"Last login: Monday\n" * 100,
        lambda _: bytes(10240),  # an archive of nothing: not a directory without a log
        lambda raw: raw[: len(raw) // 2],
        with_member("../escaped"),
        with_member("escaped"),
        with_member(f"{LOG}/link", tarfile.SYMTYPE, "/etc/passwd"),
        with_member(f"{LOG}/device", tarfile.CHRTYPE),
        with_member(f"{LOG}/hard", tarfile.LNKTYPE, "meta.properties"),
        with_member("meta.properties"),
        with_member("meta.properties/x"),
    ],
)
def test_an_answer_that_is_no_archive_of_a_log_is_refused(
    tmp_path: Path, bend: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, in the rollback's night too; nothing of it is written outside, or taken for a log."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = controller(tmp_path, 3000, hybrid()[0])
    host = Writing(program(tmp_path, {NODES[0]: str(place)}), 0, "", bend)
    with (
        pytest.raises(HostCommandRefused, match="what `tar` answered cannot be read"),
        RemoteMetadata({NODES[0]: host}).folders({NODES[0]: str(place)}),
    ):
        pass
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.slow
def test_folders_inside_a_log_are_passed_over(tmp_path: Path) -> None:
    """Kafka makes none and reads none; somebody's copy beside a segment does not stop a rollback."""
    place = controller(tmp_path, 3000, hybrid()[0])
    (place / LOG / "old").mkdir()
    (place / LOG / "old" / "00000000000000000000.log").write_text("a copy")
    paths = {NODES[0]: str(place)}
    with remote(tmp_path, paths).folders(paths) as found:
        names = {path.name for path in (found[NODES[0]] / LOG).iterdir()}
    assert names == {path.name for path in (place / LOG).iterdir()} - {"old"}
