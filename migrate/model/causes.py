"""Why a row of the comparison may differ, and what to do: a small table, the first line that fits answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.model.difference import Difference, DifferenceClass
from migrate.model.kraft_only import is_kraft_only

ONLY_ZK, ONLY_KRAFT, DIFFERS = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT, DifferenceClass.DIFFERS


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause and what to do; () fits everything.  `keys` are parts of a key, of which one must be in it."""

    kinds: tuple[str, ...]
    fields: tuple[str, ...]
    classes: tuple[DifferenceClass, ...]
    cause: str
    what_to_do: str
    keys: tuple[str, ...] = ()


WRITE_AGAIN: Final = (
    "restart the active controller (after B-MIG-14 is cleared): its successor makes ZooKeeper what KRaft is; "
    "the same change made again writes nothing"
)
REPEAT: Final = (
    "if the znode was written past Kafka and that is wanted, make the change with Kafka's own tools; "
    f"else {WRITE_AGAIN}"
)
UNWRITABLE_ACL: Final = Cause(
    ("acl",),
    (),
    (ONLY_KRAFT,),
    "the ACL's resource name cannot be a znode's name (most often it contains `/`): Kafka 3.9 cannot write it to "
    "ZooKeeper, and other ACLs of the same request may be lost in ZooKeeper with it",
    "note it and remove it until the migration is finalized: kafka-acls --bootstrap-server HOST:PORT --remove --force "
    "--group NAME --resource-pattern-type literal (B-MIG-14 has the exact command); if other ACLs are missing then, "
    "restart the active controller",
)
UNWRITABLE_CONFIG: Final = Cause(
    (),
    (),
    (ONLY_KRAFT,),
    "Kafka 3.9 has no place in ZooKeeper for configurations of this kind, and a new active controller does not get "
    "past SYNC_KRAFT_TO_ZK while one exists: it then sends nothing to brokers in ZooKeeper mode",
    "note it and delete it until the migration is finalized: kafka-configs --bootstrap-controller HOST:PORT --alter "
    "--entity-type client-metrics --entity-name NAME --delete-config KEYS (B-MIG-14 has the exact command; through a "
    "broker in ZooKeeper mode the tools fail)",
)
NOT_KNOWN: Final = Cause(
    (),
    (),
    (),
    "no cause is known for differences of this kind",
    "look for `zk migration fault` and `Encountered ZooKeeper error` in the log of the active controller; "
    "find out which side is right before anything is restarted",
)
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
        f"compare password.encoder.secret of all nodes; else {REPEAT}",
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
        ("client-quota",),
        (),
        (ONLY_ZK, DIFFERS),
        "Kafka 3.9 fails when the last quota of a client id, an ip, or a user with a client id is deleted in dual "
        "write (NullPointerException in KRaftMigrationZkWriter.handleClientQuotasDelta): ZooKeeper keeps it",
        WRITE_AGAIN,
        keys=("client-id=", "ip="),
    ),
    Cause(
        ("acl",),
        (),
        (ONLY_KRAFT,),
        "dual write of the ACL failed: most often a request created it together with an ACL that Kafka cannot write "
        "to ZooKeeper, such as one whose resource name contains `/`, which may have been removed since",
        WRITE_AGAIN,
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
    """Return the first line of the table that fits the row; every row has an answer, of kinds yet unknown too."""
    if row.side is ONLY_KRAFT and is_kraft_only(row.kind, row.key):
        return UNWRITABLE_ACL if row.kind == "acl" else UNWRITABLE_CONFIG
    for entry in CAUSES:
        fits = ((entry.kinds, row.kind), (entry.fields, row.field), (entry.classes, row.side))
        if all(not wanted or found in wanted for wanted, found in fits) and (
            not entry.keys or any(part in row.key for part in entry.keys)
        ):
            return entry
    return NOT_KNOWN
