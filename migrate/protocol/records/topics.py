"""Records of topics and partitions.  In a change record an absent field means: unchanged."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import INT8, INT32, STRING, UUID, Array, field, message

NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1

TOPIC: Final = message("TopicRecord", 2, "0", "0+", field("name", STRING), field("topicId", UUID))
PARTITION: Final = message(
    "PartitionRecord",
    3,
    "0-2",
    "0+",
    field("partitionId", INT32, default=-1),
    field("topicId", UUID),
    field("replicas", Array(INT32)),
    field("isr", Array(INT32)),
    field("removingReplicas", Array(INT32)),
    field("addingReplicas", Array(INT32)),
    field("leader", INT32, default=-1),
    field("leaderRecoveryState", INT8, tag=0, default=0),
    field("leaderEpoch", INT32, default=-1),
    field("partitionEpoch", INT32, default=-1),
    field("directories", Array(UUID), "1+"),
    field("eligibleLeaderReplicas", Array(INT32), "2+", nullable="2+", tag=1, default=None),
    field("lastKnownElr", Array(INT32), "2+", nullable="2+", tag=2, default=None),
)
PARTITION_CHANGE: Final = message(
    "PartitionChangeRecord",
    5,
    "0-2",
    "0+",
    field("partitionId", INT32, default=-1),
    field("topicId", UUID),
    field("isr", Array(INT32), nullable="0+", tag=0, default=None),
    field("leader", INT32, tag=1, default=NO_LEADER_CHANGE),
    field("replicas", Array(INT32), nullable="0+", tag=2, default=None),
    field("removingReplicas", Array(INT32), nullable="0+", tag=3, default=None),
    field("addingReplicas", Array(INT32), nullable="0+", tag=4, default=None),
    field("leaderRecoveryState", INT8, tag=5, default=NO_RECOVERY_CHANGE),
    field("directories", Array(UUID), "1+", nullable="1+", tag=8, default=None),
    field("eligibleLeaderReplicas", Array(INT32), "2+", nullable="2+", tag=6, default=None),
    field("lastKnownElr", Array(INT32), "2+", nullable="2+", tag=7, default=None),
)
REMOVE_TOPIC: Final = message("RemoveTopicRecord", 9, "0", "0+", field("topicId", UUID))
