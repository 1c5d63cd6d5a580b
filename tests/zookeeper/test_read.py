"""The view of trees that real clusters wrote equals what those clusters said of themselves."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from kazoo.security import make_digest_acl

from migrate.errors import MalformedZnode, NotKafkasTree, ZookeeperDenied
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import ControllerZnode, MigrationZnode, NoZnode, NullZnode, ZnodePart, ZookeeperView
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.rate_limit import Pace
from migrate.zookeeper.read import MOST_REST, REST, Rereader, Takeover, read_migration, read_view, view_of
from tests.testing.golden_trees import FOLDER, STAGES, TOPIC_ID, golden, minimal, tree_of
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree
from tests.zookeeper.test_rate_limit import FakeClock

DIGESTER = Digester(b"k" * 32)
RESOURCES = {2: "TOPIC", 3: "GROUP"}
OPERATIONS = {3: "READ", 4: "WRITE"}
PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}


def view(tree: BackupTree, secret: str | None = None) -> ZookeeperView:
    """The view of a tree."""
    return view_of(tree, "test:2181", DIGESTER, None if secret is None else EncoderSecrets(secret))


def truth(name: str) -> Any:
    """What the cluster itself answered or wrote at the same moment."""
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


@pytest.mark.parametrize("stage", STAGES)
def test_partitions_are_those_of_the_metadata_answer(stage: str) -> None:
    """Replicas in order, leader and ISR of all 212 partitions, as a broker answered at that moment."""
    found = view(golden(stage)).partitions
    expected = truth(f"{stage}.metadata")["topics"]
    seen: dict[str, dict[str, Any]] = {}
    for index, topic in enumerate(found.topic):
        entry = [found.leader[index], found.replicas[index], sorted(found.isr[index])]
        seen.setdefault(topic, {})[str(found.partition[index])] = entry
    assert len(found) == 212
    assert seen == expected


@pytest.mark.parametrize("stage", STAGES)
def test_columns_have_one_length_and_stand_in_order(stage: str) -> None:
    """Sorted by topic and partition; nothing is missing in these clusters."""
    found = view(golden(stage))
    columns = found.partitions
    lengths = {len(getattr(columns, name)) for name in columns.__slots__}
    assert lengths == {212}
    assert list(zip(columns.topic, columns.partition, strict=True)) == sorted(
        zip(columns.topic, columns.partition, strict=True)
    )
    assert (found.topics_without_id, found.partitions_without_state, found.blind_spots) == ((), (), ())
    assert found.pending.deletions == found.pending.reassignments == found.pending.log_dir_events == ()
    assert all(revision > 0 for revision in columns.revision)


@pytest.mark.parametrize(
    ("stage", "brokers", "controller", "epoch", "migration"),
    [
        ("zk-before", [0, 1, 2], ControllerZnode(2, -1, ephemeral=True, version=0), 1, NoZnode()),
        (
            "controllers-up",
            [0, 1, 2],
            ControllerZnode(2, -1, ephemeral=True, version=0),
            1,
            MigrationZnode(-1, -1, -1, -1, 0),
        ),
        (
            "hybrid-after-copy",
            [0, 1, 2],
            ControllerZnode(3001, 1, ephemeral=False, version=0),
            3,
            MigrationZnode(654, 1, 3001, 1, 65),
        ),
        (
            "first-broker-kraft",
            [1, 2],
            ControllerZnode(3001, 1, ephemeral=False, version=0),
            3,
            MigrationZnode(1217, 1, 3001, 1, 196),
        ),
        (
            "finalized",
            [],
            ControllerZnode(3001, 1, ephemeral=False, version=0),
            3,
            MigrationZnode(2382, 1, 3001, 1, 503),
        ),
    ],
)
def test_the_takeover_is_seen_at_each_stage(
    stage: str, brokers: list[int], controller: ControllerZnode, epoch: int, migration: MigrationZnode | NoZnode
) -> None:
    """Brokers leave /brokers/ids as they become KRaft; the controller's claim and /migration outlive finalize."""
    found = view(golden(stage))
    assert found.cluster_id == "REh233dFSJKhrlnVHSnalQ"
    assert list(found.brokers) == brokers
    assert (found.controller, found.controller_epoch) == (controller, epoch)
    assert found.migration == migration
    assert read_migration(golden(stage)) == Takeover(found.migration, controller, epoch)


@pytest.mark.parametrize("stage", STAGES)
def test_an_epoch_that_was_written_since_the_claim_is_seen_beside_real_claims(stage: str) -> None:
    """Brokers and KRaft controllers alike claim /controller and count it in one transaction."""
    tree = golden(stage)
    assert not view(tree).owner_fenced
    epoch = tree.znodes["/controller_epoch"]
    assert not isinstance(epoch, Absent)
    raised = {**tree.znodes, "/controller_epoch": epoch._replace(mzxid=epoch.mzxid + 1)}
    assert view(BackupTree(tree.connect, raised)).owner_fenced


