"""IncrementalAlterConfigs: dynamic configurations, the defaults of all brokers included (resource name "")."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BOOL, INT8, INT16, INT32, STRING, Array, field, message, struct
from migrate.protocol.messages.api import Api

INCREMENTAL_ALTER_CONFIGS: Final = Api(
    "IncrementalAlterConfigs",
    message(
        "IncrementalAlterConfigsRequest",
        44,
        "0-1",
        "1+",
        field(
            "resources",
            Array(
                struct(
                    "AlterConfigsResource",
                    field("resourceType", INT8),
                    field("resourceName", STRING),
                    field(
                        "configs",
                        Array(
                            struct(
                                "AlterableConfig",
                                field("name", STRING),
                                field("configOperation", INT8),
                                field("value", STRING, nullable="0+"),
                            )
                        ),
                    ),
                )
            ),
        ),
        field("validateOnly", BOOL),
    ),
    message(
        "IncrementalAlterConfigsResponse",
        44,
        "0-1",
        "1+",
        field("throttleTimeMs", INT32),
        field(
            "responses",
            Array(
                struct(
                    "AlterConfigsResourceResponse",
                    field("errorCode", INT16),
                    field("errorMessage", STRING, nullable="0+"),
                    field("resourceType", INT8),
                    field("resourceName", STRING),
                )
            ),
        ),
    ),
)
