"""Our declarative form of Kafka's schemas: a Struct of Fields, each with its type, versions, tag and default.

Field order is the order of Kafka's JSON files; names are Kafka's in camelCase, as its dump tool prints them.
Source: KIP-482 (tagged fields), `clients/src/main/resources/common/message/README.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

Values = dict[str, Any]  # a decoded struct: field name -> int, float, bool, str, bytes, None, list, Values

UNKNOWN_TAGS: Final = "_unknownTags"  # tag -> bytes, in a decoded struct that carried tags which our table lacks
NEWEST: Final = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """A closed range of versions; empty where `high` is below `low`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Kafka's own spelling: `0+`, `1-3`, `2`, or `` and `none` for no version."""
        if text in {"", "none"}:
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), NEWEST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"


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


@dataclass(frozen=True, slots=True)
class Array:
    """A list of one type."""

    of: Primitive | Struct


class Unset:
    """The default of a field that names none: its type's own."""


UNSET: Final = Unset()


@dataclass(frozen=True, slots=True)
class Field:
    """One field.  A tagged field is optional on the wire: absent means its default.

    `classic` fields keep the old encoding in flexible versions too (only the request header's clientId does).
    """

    name: str
    type: Primitive | Array | Struct
    versions: Versions
    nullable: Versions
    tag: int | None = None
    default: bool | float | str | Unset | None = UNSET
    ignorable: bool = False
    classic: bool = False

    def default_value(self, version: int) -> Any:
        """What an absent field means (a fresh value: lists and structs may be changed by the caller)."""
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
    """A struct or a whole message; compared by identity, so that readers can be kept by it.

    `key`, `versions` and `flexible` (versions with compact lengths and tags) matter on the outermost struct only.
    """

    name: str
    fields: tuple[Field, ...]
    versions: Versions = Versions(0, NEWEST)
    flexible: Versions = Versions(0, NEWEST)
    key: int = -1

    def defaults(self, version: int) -> Values:
        """The struct as Kafka makes it when nothing is set: untagged fields of that version."""
        return {
            field.name: field.default_value(version)
            for field in self.fields
            if version in field.versions and field.tag is None
        }


def field(
    name: str,
    kind: Primitive | Array | Struct,
    versions: str = "0+",
    *,
    nullable: str = "",
    tag: int | None = None,
    default: bool | float | str | Unset | None = UNSET,
    ignorable: bool = False,
) -> Field:
    """A Field with versions in Kafka's spelling."""
    return Field(
        name,
        kind,
        Versions.parse(versions),
        Versions.parse(nullable),
        tag,
        default,
        ignorable=ignorable,
    )


def struct(name: str, *fields: Field) -> Struct:
    """A struct inside a message."""
    return Struct(name, fields)


def message(name: str, key: int, versions: str, flexible: str, *fields: Field) -> Struct:
    """A whole message or record with its api key, versions and flexible versions."""
    return Struct(name, fields, Versions.parse(versions), Versions.parse(flexible), key)
