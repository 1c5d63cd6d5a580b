"""Log directories by the collector: real folders, real probes, no link followed out."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from migrate.hosts import collect_disks, collected
from migrate.hosts.disks import CollectorDisks, not_storing
from migrate.hosts.kafka_start import look_for_start
from migrate.model.broker_modes import Mode
from migrate.model.disk_trouble import strange_folders
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.kafka_start import Asked, decide_start
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Directory, MetaBroken, MetaMissing, MetaProperties
from tests.testing.this_host import disks_here

ID = "fLUdTjFFJ_w2ms3XPW9eXg"
CLUSTER = "REh233dFSJKhrlnVHSnalQ"
TOPIC_ID = "b1X1a2lVTUuEZKTmypRKzw"
UNIQUE = "0123456789abcdef0123456789abcdef"
BROKER = NodeId(4)


def log_dir(parent: Path, name: str = "d0") -> Path:
    """A log directory as a broker leaves it."""
    path = parent / name
    path.mkdir()
    (path / "meta.properties").write_text(f"broker.id=4\ndirectory.id={ID}\nversion=0\ncluster.id={CLUSTER}\n")
    for checkpoint in ("recovery-point-offset-checkpoint", ".lock", ".kafka_cleanshutdown"):
        (path / checkpoint).touch()
    return path


def replica(parent: Path, name: str, topic_id: str | None = TOPIC_ID, size: int = 100) -> Path:
    """A replica's folder with two segments, of which `size` bytes in all."""
    path = parent / name
    path.mkdir()
    (path / "00000000000000000000.log").write_bytes(b"x" * (size - size // 3))
    (path / "00000000000000000007.log").write_bytes(b"x" * (size // 3))
    (path / "00000000000000000000.index").write_bytes(b"x" * 999)
    if topic_id is not None:
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return path


class Room(NamedTuple):
    """What statvfs says."""

    f_bavail: int
    f_frsize: int
    f_favail: int
    f_files: int


def look(path: Path) -> Directory:
    """That directory."""
    return looked(disks_here(), path).directories[0]


def looked(disks: CollectorDisks, *paths: Path, metadata: Path | None = None) -> BrokerDisks:
    """A known answer for these paths."""
    found = disks.look(BROKER, [str(path) for path in paths], str(metadata) if metadata else None)
    assert isinstance(found, BrokerDisks)
    return found


# -- what lies in it ---------------------------------------------------------------------------------------------
def test_a_healthy_directory_is_read_whole(tmp_path: Path) -> None:
    """Its id, its replicas with kind, topic id and size, its place - and no trace is left in it."""
    path = log_dir(tmp_path)
    replica(path, "orders-0", size=300)
    replica(path, "with-dash-11", topic_id=None)
    replica(path, f"orders-1.{UNIQUE}-future", size=10)
    replica(path, f"old-2.{UNIQUE}-delete", size=0)
    replica(path, f"lost-3.{UNIQUE}-stray")
    before = sorted(path.iterdir())
    found = look(path)
    assert sorted(path.iterdir()) == before
    assert (found.problem, found.healthy, found.oddities) == ("", True, ())
    assert found.meta == MetaProperties(0, CLUSTER, 4, DirectoryId(ID))
    assert found.id == ID
    columns = found.replicas
    rows = list(zip(columns.topic, columns.partition, columns.kind, columns.topic_id, columns.size, strict=True))
    assert rows == [
        ("lost", 3, "stray", TOPIC_ID, 100),
        ("old", 2, "deleted", TOPIC_ID, 0),
        ("orders", 0, "current", TOPIC_ID, 300),
        ("orders", 1, "future", TOPIC_ID, 10),
        ("with-dash", 11, "current", "", 100),
    ]
    assert columns.folder[3] == f"orders-1.{UNIQUE}-future"
    assert found.mount
    assert found.filesystem
    assert found.free_bytes > 0
    assert not found.holds_metadata_log


def test_the_metadata_log_is_told_apart_from_replicas(tmp_path: Path) -> None:
    """__cluster_metadata-0 is no replica of the ledger."""
    path = log_dir(tmp_path)
    replica(path, "__cluster_metadata-0", topic_id="AAAAAAAAAAAAAAAAAAAAAQ", size=300)
    (path / "__cluster_metadata-0" / "0000-1.checkpoint").write_bytes(b"no segment")
    found = look(path)
    assert found.holds_metadata_log
    assert found.metadata_log_bytes == 300
    assert look(log_dir(tmp_path, "other")).metadata_log_bytes == -1
    assert len(found.replicas) == 0


def test_torn_partition_metadata_is_neither_an_id_nor_none(tmp_path: Path) -> None:
    """An empty partition.metadata (a crash before its fsync) is "?"; so is one that is a link or a folder."""
    path = log_dir(tmp_path)
    for index, topic in enumerate(("empty", "link", "folder")):
        at = replica(path, f"{topic}-{index}", topic_id=None) / "partition.metadata"
        {"empty": at.touch, "link": lambda at=at: at.symlink_to("/etc/hostname"), "folder": at.mkdir}[topic]()
    assert look(path).replicas.topic_id == ["?", "?", "?"]


@pytest.mark.parametrize("raw", [b"", b"\0\0\0", b"version=7\n"])
def test_a_broken_meta_properties_does_not_hide_the_replicas(tmp_path: Path, raw: bytes) -> None:
    """What the file says and what the disk does are two questions."""
    path = log_dir(tmp_path)
    replica(path, "t-0")
    (path / "meta.properties").write_bytes(raw)
    found = look(path)
    assert isinstance(found.meta, MetaBroken)
    assert found.id is None
    assert found.healthy
    assert found.replicas.topic == ["t"]


def test_an_empty_directory_has_no_meta_properties(tmp_path: Path) -> None:
    """A new disk: healthy, and it says nothing of itself."""
    (tmp_path / "new").mkdir()
    found = look(tmp_path / "new")
    assert (found.problem, found.meta, found.id) == ("", MetaMissing(), None)


def test_a_linked_meta_properties_is_not_read(tmp_path: Path) -> None:
    """A link could show another directory's id."""
    path = log_dir(tmp_path)
    (path / "meta.properties").rename(tmp_path / "elsewhere")
    (path / "meta.properties").symlink_to(tmp_path / "elsewhere")
    found = look(path)
    assert isinstance(found.meta, MetaBroken)
    assert "symbolic links" in found.meta.reason


# -- oddities ----------------------------------------------------------------------------------------------------
def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    """What Kafka would load behind a link to a folder is not known; the sentinel stays untouched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    sentinel = replica(outside, "moved-0", size=3000)
    path = log_dir(tmp_path)
    (path / "moved-0").symlink_to(sentinel)
    inside = replica(path, "t-0", size=90)
    (inside / "00000000000000000099.log").symlink_to(sentinel / "00000000000000000000.log")
    found = look(path)
    assert (found.replicas.topic, found.replicas.topic_id) == (["moved", "t"], ["?", TOPIC_ID])
    assert found.replicas.size == [0, 90]
    assert found.oddities == ("link, not followed: moved-0", "link, not followed: t-0/00000000000000000099.log")


def test_a_link_to_a_folder_of_no_replica_stops_kafka_as_the_folder_would(tmp_path: Path) -> None:
    """`java.io.File.isDirectory` follows it; a link to a file, or to nothing, is no folder to Kafka."""
    path = log_dir(tmp_path)
    for name, target in (("backup", tmp_path), ("notes", "/etc/hostname"), ("gone", tmp_path / "gone")):
        (path / name).symlink_to(target)
    (path / "remote-log-index-cache").symlink_to(tmp_path)
    assert strange_folders(look(path)) == ("backup",)
    asked = Asked(Mode.KRAFT, CLUSTER, 4, (str(path),), str(path))
    start = decide_start(asked, look_for_start(asked))
    assert (start.starts, start.reason.partition(". ")[0]) == (False, f"{path} holds what is no replica: backup")


def test_a_log_directory_that_is_a_link_is_used_and_told(tmp_path: Path) -> None:
    """Kafka follows it, so we do, and say where it leads."""
    path = log_dir(tmp_path)
    (tmp_path / "link").symlink_to(path)
    found = look(tmp_path / "link")
    assert found.id == ID
    assert found.oddities == (f"the directory is a link to {path}",)


def test_folders_that_stop_kafka_are_told(tmp_path: Path) -> None:
    """lost+found on a disk's own mount point is the classic; a tiered cache and plain files are none."""
    path = log_dir(tmp_path)
    (path / "lost+found").mkdir()
    (path / "remote-log-index-cache").mkdir()
    (path / "notes.txt").touch()
    assert look(path).oddities == ("folder of no replica, Kafka refuses to start on it: lost+found",)


def test_many_oddities_are_counted_not_listed(tmp_path: Path) -> None:
    """A message stays readable."""
    path = log_dir(tmp_path)
    for index in range(50):
        (path / f"x{index:02}").mkdir()
    oddities = look(path).oddities
    assert len(oddities) == collected.MAX_ODDITIES + 1
    assert oddities[-1] == "and 30 more"


def test_what_stops_a_start_is_never_among_what_is_only_counted(tmp_path: Path) -> None:
    """Links, as many as there are, and behind them by its name a folder on which Kafka does not start."""
    path = log_dir(tmp_path)
    for index in range(50):
        (path / f"x{index:02}").symlink_to("/etc/hostname")
    (path / "zz").mkdir()
    assert strange_folders(look(path)) == ("zz",)


def test_a_move_that_ends_between_two_listings_is_no_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker swaps the copies when one directory was listed, and the other was not: both are listed again."""
    here, there = log_dir(tmp_path), log_dir(tmp_path, "d1")
    replica(here, "t-0")
    replica(there, f"t-0.{UNIQUE}-future")
    real, swapped = collect_disks.entries, threading.Event()

    def entries(folder: int) -> object:
        first = Path(f"/proc/self/fd/{folder}").readlink() == here
        if not first:
            assert swapped.wait(10)
        found = real(folder)
        if first and not swapped.is_set():
            (there / f"t-0.{UNIQUE}-future").rename(there / "t-0")
            (here / "t-0").rename(here / f"t-0.{UNIQUE}-delete")
            swapped.set()
        return found

    monkeypatch.setattr(collect_disks, "entries", entries)
    body = collect_disks.collect(None, [str(here), str(there)], 4, True, None)
    listed = [[entry["name"] for entry in directory["entries"]] for directory in body["directories"]]
    assert listed == [[f"t-0.{UNIQUE}-delete"], ["t-0"]]


def test_replicas_of_another_owner_are_told(tmp_path: Path) -> None:
    """Somebody ran a tool as root: Kafka will fail on that folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = log_dir(tmp_path)
    os.chown(replica(path, "t-0"), 12345, 12345)
    assert look(path).oddities == ("another owner than the log directory's: t-0",)


# -- health ------------------------------------------------------------------------------------------------------
def test_a_missing_directory_and_a_file_are_problems(tmp_path: Path) -> None:
    """Each is listed with its problem; none hides the others."""
    (tmp_path / "file").touch()
    good = log_dir(tmp_path)
    found = disks_here().look(BROKER, [str(tmp_path / "none"), str(tmp_path / "file"), str(good)], None)
    assert isinstance(found, BrokerDisks)
    problems = [entry.problem for entry in found.directories]
    assert problems == ["does not exist", "is no folder", ""]
    assert [entry.healthy for entry in found.directories] == [False, False, True]
    assert found.directories[0].meta == MetaMissing()
    assert found.directories[0].free_bytes == -1


@pytest.mark.parametrize(("call", "code"), [("write", errno.ENOSPC), ("fsync", errno.EIO), ("open", errno.EROFS)])
def test_a_disk_that_does_not_store_a_block_is_not_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """Full, failing or read-only: reading alone would call it healthy.  Its content is told all the same."""
    path = log_dir(tmp_path)
    replica(path, "t-0")
    real_open = os.open

    def fails(*args: object, **kwargs: object) -> int:
        if call == "open" and not str(args[0]).startswith(collect_disks.PROBE_PREFIX):
            return real_open(*args, **kwargs)  # type: ignore[arg-type]
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fails)
    found = look(path)
    monkeypatch.undo()
    assert found.problem == f"cannot be written: {os.strerror(code)}"
    assert found.replicas.topic == ["t"]
    assert not [entry for entry in path.iterdir() if entry.name.startswith(collect_disks.PROBE_PREFIX)]


def test_a_disk_that_never_answers_does_not_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead mount blocks a thread of its own, for as long as it likes."""
    path = log_dir(tmp_path)
    release = threading.Event()
    monkeypatch.setattr(collect_disks, "probe", lambda _: release.wait(30))
    monkeypatch.setattr(collect_disks, "PROBE_SECONDS", 0.05)
    found = looked(disks_here(), path, log_dir(tmp_path, "d1"))
    release.set()
    assert [entry.problem for entry in found.directories] == ["did not store one block in time"] * 2
    assert len(found.directories[0].replicas) == 0


def test_our_own_lack_of_rights_says_nothing_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder is another user's, a denial is Unknown; where it is ours, it is a problem."""
    path = log_dir(tmp_path)

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(collect_disks, "probe", denied)
    assert looked(disks_here(), path).directories[0].problem == "cannot be written: Permission denied"
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    found = disks_here().look(BROKER, [str(path)], None)
    assert isinstance(found, Unknown)
    assert "may not look into it" in found.reason


def test_a_denial_beside_a_directory_of_our_own_is_the_broker_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who owns one of them is the broker's user, or in its place: a mount point without its disk is root's."""
    mine, other = log_dir(tmp_path), log_dir(tmp_path, "d1")
    stores = collect_disks.probe

    def denied(folder: int) -> None:
        if Path(f"/proc/self/fd/{folder}").readlink() == other:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        stores(folder)

    monkeypatch.setattr(collect_disks, "probe", denied)
    os.chown(other, 54321, 54321) if os.geteuid() == 0 else pytest.skip("needs root")
    found = looked(disks_here(), mine, other)
    assert [entry.problem for entry in found.directories] == ["", "cannot be written: Permission denied"]


def test_a_directory_with_no_room_for_a_segment_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of six bytes still fits, and the broker fails on it."""
    path = log_dir(tmp_path)
    for left, words in (((4096, 100), "4 KiB are left"), ((2**30, 2), "2 inodes are left"), ((2**30, -1), "")):
        monkeypatch.setattr(os, "statvfs", lambda _, left=left: Room(left[0], 1, left[1], 1))
        (found,) = looked(disks_here(), path).directories
        assert words in found.problem
        assert bool(words) is bool(found.problem)


def test_a_directory_whose_disk_is_not_mounted_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies in the folder under it."""
    path = log_dir(tmp_path)
    monkeypatch.setattr(collect_disks, "unmounted", lambda *_: ["/data", "/etc/fstab"])
    (found,) = looked(disks_here(), path).directories
    assert found.problem == "is not mounted: nothing is at /data (/etc/fstab has a file system there)"
    assert found.id is None


def test_a_fault_of_ours_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the thread comes out as what it is, never as a healthy or a broken disk."""

    def bug(*_: object) -> None:
        message = "a bug"
        raise RuntimeError(message)

    monkeypatch.setattr(collect_disks, "probe", bug)
    with pytest.raises(RuntimeError, match="a bug"):
        disks_here().look(BROKER, [str(log_dir(tmp_path))], None)


def test_the_metadata_directory_is_looked_at_where_it_lies_apart(tmp_path: Path) -> None:
    """Named among log.dirs, in whatever spelling, it is not told twice."""
    data, meta = log_dir(tmp_path, "d0"), log_dir(tmp_path, "meta")
    replica(meta, "__cluster_metadata-0")
    apart = looked(disks_here(), data, metadata=meta)
    assert apart.metadata_directory is not None
    assert apart.metadata_directory.holds_metadata_log
    assert looked(disks_here(), data, metadata=tmp_path / "x" / ".." / "d0").metadata_directory is None
    assert looked(disks_here(), data).metadata_directory is None


def test_directories_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """The first of log.dirs is special to Kafka."""
    paths = [log_dir(tmp_path, name) for name in ("z", "a", "m")]
    assert [entry.path for entry in looked(disks_here(), *paths).directories] == [str(path) for path in paths]


# -- before a start ------------------------------------------------------------------------------------------------
def test_a_disk_that_filled_up_a_moment_after_a_look_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look asks each directory to store a block, and so does the one before a start."""
    one, two = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    disks, paths = disks_here(), [str(one), str(two)]
    assert not_storing(disks, BROKER, paths) == {}
    stores = collect_disks.probe

    def full(folder: int) -> None:
        if Path(f"/proc/self/fd/{folder}").readlink() == two:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        stores(folder)

    monkeypatch.setattr(collect_disks, "probe", full)
    assert not_storing(disks, BROKER, paths) == {str(two): "cannot be written: No space left on device"}


class _Elsewhere:
    def look(self, broker: NodeId, log_dirs: object, metadata_dir: object) -> BrokerDisks | Unknown:
        return Unknown("the host does not answer")


def test_where_nobody_may_look_no_disk_is_fine() -> None:
    """Each is named, with the reason."""
    why = "cannot be looked at: the host does not answer"
    assert not_storing(_Elsewhere(), BROKER, ["/a", "/b"]) == {"/a": why, "/b": why}


# -- mount points --------------------------------------------------------------------------------------------------
def test_the_innermost_and_latest_mount_holds_a_path(tmp_path: Path) -> None:
    """/data2 is not in /data; what is mounted over another hides it; blanks are octal; odd lines say nothing."""
    mounts = (("/", "ext4"), ("/data", "xfs"), ("/data/d1", "ext4"), ("/data/d1", "tmpfs"), ("/mnt/a\\040b", "ext3"))
    table = tmp_path / "mountinfo"
    lines = [f"36 35 98:0 / {point} rw,noatime master:1 shared:2 - {kind} /dev/sdb rw\n" for point, kind in mounts]
    table.write_text("".join((*lines, "nonsense\n", "1 2 - \n")))
    wanted = {
        "/data/d0/x": ("/data", "xfs"), "/data": ("/data", "xfs"), "/data2": ("/", "ext4"),
        "/data/d1/t-0": ("/data/d1", "tmpfs"), "/mnt/a b/c": ("/mnt/a b", "ext3"),
    }  # fmt: skip
    for path, (point, kind) in wanted.items():
        assert collect_disks.mount_of(path, str(table)) == {"mount": point, "filesystem": kind}


def test_the_mount_of_a_link_is_that_of_what_it_leads_to(tmp_path: Path) -> None:
    """And without /proc the answer is *not known*, not an error."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = tmp_path / "mountinfo"
    table.write_text(f"1 1 8:0 / / rw - a b\n2 1 8:0 / {tmp_path / 'real'} rw - b b\n")
    assert collect_disks.mount_of(str(tmp_path / "link"), str(table))["filesystem"] == "b"
    assert collect_disks.mount_of("/", str(tmp_path / "none")) == {"mount": "", "filesystem": ""}
