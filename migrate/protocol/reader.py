"""Decode structs: readers are compiled from the schema once, with one closure per field or run of fixed-size fields.

A reader takes (buffer, offset) and returns (value, offset after it).  It checks lengths before it uses them: a slice
never runs past the end, and a count never exceeds what fits into the bytes that are left.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from migrate.errors import DecodeError
from migrate.protocol.loader import (
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
MOST_UNROLLED: Final = 3  # fields of a run that are set one by one
UNKNOWN_AT_MOST: Final = 100  # tagged fields of a structure that are not known: Kafka has three in all
MOST_PREPARED: Final = 32  # below 0x7f: lengths of arrays whose layout is prepared


def decode(table: Struct, version: int, buffer: bytes, offset: int = 0) -> tuple[Values, int]:
    """Return the values that begin at `offset`, and the offset after them.

    Tagged fields that are absent or at their default are left out of the values.  Raises DecodeError.
    """
    flexible = table.is_flexible(version)
    try:
        return struct_reader(table, version, flexible=flexible)(buffer, offset)
    except (IndexError, packing.error) as error:
        raise DecodeError(f"{table.name} version {version} is cut short", where=f"byte {len(buffer)}") from error
    except DecodeError as error:
        raise DecodeError(f"{table.name} version {version}: {error.what}", where=error.where) from error


def decode_whole(table: Struct, version: int, buffer: bytes, offset: int = 0) -> Values:
    """Return the values from `offset` to the end of the buffer.  Raises DecodeError, also where bytes follow them."""
    values, end = decode(table, version, buffer, offset)
    if end != len(buffer):
        rest = len(buffer) - end
        raise DecodeError(f"{table.name} version {version} is followed by {rest} bytes too many", where=f"byte {end}")
    return values


@cache
def struct_reader(table: Struct, version: int, *, flexible: bool) -> Callable[[bytes, int], tuple[Values, int]]:
    """Compile a reader of that struct in that version."""
    present = [entry for entry in table.fields if version in entry.versions]
    parts = _parts([entry for entry in present if version not in entry.tagged], version, flexible=flexible)
    if flexible:
        parts.append(_tag_section([entry for entry in present if version in entry.tagged], version))

    def read(buffer: bytes, offset: int) -> tuple[Values, int]:
        values: Values = {}
        for part in parts:
            offset = part(buffer, offset, values)
        return values, offset

    return read


def _parts(fields: list[Field], version: int, *, flexible: bool) -> list[Part]:
    """Make one part per field, or per run of fields of fixed size."""
    parts: list[Part] = []
    run: list[tuple[str, Primitive]] = []
    for entry in fields:
        if isinstance(entry.type, Primitive) and entry.type.size:
            run.append((entry.name, entry.type))
            continue
        if run:
            parts.append(_fixed_run(run))
            run = []
        parts.append(_single(entry, version, flexible=flexible and version in entry.flexible))
    if run:
        parts.append(_fixed_run(run))
    return parts


def _fixed_run(run: list[tuple[str, Primitive]]) -> Part:
    layout = packing.Struct(">" + "".join("B" if kind is BOOL else kind.code for _, kind in run))
    names = [name for name, _ in run]
    made: list[tuple[str, Callable[[Any], Any]]] = [
        (name, uuid_text if kind is UUID else bool) for name, kind in run if kind in {UUID, BOOL}
    ]
    size, unpack = layout.size, layout.unpack_from

    def part(buffer: bytes, offset: int, values: Values) -> int:
        values.update(zip(names, unpack(buffer, offset), strict=False))  # equally many by construction
        for name, make in made:
            values[name] = make(values[name])
        return offset + size

    return _short_run(names, made, layout) if len(names) <= MOST_UNROLLED else part


def _short_run(names: list[str], made: list[tuple[str, Callable[[Any], Any]]], layout: packing.Struct) -> Part:
    """Do the same for up to three fields without pairs, as most runs of most records have."""
    first, second, third = (*names, "", "")[:MOST_UNROLLED]
    size, unpack, number = layout.size, layout.unpack_from, len(names)

    def part(buffer: bytes, offset: int, values: Values) -> int:
        if number == 3:
            values[first], values[second], values[third] = unpack(buffer, offset)
        elif number == 2:
            values[first], values[second] = unpack(buffer, offset)
        else:
            (values[first],) = unpack(buffer, offset)
        for name, make in made:
            values[name] = make(values[name])
        return offset + size

    return part


def _single(entry: Field, version: int, *, flexible: bool) -> Part:
    kind, nullable = entry.type, version in entry.nullable
    if flexible and isinstance(kind, Array) and isinstance(kind.of, Primitive) and kind.of.size:
        return _compact_numbers(entry.name, kind.of, nullable=nullable)
    read = _field_reader(entry, version, flexible=flexible)
    name = entry.name

    def part(buffer: bytes, offset: int, values: Values) -> int:
        values[name], offset = read(buffer, offset)
        return offset

    return part


def _compact_numbers(name: str, kind: Primitive, *, nullable: bool) -> Part:
    """Read a compact array of fixed-size values at once: most bytes are replicas, ISRs and directories."""
    length_of = _length_reader("i", name, nullable=nullable, flexible=True)
    items, size, is_uuid = _fixed_items(kind), kind.size, kind is UUID
    unpack = [packing.Struct(f">{count}{kind.code}").unpack_from for count in range(MOST_PREPARED)]

    def part(buffer: bytes, offset: int, values: Values) -> int:
        count = buffer[offset] - 1
        if 0 <= count < MOST_PREPARED:  # one byte, not null
            start = offset + 1
        else:
            count, start = length_of(buffer, offset)
            if count < 0:
                values[name] = None
                return start
        end = start + count * size
        if end > len(buffer):
            raise _too_many(name, count, len(buffer) - start, offset)
        if is_uuid or count >= MOST_PREPARED:
            values[name], _ = items(buffer, start, count)
        else:
            values[name] = list(unpack[count](buffer, start))
        return end

    return part


def _too_many(name: str, count: int, left: int, offset: int) -> DecodeError:
    return DecodeError(f"{name} says {count} entries; {left} bytes are left", where=f"byte {offset}")


def _field_reader(entry: Field, version: int, *, flexible: bool) -> Reader:
    """Compile a reader of the field's value, which is null only where the field may be null."""
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
    """Compile a reader of a length; -1 means null, and is an error where the field may not be null."""
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
            raise _too_many(name, count, len(buffer) - start, offset)
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
    """Read tagged fields: ascending tags, each with its size.  One at its default is left out, as if it were absent."""
    known = {entry.tag: (entry, _field_reader(entry, version, flexible=True)) for entry in fields}
    defaults = {entry.name: entry.default_value(version) for entry in fields}
    most = UNKNOWN_AT_MOST + len(known)

    def part(buffer: bytes, offset: int, values: Values) -> int:
        if not buffer[offset]:
            return offset + 1
        count, offset = read_uvarint(buffer, offset)
        if count > most:
            raise DecodeError(f"{count} tagged fields; at most {most} are read", where=f"byte {offset}")
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
