"""ZKN: what stands in ZooKeeper, and what the copy would make of it.

What is malformed stands in `migrate.checks.zookeeper`; here is what is well formed and still fatal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from migrate.checks import processes
from migrate.checks.phase import kraft_holds_controller
from migrate.checks.registry import BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.sight import Sight, entities, readable_zookeeper, zookeeper
from migrate.model.copied import ORPHAN, orphaned
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import NoZnode, NullZnode, PartlyRead, ZnodePart, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World

SHOWN_NAMES: Final = 5
JUTE_DEFAULT: Final = 1048575  # ZKClientConfig.CLIENT_MAX_PACKET_LENGTH_DEFAULT of ZooKeeper 3.8


def sample(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


@check(
    "B-ZKN-01",
    "/migration remembers a copy that this quorum has not made",
    "Fresh controllers that find a copied offset skip the copy and write their empty metadata back: as soon as the "
    "last broker registers, every topic, SCRAM user and quota is deleted from ZooKeeper. An earlier attempt was rolled "
    "back without deleting /migration.",
    "Stop the controllers, keep a backup of ZooKeeper, and delete /migration; then format the controllers again.",
    "strimzi-kafka-operator #11262; KRaftMigrationDriver: SYNC_KRAFT_TO_ZK; seen on 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE)
def stale_migration(view: ZookeeperView, world: World) -> Result:
    """An offset above 0 needs a metadata log at MIGRATION or POST_MIGRATION."""
    znode = view.copy_note
    if znode is None:
        return
    written = f"kraft_metadata_offset {znode.offset}, kraft_metadata_epoch {znode.epoch}"
    evidence = f"{written}, controller {znode.controller_id}"
    if not isinstance(world.kraft, Unknown):
        state = world.kraft.migration_state
        if state not in (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION):
            yield Hit("/migration", f"it says that a copy was made, and the metadata log is at {state.name}", evidence)
    elif kraft_holds_controller(world):
        yield Blind("the KRaft metadata", f"/migration says that a copy was made ({evidence}); {world.kraft.reason}")
    else:
        yield Hit("/migration", "it says that a copy was made, and a ZooKeeper broker is the controller", evidence)


@check(
    "B-ZKN-02",
    "/migration exists without data",
    "The migration driver cannot parse it and hangs without a word. zookeeper-security-migration.sh creates every path "
    "it knows, this one too.",
    "Keep a backup of ZooKeeper, then delete the empty /migration.",
    "KAFKA-19480, fixed in 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def null_migration(view: ZookeeperView, world: World) -> Result:
    if isinstance(view.migration, NullZnode):
        yield Hit("/migration", "the znode exists with null data", f"version {view.migration.version}")


@check(
    "B-ZKN-03",
    "a topic has no topic_id",
    "The copy stops in front of it: the driver fails with 'None.get' and stays in WAIT_FOR_BROKERS. The znode was last "
    "written by a controller older than 2.8, or edited by hand.",
    "Let ZooKeeper's controller move to another broker: it gives each such topic a new id. Then check again, the "
    "replicas' partition.metadata too.",
    "ZkMigrationClient.iterateTopicMetadata; seen on 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def topic_without_id(view: ZookeeperView, world: World) -> Result:
    for topic in view.topics_without_id:
        yield Hit(f"/brokers/topics/{topic}", f"topic {topic} has no topic_id")


@check(
    "B-ZKN-04",
    "a partition has no state",
    "The copy invents one: ISR = all replicas, leader = the first, epoch 0. A replica with old data may become leader, "
    "and nothing says so but one WARN line. The state was deleted, or never written because no controller finished "
    "creating the partition.",
    "Let ZooKeeper's controller move to another broker, or create the partition again; then check again.",
    "ZkMigrationClient.migrateTopics: 'Could not find partition state in ZK'; seen on 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def partition_without_state(view: ZookeeperView, world: World) -> Result:
    """As the reader found them; pending deletions are another check's."""
    pending = set(view.pending.deletions)
    for name in view.partitions_without_state:
        topic, _, partition = name.rpartition("-")
        if topic not in pending:
            path = f"/brokers/topics/{topic}/partitions/{partition}/state"
            yield Hit(path, f"partition {name} has no state znode")


