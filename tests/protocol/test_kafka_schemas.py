"""Our tables against the schema files inside Kafka's own jars: they cannot drift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate.java.find import find_java
from migrate.java.jars import cached_jars, kafka_jars
from migrate.protocol.fields import Struct
from migrate.protocol.messages import API
from migrate.protocol.messages.api import REQUEST_HEADER, RESPONSE_HEADER
from migrate.protocol.records.control import CONTROL
from migrate.protocol.records.frame import RECORDS
from tests.protocol.kafka_json import differences, from_jars, parse

MESSAGES = [REQUEST_HEADER, RESPONSE_HEADER, *(half for api in API.values() for half in (api.request, api.response))]
FILED_RECORDS = [*RECORDS, *(table for _, table in CONTROL.values())]


def all_differences(schemas: dict[str, dict[str, Any]]) -> list[str]:
    """Every difference of every table; records are held to Kafka's whole range of versions."""
    found = []
    for tables, whole in ((MESSAGES, False), (FILED_RECORDS, True)):
        for table in tables:
            found += [f"{table.name}: {line}" for line in differences(table, schemas[table.name], whole=whole)]
    return found


def schemas_in(classpath: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The schemas of Kafka's jars on a class path."""
    return from_jars(Path(path) for path in classpath if Path(path).name.startswith("kafka"))


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict[str, Any]]:
    """From the jars in the cache; where there are none yet, the test below fetches them."""
    jars = cached_jars()
    if jars is None:
        pytest.skip("Kafka's jars are not fetched yet; the same claim is made under the marker kafka")
    return schemas_in(jars.classpath)


def test_tables_equal_the_schemas_in_kafkas_jars(schemas: dict[str, dict[str, Any]]) -> None:
    """Fields, order, types, versions, null, tags, defaults, keys, flexible versions."""
    assert all_differences(schemas) == []


def test_no_metadata_record_is_missing(schemas: dict[str, dict[str, Any]]) -> None:
    """What Kafka may write, we can read."""
    theirs = {name for name, schema in schemas.items() if schema["type"] == "metadata"}
    assert theirs == {table.name for table in RECORDS}


@pytest.mark.kafka
def test_tables_equal_the_schemas_of_freshly_found_jars() -> None:
    """The same, with the jars fetched where they are missing."""
    assert all_differences(schemas_in(kafka_jars(java=find_java()).classpath)) == []


def test_the_comparison_sees_every_kind_of_drift() -> None:
    """A comparison that finds nothing must be able to find something."""
    schema = parse(
        """{ // a comment
        "apiKey": 2, "type": "metadata", "name": "TopicRecord", "validVersions": "0", "flexibleVersions": "0+",
        "fields": [
          { "name": "Name", "type": "string", "versions": "0+", "about": "see http://x // not a comment" },
          { "name": "TopicId", "type": "uuid", "versions": "0+", "about": "" }
        ] }"""
    )
    table: Struct = next(table for table in RECORDS if table.name == "TopicRecord")
    assert differences(table, schema, whole=True) == []
    for field, value in (
        ("name", "Title"),
        ("type", "int32"),
        ("nullableVersions", "0+"),
        ("tag", "0"),
        ("default", "x"),
        ("ignorable", True),
    ):
        changed = {**schema, "fields": [{**schema["fields"][0], field: value}, schema["fields"][1]]}
        assert len(differences(table, changed, whole=True)) == 1, field
    for other in ({"apiKey": 3}, {"validVersions": "0-1"}, {"flexibleVersions": "none"}):
        assert differences(table, {**schema, **other}, whole=True), other
    assert differences(table, {**schema, "fields": schema["fields"][:1]}, whole=True)
