"""SaslHandshake and SaslAuthenticate: what stands before everything else on a SASL listener."""

from __future__ import annotations

from typing import Final

from migrate.protocol.fields import BYTES, INT16, INT64, STRING, Array, field, message
from migrate.protocol.messages.api import Api

SASL_HANDSHAKE: Final = Api(
    "SaslHandshake",
    message("SaslHandshakeRequest", 17, "0-1", "none", field("mechanism", STRING)),
    message("SaslHandshakeResponse", 17, "0-1", "none", field("errorCode", INT16), field("mechanisms", Array(STRING))),
)

SASL_AUTHENTICATE: Final = Api(
    "SaslAuthenticate",
    message("SaslAuthenticateRequest", 36, "0-2", "2+", field("authBytes", BYTES)),
    message(
        "SaslAuthenticateResponse",
        36,
        "0-2",
        "2+",
        field("errorCode", INT16),
        field("errorMessage", STRING, nullable="0+"),
        field("authBytes", BYTES),
        field("sessionLifetimeMs", INT64, "1+", default=0, ignorable=True),
    ),
)
