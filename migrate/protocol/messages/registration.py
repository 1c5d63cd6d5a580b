"""BrokerRegistration and BrokerHeartbeat: how a broker tells controllers of its log directories (KIP-858, KIP-866).

Brokers send them, we never do: the tables let a captured request be read.
"""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, Array, field, message, struct
from migrate.protocol.messages.api import Api

BROKER_REGISTRATION: Final = Api(
    "BrokerRegistration",
    message(
        "BrokerRegistrationRequest",
        62,
        "0-4",
        "0+",
        field("brokerId", INT32),
        field("clusterId", STRING),
        field("incarnationId", UUID),
        field(
            "listeners",
            Array(
                struct(
                    "Listener",
                    field("name", STRING),
                    field("host", STRING),
                    field("port", UINT16),
                    field("securityProtocol", INT16),
                )
            ),
        ),
        field(
            "features",
            Array(
                struct(
                    "Feature",
                    field("name", STRING),
                    field("minSupportedVersion", INT16),
                    field("maxSupportedVersion", INT16),
                )
            ),
        ),
        field("rack", STRING, nullable="0+"),
        field("isMigratingZkBroker", BOOL, "1+", default=False),
        field("logDirs", Array(UUID), "2+", ignorable=True),
        field("previousBrokerEpoch", INT64, "3+", default=-1, ignorable=True),
    ),
    message(
        "BrokerRegistrationResponse",
        62,
        "0-4",
        "0+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field("brokerEpoch", INT64, default=-1),
    ),
)

BROKER_HEARTBEAT: Final = Api(
    "BrokerHeartbeat",
    message(
        "BrokerHeartbeatRequest",
        63,
        "0-1",
        "0+",
        field("brokerId", INT32),
        field("brokerEpoch", INT64, default=-1),
        field("currentMetadataOffset", INT64),
        field("wantFence", BOOL),
        field("wantShutDown", BOOL),
        field("offlineLogDirs", Array(UUID), "1+", tag=0),
    ),
    message(
        "BrokerHeartbeatResponse",
        63,
        "0-1",
        "0+",
        field("throttleTimeMs", INT32),
        field("errorCode", INT16),
        field("isCaughtUp", BOOL, default=False),
        field("isFenced", BOOL, default=True),
        field("shouldShutDown", BOOL),
    ),
)
