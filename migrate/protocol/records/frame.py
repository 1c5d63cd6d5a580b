"""The frame around each metadata record: frame version 1, key, version (`AbstractApiMessageSerde.java`)."""

from __future__ import annotations

import re
import struct as packing
from collections.abc import Mapping
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
        raise DecodeError(f"{table.name} version {version} is followed by {len(value) - end} bytes too many")
    return table, version, values


def encode_record(table: Struct, version: int, values: Values) -> bytes:
    """The value of a metadata record, frame included."""
    out = bytearray()
    for number in (FRAME_VERSION, table.key, version):
        write_uvarint(out, number)
    return bytes(out) + encode(table, version, values)
