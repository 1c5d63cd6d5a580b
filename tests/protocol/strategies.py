"""Values for our tables, made by hypothesis: everything that a version can carry, and nothing that it cannot."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from migrate.protocol.loader import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Field,
    Primitive,
    Struct,
    Values,
)

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
PRIMITIVES: dict[Primitive, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT8: st.integers(-(2**7), 2**7 - 1),
    INT16: st.integers(-(2**15), 2**15 - 1),
    UINT16: st.integers(0, 2**16 - 1),
    INT32: st.integers(-(2**31), 2**31 - 1),
    INT64: st.integers(-(2**63), 2**63 - 1),
    FLOAT64: st.floats(allow_nan=False),
    UUID: st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw)[:22].decode()),
    STRING: TEXT,
}


def values_of(table: Struct, version: int) -> st.SearchStrategy[Values]:
    """Whole values: every untagged field of the version, tagged ones where they differ from their default."""
    present = [entry for entry in table.fields if version in entry.versions]
    plain = {entry.name: _field(entry, version) for entry in present if version not in entry.tagged}
    tagged = {entry.name: _field(entry, version) for entry in present if version in entry.tagged}
    defaults = {entry.name: entry.default_value(version) for entry in present}

    def without_defaults(values: Values) -> Values:
        return {name: value for name, value in values.items() if name in plain or value != defaults[name]}

    return st.fixed_dictionaries(plain, optional=tagged).map(without_defaults)


def _field(entry: Field, version: int) -> st.SearchStrategy[Any]:
    found = _type(entry.type, version)
    return st.none() | found if version in entry.nullable else found


def _type(kind: Primitive | Array | Struct, version: int) -> st.SearchStrategy[Any]:
    match kind:
        case Primitive():
            return PRIMITIVES.get(kind, st.binary(max_size=20))
        case Array():
            return st.lists(_type(kind.of, version), max_size=3)
        case Struct():
            return values_of(kind, version)
