"""Frozen values to JSON and back, without loss and without guessing: one codec for all of `migrate.model`.

A dataclass becomes an object with its class's name under `$`, a mapping a list of pairs (keys keep their type), a set a
sorted list, an enum its name, bytes base64.  Plans and notes of a run have a plain form: objects without a class, enums
by value or label.  What is read is held against the declared types: a missing or unknown field, another type, columns
of different lengths are `NotDecodable`, with the place.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import math
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from migrate.model.columns import EntityColumns, PartitionColumns, ReplicaColumns
from migrate.model.ids import KafkaUuid
from migrate.model.loader import CURRENT, DELETED, FUTURE, STRAY

CLASS: Final = "$"
REPLICA_KINDS: Final = {CURRENT, FUTURE, DELETED, STRAY}
MOST: Final = 2**63 - 1  # of a number in a column: tables of numbers have 64 bits
COLUMNS: Final = (PartitionColumns, EntityColumns, ReplicaColumns)
PLAIN: Final = (str, int, float, bool, type(None))


class NotDecodable(ValueError):
    """The JSON is not the value's; the text begins with the place."""


# -- to JSON -------------------------------------------------------------------------------------------------------
def encode(value: Any) -> Any:
    """The value as what `json.dumps` takes; TypeError for a type that no view has."""
    match value:
        case Enum():
            return value.name
        case bool() | None:
            return value
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return value
        case str():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case tuple() | list():
            return [encode(entry) for entry in value]
        case frozenset():
            return sorted(map(encode, value))
        case Mapping():
            return [[encode(key), encode(entry)] for key, entry in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return {CLASS: type(value).__name__} | {
            entry.name: encode(getattr(value, entry.name)) for entry in fields(value)
        }
    message = f"{type(value).__name__} has no form in JSON"
    raise TypeError(message)


# -- from JSON -----------------------------------------------------------------------------------------------------
def decode(kind: Any, data: Any, where: str, *, plain: bool = False) -> Any:
    """The value of that declared type, from the form that `encode` writes, or from the `plain` one.

    Raises:
        NotDecodable: the data is not such a value's.
    """
    origin, kinds = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kind = _chosen(kinds, data, where, plain)
        return decode(kind, data, where, plain=plain)
    if origin is not None:
        return _container(origin, kinds, data, where, plain)
    if is_dataclass(kind):
        return _dataclass(kind, data, where, plain)
    return _single(kind, data, where, plain)


def _single(kind: Any, data: Any, where: str, plain: bool) -> Any:
    if kind is float and type(data) in (int, float):
        return float(data) if plain else data  # what is fingerprinted stays as it was written
    if kind in PLAIN:
        if type(data) is kind:
            return data
    elif kind is bytes and isinstance(data, str):
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(data, validate=True)
    elif isinstance(kind, type) and isinstance(data, str) and issubclass(kind, Enum):
        with contextlib.suppress(KeyError, ValueError):
            return getattr(kind, "from_label", kind)(data) if plain else kind[data]
    elif isinstance(kind, type) and issubclass(kind, int | KafkaUuid) and type(data) is _json_type(kind):
        made: Any = kind
        try:
            return made(data)
        except ValueError as error:
            raise NotDecodable(f"{where}: {error}") from error
    raise NotDecodable(f"{where}: no {getattr(kind, '__name__', kind)}")


def _container(origin: Any, args: tuple[Any, ...], data: Any, where: str, plain: bool) -> Any:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(args, data, where, plain)
    if not isinstance(data, list):
        raise NotDecodable(f"{where}: no list")
    if origin is tuple and args[1:] != (...,):
        if len(data) != len(args):
            raise NotDecodable(f"{where}: {len(args)} entries expected")
        return tuple(decode(kind, entry, where, plain=plain) for kind, entry in zip(args, data, strict=True))
    if origin in (tuple, list, frozenset):
        return origin(_entries(args[0], data, where, plain))
    message = f"{origin} has no form in JSON"
    raise TypeError(message)


def _mapping(args: tuple[Any, ...], data: Any, where: str, plain: bool) -> dict[Any, Any]:
    if not isinstance(data, dict if plain else list):
        raise NotDecodable(f"{where}: no {'object' if plain else 'list'}")
    found: dict[Any, Any] = {}
    pairs: Any = data.items() if isinstance(data, dict) else data
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise NotDecodable(f"{where}: no pair")
        key = decode(args[0], pair[0], f"{where}, a key", plain=plain)
        if key in found:
            raise NotDecodable(f"{where}: {key!r} appears twice")
        found[key] = decode(args[1], pair[1], f"{where}[{key!r}]", plain=plain)
    return found


def _entries(kind: Any, data: list[Any], where: str, plain: bool) -> Iterator[Any]:
    """The decoded entries; long columns of plain values are only looked through."""
    if kind in (str, int) and all(type(entry) is kind for entry in data):
        return iter(data)
    return (decode(kind, entry, f"{where}[{index}]", plain=plain) for index, entry in enumerate(data))


def _dataclass(kind: Any, data: Any, where: str, plain: bool) -> Any:
    if not isinstance(data, dict):
        raise NotDecodable(f"{where}: no {kind.__name__}")
    found = kind if plain else _named(kind, data.get(CLASS))
    if found is None:
        raise NotDecodable(f"{where}: a {data.get(CLASS)} where a {kind.__name__} belongs")
    hints = _hints(found)
    if odd := data.keys() ^ (hints.keys() | (set() if plain else {CLASS})):
        raise NotDecodable(f"{where}: missing or unknown: {', '.join(sorted(map(str, odd)))}")
    values = {name: decode(hint, data[name], f"{where}.{name}", plain=plain) for name, hint in hints.items()}
    try:
        value = found(**values)
    except ValueError as error:
        raise NotDecodable(f"{where}: {error}") from error
    if isinstance(value, COLUMNS):
        if len({len(getattr(value, name)) for name in hints}) > 1:
            raise NotDecodable(f"{where}: columns of different lengths")
        if problem := _unlike_rows(value):
            raise NotDecodable(f"{where}: {problem}")
    return value


def _unlike_rows(value: PartitionColumns | EntityColumns | ReplicaColumns) -> str:
    """What no reader of a cluster or a disk puts into these columns; "" where they are fine."""
    if isinstance(value, EntityColumns):
        return ""
    numbers = [getattr(value, entry.name) for entry in fields(value) if entry.type == "list[int]"]
    if any(column and not -MOST <= min(column) <= max(column) <= MOST for column in numbers):
        return "a number of more than 64 bits"
    if isinstance(value, ReplicaColumns):
        odd = set(value.kind) - REPLICA_KINDS
        return f"no kind of replica: {min(odd)!r:.60}" if odd else ""
    columns = (value.replicas, value.isr, value.adding, value.removing)
    ids = {node for column in columns for entry in column for node in entry}
    return "" if not ids or (min(ids) >= 0 and max(ids) < 2**31) else "a replica's broker is no node id"


def _chosen(kinds: tuple[Any, ...], data: Any, where: str, plain: bool) -> Any:
    """The member of a union that the data is of: by class name, else by its JSON type."""
    for kind in kinds:
        if is_dataclass(kind):
            if isinstance(data, dict) and (plain or _named(kind, data.get(CLASS)) is not None):
                return kind
        elif type(data) is _json_type(kind):
            return kind
    raise NotDecodable(f"{where}: none of {', '.join(getattr(kind, '__name__', str(kind)) for kind in kinds)}")


def _json_type(kind: Any) -> type:
    if typing.get_origin(kind) is not None:
        return list
    if isinstance(kind, type) and issubclass(kind, bytes | Enum):
        return str
    return next((plain for plain in (type(None), bool, int, float) if issubclass(kind, plain)), str)


def _named(kind: Any, name: Any) -> Any:
    """The dataclass of that name: `kind` itself or one below it; None for any other.

    A dataclass with slots is made twice, and the first one haunts `__subclasses__`: the module knows the right one.
    """
    if kind.__name__ == name:
        return kind if getattr(sys.modules[kind.__module__], name, None) is kind else None
    return next((found for below in kind.__subclasses__() if (found := _named(below, name)) is not None), None)


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {entry.name: hints[entry.name] for entry in fields(kind)}
