"""Readers made from the tables: one closure a field, fixed-size neighbours unpacked in one go.

A reader takes (buffer, offset) and gives (value, offset after it).  Lengths are checked before anything is believed:
a slice never runs past the end, a count never exceeds what could fit into the bytes that are left.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from functools import cache
from typing import Any

from migrate.errors import DecodeError
from migrate.protocol.fields import (
    BOOL,
    BYTES,
    RECORDS,
    STRING,
    UNKNOWN_TAGS,
    UUID,
    Array,
    Field,
    Primitive,
    Struct,
    Values,
)
from migrate.protocol.primitives import MAX_STRING, read_uvarint, uuid_text

Reader = Callable[[bytes, int], tuple[Any, int]]
Part = Callable[[bytes, int, Values], int]


@cache
def struct_reader(table: Struct, version: int, *, flexible: bool) -> Callable[[bytes, int], tuple[Values, int]]:
    """A reader of that struct in that version."""
    present = [entry for entry in table.fields if version in entry.versions]
    parts = _parts([entry for entry in present if entry.tag is None], version, flexible=flexible)
    if flexible:
        parts.append(_tag_section([entry for entry in present if entry.tag is not None], version))

    def read(buffer: bytes, offset: int) -> tuple[Values, int]:
        values: Values = {}
        for part in parts:
            offset = part(buffer, offset, values)
        return values, offset

    return read


def _parts(fields: list[Field], version: int, *, flexible: bool) -> list[Part]:
    """One part a field, or one for each run of fields of fixed size."""
    parts: list[Part] = []
    run: list[tuple[str, Primitive]] = []
    for entry in fields:
        if isinstance(entry.type, Primitive) and entry.type.size:
            run.append((entry.name, entry.type))
            continue
        if run:
            parts.append(_fixed_run(run))
            run = []
        parts.append(_single(entry, version, flexible=flexible and not entry.classic))
    if run:
        parts.append(_fixed_run(run))
    return parts


def _fixed_run(run: list[tuple[str, Primitive]]) -> Part:
    layout = packing.Struct(">" + "".join("B" if kind is BOOL else kind.code for _, kind in run))
    names = [name for name, _ in run]
    flags = [name for name, kind in run if kind is BOOL]
    uuids = [name for name, kind in run if kind is UUID]
    size, unpack = layout.size, layout.unpack_from

    def part(buffer: bytes, offset: int, values: Values) -> int:
        values.update(zip(names, unpack(buffer, offset), strict=True))
        for name in uuids:
            values[name] = uuid_text(values[name])
        for name in flags:
            values[name] = values[name] != 0
        return offset + size

    return part


def _single(entry: Field, version: int, *, flexible: bool) -> Part:
    read = field_reader(entry, version, flexible=flexible)
    name = entry.name

    def part(buffer: bytes, offset: int, values: Values) -> int:
        values[name], offset = read(buffer, offset)
        return offset

    return part


def field_reader(entry: Field, version: int, *, flexible: bool) -> Reader:
    """A reader of the field's value; null only where the field may be null."""
    nullable = version in entry.nullable
    match entry.type:
        case Primitive():
            return _primitive(entry.type, entry.name, nullable=nullable, flexible=flexible)
        case Struct():
            return struct_reader(entry.type, version, flexible=flexible)
        case Array():
            return _array(entry.type, entry.name, version, nullable=nullable, flexible=flexible)