@check(
    "B-ZKN-05",
    "a replica is assigned to a broker that is not alive",
    "The copy waits for every broker that any assignment names: 'Still waiting for ZK brokers [N] found in metadata'.",
    "Start the broker, or move its replicas to living brokers with kafka-reassign-partitions.",
    "KRaftMigrationDriver.areZkBrokersReadyForMigration; seen on 3.9.2",
).sees(zookeeper, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def dead_broker_assigned(view: ZookeeperView, world: World) -> Result:
    alive = {int(node) for node in view.brokers}
    pending = set(view.pending.deletions)
    found: dict[int, list[str]] = {}
    columns = view.partitions
    for topic, partition, replicas in zip(columns.topic, columns.partition, columns.replicas, strict=True):
        if alive.issuperset(replicas) or topic in pending:
            continue
        for broker in set(replicas) - alive:
            found.setdefault(broker, []).append(f"{topic}-{partition}")
    for broker, names in sorted(found.items()):
        yield Hit(
            f"broker {broker}",
            f"it is not in /brokers/ids, and {plural(len(names), 'partition')} with a replica on it: {sample(names)}",
            f"/brokers/ids has {sorted(alive)}",
            processes.start_those(
                world, [broker], "move its replicas to living brokers with kafka-reassign-partitions"
            ),
        )


@check(
    "B-ZKN-06",
    "a topic is about to be deleted",
    "Topics under deletion are not copied; their replicas become strays, and the deletion is forgotten.",
    "Wait until the deletion is done (start the brokers that hold replicas), or take it back.",
    "ZkMigrationClient.iterateTopicMetadata skips /admin/delete_topics; KAFKA-15605",
).sees(readable_zookeeper, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def pending_deletion(view: ZookeeperView, world: World) -> Result:
    for topic in view.pending.deletions:
        yield Hit(f"/admin/delete_topics/{topic}", f"topic {topic} waits for its deletion")


@check(
    "B-ZKN-07",
    "a reassignment is in progress",
    "Replicas that move while the metadata moves are the hardest case there is: the old request is not read, the half "
    "done one is copied as it is.",
    "Wait until it is done, or cancel it; keep tools that move replicas stopped until finalize.",
    "KIP-455; KAFKA-16120; /admin/reassign_partitions is not read by the copy",
).sees(readable_zookeeper, blocks_from=Stage.CONTROLLERS, when=BEFORE_COPY)
def pending_reassignment(view: ZookeeperView, world: World) -> Result:
    for name in dict.fromkeys((*view.pending.reassignments, *view.partitions.reassigned())):
        yield Hit(f"partition {name}", "its replicas are being reassigned")


@check(
    "W-ZKN-08",
    "an election was asked for and has not happened",
    "The request is not copied and will never be processed.",
    "Wait until it is gone; ask for the election again after the migration.",
    "KRaftMigrationDriver does not read /admin/preferred_replica_election",
).sees(readable_zookeeper, when=BEFORE_COPY)
def pending_election(view: ZookeeperView, world: World) -> Result:
    if view.pending.elections:
        names = list(view.pending.elections)
        message = f"waiting for an election: {plural(len(names), 'partition')}: {sample(names)}"
        yield Hit("/admin/preferred_replica_election", message)


@check(
    "B-ZKN-09",
    "/controller_epoch is missing",
    "A KRaft controller takes over by raising it; without it that fails with an IllegalStateException.",
    "Restart the broker that is the controller, so that one is elected and writes it.",
    "KafkaZkClient.tryRegisterKRaftControllerAsActiveController",
).sees(readable_zookeeper, blocks_from=Stage.CONTROLLERS, when=BEFORE_COPY)
def no_controller_epoch(view: ZookeeperView, world: World) -> Result:
    if isinstance(view.controller_epoch, NoZnode):
        yield Hit("/controller_epoch", "the znode does not exist")


@check(
    "B-ZKN-10",
    "an ACL's principal has no type",
    "The copy fails on it: a principal is Type:name, such as User:alice.",
    "Remove that ACL with kafka-acls and add it again with User: in front.",
    "SecurityUtils.parseKafkaPrincipal in ZkAclMigrationClient",
).sees(readable_zookeeper, blocks_from=Stage.MIGRATION_MODE, when=BEFORE_COPY)
def principal_without_type(view: ZookeeperView, world: World) -> Result:
    """Keys of kind `acl` are TYPE|PATTERN|name|principal|host|OPERATION|PERMISSION, their parts quoted."""
    for key, _, _, where in entities(view, "acl"):
        parts = key.split("|")
        principal = unquote(parts[3]) if len(parts) > 3 else ""
        if len(parts) > 3 and ":" not in principal:
            yield Hit(where or key, f"the principal {principal!r} is not Type:name", key)


@check(
    "W-ZKN-14",
    "a disk failure was reported and is not worked off",
    "A pending notification says that a log directory died a moment ago.",
    "Look at the brokers' log directories (B-DIR-01, B-DIR-17) before anything else.",
    "/log_dir_event_notification: KafkaController.processLogDirEventNotification",
).sees(readable_zookeeper, when=BEFORE_COPY)
def pending_log_dir_event(view: ZookeeperView, world: World) -> Result:
    if view.pending.log_dir_events:
        yield Hit("/log_dir_event_notification", f"notifications wait: {sample(list(view.pending.log_dir_events))}")


LARGE: Final = JUTE_DEFAULT * 3 // 4  # what grows to the limit in the middle of a migration ends it
CHILDREN_OVERHEAD: Final = 88  # of GetChildren2's answer: header, count and Stat
CHILD_OVERHEAD: Final = 4  # the length before each name
ACL_ENTRY: Final = len('{"principal":"","permissionType":"","operation":"","host":""},')


@check(
    "W-ZKN-23",
    "a list or an object in ZooKeeper is near or above what its client takes by default",
    "Controllers without a raised jute.maxbuffer cannot list that directory, or read that znode: their client closes "
    "the connection and retries indefinitely, and the copy never ends. Very many topics, or very many ACLs on one "
    "resource, lead to it.",
    "See with what -Djute.maxbuffer brokers and ZooKeeper's servers run (W-CFG-31), and start the controllers with the "
    "same value; or delete what is not used.",
    "ZooKeeper 3.8: jute.maxbuffer, 1,048,575 bytes unless set, for servers and clients alike",
).sees(readable_zookeeper)
def large_in_zookeeper(view: ZookeeperView, world: World) -> Result:
    """The lists of topics and of their configurations, counted; ACLs of one resource, estimated from their fields."""
    configured = {key for key, *_ in entities(view, "topic-config")}
    listed = {"/brokers/topics": set(view.partitions.topic), "/config/topics": configured}
    for path, names in listed.items():
        size = CHILDREN_OVERHEAD + sum(CHILD_OVERHEAD + len(name.encode("utf-8", "surrogatepass")) for name in names)
        if size > LARGE:
            yield Hit(path, f"the list of its {len(names)} children has {size} bytes", f"the default is {JUTE_DEFAULT}")
    acls: dict[str, int] = {}
    for key, _, _, where in entities(view, "acl"):
        fields = key.split("|")[3:]
        acls[where] = acls.get(where, 0) + ACL_ENTRY + sum(len(unquote(field)) for field in fields)
    for path, size in sorted(acls.items()):
        if size > LARGE:
            yield Hit(path, f"its ACLs have about {size} bytes", f"the default is {JUTE_DEFAULT}")


@check(
    "B-ZKN-13",
    "this is another cluster than expected",
    "Everything that follows would be done to the wrong cluster.",
    "Compare the connect string with the brokers' files, and the expected id with /cluster/id.",
    "/cluster/id; cluster.id of meta.properties",
).sees(readable_zookeeper, blocks_from=Stage.DISCOVER)
def other_cluster(view: ZookeeperView, world: World) -> Result:
    expected = {"the inventory": world.inventory.expect_cluster_id}
    if not isinstance(world.playbook, Unknown):
        expected["the playbook"] = world.playbook.expect_cluster_id
    if not isinstance(world.kraft, Unknown):
        expected["the controllers"] = world.kraft.cluster_id or None
    if not view.cluster_id:
        return  # malformed, and told as such
    for who, cluster_id in expected.items():
        if cluster_id is not None and cluster_id != view.cluster_id:
            yield Hit("/cluster/id", f"ZooKeeper has {view.cluster_id}, {who} has {cluster_id}")


@check(
    "B-ZKN-19",
    "the cluster has no topic, so nothing could be proven of it",
    "Every gate asks whether the replicas' directories and the fields of both views agree, and two views without a "
    "replica look like a cluster whose metadata was wiped: the run would stop behind the copy.",
    "Compare the connect string's chroot with zookeeper.connect of the brokers. If the cluster is new, make a topic "
    "with replicas on every broker (kafka-topics.sh --create), or start it again in KRaft mode, which takes no "
    "migration.",
    "the ledger's rule: no replica proves nothing",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def no_topic(view: ZookeeperView, world: World) -> Result:
    """No partition anywhere, readable or not."""
    if not view.partitions.topic and not any(where.part is ZnodePart.TOPIC for where in view.malformed):
        yield Hit("/brokers/topics", "ZooKeeper has no topic with a partition")


@check(
    ORPHAN,
    "a configuration belongs to a topic that does not exist",
    "The copy reads the configurations of existing topics alone: this one is not copied, and the controllers then "
    "delete it from ZooKeeper. A topic that is made later with that name would have had it. Configurations of brokers, "
    "users, client ids and ips are copied whether or not anything has that name. The topic's deletion was cut "
    "short, or somebody wrote the znode by hand.",
    "Delete it if nothing needs it; else create the topic first, or note the values and set them again when the topic "
    "exists. Left as it is, the run's report lists it as dropped.",
    "ZkTopicMigrationClient.iterateTopics; KRaftMigrationZkWriter.handleConfigsSnapshot; seen on 3.9.2",
).sees(readable_zookeeper, when=BEFORE_COPY)
def orphaned_config(view: ZookeeperView, world: World) -> Result:
    names: dict[str, list[str]] = {}
    for key, name, *_ in entities(view, "topic-config"):
        names.setdefault(key, []).append(name)
    broken = {where.path for where in view.malformed}
    for topic in sorted(orphaned(view)):
        if f"/brokers/topics/{topic}" not in broken:
            about = f"/config/topics/{topic}"
            yield Hit(about, f"topic {topic} does not exist: the copy drops {sample(names[topic])}")


@check(
    "W-ZKN-15",
    "a part of ZooKeeper could not be read or compared",
    "What is not seen is not compared: a difference there would go unnoticed. The tool's identity may not read that "
    "znode, it would not hold still, or a password is encoded and no password.encoder.secret was given.",
    "Give the tool the brokers' ZooKeeper identity, and the inventory a password_encoder_secret.",
    "zookeeper.set.acl: /config/users and /config/brokers have no world read",
).sees(zookeeper)
def unread_parts(view: ZookeeperView, world: World) -> Result:
    for text in view.blind_spots:
        path, _, reason = text.partition(": ")
        yield Blind(path if reason else "ZooKeeper", reason or text)


OWN_CODES: Final = frozenset({ZnodePart.QUOTA, ZnodePart.SCRAM, ZnodePart.BROKER_CONFIG})


def malformed_view(world: World) -> Sight[ZookeeperView]:
    """The tree as far as it was read: its malformed parts are what these checks are about, so nothing is missing."""
    found = readable_zookeeper(world)
    return replace(found, missing=()) if isinstance(world.zookeeper, PartlyRead) else found


def _hits(view: ZookeeperView, *parts: ZnodePart) -> Iterator[Hit]:
    for entry in view.malformed:
        if entry.part in parts:
            yield Hit(entry.path, f"what it says of {entry.part.value} cannot be read: {entry.problem}")


@check(
    "B-ZKN-16",
    "a znode is not what Kafka writes there",
    "Kafka's copy stops on it or leaves it out, and nothing here can be compared with it: whatever depends on it "
    "counts as unknown, never as absent. It was edited by hand or by another tool, or was written by a software that "
    "is not Apache Kafka 3.9.",
    "Keep a backup, look at the znode with zookeeper-shell, and repair it or have Kafka write it again; then check "
    "again.",
    "kafka/zk/ZkData.scala: each znode's decode",
).sees(malformed_view, blocks_from=Stage.PREPARE, when=UNTIL_FINALIZED)
def malformed_znode(view: ZookeeperView, world: World) -> Result:
    """Every malformed part that has no code of its own."""
    yield from _hits(view, *(part for part in ZnodePart if part not in OWN_CODES))


@check(
    "B-ZKN-12",
    "a quota cannot be read",
    "A broker of ZooKeeper mode ends by it at its next start, or the copy, or the sync behind it, stops half way "
    "(docs/support.md says which value does what). Kafka's own tools write no such value, and URL-encode the entity's "
    "name.",
    "Remove that quota with kafka-configs (or in zookeeper-shell, after a backup) and set it again.",
    "ZkConfigMigrationClient.iterateClientQuotas: toDouble; KAFKA-16411",
).sees(malformed_view, blocks_from=Stage.PREPARE, when=UNTIL_FINALIZED)
def malformed_quota(view: ZookeeperView, world: World) -> Result:
    yield from _hits(view, ZnodePart.QUOTA)


@check(
    "B-ZKN-17",
    "a SCRAM credential cannot be read",
    "The copy parses every credential and fails on this one; that user cannot log in now either. Kafka's own tools "
    "write none like it.",
    "Set the user's password again with kafka-configs --alter --add-config 'SCRAM-SHA-...=[...]', or delete the "
    "credential.",
    "ScramCredentialUtils.credentialFromString in ZkConfigMigrationClient",
).sees(malformed_view, blocks_from=Stage.PREPARE, when=UNTIL_FINALIZED)
def malformed_scram(view: ZookeeperView, world: World) -> Result:
    """No part of the credential is shown."""
    yield from _hits(view, ZnodePart.SCRAM)


@check(
    "B-ZKN-18",
    "a broker's dynamic configuration cannot be read, or is of no broker",
    "The copy takes the name of each child of /config/brokers but <default> for a number: on any other it fails with a "
    "NumberFormatException.",
    "After a backup, delete that znode, or repair its data.",
    "ZkConfigMigrationClient.iterateBrokerConfigs",
).sees(malformed_view, blocks_from=Stage.PREPARE, when=UNTIL_FINALIZED)
def malformed_broker_config(view: ZookeeperView, world: World) -> Result:
    yield from _hits(view, ZnodePart.BROKER_CONFIG)


@check(
    "B-ZKN-11",
    "two topics have one topic_id",
    "KRaft knows topics by their ids: the second one's record would overwrite the first, and its replicas on disk "
    "would be taken for the other's. A znode was copied by hand, or restored from a backup under another name.",
    "Find out which topic the id is of (partition.metadata in its replicas' folders), delete the other and create it "
    "anew.",
    "TopicsImage: topics by id; KIP-516",
).sees(malformed_view, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def twin_topic_ids(view: ZookeeperView, world: World) -> Result:
    """Over the readable topics; a malformed one is told by its own code."""
    topics: dict[str, list[str]] = {}
    for key, name, value, _ in entities(view, "topic"):
        if name == "topic_id":
            topics.setdefault(value, []).append(key)
    for topic_id, names in sorted(topics.items()):
        if len(names) > 1:
            yield Hit(f"topics {', '.join(sorted(names))}", f"all have the topic_id {topic_id}", topic_id)
