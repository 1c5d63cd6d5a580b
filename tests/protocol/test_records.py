"""Metadata and control records: every version comes back; what no known Kafka writes is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.loader import Struct
from migrate.protocol.records import (
    CONTROL,
    PARTITION,
    PARTITION_CHANGE,
    RECORDS,
    SECRETS,
    TOPIC,
    decode_control,
    decode_record,
    type_name,
)
from tests.protocol.strategies import values_of
from tests.testing.encoding import encode_control, encode_record

EVERY_VERSION = [
    pytest.param(table, version, id=f"{table.name}-{version}")
    for table in RECORDS.values()
    for version in range(table.versions.low, table.versions.high + 1)
]
EVERY_CONTROL = [
    pytest.param(name, version, id=f"{name}-{version}")
    for name, table in CONTROL.values()
    for version in range(table.versions.low, table.versions.high + 1)
]
FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
ID = "FgyzRFHJRC2kVDVxAIvi7A"


class TestMetadataRecords:
    """The frame and the record inside."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("table", "version"), EVERY_VERSION)
    @FEW
    @given(data=st.data())
    def test_every_record_comes_back_and_cut_ones_are_errors(
        self, table: Struct, version: int, data: st.DataObject
    ) -> None:
        """Table, version and values; a record cut anywhere is refused, and so is one with a rest."""
        values = data.draw(values_of(table, version))
        raw = encode_record(table, version, values)
        assert decode_record(raw) == (table, version, values)
        assert encode_record(*decode_record(raw)) == raw
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(DecodeError):
            decode_record(raw[:cut])
        with pytest.raises(DecodeError, match="too many"):
            decode_record(raw + b"\0")

    def test_all_types_up_to_kafka_4_4_are_there(self) -> None:
        """6, 13 and 16 were never given out."""
        assert sorted(RECORDS) == [*range(6), *range(7, 13), 14, 15, *range(17, 30)]

    def test_type_names_are_kafkas(self) -> None:
        """As `MetadataRecordType` spells them."""
        names = {type_name(table) for table in RECORDS.values()}
        assert {"NO_OP_RECORD", "ZK_MIGRATION_STATE_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"} <= names
        assert type_name(PARTITION_CHANGE) == "PARTITION_CHANGE_RECORD"

    def test_secrets_name_fields_that_exist(self) -> None:
        """A field that Kafka renamed would be shown."""
        for table, fields in SECRETS.items():
            assert fields <= {entry.name for entry in table.fields}

    def test_directories_are_plain_in_a_partition_and_tagged_in_a_change(self) -> None:
        """The one place where the two schemas of KIP-858 differ."""
        partition = encode_record(PARTITION, 1, {"topicId": ID, "replicas": [1], "directories": [ID]})
        change = encode_record(PARTITION_CHANGE, 1, {"topicId": ID, "directories": [ID]})
        assert partition.endswith(bytes.fromhex("02 160cb34451c9442da4543571008be2ec 00"))
        assert change.endswith(bytes.fromhex("01 08 11 02 160cb34451c9442da4543571008be2ec"))

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            ("00 02 00", "frame version 0"),
            ("02 02 00", "frame version 2"),
            ("01 06 00", "unknown type 6"),
            ("01 7f 00", "unknown type 127"),
            ("01 02 01", "TopicRecord version 1 is unknown"),
            ("01 03 03", "PartitionRecord version 3 is unknown"),
            ("01 1e 00", "unknown type 30"),
            ("01 11 04", "BrokerRegistrationChangeRecord version 4 is unknown"),
        ],
    )
    def test_what_no_known_kafka_writes_is_refused_by_name(self, raw: str, says: str) -> None:
        """Frame, type, version."""
        with pytest.raises(UnknownSchemaError, match=says):
            decode_record(bytes.fromhex(raw))

    def test_a_record_without_value_is_refused(self) -> None:
        """The metadata log has no tombstones."""
        with pytest.raises(DecodeError, match="without a value"):
            decode_record(None)

    @given(st.binary(max_size=60))
    def test_any_bytes_give_a_record_or_an_error(self, raw: bytes) -> None:
        """Never another exception."""
        try:
            table, version, values = decode_record(raw)
        except DecodeError:
            return
        assert decode_record(encode_record(table, version, values)) == (table, version, values)

    def test_a_topic_has_kafkas_bytes(self) -> None:
        """One by hand: frame 1, key 2, version 0, compact string, 16 bytes, no tags."""
        raw = bytes.fromhex("01 02 00 04 743031 160cb34451c9442da4543571008be2ec 00")
        assert decode_record(raw) == (TOPIC, 0, {"name": "t01", "topicId": ID})


class TestControlRecords:
    """Their key says the type, their value the version."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "version"), EVERY_CONTROL)
    @FEW
    @given(data=st.data())
    def test_every_control_record_comes_back(self, name: str, version: int, data: st.DataObject) -> None:
        """Name, version and values."""
        table = next(table for known, table in CONTROL.values() if known == name)
        values = {**data.draw(values_of(table, version)), "version": version}
        key, value = encode_control(name, values)
        assert decode_control(key, value) == (name, table, version, values)
        for end in range(len(value)):
            with pytest.raises(DecodeError):
                decode_control(key, value[:end])

    @pytest.mark.parametrize(
        ("key", "value", "error"),
        [
            (None, b"\0\0", DecodeError),
            (b"\0\0\0", b"\0\0", DecodeError),
            (b"\0\0\0\2", None, DecodeError),
            (b"\0\0\0\1", b"\0\0", UnknownSchemaError),
            (b"\0\1\0\2", b"\0\0", UnknownSchemaError),
            (b"\0\0\0\4", b"\0\1\0", UnknownSchemaError),
        ],
    )
    def test_others_are_refused(self, key: bytes | None, value: bytes | None, error: type[DecodeError]) -> None:
        """No key, no value, a transaction marker, another key version, another value version."""
        with pytest.raises(error):
            decode_control(key, value)
