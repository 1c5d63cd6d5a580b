"""Mount points: the longest prefix, the latest on top."""

from __future__ import annotations

from pathlib import Path

from migrate.hosts.mounts import Mount, Mounts, decode

TABLE = Mounts((Mount("/", "ext4"), Mount("/data", "xfs"), Mount("/data/d1", "ext4"), Mount("/data/d1", "tmpfs")))


def test_a_line_of_mountinfo_is_read() -> None:
    """Optional fields may be many or none; blanks in a path are octal."""
    assert decode("36 35 98:0 / /mnt/a\\040b rw,noatime master:1 shared:2 - ext3 /dev/root rw\n") == Mount(
        "/mnt/a b", "ext3"
    )
    assert decode("36 35 98:0 / /mnt rw - xfs /dev/sdb rw") == Mount("/mnt", "xfs")
    assert decode("nonsense") is None
    assert decode("1 2 - ") is None


def test_the_innermost_and_latest_mount_holds_a_path() -> None:
    """/data2 is not in /data, and what is mounted over another hides it."""
    assert TABLE.of("/data/d0/x") == Mount("/data", "xfs")
    assert TABLE.of("/data") == Mount("/data", "xfs")
    assert TABLE.of("/data2") == Mount("/", "ext4")
    assert TABLE.of("/data/d1/t-0") == Mount("/data/d1", "tmpfs")


def test_links_are_resolved_first(tmp_path: Path) -> None:
    """The disk of a linked log directory is the one it leads to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = Mounts((Mount("/", "a"), Mount(str(tmp_path / "real"), "b")))
    assert table.of(str(tmp_path / "link")).filesystem == "b"


def test_this_host_has_mounts_and_a_strange_one_has_none(tmp_path: Path) -> None:
    """Without /proc the answer is *not known*, not an error."""
    assert Mounts.read().of(str(tmp_path)).filesystem
    assert Mounts.read(str(tmp_path / "none")).of("/") == Mount("", "")
