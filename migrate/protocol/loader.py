"""Load Kafka's own schema files into Structs, each at the first use of its message or record.

The files in `schemas` are Kafka's, unchanged: JSON with comment lines.  `NOTICE.txt` beside them names their release.
Source: `MessageSpec.java`, `StructSpec.java` and `FieldSpec.java` of Kafka's message generator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from migrate.model import strict_json
from migrate.protocol.fields import ALL_VERSIONS, PRIMITIVES, UNSET, Array, Field, Primitive, Struct, Unset, Versions

Spec = Mapping[str, Any]  # an object of the JSON

_SCHEMAS: Final = Path(__file__).with_name("schemas")
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


@cache
def load(file: str) -> Struct:
    """Return the schema in that file; it has the name of its message, but for ZkMigrationStateRecord."""
    return parse((_SCHEMAS / f"{file}.json").read_text(encoding="utf-8"))


def parse(text: str) -> Struct:
    """Return the schema that the text of one of Kafka's files declares.

    Raises:
        ValueError: the schema uses a part of Kafka's format that the reader and the writer do not support.
    """
    spec = strict_json.loads(_COMMENT.sub("", text))
    common = {entry["name"]: entry["fields"] for entry in spec.get("commonStructs", ())}
    return Struct(
        spec["name"],
        _fields(spec["fields"], common),
        Versions.parse(spec["validVersions"]),
        Versions.parse(spec["flexibleVersions"]),
        spec.get("apiKey", -1),
    )


def _fields(specs: Sequence[Spec], common: Mapping[str, Sequence[Spec]]) -> tuple[Field, ...]:
    return tuple(_field(spec, common) for spec in specs)


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
        inner = Struct(name, _fields(fields, common))
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
