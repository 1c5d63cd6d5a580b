"""A backup holds the whole tree, appears only when complete, and tells when it is torn."""

from __future__ import annotations

import gzip
import hashlib
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kazoo.security import make_digest_acl

from migrate.errors import BackupUnreadable, WorldError
from migrate.model import limits
from migrate.model.secrets import Digester
from migrate.zookeeper.backup import (
    BackupTree,
    Standing,
    ZnodeDifference,
    compare,
    fingerprint,
    inside,
    load_backup,
    never,
    write_backup,
)
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, connect
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.read import read_view, view_of
from migrate.zookeeper.write import ZookeeperWriter
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One endless line, many lines of zeros, and a number that is none."""
    path = tmp_path / "tree.gz"
    path.write_bytes(gzip.compress(b'{"path": "' + b"a" * 2**24))
    with pytest.raises(BackupUnreadable, match="more than a backup of its size"):
        load_backup(str(path))
    monkeypatch.setitem(limits.LIMITS, "backup-line", replace(limits.LIMITS["backup-line"], most=100))
    path.write_bytes(gzip.compress(b'{"path": "' + b"a" * 200))
    with pytest.raises(BackupUnreadable, match="more than a backup of its size"):
        load_backup(str(path))
    monkeypatch.undo()
    for odd in (b"Infinity", b"1e999", b"9" * 400):
        line = b'{"path": "/a", "data": null, "stat": {"version": %s}}' % odd
        path.write_bytes(gzip.compress(b'{"format": "x"}\n' + line + b'\n{"end": true, "znodes": 1}\n'))
        with pytest.raises(BackupUnreadable, match="NotStrictJson"):
            load_backup(str(path))


CONFIG = "/config/topics/orders"
TOPIC = "/brokers/topics/orders"
STATE = f"{TOPIC}/partitions/0/state"


def topic(identity: str, *replicas: int) -> bytes:
    """A topic's znode with one partition."""
    return json.dumps({"version": 3, "topic_id": identity, "partitions": {"0": list(replicas)}}).encode()


