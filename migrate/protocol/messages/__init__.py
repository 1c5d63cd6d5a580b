"""Tables of the requests and responses that we send and read, and the two functions around them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from migrate.protocol.messages.admin import (
    ALTER_CLIENT_QUOTAS,
    DESCRIBE_CLIENT_QUOTAS,
    ELECT_LEADERS,
    UPDATE_FEATURES,
)
from migrate.protocol.messages.api import Api, decode_request, decode_response, encode_request, encode_response
from migrate.protocol.messages.cluster import API_VERSIONS, DESCRIBE_CLUSTER, METADATA
from migrate.protocol.messages.configs import INCREMENTAL_ALTER_CONFIGS
from migrate.protocol.messages.directories import ASSIGN_REPLICAS_TO_DIRS, DESCRIBE_LOG_DIRS
from migrate.protocol.messages.fetch import FETCH, FETCH_SNAPSHOT
from migrate.protocol.messages.quorum import DESCRIBE_QUORUM
from migrate.protocol.messages.registration import BROKER_HEARTBEAT, BROKER_REGISTRATION
from migrate.protocol.messages.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from migrate.protocol.messages.tokens import CREATE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN

API: Final[Mapping[str, Api]] = MappingProxyType(
    {
        api.name: api
        for api in (
            FETCH,
            METADATA,
            SASL_HANDSHAKE,
            API_VERSIONS,
            DESCRIBE_LOG_DIRS,
            SASL_AUTHENTICATE,
            CREATE_DELEGATION_TOKEN,
            DESCRIBE_DELEGATION_TOKEN,
            ELECT_LEADERS,
            INCREMENTAL_ALTER_CONFIGS,
            DESCRIBE_CLIENT_QUOTAS,
            ALTER_CLIENT_QUOTAS,
            DESCRIBE_QUORUM,
            UPDATE_FEATURES,
            FETCH_SNAPSHOT,
            DESCRIBE_CLUSTER,
            BROKER_REGISTRATION,
            BROKER_HEARTBEAT,
            ASSIGN_REPLICAS_TO_DIRS,
        )
    }
)
API_BY_KEY: Final[Mapping[int, Api]] = MappingProxyType({api.key: api for api in API.values()})

__all__ = [
    "API",
    "API_BY_KEY",
    "Api",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "ALTER_CLIENT_QUOTAS",
    "API_VERSIONS",
    "ASSIGN_REPLICAS_TO_DIRS",
    "BROKER_HEARTBEAT",
    "BROKER_REGISTRATION",
    "CREATE_DELEGATION_TOKEN",
    "DESCRIBE_CLIENT_QUOTAS",
    "DESCRIBE_CLUSTER",
    "DESCRIBE_DELEGATION_TOKEN",
    "DESCRIBE_LOG_DIRS",
    "DESCRIBE_QUORUM",
    "ELECT_LEADERS",
    "FETCH",
    "FETCH_SNAPSHOT",
    "INCREMENTAL_ALTER_CONFIGS",
    "METADATA",
    "SASL_AUTHENTICATE",
    "SASL_HANDSHAKE",
    "UPDATE_FEATURES",
]
