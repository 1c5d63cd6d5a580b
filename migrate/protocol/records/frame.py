"""The frame around each metadata record: frame version 1, key, version (`AbstractApiMessageSerde.java`)."""

from __future__ import annotations

import re
import struct as packing
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.codec import encode
from migrate.protocol.fields import Struct, Values
from migrate.protocol.primitives import read_uvarint, write_uvarint
from migrate.protocol.reader import struct_reader
from migrate.protocol.records import brokers, security, settings, topics

FRAME_VERSION: Final = 1

RECORDS: Final[tuple[Struct, ...]] = tuple(
    sorted(
        (
            table
            for module in (brokers, topics, settings, security)
            for table in vars(module).values()
            if isinstance(table, Struct) and table.key >= 0
        ),
        key=lambda table: table.key,
    )
)
RECORDS_BY_KEY: Final[Mapping[int, Struct]] = MappingProxyType({table.key: table for table in RECORDS})


@cache
def type_name(table: Struct) -> str:
    """Kafka's name of the record's type: `PARTITION_CHANGE_RECORD`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", table.name).upper()


def decode_record(value: bytes | None) -> tuple[Struct, int, Values]:
    """Table, version and values of a metadata record's value.

    Raises UnknownSchemaError for a frame, key or version that Kafka 3.9 does not write, DecodeError for bytes that are
    cut short or go on after the record.
    """
    if value is None:
        raise DecodeError("a metadata record without a value")
    try:
        if (known := _plain_frames().get(value[:3])) is not None:
            values, end = known[2](value, 3)
            if end != len(value):
                raise _longer(known[0], known[1], len(value) - end)
            return known[0], known[1], values
        frame, offset = read_uvarint(value, 0)
        if frame != FRAME_VERSION:
            raise UnknownSchemaError(f"metadata record with frame version {frame} (known: {FRAME_VERSION})")
        key, offset = read_uvarint(value, offset)
        version, offset = read_uvarint(value, offset)
        table = RECORDS_BY_KEY.get(key)
        if table is None:
            raise UnknownSchemaError(f"metadata record of the unknown type {key}, version {version}")
        if version not in table.versions:
            raise UnknownSchemaError(f"{table.name} version {version} is unknown (known: {table.versions})")
        values, end = struct_reader(table, version, flexible=True)(value, offset)
    except (IndexError, packing.error) as error:
        raise DecodeError("a metadata record is cut short") from error
    if end != len(value):
        raise _longer(table, version, len(value) - end)
    return table, version, values


@cache
def _plain_frames() -> Mapping[bytes, tuple[Struct, int, Callable[[bytes, int], tuple[Values, int]]]]:
    """Frame, key and version as single bytes -> what reads such a record: every record of Kafka 3.9 is so framed."""
    return {
        bytes((FRAME_VERSION, table.key, version)): (table, version, struct_reader(table, version, flexible=True))
        for table in RECORDS
        for version in range(table.versions.low, table.versions.high + 1)
    }


def _longer(table: Struct, version: int, rest: int) -> DecodeError:
    return DecodeError(f"{table.name} version {version} is followed by {rest} bytes too many")


def encode_record(table: Struct, version: int, values: Values) -> bytes:
    """The value of a metadata record, frame included."""
    out = bytearray()
    for number in (FRAME_VERSION, table.key, version):
        write_uvarint(out, number)
    return bytes(out) + encode(table, version, values)
