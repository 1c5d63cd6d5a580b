"""Records of brokers and controllers: registrations, their changes, fencing."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Struct,
    field,
    message,
    struct,
)


def _endpoints(name: str) -> Struct:
    return struct(
        name, field("name", STRING), field("host", STRING), field("port", UINT16), field("securityProtocol", INT16)
    )


def _features(name: str) -> Struct:
    return struct(name, field("name", STRING), field("minSupportedVersion", INT16), field("maxSupportedVersion", INT16))


REGISTER_BROKER: Final = message(
    "RegisterBrokerRecord",
    0,
    "0-3",
    "0+",
    field("brokerId", INT32),
    field("isMigratingZkBroker", BOOL, "2+", default=False),
    field("incarnationId", UUID),
    field("brokerEpoch", INT64),
    field("endPoints", Array(_endpoints("BrokerEndpoint"))),
    field("features", Array(_features("BrokerFeature"))),
    field("rack", STRING, nullable="0+"),
    field("fenced", BOOL, default=True),
    field("inControlledShutdown", BOOL, "1+", default=False),
    field("logDirs", Array(UUID), "3+", tag=0),
)
UNREGISTER_BROKER: Final = message(
    "UnregisterBrokerRecord", 1, "0", "0+", field("brokerId", INT32), field("brokerEpoch", INT64)
)
FENCE_BROKER: Final = message("FenceBrokerRecord", 7, "0", "0+", field("id", INT32), field("epoch", INT64))
UNFENCE_BROKER: Final = message("UnfenceBrokerRecord", 8, "0", "0+", field("id", INT32), field("epoch", INT64))
BROKER_REGISTRATION_CHANGE: Final = message(
    "BrokerRegistrationChangeRecord",
    17,
    "0-2",
    "0+",
    field("brokerId", INT32),
    field("brokerEpoch", INT64),
    field("fenced", INT8, tag=0),
    field("inControlledShutdown", INT8, "1+", tag=1),
    field("logDirs", Array(UUID), "2+", tag=2),
)
REGISTER_CONTROLLER: Final = message(
    "RegisterControllerRecord",
    27,
    "0",
    "0+",
    field("controllerId", INT32),
    field("incarnationId", UUID),
    field("zkMigrationReady", BOOL),
    field("endPoints", Array(_endpoints("ControllerEndpoint"))),
    field("features", Array(_features("ControllerFeature"))),
)
