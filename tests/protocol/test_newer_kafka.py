"""Records and names that Kafka got after 3.9: what its own classes write and say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from migrate.java.jars import kafka_jars
from migrate.kraft.dump import spelled
from migrate.model.new_directories import NEEDED_LEVEL, RELEASES
from migrate.protocol.loader import Struct, Values
from migrate.protocol.records import (
    BROKER_REGISTRATION_CHANGE,
    CLEAR_ELR,
    REGISTER_BROKER,
    UNREGISTER_CONTROLLER,
    decode_record,
)
from tests.testing.encoding import encode_record
from tests.testing.kafka_jvm import kafka_jvm
from tests.testing.newer_kafka import KAFKAS, NEWER

D1, D2 = "KTrqWH4lRM-UvsdWOyCZfw", "dK02AL0ITg6j5LTzzYxpMw"
CHANGE: Values = {"brokerId": 7, "brokerEpoch": 5}
REGISTRATION: Values = {
    "brokerId": 7,
    "brokerEpoch": 5,
    "incarnationId": D1,
    "endPoints": [{"name": "A", "host": "::1", "port": 65535, "securityProtocol": 0}],
    "features": [],
    "rack": None,
    "fenced": True,
    "inControlledShutdown": False,
    "isMigratingZkBroker": False,
}
RECORDS: list[tuple[Struct, int, Values]] = [
    (CLEAR_ELR, 0, {"topicName": ""}),
    (CLEAR_ELR, 0, {"topicName": "ünï"}),
    (UNREGISTER_CONTROLLER, 0, {"controllerId": 3002}),
    (REGISTER_BROKER, 4, {**REGISTRATION, "logDirs": [D1, D2]}),
    (REGISTER_BROKER, 4, {**REGISTRATION, "logDirs": [D1, D2], "cordonedLogDirs": []}),
    (REGISTER_BROKER, 4, {**REGISTRATION, "logDirs": [D1, D2], "cordonedLogDirs": [D2]}),
    (BROKER_REGISTRATION_CHANGE, 3, CHANGE),
    (BROKER_REGISTRATION_CHANGE, 3, {**CHANGE, "cordonedLogDirs": []}),
    (BROKER_REGISTRATION_CHANGE, 3, {**CHANGE, "fenced": -1, "logDirs": [D1], "cordonedLogDirs": [D1, D2]}),
]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with the classes of the newest release."""
    with kafka_jvm(jars=kafka_jars(release=KAFKAS[NEWER[-1]])) as gateway:
        yield gateway.jvm


def written_by_kafka(jvm: Any, table: Struct, version: int, values: Values) -> bytes:
    """The record as `MetadataRecordSerde` writes it, frame included."""
    node = jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(json.dumps(spelled(table, version, values)))
    record = getattr(jvm.org.apache.kafka.common.metadata, f"{table.name}JsonConverter").read(node, version)
    message = jvm.org.apache.kafka.server.common.ApiMessageAndVersion(record, version)
    serde = jvm.org.apache.kafka.metadata.MetadataRecordSerde.INSTANCE
    cache = jvm.org.apache.kafka.common.protocol.ObjectSerializationCache()
    buffer = jvm.java.nio.ByteBuffer.allocate(serde.recordSize(message, cache))
    serde.write(message, cache, jvm.org.apache.kafka.common.protocol.ByteBufferAccessor(buffer))
    return bytes(buffer.array())


@pytest.mark.kafka
@pytest.mark.parametrize(("table", "version", "values"), RECORDS)
def test_kafkas_own_bytes_are_read_and_are_ours(jvm: Any, table: Struct, version: int, values: Values) -> None:
    """`null` and no cordoned directories are two things: not known yet, and none."""
    raw = written_by_kafka(jvm, table, version, values)
    assert decode_record(raw) == (table, version, values)
    assert encode_record(table, version, values) == raw


@pytest.mark.kafka
def test_the_names_of_metadata_versions_are_kafkas(jvm: Any) -> None:
    """From the first one with directories to the newest that the newest release gives out."""
    versions = jvm.org.apache.kafka.server.common.MetadataVersion
    newest = versions.latestProduction().featureLevel()
    theirs = {level: versions.fromFeatureLevel(level).toString() for level in range(NEEDED_LEVEL, newest + 1)}
    assert theirs == RELEASES
