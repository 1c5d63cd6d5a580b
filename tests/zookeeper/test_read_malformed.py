"""One znode that is no JSON hides no other, and nothing that needs it counts it as absent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kazoo.client import KazooClient

from migrate.model import facts
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import MigrationZnode, PartlyRead, ZnodePart, ZookeeperView, whole_or_unknown
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode, shown
from migrate.zookeeper.read import read_view, view_of
from tests.testing.golden_trees import golden
from tests.testing.golden_views import views_at
from tests.testing.zookeeper_server import load_tree

DIGESTER = Digester(b"k" * 32)
TOKEN = "/delegation_token/tokens/canary-token-id"
SHOWN_TOKEN = shown(TOKEN, DIGESTER)
DAMAGE = {
    "/brokers/topics/t00": (b"{", ZnodePart.TOPIC),
    "/brokers/topics/t01/partitions/0/state": (b"no", ZnodePart.STATE),
    "/brokers/ids/1": (b"{}", ZnodePart.BROKER),
    "/config/brokers/one": (b'{"version":1,"config":{}}', ZnodePart.BROKER_CONFIG),
    "/config/clients/app-x": (b'{"version":1,"config":{"producer_byte_rate":"much"}}', ZnodePart.QUOTA),
    "/config/users/eve": (b'{"version":1,"config":{"SCRAM-SHA-256":"salt=1"}}', ZnodePart.SCRAM),
    "/config/topics/t02": (b"[]", ZnodePart.CONFIG),
    "/kafka-acl/Topic/bent": (b'{"version":9}', ZnodePart.ACL),
    "/controller": (b"3", ZnodePart.TAKEOVER),
    "/controller_epoch": (b"one", ZnodePart.TAKEOVER),
    "/migration": (b"x", ZnodePart.TAKEOVER),
    "/feature": (b"x", ZnodePart.FEATURE),
    "/latest_producer_id_block": (b"x", ZnodePart.PRODUCER_IDS),
    "/admin/reassign_partitions": (b"x", ZnodePart.PENDING),
    TOKEN: (b"x", ZnodePart.TOKEN),
    "/cluster/id": (b"x", ZnodePart.CLUSTER_ID),
}


def damaged(paths: list[str]) -> BackupTree:
    """The tree of a real cluster in hybrid, with those znodes broken."""
    tree = golden("hybrid-after-copy")
    znodes = dict(tree.znodes)
    for path in paths:
        for end in [index for index, letter in enumerate(path) if letter == "/" and index]:
            znodes.setdefault(path[:end], Znode(None, 0, 1, 1, 0))
        before = znodes.get(path)
        data = DAMAGE[path][0]
        znodes[path] = before._replace(data=data) if isinstance(before, Znode) else Znode(data, 0, 9, 9, 0)
    return BackupTree("test", znodes)


def view(tree: BackupTree) -> ZookeeperView:
    """The view of a tree."""
    return view_of(tree, "test:2181", DIGESTER)


@pytest.mark.slow
@pytest.mark.parametrize("path", list(DAMAGE))
def test_one_bad_znode_is_named_and_every_other_is_read(path: str) -> None:
    """Whatever kind it is of: path, part and problem; the rest equals that of the whole tree, as far as it is there."""
    whole, bent = view(golden("hybrid-after-copy")), view(damaged([path]))
    (entry,) = bent.malformed
    assert (entry.path, entry.part) == (shown(path, DIGESTER), DAMAGE[path][1])
    assert entry.problem
    lost = {"/brokers/topics/t00": 1, "/brokers/ids/1": 1}
    assert len(set(whole.partitions.topic)) - len(set(bent.partitions.topic)) == lost.get(path, 0) * ("topics" in path)
    rows = {row for row in zip(*_columns(whole), strict=True) if row[-1] != path}
    assert rows <= set(zip(*_columns(bent), strict=True))
    assert not any(row[-1] == path for row in zip(*_columns(bent), strict=True)) or path == "/config/users/eve"


def _columns(found: ZookeeperView) -> list[list[str]]:
    rows = found.entities
    return [rows.kind, rows.key, rows.name, rows.where]


def test_all_kinds_of_damage_at_once_are_all_told() -> None:
    """None hides another."""
    bent = view(damaged(list(DAMAGE)))
    assert {entry.path: entry.part for entry in bent.malformed} == {
        shown(path, DIGESTER): part for path, (_, part) in DAMAGE.items()
    }
    assert bent.cluster_id == ""
    for told in (bent.controller, bent.controller_epoch, bent.migration):
        assert isinstance(told, Unknown)


def leaves(value: Any, canary: str) -> Iterator[Any]:
    """The value with each of its leaves replaced by the canary, one at a time."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from ({**value, key: bent} for bent in leaves(entry, canary))
    elif isinstance(value, list) and value:
        yield from ([bent, *value[1:]] for bent in leaves(value[0], canary))
    else:
        yield canary


GOOD_TOKEN = {
    "version": 3,
    "owner": "User%3Aalice",
    "tokenRequester": "User%3Abob",
    "renewers": ["User%3Ac"],
    "issueTimestamp": 1,
    "maxTimestamp": 3,
    "expiryTimestamp": 2,
    "tokenId": "canary-token-id",
}
BENT = (
    "/brokers/topics/t01",
    "/brokers/topics/t01/partitions/0/state",
    "/brokers/ids/1",
    "/config/brokers/1",
    "/config/users/alice",
    "/config/topics/t02",
    "/controller",
    "/migration",
    "/latest_producer_id_block",
    "/cluster/id",
    TOKEN,
)


