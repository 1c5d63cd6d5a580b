"""What Kafka lets our principal do: asked of brokers and controllers by requests that change nothing (KIP-430)."""

from __future__ import annotations

from dataclasses import dataclass

from migrate.errors import AccessRefused, KafkaRefused, NotLeader
from migrate.kafka.codes import Code
from migrate.kafka.connection import Connection
from migrate.kafka.controller import describe_quorum
from migrate.model.rights import operations
from migrate.protocol.messages import DESCRIBE_CLUSTER, METADATA


@dataclass(frozen=True, slots=True)
class TopicRights:
    """Of all topics: how many the principal may describe, and operation -> how many topics it is allowed on."""

    described: int
    allowed: dict[str, int]


@dataclass(frozen=True, slots=True)
class ControllerRights:
    """DESCRIBE by DescribeQuorum; `operations` of Cluster by DescribeCluster, which needs ALTER: None without that."""

    describes: bool
    operations: frozenset[str] | None


def cluster_rights(connection: Connection) -> frozenset[str]:
    """The operations on Cluster that a broker allows us; none are told without DESCRIBE, so an empty set lacks it."""
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 1}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return operations(found["clusterAuthorizedOperations"]) or frozenset()


def topic_rights(connection: Connection) -> TopicRights:
    """What a broker allows us on the topics that it lets us describe; it leaves the others out."""
    asked = {"topics": None, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": True}
    allowed: dict[str, int] = {}
    count = 0
    for topic in connection.call(METADATA, asked)["topics"]:
        if topic["errorCode"] == Code.TOPIC_AUTHORIZATION_FAILED:
            continue
        count += 1
        for name in operations(topic["topicAuthorizedOperations"]) or ():
            allowed[name] = allowed.get(name, 0) + 1
    return TopicRights(count, allowed)


def controller_rights(connection: Connection) -> ControllerRights:
    """What a controller allows us; a follower answers as the leader does about rights."""
    describes = True
    try:
        describe_quorum(connection)
    except AccessRefused:
        describes = False
    except (NotLeader, KafkaRefused):
        pass
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 2}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    if found["errorCode"] == Code.CLUSTER_AUTHORIZATION_FAILED:
        return ControllerRights(describes, None)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return ControllerRights(describes, operations(found["clusterAuthorizedOperations"]))
