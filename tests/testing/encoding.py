"""Encode what the package only decodes: record batches, metadata and control records, responses of a node."""

from __future__ import annotations

import struct as packing
from collections.abc import Iterable

import google_crc32c

from migrate.protocol import messages
from migrate.protocol.batches import CONTROL, MAGIC
from migrate.protocol.codec import decode, decode_whole, encode
from migrate.protocol.loader import Struct, Values, load
from migrate.protocol.messages import Api, response_header_version
from migrate.protocol.primitives import write_uvarint
from migrate.protocol.records import CONTROL as CONTROL_RECORDS
from migrate.protocol.records import FRAME_VERSION

APIS = {api.name: api for api in vars(messages).values() if isinstance(api, Api)}
CONTROL_TYPES = {name: (number, table) for number, (name, table) in CONTROL_RECORDS.items()}


def write_varlong(out: bytearray, value: int) -> None:
    """Append a zigzag varint; 32 and 64 bits have the same bytes."""
    write_uvarint(out, (value << 1) ^ (value >> 63))


def encode_record(table: Struct, version: int, values: Values) -> bytes:
    """The value of a metadata record, frame included."""
    out = bytearray()
    for number in (FRAME_VERSION, table.key, version):
        write_uvarint(out, number)
    return bytes(out) + encode(table, version, values)


def encode_control(name: str, values: Values) -> tuple[bytes, bytes]:
    """Key and value of a control record of that type name."""
    number, table = CONTROL_TYPES[name]
    return bytes([0, 0, 0, number]), encode(table, values["version"], values)


def build(
    base_offset: int,
    epoch: int,
    records: Iterable[tuple[bytes | None, bytes | None]],
    *,
    control: bool = False,
    timestamp: int = 0,
) -> bytes:
    """The bytes of a batch with these (key, value) records, as Kafka's raft client writes it."""
    body, count = bytearray(), 0
    for key, value in records:
        one = bytearray([0, 0])  # attributes, timestamp delta
        write_varlong(one, count)
        for part in (key, value):
            write_varlong(one, -1 if part is None else len(part))
            one += part or b""
        one.append(0)  # headers
        write_varlong(body, len(one))
        body += one
        count += 1
    attributes = CONTROL if control else 0
    tail = packing.pack(">hiqqqhii", attributes, count - 1, timestamp, timestamp, -1, -1, -1, count) + bytes(body)
    head = packing.pack(">qiibI", base_offset, len(tail) + 9, epoch, MAGIC, google_crc32c.value(tail))
    return head + tail


def decode_request(api: Api, buffer: bytes) -> tuple[int, int, Values]:
    """Version, correlation id and body of a request."""
    version = int.from_bytes(buffer[2:4], "big")
    header, offset = decode(load("RequestHeader"), 2 if api.request.is_flexible(version) else 1, buffer)
    return version, header["correlationId"], decode_whole(api.request, version, buffer, offset)


def encode_response(api: Api, version: int, correlation_id: int, body: Values) -> bytes:
    """Header and body of a response."""
    header = encode(load("ResponseHeader"), response_header_version(api, version), {"correlationId": correlation_id})
    return header + encode(api.response, version, body)
