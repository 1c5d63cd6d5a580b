"""DescribeLogDirs (paths, never ids) and AssignReplicasToDirs (ids, never names): KIP-113, KIP-827, KIP-858."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, INT16, INT32, INT64, STRING, UUID, Array, field, message, struct
from migrate.protocol.messages.api import Api

_PARTITION_RESULT: Final = struct("PartitionData", field("partitionIndex", INT32), field("errorCode", INT16))

DESCRIBE_LOG_DIRS: Final = Api(
    "DescribeLogDirs",
    message(
        "DescribeLogDirsRequest",
        35,
        "1-4",
        "2+",
        field(
            "topics",
            Array(struct("DescribableLogDirTopic", field("topic", STRING), field("partitions", Array(INT32)))),
            nullable="0+",
        ),
    ),
    message(
        "DescribeLogDirsResponse",
        35,
        "1-4",
        "2+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16, "3+", ignorable=True),
        field(
            "results",
            Array(
                struct(
                    "DescribeLogDirsResult",
                    field("errorCode", INT16),
                    field("logDir", STRING),
                    field(
                        "topics",
                        Array(
                            struct(
                                "DescribeLogDirsTopic",
                                field("name", STRING),
                                field(
                                    "partitions",
                                    Array(
                                        struct(
                                            "DescribeLogDirsPartition",
                                            field("partitionIndex", INT32),
                                            field("partitionSize", INT64),
                                            field("offsetLag", INT64),
                                            field("isFutureKey", BOOL),
                                        )
                                    ),
                                ),
                            )
                        ),
                    ),
                    field("totalBytes", INT64, "4+", default=-1, ignorable=True),
                    field("usableBytes", INT64, "4+", default=-1, ignorable=True),
                )
            ),
        ),
    ),
)

ASSIGN_REPLICAS_TO_DIRS: Final = Api(
    "AssignReplicasToDirs",
    message(
        "AssignReplicasToDirsRequest",
        73,
        "0",
        "0+",
        field("brokerId", INT32),
        field("brokerEpoch", INT64, default=-1),
        field(
            "directories",
            Array(
                struct(
                    "DirectoryData",
                    field("id", UUID),
                    field(
                        "topics",
                        Array(
                            struct(
                                "TopicData",
                                field("topicId", UUID),
                                field("partitions", Array(struct("PartitionData", field("partitionIndex", INT32)))),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
    message(
        "AssignReplicasToDirsResponse",
        73,
        "0",
        "0+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field(
            "directories",
            Array(
                struct(
                    "DirectoryData",
                    field("id", UUID),
                    field(
                        "topics",
                        Array(
                            struct(
                                "TopicData",
                                field("topicId", UUID),
                                field(
                                    "partitions",
                                    Array(
                                        struct(
                                            "PartitionData", field("partitionIndex", INT32), field("errorCode", INT16)
                                        )
                                    ),
                                ),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)
