"""Control records: leader changes, the first and last record of a snapshot, KIP-853's voters and kraft.version.

The key is (version i16, type i16); the value begins with its own version, which is the schema's version.
Source: `ControlRecordType.java`, `ControlRecordUtils.java`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.codec import decode_whole, encode
from migrate.protocol.fields import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Struct,
    Values,
    field,
    message,
    struct,
)

_VOTER: Final = struct("Voter", field("voterId", INT32), field("voterDirectoryId", UUID, "1+"))

LEADER_CHANGE: Final = message(
    "LeaderChangeMessage",
    -1,
    "0-1",
    "0+",
    field("version", INT16),
    field("leaderId", INT32),
    field("voters", Array(_VOTER)),
    field("grantingVoters", Array(_VOTER)),
)
SNAPSHOT_HEADER: Final = message(
    "SnapshotHeaderRecord", -1, "0", "0+", field("version", INT16), field("lastContainedLogTimestamp", INT64)
)
SNAPSHOT_FOOTER: Final = message("SnapshotFooterRecord", -1, "0", "0+", field("version", INT16))
KRAFT_VERSION: Final = message(
    "KRaftVersionRecord", -1, "0", "0+", field("version", INT16), field("kRaftVersion", INT16)
)
KRAFT_VOTERS: Final = message(
    "VotersRecord",
    -1,
    "0",
    "0+",
    field("version", INT16),
    field(
        "voters",
        Array(
            struct(
                "Voter",
                field("voterId", INT32),
                field("voterDirectoryId", UUID),
                field(
                    "endpoints",
                    Array(struct("Endpoint", field("name", STRING), field("host", STRING), field("port", UINT16))),
                ),
                field(
                    "kRaftVersionFeature",
                    struct(
                        "KRaftVersionFeature", field("minSupportedVersion", INT16), field("maxSupportedVersion", INT16)
                    ),
                ),
            )
        ),
    ),
)

CONTROL: Final[Mapping[int, tuple[str, Struct]]] = MappingProxyType(
    {
        2: ("LEADER_CHANGE", LEADER_CHANGE),
        3: ("SNAPSHOT_HEADER", SNAPSHOT_HEADER),
        4: ("SNAPSHOT_FOOTER", SNAPSHOT_FOOTER),
        5: ("KRAFT_VERSION", KRAFT_VERSION),
        6: ("KRAFT_VOTERS", KRAFT_VOTERS),
    }
)
CONTROL_TYPES: Final[Mapping[str, int]] = MappingProxyType({name: key for key, (name, _) in CONTROL.items()})


def decode_control(key: bytes | None, value: bytes | None) -> tuple[str, Struct, int, Values]:
    """Type name, table, version and values of a control record."""
    if key is None or len(key) != 4 or value is None or len(value) < 2:
        raise DecodeError("a control record without its key of 4 bytes, or without a value")
    number = int.from_bytes(key[2:4], "big")
    if key[:2] != b"\0\0" or number not in CONTROL:
        raise UnknownSchemaError(f"control record of type {number}, key version {int.from_bytes(key[:2], 'big')}")
    name, table = CONTROL[number]
    version = int.from_bytes(value[:2], "big", signed=True)
    return name, table, version, decode_whole(table, version, value)


def encode_control(name: str, values: Values) -> tuple[bytes, bytes]:
    """Key and value of a control record of that type name."""
    number = CONTROL_TYPES[name]
    return bytes([0, 0, 0, number]), encode(CONTROL[number][1], values["version"], values)
