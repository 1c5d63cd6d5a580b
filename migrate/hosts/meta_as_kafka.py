"""meta.properties as Kafka 3.9 takes it, without our own distrust (`meta_properties.decode` has that).

Source: `metadata/.../metadata/properties/MetaProperties.Builder`, `MetaPropertiesVersion`, `PropertiesUtils`,
`clients/.../common/Uuid.fromString`.  What Kafka cannot read makes the directory a failed one (an *error log dir*).
"""

from __future__ import annotations

import re
from typing import Final

from migrate.errors import BadProperties
from migrate.hosts import properties
from migrate.model.ids import DirectoryId
from migrate.model.views import MetaBroken, MetaProperties

_JAVA_INT: Final = re.compile(r"[+-]?\d+")
_JAVA_UUID: Final = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})(==)?")
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))  # what String.trim() takes away
_INT_RANGE: Final = range(-(2**31), 2**31)
_BMP: Final = 0x10000
_LONGEST: Final = 4000  # characters: Python refuses to convert more digits than about that


class _UnreadableError(Exception):
    """What Kafka says of the file (never leaves this module)."""


def read_as_kafka(raw: bytes) -> MetaProperties | MetaBroken:
    """The values Kafka goes by, or why it calls the directory failed (pure; never raises).

    A node id may be negative here: Kafka reads one, and then refuses it.
    """
    try:
        values = properties.load(raw)
        version = _version(values)
        node_id = _node_id(values, version)
        return MetaProperties(version, _cluster_id(values, version), node_id, _directory_id(values))
    except BadProperties as error:
        return MetaBroken(error.what)
    except _UnreadableError as error:
        return MetaBroken(str(error))


def _version(values: dict[str, str]) -> int:
    text = values.get("version", "0").strip(_JAVA_SPACE)
    try:
        number = _java_int(text)
    except ValueError:
        raise _UnreadableError(f"version {text!r} is no number") from None
    if number not in (0, 1):
        raise _UnreadableError(f"version {number} is neither 0 nor 1")
    return number


def _node_id(values: dict[str, str], version: int) -> int | None:
    key = "node.id" if version else "broker.id"
    if key not in values:
        if version:
            raise _UnreadableError("version 1 without node.id")
        return None
    try:
        return _java_int(values[key])
    except ValueError:
        raise _UnreadableError(f"{key} {values[key]!r} is no number") from None


def _cluster_id(values: dict[str, str], version: int) -> str | None:
    found = values.get("cluster.id")
    if version and found is None:
        raise _UnreadableError("version 1 without cluster.id")
    return found


def _java_int(text: str) -> int:
    """Integer.parseInt: any Unicode digits of the basic plane, one sign, no blanks, 32 bits."""
    if not _JAVA_INT.fullmatch(text) or any(ord(char) >= _BMP for char in text) or len(text) > _LONGEST:
        raise ValueError(text)
    number = int(text)
    if number not in _INT_RANGE:
        raise ValueError(text)
    return number


def _directory_id(values: dict[str, str]) -> DirectoryId | None:
    text = values.get("directory.id")
    if text is None:
        return None
    found = _JAVA_UUID.fullmatch(text)
    if found is None:
        raise _UnreadableError(f"directory.id {text!r} is no UUID")
    return DirectoryId.from_bytes(DirectoryId(found["id"]).raw)  # the last four bits mean nothing
