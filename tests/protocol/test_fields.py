"""The declarative form itself: defaults are fresh, tables are sound."""

from __future__ import annotations

import pytest

from migrate.protocol.fields import INT32, STRING, Array, Field, Primitive, Struct, field, struct
from migrate.protocol.messages import API
from migrate.protocol.messages.api import REQUEST_HEADER, RESPONSE_HEADER
from migrate.protocol.records.control import CONTROL
from migrate.protocol.records.frame import RECORDS
from migrate.protocol.records.security import SECRETS

TABLES = [
    REQUEST_HEADER,
    RESPONSE_HEADER,
    *RECORDS,
    *(table for _, table in CONTROL.values()),
    *(half for api in API.values() for half in (api.request, api.response)),
]


def structs_of(table: Struct) -> list[Struct]:
    """The table and every struct inside it."""
    found = [table]
    for entry in table.fields:
        kind = entry.type.of if isinstance(entry.type, Array) else entry.type
        if isinstance(kind, Struct):
            found += structs_of(kind)
    return found


def fields_of(table: Struct) -> list[Field]:
    """Every field of the table, those of its structs included."""
    return [entry for inner in structs_of(table) for entry in inner.fields]


class TestDefaults:
    """What an absent field means."""

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            (field("a", INT32), 0),
            (field("a", INT32, default=-1), -1),
            (field("a", STRING, nullable="0+", default=None), None),
            (field("a", STRING), ""),
            (field("a", Array(INT32)), []),
            (
                field(
                    "a", struct("S", field("b", INT32, default=5), field("c", INT32, "1+"), field("d", INT32, tag=0))
                ),
                {"b": 5},
            ),
        ],
    )
    def test_each_type_has_its_own(self, entry: Field, expected: object) -> None:
        """In version 0."""
        assert entry.default_value(0) == expected

    def test_lists_and_structs_are_fresh_each_time(self) -> None:
        """A caller may change what it was given."""
        entry = field("a", Array(INT32))
        entry.default_value(0).append(1)
        assert entry.default_value(0) == []


class TestTables:
    """Rules that every table keeps."""

    @pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
    def test_names_and_tags_are_unique_in_a_struct(self, table: Struct) -> None:
        """A dict would lose one of two."""
        for inner in structs_of(table):
            names = [entry.name for entry in inner.fields]
            tags = [entry.tag for entry in inner.fields if entry.tag is not None]
            assert len(set(names)) == len(names), inner.name
            assert len(set(tags)) == len(tags), inner.name

    @pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
    def test_tagged_fields_stand_in_flexible_versions_only(self, table: Struct) -> None:
        """Others have no section of tags to put them into."""
        for entry in fields_of(table):
            if entry.tag is not None:
                low = max(entry.versions.low, table.versions.low)
                assert low in table.flexible, entry.name

    @pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
    def test_null_is_a_default_only_where_null_may_stand(self, table: Struct) -> None:
        """In every version that has the field."""
        for entry in fields_of(table):
            if entry.default is None:
                low = max(entry.versions.low, table.versions.low)
                assert low in entry.nullable, entry.name

    @pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
    def test_defaults_are_of_their_fields_type(self, table: Struct) -> None:
        """So that an absent field can be written."""
        for entry in fields_of(table):
            default = entry.default_value(table.versions.high)
            if isinstance(entry.type, Primitive) and default is not None:
                assert type(default) is type(entry.type.default), entry.name

    def test_secrets_name_fields_that_exist(self) -> None:
        """A renamed field would be shown."""
        known = {table.name: {entry.name for entry in table.fields} for table in RECORDS}
        for name, fields in SECRETS.items():
            assert fields <= known[name]
