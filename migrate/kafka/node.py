"""What any node says of itself: ApiVersions needs no right, and tells the flag it was started with."""

from __future__ import annotations

from migrate.kafka.connection import Connection
from migrate.model.views import NodeAnswer
from migrate.protocol.messages import DESCRIBE_CLUSTER


def answer(connection: Connection) -> NodeAnswer:
    """The node's answer, which came when the connection was opened.

    Without `zookeeper.metadata.migration.enable=true` the tag is absent, which is False (KIP-866).
    """
    return NodeAnswer(
        migration_flag=connection.about.get("zkMigrationReady", False),
        finalized_features={
            entry["name"]: entry["maxVersionLevel"] for entry in connection.about.get("finalizedFeatures", [])
        },
        apis={entry["apiKey"]: entry["maxVersion"] for entry in connection.about["apiKeys"]},
    )


def cluster_id(connection: Connection, *, controller: bool) -> str:
    """The cluster's id by DescribeCluster (on a controller this needs ALTER on Cluster).

    Raises:
        AccessRefused, KafkaRefused, ConnectionClosed, AnswerTimeout, AnswerBroken.
    """
    found = connection.call(DESCRIBE_CLUSTER, {"endpointType": 2 if controller else 1})
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    text: str = found["clusterId"]
    return text
