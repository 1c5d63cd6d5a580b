"""A backup holds the whole tree, appears only when complete, and tells when it is torn."""

from __future__ import annotations

import gzip
import hashlib
import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kazoo.security import make_digest_acl

from migrate.errors import BackupUnreadable, WorldError
from migrate.model import limits
from migrate.model.secrets import Digester
from migrate.zookeeper.backup import load_backup, write_backup
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.login import ZookeeperAccess
from migrate.zookeeper.read import read_view, view_of
from migrate.zookeeper.znode import Absent, Znode
from tests.testing.golden_trees import FOLDER, golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree


@pytest.mark.zookeeper
def test_a_backup_holds_every_znode_with_data_and_stat(client: ZookeeperClient, tmp_path: Path) -> None:
    """Loaded again it is the same tree; null data stays null; the facts are those of the file."""
    load_tree(client, golden("hybrid-after-copy"))
    create(client, "/null", None)
    create(client, "/empty", b"")
    create(client, "/bytes", bytes(range(256)))
    target = tmp_path / "zookeeper.jsonl.gz"
    facts = write_backup(client, str(target))
    assert facts["znodes"] == str(574 + 3)
    assert facts["denied"] == "0"
    assert facts["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    assert int(facts["zxid"]) > 0
    tree = load_backup(str(target))
    assert [znode.data for znode in tree.data(["/null", "/empty", "/bytes"]) if isinstance(znode, Znode)] == [
        None,
        b"",
        bytes(range(256)),
    ]
    paths = sorted(tree.znodes)
    live = client.data(paths)
    for path, kept, now in zip(paths, tree.data(paths), live, strict=True):
        assert isinstance(kept, Znode)
        assert isinstance(now, Znode)
        assert kept == now._replace(children=0), path
    digester = Digester()
    assert view_of(tree, "x", digester).partitions == read_view(client, digester).partitions


@pytest.mark.zookeeper
def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_half(client: ZookeeperClient, tmp_path: Path) -> None:
    """Mode 0600; it replaces an older one whole; no part of it is left beside."""
    target = tmp_path / "b.gz"
    target.write_text("older")
    write_backup(client, str(target))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["b.gz"]
    assert list(load_backup(str(target)).znodes) == ["/"]


@pytest.mark.zookeeper
def test_a_backup_that_cannot_be_written_is_a_typed_error(client: ZookeeperClient, tmp_path: Path) -> None:
    """The folder is missing."""
    with pytest.raises(WorldError, match="cannot be written"):
        write_backup(client, str(tmp_path / "no" / "b.gz"))


@pytest.mark.zookeeper
def test_a_backup_keeps_acls_and_says_what_it_could_not_see(
    server: ZookeeperServer, chroot: str, tmp_path: Path
) -> None:
    """A denied znode is counted, and denied again when the backup is read."""
    acl = make_digest_acl("kafka", "secret", all=True)
    with connect(server.address + chroot, access=ZookeeperAccess(digest="kafka:secret")) as owner:
        owner.kazoo.create("/config", b"")
        owner.kazoo.create("/config/users", b"", acl=[acl])
        owner.kazoo.create("/config/users/alice", b"{}", acl=[acl])
        whole = write_backup(owner, str(tmp_path / "whole.gz"))
    with server.client(chroot) as anonymous:
        partial = write_backup(anonymous, str(tmp_path / "partial.gz"))
    assert (whole["znodes"], whole["denied"]) == ("4", "0")
    assert (partial["znodes"], partial["denied"]) == ("3", "1")
    tree = load_backup(str(tmp_path / "partial.gz"))
    assert tree.data(["/config/users"]) == [Absent.DENIED]
    assert tree.children(["/config/users"]) == [Absent.DENIED]
    with gzip.open(tmp_path / "whole.gz") as file:
        lines = [json.loads(line) for line in file]
    kept = {line["path"]: line["acl"] for line in lines if "path" in line}
    assert kept["/config/users"] == [[31, "digest", acl.id.id]]
    assert kept["/config"] == [[31, "world", "anyone"]]


@pytest.mark.zookeeper
def test_a_backup_of_the_root_leaves_zookeepers_own_tree_out(server: ZookeeperServer, tmp_path: Path) -> None:
    """/zookeeper belongs to the ensemble."""
    with server.client() as root:
        write_backup(root, str(tmp_path / "b.gz"))
    assert not any(path.startswith("/zookeeper") for path in load_backup(str(tmp_path / "b.gz")).znodes)


def test_a_tree_from_a_file_reads_like_a_live_one() -> None:
    """Data, children and what is missing."""
    tree = golden("zk-before")
    assert tree.children(["/brokers/ids", "/nothing", "/controller"]) == [("0", "1", "2"), Absent.MISSING, ()]
    assert tree.data(["/nothing"]) == [Absent.MISSING]
    assert tree.zxid() == 693


WHOLE = (FOLDER / "finalized.jsonl.gz").read_bytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_torn_backup_is_told_at_every_length(length: int) -> None:
    """Cut anywhere, it is refused."""
    path = _scratch(WHOLE[:length])
    with pytest.raises(BackupUnreadable) as caught:
        load_backup(str(path))
    assert caught.value.where == str(path)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 8 * len(WHOLE) - 1))
