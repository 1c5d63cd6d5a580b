"""Records of ACLs, SCRAM credentials and delegation tokens; SECRETS names their fields that never leave us."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from migrate.protocol.fields import BYTES, INT8, INT32, INT64, STRING, UUID, Array, field, message

DELEGATION_TOKEN: Final = message(
    "DelegationTokenRecord",
    10,
    "0",
    "0+",
    field("owner", STRING),
    field("requester", STRING),
    field("renewers", Array(STRING)),
    field("issueTimestamp", INT64),
    field("maxTimestamp", INT64),
    field("expirationTimestamp", INT64),
    field("tokenId", STRING),
)
REMOVE_DELEGATION_TOKEN: Final = message("RemoveDelegationTokenRecord", 26, "0", "0+", field("tokenId", STRING))
USER_SCRAM_CREDENTIAL: Final = message(
    "UserScramCredentialRecord",
    11,
    "0",
    "0+",
    field("name", STRING),
    field("mechanism", INT8),
    field("salt", BYTES),
    field("storedKey", BYTES),
    field("serverKey", BYTES),
    field("iterations", INT32),
)
REMOVE_USER_SCRAM_CREDENTIAL: Final = message(
    "RemoveUserScramCredentialRecord", 22, "0", "0+", field("name", STRING), field("mechanism", INT8)
)
ACCESS_CONTROL_ENTRY: Final = message(
    "AccessControlEntryRecord",
    18,
    "0",
    "0+",
    field("id", UUID),
    field("resourceType", INT8),
    field("resourceName", STRING),
    field("patternType", INT8),
    field("principal", STRING),
    field("host", STRING),
    field("operation", INT8),
    field("permissionType", INT8),
)
REMOVE_ACCESS_CONTROL_ENTRY: Final = message("RemoveAccessControlEntryRecord", 19, "0", "0+", field("id", UUID))

SECRETS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        DELEGATION_TOKEN.name: frozenset({"owner", "requester", "renewers", "tokenId"}),
        REMOVE_DELEGATION_TOKEN.name: frozenset({"tokenId"}),
        USER_SCRAM_CREDENTIAL.name: frozenset({"salt", "storedKey", "serverKey"}),
    }
)
