"""Encode structs: the inverse of `reader`, byte for byte.

A field that the values leave out is written as its default.  A value for a field that the version lacks is an error,
unless Kafka calls the field ignorable or the value is the default, as in Kafka's generated classes.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from functools import cache
from typing import Any

from migrate.errors import EncodeError
from migrate.protocol.loader import (
    BOOL,
    BYTES,
    FLOAT64,
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
from migrate.protocol.primitives import MAX_STRING, uuid_bytes, write_uvarint

Writer = Callable[[bytearray, Any], None]


def encode(table: Struct, version: int, values: Values) -> bytes:
    """Return the bytes of those values.  Raises EncodeError."""
    out = bytearray()
    struct_writer(table, version, flexible=table.is_flexible(version))(out, values)
    return bytes(out)


@cache
def struct_writer(table: Struct, version: int, *, flexible: bool) -> Writer:
    """Compile a writer of that struct in that version."""
    writers = {
        entry.name: _field_writer(entry, version, flexible=flexible and version in entry.flexible)
        for entry in table.fields
        if version in entry.versions
    }
    plain = [entry for entry in table.fields if entry.name in writers and version not in entry.tagged]
    tagged = [entry for entry in table.fields if entry.name in writers and version in entry.tagged]
    fields = {entry.name: entry for entry in table.fields}

    def write(out: bytearray, values: Any) -> None:
        if not isinstance(values, dict):
            raise EncodeError(f"{table.name}: {type(values).__name__} where fields are expected")
        for name in values:
            if name not in writers:
                _check_absent(table, fields.get(name), name, values, version)
        for entry in plain:
            value = values[entry.name] if entry.name in values else entry.default_value(version)
            writers[entry.name](out, value)
        if flexible:
            _write_tags(out, tagged, writers, values, version)

    return write


def _check_absent(table: Struct, entry: Field | None, name: str, values: Values, version: int) -> None:
    if name == UNKNOWN_TAGS:
        return
    if entry is None:
        raise EncodeError(f"{table.name} has no field {name}")
    if not entry.ignorable and values[name] != entry.default_value(version):
        raise EncodeError(f"{table.name} version {version} has no field {name}")


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
    """Compile a writer of the field's value, which is null only where the field may be null."""
    nullable = version in entry.nullable
    match entry.type:
        case Primitive():
            return _primitive(entry.type, entry.name, nullable=nullable, flexible=flexible)
        case Struct():
            return struct_writer(entry.type, version, flexible=flexible)
        case Array():
            return _array(entry.type, entry.name, version, nullable=nullable, flexible=flexible)


def _primitive(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Writer:
    if kind is UUID:

        def write_uuid(out: bytearray, value: Any) -> None:
            out += uuid_bytes(value)

        return write_uuid
    if kind.size:
        return _fixed(kind, name)
    assert kind in {STRING, BYTES, RECORDS}
    return _sized(kind, name, nullable=nullable, flexible=flexible)


def _fixed(kind: Primitive, name: str) -> Writer:
    layout = packing.Struct(">" + kind.code)
    expected: tuple[type, ...] = (bool,) if kind is BOOL else (float, int) if kind is FLOAT64 else (int,)

    def write(out: bytearray, value: Any) -> None:
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


def _sized(kind: Primitive, name: str, *, nullable: bool, flexible: bool) -> Writer:
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


def _array(kind: Array, name: str, version: int, *, nullable: bool, flexible: bool) -> Writer:
    if isinstance(kind.of, Struct):
        write_item = struct_writer(kind.of, version, flexible=flexible)
    else:
        write_item = _primitive(kind.of, name, nullable=False, flexible=flexible)

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
