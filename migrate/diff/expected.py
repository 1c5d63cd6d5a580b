"""Differences that Kafka itself makes at rest: a closed table of rules, each as narrow as it can be.

A rule excuses one shape of row and names the source that makes it so.  `counter` is a row of nearly that shape which
the rule must not excuse; a test plants it.  Leaders, ISRs and epochs move and are *not* excused: the caller compares
again at a later offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark reader expects

from migrate.model.difference import Difference, DifferenceClass

Condition = Callable[[], Column]  # a column can be made only once there is a session
PRODUCER_ID_BLOCK: Final = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class ExpectedRule:
    """One rule.  `holds` is a condition on the columns kind, key, topic, field, cls, zookeeper, kraft and deleting.

    `deleting`: the topic stood in /admin/delete_topics when ZooKeeper was read.
    """

    id: str
    description: str
    source: str
    holds: Condition
    example: Difference
    counter: Difference


def _is(kind: str, cls: DifferenceClass, field: str | None = None) -> Column:
    found = (F.col("kind") == kind) & (F.col("cls") == cls.value)
    return found if field is None else found & (F.col("field") == field)


def _kraft_mode_broker() -> Column:
    return _is("broker", DifferenceClass.ONLY_KRAFT, "mode") & (F.col("kraft") == "kraft")


def _pending_deletion() -> Column:
    about_a_topic = F.col("kind").isin("partition", "topic", "topic-config")
    only_zk = F.col("cls") == DifferenceClass.ONLY_ZK.value
    return about_a_topic & only_zk & F.col("deleting")


def _metadata_version() -> Column:
    return _is("feature", DifferenceClass.ONLY_KRAFT) & (F.col("key") == "metadata.version")


def _producer_id_block() -> Column:
    ahead = F.expr("try_cast(zookeeper AS BIGINT)") - F.expr("try_cast(kraft AS BIGINT)")
    return _is("producer-ids", DifferenceClass.DIFFERS, "next_producer_id") & (ahead == PRODUCER_ID_BLOCK)


RULES: Final = (
    ExpectedRule(
        id="X-BROKER-01",
        description="a broker that runs in KRaft mode has no znode in /brokers/ids",
        source="KAFKA 3.9 kafka.server.BrokerServer registers with the controllers alone; KRaftMigrationZkWriter"
        " writes no registrations",
        holds=_kraft_mode_broker,
        example=Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "kraft"),
        # a broker in ZooKeeper mode must have its znode: without one it is down
        counter=Difference("broker", "1", "mode", DifferenceClass.ONLY_KRAFT, None, "zookeeper"),
    ),
    ExpectedRule(
        id="X-TOPIC-01",
        description="a topic in /admin/delete_topics is not copied",
        source="KAFKA 3.9 kafka.zk.migration.ZkTopicMigrationClient.iterateTopics leaves out getTopicDeletions;"
        " the deletion is finished by SYNC_KRAFT_TO_ZK",
        holds=_pending_deletion,
        example=Difference("partition", "doomed-0", "", DifferenceClass.ONLY_ZK, "replicas 0,1", None),
        counter=Difference("partition", "doomed-too-0", "", DifferenceClass.ONLY_ZK, "replicas 0,1", None),
    ),
    ExpectedRule(
        id="X-FEATURE-01",
        description="metadata.version is a feature of KRaft alone",
        source="KAFKA 3.9 kafka.zk.ZkMigrationClient.readAllMetadata does not read /feature; ZooKeeper-mode brokers"
        " have inter.broker.protocol.version in its place",
        holds=_metadata_version,
        example=Difference("feature", "metadata.version", "level", DifferenceClass.ONLY_KRAFT, None, "21"),
        counter=Difference("feature", "group.version", "level", DifferenceClass.ONLY_KRAFT, None, "1"),
    ),
    ExpectedRule(
        id="X-PRODUCER-01",
        description="in dual write ZooKeeper's block of producer ids begins where KRaft's next one does: it is ahead"
        " by one block",
        source="KAFKA 3.9 kafka.zk.ZkMigrationClient.writeProducerId: ProducerIdsBlock(-1, nextProducerId, 1000),"
        " whose end + 1 is what a ZooKeeper controller would hand out next",
        holds=_producer_id_block,
        example=Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "4000", "3000"),
        # behind KRaft: after a way back ids would be handed out twice
        counter=Difference("producer-ids", "", "next_producer_id", DifferenceClass.DIFFERS, "3000", "4000"),
    ),
)


def rule_of(rules: Sequence[ExpectedRule]) -> Column:
    """The id of the first rule that excuses the row, else null."""
    return F.coalesce(*(F.when(rule.holds(), F.lit(rule.id)) for rule in rules), F.lit(None).cast("string"))