def _primitive(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Reader:
    if kind.size:
        return _fixed(kind)
    length = _length_reader("h" if kind is STRING else "i", name, nullable=nullable, flexible=flexible)
    if kind is STRING:
        return _string(name, length)
    assert kind in {BYTES, RECORDS}
    return _bytes(name, length)


def _fixed(kind: Primitive) -> Reader:
    layout = packing.Struct(">" + ("B" if kind is BOOL else kind.code))

    def read(buffer: bytes, offset: int) -> tuple[Any, int]:
        (value,) = layout.unpack_from(buffer, offset)
        if kind is UUID:
            value = uuid_text(value)
        elif kind is BOOL:
            value = value != 0
        return value, offset + layout.size

    return read


def _length_reader(code: str, name: str, *, nullable: bool, flexible: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Reads a length; -1 is null, and an error where null may not be."""
    layout = packing.Struct(">" + code)

    def read(buffer: bytes, offset: int) -> tuple[int, int]:
        start = offset
        if flexible:
            length, offset = read_uvarint(buffer, offset)
            length -= 1
        else:
            (length,) = layout.unpack_from(buffer, offset)
            offset += layout.size
        if length < 0 and (length < -1 or not nullable):
            raise DecodeError(f"{name} has the length {length}", where=f"byte {start}")
        return length, offset

    return read


def _string(name: str, length_of: Callable[[bytes, int], tuple[int, int]]) -> Reader:
    def read(buffer: bytes, offset: int) -> tuple[str | None, int]:
        length, start = length_of(buffer, offset)
        if length < 0:
            return None, start
        end = start + length
        if length > MAX_STRING or end > len(buffer):
            raise DecodeError(f"{name} says {length} bytes; {len(buffer) - start} are left", where=f"byte {offset}")
        try:
            return buffer[start:end].decode("utf-8"), end
        except UnicodeDecodeError as error:
            raise DecodeError(f"{name} is not UTF-8", where=f"byte {start}") from error

    return read


def _bytes(name: str, length_of: Callable[[bytes, int], tuple[int, int]]) -> Reader:
    def read(buffer: bytes, offset: int) -> tuple[bytes | None, int]:
        length, start = length_of(buffer, offset)
        if length < 0:
            return None, start
        end = start + length
        if end > len(buffer):
            raise DecodeError(f"{name} says {length} bytes; {len(buffer) - start} are left", where=f"byte {offset}")
        return bytes(buffer[start:end]), end

    return read


def _array(kind: Array, name: str, version: int, *, nullable: bool, flexible: bool) -> Reader:
    length_of = _length_reader("i", name, nullable=nullable, flexible=flexible)
    fixed = isinstance(kind.of, Primitive) and kind.of.size > 0
    smallest = kind.of.size if isinstance(kind.of, Primitive) and fixed else 1
    items = _fixed_items(kind.of) if isinstance(kind.of, Primitive) and fixed else _items(kind, name, version, flexible)

    def read(buffer: bytes, offset: int) -> tuple[list[Any] | None, int]:
        count, start = length_of(buffer, offset)
        if count < 0:
            return None, start
        if count * smallest > len(buffer) - start:
            raise DecodeError(
                f"{name} says {count} entries; {len(buffer) - start} bytes are left", where=f"byte {offset}"
            )
        return items(buffer, start, count)

    return read


def _fixed_items(kind: Primitive) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    def read(buffer: bytes, offset: int, count: int) -> tuple[list[Any], int]:
        end = offset + count * kind.size
        if kind is UUID:
            return [uuid_text(buffer[at : at + 16]) for at in range(offset, end, 16)], end
        return list(packing.unpack_from(f">{count}{kind.code}", buffer, offset)), end

    return read


def _items(kind: Array, name: str, version: int, flexible: bool) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    if isinstance(kind.of, Struct):
        read_item: Reader = struct_reader(kind.of, version, flexible=flexible)
    else:
        read_item = _primitive(kind.of, name, nullable=False, flexible=flexible)

    def read(buffer: bytes, offset: int, count: int) -> tuple[list[Any], int]:
        values = []
        for _ in range(count):
            value, offset = read_item(buffer, offset)
            values.append(value)
        return values, offset

    return read


def _tag_section(fields: list[Field], version: int) -> Part:
    """Tagged fields: ascending tags, each with its size.  A field at its default is left out, as if absent."""
    known = {entry.tag: (entry, field_reader(entry, version, flexible=True)) for entry in fields}
    defaults = {entry.name: entry.default_value(version) for entry in fields}

    def part(buffer: bytes, offset: int, values: Values) -> int:
        count, offset = read_uvarint(buffer, offset)
        last = -1
        for _ in range(count):
            start = offset
            tag, offset = read_uvarint(buffer, offset)
            size, offset = read_uvarint(buffer, offset)
            end = offset + size
            if tag <= last or end > len(buffer):
                raise DecodeError(f"the tagged field {tag} of {size} bytes cannot stand here", where=f"byte {start}")
            last = tag
            if tag not in known:
                values.setdefault(UNKNOWN_TAGS, {})[tag] = bytes(buffer[offset:end])
                offset = end
                continue
            entry, read = known[tag]
            value, offset = read(buffer, offset)
            if offset != end:
                raise DecodeError(f"the tagged field {entry.name} is not {size} bytes long", where=f"byte {start}")
            if value != defaults[entry.name]:
                values[entry.name] = value
        return offset

    return part