def rows_of_records(records: list[dict[str, Any]]) -> Mapping[tuple[str, str, str], str]:
    """What Kafka's own copy wrote into the metadata log, spelled as rows."""
    rows: dict[tuple[str, str, str], str] = {}
    for record in records:
        match record["type"]:
            case "TOPIC_RECORD":
                rows["topic", record["name"], "topic_id"] = record["topicId"]
            case "CONFIG_RECORD":
                kind = {2: "topic-config", 4: "broker-config"}[record["resourceType"]]
                rows[kind, record["resourceName"], record["name"]] = record["value"]
            case "CLIENT_QUOTA_RECORD":
                parts = sorted((part["entityType"], part["entityName"]) for part in record["entity"])
                key = "/".join(
                    f"{kind}={'<default>' if name is None else quote(name, safe='')}" for kind, name in parts
                )
                rows["client-quota", key, record["key"]] = repr(float(record["value"]))
            case "USER_SCRAM_CREDENTIAL_RECORD":
                import base64

                mechanism = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[record["mechanism"]]
                for name, field in (("salt", "salt"), ("stored_key", "storedKey"), ("server_key", "serverKey")):
                    digest = DIGESTER.digest(base64.b64decode(record[field]))
                    rows["scram", record["name"], f"{mechanism}.{name}"] = digest
                rows["scram", record["name"], f"{mechanism}.iterations"] = str(record["iterations"])
            case "ACCESS_CONTROL_ENTRY_RECORD":
                parts_ = [record["resourceName"], record["principal"], record["host"]]
                quoted = "|".join(quote(part, safe="*:") for part in parts_)
                head = f"{RESOURCES[record['resourceType']]}|{PATTERNS[record['patternType']]}"
                tail = f"{OPERATIONS[record['operation']]}|{PERMISSIONS[record['permissionType']]}"
                rows["acl", f"{head}|{quoted}|{tail}", "present"] = "true"
            case "PRODUCER_IDS_RECORD":
                rows["producer-ids", "", "next_producer_id"] = str(record["nextProducerId"])
    return rows


def test_rows_equal_what_kafka_copied() -> None:
    """Topics, configurations, quotas, SCRAM, ACLs, producer ids: the records of Kafka's copy, no row more or less."""
    rows = view(golden("hybrid-after-copy")).entities
    ours = {
        (kind, key, name): value
        for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True)
        if kind != "broker"
    }
    assert ours == rows_of_records(truth("hybrid-after-copy.records"))
    assert rows.counts() == {
        "acl": 3,
        "broker": 3,
        "broker-config": 1,
        "client-quota": 6,
        "producer-ids": 1,
        "scram": 2,
        "topic": 24,
        "topic-config": 5,
    }
    assert all(where.startswith("/") for where in rows.where)


def test_brokers_are_rows_too() -> None:
    """Endpoints always, a rack where there is one."""
    broker = {"version": 5, "endpoints": ["B://h:2", "A://h:1"], "rack": "r"}
    rows = view(tree_of(minimal() | {"/brokers/ids/4": broker})).entities
    assert list(zip(rows.kind, rows.key, rows.name, rows.value, strict=True)) == [
        ("broker", "4", "rack", "r"),
        ("broker", "4", "endpoints", "A://h:1,B://h:2"),
    ]


def test_what_is_incomplete_is_listed() -> None:
    """A topic without id (still compared by name), a partition without state (leader -1, revision -1)."""
    tree = tree_of(
        minimal()
        | {
            "/brokers/topics/old": {"version": 1, "partitions": {"0": [1]}},
            "/brokers/topics/new": {"version": 3, "topic_id": TOPIC_ID, "partitions": {"1": [1], "0": [2]}},
            "/brokers/topics/new/partitions/1/state": {
                "version": 1,
                "leader": 1,
                "leader_epoch": 0,
                "controller_epoch": 1,
                "isr": [1],
            },
        }
    )
    found = view(tree)
    assert found.topics_without_id == ("old",)
    assert found.partitions_without_state == ("new-0", "old-0")
    assert found.partitions.revision == [-1, 105, -1]
    assert found.partitions.topic_id == [TOPIC_ID, TOPIC_ID, ""]
    assert found.entities.key == ["new"]


