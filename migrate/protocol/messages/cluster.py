"""ApiVersions, Metadata, DescribeCluster: who is there, and what it can do."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array, field, message, struct
from migrate.protocol.messages.api import Api

NO_OPERATIONS: Final = -2147483648

API_VERSIONS: Final = Api(
    "ApiVersions",
    message(
        "ApiVersionsRequest",
        18,
        "0-4",
        "3+",
        field("clientSoftwareName", STRING, "3+", ignorable=True),
        field("clientSoftwareVersion", STRING, "3+", ignorable=True),
    ),
    message(
        "ApiVersionsResponse",
        18,
        "0-4",
        "3+",
        field("errorCode", INT16),
        field(
            "apiKeys",
            Array(struct("ApiVersion", field("apiKey", INT16), field("minVersion", INT16), field("maxVersion", INT16))),
        ),
        field("throttleTimeMs", INT32, "1+", ignorable=True),
        field(
            "supportedFeatures",
            Array(
                struct(
                    "SupportedFeatureKey",
                    field("name", STRING, "3+"),
                    field("minVersion", INT16, "3+"),
                    field("maxVersion", INT16, "3+"),
                )
            ),
            "3+",
            tag=0,
            ignorable=True,
        ),
        field("finalizedFeaturesEpoch", INT64, "3+", tag=1, default=-1, ignorable=True),
        field(
            "finalizedFeatures",
            Array(
                struct(
                    "FinalizedFeatureKey",
                    field("name", STRING, "3+"),
                    field("maxVersionLevel", INT16, "3+"),
                    field("minVersionLevel", INT16, "3+"),
                )
            ),
            "3+",
            tag=2,
            ignorable=True,
        ),
        field("zkMigrationReady", BOOL, "3+", tag=3, default=False, ignorable=True),
    ),
)

METADATA: Final = Api(
    "Metadata",
    message(
        "MetadataRequest",
        3,
        "1-12",
        "9+",
        field(
            "topics",
            Array(
                struct(
                    "MetadataRequestTopic",
                    field("topicId", UUID, "10+", ignorable=True),
                    field("name", STRING, nullable="10+"),
                )
            ),
            nullable="1+",
        ),
        field("allowAutoTopicCreation", BOOL, "4+", default=True),
        field("includeClusterAuthorizedOperations", BOOL, "8-10"),
        field("includeTopicAuthorizedOperations", BOOL, "8+"),
    ),
    message(
        "MetadataResponse",
        3,
        "1-12",
        "9+",
        field("throttleTimeMs", INT32, "3+", ignorable=True),
        field(
            "brokers",
            Array(
                struct(
                    "MetadataResponseBroker",
                    field("nodeId", INT32),
                    field("host", STRING),
                    field("port", INT32),
                    field("rack", STRING, "1+", nullable="1+", default=None, ignorable=True),
                )
            ),
        ),
        field("clusterId", STRING, "2+", nullable="2+", default=None, ignorable=True),
        field("controllerId", INT32, "1+", default=-1, ignorable=True),
        field(
            "topics",
            Array(
                struct(
                    "MetadataResponseTopic",
                    field("errorCode", INT16),
                    field("name", STRING, nullable="12+"),
                    field("topicId", UUID, "10+", ignorable=True),
                    field("isInternal", BOOL, "1+", default=False, ignorable=True),
                    field(
                        "partitions",
                        Array(
                            struct(
                                "MetadataResponsePartition",
                                field("errorCode", INT16),
                                field("partitionIndex", INT32),
                                field("leaderId", INT32),
                                field("leaderEpoch", INT32, "7+", default=-1, ignorable=True),
                                field("replicaNodes", Array(INT32)),
                                field("isrNodes", Array(INT32)),
                                field("offlineReplicas", Array(INT32), "5+", ignorable=True),
                            )
                        ),
                    ),
                    field("topicAuthorizedOperations", INT32, "8+", default=NO_OPERATIONS),
                )
            ),
        ),
        field("clusterAuthorizedOperations", INT32, "8-10", default=NO_OPERATIONS),
    ),
)

DESCRIBE_CLUSTER: Final = Api(
    "DescribeCluster",
    message(
        "DescribeClusterRequest",
        60,
        "0-1",
        "0+",
        field("includeClusterAuthorizedOperations", BOOL),
        field("endpointType", INT8, "1+", default=1),
    ),
    message(
        "DescribeClusterResponse",
        60,
        "0-1",
        "0+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field("errorMessage", STRING, nullable="0+", default=None),
        field("endpointType", INT8, "1+", default=1),
        field("clusterId", STRING),
        field("controllerId", INT32, default=-1),
        field(
            "brokers",
            Array(
                struct(
                    "DescribeClusterBroker",
                    field("brokerId", INT32),
                    field("host", STRING),
                    field("port", INT32),
                    field("rack", STRING, nullable="0+", default=None),
                )
            ),
        ),
        field("clusterAuthorizedOperations", INT32, default=NO_OPERATIONS),
    ),
)
