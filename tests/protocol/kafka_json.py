"""Kafka's own schema files, as they lie in its jars, in a form that compares with our tables.

The files are JSON with `//` comments; `tag` stands there as a number and as a string.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from migrate.protocol.fields import Array, Field, Primitive, Struct, Unset, Versions

COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
TYPES = {"bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes", "records"}


def parse(text: str) -> dict[str, Any]:
    """One schema file without its comments."""
    schema: dict[str, Any] = json.loads(COMMENT.sub(lambda found: found.group(1) or "", text))
    return schema


def from_jars(jars: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """All schemas of those jars, by name."""
    schemas = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"common/(message|metadata)/\w+\.json", name):
                    schema = parse(archive.read(name).decode())
                    schemas[schema["name"]] = schema
    return schemas


def camel(name: str) -> str:
    """`BrokerId` as it is printed: `brokerId` (Kafka's MessageGenerator.lowerCaseFirst)."""
    return name[0].lower() + name[1:]


def _default(spec: dict[str, Any], kind: str) -> object:
    """The default of a field, as our tables spell it."""
    text = spec.get("default")
    if text in (None, ""):
        return {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": b""}.get(kind, 0)
    if text == "null":
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "string":
        return text
    return float(text) if kind == "float64" else int(str(text), 0)


def normal(fields: list[dict[str, Any]], common: dict[str, Any], versions: Versions) -> list[tuple[Any, ...]]:
    """Kafka's fields as tuples, without those that none of `versions` has."""
    rows = []
    for spec in fields:
        present = _meet(Versions.parse(spec["versions"]), versions)
        if present.high < present.low:
            continue
        kind = spec["type"]
        element = kind.removeprefix("[]")
        inner = None
        if element not in TYPES:
            inner = normal(spec.get("fields") or common[element]["fields"], common, versions)
        default: object = "own"
        if spec.get("default") == "null":
            default = None
        elif element in TYPES - {"uuid"} and not kind.startswith("[]"):
            default = _default(spec, element)
        rows.append(
            (
                camel(spec["name"]),
                ("[]" if kind.startswith("[]") else "") + ("struct" if inner is not None else element),
                present,
                _meet(Versions.parse(spec.get("nullableVersions", "")), present),
                int(spec["tag"]) if "tag" in spec else None,
                default,
                bool(spec.get("ignorable", False)),
                inner,
            )
        )
    return rows


def _meet(one: Versions, other: Versions) -> Versions:
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Versions(low, high) if low <= high else Versions(0, -1)


def ours(table: Struct, versions: Versions) -> list[tuple[Any, ...]]:
    """Our table in the same form."""
    return [
        _row(entry, versions)
        for entry in table.fields
        if _meet(entry.versions, versions).low <= _meet(entry.versions, versions).high
    ]


def _row(entry: Field, versions: Versions) -> tuple[Any, ...]:
    kind = entry.type.of if isinstance(entry.type, Array) else entry.type
    prefix = "[]" if isinstance(entry.type, Array) else ""
    present = _meet(entry.versions, versions)
    default: object = "own"
    if entry.default is None:
        default = None
    elif isinstance(entry.type, Primitive) and entry.type.name != "uuid":
        default = entry.type.default if isinstance(entry.default, Unset) else entry.default
    return (
        entry.name,
        prefix + (kind.name if isinstance(kind, Primitive) else "struct"),
        present,
        _meet(entry.nullable, present),
        entry.tag,
        default,
        entry.ignorable,
        None if isinstance(kind, Primitive) else ours(kind, versions),
    )


def differences(table: Struct, schema: dict[str, Any], *, whole: bool) -> list[str]:
    """What our table says otherwise than Kafka; `whole` asks for the same range of versions too."""
    found = []
    common = {entry["name"]: entry for entry in schema.get("commonStructs", [])}
    theirs = Versions.parse(schema["validVersions"])
    if whole and theirs != table.versions:
        found.append(f"versions {table.versions}, Kafka {theirs}")
    if not theirs.low <= table.versions.low <= table.versions.high <= theirs.high:
        found.append(f"versions {table.versions} are outside Kafka's {theirs}")
    flexible = Versions.parse(schema["flexibleVersions"])
    if _meet(flexible, table.versions) != _meet(table.flexible, table.versions):
        found.append(f"flexible {table.flexible}, Kafka {flexible}")
    if table.key != schema.get("apiKey", -1):
        found.append(f"key {table.key}, Kafka {schema.get('apiKey')}")
    left, right = ours(table, table.versions), normal(schema["fields"], common, table.versions)
    found += [f"ours {one}, Kafka {other}" for one, other in zip(left, right, strict=False) if one != other]
    if len(left) != len(right):
        found.append(f"{len(left)} fields, Kafka {len(right)}")
    return found
