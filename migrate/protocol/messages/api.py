"""What an API is: its key, its two tables, and the rules for the headers around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from migrate.protocol.codec import decode, decode_whole, encode
from migrate.protocol.fields import INT16, INT32, STRING, Struct, Values, Versions, field, message

REQUEST_HEADER: Final = message(
    "RequestHeader",
    -1,
    "1-2",
    "2+",
    field("requestApiKey", INT16),
    field("requestApiVersion", INT16),
    field("correlationId", INT32),
    replace(field("clientId", STRING, "1+", nullable="1+", ignorable=True), classic=True),
)
RESPONSE_HEADER: Final = message("ResponseHeader", -1, "0-1", "1+", field("correlationId", INT32))
API_VERSIONS_KEY: Final = 18


@dataclass(frozen=True, slots=True)
class Api:
    """One API of Kafka's protocol, in the versions that our tables cover."""

    name: str
    request: Struct
    response: Struct

    @property
    def key(self) -> int:
        """The api key."""
        return self.request.key

    @property
    def versions(self) -> Versions:
        """Lowest and highest version."""
        return self.request.versions

    @property
    def first_flexible(self) -> int:
        """The first version with compact lengths and tagged fields (above `versions.high`: none)."""
        return self.request.flexible.low if self.request.flexible.high >= 0 else self.versions.high + 1

    def is_flexible(self, version: int) -> bool:
        """Has that version compact lengths and tagged fields?"""
        return version in self.request.flexible

    def best(self, low: int, high: int) -> int | None:
        """The highest version that both we and a node with that range know; None if there is none."""
        version = min(self.versions.high, high)
        return version if version >= max(self.versions.low, low) else None


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, body: Values | bytes) -> bytes:
    """Header and body of a request, without the size of four bytes before it; bytes are a body in that version.

    Flexible versions have request header v2, all others v1 (`ApiMessageType.requestHeaderVersion`).
    """
    header = {
        "requestApiKey": api.key,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
    }
    payload = body if isinstance(body, bytes) else encode(api.request, version, body)
    return encode(REQUEST_HEADER, 2 if api.is_flexible(version) else 1, header) + payload


def decode_response(api: Api, version: int, buffer: bytes) -> tuple[int, Values]:
    """Correlation id and body of a response, from the bytes after its size.

    Flexible versions have response header v1, all others v0.  An ApiVersions response always has v0: the client cannot
    know the node's versions yet (KIP-511).  Raises DecodeError, also where bytes follow the body.
    """
    header_version = 1 if api.is_flexible(version) and api.key != API_VERSIONS_KEY else 0
    header, offset = decode(RESPONSE_HEADER, header_version, buffer)
    return header["correlationId"], decode_whole(api.response, version, buffer, offset)


def decode_request(api: Api, buffer: bytes) -> tuple[int, int, Values]:
    """Version, correlation id and body of a request: for servers in tests."""
    version = int.from_bytes(buffer[2:4], "big")
    header, offset = decode(REQUEST_HEADER, 2 if api.is_flexible(version) else 1, buffer)
    return version, header["correlationId"], decode_whole(api.request, version, buffer, offset)


def encode_response(api: Api, version: int, correlation_id: int, body: Values) -> bytes:
    """Header and body of a response: for servers in tests."""
    header_version = 1 if api.is_flexible(version) and api.key != API_VERSIONS_KEY else 0
    header = encode(RESPONSE_HEADER, header_version, {"correlationId": correlation_id})
    return header + encode(api.response, version, body)
