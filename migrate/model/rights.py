"""Which rights each command needs: the one table; and what a run may do on a host, as asked there.

`doctor --rights` holds an identity against it, errors name rights by it, and docs/rights.md is made of it.
Source: the authorizer's calls of `KafkaApis` and `ControllerApis`; ZooKeeper's `PrepRequestProcessor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown


class Side(StrEnum):
    ZOOKEEPER = "ZooKeeper"
    BROKERS = "brokers"
    CONTROLLERS = "controllers"


@dataclass(frozen=True, slots=True)
class Right:
    """One right: `operation` on `resource`; what asks for it; when that is, where it is not always."""

    side: Side
    operation: str
    resource: str
    asked_by: str
    commands: tuple[str, ...]
    when: str = ""


LOOKS: Final = (
    "assess",
    "plan",
    "status",
    "diff",
    "fleet assess",
    "fleet diff",
    "apply",
    "rollback plan",
    "rollback apply",
)
DISKS: Final = ("directories show", "directories inspect", "directories verify")
METADATA: Final = ("metadata dump",)
ACTS: Final = ("apply", "rollback apply", "directories assign", "directories rescue")
LOCKS: Final = (*ACTS, "backup restore")
CLUSTER, TOPICS = "Cluster", "Topic:*"
TREE, SENSITIVE = "/", ("/config/brokers", "/config/users", "/delegation_token/tokens")  # ZkData.sensitivePath

WHERE_DYNAMIC: Final = "where brokers have dynamic configurations; and with a ProtocolPlaybook"

TABLE: Final[tuple[Right, ...]] = (
    Right(
        Side.ZOOKEEPER,
        "READ",
        TREE,
        "the ZooKeeper view: every znode that Kafka keeps",
        (*LOOKS, *DISKS, "backup create", "backup restore", "bundle create"),
    ),
    *(
        Right(
            Side.ZOOKEEPER,
            "READ",
            path,
            "the ZooKeeper view",
            (*LOOKS, "backup create", "backup restore", "bundle create"),
            "with zookeeper.set.acl nobody but the brokers' identity has it",
        )
        for path in SENSITIVE
    ),
    Right(
        Side.ZOOKEEPER,
        "CREATE, DELETE",
        "the parent of the playbook's lock path",
        "the run's lock; the parent is made too, where it is missing",
        LOCKS,
        "while ZooKeeper is there; DELETE for `unlock`, too",
    ),
    Right(
        Side.ZOOKEEPER,
        "WRITE",
        "the znode LOCK-fence next to the lock",
        "shuts out a run that lost the lock",
        (*LOCKS, "unlock"),
    ),
    Right(
        Side.ZOOKEEPER,
        "DELETE",
        "/",
        "deletes /controller and /migration (ZooKeeper asks it of their parent)",
        ("rollback apply",),
        "rollback from hybrid or later; /migration from controllers on",
    ),
    Right(
        Side.ZOOKEEPER,
        "WRITE",
        "/controller_epoch",
        "raises the epoch above the quorum's",
        ("rollback apply",),
        "rollback from hybrid or later, where it is behind",
    ),
    Right(
        Side.ZOOKEEPER,
        "WRITE",
        "/brokers/topics/*/partitions/*/state",
        "raises versions that are behind the partition epochs that brokers know, by the same bytes",
        ("rollback apply",),
        "rollback from hybrid or later, where topics were made in dual write",
    ),
    Right(Side.ZOOKEEPER, "CREATE, WRITE", "what is put back", "puts znodes of a backup back", ("backup restore",)),
    Right(Side.BROKERS, "DESCRIBE", TOPICS, "Metadata: leaders and ISRs of every partition", (*LOOKS, *ACTS)),
    Right(Side.BROKERS, "DESCRIBE", CLUSTER, "DescribeLogDirs", (*LOOKS, *DISKS, *ACTS)),
    Right(
        Side.BROKERS,
        "DESCRIBE_CONFIGS",
        CLUSTER,
        "DescribeConfigs: the inter.broker.protocol.version, or the dynamic configuration, that the broker runs with",
        ("assess", "plan", "apply", "rollback plan", "rollback apply", "diff"),
        WHERE_DYNAMIC,
    ),
    Right(Side.CONTROLLERS, "DESCRIBE", CLUSTER, "DescribeQuorum", (*LOOKS, *DISKS, *METADATA, *ACTS)),
    Right(
        Side.CONTROLLERS,
        "CLUSTER_ACTION",
        CLUSTER,
        "Fetch, FetchSnapshot: the metadata log",
        (*LOOKS, *DISKS, *METADATA, *ACTS),
        "before the copy a controller grants it to super users alone",
    ),
    Right(
        Side.CONTROLLERS,
        "CLUSTER_ACTION",
        CLUSTER,
        "AssignReplicasToDirs",
        ("apply", "directories assign", "directories rescue"),
        "policy `drive`, and rescues",
    ),
    Right(
        Side.CONTROLLERS,
        "ALTER",
        CLUSTER,
        "ElectLeaders",
        ("directories rescue",),
        "where a leader is missing after a directory was put right; the rollback's DescribeCluster uses it where there",
    ),
)

# request of Kafka's protocol -> the right that it needs, for the error that says that it is missing
REQUESTS: Final = {
    "Metadata": "DESCRIBE on the topics",
    "DescribeLogDirs": "DESCRIBE on Cluster",
    "DescribeConfigs": "DESCRIBE_CONFIGS on Cluster",
    "DescribeQuorum": "DESCRIBE on Cluster",
    "Fetch": "CLUSTER_ACTION on Cluster",
    "FetchSnapshot": "CLUSTER_ACTION on Cluster",
    "AssignReplicasToDirs": "CLUSTER_ACTION on Cluster",
    "ElectLeaders": "ALTER on Cluster",
    "DescribeCluster": "ALTER on Cluster (of a controller)",
}

OPERATIONS: Final = {  # AclOperation.code
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}
NOT_TOLD: Final = -2147483648  # the principal has no DESCRIBE: Kafka tells no operations


def operations(bits: int) -> frozenset[str] | None:
    """An answer's authorizedOperations (KIP-430) as names; None where Kafka did not tell them."""
    if bits == NOT_TOLD:
        return None
    return frozenset(name for code, name in OPERATIONS.items() if bits >> code & 1)


def needed_to_look(side: Side, resource: str) -> frozenset[str]:
    """Those without which no command can look; the others are for what some playbooks and rescues ask."""
    rows = [row for row in TABLE if row.side is side and row.resource == resource]
    return frozenset(row.operation for row in rows if LOOKS[0] in row.commands and row.when != WHERE_DYNAMIC)


@dataclass(frozen=True, slots=True)
class Refused:
    """One reason why a host would refuse a run's commands, and what to do about it."""

    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class HostRights:
    """Of one node, by its host's program: nothing is refused where it takes every command of a run."""

    host: str
    refused: tuple[Refused, ...] = ()


def denied(rights: Mapping[NodeId, HostRights | Unknown]) -> Iterator[tuple[str, str]]:
    """(what, advice) of all that hosts refuse, by node; no answer is no refusal."""
    for node, found in sorted(rights.items()):
        if isinstance(found, HostRights):
            for entry in found.refused:
                yield f"node {int(node)} on {found.host}: {entry.what}", entry.advice
