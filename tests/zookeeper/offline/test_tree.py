"""The view from ZooKeeper's files is the live one, znode by znode, whatever wrote them and however they are packed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import KazooException
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from migrate.errors import ChrootMissing, MigrateError, NotKafkasTree
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode, child
from migrate.zookeeper.offline.files import OfflineTree, ZookeeperFiles, open_files
from migrate.zookeeper.read import read_view
from tests.cli.commands import kraft_migrate
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, load_tree, running_server
from tests.zookeeper.offline.written import Kept, create, data_dir, log, snapshot

# snapshots every 20 to 40 transactions, so that they are written while the tree goes on
OFTEN = "snapCount=40\nextendedTypesEnabled=true\npreAllocSize=64\n"
Seen = dict[str, tuple[Any, Any, Any]]


class OtherCreate:
    """A create that kazoo has no call for: of a container (19), or of a znode with a time to live (21)."""

    def __init__(self, kind: int, path: str) -> None:
        self.type, self.path = kind, path

    def serialize(self) -> bytearray:
        """The request's bytes."""
        plain = Create(self.path, b"other", OPEN_ACL_UNSAFE, 0).serialize()[:-4]
        flags, lifetime = (4, b"") if self.type == 19 else (5, (600_000).to_bytes(8, "big"))
        return bytearray(plain + flags.to_bytes(4, "big") + lifetime)

    @classmethod
    def deserialize(cls, _bytes: bytes, _offset: int) -> None:
        """Nothing of the answer is wanted."""


def whole_live(client: ZookeeperClient) -> Seen:
    """Every znode of a server: data with stat, ACL, names of children."""
    found: Seen = {}
    level = ["/"]
    while level:
        asked = zip(level, client.data(level), client.acls(level), client.children(level), strict=True)
        level = []
        for path, znode, acl, below in asked:
            assert isinstance(znode, Znode)
            assert not isinstance(acl, Absent)
            assert not isinstance(below, Absent)
            found[path] = (znode._replace(children=0), tuple(acl), tuple(below))
            level += [child(path.rstrip("/"), name) for name in below]
    return found


def whole_offline(tree: OfflineTree) -> Seen:
    """The same, from files."""
    paths = tree.paths()
    return dict(zip(paths, zip(tree.data(paths), tree.acls(paths), tree.children(paths), strict=True), strict=True))


def of_znodes(view: ZookeeperView) -> ZookeeperView:
    """The view without where and when it was read."""
    return replace(view, connect="", blind_spots=(), zxid_first=0, zxid_last=0)


def change_much(server: ZookeeperServer, client: ZookeeperClient) -> None:
    """Everything that a transaction can be; much of it while snapshots are being written."""
    zk = client.kazoo
    zk.create("/busy", b"")
    waiting = []
    for number in range(400):
        waiting.append(zk.create_async(f"/busy/{number}", str(number).encode()))
        waiting.append(zk.set_async("/busy", str(number).encode()))
        if number % 3 == 0:
            waiting.append(zk.delete_async(f"/busy/{number}"))
        if number % 6 == 0:
            waiting.append(zk.create_async(f"/busy/{number}", b"again"))
    for result in waiting:
        result.get(timeout=60)
    for number in range(5):
        zk.create("/busy/seq-", b"", sequence=True, ephemeral=number % 2 == 0)
    good = zk.transaction()
    good.create("/busy/multi", b"1")
    good.check("/busy/multi", 0)
    good.set_data("/busy/multi", b"2")
    good.create("/busy/multi/below", b"")
    good.delete("/busy/1")
    assert not [result for result in good.commit() if isinstance(result, Exception)]
    bad = zk.transaction()
    bad.create("/busy/never", b"")
    bad.delete("/not/there")
    assert any(isinstance(result, KazooException) for result in bad.commit())
    with pytest.raises(KazooException):
        zk.create("/busy/multi", b"3")
    zk.set_acls("/busy/2", [make_digest_acl("someone", "secret", all=True), *OPEN_ACL_UNSAFE])
    for kind, path in ((19, "/busy/container"), (21, "/busy/ttl")):
        result = zk.handler.async_result()
        zk._call(OtherCreate(kind, zk.chroot + path), result)
        result.get(timeout=20)
    with server.client() as gone:
        gone.kazoo.create("/of-a-session", b"", ephemeral=True)
        gone.kazoo.create("/of-a-session-2", b"", ephemeral=True)


