"""Copies of stopped controllers' metadata from other hosts prove what the directories themselves prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from migrate.errors import HostCommandRefused
from migrate.hosts.commands import CHANGED
from migrate.hosts.held_command import Holder
from migrate.hosts.remote_metadata import PARTS, RemoteMetadata
from migrate.hosts.runner import Completed
from migrate.model.ids import NodeId
from migrate.model.metadata_logs import MetadataLogs
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


def test_a_directory_without_a_log_is_an_empty_one(tmp_path: Path) -> None:
    """One that is not there, too."""
    (tmp_path / "made").mkdir()
    (tmp_path / "other").mkdir()
    places = {NODES[0]: str(tmp_path / "made"), NODES[1]: str(tmp_path / "absent"), NODES[2]: str(tmp_path / "other")}
    with remote(tmp_path, places).folders(places) as found:
        assert [list(folder.iterdir()) for folder in found.values()] == [[], [], []]
        kept = found[NODES[0]].parent
    assert not kept.exists()


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

    def __init__(self, program: Holder, code: int, says: str) -> None:
        self.program, self.code, self.says = program, code, says

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """As the host program ends where GNU tar 1.34 ended with 1 or 2."""
        done = self.program.run(words, stdin=stdin, seconds=seconds)
        return done if words[0] != "archive" else Completed(self.code, done.output, self.says)


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
