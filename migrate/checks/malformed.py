"""ZKN: znodes that are not what Kafka writes.  Each is told; what it would have said counts as unknown everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from migrate.checks.registry import BEFORE_COPY, UNTIL_FINALIZED, Hit, Result, check
from migrate.checks.sight import Sight, readable_zookeeper
from migrate.model.findings import CodeDoc
from migrate.model.stage import Stage
from migrate.model.views import PartlyRead, ZookeeperView
from migrate.model.world import World
from migrate.model.znodes import ZnodePart

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
    CodeDoc(
        "B-ZKN-16",
        "a znode is not what Kafka writes there",
        "Kafka's copy stops on it or leaves it out, and nothing here can be compared with it: whatever depends on it"
        " counts as unknown, never as absent.",
        "It was edited by hand or by another tool, or was written by a software that is not Apache Kafka 3.9.",
        "Keep a backup, look at the znode with zookeeper-shell, and repair it or have Kafka write it anew; then check"
        " again.",
        "kafka/zk/ZkData.scala: each znode's decode",
    ),
    sees=malformed_view,
    blocks_from=Stage.PREPARE,
    when=UNTIL_FINALIZED,
)
def malformed_znode(view: ZookeeperView, world: World) -> Result:
    """Every malformed part that has no code of its own."""
    yield from _hits(view, *(part for part in ZnodePart if part not in OWN_CODES))


@check(
    CodeDoc(
        "B-ZKN-12",
        "a quota cannot be read",
        "The copy parses every quota as a number and fails on this one: the migration stops half way.",
        "The value was written past Kafka's tools, or the entity's name is not URL-encoded as Kafka does it.",
        "Remove that quota with kafka-configs (or in zookeeper-shell, after a backup) and set it again.",
        "ZkConfigMigrationClient.iterateClientQuotas: toDouble; KAFKA-16411",
    ),
    sees=malformed_view,
    blocks_from=Stage.PREPARE,
    when=UNTIL_FINALIZED,
)
def malformed_quota(view: ZookeeperView, world: World) -> Result:
    """Of clients, users, addresses."""
    yield from _hits(view, ZnodePart.QUOTA)


@check(
    CodeDoc(
        "B-ZKN-17",
        "a SCRAM credential cannot be read",
        "The copy parses every credential and fails on this one; that user cannot log in now either.",
        "It was written past Kafka's tools.",
        "Set the user's password again with kafka-configs --alter --add-config 'SCRAM-SHA-...=[...]', or delete the"
        " credential.",
        "ScramCredentialUtils.credentialFromString in ZkConfigMigrationClient",
    ),
    sees=malformed_view,
    blocks_from=Stage.PREPARE,
    when=UNTIL_FINALIZED,
)
def malformed_scram(view: ZookeeperView, world: World) -> Result:
    """No part of the credential is shown."""
    yield from _hits(view, ZnodePart.SCRAM)


@check(
    CodeDoc(
        "B-ZKN-18",
        "a broker's dynamic configuration cannot be read, or is of no broker",
        "The copy takes the name of each child of /config/brokers for a number: on any other it fails with a"
        " NumberFormatException.",
        "A child of /config/brokers is neither a broker id nor <default>, or its data is no configuration.",
        "After a backup, delete that znode, or repair its data.",
        "ZkConfigMigrationClient.iterateBrokerConfigs",
    ),
    sees=malformed_view,
    blocks_from=Stage.PREPARE,
    when=UNTIL_FINALIZED,
)
def malformed_broker_config(view: ZookeeperView, world: World) -> Result:
    """Names and data."""
    yield from _hits(view, ZnodePart.BROKER_CONFIG)


@check(
    CodeDoc(
        "B-ZKN-11",
        "two topics have one topic_id",
        "KRaft knows topics by their ids: the second one's record would overwrite the first, and its replicas on disk"
        " would be taken for the other's.",
        "A topic's znode was copied by hand, or restored from a backup under another name.",
        "Find out which topic the id is of (partition.metadata in its replicas' folders), delete the other and create"
        " it anew.",
        "TopicsImage: topics by id; KIP-516",
    ),
    sees=malformed_view,
    blocks_from=Stage.PREPARE,
    when=BEFORE_COPY,
)
def twin_topic_ids(view: ZookeeperView, world: World) -> Result:
    """Over the readable topics; a malformed one is told by its own code."""
    topics: dict[str, list[str]] = {}
    rows = view.entities
    for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True):
        if (kind, name) == ("topic", "topic_id"):
            topics.setdefault(value, []).append(key)
    for topic_id, names in sorted(topics.items()):
        if len(names) > 1:
            yield Hit(f"topics {', '.join(sorted(names))}", f"all have the topic_id {topic_id}", topic_id)
