"""What is told of single znodes and of ZooKeeper's servers: malformed parts, ACLs, sessions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ZnodePart(StrEnum):
    """What of Kafka's a malformed znode, or a part of one, would have told."""

    CLUSTER_ID = "the cluster's id"
    TAKEOVER = "who controls the cluster"
    BROKER = "a broker's registration"
    TOPIC = "a topic"
    STATE = "a partition's state"
    CONFIG = "a configuration"
    BROKER_CONFIG = "a broker's configuration"
    QUOTA = "quotas"
    SCRAM = "SCRAM credentials"
    ACL = "ACLs"
    TOKEN = "a delegation token"  # noqa: S105 - no password
    PRODUCER_IDS = "the next block of producer ids"
    FEATURE = "finalized features"
    PENDING = "administrative work under way"


@dataclass(frozen=True, slots=True)
class ZnodeAcl:
    """One entry of a znode's ACL; `permissions` are ZooKeeper's bits, 31 is all of them."""

    permissions: int
    scheme: str
    identity: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A znode that is there and is not what Kafka writes: what it would have told is unknown, never absent."""

    path: str
    problem: str
    part: ZnodePart


@dataclass(frozen=True, slots=True)
class ZookeeperSession:
    """A session that a ZooKeeper server has: where it comes from, and its id."""

    host: str
    session: int
