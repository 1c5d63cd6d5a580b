"""Varints and UUIDs, the parts of Kafka's wire format that `struct` lacks (`ByteUtils.java`, `Uuid.java`).

Functions that read take a whole buffer and an offset.  They raise IndexError past its end; callers turn that into a
DecodeError.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache

from migrate.errors import DecodeError, EncodeError

MAX_STRING = 0x7FFF  # bytes: Kafka refuses longer ones on both sides


def read_uvarint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Return an unsigned 32-bit varint and the offset after it."""
    byte = buffer[offset]
    if byte < 0x80:
        return byte, offset + 1
    value, start = byte & 0x7F, offset
    offset += 1
    byte = buffer[offset]
    if byte < 0x80:
        return value | byte << 7, offset + 1
    value |= (byte & 0x7F) << 7
    shift = 14
    while True:
        offset += 1
        byte = buffer[offset]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("a varint is longer than 5 bytes", where=f"byte {start}")
    if value > 0xFFFFFFFF:
        raise DecodeError("a varint does not fit into 32 bits", where=f"byte {start}")
    return value, offset + 1


def read_varlong(buffer: bytes, offset: int) -> tuple[int, int]:
    """Return a zigzag 64-bit varint and the offset after it."""
    value, shift, start = 0, 0, offset
    while True:
        byte = buffer[offset]
        value |= (byte & 0x7F) << shift
        offset += 1
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise DecodeError("a varlong is longer than 10 bytes", where=f"byte {start}")
    if value > 0xFFFFFFFFFFFFFFFF:
        raise DecodeError("a varlong does not fit into 64 bits", where=f"byte {start}")
    return (value >> 1) ^ -(value & 1), offset


def read_varint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Return a zigzag 32-bit varint and the offset after it."""
    byte = buffer[offset]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), offset + 1
    value, offset = read_uvarint(buffer, offset)
    return (value >> 1) ^ -(value & 1), offset


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


@lru_cache(maxsize=1 << 17)
def uuid_text(raw: bytes) -> str:
    """Return the 22 characters of a UUID's 16 bytes.  Cached: ids of topics and directories repeat."""
    return base64.urlsafe_b64encode(raw)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise EncodeError(f"{text!r} is no Kafka UUID") from error
    if len(raw) != 16 or uuid_text(raw) != text:
        raise EncodeError(f"{text!r} is no Kafka UUID")
    return raw
