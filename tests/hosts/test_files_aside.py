"""A controller's metadata is set aside inside its directory: on a mount point too, and whole after any kill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.hosts import leftovers
from migrate.model.ids import NodeId
from tests.testing.this_host import LocalFiles

NODE = NodeId(3000)
STAMP = "20260101T000000"
FILES = LocalFiles()
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


class KilledError(Exception):
    """Stands for the death of the process."""


def quorum(folder: Path) -> Path:
    """A directory as Kafka leaves it, with what is not Kafka's beside."""
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    (folder / "__cluster_metadata-0" / "00000000000000000000.log").write_text("log")
    for name in ("bootstrap.checkpoint", "meta.properties", ".lock", "notes.txt"):
        (folder / name).write_text(name)
    (folder / "lost+found").mkdir(exist_ok=True)
    return folder


def set_aside(folder: Path, *, killed_at: str = "") -> str:
    """Where it went."""

    def between(entry: str) -> None:
        if entry == killed_at:
            raise KilledError

    new = leftovers.choose_aside_folder(FILES, NODE, str(folder), STAMP)
    leftovers.set_metadata_aside(FILES, NODE, str(folder), new, between)
    return new


def listed(folder: str | Path) -> list[str]:
    """Names in it."""
    return sorted(entry.name for entry in Path(folder).iterdir())


def test_only_what_kafka_wrote_is_moved(tmp_path: Path) -> None:
    """`lost+found`, snapshots of a file server and notes of people stay where they are."""
    folder = quorum(tmp_path / "m")
    assert leftovers.holds_metadata(FILES, NODE, str(folder))
    new = set_aside(folder)
    assert listed(folder) == [f"kraft-migrate-aside-{STAMP}", "lost+found", "notes.txt"]
    assert listed(new) == [".lock", "__cluster_metadata-0", "bootstrap.checkpoint", "meta.properties"]
    assert not leftovers.holds_metadata(FILES, NODE, str(folder))


@pytest.mark.parametrize("killed_at", leftovers.ENTRIES)
def test_a_killed_move_goes_on_into_the_same_folder(tmp_path: Path, killed_at: str) -> None:
    """The metadata counts as not set aside until its meta.properties, the last entry, is moved."""
    folder = quorum(tmp_path / "m")
    with pytest.raises(KilledError):
        set_aside(folder, killed_at=killed_at)
    assert leftovers.holds_metadata(FILES, NODE, str(folder))
    new = set_aside(folder)
    assert listed(new) == [".lock", "__cluster_metadata-0", "bootstrap.checkpoint", "meta.properties"]
    assert listed(folder) == [f"kraft-migrate-aside-{STAMP}", "lost+found", "notes.txt"]


def test_each_rollback_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """Twice in one second, and after a directory without meta.properties."""
    folder = quorum(tmp_path / "m")
    (folder / "meta.properties").unlink()
    found = [set_aside(folder)]
    for _ in range(2):
        quorum(folder)
        found.append(set_aside(folder))
    assert [path.rpartition("/")[2] for path in found] == [
        f"kraft-migrate-aside-{STAMP}{number}" for number in ("", "-1", "-2")
    ]
    assert "meta.properties" not in listed(found[0])


def test_a_directory_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    """Nor does one that was formatted by nobody."""
    assert not leftovers.holds_metadata(FILES, NODE, str(tmp_path / "m"))
    assert not leftovers.holds_metadata(FILES, NODE, str(tmp_path))


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own on a loop device, as for a disk of the metadata directory."""
    image, point = tmp_path / "disk", tmp_path / "m"
    image.write_bytes(b"")
    os.truncate(image, 16 * 2**20)
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, timeout=60)
    words = ["mount", "-o", "loop", str(image), str(point)]
    mount = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    if mount.returncode:
        pytest.skip(f"no loop device may be mounted here: {mount.stderr.strip()}")
    yield point
    subprocess.run(["umount", str(point)], check=True, timeout=60)


@needs_root
def test_a_mount_point_is_emptied_and_not_renamed(mounted: Path) -> None:
    """Its rename is refused by the kernel (EBUSY), and was the last step of a rollback."""
    quorum(mounted)
    with pytest.raises(OSError, match="busy"):
        FILES.rename(NODE, str(mounted), f"{mounted}.aside")
    with pytest.raises(KilledError):
        set_aside(mounted, killed_at="__cluster_metadata-0")
    new = set_aside(mounted)
    assert (Path(new) / "__cluster_metadata-0" / "00000000000000000000.log").read_text() == "log"
    assert listed(mounted) == [f"kraft-migrate-aside-{STAMP}", "lost+found", "notes.txt"]
    assert mounted.is_mount()
