"""What runs left on a host is found by its names, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.leftovers import BACKUP_SUFFIX, is_copy, keep_copies, kept_files, leftovers
from migrate.hosts.meta_properties import as_version_0, decode
from migrate.hosts.properties import read_config
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, KeptFiles, MetaProperties, NoFile
from tests.testing import worlds
from tests.testing.this_host import LocalFiles


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A controller's file with copies, its metadata directory with what a rollback set aside."""
    names = ("", ".kraft-migrate-backup", ".kraft-migrate-backup-0a1b2c3d", ".kraft-migrate-set-aside-20260101T000000")
    for name in (*(f"c.properties{name}" for name in names), "c.properties.kraft-migrate-lock", "c.properties.orig"):
        (tmp_path / name).write_text("password=x")
    (tmp_path / "other.properties.kraft-migrate-backup").write_text("of another node")
    (tmp_path / "m" / "kraft-migrate-aside-20260101T000000").mkdir(parents=True)
    (tmp_path / "m" / "lost+found").mkdir()
    return tmp_path


def test_copies_and_what_was_set_aside_are_found(host: Path) -> None:
    """Of this node alone; its own file, a person's copy and a lock are none."""
    node = replace(
        worlds.inventory().controllers[0], config=str(host / "c.properties"), metadata_directory=f"{host}/m/"
    )
    found = leftovers(LocalFiles(), node)
    assert [path.removeprefix(f"{host}/") for path in found] == [
        "c.properties.kraft-migrate-backup",
        "c.properties.kraft-migrate-backup-0a1b2c3d",
        "c.properties.kraft-migrate-set-aside-20260101T000000",
        "m/kraft-migrate-aside-20260101T000000",
    ]
    assert [is_copy(path) for path in found] == [True, True, True, False]
    gone = replace(node, metadata_directory=str(host / "nothing"))
    assert len(leftovers(LocalFiles(), gone)) == 3


def test_a_folder_that_cannot_be_listed_is_an_error() -> None:
    """Not an empty one."""
    node = replace(worlds.inventory().brokers[0], config="/nothing/b.properties")
    with pytest.raises(FileNotFoundError):
        leftovers(LocalFiles(), node)


@pytest.mark.parametrize("path", ["/etc/kafka/server.properties", "/x.kraft-migrate-backup/server.properties", "/m/a"])
def test_a_nodes_own_file_is_no_copy(path: str) -> None:
    """By the last part of its path."""
    assert not is_copy(path)


NODE = NodeId(1)
CLUSTER, DIRECTORY = "REh233dFSJKhrlnVHSnalQ", "JsnDDNVyTL289kYk6sPzig"
META = f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id={DIRECTORY}\n".encode()


def a_broker(folder: Path) -> ConfigFile:
    """Its file, with two log directories, one of them without meta.properties."""
    for name in ("d0", "d1", "meta"):
        (folder / name).mkdir()
    (folder / "d0" / "meta.properties").write_bytes(META)
    (folder / "meta" / "meta.properties").write_bytes(META)
    path = folder / "b1.properties"
    path.write_text(f"log.dirs={folder}/d0,{folder}/d1\nmetadata.log.dir={folder}/meta\n")
    found = read_config(LocalFiles(), NODE, str(path))
    assert isinstance(found, ConfigFile)
    return found


def test_every_copy_and_every_meta_properties_is_found(tmp_path: Path) -> None:
    """The metadata directory's too; a directory without one is for the disks' view to tell."""
    file = a_broker(tmp_path)
    for name, raw in ((BACKUP_SUFFIX, b"a=1\n"), (f"{BACKUP_SUFFIX}-12345678", b"a=2\n"), (".orig", b"a=3\n")):
        (tmp_path / f"b1.properties{name}").write_bytes(raw)
    (tmp_path / f"b11.properties{BACKUP_SUFFIX}").write_bytes(b"a=4\n")
    found = kept_files(LocalFiles(), NODE, file)
    assert isinstance(found, KeptFiles)
    assert [entry.raw for entry in found.configs] == [b"a=1\n", b"a=2\n"]
    assert [entry.sha256 for entry in found.configs] == [
        hashlib.sha256(raw).hexdigest() for raw in (b"a=1\n", b"a=2\n")
    ]
    assert [entry.path for entry in found.metas] == [f"{tmp_path}/{name}/meta.properties" for name in ("d0", "meta")]
    assert b"a=1" not in repr(found).encode()


def test_a_copy_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """A link is followed nowhere."""
    file = a_broker(tmp_path)
    (tmp_path / f"b1.properties{BACKUP_SUFFIX}").symlink_to("b1.properties")
    assert isinstance(kept_files(LocalFiles(), NODE, file), Unknown)


def test_without_a_file_there_is_nothing_beside_it() -> None:
    """Absent, unread, or hidden."""
    for config in (NoFile("/conf/b1.properties"), Unknown("permission denied"), None):
        assert isinstance(kept_files(LocalFiles(), NODE, config), Unknown)


def test_a_copy_of_other_content_gets_a_name_of_its_own(tmp_path: Path) -> None:
    """The first digits of its hash; one that is there is written no more."""
    path, digest = str(tmp_path / "b1.properties"), hashlib.sha256(b"a=2\n").hexdigest()
    first, second = f"{path}{BACKUP_SUFFIX}", f"{path}{BACKUP_SUFFIX}-{digest[:8]}"
    for content, copy in ((b"a=1\n", first), (b"a=1\n", first), (b"a=2\n", second), (b"a=2\n", second)):
        assert keep_copies(LocalFiles(), NODE, {path: content}) == {path: copy}
    assert (Path(first).read_bytes(), Path(second).read_bytes()) == (b"a=1\n", b"a=2\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_version_1_becomes_version_0_with_the_same_ids() -> None:
    """Then a broker in plain ZooKeeper mode starts on it."""
    found = as_version_0(META)
    assert found is not None
    before, after = decode(META), decode(found)
    assert isinstance(before, MetaProperties)
    assert isinstance(after, MetaProperties)
    assert after.version == 0
    assert (after.node_id, after.cluster_id, after.directory_id) == (
        before.node_id,
        before.cluster_id,
        before.directory_id,
    )
    assert as_version_0(found) is None


def test_an_id_that_is_not_there_is_not_made_up() -> None:
    """Version 1 without directory.id stays without."""
    found = as_version_0(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n".encode())
    assert found == f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n".encode()


def test_a_file_that_cannot_be_trusted_is_not_as_version_0() -> None:
    """Torn, empty, unknown version."""
    for raw in (b"", b"\0", b"version=2\nnode.id=1\n", b"version=1\n", META[:20]):
        assert as_version_0(raw) is None


def test_names_of_a_folder_are_sorted(tmp_path: Path) -> None:
    """Whatever the file system's order."""
    for name in ("b", "a", "c"):
        (tmp_path / name).touch()
    assert LocalFiles().names(NODE, str(tmp_path)) == ["a", "b", "c"]
