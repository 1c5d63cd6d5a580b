"""Kafka's paths in ZooKeeper (`kafka/zk/ZkData.scala`, 3.9), relative to the chroot; and what reading one answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from migrate.model.secrets import Digester

CLUSTER_ID: Final = "/cluster/id"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
MIGRATION: Final = "/migration"
FEATURE: Final = "/feature"
PRODUCER_IDS: Final = "/latest_producer_id_block"
REASSIGNMENTS: Final = "/admin/reassign_partitions"
ELECTIONS: Final = "/admin/preferred_replica_election"
DELETIONS: Final = "/admin/delete_topics"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
CONFIG: Final = "/config"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
CLIENT_CONFIGS: Final = "/config/clients"
USER_CONFIGS: Final = "/config/users"
IP_CONFIGS: Final = "/config/ips"
CONFIG_CHANGES: Final = "/config/changes"
LITERAL_ACLS: Final = "/kafka-acl"
EXTENDED_ACLS: Final = "/kafka-acl-extended"
PREFIXED_ACLS: Final = "/kafka-acl-extended/prefixed"
TOKENS: Final = "/delegation_token/tokens"

SINGLE_ZNODES: Final = (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    MIGRATION,
    FEATURE,
    PRODUCER_IDS,
    REASSIGNMENTS,
    ELECTIONS,
)
# directories whose children carry data, with no further level
FLAT_DIRECTORIES: Final = (BROKER_IDS, TOPICS, TOPIC_CONFIGS, BROKER_CONFIGS, CLIENT_CONFIGS, IP_CONFIGS, TOKENS)
# directories of which the children's names say all
NAME_DIRECTORIES: Final = (DELETIONS, LOG_DIR_EVENTS, CONFIG, EXTENDED_ACLS)
# what a KRaft controller creates, writes or deletes in dual write (`KafkaZkClient`, `Zk*MigrationClient`)
CONTROLLERS_WRITE: Final = (
    CONTROLLER,
    CONTROLLER_EPOCH,
    MIGRATION,
    TOPICS,
    CONFIG,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    CLIENT_CONFIGS,
    USER_CONFIGS,
    IP_CONFIGS,
    PRODUCER_IDS,
    LITERAL_ACLS,
    TOKENS,
)
ACL_ROOTS: Final = (LITERAL_ACLS, PREFIXED_ACLS)
# where everything is looked for: what may not be read here may hold anything
PLACES: Final = (*SINGLE_ZNODES, *FLAT_DIRECTORIES, *NAME_DIRECTORIES, *ACL_ROOTS, USER_CONFIGS)
# every ZooKeeper-mode cluster has them (`KafkaZkClient.createTopLevelPaths`)
CORE: Final = (CLUSTER_ID, BROKER_IDS, TOPICS)
TOP_LEVEL: Final = frozenset(  # below the chroot: what Kafka of any release, and this tool, create there
    {
        *("admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch", "delegation_token"),
        *("feature", "isr_change_notification", "kafka-acl", "kafka-acl-changes", "kafka-acl-extended"),
        *("kafka-acl-extended-changes", "kraft-migrate", "latest_producer_id_block", "log_dir_event_notification"),
        "migration",
    }
)

SECOND_LEVEL: Final = {  # below some of these, where other programs write as well
    "admin": frozenset({"delete_topics", "preferred_replica_election", "reassign_partitions"}),
    "brokers": frozenset({"ids", "seqid", "topics"}),
    "config": frozenset({"brokers", "changes", "clients", "ips", "topics", "users"}),
    "consumers": frozenset[str](),  # clients of before Kafka 0.9, and none of Kafka's own
}


def child(directory: str, name: str) -> str:
    return f"{directory}/{name}"


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def partition_states(topic: str, partitions: Iterable[int]) -> list[str]:
    base = f"{TOPICS}/{topic}/partitions"
    return [f"{base}/{partition}/state" for partition in partitions]


def shown(path: str, digester: Digester) -> str:
    """The path as it may be shown: a delegation token's id, its znode's name, is half of a credential.

    Its first letters stay, so that who may read the znodes can find it.
    """
    directory, _, name = path.rpartition("/")
    return f"{directory}/{name[:4]}...{digester.digest(name)[5:13]}" if directory == TOKENS else path


def user_clients(user: str) -> str:
    return f"{USER_CONFIGS}/{user}/clients"


class Znode(NamedTuple):
    """One znode's data and the relevant parts of its stat.  `data` None is null data."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int
    children: int = 0


class Absent(Enum):
    """Why there is no value: MISSING (known not to exist) is never the same as the others (unknown).

    DENIED: we may not see it; MALFORMED: it is there, and is not what Kafka writes (no reader of trees answers this).
    """

    MISSING = "missing"
    DENIED = "denied"
    MALFORMED = "malformed"


class TreeReader(Protocol):
    """Reads znodes by path relative to the chroot: a live session, or a backup file."""

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """Data and stat of each path, in order."""

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""

    def zxid(self) -> int: ...


class AclReader(Protocol):
    """Reads the ACLs of znodes by path relative to the chroot."""

    def acls(self, paths: Sequence[str]) -> Sequence[Sequence[tuple[int, str, str]] | Absent]:
        """(permissions, scheme, id) of each path, in order."""
