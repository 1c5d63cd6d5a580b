"""AssignReplicasToDirs in columns is what the reference says: the same bytes, the same refusals."""

from __future__ import annotations

import logging
import random  # noqa: TID251 - seeded
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import EncodeError
from migrate.kafka import assignments as module
from migrate.kafka.assignment_columns import (
    AssignmentColumns,
    columns_of,
    requests_by_kernel,
)
from migrate.kafka.assignment_requests import MAX_ASSIGNMENTS, AssignRequest, Replica, requests_by_reference
from migrate.kafka.assignments import LARGE, prepare, requests_of
from migrate.kernels import choice
from migrate.model.ids import LOST, DirectoryId, NodeId, TopicId
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS
from migrate.protocol.primitives import uuid_text
from migrate.protocol.reader import decode_whole

Assignments = dict[str, list[Replica]]
Cluster = dict[NodeId, Assignments]
# ids whose bytes and whose letters sort differently, and neighbours in one word or the other
RAW = [bytes([first, *range(14), last]) for first in (0, 0xF8, 0xFC, 0x69, 0xD0) for last in (0, 1, 255)]
DIRECTORIES = [str(DirectoryId.from_bytes(raw)) for raw in RAW]
TOPICS = [str(TopicId.from_bytes(raw[::-1])) for raw in RAW]


@pytest.fixture(autouse=True)
def _chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loads its kernel itself."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_told", set())
    monkeypatch.setattr(choice, "_failed", {})


def epochs(cluster: Cluster) -> dict[NodeId, int]:
    """Of every broker."""
    return {broker: (1 << 40) + 7 * broker for broker in cluster}


def by_reference(cluster: Cluster, most: int) -> list[AssignRequest] | str:
    """Broker after broker; or what it refuses."""
    try:
        return [
            request
            for broker in sorted(cluster)
            for request in requests_by_reference(broker, epochs(cluster)[broker], cluster[broker], most)
        ]
    except ValueError as error:
        return str(error)


def by_broker(columns: AssignmentColumns) -> dict[NodeId, dict[str, list[Replica]]]:
    """Broker -> directory id -> replicas, in the columns' order."""
    found: dict[NodeId, dict[str, list[Replica]]] = {}
    for broker, directory, topic, partition in zip(
        columns.broker.tolist(), columns.directory, columns.topic, columns.partition.tolist(), strict=True
    ):
        of_broker = found.setdefault(NodeId(broker), {})
        of_broker.setdefault(uuid_text(directory.tobytes()), []).append((uuid_text(topic.tobytes()), partition))
    return found


def by_kernel(cluster: Cluster, most: int) -> list[AssignRequest] | None:
    """None: left to the reference."""
    columns = columns_of(cluster)
    return None if columns is None else requests_by_kernel(columns, epochs(cluster), most)


def true_cluster(draw: random.Random, brokers: int, replicas: int, repeats: int = 0) -> Cluster:
    """Each broker with some directories of its own; no replica in two of them."""
    found: Cluster = {}
    for index, broker in enumerate(draw.sample(range(3000), brokers)):
        own = [str(DirectoryId.from_bytes(draw.randbytes(12) + (1000 + index).to_bytes(4))) for _ in range(4)]
        topics = [str(TopicId.from_bytes(draw.randbytes(16))) for _ in range(1 + replicas // 20)]
        rows = list({(draw.choice(topics), draw.randrange(60)) for _ in range(replicas)})
        rooms: Assignments = {}
        for row in rows:
            rooms.setdefault(draw.choice(own), []).append(row)
        for room in rooms.values():
            room.extend(draw.choice(room) for _ in range(repeats))
        found[NodeId(broker)] = rooms
    return found


ROWS = st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 3) | st.sampled_from([127, 2**31 - 2])), max_size=9)
CLUSTERS = st.dictionaries(
    st.sampled_from([NodeId(0), NodeId(1), NodeId(2**31 - 1)]),
    st.dictionaries(st.sampled_from(DIRECTORIES), ROWS, max_size=4),
    max_size=3,
)


@settings(max_examples=120, deadline=None)
@given(CLUSTERS, st.integers(1, 4) | st.just(MAX_ASSIGNMENTS))
def test_the_kernel_sends_the_references_bytes_or_leaves_it_the_work(cluster: Cluster, most: int) -> None:
    """Whatever the reference refuses the kernel leaves to it; most other things it does itself."""
    found, wanted = by_kernel(cluster, most), by_reference(cluster, most)
    if isinstance(wanted, str):
        assert found is None
    else:
        assert found in (None, wanted)


