"""The records of the metadata log, and how they are framed.

A metadata record begins with the frame version, its key and its version (`AbstractApiMessageSerde.java`).  A control
record has the key (version int16, type int16), and its value begins with the version of its schema
(`ControlRecordType.java`, `ControlRecordUtils.java`).
In a change record an absent field means: unchanged.
"""

from __future__ import annotations

import re
import struct as packing
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.codec import decode_whole, struct_reader
from migrate.protocol.loader import Struct, Values, load
from migrate.protocol.primitives import read_uvarint

FRAME_VERSION: Final = 1

REGISTER_BROKER: Final = load("RegisterBrokerRecord")
UNREGISTER_BROKER: Final = load("UnregisterBrokerRecord")
FENCE_BROKER: Final = load("FenceBrokerRecord")
UNFENCE_BROKER: Final = load("UnfenceBrokerRecord")
BROKER_REGISTRATION_CHANGE: Final = load("BrokerRegistrationChangeRecord")
REGISTER_CONTROLLER: Final = load("RegisterControllerRecord")
UNREGISTER_CONTROLLER: Final = load("UnregisterControllerRecord")

TOPIC: Final = load("TopicRecord")
PARTITION: Final = load("PartitionRecord")
PARTITION_CHANGE: Final = load("PartitionChangeRecord")
REMOVE_TOPIC: Final = load("RemoveTopicRecord")
CLEAR_ELR: Final = load("ClearElrRecord")

CONFIG: Final = load("ConfigRecord")
FEATURE_LEVEL: Final = load("FeatureLevelRecord")
CLIENT_QUOTA: Final = load("ClientQuotaRecord")
PRODUCER_IDS: Final = load("ProducerIdsRecord")
NO_OP: Final = load("NoOpRecord")
ZK_MIGRATION_STATE: Final = load("ZkMigrationRecord")
BEGIN_TRANSACTION: Final = load("BeginTransactionRecord")
END_TRANSACTION: Final = load("EndTransactionRecord")
ABORT_TRANSACTION: Final = load("AbortTransactionRecord")

DELEGATION_TOKEN: Final = load("DelegationTokenRecord")
REMOVE_DELEGATION_TOKEN: Final = load("RemoveDelegationTokenRecord")
USER_SCRAM_CREDENTIAL: Final = load("UserScramCredentialRecord")
REMOVE_USER_SCRAM_CREDENTIAL: Final = load("RemoveUserScramCredentialRecord")
ACCESS_CONTROL_ENTRY: Final = load("AccessControlEntryRecord")
REMOVE_ACCESS_CONTROL_ENTRY: Final = load("RemoveAccessControlEntryRecord")

RECORDS: Final[Mapping[int, Struct]] = MappingProxyType(
    {table.key: table for table in tuple(globals().values()) if isinstance(table, Struct)}
)

# fields that are never shown unless the operator asks for secrets
SECRETS: Final[Mapping[Struct, frozenset[str]]] = MappingProxyType(
    {
        DELEGATION_TOKEN: frozenset({"owner", "requester", "renewers", "tokenId"}),
        REMOVE_DELEGATION_TOKEN: frozenset({"tokenId"}),
        USER_SCRAM_CREDENTIAL: frozenset({"salt", "storedKey", "serverKey"}),
    }
)

LEADER_CHANGE: Final = load("LeaderChangeMessage")
SNAPSHOT_HEADER: Final = load("SnapshotHeaderRecord")
SNAPSHOT_FOOTER: Final = load("SnapshotFooterRecord")
KRAFT_VERSION: Final = load("KRaftVersionRecord")
KRAFT_VOTERS: Final = load("VotersRecord")

CONTROL: Final[Mapping[int, tuple[str, Struct]]] = MappingProxyType(
    {
        2: ("LEADER_CHANGE", LEADER_CHANGE),
        3: ("SNAPSHOT_HEADER", SNAPSHOT_HEADER),
        4: ("SNAPSHOT_FOOTER", SNAPSHOT_FOOTER),
        5: ("KRAFT_VERSION", KRAFT_VERSION),
        6: ("KRAFT_VOTERS", KRAFT_VOTERS),
    }
)


@cache
def type_name(table: Struct) -> str:
    """Return Kafka's name of the record's type: `PARTITION_CHANGE_RECORD`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", table.name).upper()


def decode_record(value: bytes | None) -> tuple[Struct, int, Values]:
    """Return schema, version and values of a metadata record.

    Raises:
        UnknownSchemaError: Kafka 3.9 to 4.4 do not write that frame version, key or version.
        DecodeError: the bytes end inside the record, or go on after it.
    """
    if value is None:
        raise DecodeError("a metadata record without a value")
    try:
        if (known := _known_frames().get(value[:3])) is not None:
            table, version, read = known
            values, end = read(value, 3)
        else:
            table, version, start = _frame(value)
            values, end = struct_reader(table, version, flexible=True)(value, start)
    except (IndexError, packing.error) as error:
        raise DecodeError("a metadata record is cut short") from error
    if end != len(value):
        raise DecodeError(f"{table.name} version {version} is followed by {len(value) - end} bytes too many")
    return table, version, values


@cache
def _known_frames() -> Mapping[bytes, tuple[Struct, int, Callable[[bytes, int], tuple[Values, int]]]]:
    """Map frame version, key and version, one byte each as in all of Kafka 3.9 to 4.4, to the reader of that record."""
    return {
        bytes((FRAME_VERSION, table.key, version)): (table, version, struct_reader(table, version, flexible=True))
        for table in RECORDS.values()
        for version in range(table.versions.low, table.versions.high + 1)
    }


def _frame(value: bytes) -> tuple[Struct, int, int]:
    """Return schema and version of a record with another frame, and the offset after them."""
    frame, offset = read_uvarint(value, 0)
    if frame != FRAME_VERSION:
        raise UnknownSchemaError(f"metadata record with frame version {frame} (known: {FRAME_VERSION})")
    key, offset = read_uvarint(value, offset)
    version, offset = read_uvarint(value, offset)
    table = RECORDS.get(key)
    if table is None:
        raise UnknownSchemaError(f"metadata record of the unknown type {key}, version {version}")
    table.is_flexible(version)
    return table, version, offset


def decode_control(key: bytes | None, value: bytes | None) -> tuple[str, Struct, int, Values]:
    """Return type name, schema, version and values of a control record.  Raises DecodeError."""
    if key is None or len(key) != 4 or value is None or len(value) < 2:
        raise DecodeError("a control record without its key of 4 bytes, or without a value")
    number = int.from_bytes(key[2:4], "big")
    if key[:2] != b"\0\0" or number not in CONTROL:
        raise UnknownSchemaError(f"control record of type {number}, key version {int.from_bytes(key[:2], 'big')}")
    name, table = CONTROL[number]
    version = int.from_bytes(value[:2], "big", signed=True)
    return name, table, version, decode_whole(table, version, value)
