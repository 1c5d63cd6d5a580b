"""What Kafka authorizes this tool's principal to do: by requests that change nothing (KIP-430)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.errors import AccessRefused, NotLeader
from migrate.kafka.codes import Code
from migrate.kafka.connection import Connection
from migrate.kafka.controller import describe_quorum
from migrate.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from migrate.model.rights import operations
from migrate.protocol.loader import Values
from migrate.protocol.messages import DESCRIBE_CLUSTER, FETCH, METADATA

# a controller asks for the right first: whatever of these it then says, it was there
LET_IN: Final = (
    Code.NONE,
    Code.OFFSET_OUT_OF_RANGE,
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.FENCED_LEADER_EPOCH,
    Code.UNKNOWN_LEADER_EPOCH,
)
FROM_THE_BEGINNING: Final[Values] = {
    "maxWaitMs": 0,
    "minBytes": 0,
    "maxBytes": 1,
    "topics": [
        {
            "topic": METADATA_TOPIC,
            "topicId": str(METADATA_TOPIC_ID),
            "partitions": [
                {
                    "partition": 0,
                    "currentLeaderEpoch": 0,
                    "fetchOffset": 0,
                    "lastFetchedEpoch": 0,
                    "logStartOffset": -1,
                    "partitionMaxBytes": 1,
                }
            ],
        }
    ],
    "forgottenTopicsData": [],
}


@dataclass(frozen=True, slots=True)
class TopicRights:
    """Of all topics: how many the principal may describe, and operation -> how many topics it is allowed on."""

    described: int
    allowed: dict[str, int]


@dataclass(frozen=True, slots=True)
class ControllerRights:
    """DESCRIBE by DescribeQuorum, CLUSTER_ACTION by Fetch (`reads`).

    `operations` of Cluster come from DescribeCluster, which needs ALTER: None without that.
    """

    describes: bool
    reads: bool
    operations: frozenset[str] | None


def cluster_rights(connection: Connection) -> frozenset[str]:
    """The operations on Cluster that a broker allows; an empty set means that DESCRIBE is missing, too."""
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 1}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return operations(found["clusterAuthorizedOperations"]) or frozenset()


def topic_rights(connection: Connection) -> TopicRights:
    """What a broker allows on the topics that may be described; it leaves the others out."""
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
    """What a controller allows; followers and the leader answer alike."""
    describes = True
    try:
        describe_quorum(connection)
    except AccessRefused:
        describes = False
    except NotLeader:  # said to who may ask alone
        pass
    reads = _reads(connection)
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 2}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    if found["errorCode"] == Code.CLUSTER_AUTHORIZATION_FAILED:
        return ControllerRights(describes, reads, None)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return ControllerRights(describes, reads, operations(found["clusterAuthorizedOperations"]))


def _reads(connection: Connection) -> bool:
    """May the metadata log be read?  Fetched as an observer, from its beginning: little is sent, nothing is changed.

    Raises:
        KafkaRefused: an answer that says neither.
    """
    answer = connection.call(FETCH, FROM_THE_BEGINNING)
    parts = [entry for topic in answer["responses"] for entry in topic["partitions"]]
    codes = [answer["errorCode"], *(entry["errorCode"] for entry in parts)]
    if Code.CLUSTER_AUTHORIZATION_FAILED in codes:
        return False
    for code in codes:
        if code not in LET_IN:
            connection.refuse(FETCH, code)
    return True