@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_does_what_is_plain(seed: int) -> None:
    """Ids of every kind, repetitions, several brokers, several requests a broker: nothing of it is left over."""
    draw = random.Random(seed)
    cluster = true_cluster(draw, draw.randrange(1, 6), draw.choice([1, 30, 700]), draw.choice([0, 0, 3]))
    most = draw.choice([1, 7, 100, MAX_ASSIGNMENTS])
    found = by_kernel(cluster, most)
    assert found is not None
    assert found == by_reference(cluster, most)
    assert all(1 <= request.replicas <= most for request in found)
    sizes = {broker: len({row for rows in rooms.values() for row in rows}) for broker, rooms in cluster.items()}
    assert len(found) == sum(-(-size // most) for size in sizes.values()), "as few requests as there can be"
    for request in found:
        body = decode_whole(ASSIGN_REPLICAS_TO_DIRS.request, 0, request.body, 0)
        assert body["brokerEpoch"] == epochs(cluster)[NodeId(body["brokerId"])]


@pytest.mark.parametrize(
    "assignments",
    [
        {str(LOST): [(TOPICS[0], 0)]},
        {str(DirectoryId.from_bytes(bytes(15) + bytes([99]))): [(TOPICS[0], 0)]},
        {str(LOST): [], DIRECTORIES[3]: [(TOPICS[0], 0)]},
        {DIRECTORIES[3]: [(TOPICS[0], 0)], DIRECTORIES[4]: [(TOPICS[1], 0), (TOPICS[0], 0)]},
        {DIRECTORIES[3]: [("no id", 0)]},
        {"no id": [(TOPICS[0], 0)]},
        {DIRECTORIES[3]: [(TOPICS[0], 2**31)]},
    ],
)
def test_what_would_harm_is_refused_in_the_same_words(
    assignments: Assignments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kernel loaded and without it."""
    with pytest.raises((ValueError, EncodeError)) as wanted:
        requests_by_reference(NodeId(1), 7, assignments)
    assert prepare(LARGE)
    monkeypatch.setattr(module, "WARM", 1)
    assert by_kernel({NodeId(1): assignments}, 10) is None
    with pytest.raises(type(wanted.value)) as caught:
        requests_of(NodeId(1), 7, assignments)
    assert str(caught.value) == str(wanted.value)


def columns_with(**changes: Any) -> AssignmentColumns:
    """Three replicas of one broker in one directory, changed."""
    ids = np.frombuffer(b"".join(RAW[3:6]), np.uint8).reshape(3, 16)
    plain: dict[str, Any] = {
        "broker": np.ones(3, np.int32),
        "directory": ids[[0, 0, 0]],
        "topic": ids,
        "partition": np.zeros(3, np.int32),
    }
    return AssignmentColumns(**plain | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"broker": np.array([1, 2, 1], np.int32)},
        {"partition": np.array([0, -1, 1], np.int32)},
        {"partition": np.array([0, 2**31 - 1, 1], np.int32)},
        {"partition": np.array([0, 2**28, 1], np.int32)},
    ],
    ids=["a directory of two brokers", "negative", "the highest there is", "far apart"],
)
def test_what_is_odd_is_the_references(changes: dict[str, Any]) -> None:
    """The kernel leaves it to what says what is right."""
    columns = columns_with(**changes)
    of = {NodeId(broker): 7 for broker in (1, 2)}
    assert requests_by_kernel(columns_with(), of, 5) is not None
    assert requests_by_kernel(columns, of, 5) is None


def test_a_broker_that_can_be_none_is_refused() -> None:
    """By the reference: the kernel leaves it."""
    columns = columns_with(broker=np.array([1, -1, 1], np.int32))
    assert requests_by_kernel(columns, {NodeId(1): 7}, 5) is None


def test_many_ids_and_any_order_change_nothing() -> None:
    """More ids than the table first has room for; rows of all brokers mixed."""
    chance = np.random.default_rng(5)
    size = 12_000
    topics = chance.integers(0, 256, (size, 16), np.uint8)
    broker = chance.integers(0, 3, size).astype(np.int32)
    directory = np.zeros((size, 16), np.uint8)
    directory[:, 0], directory[:, 1] = 1 + broker, chance.integers(0, 3, size)
    columns = AssignmentColumns(broker, directory, topics, chance.integers(0, 9, size).astype(np.int32))
    of = {NodeId(number): number for number in range(3)}
    wanted = [r for one, rooms in sorted(by_broker(columns).items()) for r in requests_by_reference(one, one, rooms)]
    assert requests_by_kernel(columns, of, MAX_ASSIGNMENTS) == wanted
    nothing = columns_of({})
    assert nothing is not None
    assert requests_by_kernel(nothing, {}, 5) == []


def test_a_small_cluster_loads_nothing_and_a_large_one_says_what_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a process will send decides, before its first request; from then on small requests use the kernel too."""
    rows = true_cluster(random.Random(1), 1, 900)
    ((broker, assignments),) = rows.items()
    used: list[int] = []
    real = requests_by_kernel

    def noted(columns: AssignmentColumns, *arguments: Any) -> list[AssignRequest] | None:
        used.append(len(columns))
        return real(columns, *arguments)

    monkeypatch.setattr("migrate.kafka.assignment_columns.requests_by_kernel", noted)
    monkeypatch.setattr(choice, "_load_kept", lambda _: False)  # as in the first run of all
    assert not prepare(LARGE - 1)
    plain = requests_of(broker, 1, assignments)
    assert used == []
    assert prepare(LARGE)
    assert requests_of(broker, 1, assignments) == plain
    assert len(used) == 1
    monkeypatch.setenv(choice.VARIABLE, "off")
    with caplog.at_level(logging.INFO, "migrate.kernels"):
        assert not prepare(LARGE)
        assert requests_of(broker, 1, assignments) == plain
    assert len(used) == 1
    assert "assignments: the reference is used, as KRAFT_MIGRATE_KERNELS=off asks" in caplog.messages
