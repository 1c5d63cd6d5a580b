"""Kafka's schema files: shipped as they are in its jars, and loaded with all that they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from migrate.java.find import find_java
from migrate.java.jars import KAFKA_VERSION, cached_jars, kafka_jars
from migrate.protocol import loader
from migrate.protocol.loader import (
    ALL_VERSIONS,
    FLOAT64,
    INT8,
    INT32,
    NEWEST,
    NO_VERSION,
    STRING,
    UNSET,
    UUID,
    Array,
    Field,
    Primitive,
    Struct,
    Versions,
    load,
    parse,
)
from migrate.protocol.records import CONTROL, RECORDS
from tests.testing.encoding import APIS
from tests.testing.kafka_schemas import schemas_in
from tests.testing.newer_kafka import KAFKAS

SCHEMAS = Path(loader.__file__).with_name("schemas")
SHIPPED = {path.stem: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.json")}
NEWEST_RELEASE = tuple(KAFKAS)[-1]
NEWER = {"BrokerRegistrationChangeRecord", "ClearElrRecord", "RegisterBrokerRecord", "UnregisterControllerRecord"}
EVERY_RELEASE = tuple(KAFKAS)
ROOT = Path(__file__).parents[2]


def differences(found: dict[str, str], names: Collection[str]) -> list[str]:
    """The shipped files of these names that are not, to the byte, those that were found."""
    return [name for name in names if found.get(name) != SHIPPED[name]]


def layout(kind: Primitive | Array | Struct, version: int) -> object:
    """All that decides the bytes of a value in that version of its message."""
    match kind:
        case Primitive():
            return kind.name
        case Array():
            return [layout(kind.of, version)]
        case Struct():
            return [
                (
                    entry.name,
                    layout(entry.type, version),
                    version in entry.nullable,
                    entry.tag if version in entry.tagged else None,
                    entry.default_value(version),
                    version in entry.flexible,
                )
                for entry in kind.fields
                if version in entry.versions
            ]


@pytest.fixture(scope="module", params=EVERY_RELEASE)
def release(request: pytest.FixtureRequest) -> str:
    """3.9.2, and the releases that come after a migration."""
    return str(request.param)


@pytest.fixture(scope="module")
def found(release: str) -> dict[str, str]:
    """The schemas in the release's jars, from the cache; where it has none yet, a test of the marker kafka fetches."""
    jars = cached_jars(KAFKAS[release])
    if jars is None:
        pytest.skip("Kafka's jars are not fetched yet; the same claim is made under the marker kafka")
    return schemas_in(jars.classpath)


