"""Why a row of the comparison may differ, and what to do: a small table, the first line that fits answers.

KRaft accepts objects that Kafka 3.9 cannot write to ZooKeeper: in dual write such an object is missing there, and a new
active controller does not get past SYNC_KRAFT_TO_ZK while it exists.  After finalize it is an object like any other.
Seen on 3.9.2.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from migrate.model.columns import EntityColumns
from migrate.model.difference import Difference, DifferenceClass

ONLY_ZK, ONLY_KRAFT, DIFFERS = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT, DifferenceClass.DIFFERS


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the comparison: of one of these kinds, fields and sides, with one of the `keys` in its key; none: any."""

    kinds: str = ""
    fields: str = ""
    sides: tuple[DifferenceClass, ...] = ()
    keys: tuple[str, ...] = ()

    def have(self, row: Difference) -> bool:
        wanted = ((self.kinds.split(), row.kind), (self.fields.split(), row.field), (self.sides, row.side))
        known = all(not any_of or found in any_of for any_of, found in wanted)
        return known and (not self.keys or any(part in row.key for part in self.keys))


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause, and what to do."""

    rows: Rows
    cause: str
    what_to_do: str


# KRaftMigrationDriver.PollTimeSupplier: ExponentialBackoff(100, 2, 60000, 0.02), whose jitter never exceeds the most
TRIES_AGAIN: Final = (
    "Kafka's driver tries again by itself, after pauses that double up to 60 s, and then syncs once: wait that long, "
    "nothing else is to be done"
)
WRITE_AGAIN: Final = (
    "restart the active controller (after B-MIG-14 is cleared): its successor makes ZooKeeper what KRaft is; "
    "the same change made again writes nothing"
)
REPEAT: Final = (
    "if the znode was written past Kafka and that is wanted, make the change with Kafka's own tools; "
    f"else {WRITE_AGAIN}"
)
UNWRITABLE_ACL: Final = Cause(
    Rows("acl", sides=(ONLY_KRAFT,)),
    "the ACL's resource name cannot be a znode's name (most often it contains `/`): Kafka 3.9 cannot write it to "
    "ZooKeeper, and other ACLs of the same request may be lost in ZooKeeper with it",
    "note it and remove it until the migration is finalized: kafka-acls --bootstrap-server HOST:PORT --remove --force "
    "--group NAME --resource-pattern-type literal (B-MIG-14 has the exact command); if other ACLs are missing then, "
    "restart the active controller",
)
UNWRITABLE_CONFIG: Final = Cause(
    Rows(sides=(ONLY_KRAFT,)),
    "Kafka 3.9 has no place in ZooKeeper for configurations of this kind, and a new active controller does not get "
    "past SYNC_KRAFT_TO_ZK while one exists: it then sends nothing to brokers in ZooKeeper mode",
    "note it and delete it until the migration is finalized: kafka-configs --bootstrap-controller HOST:PORT --alter "
    "--entity-type client-metrics --entity-name NAME --delete-config KEYS (B-MIG-14 has the exact command; through a "
    "broker in ZooKeeper mode the tools fail)",
)
NOT_KNOWN: Final = Cause(
    Rows(),
    "no cause is known for differences of this kind",
    "look for `zk migration fault` and `Encountered ZooKeeper error` in the log of the active controller; "
    "find out which side is right before anything is restarted",
)
LOST_LOGS: Final = "metadata-log"  # the kind of row that stands for what only lost controllers held
CAUSES: Final = (
    Cause(
        Rows(LOST_LOGS),
        "no metadata log is seen of most controllers, and one log alone does not prove what they had committed",
        "mount a disk that is not mounted, open a directory that cannot be read, and start its controller; if the logs "
        "are lost for good, what they alone held is lost, but for what ZooKeeper has by now: give that row up",
    ),
    Cause(
        Rows("applied-config"),
        "the broker could not apply a value that is stored for it, and left out all others of that entity with it",
        "look for 'could not be applied' in its log; correct or delete that value with kafka-configs, and look again",
    ),
    Cause(
        Rows("partition", sides=(ONLY_ZK,)),
        "the topic was written to ZooKeeper past Kafka, or the copy left it out",
        "ask whether the topic is wanted: create it again through a broker, or delete its znodes",
    ),
    Cause(
        Rows("partition topic", sides=(ONLY_KRAFT,)),
        "the znode was deleted past Kafka, or dual write of this topic failed",
        "look for the controller's ZooKeeper errors; a restart of the active controller writes all topics again",
    ),
    Cause(
        Rows("partition topic", fields="topic_id", sides=(DIFFERS,)),
        "the topic was deleted and made again by somebody who wrote to ZooKeeper past Kafka",
        "do not restart a broker: its folders belong to one of the two ids; find out which",
    ),
    Cause(
        Rows("partition", fields="replicas adding removing", sides=(DIFFERS,)),
        "a reassignment was written to ZooKeeper past Kafka",
        "start the reassignment again with kafka-reassign-partitions --bootstrap-server",
    ),
    Cause(
        Rows("partition", fields="isr leader leader_epoch recovery_state", sides=(DIFFERS,)),
        "the state znode was written past Kafka, or dual write of this partition failed",
        "any change of leader writes it again; look for the controller's ZooKeeper errors if that does not help",
    ),
    Cause(
        Rows("broker", fields="mode endpoints rack", sides=(ONLY_KRAFT,)),
        "the broker runs in ZooKeeper mode and its session is gone: it is down, or it restarts",
        "wait for it, or do what `kraft-migrate status` says of it; nothing may be rolled meanwhile",
    ),
    Cause(
        Rows("broker", sides=(ONLY_ZK,)),
        "the broker is registered in ZooKeeper and not with the controllers",
        "restart it with zookeeper.metadata.migration.enable and the quorum's address",
    ),
    Cause(
        Rows("broker", fields="mode", sides=(DIFFERS,)),
        "the broker runs in KRaft mode, and the session of its ZooKeeper life has not ended yet",
        "wait for the end of the session (zookeeper.session.timeout.ms)",
    ),
    Cause(
        Rows("broker"),
        "the broker's listeners or rack were changed since it registered on one side",
        "restart the broker: it registers on both sides again",
    ),
    Cause(
        Rows("scram"),
        "kafka-configs --zookeeper wrote the credential past Kafka",
        "set the password again with kafka-configs --bootstrap-server",
    ),
    Cause(
        Rows("broker-config"),
        "kafka-configs --zookeeper wrote it past Kafka, or the controllers' password.encoder.secret is another one",
        f"compare password.encoder.secret of all nodes; else {REPEAT}",
    ),
    Cause(
        Rows("producer-ids"),
        "the block of producer ids was not written by dual write, or by somebody else too",
        "do not go back to ZooKeeper before it is ahead again: producer ids would be handed out twice",
    ),
    Cause(
        Rows("feature"),
        "features are not dual-written: somebody changed a finalized feature while the migration ran",
        "take the change back with kafka-features downgrade: features may not change before finalize",
    ),
    Cause(
        Rows(
            "client-quota",
            sides=(
                ONLY_ZK,
                DIFFERS,
            ),
            keys=("client-id=", "ip="),
        ),
        "Kafka 3.9 fails when the last quota of a client id, an ip, or a user with a client id is deleted in dual "
        "write (NullPointerException in KRaftMigrationZkWriter.handleClientQuotasDelta): ZooKeeper keeps it",
        WRITE_AGAIN,
    ),
    Cause(
        Rows("acl", sides=(ONLY_KRAFT,)),
        "dual write of the ACL failed: most often a request created it together with an ACL that Kafka cannot write "
        "to ZooKeeper, such as one whose resource name contains `/`, which may have been removed since",
        WRITE_AGAIN,
    ),
    Cause(
        Rows("topic topic-config client-quota acl delegation-token"),
        "the znode was written past Kafka, or dual write of it failed",
        REPEAT,
    ),
)


def cause_of(row: Difference) -> Cause:
    """Return the first line of the table that fits the row; every row has an answer, of kinds yet unknown too."""
    if row.side is ONLY_KRAFT and is_kraft_only(row.kind, row.key):
        return UNWRITABLE_ACL if row.kind == "acl" else UNWRITABLE_CONFIG
    return next((entry for entry in CAUSES if entry.rows.have(row)), NOT_KNOWN)


ACL_OPTIONS: Final = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
WRITTEN_CONFIGS: Final = ("topic-config", "broker-config")
ACL_PARTS: Final = 7  # resource, pattern, name, principal, host, operation, permission
LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class KraftOnly:
    """One such object: `about` names it, `remove` is the command that deletes it."""

    kind: str
    about: str
    remove: str

    @property
    def told(self) -> str:
        return (
            "Kafka 3.9 cannot write it to ZooKeeper, and no new active controller gets past SYNC_KRAFT_TO_ZK while it "
            f"exists; note it, and delete it until the migration is finalized: `{self.remove}`"
        )


def is_kraft_only(kind: str, key: str) -> bool:
    """Can Kafka not write this entity to ZooKeeper?  `kind` and `key` as both views spell them."""
    if kind == "acl":
        parts = key.split("|")
        return len(parts) == ACL_PARTS and not _names_a_znode(unquote(parts[2]))
    return kind not in WRITTEN_CONFIGS and (kind.endswith("-config") or kind.startswith("config-"))


def kraft_only(entities: EntityColumns) -> tuple[KraftOnly, ...]:
    """Return each such object of the metadata once, in the metadata's order; the ACLs of one resource are one."""
    names: dict[tuple[str, str], list[str]] = {}
    for kind, key, name in zip(entities.kind, entities.key, entities.name, strict=True):
        if is_kraft_only(kind, key):
            names.setdefault((kind, key), []).append(name)
    return tuple(dict.fromkeys(_object(kind, key, found) for (kind, key), found in names.items()))


