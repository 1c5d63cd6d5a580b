"""Records of configs, quotas, producer ids, features, the migration's state, and the log's own housekeeping."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, FLOAT64, INT8, INT16, INT32, INT64, STRING, Array, field, message, struct

CONFIG: Final = message(
    "ConfigRecord",
    4,
    "0",
    "0+",
    field("resourceType", INT8),
    field("resourceName", STRING),
    field("name", STRING),
    field("value", STRING, nullable="0+"),
)
FEATURE_LEVEL: Final = message("FeatureLevelRecord", 12, "0", "0+", field("name", STRING), field("featureLevel", INT16))
CLIENT_QUOTA: Final = message(
    "ClientQuotaRecord",
    14,
    "0",
    "0+",
    field(
        "entity",
        Array(struct("EntityData", field("entityType", STRING), field("entityName", STRING, nullable="0+"))),
    ),
    field("key", STRING),
    field("value", FLOAT64),
    field("remove", BOOL),
)
PRODUCER_IDS: Final = message(
    "ProducerIdsRecord",
    15,
    "0",
    "0+",
    field("brokerId", INT32),
    field("brokerEpoch", INT64, default=-1),
    field("nextProducerId", INT64),
)
NO_OP: Final = message("NoOpRecord", 20, "0", "0+")
ZK_MIGRATION_STATE: Final = message("ZkMigrationStateRecord", 21, "0", "0+", field("zkMigrationState", INT8))
BEGIN_TRANSACTION: Final = message(
    "BeginTransactionRecord", 23, "0", "0+", field("name", STRING, nullable="0+", tag=0, default=None)
)
END_TRANSACTION: Final = message("EndTransactionRecord", 24, "0", "0+")
ABORT_TRANSACTION: Final = message(
    "AbortTransactionRecord", 25, "0", "0+", field("reason", STRING, nullable="0+", tag=0, default=None)
)
