"""The strict reader of znodes' JSON: what appears twice, and what only looks like a number, is refused."""

from __future__ import annotations

from typing import Any

import pytest

from migrate.errors import MalformedZnode
from migrate.zookeeper.fields import INT32, INT64, JsonZnode, node_ids, parse_json, whole_number

PATH = "/brokers/topics/orders"


@pytest.mark.parametrize(
    "data",
    [
        b'{"version": 1, "version": 1}',
        b'{"version": 1, "partitions": {"0": [1], "0": [2]}}',
        b'[{"a": {"b": 1, "b": 1}}]',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": "\\ud800"}',
        b"\xff",
        b"[" * 100_000,
        b"",
        None,
    ],
    ids=[
        "key twice",
        "partition twice",
        "twice below",
        "NaN",
        "Infinity",
        "surrogate",
        "bytes",
        "deep",
        "empty",
        "none",
    ],
)
def test_json_that_cannot_be_trusted_is_refused(data: bytes | None) -> None:
    """Of a key that appears twice nobody knows which one Kafka reads."""
    with pytest.raises(MalformedZnode):
        parse_json(PATH, data)


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [1], -2, INT32])
def test_only_a_whole_number_in_its_range_is_one(value: Any) -> None:
    """`true` is no 1."""
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"n": value}).integer("n")


def test_a_range_holds_its_low_end_and_not_its_high_one() -> None:
    """Broker ids and epochs are 32 bits, -1 stands for none."""
    assert [whole_number(PATH, "n", value, low=-1, high=5) for value in (-1, 0, 4)] == [-1, 0, 4]
    for value in (-2, 5):
        with pytest.raises(MalformedZnode):
            whole_number(PATH, "n", value, low=-1, high=5)
    fields = JsonZnode(PATH, {"n": -1, "m": INT32 - 1})
    assert (fields.integer("n"), fields.integer("m")) == (-1, INT32 - 1)


@pytest.mark.parametrize("value", [[True], [1, True], [-1], [INT32], [1.0], ["1"], [1, 1], (1,), {"1": 1}, 1, None])
def test_only_a_list_of_ids_each_once_is_one(value: Any) -> None:
    """A broker that appears twice, or `true` for broker 1."""
    with pytest.raises(MalformedZnode):
        node_ids(PATH, "replicas", value)
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"partitions": {"0": value}}).assignment("partitions")


@pytest.mark.parametrize("key", ["01", "-1", "", "1 ", "\u0661", str(INT32), "1" * 400, "x"])
def test_only_a_partitions_own_number_is_its_key(key: str) -> None:
    """As Kafka writes it."""
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"partitions": {key: [1]}}).assignment("partitions")


def test_one_wrong_key_beside_a_right_one_is_refused() -> None:
    """The short way looks at all of them together."""
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"partitions": {"-1": [1], "5": [1]}}).assignment("partitions")


def test_an_assignment_holds_the_first_and_the_last_of_each_range() -> None:
    """Broker 0, partition 0, and the largest of both; no partition at all is an empty one."""
    most = INT32 - 1
    assert JsonZnode(PATH, {"p": {"0": [0, most], str(most): []}}).assignment("p") == {0: [0, most], most: []}
    assert JsonZnode(PATH, {"p": {}}).assignment("p") == {}
    assert JsonZnode(PATH, {"p": None}).assignment("p") == JsonZnode(PATH, {}).assignment("p") == {}


@pytest.mark.parametrize(("value", "good"), [(0, True), (0.5, True), (INT32 - 1, True), (True, False), (-0.1, False)])
def test_a_number_that_need_not_be_whole_is_not_negative(value: Any, good: bool) -> None:
    """And `true` is none."""
    if good:
        assert JsonZnode(PATH, {"n": value}).number("n") == value
    else:
        with pytest.raises(MalformedZnode):
            JsonZnode(PATH, {"n": value}).number("n")
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"n": INT32}).number("n")


@pytest.mark.parametrize("text", ["", "-1", "1.0", "\u0661", str(INT64), "0" * 20, "x"])
def test_a_number_in_a_string_is_digits_within_64_bits(text: str) -> None:
    """As Kafka writes timestamps."""
    with pytest.raises(MalformedZnode):
        JsonZnode(PATH, {"n": text}).integer_text("n")
    assert JsonZnode(PATH, {"n": str(INT64 - 1)}).integer_text("n") == INT64 - 1
