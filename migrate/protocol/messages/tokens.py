"""CreateDelegationToken and DescribeDelegationToken (KIP-48, KIP-373): the hmac in both answers is a password."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BYTES, INT16, INT32, INT64, STRING, Array, field, message, struct
from migrate.protocol.messages.api import Api

CREATE_DELEGATION_TOKEN: Final = Api(
    "CreateDelegationToken",
    message(
        "CreateDelegationTokenRequest",
        38,
        "0-3",
        "2+",
        field("ownerPrincipalType", STRING, "3+", nullable="3+"),
        field("ownerPrincipalName", STRING, "3+", nullable="3+"),
        field(
            "renewers",
            Array(struct("CreatableRenewers", field("principalType", STRING), field("principalName", STRING))),
        ),
        field("maxLifetimeMs", INT64),
    ),
    message(
        "CreateDelegationTokenResponse",
        38,
        "0-3",
        "2+",
        field("errorCode", INT16),
        field("principalType", STRING),
        field("principalName", STRING),
        field("tokenRequesterPrincipalType", STRING, "3+"),
        field("tokenRequesterPrincipalName", STRING, "3+"),
        field("issueTimestampMs", INT64),
        field("expiryTimestampMs", INT64),
        field("maxTimestampMs", INT64),
        field("tokenId", STRING),
        field("hmac", BYTES),
        field("throttleTimeMs", INT32),
    ),
)

DESCRIBE_DELEGATION_TOKEN: Final = Api(
    "DescribeDelegationToken",
    message(
        "DescribeDelegationTokenRequest",
        41,
        "0-3",
        "2+",
        field(
            "owners",
            Array(
                struct("DescribeDelegationTokenOwner", field("principalType", STRING), field("principalName", STRING))
            ),
            nullable="0+",
        ),
    ),
    message(
        "DescribeDelegationTokenResponse",
        41,
        "0-3",
        "2+",
        field("errorCode", INT16),
        field(
            "tokens",
            Array(
                struct(
                    "DescribedDelegationToken",
                    field("principalType", STRING),
                    field("principalName", STRING),
                    field("tokenRequesterPrincipalType", STRING, "3+"),
                    field("tokenRequesterPrincipalName", STRING, "3+"),
                    field("issueTimestamp", INT64),
                    field("expiryTimestamp", INT64),
                    field("maxTimestamp", INT64),
                    field("tokenId", STRING),
                    field("hmac", BYTES),
                    field(
                        "renewers",
                        Array(
                            struct(
                                "DescribedDelegationTokenRenewer",
                                field("principalType", STRING),
                                field("principalName", STRING),
                            )
                        ),
                    ),
                )
            ),
        ),
        field("throttleTimeMs", INT32),
    ),
)
