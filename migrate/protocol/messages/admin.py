"""ElectLeaders, UpdateFeatures and client quotas: administration."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, FLOAT64, INT8, INT16, INT32, STRING, Array, field, message, struct
from migrate.protocol.messages.api import Api

_ENTITY: Final = struct("EntityData", field("entityType", STRING), field("entityName", STRING, nullable="0+"))

ELECT_LEADERS: Final = Api(
    "ElectLeaders",
    message(
        "ElectLeadersRequest",
        43,
        "0-2",
        "2+",
        field("electionType", INT8, "1+"),
        field(
            "topicPartitions",
            Array(struct("TopicPartitions", field("topic", STRING), field("partitions", Array(INT32)))),
            nullable="0+",
        ),
        field("timeoutMs", INT32, default=60000),
    ),
    message(
        "ElectLeadersResponse",
        43,
        "0-2",
        "2+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16, "1+"),
        field(
            "replicaElectionResults",
            Array(
                struct(
                    "ReplicaElectionResult",
                    field("topic", STRING),
                    field(
                        "partitionResult",
                        Array(
                            struct(
                                "PartitionResult",
                                field("partitionId", INT32),
                                field("errorCode", INT16),
                                field("errorMessage", STRING, nullable="0+"),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)

UPDATE_FEATURES: Final = Api(
    "UpdateFeatures",
    message(
        "UpdateFeaturesRequest",
        57,
        "0-1",
        "0+",
        field("timeoutMs", INT32, default=60000),
        field(
            "featureUpdates",
            Array(
                struct(
                    "FeatureUpdateKey",
                    field("feature", STRING),
                    field("maxVersionLevel", INT16),
                    field("allowDowngrade", BOOL, "0"),
                    field("upgradeType", INT8, "1+", default=1),
                )
            ),
        ),
        field("validateOnly", BOOL, "1+", default=False),
    ),
    message(
        "UpdateFeaturesResponse",
        57,
        "0-1",
        "0+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field("errorMessage", STRING, nullable="0+"),
        field(
            "results",
            Array(
                struct(
                    "UpdatableFeatureResult",
                    field("feature", STRING),
                    field("errorCode", INT16),
                    field("errorMessage", STRING, nullable="0+"),
                )
            ),
        ),
    ),
)

ALTER_CLIENT_QUOTAS: Final = Api(
    "AlterClientQuotas",
    message(
        "AlterClientQuotasRequest",
        49,
        "0-1",
        "1+",
        field(
            "entries",
            Array(
                struct(
                    "EntryData",
                    field("entity", Array(_ENTITY)),
                    field(
                        "ops",
                        Array(struct("OpData", field("key", STRING), field("value", FLOAT64), field("remove", BOOL))),
                    ),
                )
            ),
        ),
        field("validateOnly", BOOL),
    ),
    message(
        "AlterClientQuotasResponse",
        49,
        "0-1",
        "1+",
        field("throttleTimeMs", INT32),
        field(
            "entries",
            Array(
                struct(
                    "EntryData",
                    field("errorCode", INT16),
                    field("errorMessage", STRING, nullable="0+"),
                    field("entity", Array(_ENTITY)),
                )
            ),
        ),
    ),
)

DESCRIBE_CLIENT_QUOTAS: Final = Api(
    "DescribeClientQuotas",
    message(
        "DescribeClientQuotasRequest",
        48,
        "0-1",
        "1+",
        field(
            "components",
            Array(
                struct(
                    "ComponentData",
                    field("entityType", STRING),
                    field("matchType", INT8),
                    field("match", STRING, nullable="0+"),
                )
            ),
        ),
        field("strict", BOOL),
    ),
    message(
        "DescribeClientQuotasResponse",
        48,
        "0-1",
        "1+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field("errorMessage", STRING, nullable="0+"),
        field(
            "entries",
            Array(
                struct(
                    "EntryData",
                    field("entity", Array(_ENTITY)),
                    field("values", Array(struct("ValueData", field("key", STRING), field("value", FLOAT64)))),
                )
            ),
            nullable="0+",
        ),
    ),
)
