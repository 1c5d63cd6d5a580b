"""Kafka's message and record schemas: a Struct of Fields, each with its type, versions and default.

They are loaded from Kafka's own schema files, each at the first use of its message or record.  The files in `schemas`
are Kafka's, unchanged: JSON with comment lines.  `NOTICE.txt` beside them names their release.  Fields are in their
order; names are Kafka's in camelCase, as its dump tools print them.
Sources: `MessageSpec.java`, `StructSpec.java`, `FieldSpec.java` of Kafka's message generator; KIP-482 (tagged fields),
`clients/src/main/resources/common/message/README.md`.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Self

from migrate.errors import UnknownSchemaError
from migrate.model import strict_json

Values = dict[str, Any]  # a decoded struct: field name -> int, float, bool, str, bytes, None, list, Values

UNKNOWN_TAGS: Final = "_unknownTags"  # tag -> bytes, in a decoded struct with tagged fields that its schema lacks
NEWEST: Final = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """A closed range of versions; empty where `high` is below `low`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Kafka's notation: `0+`, `1-3`, `2`, or `none` for no version."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"


ALL_VERSIONS: Final = Versions(0, NEWEST)
NO_VERSION: Final = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type.  `code` is its letter for the `struct` module where its size is fixed."""

    name: str
    default: bool | int | float | str | bytes
    code: str = ""
    size: int = 0


BOOL: Final = Primitive("bool", default=False, code="?", size=1)
INT8: Final = Primitive("int8", 0, "b", 1)
INT16: Final = Primitive("int16", 0, "h", 2)
UINT16: Final = Primitive("uint16", 0, "H", 2)
INT32: Final = Primitive("int32", 0, "i", 4)
INT64: Final = Primitive("int64", 0, "q", 8)
FLOAT64: Final = Primitive("float64", 0.0, "d", 8)
UUID: Final = Primitive("uuid", "AAAAAAAAAAAAAAAAAAAAAA", "16s", 16)
STRING: Final = Primitive("string", "")
BYTES: Final = Primitive("bytes", b"")
RECORDS: Final = Primitive("records", b"")
PRIMITIVES: Final[Mapping[str, Primitive]] = MappingProxyType(
    {kind.name: kind for kind in (BOOL, INT8, INT16, UINT16, INT32, INT64, FLOAT64, UUID, STRING, BYTES, RECORDS)}
)


@dataclass(frozen=True, slots=True)
class Array:
    of: Primitive | Struct


class Unset:
    """The default of a field that names none: the default of its type."""


UNSET: Final = Unset()


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    In the versions `tagged` it is a tagged field: optional in the bytes, and its default where it is absent.  Outside
    the versions `flexible` it keeps its classic encoding in flexible messages too (only the request header's clientId).
    """

    name: str
    type: Primitive | Array | Struct
    versions: Versions = ALL_VERSIONS
    nullable: Versions = NO_VERSION
    tagged: Versions = NO_VERSION
    tag: int = -1
    default: bool | float | str | Unset | None = UNSET
    ignorable: bool = False
    flexible: Versions = ALL_VERSIONS

    def default_value(self, version: int) -> Any:
        """What an absent field means.  Lists and structs are new ones, which the caller may change."""
        if not isinstance(self.default, Unset):
            return self.default
        match self.type:
            case Primitive():
                return self.type.default
            case Array():
                return []
            case Struct():
                return self.type.defaults(version)


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A struct or a whole message; compared by identity, so that readers and writers can be cached by it.

    `key`, `versions` and `flexible` (versions with compact lengths and tagged fields) are those of the message.
    """

    name: str
    fields: tuple[Field, ...]
    versions: Versions = ALL_VERSIONS
    flexible: Versions = ALL_VERSIONS
    key: int = -1

    def defaults(self, version: int) -> Values:
        """The untagged fields of that version at their defaults."""
        return {
            field.name: field.default_value(version)
            for field in self.fields
            if version in field.versions and version not in field.tagged
        }

    def is_flexible(self, version: int) -> bool:
        """Tell whether that version of the message is flexible.  UnknownSchemaError if there is no such version."""
        if version not in self.versions:
            raise UnknownSchemaError(f"{self.name} version {version} is unknown (known: {self.versions})")
        return version in self.flexible


Spec = Mapping[str, Any]  # an object of the JSON

_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


@cache
def load(file: str) -> Struct:
    """Return the schema in that file; it has the name of its message, but for ZkMigrationStateRecord."""
    text = pkgutil.get_data(__package__, f"schemas/{file}.json")  # of an archive too: Spark's executors get one
    assert text is not None
    return parse(text.decode())


def parse(text: str) -> Struct:
    """Return the schema that the text of one of Kafka's files declares.

    Raises ValueError: the schema uses a part of Kafka's format that the reader and the writer do not support.
    """
    spec = strict_json.loads(_COMMENT.sub("", text))
    common = {entry["name"]: entry["fields"] for entry in spec.get("commonStructs", ())}
    return Struct(
        spec["name"],
        tuple(_field(entry, common) for entry in spec["fields"]),
        Versions.parse(spec["validVersions"]),
        Versions.parse(spec["flexibleVersions"]),
        spec.get("apiKey", -1),
    )


def _field(spec: Spec, common: Mapping[str, Sequence[Spec]]) -> Field:
    kind, nullable = _type(spec, common), Versions.parse(spec.get("nullableVersions", "none"))
    if isinstance(kind, Struct) and nullable.high >= 0:
        raise ValueError(f"{spec['name']} is a nullable struct; those are not supported")
    return Field(
        spec["name"][0].lower() + spec["name"][1:],  # as Kafka's tools print it (`MessageGenerator.lowerCaseFirst`)
        kind,
        Versions.parse(spec["versions"]),
        nullable,
        Versions.parse(spec.get("taggedVersions", "none")),
        int(spec.get("tag", -1)),
        _default(spec, kind),
        ignorable=spec.get("ignorable", False),
        flexible=Versions.parse(spec["flexibleVersions"]) if "flexibleVersions" in spec else ALL_VERSIONS,
    )


def _type(spec: Spec, common: Mapping[str, Sequence[Spec]]) -> Primitive | Array | Struct:
    name = spec["type"].removeprefix("[]")
    inner: Primitive | Struct | None = PRIMITIVES.get(name)
    if inner is None:
        fields = spec.get("fields", common.get(name))
        if fields is None:
            raise ValueError(f"{spec['name']} has the type {spec['type']}, which is not supported")
        inner = Struct(name, tuple(_field(entry, common) for entry in fields))
    return Array(inner) if spec["type"].startswith("[]") else inner


def _default(spec: Spec, kind: Primitive | Array | Struct) -> bool | float | str | Unset | None:
    """Return the default that the schema names, in Kafka mostly as text: `-1`, `0x7fffffff`, `false`, `null`."""
    found = spec.get("default", "")
    if found == "":
        return UNSET
    if found in {None, "null"}:
        return None
    text = str(found)
    if not isinstance(kind, Primitive) or kind.name in {"uuid", "bytes", "records"}:
        raise ValueError(f"{spec['name']} has the default {text}, which is not supported")
    match kind.default:
        case bool():
            return text.lower() == "true"
        case int():
            return int(text, 0)
        case float():
            return float(text)
    return text
