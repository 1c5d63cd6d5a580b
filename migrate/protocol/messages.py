"""The requests that this tool sends, their responses, and the headers around both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.protocol.loader import Struct, Values, Versions, load
from migrate.protocol.reader import decode, decode_whole
from migrate.protocol.writer import encode


@dataclass(frozen=True, slots=True)
class Api:
    """A request of Kafka's protocol and its response; `oldest` is the lowest version that this tool uses."""

    name: str
    oldest: int = 0

    @property
    def request(self) -> Struct:
        """The schema of the request."""
        return load(f"{self.name}Request")

    @property
    def response(self) -> Struct:
        """The schema of the response."""
        return load(f"{self.name}Response")

    @property
    def key(self) -> int:
        """Kafka's number for the API."""
        return self.request.key

    @property
    def versions(self) -> Versions:
        """The versions that this tool uses."""
        return Versions(max(self.oldest, self.request.versions.low), self.request.versions.high)

    def best(self, low: int, high: int) -> int | None:
        """Return the highest version that this tool and a node with that range know; None if there is none."""
        version = min(self.versions.high, high)
        return version if version >= max(self.versions.low, low) else None


FETCH: Final = Api("Fetch", oldest=12)  # from 12 on with the fields of raft
FETCH_SNAPSHOT: Final = Api("FetchSnapshot")
METADATA: Final = Api("Metadata", oldest=1)  # version 0 does not name the controller
SASL_HANDSHAKE: Final = Api("SaslHandshake")
SASL_AUTHENTICATE: Final = Api("SaslAuthenticate")
API_VERSIONS: Final = Api("ApiVersions")
DESCRIBE_LOG_DIRS: Final = Api("DescribeLogDirs", oldest=1)  # paths, never directory ids (KIP-113, KIP-827)
CREATE_DELEGATION_TOKEN: Final = Api("CreateDelegationToken")  # the hmac in the response is a password
DESCRIBE_DELEGATION_TOKEN: Final = Api("DescribeDelegationToken")  # here too
ELECT_LEADERS: Final = Api("ElectLeaders")
INCREMENTAL_ALTER_CONFIGS: Final = Api("IncrementalAlterConfigs")  # the resource name "" means all brokers
ALTER_CLIENT_QUOTAS: Final = Api("AlterClientQuotas")
DESCRIBE_QUORUM: Final = Api("DescribeQuorum")  # a follower answers leaderId 0 and an error for the partition
DESCRIBE_CLUSTER: Final = Api("DescribeCluster")
ASSIGN_REPLICAS_TO_DIRS: Final = Api("AssignReplicasToDirs")  # directory and topic ids, never names (KIP-858)
BROKER_REGISTRATION: Final = Api("BrokerRegistration")  # only brokers send these two: how they report
BROKER_HEARTBEAT: Final = Api("BrokerHeartbeat")  # their log directories to controllers (KIP-858, KIP-866)


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, body: Values | bytes) -> bytes:
    """Encode header and body of a request, without the four bytes of its size; bytes are a body in that version.

    Flexible versions have request header v2, all others v1 (`ApiMessageType.requestHeaderVersion`).
    """
    header = {
        "requestApiKey": api.key,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
    }
    header_version = 2 if api.request.is_flexible(version) else 1
    payload = body if isinstance(body, bytes) else encode(api.request, version, body)
    return encode(load("RequestHeader"), header_version, header) + payload


def decode_response(api: Api, version: int, buffer: bytes) -> tuple[int, Values]:
    """Return correlation id and body of a response, from the bytes after its size.

    Raises:
        DecodeError: the bytes are no such response, end inside it, or go on after it.
    """
    header, offset = decode(load("ResponseHeader"), response_header_version(api, version), buffer)
    return header["correlationId"], decode_whole(api.response, version, buffer, offset)


def response_header_version(api: Api, version: int) -> int:
    """Return 1 for flexible versions, 0 for all others.

    An ApiVersions response always has v0: the client cannot know the node's versions yet (KIP-511).
    """
    return 1 if api != API_VERSIONS and api.request.is_flexible(version) else 0
