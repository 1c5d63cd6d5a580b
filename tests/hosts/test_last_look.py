"""Before a start each disk stores a block, also one that has just stored one; where nobody may look, none is fine."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.hosts import directories
from migrate.hosts.directories import LocalDisks
from migrate.hosts.last_look import not_storing
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks


def test_a_disk_that_filled_up_a_moment_after_a_look_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look believes a disk for seconds; the last one before a start does not."""
    one, two = tmp_path / "d0", tmp_path / "d1"
    for path in (one, two):
        path.mkdir()
    disks = LocalDisks()
    paths = [str(one), str(two)]
    assert not_storing(disks, NodeId(1), paths) == {}
    assert isinstance(disks.look(NodeId(1), paths, None), BrokerDisks)

    def full(path: str) -> None:
        if path == str(two):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(directories, "store_block", full)
    seen = disks.look(NodeId(1), paths, None)
    assert isinstance(seen, BrokerDisks)
    assert all(entry.healthy for entry in seen.directories), "within seconds of a stored block it is not asked again"
    assert not_storing(disks, NodeId(1), paths) == {str(two): "cannot be written: No space left on device"}


class _Elsewhere:
    def look(self, broker: NodeId, log_dirs: object, metadata_dir: object) -> BrokerDisks | Unknown:
        return Unknown("the host does not answer")


def test_where_nobody_may_look_no_disk_is_fine() -> None:
    """Each is named, with the reason."""
    why = "cannot be looked at: the host does not answer"
    assert not_storing(_Elsewhere(), NodeId(1), ["/a", "/b"]) == {"/a": why, "/b": why}