def small(client: ZookeeperClient) -> None:
    """A tree with one of each kind."""
    for path, data in (
        ("/cluster", b""),
        ("/cluster/id", b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'),
        ("/brokers", None),
        ("/brokers/ids", None),
        ("/brokers/topics", None),
        (TOPIC, topic("one", 0, 1)),
        (f"{TOPIC}/partitions", None),
        (f"{TOPIC}/partitions/0", None),
        (STATE, b'{"leader":0,"leader_epoch":1}'),
        ("/config", None),
        ("/config/changes", None),
        ("/config/changes/config_change_0000000000", b"{}"),
        ("/config/topics", None),
        (CONFIG, b'{"version":1,"config":{"retention.ms":"1"}}'),
        ("/controller_epoch", b"3"),
        ("/migration", b"{}"),
        ("/admin", b""),
        ("/admin/delete_topics", b""),
        ("/admin/delete_topics/gone", b""),
    ):
        create(client, path, data)
    create(client, "/brokers/ids/0", b"{}", ephemeral=True)
    create(client, "/controller", b"{}", ephemeral=True)


@pytest.fixture
def kept(client: ZookeeperClient, tmp_path: Path) -> BackupTree:
    """Its backup."""
    small(client)
    write_backup(client, str(tmp_path / "b.gz"))
    return load_backup(str(tmp_path / "b.gz"))


def standing(found: tuple[ZnodeDifference, ...]) -> dict[str, Standing]:
    """Path -> standing, of what is not the same."""
    return {entry.path: entry.standing for entry in found if entry.standing is not Standing.SAME}


@pytest.mark.zookeeper
def test_a_tree_is_the_same_as_its_backup(client: ZookeeperClient, tmp_path: Path) -> None:
    """A real cluster's tree, all 574 znodes, of which nothing would be written."""
    load_tree(client, golden("hybrid-after-copy"))
    write_backup(client, str(tmp_path / "b.gz"))
    found = compare(load_backup(str(tmp_path / "b.gz")), client)
    assert len(found) == 574
    assert standing(found) == {}


@pytest.mark.zookeeper
def test_what_differs_is_missing_or_new_is_told_apart(client: ZookeeperClient, kept: BackupTree) -> None:
    """Set, created, left alone; versions are the live ones."""
    client.kazoo.set(CONFIG, b"{}")
    client.kazoo.delete(STATE)
    client.kazoo.create("/config/topics/later", b"{}")
    found = compare(kept, client)
    assert standing(found) == {
        CONFIG: Standing.DIFFERS,
        STATE: Standing.MISSING,
        "/config/topics/later": Standing.LIVE_ONLY,
    }
    changed = next(entry for entry in found if entry.path == CONFIG)
    assert changed.live is not None
    assert changed.live.version == 1


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/controller", "ephemeral"),
        ("/brokers/ids/0", "ephemeral"),
        ("/controller_epoch", "forward only"),
        ("/migration", "empties ZooKeeper"),
        ("/admin/delete_topics/gone", "in progress then"),
        ("/config/changes/config_change_0000000000", "notification"),
    ],
)
def test_what_belongs_to_a_moment_is_never_put_back(
    client: ZookeeperClient, kept: BackupTree, path: str, why: str
) -> None:
    """Deleted or changed since: it is told, with the reason, and stays as it is."""
    client.kazoo.delete(path)
    (entry,) = [one for one in compare(kept, client) if one.path == path]
    assert entry.standing is Standing.NEVER
    assert why in entry.why
    assert not entry.restorable


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/cluster/id", False),
        ("/brokers/seqid", False),
        ("/latest_producer_id_block", False),
        ("/feature", False),
        ("/isr_change_notification/isr_change_0000000001", False),
        ("/log_dir_event_notification/log_dir_event_0000000001", False),
        ("/kafka-acl-changes/acl_changes_0000000001", False),
        ("/kafka-acl-extended-changes/acl_changes_0000000001", False),
        ("/delegation_token/token_changes/token_change_0000000001", False),
        ("/admin/reassign_partitions", False),
        ("/kraft-migrate", False),
        ("/kraft-migrate/lock", False),
        ("/zookeeper/quota", False),
        ("/brokers/ids", True),
        ("/config/changes", True),
        ("/config/users/alice", True),
        ("/kafka-acl/Topic/orders", True),
        ("/kafka-acl-extended/prefixed/Topic/orders", True),
        ("/delegation_token/tokens/x", True),
        ("/controller_epochs", True),
    ],
)
def test_the_closed_list_of_what_is_never_put_back(path: str, allowed: bool) -> None:
    """A directory itself may be, what is in it may not; a name that only begins the same is another name."""
    assert (never(path, Znode(b"", 0, 1, 1, 0)) == "") is allowed


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("change", "path", "want"),
    [
        (lambda client: client.set(TOPIC, topic("two", 0, 1)), TOPIC, Standing.NEVER),  # created again
        (lambda client: client.set(TOPIC, topic("one", 1, 2)), TOPIC, Standing.NEVER),  # reassigned
        (lambda client: client.set(TOPIC, b'{"version":2,"partitions":{"0":[0,1]}}'), TOPIC, Standing.DIFFERS),
        (lambda client: client.set(TOPIC, b'{"version":2,"partitions":{"0":[1,2]}}'), TOPIC, Standing.NEVER),
        (lambda client: client.set(STATE, b'{"leader":1,"leader_epoch":7}'), STATE, Standing.NEVER),
        (lambda client: client.delete(STATE), STATE, Standing.MISSING),
        (lambda client: client.delete(TOPIC, recursive=True), TOPIC, Standing.MISSING),
        (lambda client: client.delete(TOPIC, recursive=True), STATE, Standing.MISSING),
    ],
)
def test_a_live_topic_never_goes_back(
    client: ZookeeperClient, kept: BackupTree, change: Callable[..., object], path: str, want: Standing
) -> None:
    """Another id is another topic; a lost id, a lost state and a lost topic can be put back."""
    change(client.kazoo)
    for below in ("/", path):
        (entry,) = [one for one in compare(kept, client, below) if one.path == path]
        assert entry.standing is want, entry.why


@pytest.mark.zookeeper
def test_a_state_of_a_topic_that_was_made_anew_is_not_put_back(client: ZookeeperClient, kept: BackupTree) -> None:
    """Asked for alone, its topic is still looked at."""
    client.kazoo.set(TOPIC, topic("two", 0, 1))
    client.kazoo.delete(STATE)
    (entry,) = [one for one in compare(kept, client, STATE) if one.path == STATE]
    assert (entry.standing, "created again" in entry.why) == (Standing.NEVER, True)


@pytest.mark.zookeeper
def test_missing_parents_come_along_and_come_first(client: ZookeeperClient, kept: BackupTree) -> None:
    """A part can be put back where its directory is gone, too; nothing beside it comes along."""
    client.kazoo.delete("/brokers/topics", recursive=True)
    client.kazoo.delete(CONFIG)
    found = [entry.path for entry in compare(kept, client, STATE) if entry.restorable]
    assert found == ["/brokers/topics", TOPIC, f"{TOPIC}/partitions", f"{TOPIC}/partitions/0", STATE]