@pytest.mark.zookeeper
@pytest.mark.parametrize("packed", ["", "gz", "snappy"])
def test_files_hold_the_tree_that_the_server_has(packed: str, tmp_path: Path) -> None:
    """Fuzzy snapshots of each packing, all kinds of transactions; copied from the running server, or of a dead one."""
    extra = OFTEN + (f"snapshot.compression.method={packed}\n" if packed else "")
    digester = Digester()
    with running_server(tmp_path / "server", extra) as server:
        with server.client() as root:
            root.kazoo.create("/kafka")
        with server.client("/kafka", session=30) as client, server.client(session=30) as root:
            load_tree(client, golden("hybrid-after-copy"))
            change_much(server, client)
            live, view = whole_live(root), read_view(client, digester)
            copied = Path(shutil.copytree(tmp_path / "server" / "data", tmp_path / "copied"))
            server.stop()
    for folder in (copied, tmp_path / "server" / "data"):
        tree = open_files(ZookeeperFiles((str(folder),)))
        assert tree.loaded.digests > 0
        assert tree.loaded.notes == ()
        assert tree.loaded.snapshot is not None
        assert tree.loaded.snapshot.name.endswith(packed)
        found = whole_offline(tree)
        assert found.keys() == live.keys()
        assert {path: (found[path], live[path]) for path in live if found[path] != live[path]} == {}
        assert "/of-a-session" not in found
    kafka = ZookeeperFiles((str(folder),), "/kafka")
    offline = open_files(kafka).view(digester)
    assert offline.connect == kafka.name
    assert offline.blind_spots[: len(view.blind_spots)] == view.blind_spots
    assert any("not as it is now" in spot for spot in offline.blind_spots)
    assert of_znodes(offline) == of_znodes(view)


