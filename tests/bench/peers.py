"""What our decoders are measured against: the loops that somebody would write by hand for exactly these files.

No tables, no versions but the ones that are met, no errors beyond an assertion: only the struct module, in the order in
which the bytes lie.  Each sums what the format sums (CRC-32C, Adler32), since no reader may leave that out.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c

BATCH = struct.Struct(">qiibIhiqqqhii")
PARTITION_HEAD = struct.Struct(">i16s")
PARTITION_TAIL = struct.Struct(">iiii")
I32 = struct.Struct(">i")
I64 = struct.Struct(">q")


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """An unsigned one."""
    byte = raw[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7


def zigzag(raw: bytes, at: int) -> tuple[int, int]:
    """A signed one."""
    value, at = varint(raw, at)
    return (value >> 1) ^ -(value & 1), at


def text_of(raw: bytes, known: dict[bytes, str]) -> str:
    """A UUID as text; the same ones come again and again."""
    found = known.get(raw)
    if found is None:
        found = known[raw] = base64.urlsafe_b64encode(raw)[:22].decode()
    return found


def metadata_records(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(type, version, values) of each metadata record of a snapshot with features, topics and partitions."""
    known: dict[bytes, str] = {}
    with path.open("rb") as file:
        while head := file.read(12):
            raw = head + file.read(I32.unpack_from(head, 8)[0])
            _, _, _, magic, crc, attributes, _, _, _, _, _, _, count = BATCH.unpack_from(raw)
            assert magic == 2
            assert google_crc32c.value(raw[21:]) == crc
            at = BATCH.size
            if attributes & 0x20:
                continue
            for _ in range(count):
                length, at = zigzag(raw, at)
                end = at + length
                _, at = zigzag(raw, at + 1)  # attributes; timestamp delta
                _, at = zigzag(raw, at)  # offset delta
                _, at = zigzag(raw, at)  # no key
                _, at = zigzag(raw, at)  # length of the value
                _, at = varint(raw, at)  # frame version
                kind, at = varint(raw, at)
                version, at = varint(raw, at)
                if kind == 3:
                    yield kind, version, partition(raw, at, known)
                elif kind == 2:
                    length, at = varint(raw, at)
                    name = raw[at : at + length - 1].decode()
                    at += length - 1
                    yield kind, version, {"name": name, "topicId": text_of(raw[at : at + 16], known)}
                else:
                    assert kind == 12
                    length, at = varint(raw, at)
                    name = raw[at : at + length - 1].decode()
                    (level,) = struct.unpack_from(">h", raw, at + length - 1)
                    yield kind, version, {"name": name, "featureLevel": level}
                at = end


def partition(raw: bytes, at: int, known: dict[bytes, str]) -> dict[str, Any]:
    """A PartitionRecord of version 1 without tags."""
    number, topic = PARTITION_HEAD.unpack_from(raw, at)
    at += 20
    lists = []
    for _ in range(4):
        count, at = varint(raw, at)
        lists.append(list(struct.unpack_from(f">{count - 1}i", raw, at)))
        at += 4 * (count - 1)
    leader, leader_epoch, epoch = struct.unpack_from(">iii", raw, at)
    count, at = varint(raw, at + 12)
    directories = [text_of(raw[start : start + 16], known) for start in range(at, at + 16 * (count - 1), 16)]
    replicas, isr, removing, adding = lists
    return {
        "partitionId": number,
        "topicId": text_of(topic, known),
        "replicas": replicas,
        "isr": isr,
        "removingReplicas": removing,
        "addingReplicas": adding,
        "leader": leader,
        "leaderEpoch": leader_epoch,
        "partitionEpoch": epoch,
        "directories": directories,
    }


def snapshot_znodes(path: Path) -> dict[str, tuple[bytes | None, int, bytes]]:
    """(data, number of its ACL, stat) of each znode of a ZooKeeper snapshot, by path."""
    raw = path.read_bytes()
    at = 16
    (sessions,) = I32.unpack_from(raw, at)
    at += 4 + 12 * sessions
    (lists,) = I32.unpack_from(raw, at)
    at += 4
    for _ in range(lists):
        (entries,) = I32.unpack_from(raw, at + 8)
        at += 12
        for _ in range(entries):
            at += 4
            for _ in range(2):
                (length,) = I32.unpack_from(raw, at)
                at += 4 + length
    found: dict[str, tuple[bytes | None, int, bytes]] = {}
    while True:
        (length,) = I32.unpack_from(raw, at)
        at += 4
        name = raw[at : at + length].decode()
        at += length
        if name == "/":
            break
        (length,) = I32.unpack_from(raw, at)
        at += 4
        data = None
        if length >= 0:
            data = raw[at : at + length]
            at += length
        (acl,) = I64.unpack_from(raw, at)
        found[name] = (data, acl, raw[at + 8 : at + 68])
        at += 68
    assert zlib.adler32(raw[:at]) == I64.unpack_from(raw, at)[0]
    return found
