"""DescribeQuorum: leader, high watermark, voters.  Trap: a follower answers with leaderId 0 and a partition error."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import INT16, INT32, INT64, STRING, UINT16, UUID, Array, field, message, struct
from migrate.protocol.messages.api import Api

_REPLICA_STATE: Final = struct(
    "ReplicaState",
    field("replicaId", INT32),
    field("replicaDirectoryId", UUID, "2+"),
    field("logEndOffset", INT64),
    field("lastFetchTimestamp", INT64, "1+", default=-1, ignorable=True),
    field("lastCaughtUpTimestamp", INT64, "1+", default=-1, ignorable=True),
)

DESCRIBE_QUORUM: Final = Api(
    "DescribeQuorum",
    message(
        "DescribeQuorumRequest",
        55,
        "0-2",
        "0+",
        field(
            "topics",
            Array(
                struct(
                    "TopicData",
                    field("topicName", STRING),
                    field("partitions", Array(struct("PartitionData", field("partitionIndex", INT32)))),
                )
            ),
        ),
    ),
    message(
        "DescribeQuorumResponse",
        55,
        "0-2",
        "0+",
        field("errorCode", INT16),
        field("errorMessage", STRING, "2+", nullable="2+", ignorable=True),
        field(
            "topics",
            Array(
                struct(
                    "TopicData",
                    field("topicName", STRING),
                    field(
                        "partitions",
                        Array(
                            struct(
                                "PartitionData",
                                field("partitionIndex", INT32),
                                field("errorCode", INT16),
                                field("errorMessage", STRING, "2+", nullable="2+", ignorable=True),
                                field("leaderId", INT32),
                                field("leaderEpoch", INT32),
                                field("highWatermark", INT64),
                                field("currentVoters", Array(_REPLICA_STATE)),
                                field("observers", Array(_REPLICA_STATE)),
                            )
                        ),
                    ),
                )
            ),
        ),
        field(
            "nodes",
            Array(
                struct(
                    "Node",
                    field("nodeId", INT32, "2+"),
                    field(
                        "listeners",
                        Array(
                            struct(
                                "Listener",
                                field("name", STRING, "2+"),
                                field("host", STRING, "2+"),
                                field("port", UINT16, "2+"),
                            )
                        ),
                        "2+",
                    ),
                )
            ),
            "2+",
        ),
    ),
)
