"""The requests that this tool sends, their responses, the headers around both, and error codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from migrate.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from migrate.protocol.codec import decode, decode_whole, encode
from migrate.protocol.loader import Struct, Values, Versions, load


@dataclass(frozen=True, slots=True)
class Api:
    """A request of Kafka's protocol and its response; `oldest` is the lowest version that this tool uses."""

    name: str
    oldest: int = 0

    @property
    def request(self) -> Struct:
        return load(f"{self.name}Request")

    @property
    def response(self) -> Struct:
        return load(f"{self.name}Response")

    @property
    def key(self) -> int:
        return self.request.key

    @property
    def versions(self) -> Versions:
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
DESCRIBE_CONFIGS: Final = Api("DescribeConfigs", oldest=1)  # a broker describes the values that it runs with
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

    Raises DecodeError: the bytes are no such response, end inside it, or go on after it.
    """
    header, offset = decode(load("ResponseHeader"), response_header_version(api, version), buffer)
    if api == API_VERSIONS and int.from_bytes(buffer[offset : offset + 2], "big") == Code.UNSUPPORTED_VERSION:
        version = 0  # what a node answers in that does not know the version (KIP-511)
    return header["correlationId"], decode_whole(api.response, version, buffer, offset)


def response_header_version(api: Api, version: int) -> int:
    """Return 1 for flexible versions, 0 for all others.

    An ApiVersions response always has v0: the client cannot know the node's versions yet (KIP-511).
    """
    return 1 if api != API_VERSIONS and api.request.is_flexible(version) else 0


def metadata_fetch(offset: int, *, most: int, epoch: int = 0, last_epoch: int = 0, wait_ms: int = 0) -> Values:
    """A Fetch of the metadata log from that offset on, by an observer: replicaId is -1, so that none is left behind."""
    partition = {
        "partition": 0,
        "currentLeaderEpoch": epoch,
        "fetchOffset": offset,
        "lastFetchedEpoch": last_epoch,
        "logStartOffset": -1,
        "partitionMaxBytes": most,
    }
    return {
        "maxWaitMs": wait_ms,
        "minBytes": 0,
        "maxBytes": most,
        "topics": [{"topic": METADATA_TOPIC, "topicId": str(METADATA_TOPIC_ID), "partitions": [partition]}],
        "forgottenTopicsData": [],
    }


class Code(IntEnum):
    """Kafka's error codes (`clients/.../common/protocol/Errors.java`, 3.9), as far as our requests meet them."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    NETWORK_EXCEPTION = 13
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    SECURITY_DISABLED = 54
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    LISTENER_NOT_FOUND = 72
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_UPDATE_VERSION = 95
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    MISMATCHED_ENDPOINT_TYPE = 114
    INVALID_REGISTRATION = 119


def error_name(code: int) -> str:
    """Name and number: `NOT_CONTROLLER (41)`."""
    try:
        return f"{Code(code).name} ({code})"
    except ValueError:
        return f"error {code}"