def test_pending_work_is_listed() -> None:
    """Deletions, reassignments of the legacy znode and of topics, elections, directory failures."""
    topic = {"version": 3, "topic_id": TOPIC_ID, "partitions": {"0": [1, 2], "1": [1]}, "adding_replicas": {"0": [2]}}
    found = view(
        tree_of(
            minimal()
            | {
                "/brokers/topics/t": {**topic, "removing_replicas": {"1": []}},
                "/admin/delete_topics/t": None,
                "/admin/reassign_partitions": {"version": 1, "partitions": [{"topic": "a", "partition": 1}]},
                "/admin/preferred_replica_election": {"version": 1, "partitions": [{"topic": "b", "partition": 2}]},
                "/log_dir_event_notification/log_dir_event_0000000001": {"version": 1, "broker": 1, "event": 1},
            }
        )
    )
    assert found.pending.deletions == ("t",)
    assert found.pending.reassignments == ("a-1", "t-0")
    assert found.pending.elections == ("b-2",)
    assert found.pending.log_dir_events == ("log_dir_event_0000000001",)
    assert found.partitions.adding == [[2], []]
    assert found.partitions.topic == ["t", "t"]


def test_no_znode_null_znode_and_a_value_are_three_things() -> None:
    """For /migration; for the others null data is malformed."""
    assert view(tree_of(minimal())).migration == NoZnode()
    assert view(tree_of(minimal() | {"/migration": None})).migration == NullZnode(version=0)
    assert view(tree_of(minimal())).controller == NoZnode()
    assert view(tree_of(minimal())).controller_epoch == NoZnode()
    bent = view(tree_of(minimal() | {"/controller": None}))
    assert isinstance(bent.controller, Unknown)
    assert [(entry.path, entry.part) for entry in bent.malformed] == [("/controller", ZnodePart.TAKEOVER)]
    with pytest.raises(MalformedZnode):
        read_migration(tree_of(minimal() | {"/controller": None}))


@pytest.mark.parametrize("gone", ["/cluster/id", "/brokers/ids", "/brokers/topics"])
def test_a_tree_without_kafkas_core_is_not_read_as_an_empty_cluster(gone: str) -> None:
    """A wrong chroot must not look like a cluster without topics."""
    with pytest.raises(NotKafkasTree, match=gone):
        view(tree_of({path: data for path, data in minimal().items() if path != gone}))


def test_what_may_not_be_read_is_a_blind_spot() -> None:
    """Not an error, not empty: the paths are named; the rest of the view stands."""
    tree = golden("zk-before")
    hidden = {"/config/users", "/config/brokers", "/brokers/topics/t00", "/brokers/topics/t01/partitions/0/state"}
    znodes = {
        path: Absent.DENIED if path in hidden else znode
        for path, znode in tree.znodes.items()
        if not path.startswith(("/config/users/", "/config/brokers/"))
    }
    found = view(BackupTree("test", znodes))
    assert {spot.partition(":")[0] for spot in found.blind_spots} == hidden
    assert "scram" not in found.entities.kind
    assert "t00" not in found.partitions.topic
    assert "t01-0" not in found.partitions_without_state
    assert len(found.brokers) == 3


def test_a_hidden_cluster_id_is_an_error() -> None:
    """Nothing can be said of a cluster whose identity is hidden; nor of a hidden takeover."""
    tree = golden("zk-before")
    with pytest.raises(ZookeeperDenied):
        view(BackupTree("test", {**tree.znodes, "/cluster/id": Absent.DENIED}))
    with pytest.raises(ZookeeperDenied):
        read_migration(BackupTree("test", {**tree.znodes, "/migration": Absent.DENIED}))


def test_unknown_subtrees_are_blind_spots() -> None:
    """A type of configuration or pattern that Kafka 3.9 does not keep in ZooKeeper is not passed over."""
    found = view(tree_of(minimal() | {"/config/planets/a": None, "/kafka-acl-extended/regex/Topic/x": None}))
    assert [spot.partition(":")[0] for spot in found.blind_spots] == ["/config/planets", "/kafka-acl-extended/regex"]


def test_secrets_of_real_clusters_do_not_reach_the_view() -> None:
    """No SCRAM key of the captured tree is in the view's text."""
    tree = golden("hybrid-after-copy")
    text = repr(view(tree))
    data = tree.data(["/config/users/alice"])[0]
    assert not isinstance(data, Absent)
    assert data.data is not None
    credential = json.loads(data.data)["config"]["SCRAM-SHA-256"]
    for part in credential.split(","):
        name, _, value = part.partition("=")
        assert name == "iterations" or value not in text


def test_features_are_rows() -> None:
    """Finalized features of /feature, by level."""
    feature = {"version": 2, "status": 1, "features": {"f": {"max_version_level": 3}}}
    rows = view(tree_of(minimal() | {"/feature": feature})).entities
    assert list(zip(rows.kind, rows.key, rows.name, rows.value, strict=True)) == [("feature", "f", "level", "3")]


pytestmark = pytest.mark.zookeeper


@pytest.fixture
def writer(server: ZookeeperServer, chroot: str, client: ZookeeperClient) -> ZookeeperClient:
    """Another session on the same tree, which holds a captured cluster."""
    load_tree(client, golden("hybrid-after-copy"))
    return client


