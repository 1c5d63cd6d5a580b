"""Differences that Kafka itself makes at rest: a closed table of rules, each as narrow as possible, in SQL.

A rule accepts one shape of row and names the source that makes it so.  `counter` is a row of nearly that shape which
the rule must not accept; a test plants it.  Leaders, ISRs and epochs move and are *not* accepted: the caller compares
again at a later offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.difference import Difference, DifferenceClass


def literal(text: str) -> str:
    """A text as a value; `${...}` in it is no variable of Spark's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"


def name_of(text: str) -> str:
    """A text as the name of a column."""
    return "`" + text.replace("`", "``") + "`"


def chosen(cases: Mapping[str, str], otherwise: str = "NULL") -> str:
    """The value of the first condition that holds; both are SQL."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases.items())
    return f"CASE {whens} ELSE {otherwise} END"


PRODUCER_ID_BLOCK: Final = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class ExpectedRule:
    """One rule.  `holds` is a condition, in SQL, on kind, key, topic, field, cls, zookeeper, kraft and deleting.

    `deleting`: the topic was in /admin/delete_topics when ZooKeeper was read.
    """

    id: str
    description: str
    source: str
    holds: str
    example: Difference
    counter: Difference


def _is(kind: str, cls: DifferenceClass, *others: str) -> str:
    return " AND ".join((f"kind = {literal(kind)}", f"cls = {literal(cls)}", *others))


KRAFT_MODE_BROKER: Final = _is("broker", DifferenceClass.ONLY_KRAFT, "field = 'mode'", "kraft = 'kraft'")
PENDING_DELETION: Final = (
    f"kind IN ('partition', 'topic', 'topic-config') AND cls = {literal(DifferenceClass.ONLY_ZK)} AND deleting"
)
METADATA_VERSION: Final = _is("feature", DifferenceClass.ONLY_KRAFT, "key = 'metadata.version'")
KRAFT_VERSION: Final = _is("feature", DifferenceClass.ONLY_KRAFT, "key = 'kraft.version'")
AHEAD: Final = "try_cast(zookeeper AS BIGINT) - try_cast(kraft AS BIGINT)"
PRODUCER_IDS: Final = _is(
    "producer-ids", DifferenceClass.DIFFERS, "field = 'next_producer_id'", f"{AHEAD} = {PRODUCER_ID_BLOCK}"
)

RULES: Final = (
    ExpectedRule(
        id="X-BROKER-01",
        description="a broker that runs in KRaft mode has no znode in /brokers/ids",
        source="KAFKA 3.9 kafka.server.BrokerServer registers with the controllers alone; KRaftMigrationZkWriter"
        " writes no registrations",
        holds=KRAFT_MODE_BROKER,
        example=Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "kraft"),
        # a broker in ZooKeeper mode must have its znode: without one it is down
        counter=Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "zookeeper"),
    ),
    ExpectedRule(
        id="X-TOPIC-01",
        description="a topic in /admin/delete_topics is not copied",
        source="KAFKA 3.9 kafka.zk.migration.ZkTopicMigrationClient.iterateTopics leaves out getTopicDeletions;"
        " the deletion is finished by SYNC_KRAFT_TO_ZK",
        holds=PENDING_DELETION,
        example=Difference("partition", "doomed-0", "", DifferenceClass.ONLY_ZK, "replicas 0,1", None),
        counter=Difference("partition", "doomed-too-0", "", DifferenceClass.ONLY_ZK, "replicas 0,1", None),
    ),
    ExpectedRule(
        id="X-FEATURE-01",
        description="metadata.version is a feature of KRaft alone",
        source="KAFKA 3.9 kafka.zk.ZkMigrationClient.readAllMetadata does not read /feature; ZooKeeper-mode brokers"
        " have inter.broker.protocol.version in its place",
        holds=METADATA_VERSION,
        example=Difference("feature", "metadata.version", "level", DifferenceClass.ONLY_KRAFT, None, "21"),
        counter=Difference("feature", "group.version", "level", DifferenceClass.ONLY_KRAFT, None, "1"),
    ),
    ExpectedRule(
        id="X-FEATURE-02",
        description="a level of kraft.version is KRaft's alone, and has no effect: Raft keeps its own (W-QRM-09)",
        source="KAFKA 3.9 org.apache.kafka.controller.FeatureControlManager.updateFeature writes one for whoever asks;"
        " KAFKA-18979; seen on 3.9.2",
        holds=KRAFT_VERSION,
        example=Difference("feature", "kraft.version", "level", DifferenceClass.ONLY_KRAFT, None, "1"),
        counter=Difference("feature", "kraft.version", "level", DifferenceClass.ONLY_ZK, "1", None),
    ),
    ExpectedRule(
        id="X-PRODUCER-01",
        description="in dual write ZooKeeper's block of producer ids begins where KRaft's next one does: it is ahead"
        " by one block",
        source="KAFKA 3.9 kafka.zk.ZkMigrationClient.writeProducerId: ProducerIdsBlock(-1, nextProducerId, 1000),"
        " whose end + 1 is what a ZooKeeper controller would hand out next",
        holds=PRODUCER_IDS,
        example=Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "4000", "3000"),
        # behind KRaft: after a rollback ids would be handed out twice
        counter=Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "3000", "4000"),
    ),
)


def rule_of(rules: Sequence[ExpectedRule]) -> str:
    """The id of the first rule that accepts the row, else null, in SQL."""
    return chosen({rule.holds: literal(rule.id) for rule in rules})
