"""Why a row of the comparison may differ, and what to do: a small table, the first line that fits answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.model.difference import Difference, DifferenceClass

ONLY_ZK, ONLY_KRAFT, DIFFERS = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT, DifferenceClass.DIFFERS


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause and what to do; "" and () fit everything."""

    kinds: tuple[str, ...]
    fields: tuple[str, ...]
    classes: tuple[DifferenceClass, ...]
    cause: str
    what_to_do: str


REPEAT: Final = "repeat the change through Kafka's own tools, which write KRaft; dual write then writes the znode"
CAUSES: Final = (
    Cause(
        ("partition",),
        (),
        (ONLY_ZK,),
        "the topic was written to ZooKeeper past Kafka, or the copy left it out",
        "ask whether the topic is wanted: create it anew through a broker, or delete its znodes",
    ),
    Cause(
        ("partition", "topic"),
        (),
        (ONLY_KRAFT,),
        "the znode was deleted past Kafka, or dual write of this topic failed",
        "look for the controller's ZooKeeper errors; a restart of the active controller writes all topics again",
    ),
    Cause(
        ("partition", "topic"),
        ("topic_id",),
        (DIFFERS,),
        "the topic was deleted and made again by somebody who wrote to ZooKeeper past Kafka",
        "do not restart a broker: its folders belong to one of the two ids; find out which",
    ),
    Cause(
        ("partition",),
        ("replicas", "adding", "removing"),
        (DIFFERS,),
        "a reassignment was written to ZooKeeper past Kafka",
        "start the reassignment anew with kafka-reassign-partitions --bootstrap-server",
    ),
    Cause(
        ("partition",),
        ("isr", "leader", "leader_epoch", "recovery_state"),
        (DIFFERS,),
        "the state znode was written past Kafka, or dual write of this partition failed",
        "any change of leader writes it again; look for the controller's ZooKeeper errors if that does not help",
    ),
    Cause(
        ("broker",),
        ("mode", "endpoints", "rack"),
        (ONLY_KRAFT,),
        "the broker runs in ZooKeeper mode and its session is gone: it is down, or it restarts",
        "wait for it, or start it; nothing may be rolled meanwhile",
    ),
    Cause(
        ("broker",),
        (),
        (ONLY_ZK,),
        "the broker is registered in ZooKeeper and not with the controllers",
        "restart it with zookeeper.metadata.migration.enable and the quorum's address",
    ),
    Cause(
        ("broker",),
        ("mode",),
        (DIFFERS,),
        "the broker runs in KRaft mode, and the session of its ZooKeeper life has not ended yet",
        "wait for the end of the session (zookeeper.session.timeout.ms)",
    ),
    Cause(
        ("broker",),
        (),
        (),
        "the broker's listeners or rack were changed since it registered on one side",
        "restart the broker: it registers on both sides anew",
    ),
    Cause(
        ("scram",),
        (),
        (),
        "kafka-configs --zookeeper wrote the credential past Kafka",
        "set the password again with kafka-configs --bootstrap-server",
    ),
    Cause(
        ("broker-config",),
        (),
        (),
        "kafka-configs --zookeeper wrote it past Kafka, or the controllers' password.encoder.secret is another one",
        f"compare password.encoder.secret of brokers and controllers; else {REPEAT}",
    ),
    Cause(
        ("producer-ids",),
        (),
        (),
        "the block of producer ids was not written by dual write, or by somebody else too",
        "do not go back to ZooKeeper before it is ahead again: producer ids would be handed out twice",
    ),
    Cause(
        ("feature",),
        (),
        (),
        "features are not dual-written: somebody changed a finalized feature while the migration ran",
        "take the change back with kafka-features downgrade: features may not change before finalize",
    ),
    Cause(
        ("topic", "topic-config", "client-quota", "acl", "delegation-token"),
        (),
        (),
        "the znode was written past Kafka, or dual write of it failed",
        REPEAT,
    ),
)


def cause_of(row: Difference) -> Cause:
    """The first line of the table that fits (pure); LookupError for a kind that the comparison does not know."""
    for entry in CAUSES:
        fits = ((entry.kinds, row.kind), (entry.fields, row.field), (entry.classes, row.side))
        if all(not wanted or found in wanted for wanted, found in fits):
            return entry
    raise LookupError(f"no cause is known for {row.kind} {row.field} {row.side}")