def reader_of(server: ZookeeperServer, chroot: str, pace: Pace | None = None) -> ZookeeperClient:
    """A session that only reads."""
    return connect(server.address + chroot, pace=pace)


def calm() -> tuple[Rereader, FakeClock]:
    """A rereader on a clock that stands still unless it sleeps."""
    clock = FakeClock()
    return Rereader(Digester(), monotonic=clock.monotonic, sleep=clock.sleep), clock


def test_a_quiet_tree_is_read_once(server: ZookeeperServer, chroot: str, writer: ZookeeperClient) -> None:
    """Then a sync is all that is asked, and the view is the one that a whole read gives."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        before = client.pace.operations
        for _ in range(5):
            assert reread.read(client) is first
        assert client.pace.operations - before == 5
        assert reread.whole == 1
        assert read_view(client, reread._digester) == first


def deep(writer: ZookeeperClient) -> None:
    """A partition's state."""
    path = next(path for path in golden("hybrid-after-copy").znodes if path.endswith("/state"))
    writer.kazoo.set(path, writer.kazoo.get(path)[0].replace(b'"leader_epoch":', b'"leader_epoch":9'))


CHANGES: dict[str, Callable[[ZookeeperClient], object]] = {
    "a partition's state": deep,
    "a topic is marked": lambda writer: create(writer, "/admin/delete_topics/gone", b""),
    "a znode goes": lambda writer: writer.kazoo.delete("/controller"),
    "an ACL": lambda writer: writer.kazoo.set_acls("/config/users", [make_digest_acl("a", "b", all=True)]),
    "a broker's session": lambda writer: create(writer, "/brokers/ids/77", b"{}", ephemeral=True),
    "data written back as it was": lambda writer: writer.kazoo.set("/migration", writer.kazoo.get("/migration")[0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_in_the_next_look(
    change: str, server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """Data, children, ACLs, ephemeral znodes: each is a transaction, and each ends what was remembered."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        assert reread.read(client) is first
        CHANGES[change](writer)
        second = reread.read(client)
        assert second is not first
        assert second == read_view(client, reread._digester)
        assert reread.whole == 2
        assert reread.read(client) is second


def test_every_of_many_changes_is_seen_by_the_look_that_follows_it(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """A write that has ended before the look began: the sync sees to it."""
    reread, _ = calm()
    create(writer, "/admin/delete_topics/t-0", b"")
    with reader_of(server, chroot) as client:
        for number in range(1, 30):
            create(writer, f"/admin/delete_topics/t-{number}", b"")
            assert f"t-{number}" in reread.read(client).pending.deletions
            assert len(reread.read(client).pending.deletions) == number + 1


def test_a_view_that_was_read_while_something_happened_is_not_kept(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part of it may be older than its newest zxid."""
    reread, _ = calm()

    def disturbed(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> object:
        kept = read_view(client, digester, secrets)
        create(writer, f"/admin/delete_topics/late-{reread.whole}", b"")
        client.sync()
        return kept

    monkeypatch.setattr("migrate.zookeeper.read.read_view", disturbed)
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        assert reread.read(client) is not first
        assert reread.whole == 2


def test_another_session_or_secret_is_another_look(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """Zxids of one ensemble say nothing of another; a secret opens passwords that were blind spots."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        opened = reread.read(client, EncoderSecrets("a secret"))
        assert opened is not first
        assert reread.read(client, EncoderSecrets("a secret")) is opened
        assert reread.read(client, EncoderSecrets("a secret", "an older one")) is not opened
        assert reread.read(client) is not first
    with reader_of(server, chroot) as client:
        reread.read(client)
        assert reread.whole == 5


def test_whole_reads_keep_a_distance_that_grows_with_what_they_cost(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times the last read, at most five seconds; nothing where the operator said how fast."""
    clock, costs = FakeClock(), [0.5, 1.0, 60.0, 0.0, 60.0, 60.0]

    def costly(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> object:
        clock.now += costs.pop(0)
        return read_view(client, digester, secrets)

    monkeypatch.setattr("migrate.zookeeper.read.read_view", costly)
    reread = Rereader(Digester(), monotonic=clock.monotonic, sleep=clock.sleep)
    with reader_of(server, chroot) as client:
        for number in range(4):
            create(writer, f"/admin/delete_topics/cost-{number}", b"")
            reread.read(client)
        assert clock.slept == pytest.approx([0.5 * REST, 1.0 * REST, MOST_REST])
    with reader_of(server, chroot, Pace(1_000_000)) as client:
        slept = list(clock.slept)
        for number in range(2):
            create(writer, f"/admin/delete_topics/paced-{number}", b"")
            reread.read(client)
        assert clock.slept == slept