@pytest.mark.slow
@pytest.mark.parametrize("path", BENT)
def test_no_value_of_a_malformed_znode_is_told(path: str) -> None:
    """What is malformed goes into findings, reports and bundles: its path and the kind of fault, never what it held."""
    tree = damaged([TOKEN])
    token = tree.znodes[TOKEN]
    assert isinstance(token, Znode)
    znodes: dict[str, Any] = {**tree.znodes, TOKEN: token._replace(data=json.dumps(GOOD_TOKEN).encode())}
    if path not in znodes:
        znodes[path] = Znode(b'{"version":1,"config":{"ssl.key.password":"x"}}', 0, 9, 9, 0)
    whole = json.loads(znodes[path].data)
    raw = [json.dumps(bent).encode() for bent in leaves(whole, "canary%zz,=:")]
    for data in [*raw, b"canary", b'"canary"', b'["canary"]', b'{"canary', znodes[path].data[:-1] + b',"canary']:
        found = view(BackupTree("test", {**znodes, path: znodes[path]._replace(data=data)}))
        told = repr((found.malformed, found.blind_spots, found.undecodable)).replace(SHOWN_TOKEN, "")
        assert "canary" not in told, data
        assert "canary-token-id" not in repr(found)
    assert view(BackupTree("test", znodes)).mzxids[SHOWN_TOKEN] == znodes[TOKEN].mzxid


def test_a_malformed_state_is_no_missing_state_and_a_malformed_topic_is_not_without_id() -> None:
    """Those are other faults, with another cure."""
    bent = view(damaged(["/brokers/topics/t00", "/brokers/topics/t01/partitions/0/state"]))
    assert bent.partitions_without_state == ()
    assert bent.topics_without_id == ()
    index = list(zip(bent.partitions.topic, bent.partitions.partition, strict=True)).index(("t01", 0))
    assert bent.partitions.revision[index] == -1


def test_a_whole_view_is_itself_and_a_damaged_one_is_unknown() -> None:
    """So that no gate can take the rest for everything."""
    whole = view(golden("hybrid-after-copy"))
    assert whole_or_unknown(whole) is whole
    bent = view(damaged(["/brokers/topics/t00", "/controller"]))
    told = whole_or_unknown(bent)
    assert isinstance(told, Unknown)
    assert isinstance(told, PartlyRead)
    assert told.view is bent
    assert "/brokers/topics/t00" in told.reason
    assert "1 more" in told.reason


def test_no_row_of_a_ledger_over_a_damaged_tree_is_known() -> None:
    """A topic whose znode is malformed is not absent: the ledger says so of itself and of each row."""
    views = views_at("hybrid-after-copy")
    bent = replace(views.zookeeper, malformed=view(damaged(["/brokers/topics/t00"])).malformed)
    whole = facts.build(views.zookeeper, views.kraft, views.disks, after_copy=True, finalized=False)
    told = facts.build(bent, views.kraft, views.disks, after_copy=True, finalized=False)
    assert len(told.rows) == len(whole.rows)
    assert {row.state for row in told.rows} == {ReplicaState.UNKNOWN}
    assert told.unknown
    assert whole.unknown == ()


def test_what_is_mended_while_it_is_read_is_no_finding() -> None:
    """The reader comes back to what moved; what was malformed at first and then not is well."""

    class Mending:
        """Damaged in the first round, whole from the second on."""

        def __init__(self) -> None:
            self.trees = [damaged(["/brokers/topics/t00", "/brokers/topics/t01/partitions/0/state"])]
            self.after = golden("hybrid-after-copy")
            self.asked = 0

        def _tree(self) -> BackupTree:
            return self.trees[0] if self.asked < 2 else self.after

        def data(self, paths: list[str]) -> list[Znode | Absent]:
            """Every znode has a newer mzxid from the second round on."""
            answers = self._tree().data(paths)
            later = self.asked >= 2
            return [
                entry._replace(mzxid=entry.mzxid + 10**9) if later and isinstance(entry, Znode) else entry
                for entry in answers
            ]

        def children(self, paths: list[str]) -> object:
            """As they are."""
            return self._tree().children(paths)

        def zxid(self) -> int:
            """Moves with every look."""
            self.asked += 1
            return self.asked

    found = view_of(Mending(), "x", DIGESTER)  # type: ignore[arg-type]
    assert found.malformed == ()
    assert len(set(found.partitions.topic)) == 24


@pytest.mark.zookeeper
def test_a_real_server_with_damaged_znodes_gives_all_the_rest(client: ZookeeperClient) -> None:
    """The captured tree on a real server, two znodes overwritten there."""
    load_tree(client, golden("zk-before"))
    kazoo: KazooClient = client.kazoo
    kazoo.set("/brokers/topics/t00", b"\xff\x00")
    kazoo.create("/config/brokers/not-a-number", b'{"version":1,"config":{}}')
    found = read_view(client, DIGESTER)
    assert {entry.path for entry in found.malformed} == {"/brokers/topics/t00", "/config/brokers/not-a-number"}
    assert len(set(found.partitions.topic)) == 23
    assert not isinstance(found.acls, Unknown)
    assert found.acls["/brokers/topics"][0].permissions == 31


def test_a_migration_offset_stays_readable_beside_a_damaged_topic() -> None:
    """B-ZKN-01 must still be able to speak."""
    assert isinstance(view(damaged(["/brokers/topics/t00"])).migration, MigrationZnode)