class TestShippedFiles:
    """What the package has, and what it must have."""

    def test_the_files_are_those_in_kafkas_jars(self, release: str, found: dict[str, str]) -> None:
        """To the byte, licence header included: the notice beside them says which are from which release."""
        if release == KAFKA_VERSION:
            assert differences(found, SHIPPED.keys() - NEWER) == []
        else:
            assert differences(found, NEWER & found.keys()) == []
        notice = (SCHEMAS / "NOTICE.txt").read_text(encoding="utf-8")
        assert all(f"Apache Kafka {name}" in notice for name in (KAFKA_VERSION, NEWEST_RELEASE))
        assert all(name in notice for name in NEWER)

    @pytest.mark.kafka
    def test_the_files_are_those_in_freshly_found_jars(self) -> None:
        """The same, with the jars fetched where they are missing."""
        assert differences(schemas_in(kafka_jars(java=find_java()).classpath), SHIPPED.keys() - NEWER) == []
        assert differences(schemas_in(kafka_jars(release=KAFKAS[NEWEST_RELEASE]).classpath), NEWER) == []

    def test_no_metadata_record_is_missing(self, release: str, found: dict[str, str]) -> None:
        """Whatever Kafka may write, the tool can read, in all its versions; the newest has no fewer records than we."""
        schemas = [parse(text) for text in found.values() if '"type": "metadata"' in text]
        known = {table.name: table for table in RECORDS.values()}
        for schema in schemas:
            assert schema.versions.high <= known[schema.name].versions.high, schema.name
        if release == NEWEST_RELEASE:
            assert {schema.name for schema in schemas} == known.keys()

    def test_every_version_that_both_know_has_the_same_bytes(self, found: dict[str, str]) -> None:
        """Records, control records, requests and responses: a version of a message never changes in a later release."""
        for name, text in SHIPPED.items():
            if name not in found:
                continue
            ours, theirs = parse(text), parse(found[name])
            low, high = (
                max(ours.versions.low, theirs.versions.low),
                min(ours.versions.high, theirs.versions.high),
            )
            assert low <= high, f"{name}: no version in common"
            assert (ours.key, ours.flexible.low) == (theirs.key, theirs.flexible.low), name
            for version in range(low, high + 1):
                assert layout(ours, version) == layout(theirs, version), f"{name} version {version}"

    def test_every_file_is_used(self) -> None:
        """By a record, an API or a header."""
        used = {table.name for table in (*RECORDS.values(), *(table for _, table in CONTROL.values()))}
        used |= {half.name for api in APIS.values() for half in (api.request, api.response)}
        used |= {"RequestHeader", "ResponseHeader"}
        assert used == {parse(text).name for text in SHIPPED.values()}

    def test_every_file_carries_kafkas_licence_header(self) -> None:
        """Required by the Apache License, section 4."""
        for name, text in SHIPPED.items():
            assert text.startswith("// Licensed to the Apache Software Foundation (ASF)"), name

    @pytest.mark.slow
    def test_an_installed_package_has_them(self, tmp_path: Path) -> None:
        """`build_py` collects what a wheel contains; its copy loads every schema, and the notice is there."""
        pytest.importorskip("setuptools")
        build = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
        installed = tmp_path / "migrate/protocol/schemas"
        assert {path.name for path in installed.iterdir()} == {path.name for path in SCHEMAS.iterdir()}
        code = (
            "import migrate, sys; from migrate.protocol.loader import load; from migrate.protocol import records\n"
            "assert migrate.__file__.startswith(sys.argv[1]); print(*[load(name).name for name in sys.argv[2:]])"
        )
        asked = [sys.executable, "-c", code, str(tmp_path), *SHIPPED]
        found = subprocess.run(asked, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
        assert found.stdout.split() == [parse(text).name for text in SHIPPED.values()]


class TestParsing:
    """Each part of Kafka's format."""

    def test_a_schema_is_loaded_with_all_that_it_says(self) -> None:
        """Names, types, ranges of versions, tags, defaults as text and as numbers, common structs, comments."""
        table = parse(
            """// a header
            {
              "apiKey": 7, "type": "request", "name": "ThingRequest",
              "listeners": ["zkBroker"],
              // a comment with "quotes"
              "validVersions": "1-3", "flexibleVersions": "2+",
              "fields": [
                { "name": "Name", "type": "string", "versions": "0+", "about": "See http://kafka, // no comment" },
                { "name": "Level", "type": "int8", "versions": "1+", "default": "-1", "ignorable": true },
                { "name": "Most", "type": "int32", "versions": "0+", "default": "0x7fffffff" },
                { "name": "Kind", "type": "int8", "versions": "0+", "default": 1 },
                { "name": "Ready", "type": "bool", "versions": "2", "default": "true" },
                { "name": "Share", "type": "float64", "versions": "0+", "default": "1.5" },
                { "name": "Note", "type": "string", "versions": "1+", "nullableVersions": "2+", "default": "null",
                  "flexibleVersions": "none" },
                { "name": "LogDirs", "type": "[]uuid", "versions": "1+", "taggedVersions": "2+", "tag": "3" },
                { "name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
                  { "name": "Place", "type": "Place", "versions": "0+" } ]}
              ],
              "commonStructs": [
                { "name": "Place", "versions": "0+", "fields": [ { "name": "Id", "type": "int32", "versions": "0+" } ] }
              ]
            }"""
        )
        assert (table.name, table.key, table.versions) == ("ThingRequest", 7, Versions(1, 3))
        assert table.flexible == Versions(2, NEWEST)
        *plain, parts = table.fields
        assert plain == [
            Field("name", STRING),
            Field("level", INT8, Versions(1, NEWEST), default=-1, ignorable=True),
            Field("most", INT32, default=2**31 - 1),
            Field("kind", INT8, default=1),
            Field("ready", plain[4].type, Versions(2, 2), default=True),
            Field("share", FLOAT64, default=1.5),
            Field("note", STRING, Versions(1, NEWEST), nullable=Versions(2, NEWEST), default=None, flexible=NO_VERSION),
            Field("logDirs", Array(UUID), Versions(1, NEWEST), tagged=Versions(2, NEWEST), tag=3, default=UNSET),
        ]
        assert isinstance(parts.type, Array)
        assert isinstance(parts.type.of, Struct)
        (place,) = parts.type.of.fields
        assert isinstance(place.type, Struct)
        assert (parts.type.of.name, place.type.name, place.versions) == ("Part", "Place", ALL_VERSIONS)
        assert place.type.fields == (Field("id", INT32),)

    @pytest.mark.parametrize(
        "field",
        [
            {"type": "uint32"},
            {"type": "[]Nowhere"},
            {"type": "Inner", "nullableVersions": "0+", "fields": []},
            {"type": "uuid", "default": "AAAAAAAAAAAAAAAAAAAAAQ"},
            {"type": "[]int32", "default": "7"},
        ],
    )
    def test_what_the_codec_does_not_support_is_refused(self, field: dict[str, object]) -> None:
        """Never read as something else."""
        spec = {"name": "X", "validVersions": "0", "flexibleVersions": "0+"}
        text = json.dumps({**spec, "fields": [{"name": "F", "versions": "0+", **field}]})
        with pytest.raises(ValueError, match="not supported"):
            parse(text)

    def test_a_file_is_read_once(self) -> None:
        """Readers and writers are cached by the schema, so there is one of each."""
        assert load("TopicRecord") is RECORDS[2]


class TestVersionRanges:
    """Kafka's spelling of versions."""

    @pytest.mark.parametrize(
        ("text", "inside", "outside"),
        [("0+", [0, 9], [-1]), ("1-3", [1, 3], [0, 4]), ("2", [2], [1, 3]), ("none", [], [0])],
    )
    def test_ranges_mean_what_kafka_means(self, text: str, inside: list[int], outside: list[int]) -> None:
        """Open, closed, single and empty."""
        versions = Versions.parse(text)
        assert all(version in versions for version in inside)
        assert not any(version in versions for version in outside)


class TestDefaults:
    """What an absent field means."""

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            (Field("a", INT32), 0),
            (Field("a", INT32, default=-1), -1),
            (Field("a", STRING, nullable=ALL_VERSIONS, default=None), None),
            (Field("a", STRING), ""),
            (Field("a", Array(INT32)), []),
            (
                Field(
                    "a",
                    Struct(
                        "S",
                        (
                            Field("b", INT32, default=5),
                            Field("c", INT32, Versions(1, 2)),
                            Field("d", INT32, tagged=ALL_VERSIONS, tag=0),
                        ),
                    ),
                ),
                {"b": 5},
            ),
        ],
    )
    def test_each_type_has_its_own(self, entry: Field, expected: object) -> None:
        """In version 0."""
        assert entry.default_value(0) == expected

    def test_lists_and_structs_are_new_each_time(self) -> None:
        """A caller may change what it was given."""
        entry = Field("a", Array(INT32))
        entry.default_value(0).append(1)
        assert entry.default_value(0) == []