@pytest.mark.zookeeper
def test_the_fingerprint_is_of_what_would_be_written_and_over_what(client: ZookeeperClient, kept: BackupTree) -> None:
    """Another version, another part, another content: another fingerprint; what is left alone does not count."""
    client.kazoo.set(CONFIG, b"{}")
    first = fingerprint(compare(kept, client, CONFIG))
    client.kazoo.create("/config/topics/later", b"")
    assert fingerprint(compare(kept, client, CONFIG)) == first
    assert fingerprint(compare(kept, client, "/config")) == first
    client.kazoo.set(CONFIG, b"{}")  # the same content, a later version
    second = fingerprint(compare(kept, client, CONFIG))
    client.kazoo.delete(CONFIG)
    assert len({first, second, fingerprint(compare(kept, client, CONFIG))}) == 3


@pytest.mark.zookeeper
def test_a_backup_of_another_cluster_is_refused(client: ZookeeperClient, kept: BackupTree) -> None:
    """An emptied tree, without /cluster/id, is not another cluster."""
    client.kazoo.set("/cluster/id", b'{"version":"1","id":"BBBBBBBBBBBBBBBBBBBBBB"}')
    with pytest.raises(BackupUnreadable, match="another cluster"):
        compare(kept, client)
    client.kazoo.delete("/cluster", recursive=True)
    assert standing(compare(kept, client))["/cluster/id"] is Standing.NEVER
    with pytest.raises(BackupUnreadable, match="of which cluster"):
        compare(BackupTree("x", {"/": Znode(b"", 0, 0, 0, 0)}), client)
    with pytest.raises(BackupUnreadable, match="no znode /nothing"):
        compare(kept, client, "/nothing")


@pytest.mark.zookeeper
def test_what_may_not_be_read_on_either_side_is_neither_same_nor_missing(
    server: ZookeeperServer, chroot: str, tmp_path: Path
) -> None:
    """It is said, and never written."""
    secret = make_digest_acl("kafka", "secret", all=True)
    with connect(server.address + chroot, access=ZookeeperAccess(digest="kafka:secret")) as owner:
        small(owner)
        owner.kazoo.create("/config/users", b"{}", acl=[secret])
        write_backup(owner, str(tmp_path / "whole.gz"))
        with server.client(chroot) as stranger:
            write_backup(stranger, str(tmp_path / "partial.gz"))
            for name, side in (("whole.gz", "we may not"), ("partial.gz", "the backup could not")):
                client = stranger if name == "whole.gz" else owner
                found = compare(load_backup(str(tmp_path / name)), client, "/config")
                (entry,) = [one for one in found if one.path == "/config/users"]
                assert entry.standing is Standing.DENIED
                assert side in entry.why


@pytest.mark.zookeeper
def test_an_acl_comes_back_with_its_znode_and_one_that_differs_is_told(
    server: ZookeeperServer, chroot: str, tmp_path: Path
) -> None:
    """Created with the ACL that it had; a live znode keeps its own."""
    acl = make_digest_acl("kafka", "secret", all=True)
    with connect(server.address + chroot, access=ZookeeperAccess(digest="kafka:secret")) as owner:
        small(owner)
        owner.kazoo.create("/config/users", b"{}", acl=[acl])
        write_backup(owner, str(tmp_path / "b.gz"))
        kept = load_backup(str(tmp_path / "b.gz"))
        assert kept.acls["/config/users"] == owner.acls(["/config/users"])[0]
        owner.kazoo.delete("/config/users")
        (entry,) = [one for one in compare(kept, owner, "/config/users") if one.restorable]
        ZookeeperWriter(owner).create("/config/users", b"{}", entry.acl)
        assert owner.acls(["/config/users"])[0] == kept.acls["/config/users"]
        owner.kazoo.delete("/config/users")
        owner.kazoo.create("/config/users", b"{}")
        (entry,) = [one for one in compare(kept, owner, "/config/users") if one.path == "/config/users"]
        assert (entry.standing, entry.acl_differs) == (Standing.SAME, True)


def test_inside_is_by_parts_of_a_path() -> None:
    """Not by letters."""
    assert inside("/a/b", "/a")
    assert inside("/a", "/a")
    assert inside("/a", "/")
    assert not inside("/ab", "/a")
    assert not inside("/", "/a")