def test_a_flipped_bit_is_told_or_changes_nothing(bit: int) -> None:
    """Gzip's own CRC covers the content; bits of its header may mean nothing."""
    damaged = bytearray(WHOLE)
    damaged[bit // 8] ^= 1 << bit % 8
    path = _scratch(bytes(damaged))
    try:
        found = load_backup(str(path)).znodes
    except BackupUnreadable:
        found = golden("finalized").znodes
    assert found == golden("finalized").znodes


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{}],
        [{"format": "other"}, {"end": True, "znodes": 0}],
        [{"format": "kraft-migrate/zookeeper-tree/v1", "connect": "x"}, {"end": True, "znodes": 1}],
        [{"format": "kraft-migrate/zookeeper-tree/v1", "connect": "x"}, 5, {"end": True, "znodes": 1}],
        [{"format": "kraft-migrate/zookeeper-tree/v1", "connect": "x"}, {"path": "/"}, {"end": True, "znodes": 1}],
        [
            {"format": "kraft-migrate/zookeeper-tree/v1", "connect": "x"},
            {"path": "/", "denied": True},
            {"path": "/", "denied": True},
            {"end": True, "znodes": 2},
        ],
        [
            {"format": "kraft-migrate/zookeeper-tree/v1", "connect": "x"},
            {"path": "/", "data": "?", "stat": {"version": 0, "czxid": 0, "mzxid": 0, "ephemeralOwner": 0}},
            {"end": True, "znodes": 1},
        ],
    ],
)
def test_another_file_is_no_backup(lines: list[object], tmp_path: Path) -> None:
    """Wrong format, wrong count, wrong lines, a znode twice."""
    path = tmp_path / "b.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(BackupUnreadable):
        load_backup(str(path))


def test_a_missing_or_plain_file_is_no_backup(tmp_path: Path) -> None:
    """Typed errors too."""
    (tmp_path / "plain").write_text("{}")
    for name in ("plain", "missing"):
        with pytest.raises(BackupUnreadable):
            load_backup(str(tmp_path / name))


@pytest.fixture(scope="module", autouse=True)
def scratch_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where damaged files lie (hypothesis calls a test many times within one fixture)."""
    _FOLDER.append(tmp_path_factory.mktemp("damaged"))


_FOLDER: list[Path] = []


def _scratch(content: bytes) -> Path:
    path = _FOLDER[-1] / "damaged.gz"
    path.write_bytes(content)
    return path


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One endless line, many lines of zeros, and a number that is none."""
    path = tmp_path / "tree.gz"
    path.write_bytes(gzip.compress(b'{"path": "' + b"a" * 2**24))
    with pytest.raises(BackupUnreadable, match="more than a backup of its size"):
        load_backup(str(path))
    monkeypatch.setattr(limits, "_asked", {"backup-line": 100})
    path.write_bytes(gzip.compress(b'{"path": "' + b"a" * 200))
    with pytest.raises(BackupUnreadable, match="more than a backup of its size"):
        load_backup(str(path))
    monkeypatch.undo()
    for odd in (b"Infinity", b"1e999", b"9" * 400):
        line = b'{"path": "/a", "data": null, "stat": {"version": %s}}' % odd
        path.write_bytes(gzip.compress(b'{"format": "x"}\n' + line + b'\n{"end": true, "znodes": 1}\n'))
        with pytest.raises(BackupUnreadable, match="NotStrictJson"):
            load_backup(str(path))
