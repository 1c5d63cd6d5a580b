"""Ids hold their ranges, and Kafka's reserved ones have Kafka's numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.ids import (
    LOST,
    METADATA_TOPIC_ID,
    MIGRATING,
    UNASSIGNED,
    DirectoryId,
    KafkaUuid,
    NodeId,
    directory_name,
)
from migrate.model.ledger import RESERVED_STATES


@pytest.mark.parametrize("number", [-1, 2**31, "-1", "4294967296"])
def test_a_node_id_outside_kafkas_range_is_refused(number: int | str) -> None:
    """0 to 2^31 - 1, brokers and controllers alike."""
    with pytest.raises(ValueError, match="outside"):
        NodeId(number)


def test_a_node_id_is_its_number() -> None:
    """In maps and comparisons, from text or number."""
    assert {NodeId(3000): "c"}[NodeId("3000")] == "c"
    assert NodeId(0) == 0
    assert NodeId(2**31 - 1) == 2**31 - 1


@pytest.mark.slow
@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_keeps_its_bytes(raw: bytes) -> None:
    """22 characters of base64url, and back."""
    text = KafkaUuid.from_bytes(raw)
    assert len(text) == 22
    assert KafkaUuid(str(text)).raw == raw


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 21 + "+", "A" * 21 + "/", "A" * 20 + "==", "Ä" * 22])
def test_what_is_no_kafka_uuid_is_refused(text: str) -> None:
    """The plain alphabet's + and / among it: Python's decoder would let them pass."""
    with pytest.raises(ValueError, match="no Kafka UUID"):
        KafkaUuid(text)


@pytest.mark.slow
@given(st.integers(0, 2**128 - 1))
def test_exactly_the_first_hundred_directory_ids_are_reserved(number: int) -> None:
    """DirectoryId.java: msb 0 and lsb below 100."""
    assert DirectoryId.from_bytes(number.to_bytes(16, "big")).reserved is (number < 100)


@pytest.mark.parametrize("number", [0, 2, 99, 100, 2**64])
def test_the_edges_of_the_reserved_range(number: int) -> None:
    """Random numbers seldom come near them."""
    assert DirectoryId.from_bytes(number.to_bytes(16, "big")).reserved is (number < 100)


def test_the_reserved_ids_have_kafkas_numbers() -> None:
    """MIGRATING 0, UNASSIGNED 1, LOST 2; the metadata topic's id is ONE, a topic id."""
    assert [int.from_bytes(entry.raw, "big") for entry in (MIGRATING, UNASSIGNED, LOST)] == [0, 1, 2]
    assert [RESERVED_STATES[str(entry)].value for entry in (MIGRATING, UNASSIGNED, LOST)] == [
        "MIGRATING",
        "UNASSIGNED",
        "LOST",
    ]
    assert int.from_bytes(METADATA_TOPIC_ID.raw, "big") == 1


def test_reserved_directories_have_names() -> None:
    """As people and Kafka's source call them; any other id stands for itself."""
    assert [directory_name(entry) for entry in (MIGRATING, UNASSIGNED, LOST)] == [
        "MIGRATING",
        "UNASSIGNED",
        "LOST",
    ]
    assert directory_name("KTrqWH4lRM-UvsdWOyCZfw") == "KTrqWH4lRM-UvsdWOyCZfw"
