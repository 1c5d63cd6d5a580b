"""Copies of stopped controllers' metadata from other hosts prove what the directories themselves prove."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from migrate.errors import HostCommandRefused
from migrate.hosts.commands import Privilege
from migrate.hosts.remote_metadata import PARTS, RemoteMetadata
from migrate.hosts.runner import Completed, LocalRunner
from migrate.model.ids import NodeId
from migrate.model.metadata_logs import MetadataLogs
from migrate.observe.metadata_logs import metadata_logs
from tests.observe.test_metadata_files import DIGESTER, controller
from tests.observe.test_metadata_logs import VOTERS, hybrid

NODES = tuple(map(NodeId, VOTERS))


def remote() -> RemoteMetadata:
    """The nodes' hosts are this one."""
    return RemoteMetadata(dict.fromkeys(NODES, LocalRunner()), Privilege())


def test_copied_logs_prove_what_the_directories_prove(tmp_path: Path) -> None:
    """How far a majority wrote among them: whose a log is, is copied with it; nothing else is."""
    raw, end, _ = hybrid()
    places = {node: controller(tmp_path, int(node), raw) for node in NODES}
    (places[NODES[0]] / "other").write_text("not the log's")
    with remote().folders({node: str(path) for node, path in places.items()}) as found:
        copied = metadata_logs(found, DIGESTER)
        assert sorted(path.name for path in found[NODES[0]].iterdir()) == sorted(PARTS)
    assert isinstance(copied, MetadataLogs)
    assert copied == metadata_logs(places, DIGESTER)
    assert copied.end == end


def test_a_directory_without_a_log_is_an_empty_one(tmp_path: Path) -> None:
    """One that is not there, too."""
    (tmp_path / "made").mkdir()
    places = {NODES[0]: str(tmp_path / "made"), NODES[1]: str(tmp_path / "absent"), NODES[2]: str(tmp_path / "made")}
    with remote().folders(places) as found:
        assert [list(folder.iterdir()) for folder in found.values()] == [[], [], []]
        kept = found[NODES[0]].parent
    assert not kept.exists()


def test_a_log_that_cannot_be_copied_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A log of which nobody says whose it is proves nothing, and is no empty one."""
    place = controller(tmp_path, 3000, hybrid()[0])
    (place / "meta.properties").unlink()
    with pytest.raises(HostCommandRefused, match=r"meta\.properties"), remote().folders({NODES[0]: str(place)}):
        pass


class Writing(LocalRunner):
    """A host on which the controller writes on while its log is packed, or on which sudo does not let tar run."""

    def __init__(self, code: int, says: str, *, packed: bool) -> None:
        self.code, self.says, self.packed = code, says, packed

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """As GNU tar 1.34 ends, and sudo 1.9."""
        done = super().run(words, stdin=stdin, seconds=seconds)
        return done if words[0] != "tar" else Completed(self.code, done.output if self.packed else b"", self.says)


@pytest.mark.parametrize(
    ("host", "growing", "read"),
    [
        (Writing(1, "tar: 00000000000000000000.log: file changed as we read it", packed=True), True, True),
        (Writing(1, "tar: 00000000000000000000.log: file changed as we read it", packed=True), False, False),
        (Writing(2, "tar: quorum-state: Cannot open: Permission denied", packed=True), True, False),
        (Writing(1, "sudo: a password is required", packed=False), True, False),
    ],
)
def test_a_log_that_grows_can_be_read_for_a_rehearsal_alone(
    tmp_path: Path, host: Writing, growing: bool, read: bool
) -> None:
    """What changed meanwhile proves that it may be read; a right that is missing is told in either case."""
    place = controller(tmp_path, 3000, hybrid()[0])
    copies = RemoteMetadata({NODES[0]: host}, Privilege()).folders({NODES[0]: str(place)}, growing=growing)
    if read:
        with copies as found:
            assert sorted(path.name for path in found[NODES[0]].iterdir()) == sorted(PARTS)
        return
    with pytest.raises(HostCommandRefused, match=host.says.split(": ")[-1]), copies:
        pass
