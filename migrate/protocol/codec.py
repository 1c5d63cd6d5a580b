"""Decode and encode a struct of the tables in one of its versions: the two functions that others call."""

from __future__ import annotations

import struct as packing

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.fields import Struct, Values
from migrate.protocol.reader import struct_reader
from migrate.protocol.writer import struct_writer


def _check_version(table: Struct, version: int) -> bool:
    """Is that version flexible?  UnknownSchemaError if the table does not have it at all."""
    if version not in table.versions:
        raise UnknownSchemaError(f"{table.name} version {version} is unknown (known: {table.versions})")
    return version in table.flexible


def decode(table: Struct, version: int, buffer: bytes, offset: int = 0) -> tuple[Values, int]:
    """The values that begin at `offset`, and the offset after them.

    Tagged fields that are absent or at their default are left out of the values.  Raises DecodeError.
    """
    flexible = _check_version(table, version)
    try:
        return struct_reader(table, version, flexible=flexible)(buffer, offset)
    except (IndexError, packing.error) as error:
        raise DecodeError(f"{table.name} version {version} is cut short", where=f"byte {len(buffer)}") from error
    except DecodeError as error:
        raise DecodeError(f"{table.name} version {version}: {error.what}", where=error.where) from error


def decode_whole(table: Struct, version: int, buffer: bytes, offset: int = 0) -> Values:
    """The values that fill the buffer from `offset` to its end; a rest is a DecodeError."""
    values, end = decode(table, version, buffer, offset)
    if end != len(buffer):
        rest = len(buffer) - end
        raise DecodeError(f"{table.name} version {version} is followed by {rest} bytes too many", where=f"byte {end}")
    return values


def encode(table: Struct, version: int, values: Values) -> bytes:
    """The bytes of those values; fields that are left out stand as their defaults.  Raises EncodeError."""
    flexible = _check_version(table, version)
    out = bytearray()
    struct_writer(table, version, flexible=flexible)(out, values)
    return bytes(out)
