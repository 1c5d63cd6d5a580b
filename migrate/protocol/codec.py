"""Decode and encode structs: compiled from the schema once, with one closure per field or run of fixed-size fields.

A reader takes (buffer, offset) and returns (value, offset after it).  It checks lengths before it uses them: a slice
never runs past the end, and a count never exceeds what fits into the bytes that are left.

A writer is its inverse, byte for byte.  A field that the values leave out is written as its default.  A value for a
field that the version lacks is an error, unless Kafka calls the field ignorable or the value is the default, as in
Kafka's generated classes.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from migrate.errors import DecodeError, EncodeError
from migrate.protocol.loader import BOOL, FLOAT64, STRING, UNKNOWN_TAGS, UUID, Array, Field, Primitive, Struct, Values
from migrate.protocol.primitives import MAX_STRING, read_uvarint, uuid_bytes, uuid_text, write_uvarint

Reader = Callable[[bytes, int], tuple[Any, int]]
Part = Callable[[bytes, int, Values], int]
Writer = Callable[[bytearray, Any], None]
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
    present = [entry for entry in table.fields if version in entry.versions]
    parts: list[Part] = []
    run: list[Field] = []  # of fixed size
    for entry in (entry for entry in present if version not in entry.tagged):
        if isinstance(entry.type, Primitive) and entry.type.size:
            run.append(entry)
            continue
        if run:
            parts.append(_fixed_run(run))
            run = []
        parts.append(_single(entry, version, flexible=flexible and version in entry.flexible))
    if run:
        parts.append(_fixed_run(run))
    if flexible:
        parts.append(_tag_section([entry for entry in present if version in entry.tagged], version))

    def read(buffer: bytes, offset: int) -> tuple[Values, int]:
        values: Values = {}
        for part in parts:
            offset = part(buffer, offset, values)
        return values, offset

    return read


def _fixed_run(run: list[Field]) -> Part:
    """Up to three fields are set without pairs: most runs of most records have no more."""
    kinds = {entry.name: entry.type for entry in run if isinstance(entry.type, Primitive)}
    layout = packing.Struct(">" + "".join("B" if kind is BOOL else kind.code for kind in kinds.values()))
    names, number, size, unpack = [*kinds], len(kinds), layout.size, layout.unpack_from
    made: list[tuple[str, Callable[[Any], Any]]] = [
        (name, uuid_text if kind is UUID else bool) for name, kind in kinds.items() if kind in {UUID, BOOL}
    ]
    first, second, third = (*names, "", "")[:MOST_UNROLLED]

    def part(buffer: bytes, offset: int, values: Values) -> int:
        if number == 1:
            (values[first],) = unpack(buffer, offset)
        elif number == 2:
            values[first], values[second] = unpack(buffer, offset)
        elif number == 3:
            values[first], values[second], values[third] = unpack(buffer, offset)
        else:
            values.update(zip(names, unpack(buffer, offset), strict=False))  # equally many by construction
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
    size, is_uuid = kind.size, kind is UUID
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
            values[name] = _fixed_items(kind, buffer, start, count)
        else:
            values[name] = list(unpack[count](buffer, start))
        return end

    return part


def _too_many(name: str, count: int, left: int, offset: int) -> DecodeError:
    return DecodeError(f"{name} says {count} entries; {left} bytes are left", where=f"byte {offset}")


def _field_reader(entry: Field, version: int, *, flexible: bool) -> Reader:
    nullable = version in entry.nullable
    match entry.type:
        case Primitive():
            return _primitive_reader(entry.type, entry.name, nullable=nullable, flexible=flexible)
        case Struct():
            return struct_reader(entry.type, version, flexible=flexible)
        case Array():
            return _array_reader(entry.type, entry.name, version, nullable=nullable, flexible=flexible)


def _primitive_reader(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Reader:
    is_text, layout = kind is STRING, packing.Struct(">" + ("B" if kind is BOOL else kind.code))
    length_of = _length_reader("h" if is_text else "i", name, nullable=nullable, flexible=flexible)

    def read_fixed(buffer: bytes, offset: int) -> tuple[Any, int]:
        (value,) = layout.unpack_from(buffer, offset)
        if kind is UUID:
            value = uuid_text(value)
        elif kind is BOOL:
            value = value != 0
        return value, offset + layout.size

    def read(buffer: bytes, offset: int) -> tuple[str | bytes | None, int]:
        length, start = length_of(buffer, offset)
        if length < 0:
            return None, start
        end = start + length
        if end > len(buffer) or (is_text and length > MAX_STRING):
            raise DecodeError(f"{name} says {length} bytes; {len(buffer) - start} are left", where=f"byte {offset}")
        if not is_text:
            return bytes(buffer[start:end]), end
        try:
            return buffer[start:end].decode("utf-8"), end
        except UnicodeDecodeError as error:
            raise DecodeError(f"{name} is not UTF-8", where=f"byte {start}") from error

    return read_fixed if kind.size else read


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


def _array_reader(kind: Array, name: str, version: int, *, nullable: bool, flexible: bool) -> Reader:
    length_of = _length_reader("i", name, nullable=nullable, flexible=flexible)
    of = kind.of
    fixed = of if isinstance(of, Primitive) and of.size else None
    if isinstance(of, Struct):
        read_item: Reader = struct_reader(of, version, flexible=flexible)
    else:
        read_item = _primitive_reader(of, name, nullable=False, flexible=flexible)

    def read(buffer: bytes, offset: int) -> tuple[list[Any] | None, int]:
        count, start = length_of(buffer, offset)
        if count < 0:
            return None, start
        if count * (1 if fixed is None else fixed.size) > len(buffer) - start:
            raise _too_many(name, count, len(buffer) - start, offset)
        if fixed is not None:
            return _fixed_items(fixed, buffer, start, count), start + count * fixed.size
        values = []
        for _ in range(count):
            value, start = read_item(buffer, start)
            values.append(value)
        return values, start

    return read


def _fixed_items(kind: Primitive, buffer: bytes, offset: int, count: int) -> list[Any]:
    if kind is UUID:
        return [uuid_text(buffer[at : at + 16]) for at in range(offset, offset + 16 * count, 16)]
    return list(packing.unpack_from(f">{count}{kind.code}", buffer, offset))


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
                raise DecodeError(f"the tagged field {tag} of {size} bytes is not allowed here", where=f"byte {start}")
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


# -- encoding ----------------------------------------------------------------------------------------------------
def encode(table: Struct, version: int, values: Values) -> bytes:
    """Return the bytes of those values.  Raises EncodeError."""
    out = bytearray()
    struct_writer(table, version, flexible=table.is_flexible(version))(out, values)
    return bytes(out)


@cache
def struct_writer(table: Struct, version: int, *, flexible: bool) -> Writer:
    writers = {
        entry.name: _field_writer(entry, version, flexible=flexible and version in entry.flexible)
        for entry in table.fields
        if version in entry.versions
    }
    present = [entry for entry in table.fields if entry.name in writers]
    tagged = [entry for entry in present if version in entry.tagged]
    fields = {entry.name: entry for entry in table.fields}

    def write(out: bytearray, values: Any) -> None:
        if not isinstance(values, dict):
            raise EncodeError(f"{table.name}: {type(values).__name__} where fields are expected")
        for name in values:
            if name in writers or name == UNKNOWN_TAGS:
                continue
            if name not in fields:
                raise EncodeError(f"{table.name} has no field {name}")
            if not fields[name].ignorable and values[name] != fields[name].default_value(version):
                raise EncodeError(f"{table.name} version {version} has no field {name}")
        for entry in present:
            if version not in entry.tagged:
                value = values[entry.name] if entry.name in values else entry.default_value(version)
                writers[entry.name](out, value)
        if flexible:
            _write_tags(out, tagged, writers, values, version)

    return write


def _write_tags(out: bytearray, tagged: list[Field], writers: dict[str, Writer], values: Values, version: int) -> None:
    """Write tagged fields that differ from their default, and unknown ones as they were read, by ascending tag."""
    found: dict[int, bytes] = dict(values.get(UNKNOWN_TAGS, {}))
    for entry in tagged:
        if entry.name not in values or values[entry.name] == entry.default_value(version):
            continue
        body = bytearray()
        writers[entry.name](body, values[entry.name])
        found[entry.tag] = bytes(body)
    write_uvarint(out, len(found))
    for tag in sorted(found):
        write_uvarint(out, tag)
        write_uvarint(out, len(found[tag]))
        out += found[tag]


def _field_writer(entry: Field, version: int, *, flexible: bool) -> Writer:
    nullable = version in entry.nullable
    match entry.type:
        case Primitive():
            return _primitive_writer(entry.type, entry.name, nullable=nullable, flexible=flexible)
        case Struct():
            return struct_writer(entry.type, version, flexible=flexible)
        case Array():
            return _array_writer(entry.type, entry.name, version, nullable=nullable, flexible=flexible)


def _primitive_writer(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Writer:
    if not kind.size:
        return _sized_writer(kind, name, nullable=nullable, flexible=flexible)
    layout = packing.Struct(">" + kind.code)
    expected: tuple[type, ...] = (bool,) if kind is BOOL else (float, int) if kind is FLOAT64 else (int,)

    def write(out: bytearray, value: Any) -> None:
        if kind is UUID:
            out += uuid_bytes(value)
            return
        if not isinstance(value, expected) or (kind is not BOOL and isinstance(value, bool)):
            raise EncodeError(f"{name} is {type(value).__name__}, not {kind.name}")
        try:
            out += layout.pack(value)
        except (packing.error, OverflowError) as error:
            raise EncodeError(f"{name}: the value does not fit {kind.name}") from error

    return write


def _write_length(out: bytearray, length: int, code: str, name: str, *, nullable: bool, flexible: bool) -> None:
    if length < 0 and not nullable:
        raise EncodeError(f"{name} may not be null")
    if flexible:
        write_uvarint(out, length + 1)
    else:
        out += packing.pack(">" + code, length)


def _sized_writer(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Writer:
    code = "h" if kind is STRING else "i"

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            _write_length(out, -1, code, name, nullable=nullable, flexible=flexible)
            return
        if not isinstance(value, str if kind is STRING else bytes):
            raise EncodeError(f"{name} is {type(value).__name__}, not {kind.name}")
        try:
            raw = value.encode("utf-8") if isinstance(value, str) else value
        except UnicodeEncodeError as error:
            raise EncodeError(f"{name} cannot be written as UTF-8") from error
        if kind is STRING and len(raw) > MAX_STRING:
            raise EncodeError(f"{name} has {len(raw)} bytes; at most {MAX_STRING} may be sent")
        _write_length(out, len(raw), code, name, nullable=nullable, flexible=flexible)
        out += raw

    return write


def _array_writer(kind: Array, name: str, version: int, *, nullable: bool, flexible: bool) -> Writer:
    if isinstance(kind.of, Struct):
        write_item = struct_writer(kind.of, version, flexible=flexible)
    else:
        write_item = _primitive_writer(kind.of, name, nullable=False, flexible=flexible)

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            _write_length(out, -1, "i", name, nullable=nullable, flexible=flexible)
            return
        if not isinstance(value, list | tuple):
            raise EncodeError(f"{name} is {type(value).__name__}, not a list")
        _write_length(out, len(value), "i", name, nullable=nullable, flexible=flexible)
        for item in value:
            write_item(out, item)

    return write