def summary(objects: tuple[KraftOnly, ...]) -> str:
    more = f" (and {len(objects) - LISTED} more)" if len(objects) > LISTED else ""
    return "; ".join(f"{entry.about}: {entry.told}" for entry in objects[:LISTED]) + more


def _names_a_znode(name: str) -> bool:
    """Can an ACL's resource name be a znode's name?  As ZooKeeper's `PathUtils.validatePath` decides, in UTF-16."""
    return name not in ("", ".", "..") and all(_allowed(ord(letter)) for letter in name)


def _allowed(code: int) -> bool:
    if code == ord("/") or code <= 0x1F or 0x7F <= code <= 0x9F:
        return False
    return not (0xD800 <= code <= 0xF8FF or code >= 0xFFF0)  # a letter above U+FFFF is two surrogates to Java


def _object(kind: str, key: str, names: list[str]) -> KraftOnly:
    if kind == "acl":
        resource, pattern, name = key.split("|")[:3]
        option = f"{ACL_OPTIONS.get(resource, '--topic')} {_quoted(unquote(name))}"
        tool = f"kafka-acls --bootstrap-server HOST:PORT --remove --force {option}"
        about = f"ACL of {resource} {unquote(name)} ({pattern})"
        return KraftOnly(kind, about, f"{tool} --resource-pattern-type {pattern.lower()}")
    # a broker in ZooKeeper mode refuses to describe such configurations, which the tools do first: so the controllers
    entity = {"client-metrics-config": "client-metrics", "group-config": "groups"}.get(kind, kind)
    tool = f"kafka-configs --bootstrap-controller HOST:PORT --alter --entity-type {entity}"
    about = f"{kind} {key}"
    return KraftOnly(kind, about, f"{tool} --entity-name {_quoted(key)} --delete-config {','.join(names)}")


def _quoted(name: str) -> str:
    """Quote a name for a shell; what cannot be printed in bash's own spelling."""
    if name.isprintable():
        return shlex.quote(name)
    letters = (letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in name)
    return "$'" + "".join({"'": "\\'", "\\": "\\\\"}.get(letter, letter) for letter in letters) + "'"