@pytest.mark.zookeeper
def test_from_each_snapshot_on_the_logs_lead_to_the_same_tree(tmp_path: Path) -> None:
    """Every snapshot of a busy server, fuzzy as it is, with the logs after it: the same znodes, the same digest."""
    with running_server(tmp_path / "server", OFTEN) as server:
        with server.client() as root:
            root.kazoo.create("/kafka")
        with server.client("/kafka", session=30) as client, server.client(session=30) as root:
            change_much(server, client)
            live = whole_live(root)
            server.stop()
    place = tmp_path / "server" / "data" / "version-2"
    snapshots = sorted(place.glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    assert len(snapshots) > 1  # how many depends on how busy the machine is
    transactions = []
    for newest in reversed(snapshots):
        tree = open_files(ZookeeperFiles((str(place),)))
        assert tree.loaded.snapshot == newest
        assert whole_offline(tree) == live
        transactions.append(tree.loaded.transactions)
        newest.unlink()
    assert transactions == sorted(transactions)
    assert whole_offline(open_files(ZookeeperFiles((str(place),)))) == live  # logs alone, from the very first one on


@pytest.mark.zookeeper
def test_a_copy_taken_while_the_server_writes_is_a_tree_or_a_typed_error(tmp_path: Path) -> None:
    """The copy is no moment of the tree; what is read of it is one, or it is refused."""
    answers: list[object] = []
    with running_server(tmp_path / "server", OFTEN) as server, server.client(session=30) as client:
        client.kazoo.create("/busy", b"")
        for number in range(12):
            waiting = [client.kazoo.create_async(f"/busy/{number}-{inner}", b"x" * 500) for inner in range(300)]
            copied = tmp_path / f"copied-{number}"
            shutil.copytree(server.folder / "data", copied, ignore_dangling_symlinks=True)
            for result in waiting:
                result.get(timeout=60)
            try:
                answers.append(len(open_files(ZookeeperFiles((str(copied),))).paths()))
            except MigrateError as error:
                answers.append(error.id)
            shutil.rmtree(copied)
    assert any(isinstance(answer, int) for answer in answers), answers
    assert {answer for answer in answers if isinstance(answer, str)} <= {"E-ZKF-02", "E-ZKF-03", "E-ZKF-04"}


@pytest.mark.zookeeper
def test_assess_from_files_says_what_assess_from_the_server_says(tmp_path: Path) -> None:
    """The same findings and exit code, but for what files cannot tell: what came after them, and who has a session."""
    with running_server(tmp_path / "server") as server:
        with server.client() as root:
            root.kazoo.create("/kafka")
        with server.client("/kafka", session=30) as client:
            load_tree(client, golden("zk-before"))
            live = kraft_migrate("assess", "--zookeeper", f"{server.address}/kafka")
            server.stop()
    folder = tmp_path / "server" / "data"
    offline = kraft_migrate("assess", "--zookeeper-files", folder, "--chroot", "/kafka/")
    assert offline.code == live.code
    untold = {"W-ZKN-15", "W-ZKN-20"}
    assert codes(offline.out) - untold == codes(live.out) - untold
    assert codes(offline.out)
    lost = kraft_migrate("assess", "--zookeeper-files", folder, "--chroot", "/other")
    assert (lost.code, "E-ZK-03" in lost.err) == (1, True)


def codes(text: str) -> set[str]:
    """The codes of findings in a text."""
    return {word.strip(":,") for word in text.split() if word[1:2] == "-" and word[:1] in "BWI"}


def tree_of(folder: Path, chroot: str = "") -> OfflineTree:
    """A tree from files."""
    return open_files(ZookeeperFiles((str(folder),), chroot))


def test_below_a_chroot_paths_are_relative_to_it(tmp_path: Path) -> None:
    """Data, names and ACLs; a sibling whose name begins alike is not below; what is not there is MISSING."""
    znodes = {"/k": Kept(b"root"), "/k/a": Kept(None, acl=3), "/k/a/b": Kept(b"1", acl=4), "/kk": Kept()}
    snap = snapshot(znodes, acls={3: b"\0\0\0\0"}, last=9)
    tree = tree_of(data_dir(tmp_path, snapshot_9=snap), "/k")
    assert tree.paths() == ["/", "/a", "/a/b"]
    assert tree.data(["/", "/a", "/kk"]) == [Znode(b"root", 0, 1, 1, 0), Znode(None, 0, 1, 1, 0), Absent.MISSING]
    assert tree.children(["/", "/a", "/a/b", "/none"]) == [("a",), ("b",), (), Absent.MISSING]
    assert tree.acls(["/", "/a", "/none"]) == [((31, "world", "anyone"),), (), Absent.MISSING]
    assert tree.acls(["/a/b"]) == [Absent.DENIED]  # its number is not in the snapshot's table
    assert tree.zxid() == 9


@pytest.mark.parametrize("chroot", ["/nope", "/k/a/c", "k"])
def test_a_chroot_that_is_not_in_the_files_is_an_error(chroot: str, tmp_path: Path) -> None:
    """It names chroot and folder."""
    folder = data_dir(tmp_path, snapshot_9=snapshot({"/k": Kept()}, last=9))
    with pytest.raises(ChrootMissing, match=f"{folder}: {chroot}"):
        tree_of(folder, chroot)


def test_files_without_a_kafka_in_them_are_not_kafkas_tree(tmp_path: Path) -> None:
    """As live."""
    folder = data_dir(tmp_path, snapshot_0=snapshot({}), log_1=log(1, [create("/other")]))
    with pytest.raises(NotKafkasTree, match="files of"):
        tree_of(folder).view(Digester())


@pytest.mark.parametrize(
    "words",
    [
        ("--zookeeper", "zk:2181", "--zookeeper-files", "d"),
        ("--from-bundle", "b.tar.gz", "--zookeeper-files", "d"),
        ("--disks", "d.json", "--zookeeper-files", "d"),
        ("--inventory", "i.yaml", "--zookeeper", "zk:2181"),
        ("--zookeeper-files", "d", "--chroot", "kafka"),
        ("--zookeeper", "zk:2181", "--chroot", "/kafka"),
    ],
)
def test_words_that_do_not_go_together_are_a_usage_error(words: tuple[str, ...]) -> None:
    """Exit 64, before any file is opened."""
    assert kraft_migrate("assess", *words).code == 64


def test_assess_of_damaged_files_tells_file_and_byte(tmp_path: Path) -> None:
    """The typed error itself, not a finding."""
    answer = kraft_migrate("assess", "--zookeeper-files", data_dir(tmp_path, snapshot_9=snapshot({})[:-20]))
    assert answer.code == 1
    assert "E-ZKF-02" in answer.err
    assert "snapshot.9, byte " in answer.err
