"""Fetch and FetchSnapshot, as far as one reads the metadata log with them (versions with raft's fields)."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    field,
    message,
    struct,
)
from migrate.protocol.messages.api import Api

_SNAPSHOT_ID: Final = struct("SnapshotId", field("endOffset", INT64), field("epoch", INT32))
_TOPIC: Final = (field("topic", STRING, "0-12", ignorable=True), field("topicId", UUID, "13+", ignorable=True))


def _snapshots(*of_partition: Field) -> Field:
    """`topics` of FetchSnapshot, with these fields a partition."""
    partitions = Array(struct("PartitionSnapshot", *of_partition))
    return field("topics", Array(struct("TopicSnapshot", field("name", STRING), field("partitions", partitions))))


FETCH: Final = Api(
    "Fetch",
    message(
        "FetchRequest",
        1,
        "12-17",
        "12+",
        field("clusterId", STRING, "12+", nullable="12+", tag=0, default=None, ignorable=True),
        field("replicaId", INT32, "0-14", default=-1),
        field(
            "replicaState",
            struct(
                "ReplicaState",
                field("replicaId", INT32, "15+", default=-1),
                field("replicaEpoch", INT64, "15+", default=-1),
            ),
            "15+",
            tag=1,
        ),
        field("maxWaitMs", INT32),
        field("minBytes", INT32),
        field("maxBytes", INT32, "3+", default=0x7FFFFFFF, ignorable=True),
        field("isolationLevel", INT8, "4+", default=0, ignorable=True),
        field("sessionId", INT32, "7+", default=0, ignorable=True),
        field("sessionEpoch", INT32, "7+", default=-1, ignorable=True),
        field(
            "topics",
            Array(
                struct(
                    "FetchTopic",
                    *_TOPIC,
                    field(
                        "partitions",
                        Array(
                            struct(
                                "FetchPartition",
                                field("partition", INT32),
                                field("currentLeaderEpoch", INT32, "9+", default=-1, ignorable=True),
                                field("fetchOffset", INT64),
                                field("lastFetchedEpoch", INT32, "12+", default=-1),
                                field("logStartOffset", INT64, "5+", default=-1, ignorable=True),
                                field("partitionMaxBytes", INT32),
                                field("replicaDirectoryId", UUID, "17+", tag=0, ignorable=True),
                            )
                        ),
                    ),
                )
            ),
        ),
        field(
            "forgottenTopicsData",
            Array(
                struct(
                    "ForgottenTopic",
                    field("topic", STRING, "7-12", ignorable=True),
                    field("topicId", UUID, "13+", ignorable=True),
                    field("partitions", Array(INT32), "7+"),
                )
            ),
            "7+",
        ),
        field("rackId", STRING, "11+", default="", ignorable=True),
    ),
    message(
        "FetchResponse",
        1,
        "12-17",
        "12+",
        field("throttleTimeMs", INT32, "1+", ignorable=True),
        field("errorCode", INT16, "7+", ignorable=True),
        field("sessionId", INT32, "7+", default=0),
        field(
            "responses",
            Array(
                struct(
                    "FetchableTopicResponse",
                    *_TOPIC,
                    field(
                        "partitions",
                        Array(
                            struct(
                                "PartitionData",
                                field("partitionIndex", INT32),
                                field("errorCode", INT16),
                                field("highWatermark", INT64),
                                field("lastStableOffset", INT64, "4+", default=-1, ignorable=True),
                                field("logStartOffset", INT64, "5+", default=-1, ignorable=True),
                                field(
                                    "divergingEpoch",
                                    struct(
                                        "EpochEndOffset",
                                        field("epoch", INT32, "12+", default=-1),
                                        field("endOffset", INT64, "12+", default=-1),
                                    ),
                                    "12+",
                                    tag=0,
                                ),
                                field(
                                    "currentLeader",
                                    struct(
                                        "LeaderIdAndEpoch",
                                        field("leaderId", INT32, "12+", default=-1),
                                        field("leaderEpoch", INT32, "12+", default=-1),
                                    ),
                                    "12+",
                                    tag=1,
                                ),
                                field(
                                    "snapshotId",
                                    struct(
                                        "SnapshotId",
                                        field("endOffset", INT64, default=-1),
                                        field("epoch", INT32, default=-1),
                                    ),
                                    "12+",
                                    tag=2,
                                ),
                                field(
                                    "abortedTransactions",
                                    Array(
                                        struct(
                                            "AbortedTransaction",
                                            field("producerId", INT64, "4+"),
                                            field("firstOffset", INT64, "4+"),
                                        )
                                    ),
                                    "4+",
                                    nullable="4+",
                                    ignorable=True,
                                ),
                                field("preferredReadReplica", INT32, "11+", default=-1),
                                field("records", RECORDS, nullable="0+"),
                            )
                        ),
                    ),
                )
            ),
        ),
        field(
            "nodeEndpoints",
            Array(
                struct(
                    "NodeEndpoint",
                    field("nodeId", INT32, "16+"),
                    field("host", STRING, "16+"),
                    field("port", INT32, "16+"),
                    field("rack", STRING, "16+", nullable="16+", default=None),
                )
            ),
            "16+",
            tag=0,
        ),
    ),
)

FETCH_SNAPSHOT: Final = Api(
    "FetchSnapshot",
    message(
        "FetchSnapshotRequest",
        59,
        "0-1",
        "0+",
        field("clusterId", STRING, nullable="0+", tag=0, default=None),
        field("replicaId", INT32, default=-1),
        field("maxBytes", INT32, default=0x7FFFFFFF),
        _snapshots(
            field("partition", INT32),
            field("currentLeaderEpoch", INT32),
            field("snapshotId", _SNAPSHOT_ID),
            field("position", INT64),
            field("replicaDirectoryId", UUID, "1+", tag=0, ignorable=True),
        ),
    ),
    message(
        "FetchSnapshotResponse",
        59,
        "0-1",
        "0+",
        field("throttleTimeMs", INT32, ignorable=True),
        field("errorCode", INT16),
        _snapshots(
            field("index", INT32),
            field("errorCode", INT16),
            field("snapshotId", _SNAPSHOT_ID),
            field(
                "currentLeader",
                struct("LeaderIdAndEpoch", field("leaderId", INT32), field("leaderEpoch", INT32)),
                tag=0,
            ),
            field("size", INT64),
            field("position", INT64),
            field("unalignedRecords", RECORDS),
        ),
        field(
            "nodeEndpoints",
            Array(
                struct(
                    "NodeEndpoint",
                    field("nodeId", INT32, "1+"),
                    field("host", STRING, "1+"),
                    field("port", UINT16, "1+"),
                )
            ),
            "1+",
            tag=0,
        ),
    ),
)
