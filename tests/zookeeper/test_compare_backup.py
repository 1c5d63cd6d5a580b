"""A backup held against the live tree: what could be put back, what never is, and that nothing of it is a guess."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.security import make_digest_acl

from migrate.errors import BackupUnreadable
from migrate.zookeeper.backup import BackupTree, load_backup, write_backup
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.compare_backup import Standing, ZnodeDifference, compare, fingerprint, inside, never
from migrate.zookeeper.login import ZookeeperAccess
from migrate.zookeeper.write import ZookeeperWriter
from migrate.zookeeper.znode import Znode
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree

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
        ("/admin/delete_topics/gone", "under way then"),
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
        (lambda client: client.set(TOPIC, topic("two", 0, 1)), TOPIC, Standing.NEVER),  # made anew
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
    assert (entry.standing, "made anew" in entry.why) == (Standing.NEVER, True)


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
